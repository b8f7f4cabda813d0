"""How a client speaks each of the protocols."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeVar

import attrs

from vlmcore.contracts.actions import ActionChunk
from vlmcore.contracts.observation import Observation
from vlmcore.errors import ContractError, PolicyProtocolError
from vlmcore.policy.interface import PolicyInfo
from vlmcore_robotics.testing import _http_bytes, _websocket_bytes, _zmtp_bytes
from vlmcore_robotics.testing._bodies import PIECE, UNBELIEVABLE
from vlmcore_robotics.testing._line import Line, ShutDoorError, Target
from vlmcore_robotics.wire.groot import GrootCodec
from vlmcore_robotics.wire.groot_calls import ask_modalities, read_modalities
from vlmcore_robotics.wire.groot_layout import GrootLayout
from vlmcore_robotics.wire.http_frames import WireEncoding
from vlmcore_robotics.wire.http_messages import (
    REQUEST_ID,
    ContentType,
    HttpEndpoint,
    HttpRequest,
    HttpResponse,
)
from vlmcore_robotics.wire.http_v1 import HttpCodec
from vlmcore_robotics.wire.ndarrays import ArraySpelling
from vlmcore_robotics.wire.observation_layout import ObservationLayout
from vlmcore_robotics.wire.openpi import OpenPICodec
from vlmcore_robotics.wire.policy_info import info_from_metadata

__all__ = ["GrootLine", "HttpLine", "OpenPILine"]

_NAME = "server"

_Result = TypeVar("_Result")


class OpenPILine(Line):
    """A conversation with a server of openpi."""

    spelling = ArraySpelling.OPENPI

    def __init__(self, target: Target) -> None:
        assert isinstance(target.layout, ObservationLayout)
        self._codec = OpenPICodec(
            policy=_NAME, layout=target.layout, action_names=target.embodiment.actions.names
        )
        self.stream = target.dialled()
        try:
            self._greet(target)
        except BaseException:
            self.stream.close()
            raise

    def _greet(self, target: Target) -> None:
        self.stream.send(
            _websocket_bytes.handshake_request(
                path=target.endpoint.path, headers=target.said("Api-Key")
            )
        )
        status = int(_http_bytes.read_head(self.stream).split(b" ")[1])
        if status != 101:
            raise ShutDoorError(status)
        said = self._codec.decode_metadata(self._message())
        self.info = _blaming(lambda: info_from_metadata(said, name=_NAME))

    def _message(self) -> bytes | str:
        message = _websocket_bytes.read_message(self.stream, masked=True)
        if message is None:
            raise EOFError("it hung up")
        return message

    def request(self, observation: Observation) -> bytes:
        return self._codec.encode_request(observation)

    def sent(self, body: bytes | str) -> bytes:
        return _websocket_bytes.frame(body, masked=True)

    def oversized(self) -> bytes:
        return _websocket_bytes.frame(PIECE, masked=True, declared=UNBELIEVABLE)

    def answer(self, observation: Observation) -> ActionChunk:
        return self._codec.decode_answer(self._message(), observed_at_s=observation.captured_at_s)

    def reset(self) -> bool:
        return False


class HttpLine(Line):
    """A conversation with a server of the HTTP protocol: a connection for each question."""

    def __init__(self, target: Target) -> None:
        self._target = attrs.evolve(target, token=None)  # that of the codec is sent
        self._codec = HttpCodec(
            policy=_NAME, action_names=target.embodiment.actions.names, token=target.token
        )
        self._session = target.session
        self.stream = self._target.dialled()
        said = self._codec.decode_metadata(self._fetched(self._codec.ask(HttpEndpoint.METADATA)))
        self.info = said.policy
        self.has_sessions = said.has_sessions
        self._reads = said

    def _fetched(self, request: HttpRequest) -> HttpResponse:
        self.stream.send(self.written(request))
        try:
            return _http_bytes.read_response(self.stream)
        finally:
            self.stream.close()

    def written(self, request: HttpRequest, declared: int | None = None) -> bytes:
        """Put a question on the wire, whatever it asks."""
        path = self._target.endpoint.path.rstrip("/") + request.path
        return _http_bytes.request_bytes(
            attrs.evolve(request, path=path),
            headers={**self._target.said("Bearer"), "Connection": "close"},
            declared=declared,
        )

    def request(self, observation: Observation) -> bytes:
        return self._codec.encode_request(observation).body

    def formats(self) -> Iterator[Line]:
        yield self
        packed, plain = ContentType.MESSAGEPACK, WireEncoding.RAW
        if packed in self._reads.content_types and plain in self._reads.encodings:
            self._codec = attrs.evolve(self._codec, content_type=packed, encoding=plain)
            self.spelling = ArraySpelling.OPENPI
            yield self

    def leave_session(self) -> None:
        """Ask without a session: the server knows none."""
        self._session = None

    def redial(self) -> None:
        self.close()
        self.stream = self._target.dialled()

    def question(self, body: bytes) -> HttpRequest:
        """Write a question with *body*, as a message of HTTP."""
        request = attrs.evolve(self._codec.encode_reset(session=self._session), body=body)
        return attrs.evolve(request, path=HttpEndpoint.INFER.path)

    def sent(self, body: bytes | str) -> bytes:
        return self.written(self.question(body.encode() if isinstance(body, str) else body))

    def oversized(self) -> bytes:
        return self.written(self.question(PIECE), UNBELIEVABLE)

    def answer(self, observation: Observation) -> ActionChunk:
        response = _http_bytes.read_response(self.stream)
        return self._codec.decode_answer(response, observed_at_s=observation.captured_at_s)

    def mark_of_answer(self, observation: Observation, mark: str) -> str | None:
        self.redial()
        request = self._codec.encode_request(observation, request_id=mark, session=self._session)
        answer = self._fetched(request)
        self._codec.decode_answer(answer, observed_at_s=observation.captured_at_s)
        return answer.headers.get(REQUEST_ID)  # servers of the first version know no ids

    def reset(self) -> bool:
        self.redial()
        answer = self._fetched(self._codec.encode_reset(session=self._session))
        return self._codec.decode_reset(answer)


class GrootLine(Line):
    """A conversation with a server of GR00T, of whichever generation."""

    def __init__(self, target: Target) -> None:
        self.stream = target.dialled()
        try:
            self._greet(target)
        except BaseException:
            self.stream.close()
            raise

    def _greet(self, target: Target) -> None:
        layout = target.layout
        assert isinstance(layout, GrootLayout)
        self.stream.send(_zmtp_bytes.greeting("REQ"))
        _zmtp_bytes.hear_greeting(self.stream)
        self.send(ask_modalities(token=target.token))
        answer = _zmtp_bytes.read_message(self.stream).body
        modalities, dialect = read_modalities(answer, policy=_NAME, token=target.token)
        self.spelling = dialect.spelling
        self._codec = _blaming(
            lambda: GrootCodec(
                policy=_NAME,
                layout=layout,
                modalities=modalities,
                dialect=dialect,
                token=target.token,
            )
        )
        self.info = PolicyInfo(
            name=_NAME,
            action_names=layout.action_names,
            horizon=len(modalities.action.delta_indices),
        )

    def request(self, observation: Observation) -> bytes:
        return self._codec.encode_request(observation)

    def sent(self, body: bytes | str) -> bytes:
        return _zmtp_bytes.message(body.encode() if isinstance(body, str) else body)

    def oversized(self) -> bytes:
        return _zmtp_bytes.message(PIECE, declared=UNBELIEVABLE)

    def answer(self, observation: Observation) -> ActionChunk:
        answer = _zmtp_bytes.read_message(self.stream).body
        return self._codec.decode_answer(answer, observed_at_s=observation.captured_at_s)

    def mark_of_answer(self, observation: Observation, mark: str) -> str | None:
        request = self.request(observation)
        self.stream.send(_zmtp_bytes.message(request, envelope=(mark.encode(),)))
        envelope, body = _zmtp_bytes.read_message(self.stream)
        self._codec.decode_answer(body, observed_at_s=observation.captured_at_s)
        return b"".join(envelope).decode("latin-1")

    def reset(self) -> bool:
        if not self._codec.dialect.knows_reset:
            return False
        self.send(self._codec.encode_reset())
        self._codec.decode_reset(_zmtp_bytes.read_message(self.stream).body)
        return True


def _blaming(read: Callable[[], _Result]) -> _Result:
    """Say of what is wrong in what a server says that it is the server's."""
    try:
        return read()
    except ContractError as error:
        raise PolicyProtocolError(_NAME, str(error), "theirs") from error
