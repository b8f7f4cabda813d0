"""What the detection node does: it asks a detector, and gives what was found in ComfyUI's forms."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import attrs
import numpy as np

from vlmcore._arrays import BoolArray, UInt8Array
from vlmcore.contracts.json_text import write_json
from vlmcore.errors import ContractError, DetectionCancelledError
from vlmcore.vision.detections import Detection, Detections
from vlmcore.vision.documents import detections_to_document
from vlmcore.vlm.detector import DetectionOptions, Detector, split_labels
from vlmcore.vlm.detector_catalog import match_detector
from vlmcore.vlm.generation import CancelToken
from vlmcore.vlm.loading import load_detector
from vlmcore_comfy.hosting import Host
from vlmcore_comfy.keeping import Kept
from vlmcore_comfy.models import CUSTOM, model_folder

__all__ = ["KEPT", "DetectorChoice", "boxes_of", "detect", "drawn", "masks", "written"]

_FOLDERS = ("detection", "grounding-dino")


@attrs.frozen
class DetectorChoice:
    """
    Which detector, as widgets say it.

    Attributes:
        label: The label of the catalog, or `vlmcore_comfy.models.CUSTOM`.
        custom: For the latter: a folder under one of ComfyUI's model folders, another folder, or an
            id of the hub.
        precision: The number format of its weights.
    """

    label: str
    custom: str = ""
    precision: str = "auto"

    def load(self, comfyui: Host) -> Detector:
        """
        Load it: what lies in a model folder comes before the hub.

        Raises:
            VlmcoreError: If it cannot be loaded.
        """
        wanted = self._wanted()
        folder = model_folder(wanted, _FOLDERS, comfyui)
        return load_detector(
            wanted if folder is None else folder,
            device=comfyui.device,
            dtype=self.precision,
            residency=comfyui.residency,
        )

    def _wanted(self) -> str:
        if self.label == CUSTOM:
            wanted = self.custom.strip()
            if not wanted:
                raise ContractError(
                    "custom_model_id",
                    "is blank, expected an id of the hub, as org/name, or a folder under "
                    "models/detection",
                )
            return wanted
        spec = match_detector(self.label)
        assert spec is not None
        assert spec.repo_id is not None
        return spec.repo_id


KEPT: Kept[DetectorChoice, Detector] = Kept(most=2)
"""The detectors that are open."""


def detect(
    choice: DetectorChoice,
    pictures: Sequence[UInt8Array],
    labels: str,
    *,
    thresholds: tuple[float, float, float],
    most: int,
    batch_size: int,
    unload: bool,
    comfyui: Host,
) -> list[Detections]:
    """
    Find what labels name in each picture.

    Args:
        choice: Which detector.
        pictures: The pictures.
        labels: What to look for, divided by commas or lines.
        thresholds: Of boxes, of words and of overlaps.
        most: How many there are at most in a picture.
        batch_size: Pictures that go through the model at once.
        unload: Whether the detector is closed afterwards.
        comfyui: Whom it runs in; asked whether to go on before each batch.

    Raises:
        NodeStoppedError: If the person stopped the graph.
        VlmcoreError: If it cannot be done.
    """
    names = split_labels(labels)
    options = DetectionOptions(
        box_threshold=thresholds[0],
        text_threshold=thresholds[1],
        max_iou=thresholds[2],
        max_detections=most,
    )
    cancel = CancelToken()
    found: list[Detections] = []
    try:
        detector = KEPT.get(choice, lambda: choice.load(comfyui))
        with comfyui.when_stopped(cancel.cancel):
            for start in range(0, len(pictures), batch_size):
                comfyui.raise_if_stopped()
                batch = pictures[start : start + batch_size]
                found += detector.detect_many(
                    batch, names, options, cancel=cancel, batch_size=batch_size, layout="HWC"
                )
                comfyui.progress(len(found), len(pictures))
    except DetectionCancelledError:
        comfyui.raise_if_stopped()
        raise
    finally:
        if unload:
            KEPT.drop(choice)
    return found


def written(found: Sequence[Detections], fps: float) -> str:
    """Write what was found as JSON: a document for each picture."""
    frames = [
        {"frame": index, "time_s": index / fps, **detections_to_document(each)}
        for index, each in enumerate(found)
    ]
    return write_json({"fps": fps, "frames": frames})


def drawn(pictures: Sequence[UInt8Array], found: Sequence[Detections]) -> list[UInt8Array]:
    """Draw what was found over the pictures."""
    return [each.draw(picture) for picture, each in zip(pictures, found, strict=True)]


def masks(found: Sequence[Detections]) -> list[BoolArray]:
    """Mark all boxes of each picture."""
    marked = []
    for each in found:
        mask: BoolArray = np.zeros((each.height_px, each.width_px), np.bool_)
        for item in each:
            left, top, right, bottom = item.place.bounds
            mask[math.floor(top) : math.ceil(bottom), math.floor(left) : math.ceil(right)] = True
        marked.append(mask)
    return marked


def boxes_of(found: Sequence[Detections]) -> tuple[list[Any], list[Any]]:
    """
    Give the boxes as ComfyUI has them.

    Returns:
        A list of boxes for each picture; and one list of all of them, each with the picture that it
        is in, its label and its score.
    """
    plain = [[_box(item.place.bounds) for item in each] for each in found]
    described = [
        {**box, "metadata": {"frame": index, **_known(item)}}
        for index, (each, boxes) in enumerate(zip(found, plain, strict=True))
        for item, box in zip(each, boxes, strict=True)
    ]
    return plain, described


def _known(item: Detection) -> dict[str, Any]:
    # ComfyUI's own nodes write "desc" over a box.
    return {"label": item.label, "desc": item.label, "score": item.score}


def _box(bounds: tuple[float, float, float, float]) -> dict[str, int]:
    left, top, right, bottom = math.floor(bounds[0]), math.floor(bounds[1]), bounds[2], bounds[3]
    return {
        "x": left,
        "y": top,
        "width": math.ceil(right) - left,
        "height": math.ceil(bottom) - top,
    }
