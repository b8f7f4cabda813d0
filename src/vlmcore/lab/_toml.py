"""TOML: read within limits, by the door of tomli where Python has no reader; and written."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Mapping
from typing import Any

from vlmcore._arguments import require_characters, shown
from vlmcore._optional import optional_dependency
from vlmcore.errors import ContractError
from vlmcore.limits import SuiteLimits, require_at_most

if sys.version_info >= (3, 11):
    import tomllib
else:
    with optional_dependency("lab", "tomli"):
        import tomli as tomllib

__all__ = ["read_toml", "write_toml"]

_TEXTS = re.compile(  # and comments; what is not closed ends with the line, or the text
    r'"""(?:[^\\]|\\.)*?(?:"""|\Z)'
    r"|'''.*?(?:'''|\Z)"
    r'|"(?:[^"\\\n]|\\[^\n])*"?'
    r"|'[^'\n]*'?|\#[^\n]*",
    re.DOTALL,
)
_BETWEEN_KEYS = re.compile(r"[=,\[\]{}\n]")
_BARE = re.compile(r"[A-Za-z0-9_-]+")
_TOML_INTEGERS = range(-0x8000_0000_0000_0000, 0x8000_0000_0000_0000)  # 64 bits, signed


def read_toml(text: str | bytes, limits: SuiteLimits) -> Any:
    """
    Read TOML.

    Returns:
        Plain values of Python; dates and times, and numbers that are not finite, among them.

    Raises:
        ContractError: If it is not TOML.
        LimitExceededError: If it is larger, or has longer names, than *limits* allow.
        MissingDependencyError: If Python is older than 3.11, and tomli is not installed.
    """
    if not isinstance(text, (str, bytes)):
        raise ContractError("TOML", f"got {type(text).__name__}, expected text or UTF-8 bytes")
    require_at_most("max_file_bytes", len(text), limits.max_file_bytes)
    try:
        decoded = text.decode() if isinstance(text, bytes) else text
    except UnicodeDecodeError:
        raise ContractError("TOML", "got text that is not UTF-8, expected UTF-8") from None
    plain = _TEXTS.sub("_", decoded)
    parts = max(each.count(".") for each in _BETWEEN_KEYS.split(plain)) + 1
    require_at_most("max_key_parts", parts, limits.max_key_parts)
    require_at_most("max_nodes", sum(map(plain.count, "=,[{")), limits.max_nodes)
    try:
        return tomllib.loads(decoded)
    except RecursionError:
        raise ContractError("TOML", "got values nested too deep, expected fewer levels") from None
    except ValueError as error:  # of TOML, or a whole number of thousands of digits
        raise ContractError("TOML", f"got no TOML: {error!s:.200}") from None


def write_toml(document: Mapping[str, Any]) -> str:
    """
    Write a document: lists of objects at its top as tables of their own, all else on one line.

    Raises:
        ContractError: If TOML does not know something in it, as null.
    """
    tables = {key: value for key, value in document.items() if _is_list_of_objects(value)}
    lines = [
        f"{_key(key)} = {_value(value, key)}"
        for key, value in document.items()
        if key not in tables
    ]
    for key, entries in tables.items():
        for i, entry in enumerate(entries):
            lines += ["", f"[[{_key(key)}]]"]
            lines += [f"{_key(k)} = {_value(v, f'{key}[{i}].{k}')}" for k, v in entry.items()]
    return "\n".join(lines) + "\n"


def _is_list_of_objects(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(v, dict) for v in value)


def _value(value: Any, path: str) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case str():
            return _text(value, path)
        case int() if value in _TOML_INTEGERS:
            return str(value)
        case float():
            return repr(value)
        case list() | tuple():
            return f"[{', '.join(_value(v, f'{path}[{i}]') for i, v in enumerate(value))}]"
        case dict():
            return f"{{{', '.join(_pairs(value, path))}}}"
        case _:
            raise ContractError(path, f"got {shown(value)}, which TOML does not know")


def _pairs(value: Mapping[str, Any], path: str) -> Iterator[str]:
    for key, each in value.items():
        yield f"{_key(key)} = {_value(each, f'{path}.{key}')}"


def _key(key: str) -> str:
    return key if _BARE.fullmatch(key) else _text(key, key)


def _text(text: str, path: str) -> str:
    """Write a text as JSON does, which TOML reads the same; but for one control character."""
    require_characters(path, text)
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
