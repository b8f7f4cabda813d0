"""What the text nodes change in texts: they clean, replace and split."""

from __future__ import annotations

import csv
import re
import unicodedata
from collections.abc import Sequence
from typing import Any, Literal

import attrs

from vlmcore.contracts.json_text import read_json, write_json
from vlmcore.errors import ContractError
from vlmcore.limits import TextLimits, require_at_most
from vlmcore_comfy.texts import chosen_parts, with_plain_breaks

__all__ = ["Cleaning", "chosen_items", "clean", "replace_literal", "split"]

_LIMITS = TextLimits()
_FENCED = re.compile(r"\s*```[^\n`]*\n(.*?)\n?[ \t]*```\s*", re.DOTALL)
_BLANK = re.compile(r"[^\S\n]+")
_ESCAPES = {r"\n": "\n", r"\t": "\t", r"\r": "\r"}


@attrs.frozen(kw_only=True)
class Cleaning:
    """
    How a text is cleaned, in this order.

    Attributes:
        form: ``"NFC"``, ``"NFKC"`` or ``"None"``: the normal form of Unicode.
        fence: Whether a fence of Markdown around all of it is taken off.
        whitespace: ``"Preserve"``; ``"Normalize line endings"``; ``"Collapse horizontal"``, every
            run of blanks on a line to one; or ``"Collapse all"``, line breaks too.
        unique_lines: Whether a line that was there before is left out; empty ones stay.
        trim: Whether white space is taken off both ends.
        most: How many characters stay; 0 for all.
    """

    form: Literal["NFC", "NFKC", "None"]
    fence: bool
    whitespace: str
    unique_lines: bool
    trim: bool
    most: int


def clean(text: str, how: Cleaning) -> tuple[str, dict[str, Any]]:
    """
    Clean a text.

    Returns:
        The text, and what was done.
    """
    said: dict[str, Any] = {"input_characters": len(text)}
    cleaned = text if how.form == "None" else unicodedata.normalize(how.form, text)
    fenced = _FENCED.fullmatch(cleaned) if how.fence else None
    cleaned = fenced.group(1) if fenced else cleaned
    match how.whitespace:
        case "Normalize line endings":
            cleaned = with_plain_breaks(cleaned)
        case "Collapse horizontal":
            cleaned = _BLANK.sub(" ", with_plain_breaks(cleaned))
        case "Collapse all":
            cleaned = " ".join(cleaned.split())
        case _:
            pass
    removed = 0
    if how.unique_lines:
        lines = cleaned.split("\n")
        kept = _unique_lines(lines)
        removed, cleaned = len(lines) - len(kept), "\n".join(kept)
    cleaned = cleaned.strip() if how.trim else cleaned
    is_cut = bool(how.most) and len(cleaned) > how.most
    cleaned = cleaned[: how.most] if is_cut else cleaned
    return cleaned, {
        **said,
        "output_characters": len(cleaned),
        "changed": cleaned != text,
        "fence_removed": fenced is not None,
        "lines_removed": removed,
        "truncated": is_cut,
    }


def replace_literal(
    text: str, search: str, replacement: str, *, case_sensitive: bool, most: int
) -> tuple[str, int]:
    """
    Replace a text in a text, as it is written.

    Args:
        text: Where it is replaced.
        search: What is replaced, from left to right; not empty.
        replacement: What comes in its place.
        case_sensitive: Whether capital letters are others.
        most: How often; 0 for each time.

    Returns:
        The text, and how often it was replaced.

    Raises:
        LimitExceededError: If the text becomes too long; or the search is, where capital letters
            are no others.
    """
    if case_sensitive:
        found = text.count(search)
    else:
        require_at_most("max_pattern_characters", len(search), _LIMITS.max_pattern_characters)
        pattern = re.compile(re.escape(search), re.IGNORECASE)
        found = sum(1 for _ in pattern.finditer(text))
    times = min(found, most) if most else found
    size = len(text) + times * (len(replacement) - len(search))
    require_at_most("max_text_characters", size, _LIMITS.max_text_characters)
    if case_sensitive:
        return text.replace(search, replacement, times), times
    return pattern.sub(lambda _: replacement, text, count=most), times


def split(text: str, mode: str, delimiter: str) -> list[str]:
    r"""
    Split a text.

    Args:
        text: The text.
        mode: ``"Lines"``; ``"Paragraphs"``, at blank lines; ``"Literal delimiter"``; ``"CSV"``,
            rows and columns one after the other; or ``"JSON array"``, each entry as its text or
            as JSON.
        delimiter: Where a literal is split, and what is between columns of CSV. ``\n`` and ``\t``
            mean what they do in a program.

    Raises:
        ContractError: If the delimiter is empty, or the text is no CSV or no JSON list.
    """
    delimiter = _ESCAPES.get(delimiter, delimiter)
    match mode:
        case "Lines":
            return text.splitlines()
        case "Paragraphs":
            return re.split(r"\n[^\S\n]*\n\s*", with_plain_breaks(text))
        case "Literal delimiter":
            if not delimiter:
                raise ContractError("delimiter", "is empty, expected what stands between items")
            return text.split(delimiter)
        case "CSV":
            return _cells(text, delimiter or ",")
        case _:
            value = read_json(text)
            if not isinstance(value, list):
                raise ContractError("text", "expected a JSON list")
            return [each if isinstance(each, str) else write_json(each) for each in value]


def chosen_items(
    items: Sequence[str], *, trim: bool, drop_empty: bool, once: bool, most: int
) -> list[str]:
    """
    Take the items that are wanted, *most* of them at most; 0 for as many as may be, 100,000.

    Raises:
        LimitExceededError: If there are more.
    """
    kept = chosen_parts(items, trim=trim, drop_empty=drop_empty, once=once)
    kept = kept[:most] if most else kept
    require_at_most("max_items", len(kept), _LIMITS.max_items)
    return kept


def _unique_lines(lines: list[str]) -> list[str]:
    seen: set[str] = set()
    kept = []
    for line in lines:
        if line.strip() and line in seen:
            continue
        seen.add(line)
        kept.append(line)
    return kept


def _cells(text: str, delimiter: str) -> list[str]:
    if len(delimiter) != 1:
        raise ContractError("delimiter", f"got {delimiter!a:.20}, expected one character for CSV")
    try:
        rows = csv.reader(text.splitlines(keepends=True), delimiter=delimiter, strict=True)
        return [cell for row in rows for cell in row]
    except (csv.Error, TypeError, ValueError) as error:
        raise ContractError("text", f"is no CSV: {error}") from None
