"""Detectors of transformers: models that find what labels name."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import Any

import numpy as np
import torch
import transformers

from vlmcore._arrays import UInt8Array, require_count
from vlmcore.errors import (
    ContractError,
    DetectionCancelledError,
    DetectionError,
    VlmcoreError,
)
from vlmcore.limits import DetectorLimits, require_at_most
from vlmcore.media.arrays import Layout
from vlmcore.media.images import load_image
from vlmcore.vision.detections import Detections
from vlmcore.vlm._requirements import cancel_tokens
from vlmcore.vlm._selecting import selected
from vlmcore.vlm.backends._detector_kinds import Query, open_detector_inputs
from vlmcore.vlm.backends._failures import failures_while
from vlmcore.vlm.backends._held import HeldModel
from vlmcore.vlm.backends._opening import ModelKind, OpenedModel, estimate_bytes, open_model
from vlmcore.vlm.backends._quietly import quietly
from vlmcore.vlm.backends._turns import taken
from vlmcore.vlm.detector import DetectionOptions, DetectorInfo, require_labels
from vlmcore.vlm.generation import CancelToken
from vlmcore.vlm.placement import Placement
from vlmcore.vlm.residency import Residency
from vlmcore.vlm.sources import ModelSource

__all__ = ["TransformersDetector"]

_library: Any = transformers  # its annotations are partial
_LIMITS = DetectorLimits()
_DEFAULTS = DetectionOptions()
_DETECTION = ModelKind(
    does="finds what labels name",
    configurations=_library.MODEL_FOR_ZERO_SHOT_OBJECT_DETECTION_MAPPING,
    loader=_library.AutoModelForZeroShotObjectDetection,
    open_processor=open_detector_inputs,
)


class TransformersDetector:
    """
    A detector of transformers, in this process.

    Threads may share it: their calls are served one after the other. Two detectors of the same
    model, placed alike, share one copy of its weights.

    Args:
        source: Which model.
        placement: Where and in which number format it is loaded.
        residency: Whose memory it lives in.

    Raises:
        ModelError: If the model cannot be loaded; see `vlmcore.vlm.loading.load_detector`.
    """

    def __init__(self, *, source: ModelSource, placement: Placement, residency: Residency) -> None:
        self._source = source
        self._held = HeldModel(
            name=source.name,
            role="detector",
            key=("detector", source.location, source.revision, placement),
            load=lambda: open_model(source, placement, kind=_DETECTION),
            needed_bytes=estimate_bytes(source, placement),
            residency=residency,
        )
        with self._held.using() as opened:
            self._info = _describe(source, opened)

    @property
    def info(self) -> DetectorInfo:
        """What it is and how it runs."""
        return self._info

    def detect(
        self,
        image: Any,
        labels: Sequence[str],
        options: DetectionOptions = _DEFAULTS,
        /,
        *,
        cancel: CancelToken | None = None,
        layout: Layout | None = None,
    ) -> Detections:
        """
        Find what *labels* name in *image*.

        Args:
            image: Whatever `vlmcore.media.load_image` takes.
            labels: What to look for, as ``["a cup", "a hand"]``.
            options: What of it to give back.
            cancel: Stops the model within one of its layers.
            layout: Which axis of an array holds the channels, as for `vlmcore.media.load_image`.

        Returns:
            What was found, in pixels of the image, the highest score first; the labels are those
            given, to the letter.

        Raises:
            DetectionError: If the model fails.
            DetectionCancelledError: If it was cancelled.
            ModelMemoryError: If its memory does not suffice.
            MediaError: If the image cannot be read.
            ContractError: If the labels are not such, or this model cannot be told so many.
            ModelError: If the detector is closed.
        """
        (found,) = self.detect_many(
            [image], labels, options, cancel=cancel, batch_size=1, layout=layout
        )
        return found

    def detect_many(
        self,
        images: Sequence[Any],
        labels: Sequence[str],
        options: DetectionOptions = _DEFAULTS,
        /,
        *,
        cancel: CancelToken | None = None,
        batch_size: int = 4,
        layout: Layout | None = None,
    ) -> list[Detections]:
        """
        Find what *labels* name in each of *images*, as `detect` does.

        Images that the model is given in one size go through it together. Others are not padded to
        one size, which would change what is found.

        Args:
            images: A list of whatever `vlmcore.media.load_image` takes; each is read when its turn
                comes.
            labels: What to look for in all of them.
            options: What of it to give back.
            cancel: Stops the model within one of its layers.
            batch_size: How many images to read, and to give to the model, at once.
            layout: Which axis of arrays holds the channels, as for `vlmcore.media.load_image`.

        Returns:
            What was found in each, in their order.

        Raises:
            DetectionError: As for `detect`.
            ModelMemoryError: If its memory does not suffice; a smaller *batch_size* may help.
            MediaError: If one of the images cannot be read.
            ContractError: As for `detect`, or if *images* is no list.
            ModelError: If the detector is closed.
        """
        self._held.require_open()
        labels = require_labels(labels)
        _require_call(images, options, batch_size)
        cancels = (*cancel_tokens(cancel), self._held.closing)
        found: list[Detections] = []
        for start in range(0, len(images), batch_size):
            pixels = [
                load_image(image, layout=layout) for image in images[start : start + batch_size]
            ]
            found += self._found(pixels, labels, options, cancels)
        return found

    def close(self) -> None:
        """Stop what is running and give the model's memory back. Closing twice is no error."""
        self._held.close()

    def __enter__(self) -> TransformersDetector:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _found(
        self,
        pixels: Sequence[UInt8Array],
        labels: tuple[str, ...],
        options: DetectionOptions,
        cancels: Sequence[CancelToken],
    ) -> list[Detections]:
        try:
            using = self._held.using()
            with using as opened, taken(opened.turn, cancels) as ours:
                _require_turn(is_ours=ours)
                with failures_while("looking", self._source.name, DetectionError), quietly():
                    return _run(opened, pixels, labels, options, cancels)
        except _StoppedError:
            raise DetectionCancelledError(
                self._source.name, "the search was cancelled before its end"
            ) from None
        except ContractError as error:
            if error.field == "key":  # closed while this call was on its way
                self._held.require_open()
            raise


def _require_call(images: Any, options: Any, batch_size: int) -> None:
    """Require images, options and a size of batches, and not what looks like them."""
    if isinstance(images, (str, bytes)) or not isinstance(images, Sequence):
        problem = f"got {type(images).__name__}, expected a list of images"
        raise ContractError("images", problem)
    if not isinstance(options, DetectionOptions):
        problem = f"got {type(options).__name__}, expected DetectionOptions"
        raise ContractError("options", problem)
    require_count(batch_size=batch_size)
    require_at_most("max_batch_size", batch_size, _LIMITS.max_batch_size)


class _StoppedError(VlmcoreError):
    """The model was stopped in one of its layers."""


def _require_turn(*, is_ours: bool) -> None:
    if not is_ours:
        raise _StoppedError


def _describe(source: ModelSource, opened: OpenedModel) -> DetectorInfo:
    return DetectorInfo(
        model=source.name,
        source=source.location,
        architecture=opened.processor.architecture,
        backend=f"transformers {transformers.__version__}, torch {torch.__version__}",
        device=str(opened.device),
        dtype=f"{str(opened.dtype).removeprefix('torch.')} ({opened.dtype_reason})",
    )


def _run(
    opened: OpenedModel,
    pixels: Sequence[UInt8Array],
    labels: tuple[str, ...],
    options: DetectionOptions,
    cancels: Sequence[CancelToken],
) -> list[Detections]:
    query = opened.processor.query_for(labels)
    tensors = [opened.processor.pixels.tensor_of(each) for each in pixels]
    alike: dict[torch.Size, list[int]] = {}
    for i, tensor in enumerate(tensors):
        alike.setdefault(tensor.shape, []).append(i)
    found: dict[int, Detections] = {}
    for members in alike.values():
        batch = torch.stack([tensors[i] for i in members])
        with torch.inference_mode(), _mixing(opened), _stopping(opened.model, cancels):
            boxes, scores = _looked(opened, batch, query)
        for i, parts, sure in zip(members, boxes.numpy(), scores.numpy(), strict=True):
            found[i] = _chosen(opened, pixels[i], parts, sure, labels=labels, options=options)
    return [found[i] for i in range(len(pixels))]


def _looked(
    opened: OpenedModel, batch: torch.Tensor, query: Query
) -> tuple[torch.Tensor, torch.Tensor]:
    words = {name: t.to(opened.device) for name, t in query.batch_of(len(batch)).items()}
    outputs = opened.model(pixel_values=batch.to(opened.device, opened.dtype), **words)
    boxes, scores = opened.processor.read(outputs, query)
    if not (boxes.isfinite().all() and scores.isfinite().all()):
        raise ArithmeticError("its numbers are not finite; dtype='float32' may help")
    return boxes, scores


def _chosen(
    opened: OpenedModel,
    pixels: UInt8Array,
    parts: Any,
    scores: Any,
    *,
    labels: tuple[str, ...],
    options: DetectionOptions,
) -> Detections:
    height, width = opened.processor.pixels.frame_of(pixels)
    lowest = options.box_threshold
    if opened.processor.scores_words:
        lowest = max(lowest, options.text_threshold)
    return selected(
        parts.astype(np.float64) * [width, height, width, height],
        scores.astype(np.float64),
        labels,
        size_px=pixels.shape[:2],
        lowest_score=lowest,
        max_iou=options.max_iou,
        most=options.max_detections,
    )


def _mixing(opened: OpenedModel) -> Any:
    """Let numbers of 16 and 32 bits meet: parts of these models compute in 32 whatever is asked."""
    return torch.autocast(
        opened.device.type, opened.dtype, enabled=opened.dtype is not torch.float32
    )


@contextmanager
def _stopping(model: Any, cancels: Sequence[CancelToken]) -> Iterator[None]:
    """Stop the model before its next layer once one of *cancels* is used."""

    def look(*_: Any) -> None:
        if any(token.cancelled for token in cancels):
            raise _StoppedError

    layers = [
        layer
        for stack in model.modules()
        if isinstance(stack, torch.nn.ModuleList)
        for layer in stack
    ]
    hooks = [layer.register_forward_pre_hook(look) for layer in layers]
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()
