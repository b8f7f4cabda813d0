"""`check_policy`: each check passes for a policy that keeps its promises, and bites alone."""

import asyncio
import pickle
import time
from collections.abc import Callable
from typing import Any

import attrs
import numpy as np
import pytest

from vlmcore.contracts.embodiment import (
    ActionDim,
    ActionSpace,
    CameraSpec,
    Embodiment,
    LimitsSource,
    Reference,
)
from vlmcore.contracts.presets import PRESETS
from vlmcore.errors import ContractError, PolicyError
from vlmcore.policy.interface import PolicyInfo
from vlmcore.safety.report import ViolationKind
from vlmcore.testing.example_observations import example_observation
from vlmcore.testing.policies import AsyncScriptedPolicy, ScriptedPolicy
from vlmcore.testing.policy_checks import (
    POLICY_CHECKS,
    PolicyCheckError,
    check_policy,
    vet_proposal,
)

ROBOT = Embodiment(
    name="reach",
    state_names=("lift", "x", "grip"),
    actions=ActionSpace(
        dims=(
            ActionDim(name="lift", unit="m", low=0.2, high=0.6, max_step=0.1),
            ActionDim(
                name="x", unit="m", low=-0.1, high=0.1, max_step=0.1, reference=Reference.DELTA
            ),
            ActionDim(name="grip", low=0.0, high=1.0, levels=(0.0, 1.0)),
        ),
        rate_hz=20,
    ),
    cameras=(CameraSpec(name="front"), CameraSpec(name="wrist", height_px=6, width_px=8)),
    limits_source=LimitsSource.DATASET,
)
INFO = PolicyInfo(
    name="reacher",
    action_names=ROBOT.actions.names,
    action_units=("m", "m", ""),
    state_names=ROBOT.state_names,
    cameras=ROBOT.cameras,
    horizon=2,
    rate_hz=20,
)
SEEN = example_observation(ROBOT)
SAFE = [[0.4, 0.0, 0.0], [0.4, 0.05, 1.0]]


class Wrapped:
    """A policy that keeps its promises; each mutant breaks one of them."""

    reported = INFO

    def __init__(self) -> None:
        self.inner = ScriptedPolicy([SAFE], info=self.reported)

    @property
    def info(self) -> Any:
        return self.inner.info

    def infer(self, observation, /):
        return self.inner.infer(observation)

    def reset(self) -> None:
        self.inner.reset()

    def close(self) -> None:
        self.inner.close()


class WithoutReset(Wrapped):
    reset = property()  # type: ignore[assignment]


class HalfAsync(Wrapped):
    closed_before = False

    def close(self):
        self.inner.close()
        return asyncio.sleep(0)


class Renamed(Wrapped):
    """Its metadata counts."""

    @property
    def info(self):
        return attrs.evolve(INFO, metadata={"asked": len(self.inner.shown)})


class AnotherRate(Wrapped):
    reported = attrs.evolve(INFO, rate_hz=50)


class OtherUnits(Wrapped):
    reported = attrs.evolve(INFO, action_units=("m", "mm", ""))


class OtherCamera(Wrapped):
    reported = attrs.evolve(INFO, cameras=(*INFO.cameras[:1], CameraSpec(name="head")))


class LargerCamera(Wrapped):
    reported = attrs.evolve(INFO, cameras=(CameraSpec(name="wrist", height_px=480, width_px=640),))


class OutOfOrder(Wrapped):
    def infer(self, observation, /):
        return attrs.evolve(super().infer(observation), names=("x", "lift", "grip"))


class TooLong(Wrapped):
    def infer(self, observation, /):
        chunk = super().infer(observation)
        return attrs.evolve(chunk, values=[*SAFE, [0.4, 0.0, 1.0]])


class Anonymous(Wrapped):
    def infer(self, observation, /):
        return attrs.evolve(super().infer(observation), source="model")


class Timeless(Wrapped):
    """It stamps the time of the first observation on all."""

    def infer(self, observation, /):
        chunk = super().infer(observation)
        first = self.inner.shown[0]
        return attrs.evolve(chunk, observed_at_s=first.captured_at_s)


class Meddler(Wrapped):
    def infer(self, observation, /):
        chunk = super().infer(observation)
        object.__setattr__(observation, "instruction", "do something else")
        return chunk


class Recycler(Wrapped):
    """One chunk for all answers, as a buffer that is filled again."""

    buffer: Any = None

    def infer(self, observation, /):
        chunk = super().infer(observation)
        if self.buffer is None:
            self.buffer = chunk
        for field in attrs.asdict(chunk, recurse=False):
            object.__setattr__(self.buffer, field, getattr(chunk, field))
        return self.buffer


class ResetsWhatIsThere(Wrapped):
    def reset(self) -> None:
        if not self.inner.shown and not self.inner.closed:
            raise AttributeError("'NoneType' object has no attribute 'clear'")
        super().reset()


class Remembers(Wrapped):
    """The first chunk of its life is as long as it says; after the third it forgets a step."""

    reported = attrs.evolve(INFO, horizon=None)

    def infer(self, observation, /):
        chunk = super().infer(observation)
        return attrs.evolve(chunk, values=SAFE[:1]) if self.inner.resets else chunk


class OneFrame(Wrapped):
    def infer(self, observation, /):
        for frames in observation.images.values():
            frames.reshape(frames.shape[1:])
        return super().infer(observation)


class AsciiOnly(Wrapped):
    def infer(self, observation, /):
        observation.instruction.encode("ascii")
        return super().infer(observation)


class Obliging(Wrapped):
    """It takes as many numbers as it knows of, and fills up the rest."""

    def infer(self, observation, /):
        if len(observation.state) != 3:
            observation = attrs.evolve(observation, state=[0.0, 0.0, 0.0])
        return super().infer(observation)


class StateByIndex(Wrapped):
    def infer(self, observation, /):
        assert len(observation.state) >= 3 or observation.state[2]
        return super().infer(observation)


class AnyCamera(Wrapped):
    def infer(self, observation, /):
        if "front" not in observation.images:
            observation = attrs.evolve(observation, images=SEEN.images)
        return super().infer(observation)


class Sulky(Wrapped):
    refused = False

    def infer(self, observation, /):
        try:
            return super().infer(observation)
        except ContractError:
            self.refused = True
            raise
        finally:
            if self.refused and observation.state.shape == (3,) and len(observation.images) == 2:
                raise PolicyError("reacher", "its queue is broken")


class ClosesOnce(Wrapped):
    def close(self) -> None:
        if self.inner.closed:
            raise ValueError("already closed")
        super().close()


class Undead(Wrapped):
    def close(self) -> None:
        pass


class ClosedByAccident(Wrapped):
    def infer(self, observation, /):
        if self.inner.closed:
            raise AttributeError("'NoneType' object has no attribute 'send'")
        return super().infer(observation)


class Contrary(Wrapped):
    """It refuses with an error that says nothing about policies."""

    def infer(self, observation, /):
        if self.inner.closed:
            raise ContractError("observation", "no")
        return super().infer(observation)


class ListOfNumbers(Wrapped):
    def infer(self, observation, /):
        return super().infer(observation).values.tolist()


class InPlace(Wrapped):
    def infer(self, observation, /):
        observation.state[0] = 0.0
        return super().infer(observation)


class InfoAsDict(Wrapped):
    @property
    def info(self):
        return {"name": "reacher"}


# The check that finds it, what makes it, and what is said.
BROKEN: list[tuple[str, Callable[[], Any], str]] = [
    ("it has the methods of a policy", HalfAsync, "close is async, expected plain, as in Policy"),
    ("what it reports does not change", Renamed, "after infer info is metadata"),
    ("what it reports fits the robot", AnotherRate, "info.rate_hz is 50.0, expected that of"),
    ("what it reports fits the robot", OtherUnits, "info.action_units has 'mm' for 'x', expected"),
    ("a chunk has the names that are expected", OutOfOrder, "the names are ('x', 'lift', 'grip')"),
    ("a chunk has the horizon that is reported", TooLong, "3 steps came, expected those of info,"),
    ("a chunk names the policy as its source", Anonymous, "source is 'model', expected the name"),
    ("a chunk says when its observation was captured", Timeless, "observed_at_s is 0.0, expected"),
    ("an observation is left as it is", Meddler, "infer changed the observation"),
    ("a chunk is left as it is", Recycler, "the first chunk changed when a second one"),
    ("a reset before the first observation is no error", ResetsWhatIsThere, "reset raised Attrib"),
    ("a reset starts the episode over", Remembers, "gives shape [1, 3], expected"),
    ("a history of frames is answered or refused", OneFrame, "infer raised ValueError: cannot"),
    ("odd observations are answered or refused", AsciiOnly, "a task in other scripts: infer raise"),
    ("a state that does not fit is refused", Obliging, "a number too many is answered, expected"),
    ("a state that does not fit is refused", StateByIndex, "too few: infer raised IndexError"),
    ("cameras that do not fit are refused", AnyCamera, "no camera that it knows is answered"),
    ("a refusal leaves it usable", Sulky, "after a state with a number too many: infer raised Pol"),
    ("closing twice is no error", ClosesOnce, "close raised ValueError: already closed"),
    ("once closed it refuses work", Undead, "infer answers after close, expected a PolicyError"),
    ("once closed it refuses work", ClosedByAccident, "infer raised AttributeError"),
    ("once closed it refuses work", Contrary, "infer after close: raised ContractError: observa"),
]

# What nothing can be said without: other checks fail for the same reason, or for one like it.
BROKEN_THROUGHOUT: list[tuple[str, Callable[[], Any], str]] = [
    ("an observation is answered with a chunk", ListOfNumbers, "infer gave list, expected an"),
    ("an observation is answered with a chunk", InPlace, "copy what you change"),
    ("an observation is answered with a chunk", OtherCamera, "infer raised ContractError: images"),
    ("it reports what it is", InfoAsDict, "info is {'name': 'reacher'}, expected a PolicyInfo"),
    ("it has the methods of a policy", WithoutReset, "WithoutReset has no reset"),
    ("it has the methods of a policy", object, "object has no info"),
]


@pytest.mark.parametrize("check", POLICY_CHECKS, ids=lambda check: check.name)
@pytest.mark.parametrize("kind", [ScriptedPolicy, AsyncScriptedPolicy, Wrapped])
def test_a_policy_that_keeps_its_promises_passes(check, kind) -> None:
    """
    Sync or async, whatever it is made of.
    """

    def make() -> Any:
        return Wrapped() if kind is Wrapped else kind([SAFE], info=INFO)

    check(make, SEEN, embodiment=ROBOT, deterministic=True, patience_s=20)


@pytest.mark.parametrize(("name", "make", "problem"), BROKEN)
def test_a_broken_promise_is_found_by_its_check_alone(name, make, problem) -> None:
    """
    A policy that breaks one promise fails the check of that name and no other one.
    """
    with pytest.raises(PolicyCheckError) as error:
        check_policy(make, SEEN, embodiment=ROBOT, patience_s=20)

    assert [name] == [failed for failed, _ in error.value.failures]
    assert problem in error.value.failures[0][1]
    assert f"{name}: {error.value.failures[0][1]}" == str(error.value)


@pytest.mark.parametrize(("name", "make", "problem"), BROKEN_THROUGHOUT)
def test_what_breaks_everything_is_said_where_it_begins(name, make, problem) -> None:
    """
    All failures are listed; those for the same reason are named together.
    """
    with pytest.raises(PolicyCheckError) as error:
        check_policy(make, SEEN, embodiment=ROBOT, patience_s=20)

    found = dict(error.value.failures)
    assert problem in found[name]
    assert len(found) > 2
    assert f"{len(found)} promises are broken" == str(error.value).splitlines()[0]
    assert "and for the same reason: " in str(error.value)


def test_every_check_has_a_policy_that_fails_it() -> None:
    """
    A check that cannot fail is decoration.
    """
    bites = {name for name, _, _ in (*BROKEN, *BROKEN_THROUGHOUT)}
    assert {check.name for check in POLICY_CHECKS} == bites


def test_a_larger_camera_than_the_robot_has_is_found() -> None:
    """
    Before any frame is shown.
    """
    with pytest.raises(PolicyCheckError, match="'wrist' with 480 x 640 pixels, expected 6 x 8"):
        check_policy(LargerCamera, SEEN, embodiment=ROBOT)


def test_the_report_names_what_passed_and_what_the_gate_finds() -> None:
    """
    The state stands for the last command.
    """
    report = check_policy(Wrapped, SEEN, embodiment=ROBOT)

    assert tuple(check.name for check in POLICY_CHECKS) == report.passed
    assert report.safety is not None
    assert 0 == report.safety.total
    assert str(report) == "20 promises are kept; the gate finds: reacher, 2 x 3 values: all kept"


def test_a_policy_may_propose_nan() -> None:
    """
    It only proposes: the gate finds it, and the report says so.
    """

    def make() -> ScriptedPolicy:
        return ScriptedPolicy([[[np.nan] * 3, SAFE[1]]], info=INFO)

    report = check_policy(make, SEEN, embodiment=ROBOT, deterministic=True)

    assert 3 == report.safety.counts[ViolationKind.NON_FINITE]


def test_without_an_embodiment_what_the_policy_says_is_held_against() -> None:
    """
    The check about the robot is left out, and nothing is vetted.
    """
    report = check_policy(AnotherRate, SEEN)

    assert "what it reports fits the robot" not in report.passed
    assert len(POLICY_CHECKS) - 1 == len(report.passed)
    assert (None, "19 promises are kept") == (report.safety, str(report))


def test_a_policy_that_says_nothing_about_itself_may_answer_everything() -> None:
    """
    Only what is declared must be refused where it does not fit.
    """
    check_policy(lambda: ScriptedPolicy([Wrapped().infer(SEEN)]), SEEN)


def test_the_same_values_are_asked_for_only_where_wanted() -> None:
    """
    A policy that samples keeps its promises, too.
    """

    def make() -> ScriptedPolicy:
        numbers = np.random.default_rng()
        return ScriptedPolicy(lambda _: numbers.uniform(0.3, 0.5, (2, 3)), info=INFO)

    check_policy(make, SEEN)
    with pytest.raises(PolicyCheckError, match="observation gives other values"):
        check_policy(make, SEEN, deterministic=True)


def test_a_factory_may_be_awaited() -> None:
    """
    A client that connects when it is made.
    """

    async def connect() -> AsyncScriptedPolicy:
        await asyncio.sleep(0)
        return AsyncScriptedPolicy([SAFE], info=INFO)

    assert 20 == len(check_policy(connect, SEEN, embodiment=ROBOT).passed)


def test_a_plain_policy_may_start_a_loop_of_its_own() -> None:
    """
    As one that wraps an async client.
    """

    class Blocking(Wrapped):
        def infer(self, observation, /):
            chunk = super().infer(observation)
            return asyncio.run(asyncio.sleep(0, chunk))

    check_policy(Blocking, SEEN, embodiment=ROBOT)


def test_an_async_policy_whose_infer_is_plain_is_found() -> None:
    """
    ``await policy.infer(...)`` would fail.
    """

    class Forgot(Wrapped):
        async def reset(self) -> None:  # type: ignore[override]
            self.inner.reset()

        async def aclose(self) -> None:
            self.inner.close()

        close = property()  # type: ignore[assignment]

    with pytest.raises(PolicyCheckError, match="infer is plain, expected async, as in AsyncPolicy"):
        check_policy(Forgot, SEEN)


def test_tasks_that_an_async_policy_leaves_are_ended() -> None:
    """
    So that the next check begins with nothing running.
    """
    ended = []

    class Chatty(AsyncScriptedPolicy.__base__):  # type: ignore[misc, name-defined]
        async def infer(self, observation, /):
            async def keep_alive() -> None:
                try:
                    await asyncio.sleep(3600)
                finally:
                    ended.append(True)

            self.task = asyncio.create_task(keep_alive())
            await asyncio.sleep(0)
            return self._take(observation)

        async def reset(self) -> None:
            self._start_over()

        async def aclose(self) -> None:
            self._closed = True

    vet_proposal(lambda: Chatty([SAFE], info=INFO), SEEN, ROBOT)

    assert [True] == ended


def test_a_policy_that_waits_for_ever_fails_and_does_not_hang_the_tests() -> None:
    """
    After the patience that was given.
    """

    class Stuck(Wrapped):
        def infer(self, observation, /):
            time.sleep(5)
            return super().infer(observation)

    with pytest.raises(PolicyCheckError, match=r"no end within 0\.1 s: something is waited for"):
        vet_proposal(Stuck, SEEN, ROBOT, patience_s=0.1)


def test_a_timeout_of_the_policy_is_not_taken_for_one_of_the_check() -> None:
    """
    Both are `TimeoutError` for Python.
    """

    class Late(Wrapped):
        def infer(self, _observation, /):
            raise TimeoutError("the server is silent")

    with pytest.raises(PolicyCheckError, match="infer raised TimeoutError: the server is silent"):
        vet_proposal(Late, SEEN, ROBOT, patience_s=20)


def test_what_was_raised_is_the_cause_and_its_line_is_named() -> None:
    """
    The line is in the file of the policy, not in a library that it calls.
    """

    class Misshapen(Wrapped):
        def infer(self, observation, /):
            np.reshape(observation.state, (7, 7))

    with pytest.raises(PolicyCheckError) as error:
        check_policy(Misshapen, SEEN)

    problem = dict(error.value.failures)["an observation is answered with a chunk"]
    assert problem.startswith("infer raised ValueError: cannot reshape array of size 3")
    line = Misshapen.infer.__code__.co_firstlineno + 1
    assert problem.endswith(f"(test_policy_checks.py:{line})")
    assert isinstance(error.value.__cause__, ValueError)


def test_a_factory_that_fails_is_said_once() -> None:
    """
    Every check fails for the same reason.
    """

    def make() -> Wrapped:
        raise RuntimeError("no accelerator")

    with pytest.raises(PolicyCheckError) as error:
        check_policy(make, SEEN)

    assert len(POLICY_CHECKS) - 1 == len(error.value.failures)
    assert 3 == len(str(error.value).splitlines())
    assert "making it raised RuntimeError: no accelerator" in str(error.value)


def test_a_policy_that_changes_what_it_sees_changes_it_for_itself_only() -> None:
    """
    Each check shows a copy, so that one that meddles does not break the checks after it.
    """
    with pytest.raises(PolicyCheckError):
        check_policy(Meddler, SEEN)
    assert "pick up the cube" == SEEN.instruction


def test_each_check_gets_a_fresh_policy_and_closes_it() -> None:
    """
    What one check did is nothing to the next one.
    """
    made: list[ScriptedPolicy] = []

    def make() -> ScriptedPolicy:
        made.append(ScriptedPolicy([SAFE], info=INFO))
        return made[-1]

    check_policy(make, SEEN, embodiment=ROBOT)

    assert len(POLICY_CHECKS) + 1 == len(made)
    assert all(policy.closed for policy in made)


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"observation": "seen"}, "observation: got str, expected an Observation"),
        ({"embodiment": "reach"}, "embodiment: got str, expected an Embodiment"),
        ({"embodiment": PRESETS["ALOHA bimanual template"]}, "state: got 3 numbers, expected the"),
        ({"patience_s": 0}, "patience_s: got 0, expected a finite number above 0"),
    ],
)
def test_arguments_that_do_not_fit_are_the_callers_mistake(arguments, problem) -> None:
    """
    Not the policy's.
    """
    with pytest.raises(ContractError) as error:
        check_policy(**{"make_policy": Wrapped, "observation": SEEN, **arguments})
    assert str(error.value).startswith(problem)


def test_a_check_about_the_robot_needs_one() -> None:
    """
    It does not pass because there is nothing to hold against.
    """
    (check,) = (check for check in POLICY_CHECKS if check.needs_embodiment)
    with pytest.raises(ContractError, match="embodiment: got None, expected one"):
        check(Wrapped, SEEN)


def test_nobody_knows_the_last_command_where_the_state_is_in_other_terms() -> None:
    """
    Then the gate says that each target starts from nowhere.
    """
    robot = attrs.evolve(ROBOT, state_names=("q0", "q1", "q2"))
    make = lambda: ScriptedPolicy([SAFE], info=PolicyInfo(name="p", action_names=INFO.action_names))  # noqa: E731

    report = vet_proposal(make, SEEN, robot)

    assert 2 == report.counts[ViolationKind.START_UNKNOWN]


def test_a_chunk_for_another_robot_cannot_be_vetted() -> None:
    """
    That is a failure of the policy, with the words of the gate.
    """
    with pytest.raises(PolicyCheckError, match="a chunk can be vetted: raised ContractError"):
        vet_proposal(OutOfOrder, SEEN, ROBOT)


@pytest.mark.parametrize("robot", PRESETS.values(), ids=lambda robot: robot.name)
def test_a_policy_that_stands_still_passes_for_every_template(robot) -> None:
    """
    With nothing for the gate to find but a start that nobody knows.
    """
    info = PolicyInfo(name="still", action_names=robot.actions.names)
    seen = example_observation(robot)
    still = dict(zip(robot.state_names, seen.state.tolist(), strict=True))
    command = [
        0.0 if dim.reference.is_change else still.get(dim.name, 0.0) for dim in robot.actions.dims
    ]

    report = check_policy(lambda: ScriptedPolicy([[command]], info=info), seen, embodiment=robot)

    found = {kind for kind, count in report.safety.counts.items() if count}
    assert found <= {ViolationKind.START_UNKNOWN}


def test_a_failure_crosses_process_boundaries() -> None:
    """
    Test runners that use several processes pickle it.
    """
    error = PolicyCheckError((("closing twice is no error", "it raised"), ("it answers", "no")))

    copy = pickle.loads(pickle.dumps(error))

    assert (str(error), error.failures) == (str(copy), copy.failures)
