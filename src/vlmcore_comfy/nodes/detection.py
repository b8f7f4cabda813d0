"""The node that finds what labels name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from vlmcore_comfy.declaring import (
    Node,
    Output,
    boolean,
    choice,
    integer,
    node,
    number,
    socket,
    text,
)
from vlmcore_comfy.hosting import ALONE, Host
from vlmcore_comfy.sockets import DETECTIONS

if TYPE_CHECKING:
    from vlmcore_comfy.video_frames import Detected

__all__ = ["NODES", "open_vocabulary_detection"]

_MODELS = (
    "Grounding DINO Tiny (fast)",
    "Grounding DINO Base",
    "OWLv2 Base Ensemble",
    "OmDet Turbo Swin Tiny (fast)",
    "Custom Hugging Face model",
)


@node(
    "VLMOpenVocabularyDetection",
    title="VLM Open-Vocabulary Detection",
    category="Vision/Detection",
    description="Finds what labels name in images or in the frames of a video. Labels are divided "
    "by commas or lines.",
    inputs=(
        socket("image", "IMAGE"),
        choice("model", _MODELS),
        text("labels", "person, animal, vehicle", multiline=True),
        number("box_threshold", 0.3, 0.0, 1.0, 0.01),
        number("text_threshold", 0.25, 0.0, 1.0, 0.01, tooltip="Of Grounding DINO only"),
        integer("max_detections", 100, 1, 1000),
        number("fps", 1.0, 0.001, 1000.0, 0.001, tooltip="Of the frames, for what follows them"),
        number("nms_threshold", 0.5, 0.0, 1.0, 0.01, is_optional=True),
        choice("precision", ("auto", "bfloat16", "float16", "float32"), is_optional=True),
        integer("batch_size", 1, 1, 16, is_optional=True),
        boolean("unload_after", default=False, is_optional=True),
        text(
            "custom_model_id",
            is_optional=True,
            tooltip="Of a custom model: a folder under models/detection, another folder, or an id "
            "of the hub",
        ),
    ),
    outputs=(
        Output(DETECTIONS, "detections"),
        Output("STRING", "json"),
        Output("IMAGE", "preview"),
        Output("MASK", "box_mask"),
        Output("BOUNDING_BOX", "bounding_boxes"),
        Output("BOUNDING_BOXES", "bounding_boxes_with_metadata"),
    ),
    extras=("detection",),
    is_threaded=True,
)
def open_vocabulary_detection(
    image: Any,
    model: str,
    labels: str,
    box_threshold: float,
    text_threshold: float,
    max_detections: int,
    fps: float,
    nms_threshold: float = 0.5,
    precision: str = "auto",
    batch_size: int = 1,
    unload_after: bool = False,
    custom_model_id: str = "",
    *,
    comfyui: Host = ALONE,
) -> tuple[Detected, str, Any, Any, list[Any], list[Any]]:
    """Find what labels name."""
    from vlmcore_comfy.detecting import DetectorChoice, boxes_of, detect, drawn, masks, written
    from vlmcore_comfy.images import batch_of, each_picture, image_of, mask_of
    from vlmcore_comfy.video_frames import Detected

    stops = comfyui.raise_if_stopped
    pictures = list(each_picture("image", batch_of("image", image), before_each=stops))
    found = detect(
        DetectorChoice(model, custom_model_id, precision),
        pictures,
        labels,
        thresholds=(box_threshold, text_threshold, nms_threshold),
        most=max_detections,
        batch_size=batch_size,
        unload=unload_after,
        comfyui=comfyui,
    )
    plain, described = boxes_of(found)
    return (
        Detected(tuple(found), fps),
        written(found, fps),
        image_of(drawn(pictures, found)),
        mask_of(masks(found)),
        plain,
        described,
    )


NODES: tuple[Node[..., Any], ...] = (open_vocabulary_detection,)
