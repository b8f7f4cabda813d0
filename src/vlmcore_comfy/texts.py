"""What the text nodes do to texts: they count, join and fill in; for more see `text_changes`."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from typing import Any

import attrs

from vlmcore.contracts.json_text import write_json
from vlmcore.errors import ContractError
from vlmcore.limits import TextLimits, require_at_most

__all__ = [
    "TextCounts",
    "chosen_parts",
    "count",
    "digest",
    "fill_in",
    "require_text",
    "tidy",
    "with_plain_breaks",
]

_LIMITS = TextLimits()
_PLACEHOLDER = re.compile(r"\{\{|\}\}|\{([^{}\s][^{}]*)\}")
_BREAKS = re.compile(r"\r\n?|\u2028|\u2029")


@attrs.frozen
class TextCounts:
    """
    What there is in a text.

    Attributes:
        characters: Code points.
        utf8_bytes: Its size as UTF-8.
        words: What stands between white space.
        lines: Lines; an empty text has none.
        approx_tokens: A guess, a quarter of the bytes: no tokenizer was asked.
    """

    characters: int
    utf8_bytes: int
    words: int
    lines: int
    approx_tokens: int


def require_text(name: str, text: Any) -> str:
    """
    Take a text of at most 10 million characters.

    Raises:
        ContractError: If it is none.
        LimitExceededError: If it is longer.
    """
    if not isinstance(text, str):
        raise ContractError(name, f"got {type(text).__name__}, expected text")
    require_at_most("max_text_characters", len(text), _LIMITS.max_text_characters)
    return text


def count(text: str) -> TextCounts:
    """Count what there is in a text."""
    size = len(_encoded(text))
    return TextCounts(len(text), size, len(text.split()), len(text.splitlines()), -(-size // 4))


def digest(text: str) -> str:
    """Return the SHA-256 of a text as UTF-8, in hexadecimal."""
    return hashlib.sha256(_encoded(text)).hexdigest()


def tidy(text: str, *, trim: bool, newlines: bool) -> str:
    r"""Write every line break as one ``\n``, and take white space off both ends, where wanted."""
    text = with_plain_breaks(text) if newlines else text
    return text.strip() if trim else text


def chosen_parts(parts: Iterable[str], *, trim: bool, drop_empty: bool, once: bool) -> list[str]:
    """
    Choose parts.

    Args:
        parts: The texts.
        trim: Whether white space is taken off each.
        drop_empty: Whether empty ones are left out.
        once: Whether one that was there before is left out.
    """
    kept = [part.strip() if trim else part for part in parts]
    kept = [part for part in kept if part or not drop_empty]
    return list(dict.fromkeys(kept)) if once else kept


def with_plain_breaks(text: str) -> str:
    r"""Write every line break as one ``\n``."""
    return _BREAKS.sub("\n", text)


def fill_in(template: str, values: Mapping[str, Any], *, missing: str) -> tuple[str, list[str]]:
    """
    Put values into the places of a template.

    A place is a name in braces, ``{name}``, or ``{name.key}`` for what lies in an object; ``{{``
    and ``}}`` are braces. What is no text is written as JSON. Values are not filled in themselves.

    Args:
        template: The text with places.
        values: Values by name.
        missing: What is done about a name without a value: ``"keep"`` its place, ``"empty"``, or
            ``"error"``.

    Returns:
        The text, and the names without a value, in their order.

    Raises:
        ContractError: If there are any, and *missing* is ``"error"``.
        LimitExceededError: If the text becomes too long.
    """
    absent: dict[str, None] = {}
    size = len(template)

    def value_of(found: re.Match[str]) -> str:
        nonlocal size
        name = found.group(1)
        if name is None:
            return found.group()[0]
        is_there, value = _looked_up(values, name.strip())
        if not is_there:
            absent[name.strip()] = None
            return found.group() if missing == "keep" else ""
        written = value if isinstance(value, str) else write_json(value)
        size += len(written)
        require_at_most("max_text_characters", size, _LIMITS.max_text_characters)
        return written

    filled = _PLACEHOLDER.sub(value_of, template)
    if absent and missing == "error":
        raise ContractError(
            "template",
            f"names {', '.join(map(repr, absent))}, expected a value for each in variables_json "
            "or text1 to text4",
        )
    return filled, list(absent)


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")  # half a pair of surrogates may be in a widget


def _looked_up(values: Mapping[str, Any], name: str) -> tuple[bool, Any]:
    if name in values:
        return True, values[name]
    value: Any = values
    for key in name.split("."):
        if not isinstance(value, Mapping) or key not in value:
            return False, None
        value = value[key]
    return True, value
