"""Nodes that read JSON, also where a model wrote it between words."""

from __future__ import annotations

from typing import Any

from vlmcore_comfy.declaring import Node, Output, boolean, choice, node, text

__all__ = ["NODES", "json_extract", "json_to_text"]

_SMART = "Smart readable (legacy compatible)"
_FORMS = (_SMART, "Pretty JSON", "Compact JSON", "Values only", "Key/value lines")
_PATH = "As $.name[0]['a name']; blank for all of it"


@node(
    "JsonToText",
    title="JSON to Text",
    category="Text/JSON",
    description="Writes JSON for people, or for a model that draws. It may stand in a fence or "
    "between words.",
    inputs=(
        text("text", "{}", multiline=True),
        choice("format_mode", _FORMS, _SMART, is_optional=True),
        text("json_path", is_optional=True, tooltip=_PATH),
        text("separator", "\n\n", multiline=True, is_optional=True),
        boolean(
            "strip_generation_verbs",
            default=True,
            is_optional=True,
            tooltip="Take 'Create an image of' and the like off the front of each text",
        ),
    ),
    outputs=(Output("STRING", "text"), Output("STRING", "canonical_json"), Output("INT", "items")),
)
def json_to_text(
    text: str,
    format_mode: str = _SMART,
    json_path: str = "",
    separator: str = "\n\n",
    strip_generation_verbs: bool = True,
) -> tuple[str, str, int]:
    """Write JSON for people."""
    from vlmcore.errors import ContractError
    from vlmcore_comfy.json_paths import find
    from vlmcore_comfy.json_texts import canonical, json_in, readable
    from vlmcore_comfy.texts import require_text

    require_text("separator", separator)
    found = find(json_in("text", text), require_text("json_path", json_path))
    if not found.is_there:
        raise ContractError("json_path", f"{json_path!a:.80} leads to nothing in this JSON")
    said, items = readable(
        found.value, format_mode, separator=separator, without_verbs=strip_generation_verbs
    )
    return said, canonical(found.value), items


@node(
    "VLMJSONExtract",
    title="JSON Extract",
    category="Text/JSON",
    description="Takes one value out of JSON. It may stand in a fence or between words.",
    inputs=(
        text("text", "{}", multiline=True),
        text("path", "$", tooltip=_PATH),
        choice("output_format", ("Text", "Compact JSON", "Pretty JSON"), "Text"),
        choice("if_missing", ("Error", "Empty string", "Default value"), "Error"),
        text("default_value", multiline=True),
    ),
    outputs=(
        Output("STRING", "value"),
        Output("BOOLEAN", "found"),
        Output("STRING", "value_type"),
        Output("STRING", "canonical_json"),
    ),
)
def json_extract(
    text: str, path: str, output_format: str, if_missing: str, default_value: str
) -> tuple[str, bool, str, str]:
    """Take a value out of JSON."""
    from vlmcore.errors import ContractError
    from vlmcore_comfy.json_paths import find
    from vlmcore_comfy.json_texts import canonical, json_in, written
    from vlmcore_comfy.texts import require_text

    require_text("default_value", default_value)
    found = find(json_in("text", text), require_text("path", path))
    if found.is_there:
        said = written(found.value, output_format)
        return said, True, found.kind, canonical(found.value)
    if if_missing == "Error":
        raise ContractError("path", f"{path!a:.80} leads to nothing in this JSON")
    return default_value if if_missing == "Default value" else "", False, found.kind, ""


NODES: tuple[Node[..., Any], ...] = (json_to_text, json_extract)
