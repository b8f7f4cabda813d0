"""Places in ComfyUI's folders that a graph names: a stranger's graph reaches nothing else."""

from __future__ import annotations

from pathlib import Path

from vlmcore.errors import ContractError

__all__ = ["place_in"]

_MOST_CHARACTERS = 1000  # of a path that is written into errors


def place_in(root: Path, text: str, *, field: str, what: str) -> Path:
    """
    Find what *text* names in a folder; it need not be there.

    Args:
        root: The folder.
        text: A path in it; blank is the folder itself.
        field: The widget, for errors.
        what: What is expected, for errors.

    Raises:
        ContractError: If it is no path, or leads out of the folder, by a link too.
    """
    name = text.strip()
    if not (name.isprintable() or not name) or len(name) > _MOST_CHARACTERS:
        raise ContractError(field, f"got {name!a:.80}, expected {what}")
    path = (root / name).resolve()
    if not path.is_relative_to(root.resolve()):
        raise ContractError(field, f"got {name!a:.80}, expected {what}")
    return path
