"""Secrets: tokens that are shown by where they came from, and texts without any of them."""

from __future__ import annotations

import os
import re
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Iterator
from typing import NoReturn

from vlmcore.errors import ContractError

__all__ = ["REDACTED", "Secret", "hosts_from_env", "last_words", "redact", "without_secrets"]

#: What stands where a secret stood.
REDACTED = "[REDACTED]"

_LONGEST = 4000  # characters of a token; servers take some 8,000 in all headers together
_SHORTEST_PART = 4  # characters at the end of a text that may be the start of a token
_BASE64 = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=_-")

_ESCAPES = (
    re.compile(r"%(?P<code>[0-9A-Fa-f]{2})"),  # of URLs
    re.compile(r"\\(?:(?:u00|x)(?P<code>[0-9A-Fa-f]{2})|[/\"'\\])"),  # of JSON and Python
)
_UNPRINTABLE = re.compile(r"[^\x20-\x7e\n]+")

_QUOTED = r"b?\"(?:[^\"\\\n]|\\.)*\"?|b?'(?:[^'\\\n]|\\.)*'?"
_SET = r"[\"']?\s{0,8}[:=]\s{0,8}"
_KNOWN = r"(?!\s*\[REDACTED\])"
_NAMES = r"api[-_ ]?key|token|secret|password|passwd|credentials?|cookie|private[-_ ]?key"
_PREFIXES = r"sk-|hf_|gsk_|xai-|nvapi-|r8_|gh[ops]_|github_pat_|glpat-|xox[a-z]-|AKIA|AIza|eyJ"
# Each pattern keeps its group, if it has one. None has a repetition within a repetition that could
# match the same text in two ways: time grows with the text only.
_PATTERNS = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"(authorization{_SET}){_KNOWN}(?:{_QUOTED}|[^\n]+)",
        rf"(\b(?:bearer|basic|api-?key)\s{{1,8}}){_KNOWN}[^\s,;\"'}})\]]+",
        rf"((?:{_NAMES}){_SET}){_KNOWN}(?:{_QUOTED}|[^\s,;&\"'}})\]]+)",
        rf"((?:authorization|{_NAMES})[\"']\s{{0,8}},\s{{0,8}}){_KNOWN}(?:{_QUOTED})",  # a pair
        r"(://)[^/\s@]{1,1000}(?=@)",
        rf"(?<![A-Za-z0-9])(?-i:{_PREFIXES})[A-Za-z0-9_.-]{{6,}}",
    )
)


class Secret:
    """
    A token that no text shows: its ``repr`` says where it came from.

    Two secrets are equal only if they are the same object, so a comparison tells nothing about
    their values. A secret cannot be pickled; a copy of it is itself.

    Args:
        value: The token: printable ASCII without spaces, as a header can carry it.
        source: Where it came from, for people.

    Raises:
        ContractError: If *value* is not such a token. The error does not show it.

    Example:
        >>> token = Secret("sk-123456", source="VLA_POLICY_TOKEN")
        >>> print(token, token.reveal()[:3])
        Secret(from='VLA_POLICY_TOKEN') sk-
    """

    __slots__ = ("_source", "_value")

    def __init__(self, value: str, *, source: str = "an argument") -> None:
        if not isinstance(value, str):
            raise ContractError("secret", f"got {type(value).__name__}, expected text")
        if not 1 <= len(value) <= _LONGEST:
            raise ContractError(
                "secret", f"got {len(value)} characters, expected 1 to {_LONGEST} ({source})"
            )
        if not (value.isascii() and value.isprintable() and " " not in value):
            raise ContractError(
                "secret",
                f"got other characters than ASCII without spaces, expected none ({source})",
            )
        self._value = value
        self._source = source

    @classmethod
    def from_env(cls, name: str) -> Secret | None:
        """
        Read the environment variable *name*; ``None`` if it is not set, or blank.

        Space around the token is dropped, since files that set variables often end in a newline.

        Raises:
            ContractError: If what is set is no token.
        """
        value = os.environ.get(name, "").strip()
        return cls(value, source=name) if value else None

    @property
    def source(self) -> str:
        """Where it came from."""
        return self._source

    def reveal(self) -> str:
        """Take the token itself, for the one header that carries it."""
        return self._value

    def __repr__(self) -> str:
        return f"Secret(from={self._source!r})"

    def __copy__(self) -> Secret:
        return self

    def __deepcopy__(self, memo: object) -> Secret:
        return self

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise ContractError("secret", f"got {self!r} to pickle, expected it to stay in its process")


def hosts_from_env(name: str) -> frozenset[str]:
    """
    Read which hosts may be shown a secret, from the environment variable *name*.

    That is a matter of the machine: what names an address, as a workflow does, cannot send a secret
    there by doing so.

    Returns:
        Names in lower case, which commas or spaces separate in the variable; none if it is not set.

    Example:
        >>> hosts_from_env("NOBODY_SETS_THIS")
        frozenset()
    """
    return frozenset(os.environ.get(name, "").lower().replace(",", " ").split())


def last_words(text: str) -> str:
    r"""
    Take from a traceback what it ends with, without the places in its files; other text whole.

    It is not made fit to be shown: that is `redact`.

    Example:
        >>> last_words('Traceback:\n  File "/home/me/arm.py", line 1\n    x[0]\nKeyError: 0')
        'KeyError: 0'
    """
    lines = text.splitlines()
    places = [i for i, line in enumerate(lines) if line.startswith('  File "')]
    if not places:
        return text
    rest = lines[places[-1] :]
    ends = [i for i, line in enumerate(rest) if line.strip() and not line.startswith(" ")]
    return "\n".join(rest[ends[0] :]) if ends else ""


def redact(text: str, *secrets: Secret | None, max_characters: int = 1000) -> str:
    """
    Make a text of somebody else's fit to be shown: one line, cut, and without secrets.

    What is taken out: each of *secrets*, plain, with escapes of URLs, JSON or Python, in Base64, or
    its start where the text was cut within it; what follows ``Authorization``, ``Bearer``,
    ``api_token`` and the like; user names and passwords in URLs; and what starts as the keys of
    known services do. Control characters, and those that change the direction of writing, become
    spaces. The time it takes grows with *max_characters*, not with the text.

    Args:
        text: The text.
        secrets: The tokens that were in reach when it was written.
        max_characters: The length of the result at most.

    Example:
        >>> redact("Authorization: Bearer sekret")
        'Authorization: [REDACTED]'
        >>> redact('no camera "side": {"api_token": "x"}')
        'no camera "side": {"api_token": [REDACTED]}'
    """
    known = [secret.reveal() for secret in secrets if secret is not None]
    # More is read than is shown, since what is taken out may be longer than what replaces it.
    text = text[: 8 * max_characters + 4 * sum(map(len, known))]
    text = _UNPRINTABLE.sub(_spaced, text)
    for token in known:
        text = _without(text, token)
    for pattern in _PATTERNS:
        text = pattern.sub(_kept, text)
    line = text.replace("\n", " ").strip()
    return line if len(line) <= max_characters else f"{line[: max_characters - 3]}..."


def without_secrets(text: str, *secrets: Secret | None) -> str:
    r"""
    Take tokens out of a text that is kept as it is otherwise, as the whole answer of a model.

    They are found as `redact` finds them: plain, with escapes, in Base64, or cut at the end. What
    only looks like a token stays, and so do all lines.

    Args:
        text: The text, of any length.
        secrets: The tokens that were in reach when it was written.

    Example:
        >>> without_secrets("a key:\nsekret", Secret("sekret"))
        'a key:\n[REDACTED]'
    """
    for secret in secrets:
        if secret is not None:
            text = _without(text, secret.reveal())
    return text


def _spaced(match: re.Match[str]) -> str:
    return "".join(each if each.isprintable() else " " for each in match[0])


def _kept(match: re.Match[str]) -> str:
    return f"{match[1] if match.re.groups else ''}{REDACTED}"


def _without(text: str, token: str) -> str:
    """Take *token* out, in whatever spelling it is there."""
    spans = [*_found(text, token), *_found_escaped(text, token), *_found_base64(text, token)]
    shown, end = [], 0
    for start, stop in sorted(spans):
        if start >= end:
            shown += [text[end:start], REDACTED]
        end = max(end, stop)
    return "".join([*shown, text[end:]])


def _found(text: str, token: str) -> Iterator[tuple[int, int]]:
    """Find *token*, and its start where the text ends within it."""
    start = text.find(token)
    while start >= 0:
        yield start, start + len(token)
        start = text.find(token, start + len(token))
    for length in range(min(len(token) - 1, len(text)), _SHORTEST_PART - 1, -1):
        if text.endswith(token[:length]):
            yield len(text) - length, len(text)
            return


def _found_escaped(text: str, token: str) -> Iterator[tuple[int, int]]:
    """Find *token* in what the text means, where it has escapes, as ``%2F`` for ``/``."""
    for escape in _ESCAPES:
        plain: list[str] = []
        places: list[int] = []  # where each character of plain stands in text
        end = 0
        for match in escape.finditer(text):
            plain += text[end : match.start()]
            places += range(end, match.start() + 1)
            code = match["code"]
            plain.append(chr(int(code, 16)) if code else match[0][1:])
            end = match.end()
        if end:
            plain += text[end:]
            places += range(end, len(text) + 1)
            for start, stop in _found("".join(plain), token):
                yield places[start], places[stop]


def _found_base64(text: str, token: str) -> Iterator[tuple[int, int]]:
    """Find *token* in Base64, with anything before and after it, as ``user:token``."""
    for lead in range(3):
        for encode in (b64encode, urlsafe_b64encode):
            # Characters that depend on the neighbours of the token are not compared.
            first = (0, 2, 3)[lead]
            last = (lead + len(token)) * 8 // 6
            core = encode(b"\0" * lead + token.encode()).decode()[first:last]
            if len(core) >= _SHORTEST_PART:
                yield from _widened(text, _found(text, core))


def _widened(text: str, spans: Iterator[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Widen each span to all of the Base64 that it stands in."""
    reached = 0
    for start, stop in spans:
        if stop <= reached:
            continue
        first, end = start, stop
        while first > reached and text[first - 1] in _BASE64:
            first -= 1
        while end < len(text) and text[end] in _BASE64:
            end += 1
        reached = end
        yield first, end
