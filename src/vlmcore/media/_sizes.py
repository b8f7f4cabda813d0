"""The one rule by which an image is made to fit, in whole numbers."""

from __future__ import annotations

import math

__all__ = ["size_within"]


def size_within(
    width: int,
    height: int,
    *,
    max_pixels: int | None = None,
    longest_edge_px: int | None = None,
    multiple_px: int = 1,
    may_enlarge: bool = False,
) -> tuple[int, int]:
    """
    Return the largest width and height of nearly these proportions that keep within the bounds.

    Each edge is a multiple; one that is shorter than a multiple from the start is any number of
    pixels, unless it may be enlarged. The bounds have room for one multiple each way. A size that
    was returned is returned for itself again.
    """
    steps = [multiple_px if may_enlarge or edge >= multiple_px else 1 for edge in (width, height)]
    low = _low(width, height, steps, max_pixels, longest_edge_px)
    # An edge is made longer to its next multiple at most, and only where it may be.
    most = [
        min(longest_edge_px or math.inf, -(-edge // step) * step if may_enlarge else edge)
        for edge, step in zip((width, height), steps, strict=True)
    ]
    near = [
        (x, y)
        for x in (low[0], low[0] + steps[0])
        for y in (low[1], low[1] + steps[1])
        if (x, y) == low
        or (x <= most[0] and y <= most[1] and (max_pixels is None or x * y <= max_pixels))
    ]
    return min(near, key=lambda size: (abs(size[0] * height - size[1] * width), -math.prod(size)))


def _low(
    width: int,
    height: int,
    steps: list[int],
    max_pixels: int | None,
    longest_edge_px: int | None,
) -> tuple[int, int]:
    """Return the size in these proportions, each edge cut to its step, and of one step at least."""
    edges = [width, height]
    if longest_edge_px is not None and max(width, height) > longest_edge_px:
        edges = [edge * longest_edge_px // max(width, height) for edge in (width, height)]
    if max_pixels is not None:
        # Floors of what real numbers would give: the root of the floor is the floor of the root.
        edges[0] = min(edges[0], math.isqrt(max_pixels * width // height))
        edges[1] = min(edges[1], math.isqrt(max_pixels * height // width))
    low = [max(step, edge // step * step) for edge, step in zip(edges, steps, strict=True)]
    if max_pixels is not None:  # one edge may have been made longer, to its step
        low[1] = max(steps[1], min(low[1], max_pixels // low[0] // steps[1] * steps[1]))
        low[0] = min(low[0], max_pixels // low[1] // steps[0] * steps[0])
    return low[0], low[1]
