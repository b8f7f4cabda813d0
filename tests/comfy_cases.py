"""What tests of the ComfyUI nodes share: their declarations as documents, and the saved ones."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from vlmcore_comfy.declaring import Input, Node

GOLDEN = Path(__file__).parent / "golden" / "comfyui"
SAVED: dict[str, Any] = json.loads((GOLDEN / "saved-interfaces.json").read_text(encoding="utf-8"))[
    "nodes"
]


def interface(node: Node[..., Any]) -> dict[str, Any]:
    """Write down all of *node* that a saved workflow depends on, in the form of the saved ones."""
    inputs: dict[str, Any] = {"required": _inputs(node, is_optional=False)}
    optional = _inputs(node, is_optional=True)
    if optional:
        inputs["optional"] = optional
    if node.knows_itself:
        inputs["hidden"] = {"unique_id": {"type": "UNIQUE_ID"}}
    return {
        "display_name": node.title,
        "category": node.category,
        "inputs": inputs,
        "outputs": [
            {"type": each.type, "name": each.name} | ({"is_list": True} if each.is_list else {})
            for each in node.outputs
        ],
    }


def _inputs(node: Node[..., Any], *, is_optional: bool) -> dict[str, Any]:
    return {each.name: _document(each) for each in node.inputs if each.is_optional is is_optional}


def _document(declared: Input) -> dict[str, Any]:
    options = {
        key: value
        for key, value in declared.options.items()
        if (key, value) != ("multiline", False)
    }
    return {"type": declared.type, **options}
