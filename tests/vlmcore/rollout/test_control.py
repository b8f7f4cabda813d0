"""Tests of `vlmcore.rollout.control`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from control_cases import FAR, AtOnce, Clock, Counting, Later, Sink, gate, seen
from safety_cases import JOINT
from vlmcore.contracts.actions import ActionChunk
from vlmcore.contracts.embodiment import (
    ActionDim,
    ActionSpace,
    CameraSpec,
    Embodiment,
    LimitsSource,
    Reference,
)
from vlmcore.contracts.observation import Observation
from vlmcore.errors import ContractError, PolicyError, PolicyUnavailableError, UnsafeActionError
from vlmcore.policy import PolicyInfo
from vlmcore.rollout import (
    ChunkBroker,
    ControlLoop,
    EpisodeHeader,
    EpisodeReader,
    EpisodeWriter,
    LoopCounts,
    PrefetchingBroker,
    Starvation,
    replay,
)
from vlmcore.rollout.recorded_moments import EpisodeMoments
from vlmcore.safety import Remedy, SafetyGate, SafetyLatch
from vlmcore.testing import ScriptedPolicy

WHEELS = ActionDim(
    name="x", unit="m/s", reference=Reference.VELOCITY, low=-1.0, high=1.0, max_step=1.0
)


class Rig:
    """A loop with a clock of its own; its robot is where it was told to be."""

    def __init__(self, policy: Any = None, made: Any = None, **more: Any) -> None:
        self.clock = Clock()
        self.sink = Sink(self.clock)
        self.at = 0.0
        broker = PrefetchingBroker(
            policy or Counting(),
            made or gate(),
            prefetch_at=4,
            executor=more.pop("executor", AtOnce()),
            clock=self.clock,
            starvation=more.pop("starvation", Starvation.HOLD),
        )
        options = {
            "observe": self.observe,
            "max_age_s": 5.0,
            "clock": self.clock,
            "sleep": self.clock.sleep,
        }
        self.loop = ControlLoop(broker, self.sink, **{**options, **more})

    def observe(self) -> Observation:
        return seen(len(self.sink.sent), self.clock())

    def run(self, steps: int | None = 4) -> LoopCounts:
        return self.loop.run(last_command=[self.at], steps=steps)


def test_one_command_is_sent_at_each_tick_at_the_rate_of_the_space() -> None:
    """
    And when the run ends, the robot is told to stand still.
    """
    rig = Rig()
    assert LoopCounts(ticks=4, held=1) == rig.run()
    assert ["hold", "counting", "counting", "counting", "hold"] == rig.sink.sources
    assert [0, 0, 1, 2, 2] == rig.sink.values
    assert [0, 0.05, 0.1, 0.15, 0.2] == pytest.approx([each - 100 for each in rig.sink.at_s])


def test_late_ticks_are_counted_and_never_caught_up_by_a_burst() -> None:
    """
    The commands after a late one are a period apart, as all are.
    """
    rig = Rig()
    rig.sink.then = lambda i: rig.clock.sleep({2: 0.3, 5: 0.12}.get(i, 0.01))
    assert LoopCounts(ticks=9, late=2, held=1) == rig.run(9)
    gaps = np.diff(rig.sink.at_s[:-1])
    assert [0.05, 0.05, 0.3, 0.05, 0.05, 0.12, 0.05, 0.05] == pytest.approx(gaps.tolist())


@pytest.mark.parametrize(
    ("inference_s", "gaps"),
    [
        (0.03, [0.05, 0.05, 0.05, 0.05, 0.05, 0.05]),
        (0.2, [0.05, 0.25, 0.05, 0.25, 0.05, 0.05]),
    ],
)
def test_commands_are_a_period_apart_also_where_the_broker_waits_for_its_policy(
    inference_s: float, gaps: list[float]
) -> None:
    """
    What a chunk has ready does not follow at once after the step that waited for the chunk.
    """
    rig = Rig()

    class Slow(Counting):
        def infer(self, observation: Observation, /) -> ActionChunk:
            rig.clock.sleep(inference_s)
            return super().infer(observation)

    broker = ChunkBroker(Slow(), gate(), replan_every=2)
    clock = {"clock": rig.clock, "sleep": rig.clock.sleep}
    loop = ControlLoop(broker, rig.sink, observe=rig.observe, max_age_s=5.0, **clock)
    loop.run(last_command=[0.0], steps=6)
    assert gaps == pytest.approx(np.diff(rig.sink.at_s).tolist())


def test_after_an_error_the_robot_is_told_to_stand_still_at_once() -> None:
    """
    A stop does not wait until the command before it has lasted for its period.
    """

    def pull_the_plug(count: int) -> None:
        if count == 2:
            raise OSError

    rig = Rig()
    rig.sink.then = pull_the_plug
    with pytest.raises(OSError):  # noqa: PT011 - it is the one above
        rig.run()
    assert [0, 0.05, 0.1, 0.1] == pytest.approx([each - 100 for each in rig.sink.at_s])


def test_the_stop_is_not_too_old_where_it_waited_for_its_turn() -> None:
    """
    It is decided when it is sent, however little age is allowed.
    """
    rig = Rig()

    class Quick(Counting):
        def infer(self, observation: Observation, /) -> ActionChunk:
            rig.clock.sleep(0.02)
            return super().infer(observation)

    broker = ChunkBroker(Quick(), gate(), replan_every=1)
    clock = {"clock": rig.clock, "sleep": rig.clock.sleep}
    loop = ControlLoop(broker, rig.sink, observe=rig.observe, max_age_s=0.03, **clock)
    loop.run(last_command=[0.0], steps=3)
    assert ["counting", "counting", "counting", "hold"] == rig.sink.sources
    assert [0.02, 0.07, 0.12, 0.17] == pytest.approx([each - 100 for each in rig.sink.at_s])


def test_who_interrupts_the_wait_before_the_last_stop_gets_it_at_once() -> None:
    """
    However a run ends, also while the last command still lasts.
    """
    rig = Rig()

    def sleep(seconds: float) -> None:
        if len(rig.sink.sent) == 4:
            raise KeyboardInterrupt
        rig.clock.sleep(seconds)

    rig.loop._sleep = sleep
    with pytest.raises(KeyboardInterrupt):
        rig.run(4)
    assert 5 == len(rig.sink.sent)
    assert "hold" == rig.sink.sources[-1]


def test_a_run_ends_when_it_is_told_to_stop() -> None:
    """
    After the tick that is; from a thread, a signal handler, or the robot itself.
    """
    rig = Rig()
    rig.sink.then = lambda i: rig.loop.stop() if i == 2 else None
    assert 3 == rig.run(None).ticks
    assert ["counting", "hold"] == rig.sink.sources[-2:]
    rig.loop.stop()
    assert 0 == rig.run(None).ticks  # it came before the first tick
    rig.sink.then = None
    assert 2 == rig.run(2).ticks  # it is not remembered for ever


@pytest.mark.parametrize("is_latched", [False, True])
def test_a_policy_that_hangs_holds_the_robot_still_for_so_long_only(is_latched: bool) -> None:  # noqa: FBT001
    """
    Before its first answer, too: somebody has to look, so a latch stays shut.
    """
    made: Any = SafetyLatch(gate()) if is_latched else gate()
    rig = Rig(made=made, executor=Later(), max_starved_s=0.19)
    with pytest.raises(PolicyError, match=r"^counting: nothing .* for 0\.19 s: the answer is not"):
        rig.run(None)
    assert LoopCounts(ticks=5, held=5) == rig.loop.counts
    assert ["hold"] * 5 == rig.sink.sources
    assert not is_latched or made.is_tripped


def test_what_was_executed_meanwhile_ends_a_hunger() -> None:
    """
    The time of all holds together does not count, that of those in a row does.
    """
    later = Later()
    rig = Rig(Counting(horizon=1), executor=later, max_starved_s=0.19)
    rig.sink.then = lambda i: later.finish() if later.waiting and i % 3 == 0 else None
    counts = rig.run(40)
    assert (40, True) == (counts.ticks, counts.held > 20)
    rig.sink.then = None
    with pytest.raises(PolicyError, match="nothing was there to execute"):
        rig.run(40)


@pytest.mark.parametrize("value", [0, -1.0, float("nan"), float("inf"), "1", True])
def test_how_long_a_policy_may_hang_is_a_time(value: Any) -> None:
    """
    A broker that waits for its policy never starves.
    """
    with pytest.raises(ContractError, match=r"^max_starved_s: got "):
        Rig(max_starved_s=value)
    rig = Rig()
    with pytest.raises(ContractError, match=r"^max_starved_s: got 1, expected None with a Chunk"):
        ControlLoop(
            ChunkBroker(Counting(), gate(), replan_every=1),
            rig.sink,
            observe=rig.observe,
            max_age_s=5.0,
            max_starved_s=1.0,
        )


class Crash(Exception):  # noqa: N818 - it is what a robot raises
    """What a robot raises."""


def ends(rig: Rig, error: type[BaseException]) -> list[tuple[str, list[float]]]:
    """Run until it raises, and tell what was sent last."""
    with pytest.raises(error):
        rig.run(20)
    return rig.sink.sent[-2:]


@pytest.mark.parametrize("error", [Crash, KeyboardInterrupt, SystemExit])
@pytest.mark.parametrize("place", ["sink", "observe", "sleep", "position"])
def test_the_robot_stands_still_before_an_error_is_raised(
    error: type[BaseException], place: str
) -> None:
    """
    No exception handling, no stop on error: a robot that is driven by rates would drive on.
    """
    policy = ScriptedPolicy([[[0.4]] * 4], info=PolicyInfo(name="go", action_names=("x",)))

    def fail(*_: Any) -> Any:
        if len(rig.sink.sent) >= 3 and ("go", [0.4]) == rig.sink.sent[-1]:
            raise error
        return None

    def observe() -> Observation:
        fail()
        return rig.observe()

    def sleep(seconds: float) -> None:
        fail()
        rig.clock.sleep(seconds)

    def where() -> Mapping[str, float] | None:
        return fail() if place == "position" else None

    rig = Rig(policy, gate(WHEELS), position=where)
    if place == "sink":
        rig.sink.then = fail
    elif place == "observe":
        rig.loop._observe = observe
    elif place == "sleep":
        rig.loop._sleep = sleep
    assert [("go", [0.4]), ("hold", [0.0])] == ends(rig, error)


def test_a_sink_that_is_gone_raises_its_own_error() -> None:
    """
    And not that the robot could not be told to stand still.
    """
    rig = Rig()

    def fail(i: int) -> None:
        if i >= 2:
            raise Crash(i)

    rig.sink.then = fail
    with pytest.raises(Crash, match="2"):
        rig.run(10)


def test_a_policy_that_is_away_for_good_ends_a_run_that_tolerates_no_failure() -> None:
    """
    With the robot standing still.
    """
    away = PolicyUnavailableError("away", "nothing listens there")
    policy = ScriptedPolicy([[[0.05]] * 8, away], info=PolicyInfo(name="away", action_names=("x",)))
    clock, sink = Clock(), Sink()
    broker = ChunkBroker(policy, gate(JOINT), replan_every=2)

    def observe() -> Observation:
        return seen(0.0, clock())

    loop = ControlLoop(broker, sink, observe=observe, max_age_s=1.0, clock=clock, sleep=clock.sleep)
    with pytest.raises(PolicyUnavailableError):
        loop.run(last_command=[0.0])
    assert ["away", "away", "hold"] == sink.sources


def test_what_the_gate_refuses_ends_a_run_without_a_latch() -> None:
    """
    It is not sent.
    """
    rig = Rig(made=gate(JOINT))
    assert ("hold", [0.0]) == ends(rig, UnsafeActionError)[-1]
    assert (1, 0.0) == (rig.loop.counts.refused, max(rig.sink.values))


def test_with_a_latch_the_robot_stands_still_where_a_step_is_refused_until_the_latch_trips() -> (
    None
):
    """
    Then the run ends, and none goes on until somebody has rearmed it.
    """
    latch = SafetyLatch(gate(JOINT), max_consecutive=2)
    rig = Rig(made=latch)
    rig.observe = lambda: seen(0.9, rig.clock())  # type: ignore[method-assign]
    rig.loop._observe = rig.observe
    with pytest.raises(UnsafeActionError, match=r"^tripped: unsafe chunks in a row: 2"):
        rig.run(30)
    assert {"hold"} == set(rig.sink.sources)
    assert 2 == rig.loop.counts.refused
    with pytest.raises(UnsafeActionError, match=r"^tripped"):
        rig.run(30)
    assert 1 == rig.loop.counts.ticks

    latch.rearm()
    rig.loop._observe = lambda: seen(0.0, rig.clock())
    assert 2 == rig.run(2).ticks


def test_standing_still_in_between_does_not_start_the_count_of_a_latch_again() -> None:
    """
    Or a policy that is refused each time it is asked would never trip it.
    """
    latch = SafetyLatch(gate(JOINT), max_consecutive=3)
    later = Later()
    rig = Rig(made=latch, executor=later)
    rig.loop._observe = lambda: seen(0.9, rig.clock())
    rig.sink.then = lambda i: later.finish() if later.waiting and i % 4 == 3 else None
    with pytest.raises(UnsafeActionError, match=r"^tripped"):
        rig.run(40)
    assert rig.loop.counts.held > 8


def test_a_starved_loop_that_is_to_stop_ends_and_trips_the_latch() -> None:
    """
    The error says what was missing.
    """
    latch, later = SafetyLatch(gate()), Later()
    rig = Rig(made=latch, executor=later, starvation=Starvation.STOP)
    rig.sink.then = lambda i: later.finish() if i == 1 else None
    with pytest.raises(PolicyError, match="nothing is left to execute"):
        rig.run(40)
    assert (10, True) == (rig.loop.counts.ticks - 1, latch.is_tripped)
    assert "hold" == rig.sink.sources[-1]


def test_old_actions_are_not_handed_on() -> None:
    """
    The check of `hand_off` holds in a loop too.
    """
    rig = Rig(max_age_s=0.12)
    with pytest.raises(UnsafeActionError, match=r"^stale"):
        rig.run(20)
    assert ["counting", "hold"] == rig.sink.sources[-2:]


def test_limits_of_a_template_are_handed_on_only_if_it_was_said() -> None:
    """
    As by hand.
    """
    template = gate(limits_source=LimitsSource.TEMPLATE)
    with pytest.raises(UnsafeActionError, match=r"^template_limits"):
        Rig(made=template).run()
    assert 4 == Rig(made=template, allow_template=True).run().ticks


def test_what_the_gate_changes_is_counted() -> None:
    """
    The next step starts from what was sent.
    """
    rig = Rig(made=gate(JOINT, remedy=Remedy.CLAMP))
    rig.loop._observe = lambda: seen(0.9, rig.clock())
    counts = rig.run(5)
    assert 4 == counts.remedied
    assert [0, 0.1, 0.2, 0.3, 0.4, 0.4] == pytest.approx(rig.sink.values)


ROBOT = Embodiment(
    name="one joint",
    state_names=("x",),
    actions=ActionSpace(dims=(FAR,), rate_hz=20),
    cameras=(CameraSpec(name="front"),),
    limits_source=LimitsSource.MANUFACTURER,
)


def test_each_step_is_recorded_and_the_episode_plays_back(tmp_path: Path) -> None:
    """
    With what was seen, what was refused, where the robot stood still, and pixels once.
    """
    made = SafetyGate(embodiment=ROBOT)
    with EpisodeWriter(tmp_path / "run.jsonl", EpisodeHeader(embodiment=ROBOT)) as writer:
        rig = Rig(made=made, recorder=writer, record_frames=True)
        rig.run(12)
    steps = list(EpisodeReader(tmp_path / "run.jsonl"))
    assert 13 == len(steps) == writer.steps
    assert rig.sink.values == [step.sent.item() for step in steps]
    assert rig.sink.sources == [step.chunk.source for step in steps]
    assert [0, 5, 9] == [i for i, step in enumerate(steps) if step.frames]
    for step in steps:
        if step.chunk.source == "counting":
            assert step.observation.captured_at_s >= step.chunk.observed_at_s
    played = list(replay(EpisodeReader(tmp_path / "run.jsonl"), made, last_command=[0.0]))
    assert all(each.vetted is not None for each in played)


def test_a_loop_over_a_broker_that_waits_for_its_policy_is_recorded_too(tmp_path: Path) -> None:
    """
    For policies that are faster than a tick; there is nothing that starves.
    """
    clock, sink = Clock(), Sink()
    broker = ChunkBroker(Counting(), SafetyGate(embodiment=ROBOT), replan_every=4)
    with EpisodeWriter(tmp_path / "run.jsonl", EpisodeHeader(embodiment=ROBOT)) as writer:
        loop = ControlLoop(
            broker,
            sink,
            observe=lambda: seen(len(sink.sent), clock()),
            max_age_s=1.0,
            recorder=writer,
            record_frames=True,
            clock=clock,
            sleep=clock.sleep,
        )
        assert LoopCounts(ticks=8) == loop.run(last_command=[0.0], steps=8)
    assert [0, 1, 2, 3, 4, 5, 6, 7, 7] == sink.values
    steps = list(EpisodeReader(tmp_path / "run.jsonl"))
    assert [0, 4] == [i for i, step in enumerate(steps) if step.frames]


@pytest.mark.parametrize("latency", [1, 2, 3, 7])
def test_what_is_recorded_while_the_policy_thinks_stands_beside_what_was_seen_then(
    tmp_path: Path, latency: int
) -> None:
    """
    Each observation with what was sent from it on: so the policy itself has no error, whatever the
    latency, and a data set of the recording teaches no other delay than the robot has.
    """
    later = Later()

    def think(count: int) -> None:
        if later.waiting and count % latency == 0:
            later.finish()

    rig = Rig(made=SafetyGate(embodiment=ROBOT), executor=later)
    rig.sink.then = think
    rig.loop._observe = lambda: seen(sum("hold" != it for it in rig.sink.sources), rig.clock())
    with EpisodeWriter(tmp_path / "run", EpisodeHeader(embodiment=ROBOT)) as writer:
        rig.loop._recorder, rig.loop._record_frames = writer, True
        rig.run(60)
    moments = [
        (moment.observe().state.tolist(), moment.sent[0].tolist())
        for moment in EpisodeMoments(EpisodeReader(tmp_path / "run")).moments()
    ]
    assert len(moments) > 5
    assert all(state == sent for state, sent in moments)


def test_a_refusal_is_recorded_as_one(tmp_path: Path) -> None:
    """
    Also a vetted step that was too old to be handed on: it was not executed.
    """
    joint = Embodiment(
        name="one joint",
        state_names=("x",),
        actions=ActionSpace(dims=(JOINT,), rate_hz=20),
        cameras=(CameraSpec(name="front"),),
        limits_source=LimitsSource.MANUFACTURER,
    )
    with EpisodeWriter(tmp_path / "run.jsonl", EpisodeHeader(embodiment=joint)) as writer:
        latch = SafetyLatch(SafetyGate(embodiment=joint), max_consecutive=2)
        rig = Rig(made=latch, recorder=writer)
        rig.loop._observe = lambda: seen(0.9, rig.clock())
        with pytest.raises(UnsafeActionError):
            rig.run(20)
    steps = list(EpisodeReader(tmp_path / "run.jsonl"))
    assert 2 == len([step for step in steps if step.vetted is None])
    with EpisodeWriter(tmp_path / "old.jsonl", EpisodeHeader(embodiment=ROBOT)) as writer:
        rig = Rig(made=SafetyGate(embodiment=ROBOT), recorder=writer, max_age_s=0.12)
        with pytest.raises(UnsafeActionError, match=r"^stale"):
            rig.run(20)
    steps = list(EpisodeReader(tmp_path / "old.jsonl"))
    assert [1, 0, 1] == [step.executed_steps for step in steps[-3:]]


def test_a_recorder_that_cannot_write_ends_the_run_with_the_robot_standing_still(
    tmp_path: Path,
) -> None:
    """
    A loop that is to be recorded does not go on unrecorded.
    """
    writer = EpisodeWriter(tmp_path / "run.jsonl", EpisodeHeader(embodiment=ROBOT))
    rig = Rig(made=SafetyGate(embodiment=ROBOT), recorder=writer)
    rig.sink.then = lambda i: writer.close() if i == 3 else None
    with pytest.raises(Exception, match="is closed"):
        rig.run(20)
    assert [("counting", [2.0]), ("hold", [2.0])] == rig.sink.sent[-2:]


def test_a_second_run_at_once_is_refused() -> None:
    """
    Two loops would drive one robot.
    """
    rig = Rig()
    caught: list[str] = []

    def run_again(_: int) -> None:
        try:
            rig.run(1)
        except ContractError as error:
            caught.append(str(error))

    rig.sink.then = run_again
    rig.run(1)
    assert ["run: got a second run at once, expected one robot for each loop"] * 2 == caught


def test_positions_that_changes_add_up_to_are_asked_for_at_each_tick() -> None:
    """
    The gate is told them; standing still needs none.
    """
    bound = ActionDim(
        name="x",
        reference=Reference.DELTA,
        low=-0.1,
        high=0.1,
        max_step=0.1,
        position_low=0.0,
        position_high=0.25,
    )
    policy = ScriptedPolicy([[[0.1]] * 8], info=PolicyInfo(name="go", action_names=("x",)))
    where = [0.0]
    rig = Rig(policy, gate(bound, remedy=Remedy.CLAMP), position=lambda: {"x": where[0]})

    def move(_: int) -> None:
        where[0] += rig.sink.values[-1]

    rig.sink.then = move
    rig.run(6)
    assert 0.25 == pytest.approx(where[0])


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"max_age_s": 0}, "max_age_s: got 0"),
        ({"observe": 3}, "observe: got int"),
        ({"recorder": "run.jsonl"}, r"recorder: got 'run\.jsonl'"),
        ({"position": {"x": 0.0}}, r"position: got \{'x': 0\.0\}"),
        ({"allow_template": "no"}, "allow_template: got 'no', expected True or False"),
        ({"record_frames": 1}, "record_frames: got 1, expected True or False"),
    ],
)
def test_an_argument_that_is_wrong_is_named(changed: dict[str, Any], words: str) -> None:
    """
    Before anything moves.
    """
    with pytest.raises(ContractError, match=f"^{words}"):
        Rig(**changed)


def test_a_loop_needs_a_broker_and_a_sink() -> None:
    """
    Those that are there.
    """
    rig = Rig()
    broker: Any = rig.loop._broker
    with pytest.raises(ContractError, match=r"^broker: got"):
        ControlLoop(gate(), rig.sink, observe=rig.observe, max_age_s=1.0)  # type: ignore[arg-type]
    with pytest.raises(ContractError, match=r"^sink: got"):
        ControlLoop(broker, Sink, observe=rig.observe, max_age_s=1.0)  # type: ignore[arg-type]
    with pytest.raises(ContractError, match=r"^steps: got -1"):
        rig.run(-1)
