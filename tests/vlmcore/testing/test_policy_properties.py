"""`check_policy_properties`: any observation of a robot is answered or refused."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from vlmcore.contracts.embodiment import CameraSpec
from vlmcore.contracts.presets import find_embodiment
from vlmcore.errors import ContractError, ModelError
from vlmcore.policy.interface import PolicyInfo
from vlmcore.testing.policies import AsyncScriptedPolicy, ScriptedPolicy
from vlmcore.testing.policy_checks import PolicyCheckError
from vlmcore.testing.policy_properties import check_policy_properties

ROBOT = find_embodiment("generic_7dof_joint_gripper")
INFO = PolicyInfo(name="still", action_names=ROBOT.actions.names)
STILL = [[0.0] * 8]


def scripted(answer: Any, info: PolicyInfo = INFO) -> ScriptedPolicy:
    """Make a policy with one answer, or with a function."""
    return ScriptedPolicy(answer if callable(answer) else [answer], info=info)


@pytest.mark.parametrize(
    "make",
    [
        lambda: scripted(STILL),
        lambda: AsyncScriptedPolicy([STILL], info=INFO),
        lambda: scripted(lambda _: ModelError("pi0", "it does not fit into memory")),
        lambda: scripted([[float("nan")] * 8]),
    ],
)
def test_what_answers_or_refuses_keeps_it(make) -> None:
    """
    Async or not; NaN is for the gate; an error of vlmcore is a refusal.
    """
    check_policy_properties(make, ROBOT, max_examples=10)


def test_an_observation_that_breaks_it_is_found_and_shown_in_its_smallest_form() -> None:
    """
    Without its pixels.
    """

    def answer(observation):
        return [[1 / (observation.history - 2)] * 8]

    with pytest.raises(PolicyCheckError) as error:
        check_policy_properties(lambda: scripted(answer), ROBOT, max_examples=60)

    ((name, problem),) = error.value.failures
    assert "any observation of the robot is answered or refused" == name
    assert problem.startswith("infer raised ZeroDivisionError: ")
    assert "frames observation.images.front 2 x 1 x 1 x 3" in problem
    assert "state [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]" in problem
    assert isinstance(error.value.__cause__, ZeroDivisionError)


def test_a_chunk_for_another_robot_is_found() -> None:
    """
    By its names.
    """
    info = PolicyInfo(name="other", action_names=tuple("abcdefgh"))

    with pytest.raises(PolicyCheckError, match=r"the names are \('a', .* expected \('joint_0', "):
        check_policy_properties(lambda: scripted(STILL, info), ROBOT, max_examples=5)


def test_a_chunk_with_the_time_of_another_observation_is_found() -> None:
    """
    As one that is cached: every age that is computed from it would be wrong.
    """

    class Cached:
        def __init__(self) -> None:
            self.inner = scripted(STILL)
            self.info = INFO
            self.chunk: Any = None

        def infer(self, observation, /):
            self.chunk = self.chunk or self.inner.infer(observation)
            return self.chunk

        def reset(self) -> None:
            pass

        def close(self) -> None:
            pass

    with pytest.raises(PolicyCheckError, match="observed_at_s is "):
        check_policy_properties(Cached, ROBOT, max_examples=60)


def test_cameras_of_real_size_do_not_take_long() -> None:
    """
    Ten observations of three cameras of 480 x 640 are drawn within the patience of a person.
    """
    cameras = tuple(CameraSpec(name=name, height_px=480, width_px=640) for name in "abc")
    robot = attrs.evolve(ROBOT, cameras=cameras)

    check_policy_properties(lambda: scripted(STILL), robot, max_examples=10, patience_s=30)


def test_one_policy_is_shown_all_and_reset_before_each() -> None:
    """
    Making one may be dear.
    """
    made = []

    def make() -> ScriptedPolicy:
        made.append(scripted(STILL))
        return made[-1]

    check_policy_properties(make, ROBOT, max_examples=7)

    (policy,) = made
    assert (7, 7, True) == (len(policy.shown), policy.resets, policy.closed)


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"embodiment": "reach"}, "embodiment: got str, expected an Embodiment"),
        ({"max_examples": 0}, "max_examples: got 0, expected a whole number of at least 1"),
        ({"patience_s": -1}, "patience_s: got -1, expected a finite number above 0"),
    ],
)
def test_arguments_that_are_wrong_are_the_callers_mistake(arguments, problem) -> None:
    """
    Not the policy's.
    """
    wanted = {"make_policy": lambda: scripted(STILL), "embodiment": ROBOT, **arguments}
    with pytest.raises(ContractError) as error:
        check_policy_properties(**wanted)
    assert problem == str(error.value)
