"""Tests of `vlmcore_robotics.adapters._lerobot_history`: what stands for the steps before."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vlmcore_robotics.adapters._lerobot_history import History

STEP_S = 0.05


def window(*times: float, count: int = 3) -> list[float]:
    history: History[float] = History(count=count, step_s=STEP_S)
    for at_s in times:
        history.add(at_s, at_s=at_s)
    return history.window()


def test_each_step_of_a_steady_loop_is_looked_back_on() -> None:
    """
    The newest is the last one.
    """
    assert [0.10, 0.15, 0.20] == window(0.0, 0.05, 0.10, 0.15, 0.20)


def test_the_first_observation_stands_for_all_steps() -> None:
    """
    As LeRobot does at the start of an episode.
    """
    assert [7.0, 7.0, 7.0] == window(7.0)


def test_the_observation_of_the_chunk_before_does_not_stand_for_the_step_before() -> None:
    """
    A change of eight steps is not shown as that of one.
    """
    assert [0.40, 0.40, 0.40] == window(0.0, 0.40)


def test_a_step_that_was_missed_is_filled_by_the_step_after_it() -> None:
    """
    The one before it stays where it is.
    """
    assert [0.0, 0.10, 0.10] == window(0.0, 0.10)


def test_a_faster_loop_is_looked_at_at_the_rate_of_the_policy() -> None:
    """
    Every second of its observations is passed over.
    """
    assert pytest.approx([0.10, 0.15, 0.20]) == window(*(i * STEP_S / 2 for i in range(9)))


def test_a_loop_that_trembles_is_a_steady_one() -> None:
    """
    Less than half a step is no step.
    """
    assert [0.09, 0.16, 0.20] == window(0.01, 0.04, 0.09, 0.16, 0.20)


def test_an_observation_that_is_shown_again_is_shown_once() -> None:
    """
    As after a call that failed.
    """
    assert [0.0, 0.05, 0.10] == window(0.0, 0.05, 0.10, 0.10)


def test_a_clock_that_goes_back_leaves_nothing_of_later() -> None:
    """
    What was captured later is not past.
    """
    assert [5.0, 5.0, 5.0] == window(100.0, 100.05, 5.0)


def test_what_is_cleared_is_forgotten() -> None:
    """
    And the next episode begins with its own first observation.
    """
    history: History[str] = History(count=2, step_s=STEP_S)
    history.add("old", at_s=1.0)
    history.clear()
    history.add("new", at_s=1.0 + STEP_S)
    assert ["new", "new"] == history.window()


@given(
    st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=30),
    st.integers(1, 6),
)
def test_any_times_give_as_many_steps_none_of_them_later_than_the_one_after(
    times: list[float], count: int
) -> None:
    """
    Whatever the clock does; and no more is kept than can be asked for.
    """
    history: History[float] = History(count=count, step_s=STEP_S)
    for at_s in times:
        history.add(at_s, at_s=at_s)
    steps = history.window()
    assert (count, times[-1]) == (len(steps), steps[-1])
    assert sorted(steps) == steps
    assert all(times[-1] - at_s < count * STEP_S for at_s, _ in history._shown)
