"""A control loop: look, ask, vet, hand on, record, at the rate of the robot."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

import attrs

from vlmcore._arguments import require_switch, shown
from vlmcore._arrays import plain_float, require_positive
from vlmcore.contracts.observation import Observation
from vlmcore.errors import ContractError, PolicyError, UnsafeActionError
from vlmcore.rollout._checks import require_sink, require_steps
from vlmcore.rollout._metronome import Metronome
from vlmcore.rollout._policy_terms import require_observer
from vlmcore.rollout.brokers import ChunkBroker
from vlmcore.rollout.episode_frames import encode_frames
from vlmcore.rollout.episode_writer import EpisodeWriter
from vlmcore.rollout.freshness import TimedObservation
from vlmcore.rollout.handoff import ActionSink, hand_off
from vlmcore.rollout.holding import hold_still
from vlmcore.rollout.prefetching import PrefetchingBroker
from vlmcore.safety.latch import SafetyLatch
from vlmcore.safety.report import RefusalReason
from vlmcore.safety.vetted import VettedChunk

__all__ = ["ControlLoop", "LoopCounts"]


@attrs.frozen(kw_only=True)
class LoopCounts:
    """
    What happened in a run of a `ControlLoop`.

    Attributes:
        ticks: How many ticks there were.
        late: How many of them came late, because the one before took too long.
        held: In how many the robot was told to stand still; those that were refused are in it.
        refused: In how many the gate refused what the policy proposed.
        remedied: In how many the gate changed it.
    """

    ticks: int = 0
    late: int = 0
    held: int = 0
    refused: int = 0
    remedied: int = 0


class ControlLoop:
    """
    Gives a robot one vetted command at each tick, at the rate of its action space.

    A tick is late if the one before took longer than a period; it is counted, the beat starts anew
    from there, and no tick is made up for. Two commands are never less than a period apart, however
    long the broker took to give them; but one to stand still after an error is sent at once.

    However a run ends, by its number of steps, by `stop`, by an error of the robot, of the policy
    or of the recorder, or by Ctrl-C, the robot is told to stand still before `run` returns or
    raises. That goes through the gate and `hand_off` too; if it cannot be done, the error that
    ended the run is raised all the same.

    What the gate refuses ends the run. With a `SafetyLatch` the robot stands still at that tick,
    and the run goes on until the latch trips; a run with a latch that has tripped ends at once,
    until somebody has called `SafetyLatch.rearm`.

    Args:
        broker: Who gives the steps.
        sink: What moves the robot, perhaps behind a `vlmcore.rollout.watchdog.Watchdog`.
        observe: As for `ChunkBroker.step`.
        max_age_s: As for `hand_off`.
        max_starved_s: For how long there may be nothing to execute, the wait for the first answer
            included: then the run ends as with `Starvation.STOP`. ``None`` for as long as it lasts:
            a policy that hangs holds the robot still for ever.
        position: Says where the things are that changes and rates move, if the space bounds it.
        recorder: Writes each step, also what was refused and where the robot stood still; the
            caller closes it.
        record_frames: Whether the pixels of each observation are recorded, once.
        allow_template: As for `hand_off`.
        clock: The clock by which observations are stamped, in seconds.
        sleep: What waits for so many seconds.

    Raises:
        ContractError: If an argument is not as described.

    Example:
        >>> import numpy as np
        >>> from vlmcore.contracts.embodiment import ActionDim, ActionSpace, LimitsSource
        >>> from vlmcore.policy.interface import PolicyInfo
        >>> from vlmcore.safety.gate import SafetyGate
        >>> from vlmcore.testing import ScriptedPolicy
        >>> slide = ActionDim(name="x", unit="m", low=-1.0, high=1.0, max_step=0.15)
        >>> gate = SafetyGate(
        ...     space=ActionSpace(dims=(slide,), rate_hz=100),
        ...     limits_source=LimitsSource.MANUFACTURER,
        ... )
        >>> class Arm:
        ...     def accept(self, vetted):
        ...         print(vetted.values.tolist())
        >>> def observe():
        ...     picture = np.zeros((8, 8, 3), np.uint8)
        ...     return Observation(instruction="go", state=[0.0], images={"front": picture},
        ...         frame_rate_hz=100, captured_at_s=time.monotonic())
        >>> info = PolicyInfo(name="forward", action_names=("x",))
        >>> policy = ScriptedPolicy([[[0.1], [0.2]]], info=info)
        >>> broker = ChunkBroker(policy, gate, replan_every=2)
        >>> loop = ControlLoop(broker, Arm(), observe=observe, max_age_s=1.0)
        >>> loop.run(last_command=[0.0], steps=2).ticks
        [[0.1]]
        [[0.2]]
        [[0.2]]
        2
    """

    def __init__(
        self,
        broker: ChunkBroker | PrefetchingBroker,
        sink: ActionSink,
        *,
        observe: Callable[[], Observation | TimedObservation],
        max_age_s: float,
        max_starved_s: float | None = None,
        position: Callable[[], Mapping[str, float]] | None = None,
        recorder: EpisodeWriter | None = None,
        record_frames: bool = False,
        allow_template: bool = False,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], object] = time.sleep,
    ) -> None:
        if not isinstance(broker, (ChunkBroker, PrefetchingBroker)):
            raise ContractError(
                "broker", f"got {shown(broker)}, expected a ChunkBroker or a PrefetchingBroker"
            )
        require_sink(sink)
        require_observer(observe)
        require_switch(record_frames=record_frames, allow_template=allow_template)
        max_age_s = plain_float(max_age_s)
        require_positive(max_age_s=max_age_s)
        if not (position is None or callable(position)):
            raise ContractError("position", f"got {shown(position)}, expected a function, or None")
        if not (recorder is None or isinstance(recorder, EpisodeWriter)):
            raise ContractError("recorder", f"got {shown(recorder)}, expected an EpisodeWriter")
        gate = broker.gate
        self._broker = broker
        self._is_latched = isinstance(gate, SafetyLatch)
        self._rules = gate.gate if isinstance(gate, SafetyLatch) else gate
        self._sink = sink
        self._observe: Callable[[], Any] = observe
        self._max_age_s = max_age_s
        self._max_starved_s = _longest_hunger(max_starved_s, broker)
        self._starved_at_s: float | None = None  # since when there is nothing to execute
        self._position = position
        self._recorder = recorder
        self._record_frames = record_frames
        self._recorded: Observation | None = None  # whose pixels were recorded last
        self._allow_template = allow_template
        self._clock, self._sleep = clock, sleep
        self._counts = LoopCounts()
        self._is_ending = False
        self._turn = threading.Lock()

    @property
    def counts(self) -> LoopCounts:
        """What happened in the present run, or in the last one."""
        return self._counts

    def stop(self) -> None:
        """
        End the run after the present tick, or before the first one of the next if none runs.

        For any thread and for signal handlers.
        """
        self._is_ending = True

    def run(self, *, last_command: Any, steps: int | None = None) -> LoopCounts:
        """
        Reset the broker, and drive the robot through an episode.

        Args:
            last_command: Where the robot stands, as for `SafetyGate.vet`.
            steps: After how many ticks to end; ``None`` for not before `stop`.

        Returns:
            What happened; after an error `counts` says so.

        Raises:
            UnsafeActionError: If the gate, the latch or `hand_off` refuses, as described above.
            PolicyError: As for the ``step`` of the broker; or if there was nothing to execute for
                *max_starved_s*.
            ContractError: As for the ``step`` of the broker; or if a run is under way.
            Exception: What the robot raises, as it is.
        """
        if steps is not None:
            require_steps("steps", steps, 0)
        if not self._turn.acquire(blocking=False):
            raise ContractError("run", "got a second run at once, expected one robot for each loop")
        try:
            self._counts, self._recorded, self._starved_at_s = LoopCounts(), None, None
            self._last_command = last_command
            self._broker.reset()
            self._drive(steps)
        finally:
            self._is_ending = False
            self._turn.release()
        return self._counts

    def _drive(self, steps: int | None) -> None:
        period_s = 1 / self._rules.actions.rate_hz
        self._beat = beat = Metronome(period_s, clock=self._clock, sleep=self._sleep)
        try:
            while steps is None or self._counts.ticks < steps:
                is_late = beat.wait()
                if self._is_ending:
                    break
                self._count(ticks=True, late=is_late)
                self._tick()
            beat.wait_to_send()  # the last command, too, lasts for its period
        except BaseException:
            with suppress(Exception):  # what ended the run says more
                self._stand_still()
            raise
        self._stand_still()

    def _tick(self) -> None:
        """Send one command."""
        broker = self._broker
        position = None if self._position is None else self._position()
        starved_at_s, self._starved_at_s = self._starved_at_s, None
        try:
            vetted = broker.step(self._observe, last_command=self._last_command, position=position)
        except UnsafeActionError as error:
            if error.reason == RefusalReason.TRIPPED.value:  # its report is on another step
                raise
            self._count(refused=True)
            self._record(error, broker.proposed, position=position)
            if not self._is_latched:
                raise
            self._count(held=True)
            self._beat.wait_to_send()
            self._stand_still()
            return
        is_starved = isinstance(broker, PrefetchingBroker) and broker.is_starved
        self._count(held=is_starved, remedied=vetted.report.changed)
        if is_starved:
            self._starve(vetted, starved_at_s)
        self._beat.wait_to_send()
        self._send(vetted)

    def _starve(self, held: VettedChunk, since_s: float | None) -> None:
        """Note that there is nothing to execute, and end the run if that was so for too long."""
        now_s, most_s = self._clock(), self._max_starved_s
        self._starved_at_s = now_s if since_s is None else since_s
        if most_s is None or now_s - self._starved_at_s < most_s:
            return
        assert isinstance(self._broker, PrefetchingBroker)
        trouble = self._broker.trouble or "the answer is not there yet"
        why = f"nothing was there to execute for {most_s:g} s: {trouble}"
        if isinstance(self._broker.gate, SafetyLatch):
            self._broker.gate.trip(held.report, why)
        raise PolicyError(self._broker.name, why)

    def _stand_still(self) -> None:
        command, now_s = self._last_command, self._clock()
        self._send(hold_still(self._rules, last_command=command, now_s=now_s))

    def _send(self, vetted: VettedChunk) -> None:
        """Hand a step on, then write it down, whether it could be handed on or not."""
        before, sent = self._last_command, 0
        try:
            hand_off(
                vetted,
                self._sink,
                now_s=self._clock(),
                max_age_s=self._max_age_s,
                allow_template=self._allow_template,
            )
            self._last_command, sent = vetted.values[-1], 1
        finally:
            self._record(vetted, vetted.proposed, last_command=before, executed_steps=sent)

    def _record(self, outcome: VettedChunk | UnsafeActionError, chunk: Any, **more: Any) -> None:
        observation = self._broker.observation
        if self._recorder is None or observation is None:
            return
        frames = None
        if self._record_frames and observation is not self._recorded:
            frames, self._recorded = encode_frames(observation), observation
        said = {"last_command": self._last_command, **more}
        self._recorder.record(
            observation, chunk, outcome, at_s=self._clock(), frames=frames, **said
        )

    def _count(self, **happened: bool) -> None:
        counts = {name: getattr(self._counts, name) + told for name, told in happened.items()}
        self._counts = attrs.evolve(self._counts, **counts)


def _longest_hunger(longest_s: float | None, broker: object) -> float | None:
    if longest_s is None:
        return None
    longest_s = plain_float(longest_s)
    require_positive(max_starved_s=longest_s)
    if isinstance(broker, ChunkBroker):
        problem = "expected None with a ChunkBroker, which waits for its policy"
        raise ContractError("max_starved_s", f"got {longest_s:g}, {problem}")
    return longest_s
