"""What models answer, by dialect, and what reads it; schemas of strangers beside them."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from typing import Any

from vlmcore.contracts.json_text import read_json
from vlmcore.vision.dialects import DIALECTS
from vlmcore.vision.documents import detections_from_json
from vlmcore.vision.reading import read_spatial_answer
from vlmcore.vision.views import ImageView
from vlmcore.vlm.outputs import JsonOutput
from vlmcore.vlm.structure import read_answer

__all__ = ["ANSWERS"]

VIEW = ImageView.letterboxed(height_px=480, width_px=640, side_px=448)
SCHEMA = {
    "$defs": {"node": {"properties": {"kids": {"items": {"$ref": "#/$defs/node"}}}}},
    "type": "object",
    "properties": {
        "name": {"type": "string", "pattern": "^a+b?$"},
        "tree": {"$ref": "#/$defs/node"},
    },
    "required": ["name"],
}
OUTPUT = JsonOutput(schema=SCHEMA)
PLACES = {
    "qwen-vl": "<ref>dog</ref><box>(1,2),(30,40)</box>",
    "qwen2-vl": "<|object_ref_start|>dog<|object_ref_end|><|box_start|>(1,2),(3,4)<|box_end|>",
    "qwen2.5-vl": '[{"bbox_2d": [1, 2, 30, 40], "label": "dog"}, {"point_2d": [1, 2]}]',
    "qwen3-vl": '```json\n[{"bbox_2d": [1, 2, 300, 400], "label": "dog"}]\n```',
    "florence-2": "</s><s>dog<loc_1><loc_2><loc_300><loc_400></s>",
    "florence-2-polygons": "dog<poly><loc_1><loc_2><loc_3><loc_2><loc_3><loc_4></poly>",
    "paligemma": "<loc0001><loc0002><loc0300><loc0400><seg001> dog ; <loc0001>",
    "molmo": '<points x1="10.5" y1="20" x2="3" y2="4" alt="dogs">dogs</points>',
    "moondream": '{"objects": [{"x_min": 0.1, "y_min": 0.2, "x_max": 0.5, "y_max": 0.6}]}',
    "gemini": '[{"box_2d": [1, 2, 300, 400], "label": "dog"}, {"point": [1, 2]}]',
    "kosmos-2": "<phrase>dog</phrase><object><patch_index_0044><patch_index_0863></object>",
    "internvl": "<ref>dog</ref><box>[[1, 2, 300, 400]]</box>",
    "deepseek-vl2": "<|ref|>dog<|/ref|><|det|>[[1, 2, 300, 400]]<|/det|>",
    "normalised": '{"box": [0, 0, 0.5, 0.5], "score": 0.5, "polygon": [[0, 0], [1, 0], [1, 1]]}',
    "thousandths": '[{"box": [1, 2, 300, 400], "label": "dog"}]',
    "pixels": '[{"box": [1, 2, 30, 40], "label": "dog"}]',
}
DETECTIONS = '{"height": 9, "width": 9, "detections": [{"label": "a", "xyxy": [1, 2, 3, 4]}]}'


def take_schema(data: bytes) -> None:
    """Take what may be a schema."""
    JsonOutput(schema=read_json(data))


def answer_of(data: bytes) -> Any:
    """Read what may be an answer."""
    return read_answer(data.decode("utf-8", "replace"), OUTPUT)


def places_of(data: bytes, *, dialect: str) -> Any:
    """Read what may be places."""
    return read_spatial_answer(data.decode("utf-8", "replace"), dialect, VIEW)


#: Messages that are read, and what reads them, by name.
ANSWERS: dict[str, tuple[bytes, Callable[[bytes], Any]]] = {
    **{
        f"places-{name}": (PLACES[name].encode(), partial(places_of, dialect=name))
        for name in DIALECTS
    },
    "structure-schema": (json.dumps(SCHEMA).encode(), take_schema),
    "structure-answer": (b'So:\n```json\n{"name": "aab", "tree": {"kids": [{}]}}\n```', answer_of),
    "detections-json": (DETECTIONS.encode(), detections_from_json),
}
