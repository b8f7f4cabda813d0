"""Of all boxes of a detector, those that are worth giving back."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from vlmcore._arrays import Float64Array
from vlmcore.vision.detections import Detection, Detections
from vlmcore.vision.places import Box
from vlmcore.vision.suppression import kept_by_nms

__all__ = ["selected"]


def selected(
    xyxy: Float64Array,
    scores: Float64Array,
    labels: Sequence[str],
    *,
    size_px: tuple[int, int],
    lowest_score: float,
    max_iou: float | None,
    most: int,
) -> Detections:
    """
    Choose the boxes that are sure enough, do not say the same twice, and lie in the image.

    Args:
        xyxy: Left, top, right and bottom of each in pixels, shape ``[Q, 4]``; what lies outside the
            image is cut off, and boxes of which nothing is left are dropped.
        scores: How sure each label is of each box, shape ``[Q, labels]``. A box has the label of
            its highest score; of equal ones the first.
        labels: The labels.
        size_px: Height and width of the image.
        lowest_score: The lowest score.
        max_iou: How much boxes of one label may overlap; ``None`` for as much as they like.
        most: How many to choose.

    Returns:
        Those chosen, the highest score first.
    """
    height, width = size_px
    best, sure = scores.argmax(axis=1), scores.max(axis=1)
    inside = np.clip(xyxy, 0.0, [width, height, width, height])
    has_area = (inside[:, 2] > inside[:, 0]) & (inside[:, 3] > inside[:, 1])
    kept = np.flatnonzero((sure >= lowest_score) & has_area)
    kept = kept[np.argsort(-sure[kept], kind="stable")]
    if max_iou is not None:
        kept = kept[kept_by_nms(inside[kept], sure[kept], best[kept].tolist(), max_iou=max_iou)]
    items = [
        Detection(place=Box.of(inside[i]), label=labels[best[i]], score=min(float(sure[i]), 1.0))
        for i in kept[:most]
    ]
    return Detections(height_px=height, width_px=width, items=items)
