"""One conversation as a client, rightly and, where that is asked for, wrongly; of any protocol."""

from __future__ import annotations

import abc
import enum
import ssl
from collections.abc import Iterator, Mapping

import attrs

from vlmcore.contracts.actions import ActionChunk
from vlmcore.contracts.embodiment import Embodiment
from vlmcore.contracts.observation import Observation
from vlmcore.endpoint import Endpoint
from vlmcore.errors import PolicyProtocolError, PolicyRefusedError
from vlmcore.policy.interface import PolicyInfo
from vlmcore.secrets import Secret
from vlmcore_robotics.testing._streams import Stream
from vlmcore_robotics.wire.groot_layout import GrootLayout
from vlmcore_robotics.wire.ndarrays import ArraySpelling
from vlmcore_robotics.wire.observation_layout import ObservationLayout

__all__ = ["Heard", "Line", "ShutDoorError", "Target"]


class Heard(enum.Enum):
    """What came after something was asked; the value says it as a sentence."""

    ANSWER = "it answered"
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

    def mark_of_answer(
        self,
        observation: Observation,  # noqa: ARG002 - most protocols have no marks
        mark: str,  # noqa: ARG002
    ) -> str | None:
        """
        Ask with *mark* beside the question, and say which one the answer has.

        Returns:
            It, empty if it has none; ``None`` where no answer needs one.

        Raises:
            PolicyError: If there is no answer, or what `answer` raises beside it.
        """
        return None

    def formats(self) -> Iterator[Line]:
        """Say the same in each format that the server reads."""
        yield self

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
            TimeoutError: If nothing comes in time.
        """
        try:
            self.answer(observation)
        except PolicyRefusedError:
            return Heard.REFUSAL
        except (EOFError, ConnectionError):
            return Heard.FAREWELL
        except (PolicyProtocolError, ValueError):  # with what is none, but so that it goes on
            return Heard.ANSWER
        return Heard.ANSWER

    def close(self) -> None:
        """Hang up."""
        self.stream.close()
