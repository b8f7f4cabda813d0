"""Every decoder of what peers send, by name, each with real messages that it reads."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import attrs

from fuzz.answers import ANSWERS
from golden.wire.messages import golden
from groot_cases import CODECS, seen
from hostile.make_weights import HEADER_BYTES, V4_BYTES
from hostile.make_weights import st as safetensors
from hostile.make_weights import v4 as pack_v4
from vlmcore._net.events import EventReader
from vlmcore._net.http_exchange import HttpExchange
from vlmcore._net.http_parts import Head
from vlmcore.contracts.actions import ActionChunk
from vlmcore.contracts.documents import (
    action_chunk_from_json,
    action_chunk_to_json,
    embodiment_from_json,
    embodiment_to_json,
    observation_summary_from_json,
    observation_summary_to_json,
)
from vlmcore.contracts.presets import find_embodiment
from vlmcore.endpoint import Endpoint
from vlmcore.limits import HttpLimits, MusicLimits, WeightLimits, WireLimits
from vlmcore.policy.interface import PolicyInfo
from vlmcore.secrets import redact
from vlmcore.weights.flashpack_format import TAIL_BYTES, parse_footer
from vlmcore.weights.index import WeightFile
from vlmcore.weights.safetensors_format import HEAD_BYTES, parse_header, parse_shards
from vlmcore_audio.clips import MusicClip
from vlmcore_audio.containers import Container
from vlmcore_audio.minimax._reading import AnswerReader
from vlmcore_robotics.clients._boundary import Boundary, Stage
from vlmcore_robotics.clients._http_line import HttpLine
from vlmcore_robotics.clients._websocket_line import WebSocketLine
from vlmcore_robotics.clients._zmq_line import ZmqLine
from vlmcore_robotics.wire._blobs import Blob, Parts
from vlmcore_robotics.wire._npy import npy_layout
from vlmcore_robotics.wire.frames import FrameKind, decode_frame, encode_frame
from vlmcore_robotics.wire.groot_calls import read_modalities, read_ping
from vlmcore_robotics.wire.groot_dialects import GrootDialect
from vlmcore_robotics.wire.http_frames import WireEncoding
from vlmcore_robotics.wire.http_messages import ContentType, HttpEndpoint, HttpResponse
from vlmcore_robotics.wire.http_metadata import HttpServerInfo
from vlmcore_robotics.wire.http_v1 import HttpCall, HttpCodec
from vlmcore_robotics.wire.layouts import aloha_layout, droid_layout, libero_layout
from vlmcore_robotics.wire.ndarrays import ArraySpelling
from vlmcore_robotics.wire.openpi import OpenPICodec
from vlmcore_robotics.wire.policy_info import info_from_metadata, metadata_from_info
from vlmcore_robotics.wire.zmtp import SocketKind, ZmtpConnection
from zmtp_cases import command, replied, said_before, written

__all__ = ["DECODERS", "Decoder"]

LAYOUTS = {"libero": libero_layout, "droid": droid_layout, "aloha": aloha_layout}
ROBOT = find_embodiment("generic_7dof_joint_gripper")
INFO = PolicyInfo(name="act", action_names=("x",), cameras=ROBOT.cameras, horizon=4)
CHUNK = ActionChunk(values=[[1.0], [2.0]], names=("x",), source="act", observed_at_s=0.0)
HTTP = HttpCodec(policy="act", action_names=("x",))
BOUNDARY = Boundary(policy="arm", origin="ws://127.0.0.1:9", waits_s=1.0)


@attrs.frozen(kw_only=True, eq=False)
class Decoder:
    """
    A decoder.

    Attributes:
        real: Messages that it reads.
        decode: Reads a message; what it raises is an error of ours.
        is_packed: Whether it reads MessagePack.
    """

    real: tuple[bytes, ...]
    decode: Callable[[bytes], Any]
    is_packed: bool = True


def text(decode: Callable[[Any], Any]) -> Callable[[bytes], Any]:
    """Read a text frame, which is text whatever its bytes are."""
    return lambda message: decode(message.decode("utf-8", "replace"))


def of_openpi() -> dict[str, Decoder]:
    names = tuple(f"joint_{i}" for i in range(7))
    codec = OpenPICodec(policy="pi", layout=libero_layout(), action_names=names)
    answer = partial(codec.decode_answer, observed_at_s=0.0)
    found = {
        "openpi-metadata": Decoder(real=(golden("openpi-metadata"),), decode=codec.decode_metadata),
        "openpi-answer": Decoder(real=(golden("openpi-answer"),), decode=answer),
        "openpi-text": Decoder(
            real=(b'Traceback:\n  File "x.py", line 1\nKeyError: 1',),
            decode=text(answer),
            is_packed=False,
        ),
    }
    for name, layout in LAYOUTS.items():
        server = attrs.evolve(codec, layout=layout())
        found[f"openpi-{name}"] = Decoder(
            real=(golden(f"openpi-{name}"),),
            decode=partial(server.decode_request, captured_at_s=0.0),
        )
    return found


def of_groot() -> dict[str, Decoder]:
    found = {}
    for dialect in GrootDialect:
        codec, name = CODECS[dialect], f"groot-{dialect.value.lower()}"
        found |= {
            f"{name}-answer": Decoder(
                real=(golden(f"{name}-answer"),),
                decode=partial(codec.decode_answer, observed_at_s=0.0),
            ),
            f"{name}-request": Decoder(
                real=(golden(f"{name}-request"),),
                decode=partial(codec.decode_call, captured_at_s=0.0),
            ),
            f"{name}-modalities": Decoder(
                real=(golden(f"{name}-modalities"),),
                decode=partial(read_modalities, policy="groot"),
            ),
        }
    pong = encode_frame({"status": "ok"}, kind=FrameKind.METADATA)
    found["groot-ping"] = Decoder(real=(pong,), decode=partial(read_ping, policy="groot"))
    found["groot-reset"] = Decoder(real=(b"\x80",), decode=codec.decode_reset)
    return found


def of_http() -> dict[str, Decoder]:
    found = {}
    for kind in ContentType:
        codec = attrs.evolve(HTTP, content_type=kind)
        request = codec.encode_request(seen())
        call = HttpCall(endpoint=HttpEndpoint.INFER, answer_type=kind)
        server = HttpServerInfo(policy=INFO, encodings=tuple(WireEncoding), has_sessions=True)
        requests = tuple(
            attrs.evolve(codec, encoding=each).encode_request(seen()).body for each in WireEncoding
        )

        def read_request(body: bytes, request: Any = request) -> Any:
            return HTTP.decode_request(attrs.evolve(request, body=body), captured_at_s=0.0)

        def response(body: bytes, kind: ContentType = kind, status: int = 200) -> HttpResponse:
            return HttpResponse(status=status, headers={"content-type": kind.value}, body=body)

        def read_answer(body: bytes, response: Any = response) -> Any:
            return HTTP.decode_answer(response(body), observed_at_s=0.0)

        def read_failure(body: bytes, response: Any = response) -> Any:
            return HTTP.decode_answer(response(body, status=500), observed_at_s=0.0)

        def read_metadata(body: bytes, response: Any = response) -> Any:
            return HTTP.decode_metadata(response(body))

        name, packed = f"http-{kind.name.lower()}", kind is ContentType.MESSAGEPACK
        answer = HTTP.encode_answer(CHUNK, call, timing_ms={"infer": 5.0})
        metadata = HTTP.encode_metadata(server, call)
        for part, real, decode in (
            ("request", requests, read_request),
            ("answer", (answer.body,), read_answer),
            ("failure", (b'{"error": "no"}', b"\x81\xa5error\xa2no"), read_failure),
            ("metadata", (metadata.body,), read_metadata),
        ):
            found[f"{name}-{part}"] = Decoder(real=real, decode=decode, is_packed=packed)
    return found


def of_arrays() -> dict[str, Decoder]:
    files = golden("npy-arrays")
    start = files.index(b"\x93NUMPY")
    found = {
        "npy": Decoder(
            real=(files[start : start + 128],),
            decode=lambda file: npy_layout(Blob(file, 0, len(file)), WireLimits()),
            is_packed=False,
        )
    }
    for spelling, name in zip(ArraySpelling, ("openpi", "msgpack-numpy", "npy"), strict=True):
        found[f"arrays-{spelling.value.strip('_')}"] = Decoder(
            real=(golden(f"{name}-arrays"),),
            decode=partial(decode_frame, kind=FrameKind.REQUEST),
        )
    return found


def read_info(frame: bytes) -> PolicyInfo | None:
    said = decode_frame(frame, kind=FrameKind.METADATA)
    return info_from_metadata(said, name="arm") if isinstance(said, Mapping) else None


def of_documents() -> dict[str, Decoder]:
    info = encode_frame(metadata_from_info(INFO), kind=FrameKind.METADATA)
    summary = observation_summary_to_json(seen().summary()).encode()
    return {
        "policy-info": Decoder(real=(info,), decode=read_info),
        "embodiment": Decoder(
            real=(embodiment_to_json(ROBOT).encode(),), decode=embodiment_from_json, is_packed=False
        ),
        "observation": Decoder(
            real=(summary,), decode=observation_summary_from_json, is_packed=False
        ),
        "action-chunk": Decoder(
            real=(action_chunk_to_json(CHUNK).encode(),),
            decode=action_chunk_from_json,
            is_packed=False,
        ),
    }


def feed(line: Any, data: bytes) -> None:
    """Let a connection hear *data*, and then the end, as a client does."""
    for part in (data, b""):
        line.feed(part)
        list(line.outgoing())
        try:
            line.take()
        except Exception as error:  # noqa: BLE001 - as clients do
            raise BOUNDARY.translated(error, Stage.ANSWER) from None


def hear_websocket(data: bytes) -> None:
    endpoint = Endpoint.parse("ws://127.0.0.1:9", schemes=("ws",))
    line = WebSocketLine(endpoint, policy="arm", api_key=None, limits=WireLimits())
    match = re.search(rb"(?i)sec-websocket-key: (\S+)", b"".join(line.outgoing()))
    assert match is not None
    digest = hashlib.sha1(match[1] + b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11").digest()
    line.feed(
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        b"Sec-WebSocket-Accept: " + base64.b64encode(digest) + b"\r\n\r\n\x82\x01\x80"
    )
    assert line.take() == b"\x80"
    line.ask(b"\x80")
    feed(line, data)


def hear_http(data: bytes) -> None:
    endpoint = Endpoint.parse("http://127.0.0.1:9", schemes=("http",))
    exchange = HttpExchange(max_head_bytes=HttpLimits().max_head_bytes)
    line = HttpLine(exchange, endpoint, prefix="", policy="arm", limits=HttpLimits())
    line.ask(HTTP.ask(HttpEndpoint.METADATA))
    list(line.outgoing())
    feed(line, data)


def hear_zeromq(data: bytes) -> None:
    line = ZmqLine("arm", max_bytes=WireLimits().max_response_bytes)
    line.feed(said_before(SocketKind.REP))
    line.ask(Parts((b"\x80",)))
    list(line.outgoing())
    feed(line, data)


def hear_peer(data: bytes) -> None:
    """Let a server hear *data* instead of a greeting."""
    peer = ZmtpConnection(SocketKind.ROUTER, policy="arm", max_bytes=1 << 20)
    for i in range(0, len(data), 1 << 10):
        peer.feed(data[i : i + (1 << 10)])
        while peer.take() is not None:
            peer.unsent.clear()


def of_zeromq() -> dict[str, Decoder]:
    message = written(b"", b"\x81\xa6status\xa2ok")
    large = written(b"hop", b"", bytes(256))
    ping, refusal = command(b"\x04PING\0\0ab"), command(b"\x05ERROR\x04busy")
    answer = replied(1, b"\x81\xa6status\xa2ok")
    answers = (answer, message, ping + answer, refusal, replied(1, bytes(256)))
    greeting = said_before(SocketKind.DEALER)

    def hear_request(data: bytes) -> None:
        hear_peer(greeting + data)

    return {
        "zeromq-line": Decoder(real=answers, decode=hear_zeromq, is_packed=False),
        "zeromq-request": Decoder(
            real=(message, ping + message, large), decode=hear_request, is_packed=False
        ),
        "zeromq-greeting": Decoder(
            real=(greeting, greeting + message), decode=hear_peer, is_packed=False
        ),
    }


def of_lines() -> dict[str, Decoder]:
    answer = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"
    chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n"
    frames = (b"\x82\x01\x80", b"\x02\x01\x80\x80\x01\x80", b"\x89\x00\x81\x02no\x88\x02\x03\xf3")
    return {
        "websocket-line": Decoder(real=frames, decode=hear_websocket, is_packed=False),
        "http-line": Decoder(real=(answer, chunked), decode=hear_http, is_packed=False),
    }


def hear_events(data: bytes) -> None:
    """Read a stream as far as the first byte says, and then the rest."""
    reader = EventReader(max_bytes=2000)
    at = data[0] if data else 0
    for part in (data[1 : 1 + at], data[1 + at :]):
        list(reader.feed(part))
    list(reader.finish())


def join_music(data: bytes) -> None:
    """Read an answer of MiniMax; the first byte says where it is cut, and what is asked for."""
    at = data[0] if data else 0
    limits = MusicLimits(max_url_characters=1 + at % 9, max_audio_bytes=999, max_answer_bytes=8192)
    container = list(Container)[at % 3]
    reader = AnswerReader(container, limits=limits, redacted=redact)
    reader.take(Head(status=200, headers={"content-type": "text/event-stream"} if at % 2 else {}))
    for part in (data[1 : 1 + at], data[1 + at :]):
        reader.take(part)
    reader.finish()
    MusicClip(encoded=bytes(reader.assembly.whole()), container=container)


def of_music() -> dict[str, Decoder]:
    def said(digits: str, status: int, more: str = "") -> bytes:
        fields = f'"data": {{"audio": "{digits}", "status": {status}}}{more}'
        return f'{{{fields}, "base_resp": {{"status_code": 0}}}}'.encode()

    size = ', "extra_info": {"music_size": 6, "music_channel": 2}'
    whole = said("fffb01020304", 2, size)
    stream = b": ping\n\nid: 1\ndata: " + said("fffb0", 1) + b"\n\ndata: " + whole + b"\n\n"
    riff = b"RIFF\x24\0\0\0WAVEfmt \x10\0\0\0\1\0\1\0" + bytes(12) + b"data\0\0\0\0"
    return {
        "music-events": Decoder(
            real=(b"\x09" + stream, b"\3\xef\xbb\xbfdata:a\r\ndata: b\r\rretry: 7\n"),
            decode=hear_events,
            is_packed=False,
        ),
        "music-answer": Decoder(
            real=(
                b"\x21" + stream + b"data: [DONE]\n\n",
                b"\0" + said("fffb01", 2),
                b"\x0b" + said("00" * 8, 2),
                b"\1" + said(riff.hex(), 2),
            ),
            decode=join_music,
            is_packed=False,
        ),
    }


def of_answers() -> dict[str, Decoder]:
    return {
        name: Decoder(real=(real,), decode=decode, is_packed=False)
        for name, (real, decode) in ANSWERS.items()
    }


def of_weights() -> dict[str, Decoder]:
    """Read what files of weights say: their size is what is behind the bytes and before them."""
    limits = WeightLimits()
    footer, header = pack_v4()[V4_BYTES:-TAIL_BYTES], safetensors()[HEAD_BYTES:-HEADER_BYTES]

    def read_footer(data: bytes) -> Any:
        file = WeightFile(name="m", size_bytes=V4_BYTES + len(data) + TAIL_BYTES)
        return parse_footer(data, file=file, limits=limits)

    def read_header(data: bytes) -> Any:
        size = HEAD_BYTES + len(data) + HEADER_BYTES
        return parse_header(data, file=0, size_bytes=size, limits=limits)

    index = b'{"metadata":{"total_size":8},"weight_map":{"a":"m-1.safetensors"}}'
    return {
        "weights-footer": Decoder(real=(footer,), decode=read_footer, is_packed=False),
        "weights-header": Decoder(real=(header,), decode=read_header, is_packed=False),
        "weights-index": Decoder(
            real=(index,), decode=partial(parse_shards, limits=limits), is_packed=False
        ),
    }


DECODERS: Mapping[str, Decoder] = {
    **of_answers(),
    **of_openpi(),
    **of_groot(),
    **of_http(),
    **of_arrays(),
    **of_documents(),
    **of_lines(),
    **of_music(),
    **of_zeromq(),
    **of_weights(),
}
