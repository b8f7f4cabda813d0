"""A place as a model wrote it: numbers on the scale of its dialect, and what is said of them."""

from __future__ import annotations

import enum
import math
from collections.abc import Sequence
from typing import Any

import attrs

from vlmcore.limits import VisionLimits, require_at_most
from vlmcore.vision.dialects import Dialect, Order

__all__ = ["Kind", "Notes", "Written", "in_xy_order", "wrong_numbers"]

_LIMITS = VisionLimits()


class Kind(enum.Enum):
    """What kind of place is written."""

    BOX = "box"
    POINT = "point"
    POLYGON = "polygon"


@attrs.frozen
class Written:
    """
    One place as it is written.

    Attributes:
        path: Where in the answer, for faults.
        kind: What kind of place.
        numbers: x and y in turn.
        label: What is there; ``None`` if that is not said.
        score: How sure that is, if that is said.
    """

    path: str
    kind: Kind
    numbers: tuple[float, ...]
    label: str | None
    score: float | None = None


class Notes:
    """What was read of an answer, and what is wrong with it."""

    def __init__(self) -> None:
        self.places: list[Written] = []
        self.faults: list[tuple[str, str]] = []

    def add(self, place: Written) -> None:
        """
        Take a place.

        Raises:
            LimitExceededError: If there are too many.
        """
        require_at_most("max_detections", len(self.places) + 1, _LIMITS.max_detections)
        self.places.append(place)

    def fault(self, path: str, problem: str) -> None:
        """Note what is wrong; only so many are kept."""
        if len(self.faults) < _LIMITS.max_faults:
            self.faults.append((path, problem))


def in_xy_order(numbers: Sequence[float], dialect: Dialect) -> tuple[float, ...]:
    """Bring pairs into the order of x and y."""
    if dialect.order is Order.XY:
        return tuple(numbers)
    return tuple(number for i in range(0, len(numbers), 2) for number in numbers[i : i + 2][::-1])


def wrong_numbers(values: Any, kind: Kind) -> str:
    """Say what is wrong with values that should be the numbers of a place, if anything is."""
    if not isinstance(values, (list, tuple)):
        return f"got {type(values).__name__}, expected a list of numbers"
    for value in values:
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            return f"got {value!r:.40} among the numbers"
        if not math.isfinite(value):
            return f"got {value} among the numbers, expected finite ones"
    count = len(values)
    wanted = {Kind.BOX: 4, Kind.POINT: 2}.get(kind)
    if wanted is not None and count != wanted:
        return f"got {count} numbers, expected {wanted}"
    most = 2 * _LIMITS.max_corners
    if wanted is None and (count % 2 or not 6 <= count <= most):
        return f"got {count} numbers, expected an x and a y for each of 3 corners or more"
    return ""
