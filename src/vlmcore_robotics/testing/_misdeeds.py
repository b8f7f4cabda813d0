"""What each behaviour of a server does, when a conversation comes to the point that it is about."""

from __future__ import annotations

import enum
import itertools
import threading
from collections.abc import Callable, Mapping
from typing import Any

import attrs
import numpy as np

from vlmcore._arrays import Float64Array
from vlmcore_robotics.testing import _bodies
from vlmcore_robotics.testing._streams import Stream
from vlmcore_robotics.testing._voices import Asked, Voice
from vlmcore_robotics.testing.behaviours import Behaviour

__all__ = ["MISDEEDS", "Exchange", "Misdeed", "Point"]

_DRIP_S = 0.1
_BANNER = b"SSH-2.0-OpenSSH_9.6\r\n"
_TRACEBACK = """Traceback (most recent call last):
  File "/srv/policy/serve.py", line 17, in infer
    raise KeyError("observation/wrist_image")
KeyError: 'observation/wrist_image'"""


class Point(enum.Enum):
    """How far a conversation has come."""

    CONNECTED = "connected"
    HANDSHAKE = "handshake"
    METADATA = Asked.METADATA
    ACTIONS = Asked.ACTIONS


@attrs.frozen(kw_only=True, eq=False)
class Exchange:
    """
    One question and its answer, or the start of a conversation.

    Attributes:
        voice: Speaks the protocol.
        stream: The connection.
        call: What came with the question.
        greeting: What would be said in the handshake.
        values: The actions that would be right.
        count: Counts another question, and gives the actions that are right for it.
        late_s: How late an answer is.
        stopping: Is set when the server stops.
        restart: Restarts the server.
    """

    voice: Voice[Any]
    stream: Stream
    call: Any
    greeting: bytes
    values: Float64Array
    count: Callable[[], Float64Array]
    late_s: float
    stopping: threading.Event
    restart: Callable[[], None]

    @property
    def names(self) -> tuple[str, ...]:
        """The names that would be right."""
        return self.voice.info.action_names or ()

    def metadata(self) -> bytes:
        """Write on the wire what it would be right to say."""
        return self.voice.framed(self.voice.metadata(self.voice.info, self.call), self.call)

    def answer(self, values: Float64Array | None = None) -> bytes:
        """Write an answer on the wire, by default the one that would be right."""
        values = self.values if values is None else values
        return self.voice.framed(self.voice.actions(values, self.names, self.call), self.call)

    def send_body(self, body: bytes | str) -> None:
        """Answer with *body*."""
        self.stream.send(self.voice.framed(body, self.call))


Misdeed = Callable[[Exchange], bool]
"""Does it, and says whether the conversation goes on as if nothing had been."""


def _says_nothing(exchange: Exchange) -> bool:
    exchange.stream.to_the_end()
    return False


def _hangs_up(_exchange: Exchange) -> bool:
    return False


def _says(words: Callable[[Exchange], bytes]) -> Misdeed:
    """Send something, and go on."""

    def act(exchange: Exchange) -> bool:
        exchange.stream.send(words(exchange))
        return True

    return act


def _half(words: Callable[[Exchange], bytes], then: Misdeed) -> Misdeed:
    def act(exchange: Exchange) -> bool:
        said = words(exchange)
        exchange.stream.send(said[: len(said) // 2])
        return then(exchange)

    return act


def _drips(words: Callable[[Exchange], bytes]) -> Misdeed:
    def act(exchange: Exchange) -> bool:
        for byte in words(exchange):
            exchange.stream.send(bytes((byte,)))
            if exchange.stopping.wait(_DRIP_S):
                return False
        return True

    return act


def _body(words: Callable[[Exchange], bytes | str]) -> Misdeed:
    def act(exchange: Exchange) -> bool:
        exchange.send_body(words(exchange))
        return True

    return act


def _values(change: Callable[[Float64Array], Float64Array]) -> Misdeed:
    return _says(lambda exchange: exchange.answer(change(exchange.values)))


def _is_late(exchange: Exchange) -> bool:
    if exchange.stopping.wait(exchange.late_s):
        return False
    exchange.stream.send(exchange.answer())
    return True


def _is_overtaken(exchange: Exchange) -> bool:
    _, call = exchange.voice.hear(exchange.stream)
    exchange.stream.send(exchange.answer())
    exchange.stream.send(attrs.evolve(exchange, call=call).answer(exchange.count()))
    return True


def _restarts(exchange: Exchange) -> bool:
    exchange.stream.send(exchange.answer())
    exchange.restart()
    return False


def _is_killed(exchange: Exchange) -> bool:
    exchange.stream.reset()
    return False


def _speaks_otherwise(exchange: Exchange) -> bool:
    exchange.stream.send(_BANNER)
    return _says_nothing(exchange)


def _is_another(exchange: Exchange) -> bool:
    names = tuple(f"other {name}" for name in exchange.names)
    other = attrs.evolve(exchange.voice.info, action_names=names)
    exchange.send_body(exchange.voice.metadata(other, exchange.call))
    return True


def _names_otherwise(exchange: Exchange) -> bool:
    names = tuple(f"other {name}" for name in exchange.names)
    exchange.send_body(exchange.voice.actions(exchange.values, names, exchange.call))
    return True


def _has_no_end(exchange: Exchange) -> bool:
    for piece in exchange.voice.endless(exchange.call):
        exchange.stream.send(piece)
    return False


def _whole(exchange: Exchange) -> bytes:
    return exchange.voice.actions(exchange.values, exchange.names, exchange.call)


def _harm(make: Callable[[Any], bytes]) -> Misdeed:
    return _body(lambda exchange: make(exchange.voice.content_type(exchange.call)))


_AT_CONNECTION: Mapping[Behaviour, Misdeed] = {
    Behaviour.SILENT_AT_ONCE: _says_nothing,
    Behaviour.HANGS_UP_AT_ONCE: _hangs_up,
    Behaviour.ANOTHER_PROTOCOL: _speaks_otherwise,
}
_AT_HANDSHAKE: Mapping[Behaviour, Misdeed] = {
    Behaviour.SILENT_IN_THE_HANDSHAKE: _half(lambda each: each.greeting, _says_nothing),
    Behaviour.HANGS_UP_IN_THE_HANDSHAKE: _half(lambda each: each.greeting, _hangs_up),
}
_AT_METADATA: Mapping[Behaviour, Misdeed] = {
    Behaviour.SILENT_ON_METADATA: _says_nothing,
    Behaviour.DRIPPING_METADATA: _drips(Exchange.metadata),
    Behaviour.HANGS_UP_BEFORE_METADATA: _hangs_up,
    Behaviour.HANGS_UP_IN_METADATA: _half(Exchange.metadata, _hangs_up),
    Behaviour.OTHER_METADATA: _is_another,
    Behaviour.SENSELESS_METADATA: _body(lambda _: _bodies.garbage()),
}
_AT_ACTIONS: Mapping[Behaviour, Misdeed] = {
    Behaviour.SILENT: _says_nothing,
    Behaviour.DRIPPING: _drips(Exchange.answer),
    Behaviour.LATE: _is_late,
    Behaviour.OVERTAKEN: _is_overtaken,
    Behaviour.HANGS_UP_BEFORE_ANSWERING: _hangs_up,
    Behaviour.HANGS_UP_IN_THE_ANSWER: _half(Exchange.answer, _hangs_up),
    Behaviour.HANGS_UP_AFTER_ANSWERING: lambda each: _says(Exchange.answer)(each) and False,
    Behaviour.DIES_BEFORE_ANSWERING: _is_killed,
    Behaviour.RESTARTS: _restarts,
    Behaviour.FAILS_ONCE: _says(lambda each: each.voice.failure(_TRACEBACK, each.call)),
    Behaviour.SENSELESS: _body(lambda _: _bodies.garbage()),
    Behaviour.CUT: _body(lambda each: _whole(each)[:-1]),
    Behaviour.TEXT: _body(lambda _: "<html>welcome</html>"),
    Behaviour.WITHOUT_ACTIONS: _body(lambda each: each.voice.other(each.call) or b"\x80"),
    Behaviour.NOT_FINITE: _values(lambda values: np.full_like(values, np.nan)),
    Behaviour.TOO_WIDE: _values(lambda values: np.pad(values, ((0, 0), (0, 1)))),
    Behaviour.TOO_LONG: _values(lambda values: np.pad(values, ((0, 1), (0, 0)))),
    Behaviour.WITHOUT_STEPS: _values(lambda values: values[:0]),
    Behaviour.OTHER_NAMES: _names_otherwise,
    Behaviour.OVERSIZED: _says(lambda each: each.voice.oversized(each.call)),
    Behaviour.DEEP: _harm(_bodies.deep),
    Behaviour.MANY: _harm(_bodies.many),
    Behaviour.COUNTLESS: _harm(_bodies.countless),
    Behaviour.VAST: _harm(_bodies.vast),
    Behaviour.ENDLESS: _has_no_end,
}

MISDEEDS: Mapping[Behaviour, tuple[Point, Misdeed]] = dict(
    itertools.chain.from_iterable(
        ((behaviour, (point, misdeed)) for behaviour, misdeed in table.items())
        for point, table in (
            (Point.CONNECTED, _AT_CONNECTION),
            (Point.HANDSHAKE, _AT_HANDSHAKE),
            (Point.METADATA, _AT_METADATA),
            (Point.ACTIONS, _AT_ACTIONS),
        )
    )
)
"""What each behaviour does, and at which point; `Behaviour.GOOD` does nothing of the kind."""
