"""
Where the errors of sockets, of TLS and of other people's packages become errors of a policy.

This is the one place. What they say is somebody else's text: it passes `vlmcore.secrets.redact`,
and what was raised is not kept as a cause, since a token may be in it. So raise what `translated`
returns after the ``except`` block has ended, not within it.
"""

from __future__ import annotations

import asyncio
import enum
import socket
import ssl

import attrs

from vlmcore.errors import (
    PolicyError,
    PolicyProtocolError,
    PolicyRefusedError,
    PolicyStatusError,
    PolicyTimeoutError,
    PolicyUnavailableError,
    VlmcoreError,
)
from vlmcore.secrets import Secret, redact

__all__ = ["Boundary", "HangUpError", "HttpStatusError", "Stage"]

_WORDS = 200  # characters of a foreign text that are shown
_UNAVAILABLE = (429, 502, 503, 504)  # it is busy, or what stands before it does not reach it


class Stage(enum.Enum):
    """How far a call has come; the value is what is waited for."""

    TURN = "end of another call"
    CONNECTION = "connection"
    HANDSHAKE = "end of the handshake"
    METADATA = "metadata"
    REQUEST = "room for the request"
    ANSWER = "answer"

    @property
    def is_asked(self) -> bool:
        """Whether the peer may have seen the request, or a part of it."""
        return self in (Stage.REQUEST, Stage.ANSWER)


class HangUpError(Exception):
    """The peer ended the connection; the argument is why, as it said."""


class HttpStatusError(Exception):
    """
    The peer answered in HTTP, where another protocol was asked for, or with an error.

    Attributes:
        status: The status code.
        words: The body, or its start.
    """

    def __init__(self, status: int, words: str) -> None:
        super().__init__(status, words)
        self.status = status
        self.words = words


@attrs.frozen(kw_only=True)
class Boundary:
    """
    Translates what is raised on the way to one policy.

    Attributes:
        policy: The policy as the caller named it.
        origin: Scheme, host and port, for people.
        waits_s: How long a call may take.
        secret: The token that is in reach.
    """

    policy: str
    origin: str
    waits_s: float
    secret: Secret | None = None

    def translated(self, error: Exception, stage: Stage) -> VlmcoreError:
        """
        Say in an error of ours what *error* means at *stage*.

        Every exception is translated: one that is not known is a fault of the peer.
        """
        match error:
            case VlmcoreError():
                return self._ours(error)
            case HttpStatusError():
                return self._answered(error)
            case OSError() | HangUpError() | EOFError() | asyncio.TimeoutError():
                return self._of_the_connection(error, stage)
            case _:
                return self._broken(f"it broke the protocol: {type(error).__name__}: {error}")

    def _of_the_connection(self, error: Exception, stage: Stage) -> PolicyError:
        match error:
            case TimeoutError() | asyncio.TimeoutError():  # two classes before Python 3.11
                return self._late(stage)
            case ssl.SSLCertVerificationError():
                why = getattr(error, "verify_message", error)  # there if TLS itself raised it
                return self._broken(f"its certificate is not trusted: {why}")
            case ssl.SSLError() if not stage.is_asked:
                return self._broken(f"it does not speak TLS as expected: {error}")
            case socket.gaierror():
                return self._unavailable("its name is not known to the resolver")
            case ConnectionRefusedError():
                return self._unavailable("nothing listens there")
            case _:
                return self._ended(error, stage)

    def _ours(self, error: VlmcoreError) -> VlmcoreError:
        """Tell again what has words of the peer in it, which may be the token."""
        match error:
            case PolicyProtocolError():
                return PolicyProtocolError(
                    self.policy, redact(error.problem, self.secret), error.side
                )
            case PolicyStatusError():
                return self._failed(error)
            case PolicyRefusedError():
                return PolicyRefusedError(self.policy, redact(error.problem, self.secret))
            case _:
                return error

    def _failed(self, error: PolicyStatusError) -> PolicyError:
        """Tell what a status means; the words are those of the policy, or of what is before it."""
        if error.status in _UNAVAILABLE:
            return self._unavailable(f"it answers HTTP {error.status}: {error.problem}")
        told = "; no redirect is followed" if 300 <= error.status < 400 else ""
        problem = redact(error.problem, self.secret)
        return PolicyStatusError(self.policy, f"{problem}{told}", error.status)

    def _late(self, stage: Stage) -> PolicyError:
        if stage is Stage.CONNECTION:
            return self._unavailable(f"no connection within {self.waits_s:.3g} s")
        return PolicyTimeoutError(self.policy, stage.value, self.waits_s)

    def _answered(self, error: HttpStatusError) -> PolicyError:
        said = f"it answers HTTP {error.status}: {error.words}"
        if error.status in (401, 403):
            return PolicyRefusedError(self.policy, self._shown(said))
        if error.status in _UNAVAILABLE:
            return self._unavailable(said)
        return self._broken(f"{said}; expected a policy server")

    def _ended(self, error: Exception, stage: Stage) -> PolicyError:
        why = f"{type(error).__name__}: {error}" if isinstance(error, OSError) else str(error)
        if stage.is_asked:
            return self._broken(f"it hung up before it answered ({why})")
        return self._unavailable(f"it hung up before anything was asked ({why})")

    def _unavailable(self, problem: str) -> PolicyError:
        return PolicyUnavailableError(self.policy, self._shown(problem))

    def _broken(self, problem: str) -> PolicyError:
        return PolicyProtocolError(self.policy, self._shown(problem), "theirs")

    def _shown(self, problem: str) -> str:
        place = "" if self.policy == self.origin else f"{self.origin}: "
        return f"{place}{redact(problem, self.secret, max_characters=2 * _WORDS)}"
