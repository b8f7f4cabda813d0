"""Nodes that change texts."""

from __future__ import annotations

from typing import Any, Literal

from vlmcore_comfy.declaring import Node, Output, boolean, choice, integer, node, text
from vlmcore_comfy.hosting import ALONE, Host

__all__ = ["NODES", "text_clean", "text_replace", "text_split"]

_PATTERN = "Regular expression"
_SPLITS = ("Lines", "Paragraphs", "Literal delimiter", _PATTERN, "CSV", "JSON array")
_BLANKS = ("Normalize line endings", "Preserve", "Collapse horizontal", "Collapse all")


@node(
    "VLMTextClean",
    title="Text Clean",
    category="Text/Transform",
    description="Cleans a text: the form of its characters, a fence of Markdown around it, its "
    "white space, lines that repeat, its length; in this order.",
    inputs=(
        text("text", multiline=True),
        choice("unicode_normalization", ("NFC", "NFKC", "None"), "NFC"),
        choice("whitespace", _BLANKS, "Normalize line endings"),
        boolean("trim_edges", default=True),
        boolean("remove_outer_markdown_fence", default=False),
        boolean("deduplicate_lines", default=False),
        integer("max_characters", 0, 0, 10_000_000, tooltip="0 for all"),
    ),
    outputs=(Output("STRING", "text"), Output("STRING", "diagnostics_json")),
)
def text_clean(
    text: str,
    unicode_normalization: Literal["NFC", "NFKC", "None"],
    whitespace: str,
    trim_edges: bool,
    remove_outer_markdown_fence: bool,
    deduplicate_lines: bool,
    max_characters: int,
) -> tuple[str, str]:
    """Clean a text."""
    from vlmcore.contracts.json_text import write_json
    from vlmcore_comfy.text_changes import Cleaning, clean
    from vlmcore_comfy.texts import require_text

    how = Cleaning(
        form=unicode_normalization,
        fence=remove_outer_markdown_fence,
        whitespace=whitespace,
        unique_lines=deduplicate_lines,
        trim=trim_edges,
        most=max_characters,
    )
    cleaned, said = clean(require_text("text", text), how)
    return cleaned, write_json(said)


@node(
    "VLMTextReplace",
    title="Text Replace",
    category="Text/Transform",
    description="Replaces a text in a text, as it is written or by a regular expression; that one "
    "may take ten seconds.",
    inputs=(
        text("text", multiline=True),
        text("search", multiline=True),
        text("replacement", multiline=True, tooltip="\\1 is what the first group found"),
        choice("mode", ("Literal", _PATTERN), "Literal"),
        boolean("case_sensitive", default=True),
        integer("max_replacements", 0, 0, 1_000_000, tooltip="0 for all"),
        choice("if_not_found", ("Keep text", "Error"), "Keep text"),
    ),
    outputs=(
        Output("STRING", "text"),
        Output("INT", "replacement_count"),
        Output("STRING", "diagnostics_json"),
    ),
    is_threaded=True,
)
def text_replace(
    text: str,
    search: str,
    replacement: str,
    mode: str,
    case_sensitive: bool,
    max_replacements: int,
    if_not_found: str,
    *,
    comfyui: Host = ALONE,
) -> tuple[str, int, str]:
    """Replace a text in a text."""
    from vlmcore.contracts.json_text import write_json
    from vlmcore.errors import ContractError
    from vlmcore_comfy.patterns import replace_pattern
    from vlmcore_comfy.text_changes import replace_literal
    from vlmcore_comfy.texts import require_text

    given = (
        require_text("text", text),
        require_text("search", search),
        require_text("replacement", replacement),
    )
    if not search:
        changed, times = text, 0
    elif mode == _PATTERN:
        changed, times = replace_pattern(
            *given, case_sensitive=case_sensitive, most=max_replacements, comfyui=comfyui
        )
    else:
        changed, times = replace_literal(
            *given, case_sensitive=case_sensitive, most=max_replacements
        )
    if not times and if_not_found == "Error":
        raise ContractError("search", f"{search!a:.80} is not in the text")
    said = {"mode": mode, "replacements": times, "changed": changed != text}
    return changed, times, write_json(said)


@node(
    "VLMTextSplit",
    title="Text Split / Batch",
    category="Text/Transform",
    description="Splits a text; what follows runs once for each item.",
    inputs=(
        text("text", multiline=True),
        choice("mode", _SPLITS, "Lines"),
        text("delimiter", ",", tooltip="Of a literal, an expression or CSV; \\n is a line break"),
        boolean("trim_items", default=True),
        boolean("remove_empty", default=True),
        boolean("deduplicate", default=False),
        integer("max_items", 0, 0, 100_000, tooltip="0 for all"),
    ),
    outputs=(
        Output("STRING", "items", is_list=True),
        Output("STRING", "items_json"),
        Output("INT", "item_count"),
    ),
    is_threaded=True,
)
def text_split(
    text: str,
    mode: str,
    delimiter: str,
    trim_items: bool,
    remove_empty: bool,
    deduplicate: bool,
    max_items: int,
    *,
    comfyui: Host = ALONE,
) -> tuple[list[str], str, int]:
    """Split a text."""
    from vlmcore.contracts.json_text import write_json
    from vlmcore_comfy.patterns import split_at_pattern
    from vlmcore_comfy.text_changes import chosen_items, split
    from vlmcore_comfy.texts import require_text

    require_text("text", text)
    require_text("delimiter", delimiter)
    if mode == _PATTERN:
        parts = split_at_pattern(text, delimiter, comfyui=comfyui)
    else:
        parts = split(text, mode, delimiter)
    items = chosen_items(
        parts, trim=trim_items, drop_empty=remove_empty, once=deduplicate, most=max_items
    )
    return items, write_json(items), len(items)


NODES: tuple[Node[..., Any], ...] = (text_clean, text_replace, text_split)
