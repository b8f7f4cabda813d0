"""What a server promises to clients that are as they should be, each with what holds one to it."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

import attrs
import numpy as np

from vlmcore.contracts.actions import ActionChunk
from vlmcore.contracts.observation import Observation
from vlmcore.policy.fitting import differences_between
from vlmcore.testing._promises import BrokenPromiseError, require
from vlmcore_robotics.testing._line import Line
from vlmcore_robotics.testing._lines import HttpLine
from vlmcore_robotics.testing._server_under_test import (
    NotForThisError,
    RiskError,
    ServerUnderTest,
)
from vlmcore_robotics.testing.protocols import PolicyProtocol

__all__ = ["GOOD_PROMISES", "ServerPromise"]

_CLIENTS, _CALLS = 4, 3
_EXPECTED = ("action_names", "state_names", "cameras", "horizon", "rate_hz")
_MARKS = ("mark-1", "mark-two")
_LARGE_PX = (1080, 1920)


@attrs.frozen(kw_only=True)
class ServerPromise:
    """
    One promise.

    Attributes:
        words: It, as a sentence.
        check: Finds whether it is kept.
        is_basic: Whether nothing else makes sense where it is not.
    """

    words: str
    check: Callable[[ServerUnderTest], None]
    is_basic: bool = False


def _says_what_it_is(server: ServerUnderTest) -> None:
    with server.line() as line:
        different = differences_between(line.info, server.target.embodiment)
    name = server.target.embodiment.name
    require(not different, f"it is not for {name!r}: {'; '.join(different)}")


def _answers(server: ServerUnderTest) -> None:
    server.call()


def _says_all_of_it(server: ServerUnderTest) -> None:
    with server.line() as line:
        info = line.info
    if server.protocol is PolicyProtocol.GROOT:
        raise NotForThisError("GR00T has no words for units, names and rates")
    missing = [field for field in _EXPECTED if getattr(info, field) is None]
    if missing:
        raise RiskError(f"it does not say its {', '.join(missing)}: nobody can check them")


def _answers_finite(server: ServerUnderTest) -> None:
    chunk = server.call()
    if not chunk.is_finite:
        raise RiskError("there are numbers in its actions that are not finite")


def _answers_alike(server: ServerUnderTest) -> None:
    with server.line() as line:
        shapes = [line.ask(server.observation).values.shape for _ in range(2)]
    require(shapes[0] == shapes[1], f"the shapes are {list(shapes[0])} and {list(shapes[1])}")


def _keeps_its_horizon(server: ServerUnderTest) -> None:
    with server.line() as line:
        said, steps = line.info.horizon, line.ask(server.observation).horizon
    if said is None:
        raise NotForThisError("it does not say how many steps it proposes")
    require(said == steps, f"{steps} steps came, expected the {said} that it said")


def _marks_its_answers(server: ServerUnderTest) -> None:
    with server.line() as line:
        for mark in _MARKS:
            came = line.mark_of_answer(server.observation, mark)
            if came is None:
                raise NotForThisError("its protocol, or the version of it, has no marks")
            require(came == mark, f"the answer to {mark!r} is marked {came!r:.80}")


def _forgets(server: ServerUnderTest) -> None:
    with _session(server) as line:
        first = line.ask(server.observation)
        line.ask(_moved(server.observation))
        with server.calling():
            knows = line.reset()
        if not knows:
            raise NotForThisError("it knows no reset")
        _require_same(server, "after a reset", line.ask(server.observation), first)


def _starts_anew(server: ServerUnderTest) -> None:
    with _session(server) as line:
        first = line.ask(server.observation)
        line.ask(_moved(server.observation))
    with _session(server) as line:
        again = line.ask(server.observation)
    _require_same(server, "after coming back", again, first)


def _serves_several(server: ServerUnderTest) -> None:
    found: list[str] = []

    def ask() -> None:
        try:
            for _ in range(_CALLS):
                server.call()
        except BrokenPromiseError as error:
            found.append(str(error))

    threads = [threading.Thread(target=ask, daemon=True) for _ in range(_CLIENTS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    require(not found, f"of {_CLIENTS} clients {len(found)} got no answer: {found[:1]}")


def _keeps_apart(server: ServerUnderTest) -> None:
    if not server.deterministic:
        raise NotForThisError("nobody said that the same observation gives the same actions")
    seen, other = server.observation, _moved(server.observation)
    with _session(server) as line:
        alone = [line.ask(seen), line.ask(seen)]
    with _session(server) as line:
        alone.insert(1, line.ask(other))
    with ExitStack() as stack:
        one, two = (stack.enter_context(_session(server)) for _ in range(2))
        mixed = [one.ask(seen), two.ask(other), one.ask(seen)]
    for with_other, without in zip(mixed, alone, strict=True):
        _require_same(server, "beside another client", with_other, without)


def _takes_what_is_large(server: ServerUnderTest) -> None:
    height, width = _LARGE_PX
    frames = np.zeros((1, height, width, 3), np.uint8)
    images = {**server.observation.images, next(iter(server.observation.images)): frames}
    large = attrs.evolve(server.observation, images=dict.fromkeys(images, frames))
    with server.line() as line:
        # A policy may refuse the size; what counts is that it says so.
        server.heard_after(line, line.sent(line.request(large)))
    server.require_alive()


GOOD_PROMISES: tuple[ServerPromise, ...] = (
    ServerPromise(
        words="it says what it is, and that is for the robot", check=_says_what_it_is, is_basic=True
    ),
    ServerPromise(words="it answers a call with actions", check=_answers, is_basic=True),
    ServerPromise(words="it says all that can be checked", check=_says_all_of_it),
    ServerPromise(words="its actions are finite", check=_answers_finite),
    ServerPromise(words="two answers have one shape", check=_answers_alike),
    ServerPromise(words="an answer has as many steps as it said", check=_keeps_its_horizon),
    ServerPromise(
        words="an answer has the mark of the request that it is for", check=_marks_its_answers
    ),
    ServerPromise(words="a reset makes it forget", check=_forgets),
    ServerPromise(words="a client that comes back starts anew", check=_starts_anew),
    ServerPromise(words="several clients at once are each answered", check=_serves_several),
    ServerPromise(words="clients do not get what others asked for", check=_keeps_apart),
    ServerPromise(
        words="frames of 1080 x 1920 are answered or refused", check=_takes_what_is_large
    ),
)
"""All of them, in the order in which they make sense."""


@contextmanager
def _session(server: ServerUnderTest) -> Iterator[Line]:
    """Hold a conversation in a session of its own, where there are such."""
    with server.line(session=uuid.uuid4().hex) as line:
        if isinstance(line, HttpLine) and not line.has_sessions:
            line.leave_session()
        yield line


def _moved(seen: Observation) -> Observation:
    """Show another state, which is near: for a policy with limits it is no surprise."""
    return attrs.evolve(seen, state=seen.state * 0.99 + 0.001)


def _require_same(
    server: ServerUnderTest, when: str, came: ActionChunk, before: ActionChunk
) -> None:
    """Require the same shape, and the same numbers where the policy is known to give such."""
    shapes = list(came.values.shape), list(before.values.shape)
    require(shapes[0] == shapes[1], f"{when} the shape is {shapes[0]}, expected {shapes[1]}")
    if server.deterministic:
        same = np.array_equal(came.values, before.values, equal_nan=True)
        require(same, f"{when} the same observation gives other numbers")
