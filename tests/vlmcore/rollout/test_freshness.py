"""Tests of `vlmcore.rollout.freshness`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from control_cases import PICTURE, seen
from vlmcore.contracts.observation import Observation
from vlmcore.errors import ContractError
from vlmcore.rollout.freshness import Freshness, MaxAges, TimedObservation

AGES = MaxAges(observation_s=0.2, chunk_s=1.0)
OTHER = PICTURE + 1


def fresh(**more: Any) -> Freshness:
    return Freshness(MaxAges(**{"observation_s": 10.0, "chunk_s": 1.0, **more}))


def test_an_observation_may_be_as_old_as_was_said() -> None:
    """
    And no older.
    """
    each = Freshness(AGES)
    assert each.problem(seen(0.0, 1.0), now_s=1.125) is None
    assert "the observation is 0.25 s old, expected at most 0.2 s" == each.problem(
        seen(0.0, 1.0), now_s=1.25
    )


def test_the_same_captured_time_for_longer_than_allowed_is_an_old_observation() -> None:
    """
    A frozen camera reads as valid: the arm integrates deltas on a still image.
    """
    each, frozen = Freshness(AGES), seen(0.0, 1.0)
    found = [each.problem(frozen, now_s=1.0 + i / 16) is None for i in range(6)]
    assert [True] * 4 + [False] * 2 == found


def test_a_camera_that_froze_behind_a_driver_that_stamps_each_copy_is_found_by_its_pixels() -> None:
    """
    Frames of a real sensor are never the same twice.
    """
    each = fresh(unchanged_s=0.2)

    def look(at_s: float, left: Any) -> str | None:
        moving = PICTURE + int(at_s * 100)
        copy = np.array(left)
        return each.problem(seen(0.0, at_s, left=copy, right=moving), now_s=at_s)

    assert [None, None, None] == [look(at_s, PICTURE) for at_s in (1.0, 1.1, 1.2)]
    assert "the frame of 'left' has not changed for 0.25 s, expected at most 0.2 s" == look(
        1.25, PICTURE
    )
    assert look(1.3, OTHER) is None
    assert look(1.5, OTHER) is None
    assert look(1.6, OTHER) is not None
    each.forget()
    assert look(1.7, OTHER) is None


def test_a_camera_that_changes_its_size_has_changed() -> None:
    """
    It is no frozen one.
    """
    each = fresh(unchanged_s=0.2)
    for at_s, shape in ((1.0, (2, 2, 3)), (2.0, (4, 4, 3)), (3.0, (2, 2, 3))):
        frame = np.zeros(shape, np.uint8)
        assert each.problem(seen(0.0, at_s, front=frame), now_s=at_s) is None


def timed(now_s: float, **ages: float) -> TimedObservation:
    """Make an observation of two cameras whose frames are as old as is said."""
    return TimedObservation(
        observation=seen(0.0, now_s, left=PICTURE, right=OTHER),
        captured_at_s={name: now_s - age for name, age in ages.items()},
    )


def test_each_camera_whose_time_is_known_has_an_age() -> None:
    """
    The newest frame says nothing of the others.
    """
    each = fresh(cameras_s={"left": 0.125})
    assert each.problem(timed(8.0, left=0.125, right=4.0), now_s=8.0) is None
    assert "the frame of 'left' is 0.25 s old, expected at most 0.125 s" == each.problem(
        timed(8.0, left=0.25), now_s=8.0
    )
    assert "the frame of 'right' is 16 s old, expected at most 10 s" == each.problem(
        timed(8.0, left=0.0, right=16.0), now_s=8.0
    )


def test_an_age_that_cannot_be_known_is_refused() -> None:
    """
    A limit that nobody can check must not look like one that is kept.
    """
    each = fresh(cameras_s={"left": 0.1})
    for came in (seen(0.0, 1.0), timed(8.0, right=0.0)):
        with pytest.raises(ContractError, match=r"^max_ages\.cameras_s\['left'\]: got an age"):
            each.problem(came, now_s=8.0)
    with pytest.raises(ContractError, match=r"^observation\.captured_at_s: got 2 s after now"):
        Freshness(AGES).problem(seen(0.0, 3.0), now_s=1.0)
    with pytest.raises(ContractError, match=r"^max_ages: got float"):
        Freshness(0.2)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"observation_s": 0}, "observation_s: got 0"),
        ({"chunk_s": float("inf")}, "chunk_s: got inf"),
        ({"cameras_s": {"left": -1}}, r"cameras_s\['left'\]: got -1"),
        ({"cameras_s": {3: 1.0}}, "cameras_s: got"),
        ({"cameras_s": 0.5}, "cameras_s: got 0.5"),
        ({"unchanged_s": 0}, "unchanged_s: got 0"),
    ],
)
def test_ages_are_seconds_above_zero(changed: dict[str, Any], words: str) -> None:
    """
    No age is said by leaving it out.
    """
    with pytest.raises(ContractError, match=f"^{words}"):
        fresh(**changed)


@pytest.mark.parametrize(
    ("observation", "times", "words"),
    [
        (3, {}, "observation: got int"),
        (seen(0.0, 1.0), 3, "captured_at_s: got 3"),
        (seen(0.0, 1.0), {"side": 1.0}, r"captured_at_s\['side'\]: is of no camera"),
        (seen(0.0, 1.0), {"front": 1.5}, r"captured_at_s\['front'\]: got 1\.5, expected at most"),
        (seen(0.0, 1.0), {"front": float("nan")}, r"captured_at_s\['front'\]: got nan"),
    ],
)
def test_the_times_of_cameras_are_those_of_the_observation(
    observation: Observation, times: Any, words: str
) -> None:
    """
    None is newer than the newest, and none is of a camera that is not there.
    """
    with pytest.raises(ContractError, match=f"^{words}"):
        TimedObservation(observation=observation, captured_at_s=times)
