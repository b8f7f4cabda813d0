"""A source of images from one word, as it is given on a command line."""

from __future__ import annotations

import enum
import os
from pathlib import Path, PurePath
from typing import Any

from vlmcore._arrays import require_member
from vlmcore.errors import ContractError, JobSourceError
from vlmcore.jobs.items import ItemSource
from vlmcore.jobs.sources._files import named, path_of
from vlmcore.jobs.sources._patterns import expanded, is_pattern
from vlmcore.jobs.sources.archives import TarImages
from vlmcore.jobs.sources.folders import IMAGE_SUFFIXES, FolderImages
from vlmcore.jobs.sources.lists import ListedImages
from vlmcore.jobs.sources.parquet import ParquetImages
from vlmcore.jobs.sources.records import JsonLinesImages
from vlmcore.limits import JobSourceLimits

__all__ = ["SourceKind", "open_source"]

_EXPECTED = (
    "expected a folder of images, a list of paths (.txt, .lst), records (.jsonl, .ndjson, "
    ".parquet), archives (.tar, .tar.gz, .tgz), or a pattern such as 'photos/*.jpg'"
)


class SourceKind(enum.Enum):
    """What names the images of a job."""

    FOLDER = "folder"
    LIST = "list"
    JSONL = "jsonl"
    PARQUET = "parquet"
    TAR = "tar"


_ENDINGS = {
    ".txt": SourceKind.LIST,
    ".lst": SourceKind.LIST,
    ".jsonl": SourceKind.JSONL,
    ".ndjson": SourceKind.JSONL,
    ".parquet": SourceKind.PARQUET,
    ".pq": SourceKind.PARQUET,
    ".tar": SourceKind.TAR,
    ".tar.gz": SourceKind.TAR,
    ".tgz": SourceKind.TAR,
}
# Which of the options each kind knows.
_OPTIONS = {
    SourceKind.FOLDER: ("patterns", "recursive", "hidden"),
    SourceKind.LIST: ("root",),
    SourceKind.JSONL: ("image", "id"),
    SourceKind.PARQUET: ("image", "id"),
    SourceKind.TAR: ("samples",),
}


def open_source(
    word: str | os.PathLike[str], *, kind: SourceKind | None = None, **options: Any
) -> ItemSource:
    """
    Find out what *word* is, and open it as a source of images.

    Args:
        word: A folder, a file, or a pattern.
        kind: What it is; ``None`` goes by how it ends.
        options: What the class of that kind takes: ``patterns``, ``recursive`` and ``hidden`` of a
            folder, ``root`` of a list, ``image`` and ``id`` of records, ``samples`` of archives.

    Raises:
        ContractError: If an option is not one of that kind, or not as described.
        JobSourceError: If it is none of them, or not there.

    Example:
        >>> from vlmcore import embedded
        >>> samples = Path(embedded.__file__).parent / "samples"
        >>> [item.key for item in open_source(f"{samples}/scene-1*.png")]
        ['scene-1.png']
    """
    path = path_of(word)
    if kind is None:
        kind = _kind_of(path)
    require_member(SourceKind, kind=kind)
    for option, value in options.items():
        if option not in _OPTIONS[kind]:
            known = " and ".join(_OPTIONS[kind])
            problem = f"got {value!r:.80}, but a source of the kind {kind.value!r} only knows "
            raise ContractError(option, f"{problem}{known}")
    match kind:
        case SourceKind.FOLDER:
            return _folder(path, options)
        case SourceKind.LIST:
            return ListedImages(path, **options)
        case SourceKind.JSONL:
            return JsonLinesImages(path, **options)
        case SourceKind.PARQUET:
            return ParquetImages(path, **options)
        case SourceKind.TAR:
            return TarImages(path, **options)


def _kind_of(path: Path) -> SourceKind:
    if path.is_dir():
        return SourceKind.FOLDER
    name = path.name.lower()
    for ending, kind in _ENDINGS.items():
        if name.endswith(ending):
            return kind
    if not path.exists() and is_pattern(str(path)):
        return SourceKind.FOLDER
    if not path.exists():
        raise JobSourceError(named(path), f"does not exist, {_EXPECTED}")
    what = "is one image" if path.suffix.lower() in IMAGE_SUFFIXES else "is of another kind"
    raise JobSourceError(named(path), f"{what}, {_EXPECTED}")


def _folder(path: Path, options: dict[str, Any]) -> FolderImages:
    """Open a folder, or one whose images are told by a pattern after its name."""
    if path.is_dir() or not is_pattern(str(path)):
        return FolderImages(path, **options)
    parts = path.parts
    first = next(i for i, part in enumerate(parts) if is_pattern(part))
    if options.get("patterns"):
        problem = f"got {options['patterns']!r:.80}, but {named(path)} is a pattern itself"
        raise ContractError("patterns", problem)
    pattern = PurePath(*parts[first:]).as_posix()
    below = pattern.removeprefix("**/")  # which stands for no folder, too
    usual = {"recursive": "/" in pattern}
    patterns = list(expanded(below, JobSourceLimits()))
    return FolderImages(Path(*parts[:first]), **{**usual, **options, "patterns": patterns})
