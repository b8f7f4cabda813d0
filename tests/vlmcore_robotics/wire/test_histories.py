"""Tests of `vlmcore_robotics.wire.histories`: the past by delta indices."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from groot_cases import seen, step
from vlmcore.errors import ContractError
from vlmcore_robotics.wire.histories import MissingHistory, frames_at, states_at

STEPS = [step(number) for number in range(5)]
REPEAT = MissingHistory.REPEAT_OLDEST


def numbers(deltas: tuple[int, ...], missing: MissingHistory = MissingHistory.REFUSE) -> list[int]:
    frames = frames_at("cam_front", STEPS, deltas, missing)
    states = states_at(STEPS, deltas, missing)
    assert states[:, 0].tolist() == frames[:, 0, 0, 0].tolist()
    return [int(number) for number in states[:, 0]]


@given(deltas=st.lists(st.integers(-9, 0), min_size=1, max_size=6, unique=True).map(sorted))
def test_each_delta_is_counted_from_the_newest_step(deltas: list[int]) -> None:
    """
    What lies before the oldest is the oldest, if asked.
    """
    assert [max(0, 4 + delta) for delta in deltas] == numbers(tuple(deltas), REPEAT)


def test_frames_of_one_observation_are_its_history() -> None:
    """
    Frames that follow each other are a view: nothing is copied.
    """
    pixels = np.arange(5, dtype=np.uint8).repeat(12).reshape(5, 2, 2, 3)
    one = seen(images={"cam_front": pixels, "cam_wrist": pixels[:1]})

    frames = frames_at("cam_front", [one], (-1, 0))
    assert [3, 4] == frames[:, 0, 0, 0].tolist()
    assert np.shares_memory(frames, one.images["cam_front"])
    assert [0, 4] == frames_at("cam_front", [one], (-4, 0))[:, 0, 0, 0].tolist()
    assert [0, 0] == frames_at("cam_wrist", [one], (-4, 0))[:, 0, 0, 0].tolist()
    with pytest.raises(ContractError, match="got 5 of 6 steps"):
        frames_at("cam_front", [one], (-5, 0))


def test_one_newest_frame_is_a_view() -> None:
    """
    The usual case costs nothing.
    """
    assert np.shares_memory(frames_at("cam_front", STEPS, (0,)), STEPS[-1].images["cam_front"])


@pytest.mark.parametrize("deltas", [(), (1,), (0, 1), (-1, 2)])
def test_the_future_is_refused(deltas: tuple[int, ...]) -> None:
    """
    So is nothing at all.
    """
    with pytest.raises(ContractError, match="expected steps of the past, or now"):
        states_at(STEPS, deltas)


def test_steps_that_do_not_go_together_are_refused() -> None:
    """
    A camera that was switched to another size, or off; a state that became longer.
    """
    small = np.zeros((2, 2, 3), np.uint8)
    other = seen(state=[0.0], images={"cam_front": small, "side": small})
    with pytest.raises(ContractError, match=r"frames of \[\(2, 2\), \(3, 3\)\]"):
        frames_at(
            "cam_front", [other, seen(images={"cam_front": np.zeros((3, 3, 3), np.uint8)})], (-1, 0)
        )
    with pytest.raises(ContractError, match="expected 'cam_wrist' among them"):
        frames_at("cam_wrist", [other, step(1)], (-1, 0))
    with pytest.raises(ContractError, match=r"states of \[1, 6\] numbers"):
        states_at([other, step(1)], (-1, 0))
