"""Templates: text with names in braces, and nothing else that ``str.format`` would do."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath

import attrs

from vlmcore._arguments import require_characters, shown
from vlmcore.errors import ContractError
from vlmcore.jobs._cleaning import one_line, plain

__all__ = ["Fields", "parse", "places_of", "require_known", "require_plain"]

# A brace that is doubled is one that is meant; what else has a brace must be a name in a pair.
_PART = re.compile(r"\{\{|\}\}|\{([^{}]*)\}|[{}]")


@attrs.frozen
class Fields:
    """
    A template that was read.

    Attributes:
        parts: Text, and the names of fields, in turn; text comes first and last.
    """

    parts: tuple[str, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The fields that it has, each once."""
        return tuple(dict.fromkeys(self.parts[1::2]))

    def render(self, values: Mapping[str, str]) -> str:
        """Put the values in."""
        filled = [values[part] if i % 2 else part for i, part in enumerate(self.parts)]
        return "".join(filled)


def parse(field: str, text: str) -> Fields:
    """
    Read a template.

    Raises:
        ContractError: If a brace is alone, or has something else than a name in it.
    """
    require_plain(field, text)
    parts, at = [""], 0
    for match in _PART.finditer(text):
        parts[-1] += text[at : match.start()]
        at = match.end()
        if match[0] in ("{{", "}}"):
            parts[-1] += match[0][0]
            continue
        if match[1] is None or not match[1].isidentifier():
            problem = f"got {shown(match[0])} at character {match.start() + 1}, expected the name "
            raise ContractError(field, f"{problem}of a field in braces; '{{{{' for a brace")
        parts += [match[1], ""]
    parts[-1] += text[at:]
    return Fields(tuple(parts))


def require_plain(field: str, text: str) -> None:
    """
    Require text without characters that control a terminal; line ends are none of them.

    Raises:
        ContractError: If it has one, or is no text.
    """
    if not isinstance(text, str):
        raise ContractError(field, f"got {type(text).__name__}, expected text")
    require_characters(field, text)
    if plain(text) != text or "\t" in text:
        raise ContractError(field, f"got {shown(text)}, expected no control characters")


def require_known(field: str, fields: Fields, known: Sequence[str]) -> None:
    """
    Require a template to have no field but those that are *known*.

    Raises:
        ContractError: If it has; says which there are.
    """
    for name in fields.names:
        if name not in known:
            there = ", ".join(f"{{{each}}}" for each in known)
            raise ContractError(field, f"got the field {{{name[:80]}}}, expected one of {there}")


def places_of(key: str) -> dict[str, str]:
    """Say what an image is called: ``stem`` without its folder and ending, ``folder`` the last."""
    path = PurePosixPath(key)
    return {"stem": one_line(path.stem), "folder": one_line(path.parent.name)}
