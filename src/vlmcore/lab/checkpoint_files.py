"""Which weights answered: every file of a checkpoint with its digest, and its revision."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from vlmcore._whole_files import what_failed
from vlmcore.errors import ArtifactError, WeightsError
from vlmcore.lab.artifact_files import shown_path
from vlmcore.lab.targets import Checkpoint, CheckpointFile
from vlmcore.limits import ArtifactLimits
from vlmcore.weights.checksums import sha256_of

__all__ = ["find_checkpoint", "revision_of"]

_COMMIT = re.compile(r"[0-9a-f]{40}")


def find_checkpoint(
    model: str, folder: str | os.PathLike[str], *, limits: ArtifactLimits | None = None
) -> Checkpoint:
    """
    Digest the files of a checkpoint, as ``sha256sum`` would; it takes as long as reading them.

    Files and folders whose names begin with a dot are left out; links to files are followed, as
    caches of hubs are made of them.

    Args:
        model: What was asked for.
        folder: Where the files are.
        limits: How many files there may be.

    Raises:
        ArtifactError: If a file cannot be read, or there are too many, or none.
    """
    most = (limits or ArtifactLimits()).max_files
    top = Path(folder)
    files: list[CheckpointFile] = []
    for path in sorted(_paths(top)):
        if len(files) == most:
            raise ArtifactError(shown_path(top), f"max_files: got more than {most}")
        files.append(_file(path, top))
    if not files:
        raise ArtifactError(shown_path(top), "holds no files, expected those of a checkpoint")
    return Checkpoint(model=model, revision=revision_of(top), files=files)


def revision_of(folder: str | os.PathLike[str]) -> str | None:
    """
    Read the commit from the path of a snapshot in the cache of the hub; ``None`` elsewhere.

    Example:
        >>> revision_of("/cache/models--a--b/snapshots/" + "0123456789" * 4 + "/")
        '0123456789012345678901234567890123456789'
    """
    *_, parent, name = ("", "", *Path(folder).parts)
    return name if parent == "snapshots" and _COMMIT.fullmatch(name) else None


def _paths(top: Path) -> Iterator[Path]:
    def fail(error: OSError) -> None:
        raise ArtifactError(shown_path(top), what_failed(error)) from None

    for root, folders, names in os.walk(top, onerror=fail):
        folders[:] = [name for name in folders if not name.startswith(".")]
        yield from (Path(root, name) for name in names if not name.startswith("."))


def _file(path: Path, top: Path) -> CheckpointFile:
    name = path.relative_to(top).as_posix()
    try:
        if not path.is_file():  # asked before opening: a named pipe waits for its writer
            raise ArtifactError(shown_path(path), "is no regular file, expected a file")
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            return CheckpointFile(
                name=name, size_bytes=size, sha256=sha256_of(file.fileno(), str(path))
            )
    except OSError as error:
        raise ArtifactError(shown_path(path), what_failed(error)) from None
    except WeightsError as error:
        raise ArtifactError(shown_path(path), str(error)) from error
