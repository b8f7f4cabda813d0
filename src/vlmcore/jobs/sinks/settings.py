"""Where captions are to go, and what becomes of those that are there already."""

from __future__ import annotations

import enum
import re
from pathlib import Path

import attrs

from vlmcore._arguments import require_kind
from vlmcore._arrays import require_member
from vlmcore.errors import ContractError
from vlmcore.jobs.sinks.tables import TableKind
from vlmcore.jobs.sources.folders import IMAGE_SUFFIXES

__all__ = ["ExistingCaption", "NameClash", "Sidecars", "Table"]

_SUFFIX = re.compile(r"\.[A-Za-z0-9_]{1,15}", re.ASCII)


class ExistingCaption(enum.Enum):
    """What becomes of a caption file that was there before, and is not one of this job's."""

    SKIP = "skip"  # it stays, and the image is not asked about
    OVERWRITE = "overwrite"
    APPEND = "append"  # the new caption comes after what is in it
    PREPEND = "prepend"  # ... and before it


class NameClash(enum.Enum):
    """What to do where two images would have the same caption file, as ``a.jpg`` and ``a.png``."""

    REFUSE = "refuse"  # before the first image is asked about
    DISAMBIGUATE = "disambiguate"  # the whole name: a.jpg.txt and a.png.txt


@attrs.frozen(kw_only=True)
class Sidecars:
    """
    Caption files, one beside each image.

    Attributes:
        folder: Where they go instead, in the same sub-folders; ``None`` puts each beside its image.
        suffix: Their ending, with its point.
        existing: What becomes of a caption file that is there already.
        clash: What to do where two images want the same one.
        separator: What stands between an old text and a new one, and between several captions.

    Raises:
        ContractError: If a field is not as described.
    """

    folder: Path | None = None
    suffix: str = ".txt"
    existing: ExistingCaption = ExistingCaption.SKIP
    clash: NameClash = NameClash.REFUSE
    separator: str = "\n"

    def __attrs_post_init__(self) -> None:
        require_member(ExistingCaption, existing=self.existing)
        require_member(NameClash, clash=self.clash)
        if not isinstance(self.suffix, str) or not _SUFFIX.fullmatch(self.suffix):
            problem = f"got {self.suffix!r:.80}, expected an ending such as '.txt'"
            raise ContractError("suffix", problem)
        if self.suffix.lower() in IMAGE_SUFFIXES:
            problem = f"got {self.suffix!r}, expected none of an image: it could be written over"
            raise ContractError("suffix", problem)
        if not isinstance(self.separator, str) or "\r" in self.separator:
            raise ContractError("separator", f"got {self.separator!r:.80}, expected text")
        if self.folder is not None:
            require_kind("folder", self.folder, Path)


@attrs.frozen(kw_only=True)
class Table:
    """
    A table with a row for each image.

    Attributes:
        path: The file.
        kind: What it is written as.
    """

    path: Path
    kind: TableKind

    def __attrs_post_init__(self) -> None:
        require_member(TableKind, kind=self.kind)
        require_kind("path", self.path, Path)
