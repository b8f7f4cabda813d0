"""What a chart shows: numbers over steps, their bounds, and which of them break something."""

from __future__ import annotations

from typing import Any, Protocol

import attrs
import numpy as np
import numpy.typing as npt

from vlmcore._arrays import (
    BoolArray,
    Float64Array,
    as_tuple,
    immutable,
    plain_float,
    readonly_float64,
    require_name,
    require_names,
    require_positive,
)
from vlmcore._copying import through_constructor
from vlmcore.errors import ContractError
from vlmcore.limits import ContractLimits

__all__ = ["Chart", "HasMarks"]

_LIMITS = ContractLimits()


class HasMarks(Protocol):
    """What knows which values of a chunk break something, as a safety report does."""

    def marks(self) -> BoolArray:
        """Say which, shape ``[U, D]``; the steps after them were not looked at."""
        ...


def _proposed(value: Any) -> Any:
    return None if value is None else readonly_float64(value, field="proposed", axes="[T, D]")


def _values(value: Any) -> Float64Array:
    return readonly_float64(value, field="values", axes="[T, D]")


def _row(value: Any, field: str) -> Any:
    return None if value is None else readonly_float64(value, field=field, axes="[D]")


def _low(value: Any) -> Any:
    return _row(value, "low")


def _high(value: Any) -> Any:
    return _row(value, "high")


def _before(value: Any) -> Any:
    return _row(value, "before")


def _marks(value: Any) -> Any:
    if value is None:
        return None
    array: npt.NDArray[Any] = np.asarray(value)
    if array.dtype != np.bool_ or array.ndim != 2:
        raise ContractError(
            "marks",
            f"got {array.dtype} of shape {list(array.shape)}, expected bool of axes [U, D]",
        )
    return immutable(array)


@attrs.frozen(kw_only=True, eq=False)
class Chart:
    """
    Numbers over steps, and what is to be seen beside them.

    Attributes:
        values: One step a row, shape ``[T, D]``, float64; 1 to 4,096 steps of 1 to 2,048
            dimensions. NaN leaves a gap; it and the infinities are drawn at the edge.
        names: What each dimension is, ``D`` unique names.
        units: The unit of each, empty where there is none; empty if none is known.
        low: The smallest value that each may have, shape ``[D]``, finite; ``None`` if nobody knows.
        high: The largest, above *low*; given together with it.
        marks: Which values break something, shape ``[U, D]``, bool, ``1 <= U <= T``. The steps
            after them were not looked at. ``None`` if nobody looked.
        marks_together: Whether some marks are about several dimensions at once, as those of a
            rotation in space are.
        proposed: What the values were before something changed them, shape ``[T, D]``; drawn behind
            them. The marks are then about these.
        before: What was sent before the first step, shape ``[D]``; ``None`` if nobody knows.
        rate_hz: Steps a second, for the time axis; ``None`` counts steps only.
        title: One line above; empty for none.

    Raises:
        ContractError: If a field is not as described.

    Example:
        >>> Chart(values=[[0.0], [0.5]], names=("x",), low=[-1.0], high=[1.0]).horizon
        2
    """

    values: Float64Array = attrs.field(converter=_values)
    names: tuple[str, ...] = attrs.field(converter=as_tuple)
    units: tuple[str, ...] = attrs.field(default=(), converter=as_tuple)
    low: Float64Array | None = attrs.field(default=None, converter=_low)
    high: Float64Array | None = attrs.field(default=None, converter=_high)
    marks: BoolArray | None = attrs.field(default=None, converter=_marks)
    marks_together: bool = False
    proposed: Float64Array | None = attrs.field(default=None, converter=_proposed)
    before: Float64Array | None = attrs.field(default=None, converter=_before)
    rate_hz: float | None = attrs.field(default=None, converter=plain_float)
    title: str = ""

    def __attrs_post_init__(self) -> None:
        steps, width = self.values.shape
        for what, count, most in (
            ("steps", steps, _LIMITS.max_horizon),
            ("dimensions", width, _LIMITS.max_actions),
        ):
            if not 1 <= count <= most:
                raise ContractError("values", f"got {count} {what}, expected 1 to {most:,}")
        self._check_texts(width)
        for field in ("low", "high", "before"):
            row = getattr(self, field)
            if row is not None and len(row) != width:
                raise ContractError(field, f"got {len(row)} numbers, expected {width}")
        self._check_bounds()
        if self.marks is not None:
            looked_at, columns = self.marks.shape
            if not 1 <= looked_at <= steps or columns != width:
                raise ContractError(
                    "marks",
                    f"got shape {[looked_at, columns]}, expected 1 to {steps} steps of {width}",
                )
        if self.proposed is not None and self.proposed.shape != (steps, width):
            raise ContractError(
                "proposed", f"got shape {list(self.proposed.shape)}, expected {[steps, width]}"
            )
        if self.rate_hz is not None:
            require_positive(rate_hz=self.rate_hz)

    __reduce__ = through_constructor

    @property
    def horizon(self) -> int:
        """How many steps it has."""
        return len(self.values)

    @property
    def looked_at(self) -> int:
        """How many steps were looked at, from the first; all if nobody looked."""
        return self.horizon if self.marks is None else len(self.marks)

    def unit(self, dim: int) -> str:
        """Say what the dimension is counted in; empty if there is nothing to say."""
        return self.units[dim] if self.units else ""

    @property
    def marked_values(self) -> Float64Array:
        """What the marks are about, which is what was proposed, or else the values."""
        return self.values if self.proposed is None else self.proposed

    def steps(self) -> Float64Array:
        """List the steps, with -1 for what was before the first if it is known."""
        return np.arange(0 if self.before is None else -1, self.horizon, dtype=np.float64)

    def series(self, values: Float64Array, dim: int) -> Float64Array:
        """Take one dimension of *values*, at all of `steps`."""
        if self.before is None:
            return values[:, dim]
        return np.insert(values[:, dim], 0, self.before[dim])

    def marked(self, dim: int) -> BoolArray:
        """Say which values of one dimension are marked, at all of `steps`."""
        marked = np.zeros(self.horizon + (self.before is not None), np.bool_)
        if self.marks is not None:
            first = len(marked) - self.horizon
            marked[first : first + len(self.marks)] = self.marks[:, dim]
        return marked

    def _check_texts(self, width: int) -> None:
        longest = _LIMITS.max_name_characters
        require_names("names", self.names, max_count=_LIMITS.max_actions, max_characters=longest)
        if len(self.names) != width:
            raise ContractError(
                "names", f"got {len(self.names)} names, expected one a dimension, {width}"
            )
        if self.units != ():
            if not isinstance(self.units, tuple) or len(self.units) != width:
                raise ContractError("units", f"got {self.units!r:.80}, expected {width} texts")
            for i, unit in enumerate(self.units):
                if unit != "":
                    require_name(f"units[{i}]", unit, max_characters=longest)
        if self.title != "":
            require_name("title", self.title, max_characters=4 * longest)

    def _check_bounds(self) -> None:
        low, high = self.low, self.high
        if low is None and high is None:
            return
        if low is None or high is None:
            missing = "low" if low is None else "high"
            raise ContractError(missing, "got None, expected both bounds or neither")
        wrong = np.flatnonzero(~(np.isfinite(low) & np.isfinite(high) & (low < high)))
        if len(wrong):
            first = int(wrong[0])
            raise ContractError(
                f"low[{first}]",
                f"got {low[first]:g} and a high of {high[first]:g}, expected finite low < high",
            )
