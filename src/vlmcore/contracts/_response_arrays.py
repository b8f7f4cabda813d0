"""The arrays of a policy's answer, brought to ``[H, D]`` where they can be read in one way only."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Any

import numpy as np

from vlmcore._arguments import shown
from vlmcore._arrays import Float64Array, readonly_float64
from vlmcore.contracts.actions import Stream
from vlmcore.errors import AmbiguousResponseError, ContractError

__all__ = ["ResponseAxes", "is_numeric", "join_streams", "rows_of", "streams_of"]


class ResponseAxes(enum.Enum):
    """The axes of the arrays that a policy sends: steps H, dimensions D."""

    STEP = "[D]"
    CHUNK = "[H, D]"
    BATCH = "[1, H, D]"
    SCALARS = "[H]"  # one dimension only
    SCALARS_BATCH = "[1, H]"


_WITHOUT_D = {
    ResponseAxes.CHUNK: ResponseAxes.SCALARS,
    ResponseAxes.BATCH: ResponseAxes.SCALARS_BATCH,
}


def streams_of(widths: Mapping[str, int]) -> tuple[Stream, ...]:
    """Lay out streams side by side, in the order in which they are declared."""
    streams: list[Stream] = []
    for name, width in widths.items():
        if isinstance(width, bool) or not isinstance(width, int) or width < 1:
            raise ContractError(
                f"streams[{shown(name)}]", f"got {shown(width)}, expected a number of dimensions"
            )
        start = streams[-1].end if streams else 0
        streams.append(Stream(name=name, start=start, end=start + width))
    return tuple(streams)


def join_streams(
    arrays: Mapping[str, Any], streams: tuple[Stream, ...], axes: ResponseAxes | None
) -> Float64Array:
    """Join named arrays along D, in the order in which they are declared."""
    missing = [stream.name for stream in streams if stream.name not in arrays]
    if missing:
        raise ContractError("response", f"got streams without {missing}, expected all declared")
    parts = {}
    for stream in streams:
        field = f"response[{stream.name!r}]"
        width = stream.end - stream.start
        # A gripper often comes without its axis; declared as one dimension it is no riddle.
        squeezed = width == 1
        parts[stream.name] = rows_of(
            arrays[stream.name], width, axes, field=field, squeezed=squeezed
        )
    steps = {name: len(part) for name, part in parts.items()}
    if len(set(steps.values())) > 1:
        raise ContractError("response", f"got streams of {steps} steps, expected the same of each")
    return np.concatenate(list(parts.values()), axis=1)


def rows_of(
    value: Any, width: int, axes: ResponseAxes | None, *, field: str, squeezed: bool = False
) -> Float64Array:
    """
    Read numbers as steps of *width* dimensions, shape ``[H, D]``.

    Args:
        value: An array, or lists of numbers.
        width: How many dimensions there are, ``D``.
        axes: The axes as declared; ``None`` takes what can be read in one way only.
        field: The name for errors.
        squeezed: Whether an axis of one dimension may be missing.

    Raises:
        AmbiguousResponseError: If it can be read in more than one way.
        ContractError: If it cannot be read.
    """
    rank = _rank(value, field)
    array = readonly_float64(value, field=field, axes=("[D]", "[H, D]", "[B, H, D]")[rank - 1])
    if axes is not None:
        without = _WITHOUT_D.get(axes)
        if squeezed and without is not None and rank == without.value.count(",") + 1:
            axes = without
        return _as_declared(array, width, axes, field)
    if rank == 3:
        return _as_declared(array, width, ResponseAxes.BATCH, field)
    if width == 1 and squeezed and (rank == 1 or len(array) == 1):
        return array.reshape(-1, 1)
    if width == 1 and array.size > 1 and (rank == 1 or len(array) == 1):
        count = array.size
        readings = (f"{count} steps of one dimension", f"one step of {count} dimensions")
        raise AmbiguousResponseError(
            field, readings, f"declare axes=, since shape {list(array.shape)} does not say"
        )
    return _as_declared(array, width, (ResponseAxes.STEP, ResponseAxes.CHUNK)[rank - 1], field)


def is_numeric(value: Any) -> bool:
    """Say whether *value* holds numbers, at its first place: it may be meant as an action."""
    for _ in range(4):
        if isinstance(value, (list, tuple)) and value:
            value = value[0]
    if isinstance(value, np.ndarray):
        return value.dtype.kind in "fiubcO"
    return isinstance(value, (int, float, np.number)) and not isinstance(value, bool)


def _rank(value: Any, field: str) -> int:
    """Count the axes of lists, of an array, or of lists of arrays."""
    rank, inner = 0, value
    while isinstance(inner, (list, tuple)) and inner and rank < 4:
        rank, inner = rank + 1, inner[0]
    rank += inner.ndim if isinstance(inner, np.ndarray) else isinstance(inner, (list, tuple))
    if not 1 <= rank <= 3:
        if rank == 0:
            what = type(value).__name__
            raise ContractError(field, f"got {what}, expected numbers of axes [D] to [1, H, D]")
        raise ContractError(field, "got more than three axes, expected [D], [H, D] or [1, H, D]")
    return rank


def _as_declared(array: Float64Array, width: int, axes: ResponseAxes, field: str) -> Float64Array:
    shape = list(array.shape)
    if array.ndim != axes.value.count(",") + 1:
        raise ContractError(field, f"got shape {shape}, expected axes {axes.value}")
    batched = axes in (ResponseAxes.BATCH, ResponseAxes.SCALARS_BATCH)
    if batched and len(array) != 1:
        raise ContractError(field, f"got a batch of {len(array)}, expected a batch of 1")
    if axes in (ResponseAxes.SCALARS, ResponseAxes.SCALARS_BATCH):
        if width != 1:
            raise ContractError(
                field, f"got axes {axes.value} for {width} dimensions, expected one dimension"
            )
        return array.reshape(-1, 1)
    if array.shape[-1] != width:
        raise ContractError(
            field, f"got shape {shape}, expected axes {axes.value} with {width} dimensions"
        )
    return array.reshape(-1, width)
