"""A robot as people name it to a program: a template by its name, or a document in a file."""

from __future__ import annotations

import re
import stat
from pathlib import Path

from vlmcore.contracts.documents import embodiment_from_json
from vlmcore.contracts.embodiment import Embodiment
from vlmcore.contracts.presets import find_embodiment
from vlmcore.errors import ContractError
from vlmcore.limits import DocumentLimits, require_at_most

__all__ = ["read_embodiment"]

_PATH = re.compile(r"[./~].*|[^ ]*[/\\][^ ]*|.*\.\w{1,5}", re.DOTALL)  # no template is called so
_UTF8_MARK = b"\xef\xbb\xbf"  # Windows begins texts with it


def read_embodiment(
    word: str, *, folder: Path | None = None, limits: DocumentLimits | None = None
) -> Embodiment:
    """
    Find a template by its name or label, or read the embodiment document in a file.

    Args:
        word: The name, the label, or the path.
        folder: Where relative paths start; ``None`` for the working folder.
        limits: How much is read.

    Raises:
        ContractError: If there is no such template and *word* is no path, with ``name`` as its
            field; if the file cannot be read, with *word* as its field; if it holds no JSON.
        DocumentError: If the document has faults; all of them are listed.
        LimitExceededError: If it is larger than *limits* allow.

    Example:
        >>> read_embodiment("aloha_bimanual_template").actions.rate_hz
        50.0
        >>> read_embodiment("nope.json")
        Traceback (most recent call last):
        ...
        vlmcore.errors.ContractError: nope.json: does not exist
    """
    try:
        return find_embodiment(word)
    except ContractError as error:
        path = _path_of(word, folder)
        if path is None:
            problem = f"{error.problem} (or the path of an embodiment document)"
            raise ContractError("name", problem) from None
    limits = limits or DocumentLimits()
    return embodiment_from_json(_read(word, path, limits), limits=limits)


def _path_of(word: str, folder: Path | None) -> Path | None:
    """Give the path that *word* is, be there a file or not; ``None`` if it is a name."""
    if not isinstance(word, str) or not word.strip() or "\0" in word:
        return None
    if word == "-":
        raise ContractError(word, "does not exist: standard input is not read for a robot")
    path = (folder or Path()) / word
    try:
        return path if _PATH.fullmatch(word) or path.exists() else None
    except OSError:  # too long for a path
        return None


def _read(word: str, path: Path, limits: DocumentLimits) -> bytes:
    most = limits.max_document_bytes
    try:
        # Asked before it is opened: opening a named pipe waits for its writer.
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            what = "a folder" if stat.S_ISDIR(status.st_mode) else "no regular file"
            raise ContractError(word, f"is {what}, expected an embodiment document")
        require_at_most("max_document_bytes", status.st_size, most)
        with path.open("rb") as file:
            return file.read(most + 1).removeprefix(_UTF8_MARK)
    except FileNotFoundError:
        raise ContractError(word, "does not exist") from None
    except OSError as error:
        raise ContractError(word, f"cannot be read: {error.strerror}") from error
