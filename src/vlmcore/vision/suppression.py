"""Non-maximum suppression: of boxes that overlap, the one of the highest score stays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from vlmcore._arrays import Float64Array

__all__ = ["iou_matrix", "kept_by_nms"]


def iou_matrix(one: Float64Array, other: Float64Array) -> Float64Array:
    """
    Measure how much boxes overlap: intersection over union.

    Args:
        one: Left, top, right and bottom of each, shape ``[N, 4]``.
        other: The same, shape ``[M, 4]``.

    Returns:
        0 to 1, shape ``[N, M]``; 0 where neither has an area.

    Example:
        >>> iou_matrix(np.array([[0.0, 0, 2, 1]]), np.array([[1.0, 0, 3, 1]])).round(3).tolist()
        [[0.333]]
    """
    first, second = one[:, np.newaxis, :], other[np.newaxis, :, :]
    sides = np.minimum(first[..., 2:], second[..., 2:]) - np.maximum(
        first[..., :2], second[..., :2]
    )
    common = np.prod(np.clip(sides, 0.0, None), axis=-1)
    areas = np.prod(one[:, 2:] - one[:, :2], axis=1)[:, np.newaxis]
    others = np.prod(other[:, 2:] - other[:, :2], axis=1)[np.newaxis, :]
    union = areas + others - common
    result: Float64Array = np.divide(common, union, out=np.zeros_like(common), where=union > 0)
    return result


def kept_by_nms(
    xyxy: Float64Array, scores: Float64Array, groups: Sequence[int], *, max_iou: float
) -> list[int]:
    """
    Choose the boxes that stay, from the highest score to the lowest.

    A box goes if it overlaps by more than *max_iou* with one of its group that stays. Of boxes of
    one score the first comes first.

    Args:
        xyxy: Left, top, right and bottom of each, shape ``[N, 4]``.
        scores: The score of each, shape ``[N]``.
        groups: The group of each; boxes of different groups do not touch each other.
        max_iou: How much two may overlap.

    Returns:
        The indices of those that stay, in the order of their scores.

    Source:
        The rule of ``torchvision.ops.batched_nms``, which is strict: an overlap of exactly
        *max_iou* stays.
    """
    members: npt.NDArray[Any] = np.asarray(groups)
    order = np.argsort(-scores, kind="stable")
    kept: list[int] = []
    while len(order):
        best, rest = int(order[0]), order[1:]
        kept.append(best)
        overlaps = iou_matrix(xyxy[best : best + 1], xyxy[rest])[0]
        order = rest[(overlaps <= max_iou) | (members[rest] != members[best])]
    return kept
