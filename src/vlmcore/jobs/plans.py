"""What a captioning job is to do, decided before the first image is looked at."""

from __future__ import annotations

import enum
from pathlib import Path
from typing import Any

import attrs

from vlmcore._arrays import require_count, require_member
from vlmcore.errors import ContractError
from vlmcore.jobs.items import ItemSource
from vlmcore.jobs.prompts import CaptionPrompt
from vlmcore.jobs.sinks.tables import TableKind
from vlmcore.jobs.templates import CaptionTemplate
from vlmcore.limits import JobLimits
from vlmcore.media.budgets import PixelBudget

__all__ = ["CaptionPlan", "ExistingCaption", "NameClash", "Sidecars", "Table"]

_MOST_PROMPTS = 32


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
        suffix = self.suffix
        plain = isinstance(suffix, str) and suffix[:1] == "." and suffix[1:].replace("_", "").isalnum()
        if not plain or not suffix.isascii() or len(suffix) > 16:
            raise ContractError("suffix", f"got {suffix!r:.80}, expected an ending such as '.txt'")
        if not isinstance(self.separator, str) or "\r" in self.separator:
            raise ContractError("separator", f"got {self.separator!r:.80}, expected text")
        if self.folder is not None and not isinstance(self.folder, Path):
            kind = type(self.folder).__name__
            raise ContractError("folder", f"got {kind}, expected a pathlib.Path")


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
        if not isinstance(self.path, Path):
            kind = type(self.path).__name__
            raise ContractError("path", f"got {kind}, expected a pathlib.Path")


def _prompts(value: Any) -> Any:
    if isinstance(value, str):
        return (CaptionPrompt(text=value),)
    return (value,) if isinstance(value, CaptionPrompt) else tuple(value)


@attrs.frozen(kw_only=True)
class CaptionPlan:
    """
    A captioning job: which images, what is asked, where the captions go.

    Attributes:
        source: The images, as `vlmcore.jobs.FolderImages`.
        prompts: What is asked about each: one text, or several `CaptionPrompt` of different names.
        sidecars: The caption files; ``None`` for none.
        tables: The tables.
        template: What is made of the answers before they are written.
        budget: How large the pictures are that the model is shown.
        retry_failed: Whether images are tried again that failed in an earlier run.
        reuse_identical: Whether an image with the same pixels as another takes over its answers.
        near_duplicates: Up to how many of 64 bits the perceptual hashes of two images may differ
            for the later one to be skipped; ``None`` skips none.
        batch_size: How many questions a model in this process is given at once.
        in_flight: How many calls a server is sent at once, at most.
        patience_s: How long to wait for a server that is away, in seconds.
        limits: How much is held and read ahead.

    Raises:
        ContractError: If a field is not as described, or nothing is to be written.
    """

    source: ItemSource
    prompts: tuple[CaptionPrompt, ...] = attrs.field(converter=_prompts)
    sidecars: Sidecars | None = None
    tables: tuple[Table, ...] = attrs.field(default=(), converter=tuple)
    template: CaptionTemplate = attrs.field(factory=CaptionTemplate)
    budget: PixelBudget = attrs.field(factory=PixelBudget)
    retry_failed: bool = False
    reuse_identical: bool = False
    near_duplicates: int | None = None
    batch_size: int = 8
    in_flight: int = 64
    patience_s: float = 600.0
    limits: JobLimits = attrs.field(factory=JobLimits)

    def __attrs_post_init__(self) -> None:
        require_count(batch_size=self.batch_size, in_flight=self.in_flight)
        names = [prompt.name for prompt in self.prompts]
        if not 1 <= len(names) <= _MOST_PROMPTS:
            problem = f"got {len(names)}, expected 1 to {_MOST_PROMPTS} prompts"
            raise ContractError("prompts", problem)
        for name in names:
            if names.count(name) > 1:
                raise ContractError("prompts", f"got two named {name!r}, expected different names")
        if self.sidecars is None and not self.tables:
            problem = "got no sidecars and no tables, expected a place for the captions"
            raise ContractError("tables", problem)
        most = self.near_duplicates
        if most is not None and (type(most) is not int or not 0 <= most <= 32):
            raise ContractError("near_duplicates", f"got {most!r:.40}, expected 0 to 32 bits")
        self.template.require_names(names)

    @property
    def marks(self) -> tuple[str, ...]:
        """What tells each question from others, in their order."""
        return tuple(prompt.mark(self.budget) for prompt in self.prompts)
