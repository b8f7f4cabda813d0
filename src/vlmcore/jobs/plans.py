"""What a captioning job is to do, decided before the first image is looked at."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import attrs

from vlmcore._arrays import require_count
from vlmcore.errors import ContractError
from vlmcore.jobs.items import ItemSource
from vlmcore.jobs.prompts import CaptionPrompt
from vlmcore.jobs.sinks.settings import Sidecars, Table
from vlmcore.jobs.templates import CaptionTemplate
from vlmcore.limits import JobLimits
from vlmcore.media.budgets import PixelBudget

__all__ = ["CaptionPlan"]

_MOST_PROMPTS = 32


def _tables(value: Iterable[Table]) -> tuple[Table, ...]:
    return tuple(value)


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
    tables: tuple[Table, ...] = attrs.field(default=(), converter=_tables)
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
