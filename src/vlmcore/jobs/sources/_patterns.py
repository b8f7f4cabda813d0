"""Patterns that stand for several files: as a shell has them, and as WebDataset does."""

from __future__ import annotations

import glob
import itertools
import math
import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from vlmcore._arguments import shown
from vlmcore.errors import ContractError, JobSourceError
from vlmcore.jobs.sources._files import named, path_of
from vlmcore.limits import JobSourceLimits, require_at_most

__all__ = ["expanded", "is_pattern", "matching_files", "place_of"]

_BRACES = re.compile(r"\{([^{}]*)\}")
_RANGE = re.compile(r"\A([0-9]{1,18})\.\.([0-9]{1,18})\Z")
_SPECIAL = re.compile(r"[*?\[]|\{[^{}]*(?:,|\.\.)[^{}]*\}")


def is_pattern(text: str) -> bool:
    """Say whether *text* may stand for other files than one of that name."""
    return _SPECIAL.search(text) is not None


def matching_files(
    paths: str | os.PathLike[str] | Sequence[str | os.PathLike[str]], *, limits: JobSourceLimits
) -> list[Path]:
    """
    List the files of some paths and patterns, in their order; those of ``*`` sorted by name.

    ``{000..015}`` and ``{a,b}`` stand for each of these, which all have to be there. A file that is
    called as a pattern is that file.

    Raises:
        ContractError: If they are none, or a pattern stands for too many files.
        JobSourceError: If a pattern stands for no file.
    """
    several = [paths] if isinstance(paths, (str, os.PathLike)) else list(paths)
    found: dict[Path, None] = {}
    for each in several:
        path = path_of(each)
        if path.exists():
            found[path] = None
            continue
        for text in expanded(str(path), limits):
            found |= dict.fromkeys(_matches(text))
        require_at_most("max_files", len(found), limits.max_files)
    if not found:
        raise ContractError("paths", f"got {shown(paths)}, expected paths of files")
    return list(found)


def place_of(paths: Sequence[Path]) -> Path:
    """Name the one file, or the folder that all of them are in."""
    if len(paths) == 1:
        return paths[0]
    try:
        return Path(os.path.commonpath([path.parent for path in paths]) or ".")
    except ValueError:  # some are from the root, some are not
        return Path(os.path.commonpath([path.parent.absolute() for path in paths]))


def _matches(text: str) -> list[Path]:
    if not glob.has_magic(text) or os.path.lexists(text):
        return [Path(text)]
    found = sorted(glob.iglob(text))  # noqa: PTH207 - that of pathlib takes no absolute pattern
    if not found:
        raise JobSourceError(named(Path(text)), "stands for no file that is there")
    return [Path(each) for each in found]


def expanded(text: str, limits: JobSourceLimits) -> Iterator[str]:
    """
    Write out the braces of a pattern, which are counted before.

    Raises:
        ContractError: If it stands for too many files.
    """
    parts = _BRACES.split(text)
    choices = [_choices(part, limits) if i % 2 else [part] for i, part in enumerate(parts)]
    require_at_most("max_files", math.prod(len(each) for each in choices), limits.max_files)
    return map("".join, itertools.product(*choices))


def _choices(inside: str, limits: JobSourceLimits) -> Sequence[str]:
    if match := _RANGE.match(inside):
        low, high = int(match[1]), int(match[2])
        if high < low:
            problem = f"got {{{inside}}}, expected a range from low to high"
            raise ContractError("paths", problem)
        require_at_most("max_files", high - low + 1, limits.max_files)
        return [f"{number:0{len(match[1])}}" for number in range(low, high + 1)]
    return inside.split(",") if "," in inside else [f"{{{inside}}}"]
