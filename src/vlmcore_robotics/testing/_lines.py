"""How a client speaks each protocol, rightly and, where it is asked to, wrongly."""

from __future__ import annotations

import abc
import enum
import ssl
from collections.abc import Callable, Mapping
from typing import TypeVar

import attrs

from vlmcore.contracts.actions import ActionChunk
from vlmcore.contracts.embodiment import Embodiment
from vlmcore.contracts.observation import Observation
from vlmcore.endpoint import Endpoint
from vlmcore.errors import ContractError, PolicyProtocolError, PolicyRefusedError
from vlmcore.policy.interface import PolicyInfo
from vlmcore.secrets import Secret
from vlmcore_robotics.testing import _http_bytes, _websocket_bytes, _zmtp_bytes
from vlmcore_robotics.testing._streams import Stream
from vlmcore_robotics.wire.groot import GrootCodec
from vlmcore_robotics.wire.groot_calls import ask_modalities, read_modalities
from vlmcore_robotics.wire.groot_layout import GrootLayout
from vlmcore_robotics.wire.http_messages import HttpEndpoint, HttpRequest, HttpResponse
from vlmcore_robotics.wire.http_v1 import HttpCodec
from vlmcore_robotics.wire.ndarrays import ArraySpelling
from vlmcore_robotics.wire.observation_layout import ObservationLayout
from vlmcore_robotics.wire.openpi import OpenPICodec
from vlmcore_robotics.wire.policy_info import info_from_metadata

__all__ = ["GrootLine", "Heard", "HttpLine", "Line", "OpenPILine", "ShutDoorError", "Target"]

_NAME = "server"
_UNBELIEVABLE = 0x3FFFFFFFFFFFFFFF  # bytes
_PIECE = bytes(0x4000)

_Result = TypeVar("_Result")


class Heard(enum.Enum):
    """What came after something was asked; the value says it as a sentence."""

    ACTIONS = "it answered with actions"
    REFUSAL = "it refused"
    FAREWELL = "it hung up"


class ShutDoorError(Exception):
    """
    Who calls is not let in.

    Attributes:
        status: The status code of HTTP.
    """

    def __init__(self, status: int) -> None:
        super().__init__(f"it answered HTTP {status}")
        self.status = status


@attrs.frozen(kw_only=True, eq=False)
class Target:
    """
    Which server is called, and how.

    Attributes:
        endpoint: Where it is.
        embodiment: The robot.
        layout: The keys of its policy; ``None`` for HTTP.
        token: What it is shown.
        tls: How it proves who it is.
        patience_s: How long one conversation may take.
        session: Which session it is of, where there are such.
        headers: Of HTTP, other ones than those that are right.
    """

    endpoint: Endpoint
    embodiment: Embodiment
    layout: ObservationLayout | GrootLayout | None
    token: Secret | None
    tls: ssl.SSLContext | None
    patience_s: float
    session: str | None = None
    headers: Mapping[str, str] = attrs.field(factory=dict)

    def dialled(self) -> Stream:
        """Connect, without a word."""
        return Stream.dialled(self.endpoint, tls=self.tls, patience_s=self.patience_s)

    def said(self, scheme: str) -> dict[str, str]:
        """Say what stands before each request of HTTP; *scheme* that of the token."""
        said = {"Host": self.endpoint.host_header}
        if self.token is not None:
            said["Authorization"] = f"{scheme} {self.token.reveal()}"
        return {**said, **self.headers}


class Line(abc.ABC):
    """
    One conversation, past what is said before the first question.

    Attributes:
        stream: The connection that is in use.
        info: What the server says about itself.
        spelling: How arrays are spelled; ``None`` where there are none.
    """

    stream: Stream
    info: PolicyInfo
    spelling: ArraySpelling | None = None

    @abc.abstractmethod
    def request(self, observation: Observation) -> bytes:
        """Write the body of a question."""

    @abc.abstractmethod
    def sent(self, body: bytes | str) -> bytes:
        """Put the body of a question on the wire."""

    @abc.abstractmethod
    def oversized(self) -> bytes:
        """Start a question that says that it is larger than all disks."""

    @abc.abstractmethod
    def answer(self, observation: Observation) -> ActionChunk:
        """
        Hear the answer.

        Raises:
            PolicyError: If it is none.
            EOFError: If there comes none.
            OSError: If the connection is lost, or nothing comes in time.
        """

    @abc.abstractmethod
    def reset(self) -> bool:
        """Say that an episode ends; return whether the server knows of such."""

    def ask(self, observation: Observation) -> ActionChunk:
        """Ask, and hear the answer; what is raised is that of `answer`."""
        self.send(self.request(observation))
        return self.answer(observation)

    def redial(self) -> None:  # noqa: B027 - most have nothing to do
        """Connect anew, if a connection is for one question only."""

    def send(self, body: bytes | str) -> None:
        """Ask with *body*, whatever it is."""
        self.redial()
        self.stream.send(self.sent(body))

    def hear(self, observation: Observation) -> Heard:
        """
        Hear what comes after something was sent.

        Raises:
            PolicyProtocolError: If it is none of the protocol.
            OSError: If nothing comes in time.
        """
        try:
            self.answer(observation)
        except PolicyRefusedError:
            return Heard.REFUSAL
        except (EOFError, ConnectionError):
            return Heard.FAREWELL
        return Heard.ACTIONS

    def close(self) -> None:
        """Hang up."""
        self.stream.close()


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
        return _websocket_bytes.frame(_PIECE, masked=True, declared=_UNBELIEVABLE)

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
        said = self._codec.decode_metadata(self._fetched(self._codec.ask(HttpEndpoint.METADATA)))
        self.info = said.policy
        self.has_sessions = said.has_sessions

    def _fetched(self, request: HttpRequest) -> HttpResponse:
        self.redial()
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

    def leave_session(self) -> None:
        """Ask without a session: the server knows none."""
        self._session = None

    def redial(self) -> None:
        self.stream = self._target.dialled()

    def question(self, body: bytes) -> HttpRequest:
        """Write a question with *body*, as a message of HTTP."""
        request = attrs.evolve(self._codec.encode_reset(session=self._session), body=body)
        return attrs.evolve(request, path=HttpEndpoint.INFER.path)

    def sent(self, body: bytes | str) -> bytes:
        return self.written(self.question(body.encode() if isinstance(body, str) else body))

    def oversized(self) -> bytes:
        return self.written(self.question(_PIECE), _UNBELIEVABLE)

    def answer(self, observation: Observation) -> ActionChunk:
        response = _http_bytes.read_response(self.stream)
        return self._codec.decode_answer(response, observed_at_s=observation.captured_at_s)

    def reset(self) -> bool:
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
        answer = _zmtp_bytes.read_message(self.stream)
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
        return _zmtp_bytes.message(_PIECE, declared=_UNBELIEVABLE)

    def answer(self, observation: Observation) -> ActionChunk:
        answer = _zmtp_bytes.read_message(self.stream)
        return self._codec.decode_answer(answer, observed_at_s=observation.captured_at_s)

    def reset(self) -> bool:
        if not self._codec.dialect.knows_reset:
            return False
        self.send(self._codec.encode_reset())
        self._codec.decode_reset(_zmtp_bytes.read_message(self.stream))
        return True


def _blaming(read: Callable[[], _Result]) -> _Result:
    """Say of what is wrong in what a server says that it is the server's."""
    try:
        return read()
    except ContractError as error:
        raise PolicyProtocolError(_NAME, str(error), "theirs") from error
