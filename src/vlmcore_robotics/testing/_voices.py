"""How a server speaks each protocol, so far that a client takes it for one."""

from __future__ import annotations

import abc
import enum
import json
from collections.abc import Iterator
from typing import Any, Generic, NamedTuple, TypeVar

import attrs
import numpy as np

from vlmcore._arrays import Float64Array
from vlmcore.contracts.embodiment import Embodiment
from vlmcore.policy.interface import PolicyInfo
from vlmcore_robotics.testing import _http_bytes, _websocket_bytes, _zmtp_bytes
from vlmcore_robotics.testing._bodies import PIECE, UNBELIEVABLE
from vlmcore_robotics.testing._streams import Stream
from vlmcore_robotics.wire._http_calls import HttpCall, routed
from vlmcore_robotics.wire.frames import FrameKind, encode_frame
from vlmcore_robotics.wire.groot_calls import GrootEndpoint, encode_failure, read_call
from vlmcore_robotics.wire.groot_dialects import GrootDialect, modalities_to_answer
from vlmcore_robotics.wire.groot_layout import GrootLayout
from vlmcore_robotics.wire.groot_modalities import ModalityConfig, PolicyModalities
from vlmcore_robotics.wire.http_frames import WireEncoding
from vlmcore_robotics.wire.http_messages import ContentType, HttpEndpoint, HttpResponse
from vlmcore_robotics.wire.http_metadata import HttpServerInfo, metadata_document
from vlmcore_robotics.wire.policy_info import metadata_from_info

__all__ = ["Asked", "GrootVoice", "HttpVoice", "OpenPIVoice", "Voice", "info_of"]

_NAME = "hostile"
_OTHER = "other_"

_Call = TypeVar("_Call")


class Asked(enum.Enum):
    """What a client asks for."""

    METADATA = "metadata"
    ACTIONS = "actions"
    OTHER = "something else"


class Voice(abc.ABC, Generic[_Call]):
    """
    Speaks one protocol on one connection.

    Args:
        info: What the policy says about itself.
    """

    def __init__(self, info: PolicyInfo) -> None:
        self.info = info

    def greet(self, _stream: Stream) -> bytes:
        """Hear what a client says before it asks, if that comes first; return what to say."""
        return b""

    def greeted(self, _stream: Stream) -> None:
        """Hear what a client says after that."""

    @abc.abstractmethod
    def hear(self, stream: Stream) -> tuple[Asked, _Call]:
        """Wait for the next question; what came with it is needed to answer it."""

    @abc.abstractmethod
    def content_type(self, call: _Call) -> ContentType:
        """Say how the body of an answer is written."""

    @abc.abstractmethod
    def metadata(self, info: PolicyInfo, call: _Call) -> bytes:
        """Write what the policy says about itself: the body of an answer."""

    @abc.abstractmethod
    def actions(self, values: Float64Array, names: tuple[str, ...], call: _Call) -> bytes:
        """Write actions: the body of an answer."""

    @abc.abstractmethod
    def other(self, call: _Call) -> bytes:
        """Write that all is well: the body of an answer."""

    @abc.abstractmethod
    def framed(self, body: bytes | str, call: _Call) -> bytes:
        """Put a body on the wire."""

    @abc.abstractmethod
    def failure(self, words: str, call: _Call) -> bytes:
        """Say that something failed, on the wire."""

    @abc.abstractmethod
    def oversized(self, call: _Call) -> bytes:
        """Start an answer that says that it is larger than all disks."""

    @abc.abstractmethod
    def endless(self, call: _Call) -> Iterator[bytes]:
        """Make an answer that has no end."""


class OpenPIVoice(Voice[None]):
    """A server of openpi."""

    def __init__(self, info: PolicyInfo) -> None:
        super().__init__(info)
        self._has_greeted = False

    def greet(self, stream: Stream) -> bytes:
        return _websocket_bytes.handshake_answer(stream)

    def hear(self, stream: Stream) -> tuple[Asked, None]:
        if not self._has_greeted:  # it says what it is without being asked
            self._has_greeted = True
            return Asked.METADATA, None
        if _websocket_bytes.read_message(stream, masked=False) is None:
            raise EOFError("the client left")
        return Asked.ACTIONS, None

    def content_type(self, _call: None) -> ContentType:
        return ContentType.MESSAGEPACK

    def metadata(self, info: PolicyInfo, _call: None) -> bytes:
        return encode_frame(metadata_from_info(info), kind=FrameKind.METADATA)

    def actions(self, values: Float64Array, names: tuple[str, ...], _call: None) -> bytes:
        return encode_frame(
            {"actions": values, "action_names": list(names)}, kind=FrameKind.RESPONSE
        )

    def other(self, _call: None) -> bytes:
        return b""

    def framed(self, body: bytes | str, _call: None) -> bytes:
        return _websocket_bytes.frame(body, masked=False)

    def failure(self, words: str, _call: None) -> bytes:
        return self.framed(words, None) + _websocket_bytes.frame(
            b"\x03\xf3", masked=False, opcode=_websocket_bytes.Opcode.CLOSE
        )

    def oversized(self, _call: None) -> bytes:
        return _websocket_bytes.frame(PIECE, masked=False, declared=UNBELIEVABLE)

    def endless(self, _call: None) -> Iterator[bytes]:
        opcode = _websocket_bytes.Opcode.BINARY
        while True:
            yield _websocket_bytes.frame(PIECE, masked=False, opcode=opcode, final=False)
            opcode = _websocket_bytes.Opcode.MORE


class HttpVoice(Voice[HttpCall]):
    """A server of the HTTP protocol."""

    def hear(self, stream: Stream) -> tuple[Asked, HttpCall]:
        call = routed(_http_bytes.read_request(stream), policy=_NAME, token=None)
        asked = {HttpEndpoint.METADATA: Asked.METADATA, HttpEndpoint.INFER: Asked.ACTIONS}
        return asked.get(call.endpoint, Asked.OTHER), call

    def content_type(self, call: HttpCall) -> ContentType:
        return call.answer_type

    def metadata(self, info: PolicyInfo, call: HttpCall) -> bytes:
        server = HttpServerInfo(
            policy=info,
            encodings=tuple(WireEncoding),
            content_types=tuple(ContentType),
            has_sessions=True,
        )
        return self._body(metadata_document(server), call)

    def actions(self, values: Float64Array, names: tuple[str, ...], call: HttpCall) -> bytes:
        return self._body({"actions": values.tolist(), "action_names": list(names)}, call)

    def other(self, call: HttpCall) -> bytes:
        return self._body({"status": "ok"}, call)

    def framed(self, body: bytes | str, call: HttpCall) -> bytes:
        return _http_bytes.response_bytes(self._response(body, call))

    def failure(self, words: str, call: HttpCall) -> bytes:
        response = self._response(self._body({"error": words}, call), call)
        return _http_bytes.response_bytes(attrs.evolve(response, status=500))

    def oversized(self, call: HttpCall) -> bytes:
        return _http_bytes.response_bytes(self._response(PIECE, call), declared=UNBELIEVABLE)

    def endless(self, call: HttpCall) -> Iterator[bytes]:
        head = _http_bytes.response_bytes(self._response(b"", call))
        yield head.replace(b"content-length: 0", b"transfer-encoding: chunked")
        while True:
            yield b"%x\r\n%b\r\n" % (len(PIECE), PIECE)

    def _body(self, value: Any, call: HttpCall) -> bytes:
        if call.answer_type is ContentType.JSON:
            return json.dumps(value).encode()  # which writes NaN, as servers do
        return encode_frame(value, kind=FrameKind.RESPONSE)

    def _response(self, body: bytes | str, call: HttpCall) -> HttpResponse:
        headers = {"content-type": call.answer_type.value}
        if isinstance(body, str):
            headers, body = {"content-type": "text/html"}, body.encode()
        if call.request_id is not None:
            headers["x-request-id"] = call.request_id
        return HttpResponse(status=200, headers=headers, body=body)


class _GrootCall(NamedTuple):
    """What is asked, and what has to stand before the answer."""

    endpoint: GrootEndpoint
    envelope: tuple[bytes, ...]


class GrootVoice(Voice[_GrootCall]):
    """
    A server of GR00T N1.7.

    Args:
        info: What the policy says about itself.
        layout: The keys that it knows.
    """

    def __init__(self, info: PolicyInfo, layout: GrootLayout) -> None:
        super().__init__(info)
        self._layout = layout

    def greet(self, _stream: Stream) -> bytes:
        return _zmtp_bytes.greeting("REP")

    def greeted(self, stream: Stream) -> None:
        _zmtp_bytes.hear_greeting(stream)

    def hear(self, stream: Stream) -> tuple[Asked, _GrootCall]:
        heard = _zmtp_bytes.read_message(stream)
        endpoint, _ = read_call(heard.body, policy=_NAME, token=None)
        asked = {
            GrootEndpoint.GET_MODALITY_CONFIG: Asked.METADATA,
            GrootEndpoint.GET_ACTION: Asked.ACTIONS,
        }
        return asked.get(endpoint, Asked.OTHER), _GrootCall(endpoint, heard.envelope)

    def content_type(self, _call: _GrootCall) -> ContentType:
        return ContentType.MESSAGEPACK

    def metadata(self, info: PolicyInfo, _call: _GrootCall) -> bytes:
        layout = self._layout
        if info.action_names != layout.action_names:  # streams are all that is said of names
            action = [attrs.evolve(each, key=_OTHER + each.key) for each in layout.action]
            layout = attrs.evolve(layout, action=action)
        modalities = modalities_of(layout, info.horizon or 1)
        return self._packed(modalities_to_answer(modalities, GrootDialect.N1_7))

    def actions(self, values: Float64Array, names: tuple[str, ...], _call: _GrootCall) -> bytes:
        prefix = "" if names == self._layout.action_names else _OTHER
        streams, rest = {}, values[np.newaxis].astype(np.float32)
        for stream in self._layout.action[:-1]:
            streams[prefix + stream.key], rest = np.split(rest, [len(stream.names)], axis=2)
        streams[prefix + self._layout.action[-1].key] = rest  # too much of it, if it is too much
        return self._packed([streams, {}])

    def other(self, call: _GrootCall) -> bytes:
        is_ping = call.endpoint is GrootEndpoint.PING
        return self._packed({"status": "ok", "message": "Server is running"} if is_ping else {})

    def framed(self, body: bytes | str, call: _GrootCall) -> bytes:
        body = body.encode() if isinstance(body, str) else body
        return _zmtp_bytes.message(body, envelope=call.envelope)

    def failure(self, words: str, call: _GrootCall) -> bytes:
        return self.framed(encode_failure(words), call)

    def oversized(self, call: _GrootCall) -> bytes:
        return _zmtp_bytes.message(PIECE, envelope=call.envelope, declared=UNBELIEVABLE)

    def endless(self, call: _GrootCall) -> Iterator[bytes]:
        yield _zmtp_bytes.message(PIECE, envelope=call.envelope, more=True)
        while True:
            yield _zmtp_bytes.frame(PIECE, flags=1)

    def _packed(self, value: Any) -> bytes:
        spelling = GrootDialect.N1_7.spelling
        return encode_frame(value, kind=FrameKind.RESPONSE, spelling=spelling)


def modalities_of(layout: GrootLayout, horizon: int) -> PolicyModalities:
    """Make the modalities of a policy that takes and gives what is in *layout*, without a past."""

    def config(*keys: str, steps: int = 1) -> ModalityConfig:
        return ModalityConfig(modality_keys=keys, delta_indices=tuple(range(steps)))

    return PolicyModalities(
        video=config(*(each.key for each in layout.video)),
        state=config(*(each.key for each in layout.state)) if layout.state else None,
        action=config(*(each.key for each in layout.action), steps=horizon),
        language=None if layout.language is None else config(layout.language),
    )


def info_of(robot: Embodiment, horizon: int) -> PolicyInfo:
    """Say of a policy that it is for *robot*."""
    return PolicyInfo(
        name=_NAME,
        action_names=robot.actions.names,
        state_names=robot.state_names,
        cameras=robot.cameras,
        horizon=horizon,
        rate_hz=robot.actions.rate_hz,
    )
