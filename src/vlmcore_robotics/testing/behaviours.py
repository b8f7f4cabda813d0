"""What a server can do to its clients."""

from __future__ import annotations

import enum

from vlmcore_robotics.testing.protocols import PolicyProtocol

__all__ = ["Behaviour", "behaviours_of"]


class Behaviour(enum.Enum):
    """What a server does; the value says it as a sentence."""

    GOOD = "it answers as it should"

    SILENT_AT_ONCE = "it takes the connection, and says nothing"
    SILENT_IN_THE_HANDSHAKE = "it says half of the handshake, and no more"
    SILENT_ON_METADATA = "it does not say what it is"
    SILENT = "it does not answer"
    DRIPPING_METADATA = "it says what it is one byte at a time"
    DRIPPING = "it answers one byte at a time"
    LATE = "it answers after some seconds"
    OVERTAKEN = "it answers when the next question comes, and that one after it"

    HANGS_UP_AT_ONCE = "it hangs up on the connection"
    HANGS_UP_IN_THE_HANDSHAKE = "it hangs up in the handshake"
    HANGS_UP_BEFORE_METADATA = "it hangs up before it says what it is"
    HANGS_UP_IN_METADATA = "it hangs up while it says what it is"
    HANGS_UP_BEFORE_ANSWERING = "it hangs up on a question"
    HANGS_UP_IN_THE_ANSWER = "it hangs up in an answer"
    HANGS_UP_AFTER_ANSWERING = "it hangs up after each answer"
    DIES_BEFORE_ANSWERING = "its process is killed on a question"
    RESTARTS = "it restarts after its second answer"

    ANOTHER_PROTOCOL = "it speaks another protocol"
    OTHER_METADATA = "it says that it is for another robot"
    SENSELESS_METADATA = "what it says of itself makes no sense"
    FAILS_ONCE = "it answers the first question with an error, and a traceback in it"
    SENSELESS = "its answer makes no sense"
    CUT = "its answer lacks its end"
    TEXT = "its answer is text"
    WITHOUT_ACTIONS = "there are no actions in its answer"

    NOT_FINITE = "its actions are not finite"
    TOO_WIDE = "its actions have a number too many"
    TOO_LONG = "its answer has more steps than it said"
    WITHOUT_STEPS = "its answer has no steps"
    OTHER_NAMES = "its actions are named otherwise"

    OVERSIZED = "its answer says that it is larger than all disks"
    DEEP = "its answer is lists in lists, thousands of them"
    MANY = "its answer is a list of a hundred thousand lists"
    COUNTLESS = "its answer says that four thousand million values follow"
    VAST = "its actions say that they fill all memory"
    ENDLESS = "its answer has no end"

    def __str__(self) -> str:
        return self.value


_HANDSHAKE = {Behaviour.SILENT_IN_THE_HANDSHAKE, Behaviour.HANGS_UP_IN_THE_HANDSHAKE}


def behaviours_of(protocol: PolicyProtocol) -> tuple[Behaviour, ...]:
    """
    List what a server of *protocol* can do: HTTP has no handshake of its own.

    Example:
        >>> Behaviour.SILENT_IN_THE_HANDSHAKE in behaviours_of(PolicyProtocol.HTTP)
        False
    """
    missing = _HANDSHAKE if protocol is PolicyProtocol.HTTP else set()
    return tuple(each for each in Behaviour if each not in missing)
