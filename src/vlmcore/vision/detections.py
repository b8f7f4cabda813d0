"""What was found in an image, and where."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import attrs
import numpy as np

from vlmcore._arrays import (
    Float64Array,
    UInt8Array,
    immutable,
    plain_float,
    require_count,
    require_finite_between,
    require_name,
)
from vlmcore.errors import ContractError
from vlmcore.limits import VisionLimits, require_at_most
from vlmcore.vision._html import detections_html
from vlmcore.vision.drawing import draw_detections
from vlmcore.vision.places import Box, Place, Point, Polygon
from vlmcore.vision.suppression import kept_by_nms

__all__ = ["Detection", "Detections"]

_LIMITS = VisionLimits()


@attrs.frozen(kw_only=True)
class Detection:
    """
    One thing that was found.

    Attributes:
        place: Where it is, in pixels of the image.
        label: What it is; empty if that was not said.
        score: How sure that is, 0 to 1; ``None`` if that was not said, as of most language models.

    Raises:
        ContractError: If a field is not as described.
    """

    place: Place
    label: str = ""
    score: float | None = attrs.field(default=None, converter=plain_float)

    def __attrs_post_init__(self) -> None:
        _require("place", self.place, (Box, Point, Polygon), "a Box, a Point or a Polygon")
        if self.label != "":
            require_name("label", self.label, max_characters=_LIMITS.max_label_characters)
        if self.score is not None:
            require_finite_between(0.0, 1.0, score=self.score)


def _require(field: str, value: object, kind: type | tuple[type, ...], words: str) -> None:
    if not isinstance(value, kind):
        raise ContractError(field, f"got {type(value).__name__}, expected {words}")


def _items(items: Any) -> Any:
    return tuple(items) if isinstance(items, Iterable) else items


@attrs.frozen(kw_only=True)
class Detections:
    """
    What was found in one image, in the order in which it was said.

    Attributes:
        height_px: Height of the image.
        width_px: Width of the image.
        items: What was found; all of it lies within the image.

    Raises:
        ContractError: If something lies outside, or a field is not as described.
        LimitExceededError: If there is more than `vlmcore.limits.VisionLimits` allows.

    Example:
        >>> dog = Detection(place=Box.of((10, 20, 30, 60)), label="dog", score=0.9)
        >>> found = Detections(height_px=100, width_px=100, items=[dog])
        >>> found.xyxy.tolist(), found.where(min_score=0.95).labels
        ([[10.0, 20.0, 30.0, 60.0]], ())
    """

    height_px: int
    width_px: int
    items: tuple[Detection, ...] = attrs.field(default=(), converter=_items)

    def __attrs_post_init__(self) -> None:
        require_count(height_px=self.height_px, width_px=self.width_px)
        require_at_most("max_side_px", max(self.height_px, self.width_px), _LIMITS.max_side_px)
        _require("items", self.items, tuple, "a list of Detection")
        require_at_most("max_detections", len(self.items), _LIMITS.max_detections)
        for i, item in enumerate(self.items):
            _require(f"items[{i}]", item, Detection, "a Detection")
            left, top, right, bottom = item.place.bounds
            if left < 0 or top < 0 or right > self.width_px or bottom > self.height_px:
                problem = (
                    f"got {left:g}, {top:g}, {right:g}, {bottom:g}, expected a place within "
                    f"{self.width_px} x {self.height_px} pixels"
                )
                raise ContractError(f"items[{i}].place", problem)

    def __len__(self) -> int:
        return len(self.items)

    def __iter__(self) -> Iterator[Detection]:
        return iter(self.items)

    def __getitem__(self, index: int) -> Detection:
        return self.items[index]

    @property
    def xyxy(self) -> Float64Array:
        """Left, top, right and bottom of each, shape ``[N, 4]``; a point has no extent."""
        bounds = [item.place.bounds for item in self.items]
        return immutable(np.array(bounds, np.float64).reshape(-1, 4))

    @property
    def scores(self) -> Float64Array:
        """The score of each, shape ``[N]``; NaN where none was said."""
        scores = [np.nan if item.score is None else item.score for item in self.items]
        return immutable(np.array(scores, np.float64))

    @property
    def labels(self) -> tuple[str, ...]:
        """The label of each."""
        return tuple(item.label for item in self.items)

    def where(
        self,
        *,
        labels: Iterable[str] | None = None,
        min_score: float = 0.0,
        min_area_px: float = 0.0,
        most: int | None = None,
    ) -> Detections:
        """
        Keep some of them, in their order.

        Args:
            labels: The labels to keep; all if ``None``.
            min_score: The lowest score; what has none is kept if this is 0.
            min_area_px: The smallest area of what each reaches; points have none.
            most: How many to keep at most: those of the highest scores, then those said first.

        Raises:
            ContractError: If an argument is not as described.
        """
        require_finite_between(0.0, 1.0, min_score=min_score)
        require_finite_between(0.0, float("1e12"), min_area_px=min_area_px)
        if isinstance(labels, str):
            raise ContractError("labels", f"got {labels!r:.80}, expected a list of labels")
        wanted = None if labels is None else frozenset(labels)
        kept = [
            i
            for i, item in enumerate(self.items)
            if (wanted is None or item.label in wanted)
            and (item.score or 0.0) >= min_score
            and _area_px(item) >= min_area_px
        ]
        if most is not None:
            require_count(most=most)
            kept = sorted(sorted(kept, key=lambda i: -(self.items[i].score or 0.0))[:most])
        return self._of(kept)

    def suppressed(self, max_iou: float = 0.5, *, per_label: bool = True) -> Detections:
        """
        Drop what overlaps with something of a higher score (non-maximum suppression).

        What has no score comes after what has one, in the order in which it was said. Polygons
        overlap as their bounds do; points overlap with nothing.

        Args:
            max_iou: How much two may overlap, intersection over union, 0 to 1.
            per_label: Whether only things of one label drop each other.

        Returns:
            Those that are left, in the order in which they were said.

        Raises:
            ContractError: If *max_iou* is not from 0 to 1.
        """
        require_finite_between(0.0, 1.0, max_iou=max_iou)
        scores = np.nan_to_num(self.scores, nan=-1.0)
        groups = [self.labels.index(label) if per_label else 0 for label in self.labels]
        return self._of(sorted(kept_by_nms(self.xyxy, scores, groups, max_iou=max_iou)))

    def _of(self, indices: Iterable[int]) -> Detections:
        return attrs.evolve(self, items=tuple(self.items[i] for i in indices))

    def draw(self, image: UInt8Array) -> UInt8Array:
        """
        Draw them over their image, each label in a colour of its own.

        Args:
            image: RGB, uint8, shape ``[height_px, width_px, 3]``.

        Returns:
            A picture of the same shape, read-only.

        Raises:
            ContractError: If *image* is not such an array, or of another size.
            MissingDependencyError: If Pillow is not installed.
        """
        return draw_detections(image, self)

    def _repr_html_(self) -> str:
        return detections_html(self)


def _area_px(item: Detection) -> float:
    left, top, right, bottom = item.place.bounds
    return (right - left) * (bottom - top)
