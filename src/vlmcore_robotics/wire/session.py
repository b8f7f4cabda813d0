"""
Whose turn it is on a connection that answers one request after the other.

openpi and GR00T have no request ids: an answer belongs to the request before it, whatever it is an
answer to. So an answer that nobody waits for any more, because its time ran out or its request was
cancelled, would be taken for the answer to the next request: the robot would do what was right two
frames ago. A `Session` knows when that can happen, and then lets the connection be used no more.
Only a server that answers twice could still deceive it: to GR00T's, ZeroMQ numbers the requests.
"""

from __future__ import annotations

import enum
from typing import Literal

from vlmcore.errors import PolicyProtocolError

__all__ = ["Session", "Turn"]


class Turn(enum.Enum):
    """Whose turn it is."""

    GREETING = "the server has to say what it is"
    OURS = "nothing is asked"
    THEIRS = "an answer is awaited"
    BROKEN = "the connection is broken"
    CLOSED = "the connection is closed"


class Session:
    """
    The state of one connection, at the end of who asks. It holds no connection and no clock.

    Tell it what happens, in order; it raises where a step is out of turn. What is broken stays so:
    connect again, with a session of its own. Not safe for threads.

    Args:
        policy: The policy as the caller named it, for errors.
        greeting: Whether the server speaks first, as those of openpi do.

    Example:
        >>> session = Session("arm", greeting=False)
        >>> session.asked()
        >>> session.abandon("no reply within 1 s")
        >>> session.asked()
        Traceback (most recent call last):
            ...
        vlmcore.errors.PolicyProtocolError: arm: cannot ask: the connection is broken: \
no reply within 1 s
    """

    def __init__(self, policy: str, *, greeting: bool) -> None:
        self._policy = policy
        self._turn = Turn.GREETING if greeting else Turn.OURS
        self._why = ""

    def __repr__(self) -> str:
        return f"Session({self._policy!r}, {self._turn})"

    @property
    def turn(self) -> Turn:
        """Whose turn it is."""
        return self._turn

    @property
    def is_usable(self) -> bool:
        """Whether something can be asked, now or after what is awaited."""
        return self._turn not in (Turn.BROKEN, Turn.CLOSED)

    def greeted(self) -> None:
        """
        Note that the server said what it is.

        Raises:
            PolicyProtocolError: If it had said so before, or does not speak first.
        """
        self._step(Turn.GREETING, "read what the server is", side="theirs")

    def asked(self) -> None:
        """
        Note that a request is about to be sent: from its first byte on, an answer may come.

        Raises:
            PolicyProtocolError: If it is not our turn.
        """
        self._step(Turn.OURS, "ask", to=Turn.THEIRS, side="ours")

    def answered(self) -> None:
        """
        Note that a whole answer has come, also if it says that the policy failed.

        Raises:
            PolicyProtocolError: If none was awaited. The session is broken then: nobody knows what
                it is an answer to.
        """
        self._step(Turn.THEIRS, "take an answer", side="theirs")

    def abandon(self, why: str) -> None:
        """
        Break the session: a time ran out, a call was cancelled, the peer hung up or spoke nonsense.

        What still comes is nobody's answer. Without anything asked or awaited, as when a call is
        cancelled before it began, there is nothing to break; use `close`.
        """
        if self._turn in (Turn.GREETING, Turn.THEIRS):
            self._break(why)

    def close(self) -> None:
        """End the session. Closing twice is no error."""
        self._turn = Turn.CLOSED

    def _step(
        self,
        expected: Turn,
        action: str,
        *,
        to: Turn = Turn.OURS,
        side: Literal["ours", "theirs"],
    ) -> None:
        if self._turn is expected:
            self._turn = to
            return
        why = self._turn.value + (f": {self._why}" if self._turn is Turn.BROKEN else "")
        if not self.is_usable:
            side = "ours"
        elif side == "theirs":
            self._break(f"it sent what nobody waited for ({why})")
        raise PolicyProtocolError(self._policy, f"cannot {action}: {why}", side)

    def _break(self, why: str) -> None:
        self._turn = Turn.BROKEN
        self._why = why
