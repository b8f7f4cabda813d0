"""Control loops whose time and whose answers come when a test says so."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import Any

import attrs
import numpy as np

from safety_cases import joint, space
from vlmcore.contracts.actions import ActionChunk
from vlmcore.contracts.embodiment import ActionDim, LimitsSource
from vlmcore.contracts.observation import Observation
from vlmcore.policy import PolicyInfo
from vlmcore.rollout import PrefetchingBroker
from vlmcore.safety import SafetyGate, VettedChunk

PICTURE = np.zeros((2, 2, 3), np.uint8)
FAR = joint(1e6, bound=1e6)  # it may go anywhere at once


class Clock:
    """A clock that goes on when somebody sleeps."""

    def __init__(self, now_s: float = 100.0) -> None:
        self.now_s = now_s
        self.slept: list[float] = []

    def __call__(self) -> float:
        return self.now_s

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now_s += seconds


class Later(Executor):
    """Makes the calls that it is given when it is told to."""

    def __init__(self) -> None:
        self.waiting: list[tuple[Callable[..., Any], tuple[Any, ...], Future[Any]]] = []

    def submit(self, fn: Callable[..., Any], /, *args: Any, **_: Any) -> Future[Any]:
        future: Future[Any] = Future()
        self.waiting.append((fn, args, future))
        return future

    def finish(self, error: BaseException | None = None) -> None:
        """Make the oldest call, or let it fail."""
        fn, args, future = self.waiting.pop(0)
        if error is None:
            try:
                future.set_result(fn(*args))
            except Exception as problem:  # noqa: BLE001 - it is raised where it is asked for
                error = problem
        if error is not None:
            future.set_exception(error)


class AtOnce(Later):
    """Makes each call as soon as it is given it."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **_: Any) -> Future[Any]:
        future = super().submit(fn, *args)
        self.finish()
        return future


class Counting:
    """A policy that counts on from the number that it is shown, a row a step."""

    def __init__(self, horizon: int = 8) -> None:
        self.info = PolicyInfo(name="counting", action_names=("x",))
        self.horizon = horizon
        self.shown: list[float] = []
        self.resets = 0

    def infer(self, observation: Observation, /) -> ActionChunk:
        first = observation.state[0]
        self.shown.append(first)
        return ActionChunk(
            values=[[first + i] for i in range(self.horizon)],
            names=("x",),
            source="counting",
            observed_at_s=observation.captured_at_s,
        )

    def reset(self) -> None:
        self.resets += 1

    def close(self) -> None:
        raise AssertionError


@attrs.define
class Sink:
    """Keeps what it is sent, and when."""

    clock: Clock = attrs.field(factory=Clock)
    sent: list[tuple[str, list[float]]] = attrs.field(factory=list)
    at_s: list[float] = attrs.field(factory=list)
    then: Callable[[int], object] | None = None  # told how many were sent before

    def accept(self, vetted: VettedChunk) -> None:
        count = len(self.sent)
        self.sent.append((vetted.source, vetted.values[0].tolist()))
        self.at_s.append(self.clock())
        if self.then is not None:
            self.then(count)

    @property
    def values(self) -> list[float]:
        return [values[0] for _, values in self.sent]

    @property
    def sources(self) -> list[str]:
        return [source for source, _ in self.sent]


def seen(state: float, at_s: float, **images: Any) -> Observation:
    """Make an observation."""
    return Observation(
        instruction="go",
        state=[state],
        images=images or {"front": PICTURE},
        frame_rate_hz=20,
        captured_at_s=at_s,
    )


def gate(*dims: ActionDim, **more: Any) -> SafetyGate:
    """Make a gate whose limits may be handed on; of a joint that may jump unless told."""
    return SafetyGate(
        space=space(*(dims or (FAR,))), **{"limits_source": LimitsSource.MANUFACTURER, **more}
    )


class Bench:
    """A broker, a robot that counts what it executed, and answers that come when told to."""

    def __init__(self, policy: Any = None, made: Any = None, **more: Any) -> None:
        self.policy = policy or Counting()
        self.clock, self.later = Clock(), Later()
        options = {"prefetch_at": 4, "executor": self.later, "clock": self.clock, **more}
        self.broker = PrefetchingBroker(self.policy, made or gate(), **options)
        self.executed = 0.0
        self.looked = 0
        self.last_command = [0.0]

    def observe(self) -> Any:
        self.looked += 1
        return seen(self.executed, self.clock())

    def step(self) -> float | None:
        """Take a step; give the value of a row, None for a step that stands still."""
        vetted = self.broker.step(self.observe, last_command=self.last_command)
        self.clock.now_s += 0.05
        self.last_command = vetted.values[-1]
        if self.broker.is_starved:
            assert "hold" == vetted.source
            return None
        self.executed += 1
        return float(vetted.values[0, 0])

    def steps(self, count: int) -> list[float | None]:
        return [self.step() for _ in range(count)]
