"""Patterns of a schema: only those whose time on a text can be told beforehand."""

from __future__ import annotations

import re
from functools import lru_cache

from vlmcore.errors import ContractError
from vlmcore.limits import StructureLimits

__all__ = ["compiled", "pattern_steps", "require_pattern"]

_LIMITS = StructureLimits()
# The head of a group, an escaped character, a class, a counted repeat, or one character.
_TOKEN = re.compile(
    r"\(\?(?:P[<=]|<?[=!]|[a-zA-Z-]*[:)]|\(|>)|\(|\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\{\d*,?\d*\}|.",
    re.DOTALL,
)
_REPEAT = re.compile(r"[*+]|\{\d*,?\d*\}")
_EXPECTED = "expected one whose time on any text can be told"


def require_pattern(pattern: str, field: str) -> None:
    """
    Require a pattern that cannot be made to search for ever.

    Python's engine tries every way to match. Where a repeat is in a repeat, or a choice is in one,
    their number doubles with every character.

    Raises:
        ContractError: If it is no pattern, is too long, or may take too long.
    """
    if len(pattern) > _LIMITS.max_pattern_characters:
        most = _LIMITS.max_pattern_characters
        raise ContractError(field, f"got {len(pattern)} characters, expected at most {most}")
    try:
        compiled(pattern)
    except (ValueError, re.error, RecursionError, OverflowError) as error:
        problem = f"got {pattern!r:.80}, which is no pattern ({error})"
        raise ContractError(field, problem) from None
    try:
        _ways(pattern)
    except ValueError as error:
        problem = f"got {pattern!r:.80} with {error}, {_EXPECTED}"
        raise ContractError(field, problem) from None


@lru_cache(maxsize=256)
def compiled(pattern: str) -> re.Pattern[str]:
    """
    Compile a pattern so that it means what it does in JSON Schema, which takes that from ECMA-262.

    There the end of a text is not before its last line break, and digits are those of ASCII.

    Raises:
        ValueError: If it is none, as the other errors of ``re.compile``.
    """
    ends = _TOKEN.sub(lambda part: r"\Z" if part[0] == "$" else part[0], pattern)
    return re.compile(ends, re.ASCII)


def pattern_steps(pattern: str, characters: int) -> int:
    """Bound the steps of a *pattern* on a text: each repeat may end at each of its characters."""
    repeats, choices = _ways(pattern)
    return int((characters + 1) ** (repeats + 1) << choices)


@lru_cache(maxsize=256)
def _ways(pattern: str) -> tuple[int, int]:
    """Count the repeats and the choices of a pattern, and refuse those that multiply."""
    repeats, choices, before = 0, 0, ""
    groups = [False]  # of each open group, whether it may match in more than one way
    is_open = False  # whether the group that ends just before may
    for part in _TOKEN.findall(pattern):
        was_open, is_open = is_open, False
        repeat = _REPEAT.fullmatch(part)
        _require_plain(part)
        if part[0] == "(" and not part.endswith(")"):
            groups.append(False)
        elif part == ")":
            is_open = groups.pop()
            groups[-1] |= is_open
        elif repeat is not None:
            if was_open:
                raise ValueError("a repeat or a choice in a repeat")
            varies = part[0] != "{" or "," in part
            repeats += varies
            groups[-1] |= varies
        elif part == "|" or (part == "?" and not _REPEAT.fullmatch(before)):
            choices += 1
            groups[-1] = True
        before = part
    return repeats, choices


def _require_plain(part: str) -> None:
    if part in ("(?P=", "(?(") or (part[0] == "\\" and part[1:].isdigit()):
        raise ValueError("a reference back")
    if part.startswith("(?") and "x" in part[2:]:
        raise ValueError("the flag x")
