"""Tests of `vlmcore.rollout.brokers`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import attrs
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from episode_cases import ROBOT, observation
from safety_cases import GRIPPER, JOINT, chunk, joint, space
from vlmcore.contracts.actions import ActionChunk
from vlmcore.contracts.embodiment import ActionDim, CameraSpec, Reference
from vlmcore.contracts.observation import Observation
from vlmcore.errors import ContractError, PolicyError, UnsafeActionError
from vlmcore.policy import PolicyInfo
from vlmcore.rollout import ChunkBroker, EnsembleBlend, LinearBlend
from vlmcore.safety import Remedy, SafetyGate, SafetyLatch, VettedChunk

PICTURE = np.zeros((2, 2, 3), np.uint8)
BLENDS = [None, LinearBlend(overlap=3), EnsembleBlend()]


def now(values: Any, *names: str) -> ActionChunk:
    """Make a chunk that answers the first observation."""
    return attrs.evolve(chunk(values, *names), observed_at_s=0)


class Scripted:
    """A policy that answers with what it is given, one after the other; the last one again."""

    def __init__(self, *answers: Any, names: Sequence[str] = ("x",)) -> None:
        self.info: Any = PolicyInfo(name="scripted")
        self.answers = list(answers)
        self.names = names
        self.asked: list[float] = []
        self.resets = 0

    def infer(self, observation: Observation, /) -> ActionChunk:
        self.asked.append(observation.captured_at_s)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        if not isinstance(answer, list):
            return answer
        return ActionChunk(
            values=answer,
            names=self.names,
            source="scripted",
            observed_at_s=observation.captured_at_s,
        )

    def reset(self) -> None:
        self.resets += 1

    def close(self) -> None:
        raise AssertionError


class Awaited(Scripted):
    """A policy for ``asyncio``, which a control loop cannot await."""

    async def infer(self, observation: Observation, /) -> ActionChunk:  # type: ignore[override]
        return super().infer(observation)


class Robot:
    """A robot that is where it was last told to be, with a clock that counts its steps."""

    def __init__(self, broker: ChunkBroker, at: Sequence[float] = (0.0,)) -> None:
        self.broker = broker
        self.at = np.array(at)
        self.ticks = 0
        self.looked: list[int] = []

    def observe(self) -> Observation:
        self.looked.append(self.ticks)
        return Observation(
            instruction="go",
            state=self.at,
            images={"front": PICTURE},
            frame_rate_hz=20,
            captured_at_s=self.ticks,
        )

    def step(self, **more: Any) -> VettedChunk:
        try:
            vetted = self.broker.step(self.observe, last_command=self.at, **more)
            self.at = vetted.values[-1]
        finally:
            self.ticks += 1
        return vetted

    def walk(self, steps: int) -> list[float]:
        return [self.step().values.item() for _ in range(steps)]


def broker(policy: Any, *dims: ActionDim, gate: dict[str, Any] | None = None, **more: Any) -> Any:
    """Make a broker; a joint that may jump, unless dimensions are given."""
    made = SafetyGate(space=space(*(dims or (joint(9.0, bound=9.0),))), **(gate or {}))
    return ChunkBroker(policy, made, **{"replan_every": 2, **more})


def column(*numbers: float) -> list[list[float]]:
    return [[number] for number in numbers]


def test_each_step_is_one_vetted_step() -> None:
    """
    Which is what a control loop sends at each tick.
    """
    vetted = Robot(broker(Scripted(column(1, 2, 3)))).step()
    assert (VettedChunk, 1, "scripted", 0.0) == (
        type(vetted),
        vetted.horizon,
        vetted.source,
        vetted.observed_at_s,
    )
    assert vetted.report.safe_for_handoff


def test_the_robot_is_looked_at_only_when_the_policy_is_asked() -> None:
    """
    Every replan_every steps; a frame that nobody needs is not taken.
    """
    policy = Scripted(column(1, 2, 3, 4))
    robot = Robot(broker(policy, replan_every=3))
    assert [1, 2, 3, 1, 2, 3, 1] == robot.walk(7)
    assert [0, 3, 6] == robot.looked == policy.asked


class Looking(Scripted):
    """A policy that looks two steps back."""

    steps = 2

    def steps_back(self) -> int:
        return self.steps

    def observe(self, observation: Observation, /) -> None:
        self.asked.append(-observation.captured_at_s)


def test_a_policy_that_looks_back_is_shown_the_steps_in_which_it_is_not_asked() -> None:
    """
    The last two of them, before it is asked: it saw only what it was asked about.
    """
    policy = Looking(column(1, 2, 3, 4))
    robot = Robot(broker(policy, replan_every=4))
    assert [1, 2, 3, 4, 1, 2] == robot.walk(6)
    assert [0, -2, -3, 4] == policy.asked
    robot.broker.reset()
    robot.walk(1)
    assert [0, -2, -3, 4, 6] == policy.asked, "nothing is shown of an episode that is over"


def test_a_policy_that_could_look_back_and_does_not_costs_no_frame() -> None:
    """
    Cameras are slow.
    """
    policy = Looking(column(1, 2, 3, 4))
    policy.steps = 0
    robot = Robot(broker(policy, replan_every=3))
    robot.walk(7)
    assert [0, 3, 6] == robot.looked == policy.asked


def test_a_policy_that_cannot_look_says_so_when_it_is_asked() -> None:
    """
    And not in a step that the chunk before could do without it.
    """

    class Closed(Looking):
        def observe(self, _: Observation, /) -> None:
            raise PolicyError("scripted", "this policy is closed")

    policy = Closed(column(1, 2, 3, 4))
    assert [1, 2, 3, 1] == Robot(broker(policy, replan_every=3)).walk(4)


@pytest.mark.parametrize("blend", BLENDS)
@pytest.mark.parametrize("start", [0.0, 1.0])
def test_a_gripper_does_not_chatter_however_chunks_take_over(blend: Any, start: float) -> None:
    """
    A policy that says 0.5 +- 0.06 leaves it where it is: no switch in 40 steps.
    """
    noise = np.random.default_rng(0).uniform(0.44, 0.56, (20, 12, 1)).tolist()
    policy = Scripted(*noise, names=("gripper",))
    robot = Robot(broker(policy, GRIPPER, gate={"remedy": Remedy.CLAMP}, blend=blend), at=(start,))
    assert [start] * 40 == robot.walk(40)


def test_a_chunk_that_runs_out_early_is_followed_by_a_new_one() -> None:
    """
    Although it is not time to replan.
    """
    robot = Robot(broker(Scripted(column(1, 2)), replan_every=5))
    assert [1, 2, 1, 2, 1] == robot.walk(5)
    assert [0, 2, 4] == robot.looked


def test_a_new_chunk_takes_over_as_it_was_chosen() -> None:
    """
    At once, faded in, or averaged with those before it.
    """
    for blend, expected in (
        (None, [0, 0, 3, 3]),
        (LinearBlend(overlap=2), [0, 0, 1, 2]),
        (EnsembleBlend(m=0.0), [0, 0, 1.5, 1.5]),
    ):
        policy = Scripted(column(0, 0, 0, 0), column(3, 3, 3, 3))
        assert expected == pytest.approx(Robot(broker(policy, blend=blend)).walk(4))


def test_a_step_starts_from_what_was_really_sent() -> None:
    """
    The controller did not move as far; the gate counts from where it stopped.
    """
    robot = Robot(broker(Scripted(column(0.1, 0.2, 0.3, 0.4)), JOINT, replan_every=4))
    robot.step()
    robot.at = np.array([0.05])  # what a controller made of 0.1
    with pytest.raises(UnsafeActionError, match="too far from the step before"):
        robot.step()
    clamping = broker(Scripted(column(0.9)), JOINT, gate={"remedy": Remedy.CLAMP})
    assert [0.1, 0.2, pytest.approx(0.3)] == Robot(clamping).walk(3)


def test_what_the_gate_refuses_is_not_followed_by_what_was_planned_after_it() -> None:
    """
    It was not sent. The next step looks again, and starts from where the robot is.
    """
    policy = Scripted(column(0.1, 0.5, 0.6), column(0.15))
    robot = Robot(broker(policy, JOINT, replan_every=3, blend=LinearBlend(overlap=2)))
    robot.step()
    with pytest.raises(UnsafeActionError) as error:
        robot.step()
    assert "violations" == error.value.reason
    assert 0.15 == robot.step().values.item()
    assert [0, 2] == robot.looked


def test_a_last_command_that_is_none_loses_no_step_in_silence() -> None:
    """
    A mistake of the caller's; the plan starts anew.
    """
    robot = Robot(broker(Scripted(column(1, 2, 3)), replan_every=3))
    robot.step()
    with pytest.raises(ContractError, match="last_command"):
        robot.broker.step(robot.observe, last_command=[math.nan])
    assert [1.0, 2.0] == robot.walk(2)


def test_an_interrupted_step_is_not_taken_for_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    """
    Ctrl-C in a notebook, and the loop is started again.
    """

    def interrupted(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    robot = Robot(broker(Scripted(column(1, 2, 3)), replan_every=3))
    robot.step()
    with monkeypatch.context() as patch:
        patch.setattr(SafetyGate, "vet", interrupted)
        with pytest.raises(KeyboardInterrupt):
            robot.step()
    assert [1.0, 2.0] == robot.walk(2)


def test_without_a_last_command_no_target_leaves() -> None:
    """
    S3: the first step is unchecked.
    """
    with pytest.raises(UnsafeActionError) as error:
        broker(Scripted(column(1))).step(Robot(None).observe, last_command=None)  # type: ignore[arg-type]
    assert "first_step_unchecked" == error.value.reason


def test_a_policy_that_fails_is_heard() -> None:
    """
    Unless its failures are tolerated, although something is left of its chunk.
    """
    failure = PolicyError("scripted", "is away")
    robot = Robot(broker(Scripted(column(1, 2, 3, 4), failure)))
    robot.walk(2)
    with pytest.raises(PolicyError) as error:
        robot.step()
    assert failure is error.value


def test_tolerated_failures_are_bridged_by_the_rest_of_the_chunk_before() -> None:
    """
    The policy is asked again at each step; once it answers, its failures are forgiven.
    """
    failure = PolicyError("scripted", "is away")
    policy = Scripted(column(1, 2, 3, 4, 5, 6), failure, failure, column(7, 8, 9), failure)
    robot = Robot(broker(policy, tolerate_failures=2))
    assert [1, 2, 3, 4, 7, 8, 9] == robot.walk(7)
    assert [0, 2, 3, 4, 6] == robot.looked
    assert 1 == robot.broker.failures


def test_failures_are_tolerated_as_often_as_was_said() -> None:
    """
    In a row; then the failure is raised, although something is left.
    """
    policy = Scripted(column(1, 2, 3, 4, 5, 6), PolicyError("scripted", "is away"))
    robot = Robot(broker(policy, tolerate_failures=2))
    assert [1, 2, 3, 4] == robot.walk(4)
    for failures in (3, 4):
        with pytest.raises(PolicyError, match="is away"):
            robot.step()
        assert failures == robot.broker.failures


def test_when_nothing_is_left_a_failure_is_raised_however_many_are_tolerated() -> None:
    """
    Nothing is made up; holding still is the controller's.
    """
    policy = Scripted(column(1, 2, 3), PolicyError("scripted", "is away"))
    robot = Robot(broker(policy, tolerate_failures=99))
    assert [1, 2, 3] == robot.walk(3)
    with pytest.raises(PolicyError, match="is away"):
        robot.step()
    with pytest.raises(PolicyError, match="is away"):
        Robot(broker(Scripted(PolicyError("p", "is away")), tolerate_failures=99)).step()


def test_failures_are_bridged_no_longer_than_the_gate_lets_a_chunk_be_executed() -> None:
    """
    The execution horizon is the gate's, and said once.
    """
    policy = Scripted(column(1, 2, 3, 4), PolicyError("scripted", "is away"))
    robot = Robot(broker(policy, gate={"execution_horizon": 3}, tolerate_failures=99))
    assert [1, 2, 3] == robot.walk(3)
    with pytest.raises(PolicyError):
        robot.step()


def test_the_age_of_what_bridges_a_failure_can_be_seen() -> None:
    """
    S16: a chunk carries when it was observed, and `hand_off` looks.
    """
    robot = Robot(
        broker(Scripted(column(1, 2, 3), PolicyError("scripted", "away")), tolerate_failures=9)
    )
    assert [0.0, 0.0, 0.0] == [robot.step().observed_at_s for _ in range(3)]


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_b4_an_answer_that_is_not_finite_is_a_failure_of_the_policy(bad: float) -> None:
    """
    It cannot be blended; it is raised, or bridged as any other failure.
    """
    policy = Scripted(column(1, 2, 3), column(9, bad))
    robot = Robot(broker(policy, blend=LinearBlend(overlap=1), tolerate_failures=1))
    assert [1, 2, 3] == robot.walk(3)
    with pytest.raises(PolicyError) as error:
        robot.step()
    assert f"scripted: answered with {bad} for 'x' in step 1" == str(error.value)


def test_other_errors_are_bugs_and_are_not_tolerated() -> None:
    """
    Of the policy, and of who looks; the plan is as it was.
    """
    robot = Robot(broker(Scripted(column(1, 2, 3), ZeroDivisionError()), tolerate_failures=9))
    robot.walk(2)
    with pytest.raises(ZeroDivisionError):
        robot.step()
    with pytest.raises(KeyError):
        broker(Scripted(column(1))).step(lambda: {}["front"], last_command=[0])  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        (None, "chunk: got NoneType, expected an ActionChunk"),
        (now([[1.0]], "y"), "chunk.names: got y, expected x, in this order"),
        (now([[1.0, 2.0]], "x", "y"), "chunk.names: got x, y, expected x, in this order"),
    ],
)
def test_an_answer_that_is_no_chunk_of_the_space_is_refused(answer: Any, problem: str) -> None:
    """
    That policy is of another robot, however often it is asked.
    """
    with pytest.raises(ContractError) as error:
        Robot(broker(Scripted(answer), tolerate_failures=9)).step()
    assert problem == str(error.value)


def test_b1_an_answer_to_another_observation_is_refused() -> None:
    """
    Nobody would know how many of its rows are past, nor how old it is.
    """
    with pytest.raises(ContractError) as error:
        Robot(broker(Scripted(chunk([[1.0]])))).step()
    assert (
        "chunk.observed_at_s: got 12.5, expected captured_at_s of the observation that the policy "
        "was shown, 0.0" == str(error.value)
    )


def test_s13_names_in_another_order_are_put_in_order_only_on_request() -> None:
    """
    The gate says whether.
    """
    dims = (joint(9.0, bound=9.0), GRIPPER)
    swapped = Scripted([[1.0, 5.0]], names=("gripper", "x"))
    with pytest.raises(ContractError, match=r"^chunk.names: got gripper, x, expected x, gripper"):
        Robot(broker(swapped, *dims), at=(0.0, 0.0)).step()
    ordered = broker(swapped, *dims, gate={"reorder": True})
    assert [5.0, 1.0] == Robot(ordered, at=(0.0, 0.0)).step().values[0].tolist()


def test_a_gripper_that_is_blended_is_never_half_closed() -> None:
    """
    The gate's space says what is discrete.
    """
    policy = Scripted([[0.0]] * 4, [[1.0]] * 4, names=("gripper",))
    made = broker(policy, GRIPPER, blend=LinearBlend(overlap=2))
    assert [0, 0, 0, 1] == Robot(made).walk(4)


def test_a_position_is_passed_on_to_the_gate() -> None:
    """
    Where changes may not lead out of, the gate must be told where the robot is.
    """
    slide = ActionDim(
        name="x",
        reference=Reference.DELTA,
        low=-0.1,
        high=0.1,
        max_step=0.1,
        position_low=0.0,
        position_high=1.0,
    )
    robot = Robot(broker(Scripted(column(0.1)), slide, replan_every=1))
    assert 0.1 == robot.step(position={"x": 0.5}).values.item()
    for refused in ({}, {"position": {"x": 0.95}}):
        with pytest.raises(UnsafeActionError):
            robot.step(**refused)


def test_s16_a_latch_trips_after_too_many_unsafe_steps() -> None:
    """
    "no \"too many consecutive clamps\" trip": each step that had to be clamped counts.
    """
    clamping = SafetyGate(space=space(JOINT), remedy=Remedy.CLAMP, execution_horizon=2)
    latch = SafetyLatch(clamping, max_consecutive=3)
    robot = Robot(ChunkBroker(Scripted(column(0.9, 0.9, 0.9)), latch, replan_every=2))
    assert [0.1, 0.2, 0.3] == pytest.approx(robot.walk(3))
    with pytest.raises(UnsafeActionError) as error:
        robot.step()
    assert "tripped" == error.value.reason
    latch.rearm()
    assert 0.4 == pytest.approx(robot.step().values.item())
    with pytest.raises(ContractError, match=r"^replan_every: got 3, expected at most"):
        ChunkBroker(Scripted(column(0)), latch, replan_every=3)


def test_a_new_episode_starts_from_nothing() -> None:
    """
    The policy is told, and what was left of its chunk is not executed.
    """
    policy = Scripted(column(1, 2, 3, 4), PolicyError("scripted", "away"), column(5, 6))
    robot = Robot(broker(policy, tolerate_failures=1, blend=LinearBlend(overlap=2)))
    robot.walk(3)
    robot.broker.reset()
    assert (1, 0) == (policy.resets, robot.broker.failures)
    assert [5.0, 6.0] == robot.walk(2)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"policy": object()}, "policy: got <object object at"),
        ({"gate": None}, "gate: got NoneType, expected a SafetyGate"),
        ({"gate": space(JOINT)}, "gate: got ActionSpace, expected a SafetyGate"),
        ({"replan_every": 0}, "replan_every: got 0, expected a whole number of at least 1"),
        ({"replan_every": 9}, "replan_every: got 9, expected at most execution_horizon of the "),
        ({"blend": "linear"}, "blend: got 'linear', expected a LinearBlend, an EnsembleBlend"),
        ({"tolerate_failures": -1}, "tolerate_failures: got -1, expected a whole number of at"),
        ({"tolerate_failures": True}, "tolerate_failures: got True, expected a whole number"),
    ],
)
def test_a_broker_without_a_gate_does_not_exist(change: dict[str, Any], problem: str) -> None:
    """
    Nor one with another argument that is none.
    """
    gate = SafetyGate(space=space(JOINT), execution_horizon=8)
    options = {"policy": Scripted(column(0)), "gate": gate, "replan_every": 2, **change}
    with pytest.raises(ContractError) as error:
        ChunkBroker(options.pop("policy"), options.pop("gate"), **options)
    assert str(error.value).startswith(problem)


@pytest.mark.parametrize(
    ("policy", "problem"),
    [
        (lambda seen: seen, "expected a Policy: an object with infer and reset, and info"),
        (None, "expected a Policy: an object with infer and reset, and info"),
        (Awaited(), "expected a Policy, not an asynchronous one"),
        (Scripted, "expected a Policy, not its class"),
        (SafetyGate(space=space(JOINT)), "expected a Policy: the gate comes after it"),
        (SafetyLatch(SafetyGate(space=space(JOINT))), "expected a Policy: the gate comes after it"),
    ],
)
def test_it_is_said_truly_what_is_wrong_with_a_policy(policy: Any, problem: str) -> None:
    """
    "expected a Policy, not an asynchronous one" was said of a function.
    """
    with pytest.raises(ContractError) as error:
        ChunkBroker(policy, SafetyGate(space=space(JOINT)), replan_every=1)
    assert str(error.value).startswith("policy: got ")
    assert str(error.value).endswith(problem)
    with pytest.raises(ContractError, match=r"^policy: got SafetyGate, .* comes after it$"):
        ChunkBroker(SafetyGate(space=space(JOINT)), Scripted(column(0)), replan_every=1)  # type: ignore[arg-type]


def of_robot(policy: Any, **more: Any) -> ChunkBroker:
    """Make a broker for a robot, with a gate of its embodiment."""
    gate = SafetyGate(embodiment=ROBOT, remedy=Remedy.CLAMP, **more)
    return ChunkBroker(policy, gate, replan_every=1)


def test_a_policy_that_says_it_is_for_another_robot_is_refused_before_it_moves_this_one() -> None:
    """
    All that differs is listed: what the broker does not read cannot be believed.
    """
    policy = Scripted([[0.0, 0.0]], names=("x", "y"))
    policy.info = PolicyInfo(
        name="other", action_names=("y", "x"), rate_hz=10, state_names=("x", "y")
    )
    with pytest.raises(ContractError) as error:
        of_robot(policy)
    assert str(error.value) == (
        "policy.info: action_names is y, x, expected that of 'two joints', x, y; "
        "state_names is x, y, expected that of 'two joints', x, y, battery; "
        "rate_hz is 10.0, expected that of 'two joints', 20.0"
    )
    policy.info = attrs.evolve(policy.info, rate_hz=20, state_names=None)
    of_robot(policy, reorder=True)
    policy.info = {"name": "other"}
    with pytest.raises(ContractError, match=r"^policy.info: got dict, expected a PolicyInfo"):
        of_robot(policy)
    del policy.info
    of_robot(policy)


def test_degrees_are_not_sent_to_a_robot_that_counts_in_radians() -> None:
    """
    The gate knows the unit of its space, and the policy says its own.
    """
    policy = Scripted(column(0.0))
    policy.info = PolicyInfo(name="p", action_names=("x",), action_units=("deg",))
    with pytest.raises(ContractError, match="action_units has 'deg' for 'x', expected 'rad'"):
        broker(policy, attrs.evolve(JOINT, unit="rad"))
    broker(policy, JOINT)


def test_an_observation_of_another_robot_is_not_shown_to_the_policy() -> None:
    """
    Where the gate knows the robot: its state, and its cameras.
    """
    policy = Scripted([[0.0, 0.0]] * 4, names=("x", "y"))
    made = of_robot(policy)
    with pytest.raises(ContractError, match=r"^state: got 2 numbers, expected the 3 of 'two join"):
        Robot(made, at=(0.0, 0.0)).step()
    seen = attrs.evolve(observation(), images={"wrist": PICTURE})
    with pytest.raises(ContractError, match=r"^images: got names with missing \['front'\]"):
        made.step(lambda: seen, last_command=[0.0, 0.0])
    assert [] == policy.asked
    assert made.step(observation, last_command=[0.0, 0.0]).report.safe_for_handoff


def test_a_policy_that_names_its_cameras_need_not_be_shown_all() -> None:
    """
    A robot may have more of them; a camera that the robot does not have is still a mistake.
    """
    robot = attrs.evolve(ROBOT, cameras=(*ROBOT.cameras, CameraSpec(name="wrist")))
    policy = Scripted([[0.0, 0.0]], names=("x", "y"))
    policy.info = PolicyInfo(name="scripted", cameras=ROBOT.cameras)
    made = ChunkBroker(policy, SafetyGate(embodiment=robot), replan_every=1)
    made.step(observation, last_command=[0.0, 0.0])
    unknown = attrs.evolve(observation(), images={"front": PICTURE, "back": PICTURE})
    with pytest.raises(ContractError, match=r"^images: got names with not known \['back'\]"):
        made.step(lambda: unknown, last_command=[0.0, 0.0])


def test_an_observation_from_before_the_last_one_is_refused() -> None:
    """
    The queue of a camera gives old frames; the same frame again is what a slow camera gives.
    """
    policy = Scripted([[0.0, 0.0]], names=("x", "y"))
    made = of_robot(policy)
    for at_s in (7.0, 7.0):
        made.step(lambda at_s=at_s: observation(at_s), last_command=[0.0, 0.0])  # type: ignore[misc]
    with pytest.raises(ContractError) as error:
        made.step(lambda: observation(6.5), last_command=[0.0, 0.0])
    assert str(error.value) == (
        "observation.captured_at_s: got 6.5 s, expected no time before that of the observation "
        "before, 7.0 s: reset() starts anew"
    )
    assert [7.0, 7.0] == policy.asked
    made.reset()
    made.step(lambda: observation(6.5), last_command=[0.0, 0.0])


def test_who_observes_is_a_function_that_gives_an_observation() -> None:
    """
    An observation in its place is said to be one, whether or not the policy is due.
    """
    robot = Robot(broker(Scripted(column(1, 2, 3))))
    robot.step()
    for wrong in (robot.observe(), None):
        with pytest.raises(ContractError, match=r"^observe: got .*, expected a function that obse"):
            robot.broker.step(wrong, last_command=[1.0])  # type: ignore[arg-type]
    robot.step()
    with pytest.raises(ContractError, match=r"^observation: got NoneType from observe, expected"):
        robot.broker.step(lambda: None, last_command=[2.0])  # type: ignore[arg-type, return-value]


def test_what_was_proposed_can_be_seen_also_if_it_was_refused() -> None:
    """
    To be recorded: what left the gate is not what came to it.
    """
    clamping = Robot(broker(Scripted(column(0.9)), JOINT, gate={"remedy": Remedy.CLAMP}))
    assert clamping.broker.proposed is None
    vetted = clamping.step()
    assert vetted.proposed is clamping.broker.proposed
    assert [[0.9]] == vetted.proposed.values.tolist()

    robot = Robot(broker(Scripted(column(0.1, 0.5), PolicyError("scripted", "away")), JOINT))
    robot.step()
    with pytest.raises(UnsafeActionError):
        robot.step()
    refused = robot.broker.proposed
    assert refused is not None
    assert [[0.5]] == refused.values.tolist()
    with pytest.raises(PolicyError):
        robot.step()
    assert robot.broker.proposed is None


numbers = st.sampled_from((math.nan, math.inf, -math.inf, 1e308, -0.0)) | st.floats(-1.2, 1.2)
answers = st.one_of(
    st.lists(numbers.map(lambda number: [number]), min_size=1, max_size=6),
    st.lists(st.floats(-0.3, 0.3).map(lambda number: [number]), min_size=1, max_size=6),
    st.builds(PolicyError, st.just("scripted"), st.just("away")),
)


@given(
    script=st.lists(answers, min_size=1, max_size=6),
    blend=st.sampled_from(BLENDS),
    remedy=st.sampled_from(Remedy),
    every=st.integers(1, 4),
    tolerated=st.integers(0, 3),
)
def test_whatever_a_policy_answers_what_leaves_keeps_all_limits(
    script: list[Any], blend: Any, remedy: Remedy, every: int, tolerated: int
) -> None:
    """
    From the last command on, step by step; all else is one of our errors.
    """
    made = broker(
        Scripted(*script),
        JOINT,
        gate={"remedy": remedy},
        replan_every=every,
        blend=blend,
        tolerate_failures=tolerated,
    )
    robot = Robot(made)
    for _ in range(12):
        before = robot.at.item()
        try:
            (now,) = robot.step().values.ravel().tolist()
        except (PolicyError, UnsafeActionError):
            assert before == robot.at.item()
            continue
        assert -1 <= now <= 1
        assert abs(now - before) <= 0.1 + 1e-6


def test_what_the_steps_act_on_can_be_recorded() -> None:
    """
    It is the observation that the newest chunk answers; and the gate is there to hold by.
    """
    made = broker(Scripted(column(1, 2, 3, 4)), replan_every=3)
    assert made.observation is None
    robot = Robot(made)
    seen = []
    for _ in range(4):
        robot.step()
        seen.append(made.observation.captured_at_s)
    assert [0, 0, 0, 3] == seen
    assert isinstance(made.gate, SafetyGate)
    made.reset()
    assert made.observation is None
