"""JSON as people read it, and the JSON that is somewhere in what a model wrote."""

from __future__ import annotations

import json
import re
from typing import Any

from vlmcore.contracts.json_found import find_json
from vlmcore.contracts.json_text import read_json
from vlmcore.errors import ContractError, LimitExceededError
from vlmcore_comfy.texts import require_text

__all__ = ["canonical", "json_in", "readable", "written"]

_VERBS = re.compile(
    r"\s*(?:please\s+)?(?:generate|create|draw|make|render|produce|design|depict|show|paint)\b"
    r"(?:\s+(?:me|us))?"
    r"(?:\s+(?:an?|the)\s+(?:\w+\s+){0,3}?"
    r"(?:image|picture|photo|photograph|illustration|painting|drawing|video|scene)"
    r"(?:\s+(?:of|with|showing|depicting|that\s+shows)\b)?)?[\s:,]*",
    re.IGNORECASE,
)


def json_in(name: str, text: str) -> Any:
    """
    Read JSON, or the one object or list of JSON that stands in a fence or between words.

    Args:
        name: The widget that it is in, for errors.
        text: What somebody, or a model, wrote.

    Raises:
        ContractError: If there is none, or more than one.
        LimitExceededError: If it is too large.
    """
    require_text(name, text)
    if not text.strip():
        raise ContractError(name, "is empty, expected JSON")
    try:
        return read_json(text)
    except LimitExceededError:
        raise
    except ContractError as error:
        problem = error.problem
    parts = find_json(text).parts
    if len(parts) > 1:
        raise ContractError(name, f"holds {len(parts)} objects or lists of JSON, expected one")
    if parts and parts[0] != text.strip():
        return json_in(name, parts[0])
    raise ContractError(name, f"is no JSON: {problem}")


def canonical(value: Any) -> str:
    """Write a value on one line, keys in order: equal values are equal texts."""
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))


def written(value: Any, how: str) -> str:
    """
    Write a value.

    Args:
        value: The value, in Python's plain types.
        how: ``"Text"``, where a text is itself; ``"Compact JSON"`` or ``"Pretty JSON"``.
    """
    if how == "Text" and isinstance(value, str):
        return value
    if how == "Pretty JSON":
        return json.dumps(value, ensure_ascii=False, indent=2)
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def readable(value: Any, how: str, *, separator: str, without_verbs: bool) -> tuple[str, int]:
    """
    Write a value for people, or for a model that draws.

    Args:
        value: The value, in Python's plain types.
        how: ``"Values only"``, every text and number in it; ``"Key/value lines"``, each with the
            path to it; ``"Smart readable (legacy compatible)"``, which is the first for lists and
            for objects of one entry, and otherwise ``Key: value`` for each entry; ``"Pretty JSON"``
            or ``"Compact JSON"``.
        separator: What stands between items; not for JSON.
        without_verbs: Whether ``Create an image of`` and the like are taken off the front of each
            text.

    Returns:
        The text, and how many items are in it.
    """
    if how in ("Pretty JSON", "Compact JSON"):
        items = len(value) if isinstance(value, (list, dict)) else 1
        return written(value, how), items
    leaves = list(_leaves(value, ""))
    texts = [_plain(leaf, without_verbs=without_verbs) for _, leaf in leaves]
    is_smart = how.startswith("Smart")
    if how == "Key/value lines":
        paths = [path for path, _ in leaves]
        pairs = zip(paths, texts, strict=True)
        parts = [f"{path}: {text}" if path else text for path, text in pairs]
    elif is_smart and isinstance(value, dict) and len(value) > 1:
        parts = []
        for key, entry in value.items():
            inner = [_plain(leaf, without_verbs=without_verbs) for _, leaf in _leaves(entry, "")]
            parts.append(f"{_heading(key)}: {', '.join(filter(None, inner))}")
    else:
        parts = [text for text in texts if text]
    return separator.join(parts), len(parts)


def _leaves(value: Any, path: str) -> list[tuple[str, Any]]:
    """List what is neither an object nor a list, with the path to it; the depth has a bound."""
    if isinstance(value, dict):
        steps = [(f"{path}.{key}" if path else str(key), each) for key, each in value.items()]
    elif isinstance(value, list):
        steps = [(f"{path}[{index}]", each) for index, each in enumerate(value)]
    else:
        return [(path, value)]
    return [leaf for step, each in steps for leaf in _leaves(each, step)]


def _plain(value: Any, *, without_verbs: bool) -> str:
    if not isinstance(value, str):
        return json.dumps(value)
    text = value.strip()
    if not without_verbs:
        return text
    return _VERBS.sub("", text, count=1) if _VERBS.match(text) else text


def _heading(key: str) -> str:
    words = key.replace("_", " ").strip()
    return words[:1].upper() + words[1:]
