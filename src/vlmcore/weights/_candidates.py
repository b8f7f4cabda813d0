"""Which file of a folder holds its weights."""

from __future__ import annotations

import re
from pathlib import Path

from vlmcore.errors import WeightsError

__all__ = ["is_safetensors", "is_shard_index", "weights_of"]

_SHARD = re.compile(r".*-\d{5}-of-\d{5}\.safetensors")
_SHOWN = 5


def is_shard_index(path: Path) -> bool:
    """Whether *path* is called as an index of several files."""
    return path.name.endswith(".index.json")


def is_safetensors(path: Path) -> bool:
    """Whether *path* is called as a file of safetensors."""
    return path.name.endswith(".safetensors")


def weights_of(path: Path) -> Path:
    """
    Return *path*, or, if it is a folder, the one file in it that has its weights.

    That is the only one of its kind, or else the only one that is called ``model``.

    Raises:
        WeightsError: If there is none in the folder, or more than one.
        OSError: If it cannot be looked at.
    """
    if not path.is_dir():
        return path
    found = sorted(each for each in path.iterdir() if _may_be(each))
    if len(found) > 1:
        named = [each for each in found if each.name.partition(".")[0] == "model"]
        found = named or found
    if len(found) == 1:
        return found[0]
    if not found:
        raise WeightsError(
            str(path), "holds no weights, expected a *.flashpack or *.safetensors file"
        )
    names = ", ".join(f"{each.name!a:.80}" for each in found[:_SHOWN])
    raise WeightsError(str(path), f"holds {len(found)} of them, name one: {names}")


def _may_be(path: Path) -> bool:
    if path.name.startswith("."):
        return False
    if path.name.endswith((".flashpack", ".safetensors.index.json")):
        return True
    return is_safetensors(path) and _SHARD.fullmatch(path.name) is None
