"""A server of models that does what a test says, byte for byte, on loopback."""

from __future__ import annotations

import contextlib
import json
import socket
import ssl
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import attrs

from vlmcore.vlm.remote.retrying import Retries

PROMPT_TOKENS = 21
QUICK = Retries(first_s=0.0, longest_s=0.0, jitter=lambda: 0.0)

Script = Callable[["Asked"], Iterable[bytes]]


@attrs.frozen(kw_only=True)
class Asked:
    """A request as it came."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes
    connection: int  # which of the connections it came on
    closing: threading.Event  # the server is about to end

    @property
    def document(self) -> Any:
        return json.loads(self.body)


class ScriptedModelServer:
    """
    Answers each request with the next script; the last one stays. Connections are kept.
    """

    def __init__(self, *scripts: Script, tls: ssl.SSLContext | None = None, port: int = 0) -> None:
        self.reads_first_body = True
        self.scripts = list(scripts)
        self.asked: list[Asked] = []
        self.left = threading.Event()  # a client hung up while an answer was being sent
        self.gone = threading.Semaphore(0)  # one for each connection that ended
        self.connections = 0
        self._tls = tls
        self._lock = threading.Lock()
        self._closing = threading.Event()
        self._listener = socket.create_server(("127.0.0.1", port), backlog=256)
        self.port: int = self._listener.getsockname()[1]
        self._threads: list[threading.Thread] = []
        self._open: set[socket.socket] = set()
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        return f"{'http' if self._tls is None else 'https'}://localhost:{self.port}/v1"

    def close(self) -> None:
        self._closing.set()
        with contextlib.suppress(OSError), socket.socket() as last:
            socket.socket.connect(last, ("127.0.0.1", self.port))
        self._thread.join(10)
        self._listener.close()
        for connection in tuple(self._open):
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(10)

    def _serve(self) -> None:
        while True:
            connection, _ = self._listener.accept()
            if self._closing.is_set():
                connection.close()
                return
            self.connections += 1
            thread = threading.Thread(
                target=self._converse, args=(connection, self.connections), daemon=True
            )
            self._threads.append(thread)
            thread.start()

    def _converse(self, connection: socket.socket, number: int) -> None:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._open.add(connection)
        try:
            with contextlib.suppress(OSError, ValueError), connection:
                connection.settimeout(20)
                peer = self._tls.wrap_socket(connection, server_side=True) if self._tls else None
                with contextlib.ExitStack() as stack:
                    stream = stack.enter_context(peer) if peer else connection
                    file = stack.enter_context(stream.makefile("rb"))
                    while self._answer(stream, file, number):
                        pass
        finally:
            self._open.discard(connection)
            self.gone.release()

    def _answer(self, stream: socket.socket, file: Any, number: int) -> bool:
        reads = self.reads_first_body or number > 1
        asked = _read(file, number, self._closing, reads_body=reads)
        if asked is None:
            return False
        with self._lock:
            script = self.scripts.pop(0) if len(self.scripts) > 1 else self.scripts[0]
            self.asked.append(asked)
        try:
            for part in script(asked):
                if part == HANG_UP:
                    return False
                stream.sendall(part)
        except OSError:
            self.left.set()
            raise
        if not reads:
            self._closing.wait(0.5)  # with an answer, and the request still on its way
        return reads


HANG_UP = b"<hang up>"


def _read(file: Any, number: int, closing: threading.Event, *, reads_body: bool) -> Asked | None:
    line = file.readline().decode()
    if not line:
        return None
    method, target, _ = line.split(" ")
    headers = {}
    while (line := file.readline().strip()) != b"":
        name, _, value = line.decode().partition(":")
        headers[name.lower()] = value.strip()
    body = file.read(int(headers.get("content-length", 0))) if reads_body else b""
    return Asked(
        method=method,
        target=target,
        headers=headers,
        body=body,
        connection=number,
        closing=closing,
    )


@contextlib.contextmanager
def serving(*scripts: Script, tls: ssl.SSLContext | None = None) -> Iterator[ScriptedModelServer]:
    """Serve while a block runs."""
    server = ScriptedModelServer(*scripts, tls=tls)
    try:
        yield server
    finally:
        server.close()


def http(
    body: bytes, *, status: int = 200, kind: str = "application/json", more: str = ""
) -> bytes:
    """Write a whole answer."""
    head = (
        f"HTTP/1.1 {status} X\r\ncontent-type: {kind}\r\ncontent-length: {len(body)}\r\n{more}\r\n"
    )
    return head.encode() + body


def says(body: bytes, **kwargs: Any) -> Script:
    return lambda _: [http(body, **kwargs)]


def refuses(status: int, message: str = "no", *, more: str = "", **fields: Any) -> Script:
    body = json.dumps({"error": {"message": message, **fields}}).encode()
    return says(body, status=status, more=more)


STREAM = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
END = b"0\r\n\r\n"


def chunk(data: bytes) -> bytes:
    return f"{len(data):x}\r\n".encode() + data + b"\r\n"


def event(document: Any) -> bytes:
    return b"data: " + json.dumps(document, ensure_ascii=False).encode() + b"\n\n"


DONE = b"data: [DONE]\n\n"


def delta(text: str | None = None, *, reason: str | None = None, **more: Any) -> bytes:
    """Write an event of chat completions."""
    content = {} if text is None else {"content": text}
    choice = {"index": 0, "delta": {**content, **more}, "finish_reason": reason}
    return event({"id": "c-1", "model": "served", "choices": [choice]})


def usage(new_tokens: int, prompt_tokens: int = PROMPT_TOKENS, **more: Any) -> bytes:
    counts = {"prompt_tokens": prompt_tokens, "completion_tokens": new_tokens, **more}
    return event({"id": "c-1", "model": "served", "choices": [], "usage": counts})


def streams(*events: bytes, end: bytes = END) -> Script:
    """Send events, each as a chunk, and end the answer."""
    return lambda _: [STREAM, *(chunk(each) for each in events), end]


def answers(text: str, *, reason: str = "stop") -> Script:
    """Stream a text word by word, and end it well."""
    words = [each + " " for each in text.split(" ")]
    words[-1] = words[-1][:-1]
    return streams(*map(delta, words), delta(reason=reason), usage(len(words)), DONE)


def model(asked: Asked) -> Iterator[bytes]:
    """Answer as a model would: from the prompt, up to what was asked for, in either form."""
    document = asked.document
    content = document["messages"][-1]["content"]
    text = content if isinstance(content, str) else content[-1]["text"]
    tokens = [f" {word}" for word in f"You asked: {text}".split()]
    tokens[0] = tokens[0][1:]
    most = document.get("max_tokens") or document["max_completion_tokens"]
    reason = "length" if len(tokens) > most else "stop"
    tokens = tokens[:most]
    written = "".join(tokens)
    for stop in document.get("stop", ()):
        written = written.partition(stop)[0]
    counts = {"prompt_tokens": PROMPT_TOKENS, "completion_tokens": len(tokens)}
    if not document["stream"]:
        choice = {"message": {"content": written}, "finish_reason": reason}
        yield http(json.dumps({"model": "m", "choices": [choice], "usage": counts}).encode())
        return
    yield STREAM
    for at in range(0, len(written), 7):
        yield chunk(delta(written[at : at + 7]))
    yield chunk(delta(reason=reason))
    yield chunk(usage(len(tokens)))
    yield chunk(DONE)
    yield END


def said(kind: str, **fields: Any) -> bytes:
    """Write an event of Anthropic or of OpenAI's responses."""
    return f"event: {kind}\n".encode() + event({"type": kind, **fields})


MESSAGE_OF_ANTHROPIC = (
    said("message_start", message={"id": "msg_1", "model": "m", "usage": {"input_tokens": 9}}),
    said("content_block_delta", index=0, delta={"type": "text_delta", "text": "A dog"}),
    said("message_delta", delta={"stop_reason": "end_turn"}, usage={"output_tokens": 2}),
    said("message_stop"),
)
