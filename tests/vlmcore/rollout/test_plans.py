"""Tests of `vlmcore.rollout.plans`."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from rollout_cases import column
from safety_cases import GRIPPER, JOINT, WHEEL, chunk, space
from vlmcore.contracts.actions import ActionChunk, Stream
from vlmcore.errors import ContractError
from vlmcore.rollout import ActionPlan, EnsembleBlend, LinearBlend

BLENDS = [None, LinearBlend(overlap=3), EnsembleBlend()]


def taken(plan: ActionPlan, count: int = 1) -> list[float]:
    """Take steps, and list the only dimension."""
    return plan.next(count).values.ravel().tolist()


def test_steps_are_taken_one_after_the_other() -> None:
    """
    One at a time or several at once; the plan counts.
    """
    plan = ActionPlan(space=None)
    assert (0, 0, None) == (plan.step, plan.remaining, plan.observed_at_step)
    plan.offer(column(0, 1, 2, 3), observed_at_step=0)
    assert (0, 4, 0) == (plan.step, plan.remaining, plan.observed_at_step)
    assert [0.0] == taken(plan)
    assert [1.0, 2.0] == taken(plan, 2)
    assert (3, 1) == (plan.step, plan.remaining)


@pytest.mark.parametrize("blend", BLENDS)
def test_b1_rows_that_were_taken_since_the_observation_are_dropped(blend: Any) -> None:
    """
    As many as were really taken, not as an estimate of the delay says.
    """
    plan = ActionPlan(space=None, blend=blend)
    plan.offer(column(*range(9)), observed_at_step=0)
    assert [0.0, 1.0, 2.0, 3.0] == taken(plan, 4)
    plan.offer(column(*range(2, 20)), observed_at_step=2)
    assert [float(step) for step in range(4, 20)] == pytest.approx(taken(plan, 16))


@pytest.mark.parametrize("blend", BLENDS)
def test_b1_a_chunk_that_is_past_as_a_whole_is_refused_and_the_old_one_goes_on(blend: Any) -> None:
    """
    Inference took longer than what it proposed.
    """
    plan = ActionPlan(space=None, blend=blend)
    plan.offer(column(*range(9)), observed_at_step=0)
    plan.next(4)
    with pytest.raises(ContractError) as error:
        plan.offer(column(7, 7, 7), observed_at_step=1)
    assert "chunk: got 3 steps from step 1 on at step 4, expected some that are not past" == str(
        error.value
    )
    assert (0, [4.0, 5.0]) == (plan.observed_at_step, taken(plan, 2))


@pytest.mark.parametrize(("blend", "left"), [(None, 0), (EnsembleBlend(), 1)])
def test_the_old_chunk_goes_on_until_a_new_one_is_there(blend: Any, left: int) -> None:
    """
    Then it is followed no more, also where it was longer; an ensemble goes on with it.
    """
    plan = ActionPlan(space=None, blend=blend)
    plan.offer(column(*[5] * 5), observed_at_step=0)
    assert [5.0, 5.0] == taken(plan, 2)
    plan.offer(column(5, 5), observed_at_step=2)
    assert [5.0, 5.0] == taken(plan, 2)
    assert left == plan.remaining


def test_a_new_chunk_is_faded_in_from_the_rest_of_the_old_one() -> None:
    """
    Over as many steps as both have.
    """
    plan = ActionPlan(space=None, blend=LinearBlend(overlap=2))
    plan.offer(column(0, 0, 0, 0), observed_at_step=0)
    plan.next()
    plan.offer(column(9, 9, 9, 9), observed_at_step=1)
    assert [3.0, 6.0, 9.0, 9.0] == pytest.approx(taken(plan, 4))


def test_an_ensemble_averages_all_that_was_predicted_for_a_step() -> None:
    """
    Two answers that arrive together count as two.
    """
    plan = ActionPlan(space=None, blend=EnsembleBlend(m=0.0))
    plan.offer(column(0, 0, 0, 0), observed_at_step=0)
    assert [0.0, 0.0] == taken(plan, 2)
    plan.offer(column(3, 3, 3), observed_at_step=1)
    plan.offer(column(6, 6, 6), observed_at_step=2)
    assert (3, [3.0, 3.0, 6.0]) == (plan.remaining, taken(plan, 3))


def test_angles_and_grippers_are_blended_as_what_they_are() -> None:
    """
    If the plan is told the space.
    """
    for blend in (LinearBlend(overlap=1), EnsembleBlend(m=-0.01)):
        plan = ActionPlan(blend=blend, space=space(WHEEL, GRIPPER))
        plan.offer(chunk([[2.9, 0.0]] * 2, "turn", "gripper"), observed_at_step=0)
        plan.next()
        plan.offer(chunk([[-2.9, 1.0]], "turn", "gripper"), observed_at_step=1)
        assert [3.0, 1.0] == pytest.approx(np.abs(plan.next().values[0]).tolist(), abs=1e-3)


def test_a_chunk_may_be_blended_beyond_where_it_may_be_executed() -> None:
    """
    Else nothing would be left to blend with, where a policy is asked as often as that.
    """
    plan = ActionPlan(space=None, blend=LinearBlend(overlap=1), execution_horizon=2)
    plan.offer(column(0, 0, 0, 0), observed_at_step=0)
    assert 2 == plan.remaining
    plan.next(2)
    assert 0 == plan.remaining
    plan.offer(column(4, 4, 4, 4), observed_at_step=2)
    assert (2, [2.0, 4.0]) == (plan.remaining, taken(plan, 2))


def test_the_execution_horizon_counts_from_the_observation() -> None:
    """
    What came late may be executed for as much less.
    """
    plan = ActionPlan(space=None, execution_horizon=3)
    plan.offer(column(*range(9)), observed_at_step=0)
    plan.next(2)
    plan.offer(column(*range(1, 9)), observed_at_step=1)
    assert (2, [2.0, 3.0]) == (plan.remaining, taken(plan, 2))
    plan.clear()
    with pytest.raises(ContractError, match="got 3 steps from step 1 on at step 4, expected some"):
        plan.offer(column(*range(1, 9)), observed_at_step=1)


def test_what_leaves_is_of_the_newest_chunk_and_not_vetted() -> None:
    """
    Its source, streams and time of observation.
    """
    plan = ActionPlan(space=None, blend=LinearBlend(overlap=4))
    plan.offer(column(0, 0, 0), observed_at_step=0)
    plan.next()
    arm = (Stream(name="arm", start=0, end=1),)
    new = ActionChunk(
        values=[[1.0]] * 3, names=("x",), source="new", observed_at_s=20.0, streams=arm
    )
    plan.offer(new, observed_at_step=1)
    came = plan.next(2)
    assert (ActionChunk, "new", 20.0, arm) == (
        type(came),
        came.source,
        came.observed_at_s,
        came.streams,
    )


def test_a_plan_that_was_cleared_goes_on_counting() -> None:
    """
    What comes next starts at once, and may answer the observation of this very step.
    """
    for blend in BLENDS:
        plan = ActionPlan(space=None, blend=blend)
        plan.offer(column(0, 0, 0), observed_at_step=0)
        plan.next(2)
        plan.offer(column(1, 1), observed_at_step=2)
        plan.clear()
        assert (2, 0, None) == (plan.step, plan.remaining, plan.observed_at_step)
        plan.offer(column(5, 6, 7), observed_at_step=2)
        assert [5.0, 6.0, 7.0] == taken(plan, 3)


@pytest.mark.parametrize("blend", BLENDS)
@pytest.mark.parametrize(
    ("offered", "observed_at_step", "problem"),
    [
        ([[0.0]], 1, "chunk: got list, expected an ActionChunk"),
        (column(0, name="y"), 1, "chunk.names: got y, expected x, in this order"),
        (column(0, 0, 0), 3, "observed_at_step: got 3, expected a whole number from 0 to 2"),
        (column(0, 0, 0), -1, "observed_at_step: got -1, expected a whole number from 0 to 2"),
        (column(0, 0, 0), 1.0, "observed_at_step: got 1.0, expected a whole number from 0 to 2"),
        (column(0, 0, 0), 0, "observed_at_step: got 0, expected a later one than that of the"),
        (column(0, 0, math.nan), 1, "chunk.values[2][0]: got nan for 'x', expected finite"),
    ],
)
def test_a_chunk_that_is_refused_changes_nothing(
    blend: Any, offered: Any, observed_at_step: Any, problem: str
) -> None:
    """
    The plan goes on as it would have; NaN in rows that are past is no matter.
    """
    plan = ActionPlan(space=None, blend=blend)
    plan.offer(column(0, 1, 2, 3), observed_at_step=0)
    plan.next(2)
    with pytest.raises(ContractError) as error:
        plan.offer(offered, observed_at_step=observed_at_step)
    assert str(error.value).startswith(problem)
    assert [2.0] == taken(plan)
    plan.offer(column(math.nan, math.nan, 3, 4), observed_at_step=1)
    assert [3.0, 4.0] == taken(plan, 2)


def test_names_are_those_of_the_space_from_the_start() -> None:
    """
    Also after a plan was cleared; without a space they may then be others.
    """
    plan = ActionPlan(space=space(JOINT))
    for _ in range(2):
        with pytest.raises(ContractError, match=r"^chunk.names: got y, expected x"):
            plan.offer(column(0, name="y"), observed_at_step=0)
        plan.clear()
    free = ActionPlan(space=None)
    free.offer(column(0), observed_at_step=0)
    free.clear()
    free.offer(column(0, name="y"), observed_at_step=0)
    assert ("y",) == free.next().names


def test_a_plan_says_what_is_left_of_it() -> None:
    """
    Not "expected at most 0 steps", which is said of no number that one could ask for.
    """
    plan = ActionPlan(space=None)
    with pytest.raises(ContractError, match=r"^count: got 1, but there is no chunk: offer a new"):
        plan.next()
    plan.offer(column(7), observed_at_step=0)
    with pytest.raises(ContractError, match=r"^count: got 2, expected at most the 1 that are left"):
        plan.next(2)
    plan.next()
    with pytest.raises(ContractError, match=r"^count: got 1, but no step of the chunk is left"):
        plan.next()


@pytest.mark.parametrize("count", [2, 0, -1, True, 1.0, "1"])
def test_more_steps_than_there_are_cannot_be_taken(count: Any) -> None:
    """
    Nor fewer than one; nothing is taken then.
    """
    plan = ActionPlan(space=None)
    with pytest.raises(ContractError, match=r"^count: got"):
        plan.next(count)
    plan.offer(column(7), observed_at_step=0)
    with pytest.raises(ContractError, match=r"^count: got"):
        plan.next(count)
    assert [7.0] == taken(plan)


@pytest.mark.parametrize(
    "options",
    [
        {"blend": 3},
        {"blend": LinearBlend},
        {"space": JOINT},
        {"execution_horizon": 0},
        {"execution_horizon": True},
    ],
)
def test_a_plan_refuses_arguments_that_are_none(options: dict[str, Any]) -> None:
    """
    Each is named.
    """
    with pytest.raises(ContractError, match=rf"^{next(iter(options))}: got"):
        ActionPlan(**{"space": None, **options})


@pytest.mark.parametrize("overlap", [0, -1, 4097, True, 2.0, "2"])
def test_a_linear_blend_has_at_least_one_step(overlap: Any) -> None:
    """
    None at all is no blend.
    """
    with pytest.raises(ContractError, match=r"^overlap: got"):
        LinearBlend(overlap=overlap)


@pytest.mark.parametrize("m", [math.nan, math.inf, "0", None])
def test_an_ensemble_has_a_finite_m(m: Any) -> None:
    """
    As `TemporalEnsemble`.
    """
    with pytest.raises(ContractError, match=r"^m: got"):
        EnsembleBlend(m=m)


class PlanUnderOffers(RuleBasedStateMachine):
    """
    A policy that always predicts the number of the step, with answers that arrive at any time.

    Whatever the order, what is taken must be 0, 1, 2, 3: no row twice, none left out.
    """

    def __init__(self) -> None:
        super().__init__()
        self.plan = ActionPlan(space=None)
        self.taken = 0
        self.newest = -1
        self.horizon = 99

    @rule(blend=st.sampled_from(BLENDS), horizon=st.sampled_from((None, 1, 4)))
    @precondition(lambda self: self.plan.step == 0 and self.newest < 0)
    def choose(self, blend: Any, horizon: int | None) -> None:
        self.plan = ActionPlan(space=None, blend=blend, execution_horizon=horizon)
        self.horizon = horizon or 99

    @rule(late=st.integers(0, 6), length=st.integers(1, 8))
    def offer(self, late: int, length: int) -> None:
        seen_at = max(self.plan.step - late, 0)
        predicted = column(*range(seen_at, seen_at + length))
        is_past = seen_at + min(length, self.horizon) <= self.plan.step
        if is_past or seen_at <= self.newest:
            with pytest.raises(ContractError):
                self.plan.offer(predicted, observed_at_step=seen_at)
        else:
            self.plan.offer(predicted, observed_at_step=seen_at)
            self.newest = seen_at

    @rule(data=st.data())
    @precondition(lambda self: self.plan.remaining > 0)
    def take(self, data: st.DataObject) -> None:
        count = data.draw(st.integers(1, self.plan.remaining))
        came = self.plan.next(count)
        expected = list(range(self.taken, self.taken + count))
        assert expected == pytest.approx(came.values.ravel().tolist(), abs=1e-9)
        self.taken += count

    @rule()
    def clear(self) -> None:
        self.plan.clear()
        self.newest = -1

    @invariant()
    def counts(self) -> None:
        assert self.taken == self.plan.step
        with pytest.raises(ContractError):
            self.plan.next(self.plan.remaining + 1)


TestPlanUnderOffers = PlanUnderOffers.TestCase
TestPlanUnderOffers.settings = settings(stateful_step_count=30)
