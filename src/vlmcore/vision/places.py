"""Places in an image, in pixels from its upper left corner: boxes, points and polygons."""

from __future__ import annotations

from itertools import chain
from typing import Any, TypeAlias

import attrs

from vlmcore._arrays import plain_float, require_finite
from vlmcore.errors import ContractError
from vlmcore.limits import VisionLimits

__all__ = ["Box", "Place", "Point", "Polygon"]

_LIMITS = VisionLimits()
_FEWEST_CORNERS = 3


def _numbers(values: Any, count: int, field: str) -> list[float]:
    if isinstance(values, (str, bytes)) or not hasattr(values, "__iter__"):
        raise ContractError(field, f"got {type(values).__name__}, expected {count} numbers")
    numbers = [plain_float(value) for value in values]
    if len(numbers) != count:
        raise ContractError(field, f"got {len(numbers)} numbers, expected {count}")
    require_finite(**{f"{field}[{i}]": number for i, number in enumerate(numbers)})
    return numbers


def _corners(corners: Any) -> tuple[tuple[float, float], ...]:
    if isinstance(corners, (str, bytes)) or not hasattr(corners, "__iter__"):
        raise ContractError("corners", f"got {type(corners).__name__}, expected pairs of x and y")
    pairs = list(corners)
    if not _FEWEST_CORNERS <= len(pairs) <= _LIMITS.max_corners:
        most = _LIMITS.max_corners
        raise ContractError("corners", f"got {len(pairs)}, expected {_FEWEST_CORNERS} to {most}")
    made = [_numbers(pair, 2, f"corners[{i}]") for i, pair in enumerate(pairs)]
    flat = list(chain.from_iterable(made))
    return tuple(zip(flat[::2], flat[1::2], strict=True))


@attrs.frozen(kw_only=True)
class Box:
    """
    A box with its sides along those of the image; it has an area.

    Attributes:
        left: Its left side, in pixels.
        top: Its upper side.
        right: Its right side, beyond *left*.
        bottom: Its lower side, beyond *top*.

    Raises:
        ContractError: If a side is not a finite number, or not beyond the one opposite.

    Example:
        >>> Box.of((10, 20, 30, 60)).area_px
        800.0
    """

    left: float = attrs.field(converter=plain_float)
    top: float = attrs.field(converter=plain_float)
    right: float = attrs.field(converter=plain_float)
    bottom: float = attrs.field(converter=plain_float)

    def __attrs_post_init__(self) -> None:
        require_finite(left=self.left, top=self.top, right=self.right, bottom=self.bottom)
        for field, near, far in (
            ("right", self.left, self.right),
            ("bottom", self.top, self.bottom),
        ):
            if far <= near:
                problem = f"got {far:g}, expected more than {near:g}: a box has an area"
                raise ContractError(field, problem)

    @classmethod
    def of(cls, xyxy: Any) -> Box:
        """
        Make a box of four numbers: left, top, right, bottom.

        Raises:
            ContractError: If they are not four, or no box.
        """
        left, top, right, bottom = _numbers(xyxy, 4, "xyxy")
        return cls(left=left, top=top, right=right, bottom=bottom)

    @property
    def xyxy(self) -> tuple[float, float, float, float]:
        """Left, top, right and bottom."""
        return self.left, self.top, self.right, self.bottom

    @property
    def width_px(self) -> float:
        """From its left side to its right one."""
        return self.right - self.left

    @property
    def height_px(self) -> float:
        """From its upper side to its lower one."""
        return self.bottom - self.top

    @property
    def area_px(self) -> float:
        """Width times height."""
        return self.width_px * self.height_px

    @property
    def bounds(self) -> tuple[float, float, float, float]:
        """The same as `xyxy`."""
        return self.xyxy


@attrs.frozen(kw_only=True)
class Point:
    """
    A point.

    Attributes:
        x: From the left side of the image, in pixels.
        y: From its upper side.

    Raises:
        ContractError: If a number is not finite.
    """

    x: float = attrs.field(converter=plain_float)
    y: float = attrs.field(converter=plain_float)

    def __attrs_post_init__(self) -> None:
        require_finite(x=self.x, y=self.y)

    @property
    def bounds(self) -> tuple[float, float, float, float]:
        """Left, top, right and bottom, which are where it is."""
        return self.x, self.y, self.x, self.y


@attrs.frozen(kw_only=True)
class Polygon:
    """
    A polygon: corners, of which the last is joined to the first.

    Attributes:
        corners: Pairs of x and y in pixels, at least three, not all on one line along a side.

    Raises:
        ContractError: If they are not so.
        LimitExceededError: If they are more than `vlmcore.limits.VisionLimits` allows.
    """

    corners: tuple[tuple[float, float], ...] = attrs.field(converter=_corners)

    def __attrs_post_init__(self) -> None:
        left, top, right, bottom = self.bounds
        if left == right or top == bottom:
            raise ContractError("corners", "got corners on one line, expected a polygon")

    @property
    def bounds(self) -> tuple[float, float, float, float]:
        """Left, top, right and bottom of what it reaches."""
        xs, ys = zip(*self.corners, strict=True)
        return min(xs), min(ys), max(xs), max(ys)


Place: TypeAlias = Box | Point | Polygon
"""Where something is."""
