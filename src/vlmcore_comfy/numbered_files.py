"""Files that nodes keep: named by a person, numbered so that none takes the place of another."""

from __future__ import annotations

import re
from pathlib import Path

from vlmcore._whole_files import what_failed
from vlmcore.errors import ContractError

__all__ = ["claim_file"]

_NAME = re.compile(r"[\w.() +-]{1,100}")


def claim_file(folder: Path, name: str, extension: str, *, field: str) -> Path:
    """
    Make an empty file under a name that nothing has yet: ``audio_00001.wav``.

    Args:
        folder: The folder; it is made where it is not there.
        name: What the file is called, without a folder.
        extension: What its name ends with, without the dot.
        field: The widget that the name is from, for errors.

    Raises:
        ContractError: If the name leads elsewhere, or the file cannot be made.
    """
    if not _NAME.fullmatch(name) or name.startswith("."):
        raise ContractError(
            field,
            f"got {name!a:.80}, expected a name of letters, digits, spaces and . ( ) + - _, "
            "without a folder",
        )
    try:
        folder.mkdir(parents=True, exist_ok=True)
        taken = {entry.name for entry in folder.iterdir()}
        number = 1
        while f"{name}_{number:05}.{extension}" in taken:
            number += 1
        path = folder / f"{name}_{number:05}.{extension}"
        path.touch(exist_ok=False)  # it is ours now, whoever else is writing
    except OSError as error:
        raise ContractError(str(folder), what_failed(error)) from None
    return path
