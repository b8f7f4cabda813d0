"""Evidence without secrets: they are taken out before anything is kept."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from vlmcore.secrets import REDACTED, Secret, redact, without_secrets

__all__ = ["address_without_secrets", "options_without_secrets", "values_without_secrets"]

_MOST = 1000  # characters of an address


def options_without_secrets(options: Any, *secrets: Secret | None) -> Any:
    """
    Take tokens out of options or flags, also what only follows a name as ``api_key``.

    Args:
        options: Plain values of JSON; a list may be a command line.
        secrets: The tokens that were in reach.

    Returns:
        A copy, in which `vlmcore.secrets.REDACTED` stands for each of them.

    Example:
        >>> options_without_secrets({"seed": 1, "api_key": "x", "args": ["--token", "y", "-v"]})
        {'seed': 1, 'api_key': '[REDACTED]', 'args': ['--token', '[REDACTED]', '-v']}
    """
    if isinstance(options, Mapping):
        return {
            without_secrets(key, *secrets): _value(key, each, secrets)
            for key, each in options.items()
        }
    if isinstance(options, (list, tuple)):
        before = ("", *options)
        return [_value(*pair, secrets) for pair in zip(before, options, strict=False)]
    if isinstance(options, str):
        return _text(options, secrets)
    return options


def _value(name: Any, value: Any, secrets: tuple[Secret | None, ...]) -> Any:
    if isinstance(value, (Mapping, list, tuple)) or not isinstance(name, str):
        return options_without_secrets(value, *secrets)
    if isinstance(value, bool) or value is None:
        return value
    is_named = _has_secret(f"{name[-_MOST:]}={value}"[:_MOST]) and not _has_secret(name[-_MOST:])
    return REDACTED if is_named else options_without_secrets(value, *secrets)


def _text(text: str, secrets: tuple[Secret | None, ...]) -> str:
    """Keep a text as it is, if there is no secret in it, or none any more."""
    if not _has_secret(text, secrets):
        return text
    return redact(text, *secrets, max_characters=len(text) + _MOST)


def _has_secret(text: str, secrets: tuple[Secret | None, ...] = ()) -> bool:
    known = text.replace(REDACTED, "-")
    return REDACTED in redact(known, *secrets, max_characters=len(text) + _MOST)


def address_without_secrets(address: str, *secrets: Secret | None) -> str:
    """
    Reduce an address to scheme, host, port and path: users, passwords and queries may be secrets.

    Args:
        address: As ``"http://user:secret@host:8000/v1?key=x"``.
        secrets: The tokens that were in reach.

    Example:
        >>> address_without_secrets("http://user:secret@host:8000/v1?key=x#y")
        'http://host:8000/v1'
    """
    try:
        parts = urlsplit(address)
    except ValueError:
        return REDACTED
    host = parts.netloc.rpartition("@")[2]
    if not parts.scheme or not host:
        return REDACTED
    shown = f"{parts.scheme}://{host}{parts.path}"
    return redact(without_secrets(shown, *secrets), max_characters=_MOST)


def values_without_secrets(value: Any, *secrets: Secret | None) -> Any:
    """
    Take known tokens out of all texts of plain values of JSON, and leave everything else.

    Args:
        value: The values.
        secrets: The tokens that were in reach.

    Example:
        >>> values_without_secrets({"a": ["sekret", 1]}, Secret("sekret"))
        {'a': ['[REDACTED]', 1]}
    """
    if isinstance(value, Mapping):
        return {
            without_secrets(key, *secrets): values_without_secrets(each, *secrets)
            for key, each in value.items()
        }
    if isinstance(value, (list, tuple)):
        return [values_without_secrets(each, *secrets) for each in value]
    return without_secrets(value, *secrets) if isinstance(value, str) else value
