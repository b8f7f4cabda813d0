"""
ZeroMQ on the wire: ZMTP 3.1 without encryption, at both ends, without a socket.

Written here rather than taken from a package, for three reasons. The size of a message is checked
before memory is spent on it, all its frames together; a server knows how many peers it has; and
the bytes of a message pass through no thread but the one that reads them.

Peers of ZMTP 3.0 and later are understood, with the mechanism NULL. Older ones, and those that want
to encrypt or a password, are told apart and refused.

Source: the specifications at https://rfc.zeromq.org/spec/23/ and https://rfc.zeromq.org/spec/37/;
which sockets speak to which is in https://rfc.zeromq.org/spec/28/.
"""

from __future__ import annotations

import enum
import struct
from collections.abc import Mapping, Sequence
from typing import TypeAlias

from vlmcore.errors import PolicyProtocolError, PolicyRefusedError
from vlmcore_robotics.wire._pieces import Pieces
from vlmcore_robotics.wire._zmtp_frames import (
    COMMAND,
    MORE,
    FrameBuffer,
    FrameHead,
    frame_head,
)

__all__ = ["Message", "SocketKind", "ZmtpConnection", "encode_message"]

Message: TypeAlias = tuple[bytes, ...]
"""The frames of a message, of which there is at least one."""

_GREETING_BYTES = 64
_SIGNATURE = b"\xff" + bytes(8) + b"\x7f"
_GREETING = (_SIGNATURE + b"\x03\x01" + b"NULL").ljust(_GREETING_BYTES, b"\0")
_ENDS = (0, len(_SIGNATURE) - 1)
_MAJOR_AT, _VERSION_END, _MECHANISM = 10, 12, slice(12, 32)
_MAJOR = 3
_READY, _ERROR, _PING, _PONG = b"READY", b"ERROR", b"PING", b"PONG"
_KIND, _IDENTITY = b"Socket-Type", b"Identity"
_TTL_BYTES, _CONTEXT_BYTES = 2, 16  # of a ping
_MOST_COMMAND_BYTES = 1024
_MOST_FRAMES = 32  # of a message, its envelope included
_ENVELOPE_BYTES = 1 << 8  # that may be in a message beside what is limited
_MOST_UNSENT = 1000  # answers to pings that the peer does not take
_LONGEST_WORDS = 0xFF


class SocketKind(enum.Enum):
    """What a socket says that it is; only some kinds speak to each other."""

    REQ = "REQ"
    REP = "REP"
    DEALER = "DEALER"
    ROUTER = "ROUTER"

    @property
    def peers(self) -> tuple[str, ...]:
        """The kinds that it speaks to."""
        return _PEERS[self]


_PEERS: Mapping[SocketKind, tuple[str, ...]] = {
    SocketKind.REQ: ("REP", "ROUTER"),
    SocketKind.REP: ("REQ", "DEALER"),
    SocketKind.DEALER: ("REP", "DEALER", "ROUTER"),
    SocketKind.ROUTER: ("REQ", "DEALER", "ROUTER"),
}


def encode_message(frames: Sequence[bytes]) -> list[bytes]:
    """
    Write a message, in parts to be sent one after the other; its frames are not copied.

    Example:
        >>> list(map(len, encode_message([b"", b"hello"])))
        [2, 0, 2, 5]
    """
    parts = []
    for i, frame in enumerate(frames):
        parts += [frame_head(len(frame), MORE if i < len(frames) - 1 else 0), frame]
    return parts


class ZmtpConnection:
    """
    One connection, at either end. Not safe for threads.

    What came is written to `room`, and told to `filled`; then `take` is called until it has no
    message. What is to be sent meanwhile is in `unsent`: the greeting at first, in two parts, since
    peers of other versions say what they are after the first.

    Args:
        kind: What this end is.
        policy: The policy as the caller named it, for errors.
        max_bytes: How large a message may be, all its frames together, beside 256 bytes for what
            leads an answer to who asked.

    Attributes:
        max_bytes: The same; set it where larger ones are to come.
        unsent: What is to be sent, apart from messages. Take it away.

    Example:
        >>> asking = ZmtpConnection(SocketKind.REQ, policy="arm", max_bytes=100)
        >>> answering = ZmtpConnection(SocketKind.ROUTER, policy="arm", max_bytes=100)
        >>> for end in (asking, answering):
        ...     end.accept()
        >>> for hearing, saying in [(answering, asking), (asking, answering)] * 2:
        ...     hearing.feed(b"".join(saying.unsent))
        ...     saying.unsent.clear()
        ...     assert hearing.take() is None
        >>> answering.feed(b"".join(encode_message([b"", b"hello"])))
        >>> answering.take()
        (b'', b'hello')
    """

    def __init__(self, kind: SocketKind, *, policy: str, max_bytes: int) -> None:
        self._kind = kind
        self._policy = policy
        self.max_bytes = max_bytes
        self._buffer = FrameBuffer()
        self._pieces = Pieces()
        self._is_said = False  # all of our greeting
        self._has_greeting = False
        self._is_greeted = False
        self._head: FrameHead | None = None
        self._frames: list[bytes] = []
        self._size = 0
        self._held: list[bytes] = []
        self.unsent: list[bytes] = [_GREETING[:_VERSION_END]]

    @property
    def is_greeted(self) -> bool:
        """Whether the peer said all that is said before messages."""
        return self._is_greeted

    @property
    def is_within(self) -> bool:
        """Whether a message has begun to come and has not ended."""
        return bool(self._frames) or self._head is not None

    @property
    def is_at_rest(self) -> bool:
        """Whether the peer is greeted, and all that came is taken."""
        return self._is_greeted and self._buffer.is_empty and not self.is_within

    def accept(self) -> None:
        """Say what this end is; messages may be sent after it, once the peer has said so too."""
        said = _property(_KIND, self._kind.value.encode()) + _property(_IDENTITY, b"")
        self._say(_command(_READY, said))

    def refuse(self, words: str) -> None:
        """Say why there will be no messages, if the peer understands it; hang up after it."""
        shown = words.encode("ascii", "replace")[:_LONGEST_WORDS]
        self._say(_command(_ERROR, bytes((len(shown),)) + shown))

    def room(self) -> memoryview:
        """Say where what comes next belongs."""
        return self._buffer.room()

    def filled(self, count: int) -> None:
        """Note that *count* bytes came there."""
        self._buffer.filled(count)

    def feed(self, data: bytes | memoryview) -> None:
        """Take what came elsewhere; it has to fit into `room`."""
        self.room()[: len(data)] = data
        self.filled(len(data))

    def take(self) -> Message | None:
        """
        Read on; ``None`` if there is no whole message.

        Raises:
            PolicyRefusedError: If the peer refuses the connection; the problem is why, as it says.
            PolicyProtocolError: If it speaks something else, or sends too much.
        """
        self._pieces.begin()
        if not self._has_greeting and not self._hear_greeting():
            return None
        while (head := self._next_head()) is not None:
            body = self._buffer.body(head.size)
            if body is None:
                return None
            self._head = None
            if head.is_command:
                self._obey(body)
                continue
            self._frames.append(body)
            if head.is_last:
                message, self._frames, self._size = tuple(self._frames), [], 0
                return message
        return None

    def _hear_greeting(self) -> bool:
        """
        Take the greeting; return whether it was there.

        Ours is said in two parts, as libzmq does: an end of libzmq that wants to encrypt says so
        after the first, and hangs up after the second.
        """
        start = self._buffer.start(_GREETING_BYTES)
        self._check(start)
        if len(start) <= _MAJOR_AT:
            return False
        if not self._is_said:
            self._is_said = True
            self.unsent.append(_GREETING[_VERSION_END:])
        if self._buffer.exactly(_GREETING_BYTES) is None:
            return False
        self._has_greeting = True
        self.unsent += self._held
        return True

    def _check(self, start: bytes) -> None:
        """Look at what is there of a greeting: what is none may have no end."""
        # What is between the ends of a signature has a meaning for older versions only.
        if any(start[at : at + 1] not in (b"", _SIGNATURE[at : at + 1]) for at in _ENDS):
            raise self._fault(f"it sends {start[:8]!r}, expected the greeting of ZeroMQ")
        if len(start) > _MAJOR_AT and start[_MAJOR_AT] < _MAJOR:
            raise self._fault("it speaks a version of ZMTP before 3.0, expected 3.0 or later")
        if len(start) == _GREETING_BYTES and start[_MECHANISM] != _GREETING[_MECHANISM]:
            shown = start[_MECHANISM].rstrip(b"\0").decode("ascii", "replace")
            raise self._fault(f"it wants the mechanism {shown!r}, expected 'NULL': no encryption")

    def _say(self, command: bytes) -> None:
        """Send a command once the peer has said that it understands it."""
        (self.unsent if self._has_greeting else self._held).append(command)

    def _next_head(self) -> FrameHead | None:
        """Take the head of the next frame, unless it is taken; refuse what is not to be read."""
        if self._head is not None:
            return self._head
        head = self._buffer.head()
        if head is None:
            return None
        if not self._pieces.take():
            raise self._fault("it sends too many small frames at once")
        if not head.is_known:
            raise self._fault(f"it sends a frame with the flags {head.flags}, which has no meaning")
        if head.is_command:
            if head.size > _MOST_COMMAND_BYTES:
                raise self._fault(
                    f"it sends a command of {head.size} bytes, expected at most "
                    f"{_MOST_COMMAND_BYTES}"
                )
        else:
            self._count(head)
        self._head = head
        return head

    def _count(self, head: FrameHead) -> None:
        """Note a frame of a message."""
        if not self._is_greeted:
            raise self._fault("it sends a message before it says what it is")
        self._size += head.size
        if self._size > self.max_bytes + _ENVELOPE_BYTES:
            raise self._fault(
                f"it sends a message of {self._size} bytes or more, expected at most "
                f"{self.max_bytes}"
            )
        if len(self._frames) == _MOST_FRAMES:
            raise self._fault(f"it sends a message of more than {_MOST_FRAMES} frames")

    def _obey(self, body: bytes) -> None:
        """Take a command; those that nobody knows mean nothing."""
        if not body or len(body) <= body[0]:
            raise self._fault("it sends a command without a name")
        name, said = body[1 : 1 + body[0]], body[1 + body[0] :]
        if name == _ERROR:
            words = said[1:].decode("utf-8", "replace")
            raise PolicyRefusedError(self._policy, words or "without words")
        if name == _PING and self._is_greeted:
            self._answer_ping(said)
        elif not self._is_greeted:
            if name != _READY:
                raise self._fault(f"it sends {name!r:.40} before it says what it is")
            self._learn(said)

    def _answer_ping(self, said: bytes) -> None:
        if not _TTL_BYTES <= len(said) <= _TTL_BYTES + _CONTEXT_BYTES:
            raise self._fault(f"it sends a ping of {len(said)} bytes, expected 2 to 18")
        if len(self.unsent) >= _MOST_UNSENT:
            raise self._fault("it pings and does not take the answers")
        self.unsent.append(_command(_PONG, said[_TTL_BYTES:]))

    def _learn(self, said: bytes) -> None:
        """Read what the peer is."""
        try:
            kind = _properties(said).get(_KIND.lower(), b"")
        except (IndexError, struct.error):
            raise self._fault("it says what it is in a command that is cut") from None
        if kind.decode("ascii", "replace") not in self._kind.peers:
            raise self._fault(
                f"it is a socket of the kind {kind.decode('ascii', 'replace')!r:.40}, expected "
                + " or ".join(self._kind.peers)
            )
        self._is_greeted = True

    def _fault(self, problem: str) -> PolicyProtocolError:
        return PolicyProtocolError(self._policy, problem, "theirs")


def _command(name: bytes, said: bytes) -> bytes:
    body = bytes((len(name),)) + name + said
    return frame_head(len(body), COMMAND) + body


def _property(name: bytes, value: bytes) -> bytes:
    return bytes((len(name),)) + name + struct.pack(">I", len(value)) + value


def _properties(said: bytes) -> dict[bytes, bytes]:
    """Read names, in small letters, and values. What is cut raises an `IndexError` or more."""
    found, at = {}, 0
    while at < len(said):
        value_at = at + 1 + said[at] + 4
        (size,) = struct.unpack_from(">I", said, value_at - 4)
        if value_at + size > len(said):
            raise IndexError
        found[said[at + 1 : value_at - 4].lower()] = said[value_at : value_at + size]
        at = value_at + size
    return found
