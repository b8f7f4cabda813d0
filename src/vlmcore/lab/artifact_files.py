"""
Files of artifacts: named by their content, written once, and never changed.

The name of a file is its label and the start of the SHA-256 of its bytes, which ``sha256sum`` says
too. Writing the same evidence again changes nothing; a name that holds anything else is refused.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import stat
from pathlib import Path
from secrets import token_hex
from typing import Any

from vlmcore._whole_files import what_failed
from vlmcore.contracts.json_text import read_json
from vlmcore.errors import ArtifactError, ContractError
from vlmcore.lab.artifact_documents import artifact_document
from vlmcore.lab.artifacts import Artifact
from vlmcore.lab.sealing import seal
from vlmcore.limits import ArtifactLimits, require_at_most

__all__ = [
    "artifact_bytes",
    "artifact_name",
    "digest_in_name",
    "read_bytes",
    "shown_path",
    "write_artifact",
]

_NAME = re.compile(r".+-([0-9a-f]{12})\.json", re.DOTALL)


def write_artifact(
    artifact: Artifact, folder: str | os.PathLike[str], *, limits: ArtifactLimits | None = None
) -> Path:
    """
    Write an artifact into a folder.

    It is there whole and on the disk when this returns, or not at all, also after a power cut.

    Args:
        artifact: The evidence.
        folder: Where; it must exist.
        limits: How large the file may be.

    Returns:
        The path of the file, ``<label>-<first 12 digits of its SHA-256>.json``.

    Raises:
        ArtifactError: If it cannot be written, is too large, or the name holds something else.
        MissingDependencyError: If rfc8785 is not installed.
    """
    data = artifact_bytes(artifact, limits=limits)
    path = Path(folder) / artifact_name(artifact.start.label, data)
    try:
        _write_new(path, data)
    except FileExistsError:
        if read_bytes(path, limits=limits) != data:
            problem = "holds something else, expected a new name or the same evidence"
            raise ArtifactError(shown_path(path), problem) from None
    except OSError as error:
        raise ArtifactError(shown_path(path), f"cannot be written: {what_failed(error)}") from error
    return path


def artifact_bytes(artifact: Artifact, *, limits: ArtifactLimits | None = None) -> bytes:
    """
    Write an artifact as the bytes of its file.

    Raises:
        ArtifactError: If something in it has no canonical form, or could not be read again: 1e20
            is written as a whole number that 64 bits cannot hold.
        MissingDependencyError: If rfc8785 is not installed.
    """
    limits = limits or ArtifactLimits()
    try:
        data = seal(artifact_document(artifact))
        require_at_most("max_file_bytes", len(data), limits.max_file_bytes)
        read_json(data, limits=limits.of_a_document)
    except ContractError as error:
        raise ArtifactError(artifact.start.label, f"cannot be kept: {error}") from error
    return data


def artifact_name(label: str, data: bytes) -> str:
    """Name the file that holds *data*."""
    return f"{label}-{hashlib.sha256(data).hexdigest()[:12]}.json"


def digest_in_name(name: str) -> str | None:
    """
    Read the start of the digest that a file is named by; ``None`` if it is named otherwise.

    Example:
        >>> digest_in_name("baseline-44136fa355b3.json")
        '44136fa355b3'
    """
    found = _NAME.fullmatch(name)
    return found[1] if found else None


def read_bytes(path: str | os.PathLike[str], *, limits: ArtifactLimits | None = None) -> bytes:
    """
    Read a file whole, if it is a regular one and not too large.

    Raises:
        ArtifactError: If it is not, or cannot be read.
    """
    most = (limits or ArtifactLimits()).max_file_bytes
    name, file = shown_path(path), Path(path)
    try:
        # Asked before opening: opening a named pipe waits for its writer.
        is_regular = stat.S_ISREG(file.stat().st_mode)
        data = b""
        if is_regular:
            with file.open("rb") as opened:
                data = opened.read(most + 1)
    except OSError as error:
        raise ArtifactError(name, what_failed(error)) from None
    except ValueError:  # a zero byte in it
        raise ArtifactError(name, "is no path") from None
    if not is_regular:
        raise ArtifactError(name, "is no regular file, expected a file")
    if len(data) > most:
        raise ArtifactError(name, f"max_file_bytes: got more than {most}, limit is {most}")
    return data


def shown_path(path: Any) -> str:
    """Name a path on one line, with nothing but characters."""
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in os.fsdecode(path))


def _write_new(path: Path, data: bytes) -> None:
    """Give *data* the name *path*, at once and only if nothing has it."""
    beside = path.with_name(f".{token_hex(16)}.part")
    try:
        with beside.open("xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        try:
            os.link(beside, path)
        except FileExistsError:
            raise
        except OSError:  # not every file system has links
            if path.exists():
                raise FileExistsError(str(path)) from None
            beside.replace(path)
    finally:
        with contextlib.suppress(OSError):
            beside.unlink()
    _sync_folder(path.parent)


def _sync_folder(folder: Path) -> None:
    if hasattr(os, "O_DIRECTORY"):
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
