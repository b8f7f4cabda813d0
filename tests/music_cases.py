"""A MiniMax that does what a test says, on loopback, over real TLS, for those who test music."""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
import socket
import ssl
import threading
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import IO, Any

import attrs
import numpy as np
import pytest
import soundfile
import trustme

from routing_cases import ADDRESSES, PUBLIC, routed
from vlmcore._net.http_exchange import HttpExchange
from vlmcore.limits import MusicLimits
from vlmcore.secrets import Secret
from vlmcore_audio.clips import MusicClip
from vlmcore_audio.containers import Container
from vlmcore_audio.minimax._terms import Terms
from vlmcore_audio.minimax.async_client import AsyncMiniMaxMusic
from vlmcore_audio.minimax.client import MiniMaxMusic, Retries
from vlmcore_audio.minimax.regions import Region
from vlmcore_audio.minimax.wire import Delivery
from vlmcore_audio.music import AudioFormat, MusicRequest

KEY = "sk-Zx9+q/7=Kw'3\"d"
API = "api.minimax.io"
CDN = "cdn.example.net"
ADDRESSES.update(
    {
        API: PUBLIC,
        "api.minimaxi.com": PUBLIC,
        CDN: PUBLIC,
        "private.example.net": "10.0.0.5",
        "metadata.example.net": "169.254.169.254",
    }
)

Script = Callable[["Asked"], Iterable[bytes]]


@attrs.frozen(kw_only=True)
class Asked:
    """A request as it came; what was not read of it is in *file*."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes
    file: IO[bytes] = attrs.field(repr=False, eq=False)

    @property
    def document(self) -> Any:
        return json.loads(self.body)


class ScriptedMiniMax:
    """
    Answers each connection with the next script; the last one stays.
    """

    def __init__(self, folder: Path) -> None:
        authority = trustme.CA()
        self.certificate = folder / "ca.pem"
        authority.cert_pem.write_to_path(str(self.certificate))
        self._tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        authority.issue_cert(*ADDRESSES).configure_cert(self._tls)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.asked: list[Asked] = []
        self.scripts: list[Script] = []
        self.reads_bodies = True
        self.is_left = threading.Event()  # the client of the last script hung up
        self._closing = False
        self._threads: list[threading.Thread] = []
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._closing = True
        with contextlib.suppress(OSError), socket.socket() as last:
            socket.socket.connect(last, ("127.0.0.1", self.port))
        self._thread.join(10)
        self._listener.close()
        for thread in self._threads:
            thread.join(10)

    def _serve(self) -> None:
        while True:
            connection, _ = self._listener.accept()
            if self._closing:
                connection.close()
                return
            thread = threading.Thread(target=self._answer, args=(connection,), daemon=True)
            self._threads.append(thread)
            thread.start()

    def _answer(self, connection: socket.socket) -> None:
        with contextlib.suppress(OSError, ValueError), connection:
            connection.settimeout(20)
            with (
                self._tls.wrap_socket(connection, server_side=True) as peer,
                peer.makefile("rb") as file,
            ):
                method, target, _ = file.readline().decode().split(" ")
                headers = {}
                while (line := file.readline().strip()) != b"":
                    name, _, value = line.decode().partition(":")
                    headers[name.lower()] = value.strip()
                size = int(headers.get("content-length", 0)) if self.reads_bodies else 0
                body = file.read(size)
                asked = Asked(method=method, target=target, headers=headers, body=body, file=file)
                script = self.scripts.pop(0) if len(self.scripts) > 1 else self.scripts[0]
                self.asked.append(asked)
                try:
                    for part in script(asked):
                        peer.sendall(part)
                except OSError:
                    self.is_left.set()
                    raise
                with contextlib.suppress(OSError):
                    peer.unwrap()


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


def stream_head() -> bytes:
    return b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n"


def streams(*events: bytes) -> Script:
    """Send events, each as it is, and hang up."""
    return lambda _: [stream_head(), *events]


def document(
    audio: str | None, *, status: int | None = 2, code: int = 0, words: str = "success", **more: Any
) -> bytes:
    data = None if audio is None else {"status": status, "audio": audio}
    base = {"status_code": code, "status_msg": words}
    return json.dumps({"data": data, "base_resp": base, "trace_id": "t-1", **more}).encode()


def event(audio: str | None, **kwargs: Any) -> bytes:
    return b"data: " + document(audio, **kwargs) + b"\n\n"


DONE = b"data: [DONE]\n\n"


def tone(seconds: float = 0.5, *, rate_hz: int = 44_100) -> np.ndarray[Any, Any]:
    """A chord, the two channels apart."""
    at = np.arange(int(seconds * rate_hz)) / rate_hz
    left = 0.5 * np.sin(2 * np.pi * 440 * at) + 0.2 * np.sin(2 * np.pi * 1320 * at)
    return np.stack([left, 0.4 * np.sin(2 * np.pi * 660 * at)], axis=1)


def encoded(kind: str, samples: np.ndarray[Any, Any] | None = None, rate_hz: int = 44_100) -> bytes:
    """Encode a tone as a service would."""
    samples = tone() if samples is None else samples
    if kind == "PCM":
        return (samples * 0x7FFF).astype("<i2").tobytes()
    out = io.BytesIO()
    soundfile.write(out, samples, rate_hz, format=kind)
    return out.getvalue()


WAV = encoded("WAV")
MP3 = encoded("MP3")
PLACE = f"https://{CDN}/song.wav?sign=1"
AT_ONCE = Retries(first_s=0.001, jitter=lambda: 0.0)
TERMS = Terms(
    key=Secret(KEY),
    region=Region.GLOBAL_EN,
    delivery=Delivery.HEX,
    timeout_s=1.0,
    retries=AT_ONCE,
    download_hosts=None,
    aigc_watermark=False,
    limits=MusicLimits(),
    tls=ssl.create_default_context(),
    exchange_type=HttpExchange,
)


@contextlib.contextmanager
def scripted_minimax(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ScriptedMiniMax]:
    """Put a scripted MiniMax in the place of the real one, with a key that it is shown."""
    server = ScriptedMiniMax(folder)
    monkeypatch.setenv("SSL_CERT_FILE", str(server.certificate))
    monkeypatch.setenv("MINIMAX_API_KEY", KEY)
    try:
        with routed(server.port):
            yield server
    finally:
        server.close()


def request(container: Container = Container.WAV) -> MusicRequest:
    audio = AudioFormat(container=container)
    return MusicRequest(prompt="soft piano", is_instrumental=True, audio=audio)


def blocking(asked: MusicRequest | None = None, **terms: Any) -> MusicClip:
    with MiniMaxMusic(**{"retries": AT_ONCE, **terms}) as music:
        return music.generate(asked or request())


def awaited(asked: MusicRequest | None = None, **terms: Any) -> MusicClip:
    music = AsyncMiniMaxMusic(**{"retries": AT_ONCE, **terms})
    return asyncio.run(music.generate(asked or request()))


Generate = Callable[..., MusicClip]
both = pytest.mark.parametrize("generate", [blocking, awaited])
