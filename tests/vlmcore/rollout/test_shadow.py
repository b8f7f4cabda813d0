"""Tests of `vlmcore.rollout.shadow`."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

from episode_cases import NAN, ROBOT, observation, proposal
from rotation_cases import wrist
from vlmcore.contracts.actions import ActionChunk
from vlmcore.contracts.observation import Observation
from vlmcore.errors import ContractError, PolicyError
from vlmcore.policy.interface import ObservingPolicy, PolicyInfo
from vlmcore.rollout.recorded_policies import ConstantPolicy
from vlmcore.rollout.shadow import ShadowPolicy
from vlmcore.safety import SafetyGate
from vlmcore.testing import ScriptedPolicy

INFO = PolicyInfo(name="scripted", action_names=("x", "y"))
GATE = SafetyGate(embodiment=ROBOT)
PLAN = [[0.05, 0.0], [0.1, 0.0]]
STUCK_S = 10.0


def scripted(*answers: Any) -> ScriptedPolicy:
    """Make a policy that answers so."""
    return ScriptedPolicy(list(answers), info=INFO)


def shadow(policy: Any, candidate: Any, gate: SafetyGate = GATE, **options: Any) -> ShadowPolicy:
    """Put one beside the other; the robot is at zero."""
    return ShadowPolicy(
        policy, candidate, gate, **{"last_command": lambda _seen: [0.0, 0.0], **options}
    )


def asked(policy: ShadowPolicy, times: int = 1) -> Any:
    """Ask so often, each time with the candidate done, and report."""
    for _ in range(times):
        policy.infer(observation())
        assert policy.wait(STUCK_S)
    return policy.report()


def test_the_robot_keeps_its_policy() -> None:
    """
    What the candidate proposes never leaves.
    """
    both = shadow(scripted(PLAN), scripted([[0.9, 0.9]]))
    assert PLAN == both.infer(observation()).values.tolist()
    assert both.info.name == "scripted"
    both.close()


class LooksBack(ConstantPolicy):
    """A policy that is shown what is seen between its calls."""

    seen: Observation | None = None

    def steps_back(self) -> int:
        return 2

    def observe(self, observation: Observation, /) -> None:
        self.seen = observation


def test_a_policy_that_looks_back_is_shown_the_same_with_a_candidate_beside_it() -> None:
    """
    Else it would answer otherwise as soon as somebody compares.
    """
    policy, seen = LooksBack(proposal(PLAN)), observation()
    both = shadow(policy, scripted(PLAN))
    assert isinstance(both, ObservingPolicy)
    both.observe(seen)
    assert (2, seen) == (both.steps_back(), policy.seen)
    both.close()


def test_a_policy_that_does_not_look_back_does_not_with_a_candidate_either() -> None:
    """
    A broker would look at the robot in each step for nothing.
    """
    both = shadow(scripted(PLAN), LooksBack(proposal(PLAN)))
    assert not isinstance(both, ObservingPolicy)
    both.close()


def test_differences_are_told_for_each_dimension() -> None:
    """
    Mean and largest, over the steps that both have.
    """
    both = shadow(scripted(PLAN), scripted([[0.05, 0.3], [0.3, 0.1], [9.0, 9.0]], PLAN))
    report = asked(both, 2)
    both.close()
    assert (2, 0, 0) == (report.compared, report.dropped, report.failed)
    assert ("x", "y") == report.names
    np.testing.assert_allclose([0.05, 0.1], report.mean)
    np.testing.assert_allclose([0.2, 0.3], report.worst)
    assert "2 compared, 0 dropped, 0 failed" in str(report)


def test_the_gate_only_looks_at_both() -> None:
    """
    And counts what it would have refused.
    """
    both = shadow(scripted(PLAN, [[0.5, 0.5]]), scripted([[0.5, 0.0]]))
    report = asked(both, 2)
    both.close()
    assert (2, 1) == (report.candidate_refused, report.policy_refused)


def test_nan_of_the_candidate_is_counted_and_spoils_nothing() -> None:
    """
    The mean is of what can be compared.
    """
    both = shadow(scripted(PLAN), scripted([[NAN, 0.0], [0.2, 0.0]]))
    report = asked(both)
    both.close()
    np.testing.assert_allclose([0.1, 0.0], report.mean)
    assert [1, 0] == report.lost.tolist()


def test_nothing_compared_is_told_as_such() -> None:
    """
    Not as no difference.
    """
    both = shadow(scripted(PLAN), scripted(PLAN))
    assert np.isnan(both.report().mean).all()
    assert np.isnan(both.report().worst).all()
    both.close()


def test_a_rotation_is_compared_as_one() -> None:
    """
    By its angle, in radians; both signs of a quaternion are the same.
    """
    space = wrist()
    names = space.names
    start = np.where(np.arange(len(names)) == len(names) - 1, 1.0, 0.0)
    chunk = ActionChunk(values=[start], names=names, source="test", observed_at_s=0.0)
    turned = ActionChunk(values=[-start], names=names, source="test", observed_at_s=0.0)
    both = shadow(
        ConstantPolicy(chunk),
        ConstantPolicy(turned),
        SafetyGate(space=space),
        last_command=lambda _seen: start,
    )
    report = asked(both)
    both.close()
    assert report.last_failure == ""
    np.testing.assert_allclose(report.worst, 0.0, atol=1e-7)


def test_a_candidate_in_another_order_is_put_in_order() -> None:
    """
    And one with other dimensions is counted as failed.
    """
    turned = proposal([[0.0, 0.05], [0.0, 0.1]], names=("y", "x"))
    both = shadow(scripted(PLAN), scripted(turned, proposal([[0.0]], names=("z",))))
    report = asked(both, 2)
    both.close()
    assert (1, 1) == (report.compared, report.failed)
    assert [0.0, 0.0] == report.worst.tolist()
    assert "chunk.names" in report.last_failure


@pytest.mark.parametrize("error", [PolicyError("new", "tired"), KeyError("x"), SystemExit(3)])
def test_a_candidate_that_fails_harms_nobody(error: BaseException) -> None:
    """
    Whatever it raises is counted, and told without tokens.
    """

    def fail(_seen: Any) -> Any:
        raise error

    both = shadow(scripted(PLAN), ScriptedPolicy(fail, info=INFO))
    report = asked(both, 3)
    both.close()
    assert (0, 3) == (report.compared, report.failed)
    assert report.last_failure.startswith(type(error).__name__)


def test_a_candidate_that_is_busy_delays_nobody() -> None:
    """
    What it could not be shown is counted.
    """
    go = threading.Event()
    began = threading.Event()

    def wait(_seen: Any) -> Any:
        began.set()
        assert go.wait(STUCK_S)
        return PLAN

    both = shadow(scripted(PLAN), ScriptedPolicy(wait, info=INFO))
    both.infer(observation())
    assert began.wait(STUCK_S)
    for _ in range(5):
        both.infer(observation())
    assert not both.wait(0.0)
    go.set()
    assert both.wait(STUCK_S)
    report = both.report()
    both.close()
    assert (1, 5) == (report.compared, report.dropped)


def test_a_reset_reaches_both_before_they_are_asked_again() -> None:
    """
    An observation of the episode before is not shown in the next.
    """
    policy, candidate = scripted(PLAN), scripted(PLAN)
    both = shadow(policy, candidate)
    both.reset()
    asked(both)
    both.close()
    assert (1, 1) == (policy.resets, candidate.resets)


def test_both_are_closed_with_it() -> None:
    """
    Twice is no error, and a closed one refuses.
    """
    policy, candidate = scripted(PLAN), scripted(PLAN)
    both = shadow(policy, candidate)
    both.close()
    both.close()
    assert policy.closed
    assert candidate.closed
    with pytest.raises(PolicyError, match="closed"):
        both.infer(observation())


def test_an_error_of_the_policy_is_its_own() -> None:
    """
    The candidate is not shown what the policy could not answer.
    """
    candidate = scripted(PLAN)
    both = shadow(scripted(PolicyError("old", "tired")), candidate)
    with pytest.raises(PolicyError, match="tired"):
        both.infer(observation())
    both.close()
    assert candidate.shown == ()


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"policy": ScriptedPolicy}, "policy"),
        ({"candidate": 7}, "candidate"),
        ({"gate": ROBOT}, "gate"),
        ({"last_command": [0.0, 0.0]}, "last_command"),
    ],
)
def test_arguments_are_checked(options: dict[str, Any], field: str) -> None:
    """
    Before a thread is started.
    """
    before = threading.active_count()
    with pytest.raises(ContractError, match=field):
        shadow(**{"policy": scripted(PLAN), "candidate": scripted(PLAN), **options})
    assert before == threading.active_count()
