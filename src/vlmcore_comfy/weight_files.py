"""Files of weights in ComfyUI's folders: which there are, and what a graph means by a name."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from vlmcore._spelling import did_you_mean
from vlmcore.errors import ContractError

__all__ = ["weight_file", "weight_names"]

_INDEX = ".safetensors.index.json"
_ENDINGS = (".flashpack", ".safetensors", _INDEX)


def weight_names(folders: Sequence[Path]) -> list[str]:
    """
    List the files of weights in folders, as a page offers them: paths from the folder, with ``/``.

    Links are followed, as ComfyUI does, but no folder is read twice. Of a checkpoint in several
    files only the index is listed.
    """
    return sorted({name for folder in folders for name in _names(folder)}, key=str.casefold)


def weight_file(folders: Sequence[Path], name: str, *, field: str) -> Path:
    """
    Find the file that a graph names, in the first folder that has it.

    Raises:
        ContractError: If it is none of `weight_names`.
    """
    for folder in folders:
        if name in _names(folder):
            return folder / name
    known = {each.lower(): each for each in weight_names(folders)}
    where = ", ".join(map(str, folders)) or "no folder"
    problem = f"got {name!a:.120}, expected a file of weights in {where}"
    raise ContractError(field, f"{problem}{did_you_mean(name, known)}")


def _names(root: Path) -> Iterator[str]:
    seen: set[tuple[int, int]] = set()
    for place, folders, files in os.walk(root, followlinks=True):
        found = Path(place).stat()
        if (found.st_dev, found.st_ino) in seen:
            folders.clear()
            continue
        seen.add((found.st_dev, found.st_ino))
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        weights = [name for name in files if name.endswith(_ENDINGS) and name.isprintable()]
        has_index = any(name.endswith(_INDEX) for name in weights)
        for name in weights:
            if not (has_index and "-of-" in name):
                yield (Path(place) / name).relative_to(root).as_posix()
