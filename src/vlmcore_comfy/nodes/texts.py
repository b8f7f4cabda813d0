"""Nodes that make and look at texts."""

from __future__ import annotations

from typing import Any

from vlmcore_comfy.declaring import Node, NodeResult, Output, boolean, choice, node, text

__all__ = ["NODES", "simple_text", "text_inspect", "text_join", "text_template", "view_text"]

_COUNTS = (Output("INT", "characters"), Output("INT", "words"), Output("INT", "lines"))
_LETTERS = "bcdefgh"
_SEPARATORS = {"New line": "\n", "Blank line": "\n\n", "Space": " ", "Comma": ", "}
_MISSING = {"Keep placeholder": "keep", "Empty string": "empty", "Error": "error"}


@node(
    "SimpleText",
    title="Text",
    category="Text/Create",
    description="A text, and what there is in it.",
    inputs=(
        text("input_text", multiline=True),
        boolean("trim_edges", default=False, is_optional=True),
        boolean("normalize_newlines", default=False, is_optional=True),
    ),
    outputs=(Output("STRING", "text"), *_COUNTS),
)
def simple_text(
    input_text: str, trim_edges: bool = False, normalize_newlines: bool = False
) -> tuple[str, int, int, int]:
    """Take a text, tidied where wanted."""
    from vlmcore_comfy.texts import count, require_text, tidy

    taken = require_text("input_text", input_text)
    tidied = tidy(taken, trim=trim_edges, newlines=normalize_newlines)
    counts = count(tidied)
    return tidied, counts.characters, counts.words, counts.lines


@node(
    "ViewText",
    title="View Text (Streaming)",
    category="Text/Inspect",
    description="Shows a text on the node, while it is still being written too, and passes it on.",
    inputs=(text("text", multiline=True),),
    outputs=(Output("STRING", "text"), *_COUNTS, Output("STRING", "stats_json")),
    is_output=True,
)
def view_text(text: str) -> NodeResult:
    """Show a text."""
    import attrs

    from vlmcore.contracts.json_text import write_json
    from vlmcore_comfy.texts import count, require_text

    counts = count(require_text("text", text))
    stats = write_json(attrs.asdict(counts))
    values = (text, counts.characters, counts.words, counts.lines, stats)
    return NodeResult(values, {"text": [text]})


@node(
    "VLMTextInspect",
    title="Text Inspector",
    category="Text/Inspect",
    description="Counts what there is in a text. The number of tokens is a guess: a quarter of "
    "the bytes.",
    inputs=(text("text", multiline=True),),
    outputs=(
        Output("STRING", "text"),
        Output("INT", "characters"),
        Output("INT", "utf8_bytes"),
        Output("INT", "words"),
        Output("INT", "lines"),
        Output("INT", "approx_tokens"),
        Output("STRING", "sha256"),
        Output("STRING", "stats_json"),
    ),
)
def text_inspect(text: str) -> tuple[str, int, int, int, int, int, str, str]:
    """Count what there is in a text."""
    import attrs

    from vlmcore.contracts.json_text import write_json
    from vlmcore_comfy.texts import count, digest, require_text

    counts = attrs.asdict(count(require_text("text", text)))
    sha256 = digest(text)
    characters, size, words, lines, tokens = counts.values()
    stats = write_json({**counts, "sha256": sha256})
    return text, characters, size, words, lines, tokens, sha256, stats


@node(
    "VLMTextJoin",
    title="Text Join",
    category="Text/Create",
    description="Joins up to eight texts.",
    inputs=(
        text("text_a", multiline=True),
        choice("separator", (*_SEPARATORS, "Custom"), "New line"),
        text("custom_separator", " | ", tooltip="What is between them, for Custom"),
        boolean("trim_parts", default=True),
        boolean("drop_empty", default=True),
        boolean("deduplicate", default=False),
        *(text(f"text_{each}", multiline=True, is_optional=True) for each in _LETTERS),
    ),
    outputs=(Output("STRING", "text"), Output("STRING", "parts_json"), Output("INT", "part_count")),
)
def text_join(
    text_a: str,
    separator: str,
    custom_separator: str,
    trim_parts: bool,
    drop_empty: bool,
    deduplicate: bool,
    text_b: str = "",
    text_c: str = "",
    text_d: str = "",
    text_e: str = "",
    text_f: str = "",
    text_g: str = "",
    text_h: str = "",
) -> tuple[str, str, int]:
    """Join texts."""
    from vlmcore.contracts.json_text import write_json
    from vlmcore_comfy.texts import chosen_parts, require_text

    given = (text_a, text_b, text_c, text_d, text_e, text_f, text_g, text_h)
    texts = [
        require_text(f"text_{letter}", each)
        for letter, each in zip(("a", *_LETTERS), given, strict=True)
    ]
    parts = chosen_parts(texts, trim=trim_parts, drop_empty=drop_empty, once=deduplicate)
    between = _SEPARATORS.get(separator) or require_text("custom_separator", custom_separator)
    return between.join(parts), write_json(parts), len(parts)


@node(
    "VLMTextTemplate",
    title="Text Template",
    category="Text/Create",
    description="Puts values into the places of a template: {name}. Values come from "
    "variables_json and from text1 to text4; {{ and }} are braces.",
    inputs=(
        text("template", "{instruction}\n\nContext:\n{text1}", multiline=True),
        text(
            "variables_json",
            '{"instruction":"Describe the input accurately."}',
            multiline=True,
            tooltip='Values by name: {"style": "plain"}',
        ),
        choice("missing_values", tuple(_MISSING), "Error"),
        *(text(f"text{index}", multiline=True, is_optional=True) for index in range(1, 5)),
    ),
    outputs=(
        Output("STRING", "text"),
        Output("STRING", "variables_json"),
        Output("STRING", "missing_keys_json"),
    ),
)
def text_template(
    template: str,
    variables_json: str,
    missing_values: str,
    text1: str = "",
    text2: str = "",
    text3: str = "",
    text4: str = "",
) -> tuple[str, str, str]:
    """Fill in a template."""
    from vlmcore.contracts.json_text import write_json
    from vlmcore.errors import ContractError
    from vlmcore_comfy.texts import fill_in, require_text
    from vlmcore_comfy.widgets import value_in

    said = value_in("variables_json", variables_json)
    if said is not None and not isinstance(said, dict):
        raise ContractError("variables_json", "expected a JSON object, values by name")
    texts = {"text1": text1, "text2": text2, "text3": text3, "text4": text4}
    values = {**(said or {}), **{name: require_text(name, each) for name, each in texts.items()}}
    filled, missing = fill_in(
        require_text("template", template), values, missing=_MISSING[missing_values]
    )
    return filled, write_json(values), write_json(missing)


NODES: tuple[Node[..., Any], ...] = (
    simple_text,
    view_text,
    text_inspect,
    text_join,
    text_template,
)
