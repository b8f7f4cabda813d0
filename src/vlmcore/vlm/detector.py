"""The interface of models that find what labels name: open-vocabulary detection."""

from __future__ import annotations

import re
from collections.abc import Sequence
from types import TracebackType
from typing import Any, Protocol, runtime_checkable

import attrs

from vlmcore._arrays import (
    plain_float,
    require_count,
    require_finite_between,
    require_names,
)
from vlmcore.errors import ContractError, LimitExceededError
from vlmcore.limits import DetectorLimits, require_at_most
from vlmcore.media.arrays import Layout
from vlmcore.vision.detections import Detections
from vlmcore.vlm.generation import CancelToken

__all__ = ["DetectionOptions", "Detector", "DetectorInfo", "require_labels", "split_labels"]

_LIMITS = DetectorLimits()
_BETWEEN_LABELS = re.compile(r"[,\n]")


@attrs.frozen(kw_only=True)
class DetectionOptions:
    """
    What of all that a detector sees is given back.

    Attributes:
        box_threshold: The lowest score of a detection, 0 to 1.
        text_threshold: Of models that score each word, as Grounding DINO does: the lowest score of
            a word that names what is in a box, 0 to 1. A box takes the label of its best word, so
            this matters where it is above *box_threshold*. Others have no such score.
        max_iou: How much two detections of one label may overlap, intersection over union; of those
            that overlap more the one of the highest score stays. ``None`` keeps them all.
        max_detections: How many there are at most; those of the highest scores.

    Raises:
        ContractError: If a field is not as described.

    Example:
        >>> DetectionOptions(box_threshold=0.5).max_detections
        100
    """

    box_threshold: float = attrs.field(default=0.3, converter=plain_float)
    text_threshold: float = attrs.field(default=0.25, converter=plain_float)
    max_iou: float | None = attrs.field(default=0.5, converter=plain_float)
    max_detections: int = 100

    def __attrs_post_init__(self) -> None:
        require_finite_between(
            0.0, 1.0, box_threshold=self.box_threshold, text_threshold=self.text_threshold
        )
        if self.max_iou is not None:
            require_finite_between(0.0, 1.0, max_iou=self.max_iou)
        require_count(max_detections=self.max_detections)
        require_at_most("max_detections", self.max_detections, _LIMITS.max_detections)


@attrs.frozen(kw_only=True)
class DetectorInfo:
    """
    What a detector is and how it runs, for reports.

    Attributes:
        model: The model as it was named when loaded.
        source: Where its weights came from: a folder, or a hub id.
        architecture: What transformers calls its architecture, as ``"grounding-dino"``.
        backend: The engine that runs it, with its version.
        device: Where it runs.
        dtype: What its weights are kept in, and why that was chosen.
    """

    model: str
    source: str
    architecture: str
    backend: str
    device: str
    dtype: str


@runtime_checkable
class Detector(Protocol):
    """
    A loaded model that finds what labels name. Threads may share one.

    Use it as a context manager, or call `close`, to give its memory back.
    """

    @property
    def info(self) -> DetectorInfo:
        """What it is and how it runs."""
        ...

    def detect(
        self,
        image: Any,
        labels: Sequence[str],
        options: DetectionOptions = ...,
        /,
        *,
        cancel: CancelToken | None = None,
        layout: Layout | None = None,
    ) -> Detections:
        """Find what *labels* name in *image*, the highest score first."""
        ...

    def detect_many(
        self,
        images: Sequence[Any],
        labels: Sequence[str],
        options: DetectionOptions = ...,
        /,
        *,
        cancel: CancelToken | None = None,
        batch_size: int = ...,
        layout: Layout | None = None,
    ) -> list[Detections]:
        """Find what *labels* name in each of *images*, in their order, as `detect` does."""
        ...

    def close(self) -> None:
        """Give the model's memory back; further calls are refused. Closing twice is no error."""
        ...

    def __enter__(self) -> Detector: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None: ...


def require_labels(labels: Any) -> tuple[str, ...]:
    """
    Require labels that can be looked for: names on one line, each there once.

    Returns:
        The same labels.

    Raises:
        ContractError: If there are none, or one is blank, too long, there twice, or has control
            characters in it.
        LimitExceededError: If there are more than `vlmcore.limits.DetectorLimits` allows.
    """
    if isinstance(labels, (str, bytes)) or not isinstance(labels, Sequence):
        problem = f"got {type(labels).__name__}, expected a list of labels, as ['a cup', 'a hand']"
        raise ContractError("labels", problem)
    if not labels:
        raise ContractError("labels", "got none, expected what to look for, as ['a cup']")
    if len(labels) > _LIMITS.max_labels:
        raise LimitExceededError("max_labels", len(labels), _LIMITS.max_labels)
    given = tuple(labels)
    require_names(
        "labels",
        given,
        max_count=_LIMITS.max_labels,
        max_characters=_LIMITS.max_label_characters,
    )
    return given


def split_labels(text: str) -> tuple[str, ...]:
    """
    Read the labels that somebody typed: between commas, or on lines of their own.

    What is there twice is taken once.

    Raises:
        ContractError: If *text* is not text; or as `require_labels` does.

    Example:
        >>> split_labels("a cup, a hand")
        ('a cup', 'a hand')
    """
    if not isinstance(text, str):
        raise ContractError("labels", f"got {type(text).__name__}, expected text")
    words = (word.strip() for word in _BETWEEN_LABELS.split(text))
    return require_labels(tuple(dict.fromkeys(word for word in words if word)))
