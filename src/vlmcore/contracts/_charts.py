"""Charts of actions: what a chunk, its space and its report say, brought together."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from vlmcore._arguments import shown
from vlmcore._arrays import Float64Array, readonly_float64
from vlmcore.charts.chart import Chart, HasMarks
from vlmcore.contracts.embodiment import ActionSpace, Embodiment
from vlmcore.errors import ContractError

__all__ = ["chart_of"]


def chart_of(
    values: Float64Array,
    names: tuple[str, ...],
    *,
    title: str,
    space: ActionSpace | Embodiment | None,
    report: HasMarks | None,
    last_command: Any,
    proposed: Float64Array | None = None,
) -> Chart:
    """
    Make the chart of some actions.

    Args:
        values: Shape ``[T, D]``.
        names: What each dimension is.
        title: One line above.
        space: Gives bounds, units and the rate; of a robot its actions do.
        report: Gives the marks.
        last_command: What was sent before the first step, shape ``[D]`` or numbers by name.
        proposed: What the values were before something changed them, shape ``[T, D]``.

    Raises:
        ContractError: If they do not fit together.
    """
    if isinstance(space, Embodiment):
        space = space.actions
    _check_space(names, space)
    dims = () if space is None else space.dims
    units = tuple(dim.unit for dim in dims)
    return Chart(
        values=values,
        names=names,
        units=units if any(units) else (),
        low=None if space is None else space.low,
        high=None if space is None else space.high,
        marks=None if report is None else _marks(report, values),
        marks_together=space is not None and bool(space.rotations),
        proposed=proposed,
        before=_before(_last_command(names, last_command), space),
        rate_hz=None if space is None else space.rate_hz,
        title=title,
    )


def _before(last_command: Float64Array | None, space: ActionSpace | None) -> Float64Array | None:
    """Say what the first step follows: of an offset 0, whatever was sent."""
    if last_command is None or space is None or not space.offsets:
        return last_command
    before: Float64Array = last_command.copy()
    before[list(space.offsets)] = 0.0
    return before


def _check_space(names: tuple[str, ...], space: Any) -> None:
    if space is None:
        return
    if not isinstance(space, ActionSpace):
        kinds = "an ActionSpace or an Embodiment"
        raise ContractError("space", f"got {type(space).__name__}, expected {kinds}")
    if space.names == names:
        return
    missing = [name for name in names if name not in space.names]
    extra = [name for name in space.names if name not in names]
    said = f"without {missing} and with {extra}" if missing or extra else "in another order"
    raise ContractError(
        "space", f"got dimensions {said}, expected those of the chunk, {', '.join(names)}"
    )


def _marks(report: Any, values: Float64Array) -> Any:
    if not callable(getattr(report, "marks", None)):
        raise ContractError(
            "report", f"got {type(report).__name__}, expected something with marks()"
        )
    marks = report.marks()
    steps, width = values.shape
    shape = getattr(marks, "shape", None)
    if not isinstance(shape, tuple) or len(shape) != 2:
        raise ContractError("report", f"got marks {shown(marks)}, expected bool of axes [U, D]")
    if not 1 <= shape[0] <= steps or shape[1] != width:
        raise ContractError(
            "report",
            f"got marks of shape {list(shape)}, expected 1 to {steps} steps of {width} dimensions: "
            "a report on this chunk",
        )
    return marks


def _last_command(names: tuple[str, ...], value: Any) -> Float64Array | None:
    if value is None:
        return None
    if isinstance(value, Mapping):
        missing = [name for name in names if name not in value]
        unknown = [name for name in value if name not in names]
        if missing or unknown:
            raise ContractError(
                "last_command",
                f"got names with missing {missing} and unknown {unknown}, "
                f"expected {', '.join(names)}",
            )
        value = [value[name] for name in names]
    row = readonly_float64(value, field="last_command", axes="[D]")
    if len(row) != len(names):
        raise ContractError(
            "last_command", f"got {len(row)} numbers, expected {len(names)}, one a dimension"
        )
    return row
