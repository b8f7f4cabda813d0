"""Tests of `vlmcore.vision.places`: a place is one that there is."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable

import numpy as np
import pytest

from vlmcore.errors import ContractError, LimitExceededError
from vlmcore.vision.places import Box, Place, Point, Polygon

PLACES: tuple[Place, ...] = (
    Box.of((1, 2, 3, 5)),
    Point(x=1.0, y=2.0),
    Polygon(corners=[(0, 0), (4, 0), (4, 3)]),
)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Box.of((3, 0, 3, 5)), "right: got 3, expected more than 3: a box has an area"),
        (lambda: Box.of((0, 5, 3, 4)), "bottom: got 4, expected more than 5"),
        (lambda: Box.of((0, 0, np.nan, 4)), r"xyxy\[2\]: got nan, expected a finite number"),
        (lambda: Box.of((0, 0, True, 4)), r"xyxy\[2\]: got True, expected a finite number"),
        (lambda: Box.of((0, 0, "3", 4)), r"xyxy\[2\]: got '3'"),
        (lambda: Box.of((0, 0, 3)), "xyxy: got 3 numbers, expected 4"),
        (lambda: Box.of("0123"), "xyxy: got str, expected 4 numbers"),
        (lambda: Point(x=np.inf, y=0.0), "x: got inf, expected a finite number"),
        (lambda: Polygon(corners=[(0, 0), (1, 1)]), "corners: got 2, expected 3 to 4096"),
        (lambda: Polygon(corners=[(0, 0), (1, 0), (2, 0)]), "corners: got corners on one line"),
        (lambda: Polygon(corners=[(0, 0), (1, 0), (2,)]), r"corners\[2\]: got 1 numbers"),
        (lambda: Polygon(corners=None), "corners: got NoneType, expected pairs of x and y"),
    ],
)
def test_what_is_no_place_is_refused_with_what_came(
    make: Callable[[], Place], message: str
) -> None:
    """
    Boxes have an area, numbers are finite, polygons have three corners or more.
    """
    with pytest.raises(ContractError, match=message):
        make()


@pytest.mark.parametrize("place", PLACES, ids=lambda place: type(place).__name__)
def test_places_are_compared_by_value_and_survive_pickling(place: Place) -> None:
    """
    They cross processes in data loaders.
    """
    assert place == pickle.loads(pickle.dumps(place)) == copy.deepcopy(place)
    assert hash(place) == hash(copy.copy(place))


def test_bounds_are_what_a_place_reaches() -> None:
    """
    Left, top, right and bottom, whatever the place is.
    """
    assert [(1, 2, 3, 5), (1, 2, 1, 2), (0, 0, 4, 3)] == [place.bounds for place in PLACES]


def test_numbers_of_numpy_become_plain_ones() -> None:
    """
    Boxes come from arrays as often as from lists.
    """
    box = Box.of(np.array([1, 2, 3, 4], np.float32))

    assert {float} == set(map(type, box.xyxy))


def test_a_polygon_of_very_many_corners_is_refused() -> None:
    """
    An outline is bounded, as everything that comes from outside.
    """
    with pytest.raises((ContractError, LimitExceededError), match="got 4097, expected 3 to 4096"):
        Polygon(corners=[(i, i % 2) for i in range(4097)])
