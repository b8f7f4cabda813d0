"""Scores an answer that says where things are, by how boxes overlap."""

from __future__ import annotations

import attrs
import numpy as np

from vlmcore._arguments import require_kind, require_switch
from vlmcore._arrays import plain_float, require_finite_between, require_positive
from vlmcore.errors import ContractError
from vlmcore.lab.scoring.phrases import words_of
from vlmcore.lab.scoring.scores import Score, ScoreFlag, look_at
from vlmcore.limits import SuiteLimits, require_at_most
from vlmcore.vision.detections import Detections
from vlmcore.vision.dialects import find_dialect
from vlmcore.vision.places import Box
from vlmcore.vision.reading import read_spatial_answer
from vlmcore.vision.suppression import iou_matrix
from vlmcore.vision.views import ImageView

__all__ = ["DetectionEvaluator"]

_LIMITS = SuiteLimits()


@attrs.frozen(kw_only=True)
class DetectionEvaluator:
    """
    Scores an answer by its boxes: the F1 of those that are found and those that are expected.

    A box is found if one of its label overlaps with it enough (intersection over union); each
    counts once, the pairs that overlap most first. What is too much lowers the score as much as
    what is missing, so that boxes everywhere find nothing.

    Attributes:
        expected: The boxes in pixels of an image, each with its label; at least one.
        dialect: How the model writes them, a name of `vlmcore.vision.dialects.DIALECTS`.
        min_iou: How much two boxes have to overlap, above 0, at most 1.
        seen_height_px: Height of what the model is shown, for dialects that write pixels of that;
            that of the image if 0.
        seen_width_px: Width of the same.
        must_be_whole: Whether an answer that is cut counts nothing; else what is whole in it does.

    Raises:
        ContractError: If a field is not as described.
        LimitExceededError: If it is larger than `vlmcore.limits.SuiteLimits` allows.

    Example:
        >>> from vlmcore.vision.detections import Detection
        >>> dog = Detection(place=Box.of((20, 100, 180, 300)), label="dog")
        >>> scene = Detections(height_px=400, width_px=200, items=[dog])
        >>> answer = '[{"box_2d": [250, 100, 750, 900], "label": "Dog"}]'
        >>> DetectionEvaluator(expected=scene, dialect="gemini").score(answer).reason
        '1 of 1 boxes found, 0 too many'
    """

    expected: Detections
    dialect: str
    min_iou: float = attrs.field(default=0.5, converter=plain_float)
    seen_height_px: int = 0
    seen_width_px: int = 0
    must_be_whole: bool = False

    def __attrs_post_init__(self) -> None:
        require_kind("expected", self.expected, Detections)
        require_kind("dialect", self.dialect, str)
        find_dialect(self.dialect)
        require_positive(min_iou=self.min_iou)
        require_finite_between(0.0, 1.0, min_iou=self.min_iou)
        require_switch(must_be_whole=self.must_be_whole)
        require_at_most("max_boxes", len(self.expected), _LIMITS.max_boxes)
        if not len(self.expected):
            raise ContractError("expected", "got no boxes, expected at least one")
        for i, item in enumerate(self.expected):
            if not isinstance(item.place, Box):
                problem = f"got {type(item.place).__name__}, expected a Box"
                raise ContractError(f"expected[{i}]", problem)
            if not words_of(item.label):
                raise ContractError(f"expected[{i}]", "got no label, expected a word in it")
        self._view()

    def _view(self) -> ImageView:
        return ImageView(
            height_px=self.expected.height_px,
            width_px=self.expected.width_px,
            seen_height_px=self.seen_height_px,
            seen_width_px=self.seen_width_px,
        )

    def score(self, text: str, *, finish_reason: str | None = None) -> Score:
        """Score an answer, as `vlmcore.lab.scoring.scores.Evaluator` says."""
        seen = look_at(text, finish_reason, must_be_whole=self.must_be_whole)
        if isinstance(seen, Score):
            return seen
        labels = {words_of(label): label for label in self.expected.labels}
        only = next(iter(labels.values())) if len(labels) == 1 else ""
        try:
            answer = read_spatial_answer(seen.text, self.dialect, self._view(), label=only)
        except ContractError as error:
            return seen.score(0.0, f"cannot be read: {error.problem}", ScoreFlag.BROKEN)
        found, wanted = len(answer.detections), len(self.expected)
        hits = _matched(answer.detections, self.expected, self.min_iou)
        reason = f"{hits} of {wanted} boxes found, {found - hits} too many"
        flags = []
        if answer.faults:
            path, problem = answer.faults[0]
            reason += f"; faults: {len(answer.faults)}, the first at {path}: {problem}"
            flags.append(ScoreFlag.BROKEN)
        return seen.score(2 * hits / (found + wanted), " ".join(reason.split()), *flags)


def _matched(found: Detections, expected: Detections, min_iou: float) -> int:
    """Count the pairs of one label that overlap enough, each box in one pair at most."""
    overlaps = iou_matrix(found.xyxy, expected.xyxy)
    names = [words_of(label) for label in found.labels]
    wanted = [words_of(label) for label in expected.labels]
    near = [
        (-float(overlaps[i, j]), int(i), int(j))
        for i, j in np.argwhere(overlaps >= min_iou)
        if names[i] == wanted[j]
    ]
    used: set[int] = set()
    hit: set[int] = set()
    for _, i, j in sorted(near):
        if i not in used and j not in hit:
            used.add(i)
            hit.add(j)
    return len(hit)
