"""Lines as points: cut where there is nothing, thinned to what a picture can show, dashed."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from vlmcore._arrays import BoolArray, Float64Array

__all__ = ["dashed", "runs", "thinned"]


def runs(there: BoolArray) -> Iterator[slice]:
    """List where *there* holds without a gap."""
    edges = np.flatnonzero(np.diff(there.astype(np.int8), prepend=0, append=0))
    for start, end in zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True):
        yield slice(start, end)


def thinned(points: Float64Array, column_px: float) -> Float64Array:
    """
    Keep, of the points in each column, the first, the lowest, the highest and the last.

    Args:
        points: Shape ``[N, 2]``, x ascending, in pixels.
        column_px: Width of a column.

    Returns:
        At most four points a column, in their order; for columns of one pixel they cover the same
        pixels as all points do.
    """
    column = np.floor(points[:, 0] / column_px).astype(np.int64)
    starts = np.flatnonzero(np.diff(column, prepend=column[0] - 1))
    if len(points) <= 4 * len(starts):
        return points
    ends = np.append(starts[1:], len(points))
    kept = [
        {start, end - 1, start + int(part.argmin()), start + int(part.argmax())}
        for start, end in zip(starts.tolist(), ends.tolist(), strict=True)
        for part in (points[start:end, 1],)
    ]
    return points[[index for indices in kept for index in sorted(indices)]]


def dashed(points: Float64Array, dash: tuple[float, ...]) -> Iterator[Float64Array]:
    """
    Cut a line into its dashes.

    Args:
        points: Shape ``[N, 2]``, in pixels.
        dash: Lengths drawn and left out in turn; empty for the line as it is.

    Yields:
        The parts to draw, shape ``[M, 2]``.
    """
    if not dash or len(points) < 2:
        yield points
        return
    lengths = np.hypot(*np.diff(points, axis=0).T)
    along = np.concatenate(([0.0], np.cumsum(lengths)))
    period, total = sum(dash), float(along[-1])
    offsets = np.concatenate(([0.0], np.cumsum(dash)))
    for turn in range(int(total / period) + 1):
        for drawn in range(0, len(dash), 2):
            start = turn * period + offsets[drawn]
            end = min(turn * period + offsets[drawn + 1], total)
            if start < end:
                inner = points[np.searchsorted(along, start, "right") : np.searchsorted(along, end)]
                ends = [
                    [np.interp(at, along, points[:, axis]) for axis in (0, 1)]
                    for at in (start, end)
                ]
                yield np.vstack((ends[:1], inner, ends[1:]))
