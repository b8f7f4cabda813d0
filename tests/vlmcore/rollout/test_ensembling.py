"""Tests of `vlmcore.rollout.ensembling`."""

from __future__ import annotations

import math
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rollout_cases import column, finite_chunks, spaces
from safety_cases import GRIPPER, JOINT, SLIDE, WHEEL, space
from vlmcore.contracts.actions import ActionChunk
from vlmcore.contracts.embodiment import ActionDim, ActionSpace
from vlmcore.errors import ContractError
from vlmcore.rollout import TemporalEnsemble


def mean_of(numbers: list[float], *, m: float = 0.01, dim: ActionDim | None = None) -> float:
    """Predict one step several times, the oldest first, and take what comes out."""
    name = "x" if dim is None else dim.name
    ensemble = TemporalEnsemble(m=m, space=None if dim is None else space(dim))
    for i, number in enumerate(numbers):
        path = [0.0] * (len(numbers) - 1 - i) + [number]
        ensemble.add(column(*path, name=name), starts_at_step=i)
    return float(ensemble.action(len(numbers) - 1).item())


def test_the_oldest_prediction_weighs_most() -> None:
    """
    w_i = exp(-m * i), where i = 0 is the oldest; m = 0.01 in ACT.
    """
    w = [1.0, math.exp(-0.01), math.exp(-0.02)]
    assert (7 * w[0] + 8 * w[1] + 9 * w[2]) / sum(w) == pytest.approx(mean_of([7, 8, 9]), rel=1e-15)
    assert mean_of([7, 8, 9]) < 8


@pytest.mark.parametrize(
    ("m", "expected"), [(0.0, 8.0), (50.0, 7.0), (-50.0, 9.0), (1e308, 7.0), (-1e308, 9.0)]
)
def test_the_sign_of_m_says_who_is_trusted(m: float, expected: float) -> None:
    """
    All alike, the oldest, or the newest; no weight overflows.
    """
    assert expected == pytest.approx(mean_of([7, 8, 9], m=m))


def test_a_step_is_the_mean_of_the_chunks_that_cover_it() -> None:
    """
    A chunk counts from the step at which it starts until it runs out.
    """
    ensemble = TemporalEnsemble(space=None, m=0.0)
    ensemble.add(column(0, 0, 0), starts_at_step=0)
    ensemble.add(column(3, 3, 3, 3), starts_at_step=1)
    ensemble.add(column(9), starts_at_step=2)
    assert 5 == ensemble.ends_before_step
    assert [0.0, 1.5, 4.0, 3.0, 3.0] == [ensemble.action(step).item() for step in range(5)]


def test_b2_the_mean_of_angles_does_not_point_the_opposite_way() -> None:
    """
    From the oldest one the short way: 2.9 and -2.9 of a turn of 6 are 0.2 apart.
    """
    assert 3.0 == pytest.approx(abs(mean_of([2.9, -2.9], m=0.0, dim=WHEEL)))
    assert -2.95 == pytest.approx(mean_of([2.9, -2.9, -2.8], m=0.0, dim=WHEEL), abs=0.06)
    assert -1.0 == pytest.approx(mean_of([5.0, 5.0], dim=WHEEL))


def test_b2_the_mean_of_a_gripper_is_the_level_with_most_weight() -> None:
    """
    Never 0.5; each prediction counts for the level that is nearest to it.
    """
    assert 0.0 == mean_of([0.0, 1.0], dim=GRIPPER)
    assert 1.0 == mean_of([0.0, 1.0], m=-0.01, dim=GRIPPER)
    assert 1.0 == mean_of([0.1, 0.8, 0.9], dim=GRIPPER)
    assert 0.0 == mean_of([0.1, 0.8, 0.9], m=2.0, dim=GRIPPER)


def test_of_two_levels_with_the_same_weight_the_one_predicted_last_is_taken() -> None:
    """
    There is no mean between them.
    """
    assert 1.0 == mean_of([0.0, 1.0], m=0.0, dim=GRIPPER)
    assert 0.0 == mean_of([1.0, 0.0], m=0.0, dim=GRIPPER)


def walked(votes: list[list[float]], *, last_command: Any = None) -> list[float]:
    """Predict each step by all chunks, and take one step after the other, with equal weights."""
    ensemble = TemporalEnsemble(space=space(GRIPPER), m=0.0)
    for path in votes:
        ensemble.add(column(*path, name="gripper"), starts_at_step=0)
    made = [ensemble.action(0, last_command=last_command)]
    made += [ensemble.action(step) for step in range(1, len(votes[0]))]
    return [each.item() for each in made]


@pytest.mark.parametrize("start", [0.0, 1.0])
def test_an_ensemble_does_not_make_a_gripper_chatter(start: float) -> None:
    """
    "0.5 +- 0.06": each prediction was snapped to its nearest level before the vote.
    """
    noise = [[0.44, 0.56, 0.55, 0.44, 0.56], [0.45, 0.55, 0.44, 0.45, 0.54]]
    assert [start] * 5 == walked(noise, last_command=[start])
    assert [0.0] * 5 == walked(noise)  # nobody knows: the nearest, and from there on it stays


def test_a_gripper_closes_at_60_percent_of_the_way() -> None:
    """
    As at the gate, in both directions, and from the level that was given last.
    """
    assert [0.0, 1.0, 1.0, 0.0] == walked([[0.59, 0.61, 0.41, 0.39]], last_command=[0.0])


def test_a_step_that_is_asked_for_again_switches_from_the_same_level() -> None:
    """
    Not from what was given for it the first time; what was sent counts more than both.
    """
    ensemble = TemporalEnsemble(space=space(GRIPPER))
    ensemble.add(column(0.0, 0.61, 0.5, name="gripper"), starts_at_step=0)
    ensemble.action(0)
    assert [1.0, 1.0] == [ensemble.action(1).item(), ensemble.action(1).item()]
    assert 1.0 == ensemble.action(2).item()
    assert 0.0 == ensemble.action(2, last_command={"gripper": 0.0}).item()


def test_what_was_sent_last_is_one_action_of_the_space() -> None:
    """
    Nothing is given then, and nothing is forgotten.
    """
    ensemble = TemporalEnsemble(space=space(GRIPPER))
    ensemble.add(column(1.0, name="gripper"), starts_at_step=0)
    with pytest.raises(ContractError, match=r"^last_command"):
        ensemble.action(0, last_command=[0.0, 0.0])
    assert 1.0 == ensemble.action(0).item()


def test_changes_are_averaged() -> None:
    """
    A change for each step means the same whenever it was predicted.
    """
    assert 0.02 == pytest.approx(mean_of([0.01, 0.03], m=0.0, dim=SLIDE))


def test_what_cannot_cover_a_step_any_more_is_forgotten() -> None:
    """
    Memory is bounded by what overlaps, however long an episode is.
    """
    ensemble = TemporalEnsemble(space=None)
    for step in range(200):
        ensemble.add(column(0, 0, 0), starts_at_step=step)
        ensemble.action(step)
        assert len(ensemble._predictions) <= 3


def test_steps_are_asked_for_in_their_order() -> None:
    """
    The same one may be asked for again; one before it is forgotten.
    """
    ensemble = TemporalEnsemble(space=None)
    ensemble.add(column(1, 2, 3), starts_at_step=0)
    assert [2.0, 2.0] == [ensemble.action(1).item(), ensemble.action(1).item()]
    with pytest.raises(ContractError, match=r"^step: got 0, expected a whole number of at least 1"):
        ensemble.action(0)


def test_a_step_that_nothing_covers_is_refused() -> None:
    """
    Before the first chunk, in a gap, and after the last.
    """
    ensemble = TemporalEnsemble(space=None)
    assert 0 == ensemble.ends_before_step
    with pytest.raises(ContractError, match=r"^step: got 0, expected one that a prediction covers"):
        ensemble.action(0)
    ensemble.add(column(1), starts_at_step=1)
    for step in (0, 2):
        with pytest.raises(ContractError, match="expected one that a prediction covers"):
            ensemble.action(step)


def test_a_new_episode_starts_from_nothing() -> None:
    """
    Steps are counted from 0 again, and the names may be others.
    """
    ensemble = TemporalEnsemble(space=None)
    ensemble.add(column(1, 1), starts_at_step=7)
    ensemble.action(7)
    ensemble.clear()
    ensemble.add(column(5, name="y"), starts_at_step=0)
    assert 5.0 == ensemble.action(0).item()


def test_what_comes_out_cannot_be_written_to() -> None:
    """
    As every array of a contract.
    """
    ensemble = TemporalEnsemble(space=None)
    ensemble.add(column(1), starts_at_step=0)
    with pytest.raises(ValueError, match="read-only"):
        ensemble.action(0)[0] = 2.0


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"chunk": [[1.0]]}, "chunk: got list, expected an ActionChunk"),
        ({"chunk": column(1, name="y")}, "chunk.names: got y, expected x, in this order"),
        ({"chunk": column(0, math.nan)}, "chunk.values[1][0]: got nan for 'x', expected finite"),
        ({"chunk": column(math.inf)}, "chunk.values[0][0]: got inf for 'x', expected finite"),
        ({"starts_at_step": 2}, "starts_at_step: got 2, expected a whole number of at least 3"),
        ({"starts_at_step": 3.0}, "starts_at_step: got 3.0, expected a whole number of at least"),
        ({"starts_at_step": True}, "starts_at_step: got True, expected a whole number"),
    ],
)
def test_a_chunk_that_does_not_belong_is_refused_and_changes_nothing(
    change: dict[str, Any], problem: str
) -> None:
    """
    B4: finite inputs only; one NaN would be in every mean that it is part of.
    """
    ensemble = TemporalEnsemble(space=None)
    ensemble.add(column(1, 1), starts_at_step=3)
    with pytest.raises(ContractError) as error:
        ensemble.add(**{"chunk": column(9), "starts_at_step": 3, **change})
    assert str(error.value).startswith(problem)
    assert 1.0 == ensemble.action(3).item()


@pytest.mark.parametrize("m", [math.nan, math.inf, "0.01", True, None])
def test_m_is_a_finite_number(m: Any) -> None:
    """
    Nothing else weighs.
    """
    with pytest.raises(ContractError, match=r"^m: got"):
        TemporalEnsemble(space=None, m=m)


def test_a_space_says_what_the_names_are() -> None:
    """
    From the first chunk on.
    """
    with pytest.raises(ContractError, match=r"^chunk.names: got y, expected x"):
        TemporalEnsemble(space=space(JOINT)).add(column(0, name="y"), starts_at_step=0)
    with pytest.raises(ContractError, match=r"^space: got ActionDim, expected an ActionSpace"):
        TemporalEnsemble(space=JOINT)  # type: ignore[arg-type]


def oracle(predictions: list[float], m: float, dim: ActionDim) -> float:
    """Average in plain Python, one number at a time."""
    shift = max(-m * i for i in range(len(predictions)))
    weights = [math.exp(-m * i - shift) for i in range(len(predictions))]
    if dim.levels is not None:
        totals: dict[float, float] = {}
        last: dict[float, int] = {}
        for i, (value, weight) in enumerate(zip(predictions, weights, strict=True)):
            level = min(dim.levels, key=lambda each: abs(each - value))
            totals[level] = totals.get(level, 0.0) + weight
            last[level] = i
        return max(totals, key=lambda level: (totals[level], last[level]))
    total = math.fsum(weights)
    if dim.period is None:
        return math.fsum(w * v for w, v in zip(weights, predictions, strict=True)) / total
    ways = [math.remainder(value - predictions[0], dim.period) for value in predictions]
    return predictions[0] + math.fsum(w * v for w, v in zip(weights, ways, strict=True)) / total


@given(st.data())
def test_the_mean_is_that_of_an_oracle_in_plain_python(data: st.DataObject) -> None:
    """
    For targets, changes, angles and levels, and for any m.
    """
    dims = data.draw(spaces())
    m = data.draw(st.sampled_from((0.0, 0.01, -0.3, 2.0)))
    count = data.draw(st.integers(1, 5))
    ensemble = TemporalEnsemble(space=dims, m=m)
    rows = []
    for i in range(count):
        values = [
            [data.draw(st.floats(dim.low, dim.high)) for dim in dims.dims] for _ in range(count - i)
        ]
        rows.append(values[-1])
        ensemble.add(
            ActionChunk(values=values, names=dims.names, source="drawn", observed_at_s=0),
            starts_at_step=i,
        )
    came = ensemble.action(count - 1).tolist()
    for j, dim in enumerate(dims.dims):
        expected = oracle([row[j] for row in rows], m, dim)
        size = max(abs(dim.low), abs(dim.high))
        off = came[j] - expected
        if dim.period is not None:
            assert dim.low <= came[j] <= dim.high
            off = math.remainder(off, dim.period)
        assert 0.0 == pytest.approx(off, abs=1e-12 * size)


@st.composite
def several(draw: st.DrawFn) -> tuple[ActionSpace, list[ActionChunk]]:
    """Draw chunks of one space, with numbers of any size."""
    dims = draw(spaces())
    return dims, draw(st.lists(finite_chunks(dims), min_size=1, max_size=4))


@pytest.mark.parametrize("count", range(1, 20))
def test_the_mean_of_the_largest_number_with_itself_does_not_overflow(count: int) -> None:
    """
    Rounded shares add up to a little more than 1 now and then.
    """
    largest = sys.float_info.max
    assert largest == mean_of([largest] * count, m=0.0)


@given(several(), st.sampled_from((0.0, 0.01, -0.3, 2.0)))
def test_a_mean_of_finite_predictions_is_finite_and_between_them(case: Any, m: float) -> None:
    """
    Also where a sum of them would overflow.
    """
    dims, chunks = case
    plain, known = TemporalEnsemble(space=None, m=m), TemporalEnsemble(space=dims, m=m)
    for each in chunks:
        plain.add(each, starts_at_step=0)
        known.add(each, starts_at_step=0)
    first = [each.values[0].tolist() for each in chunks]
    for j, value in enumerate(plain.action(0).tolist()):
        numbers = [row[j] for row in first]
        assert min(numbers) <= value <= max(numbers)
    assert all(map(math.isfinite, known.action(0).tolist()))
