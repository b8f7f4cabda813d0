"""What is asked about every image of a job, and the mark of each question."""

from __future__ import annotations

import enum
import hashlib
import json
from typing import Any

import attrs

from vlmcore._arguments import require_kind
from vlmcore._arrays import UInt8Array, require_name, require_text
from vlmcore.errors import ContractError
from vlmcore.jobs.templates import PromptTemplate
from vlmcore.media.budgets import PixelBudget
from vlmcore.vlm.generation import GenerationOptions
from vlmcore.vlm.outputs import JsonOutput
from vlmcore.vlm.prompt import Prompt

__all__ = ["CaptionPrompt"]

_MARKS = 1  # the way in which the marks of questions are made: another one asks everything again
_HOW_ONLY = {"cache", "prompt_lookup", "matmul_precision"}  # how an answer is made, not which
_LONGEST_NAME = 64


@attrs.frozen(kw_only=True)
class CaptionPrompt:
    """
    One question, asked about every image of a job.

    Attributes:
        text: The question; a `vlmcore.jobs.templates.PromptTemplate` for one that says something of
            the image.
        name: What its answers are called, in tables and in templates of captions.
        system: The system text; empty leaves it out.
        options: How the model is to answer. JSON is asked for here: ``output``.

    Raises:
        ContractError: If a field is not as described.

    Example:
        >>> CaptionPrompt(text="What is this?").name
        'caption'
    """

    text: str | PromptTemplate
    name: str = "caption"
    system: str = ""
    options: GenerationOptions = attrs.field(factory=GenerationOptions)

    def __attrs_post_init__(self) -> None:
        words = self.text.text if isinstance(self.text, PromptTemplate) else self.text
        require_text(text=words)
        require_name("name", self.name, max_characters=_LONGEST_NAME)
        if not self.name.isidentifier():
            raise ContractError("name", f"got {self.name!r}, expected a name as 'short_caption'")
        require_kind("options", self.options, GenerationOptions)
        Prompt(text=words, system=self.system)  # what it refuses is refused before any image

    def about(self, pixels: UInt8Array, *, key: str, size_px: tuple[int, int]) -> Prompt:
        """
        Ask it about one image.

        Args:
            pixels: What the model is shown, shape ``[H, W, 3]``.
            key: What the image is called.
            size_px: Its width and height as it came.
        """
        words = self.words(key=key, size_px=size_px)
        return Prompt(text=words, system=self.system, images=(pixels,))

    def words(self, *, key: str, size_px: tuple[int, int]) -> str:
        """Return what is asked about one image; the arguments are those of `about`."""
        if isinstance(self.text, str):
            return self.text
        width_px, height_px = size_px
        return self.text.render(key=key, width_px=width_px, height_px=height_px)

    def mark(self, budget: PixelBudget) -> str:
        """
        Return what tells this question from others: the same for the same words, options and size.

        What only says how an answer is computed, as `GenerationOptions.cache`, makes no difference;
        nor does the name.

        Args:
            budget: How large the pictures are that it is asked about.
        """
        asked = {
            "marks": _MARKS,
            "text": _value(self.text),
            "system": self.system,
            "options": _plain(self.options, without=_HOW_ONLY),
            "budget": _plain(budget),
        }
        text = json.dumps(asked, sort_keys=True, ensure_ascii=True, allow_nan=False)
        return hashlib.sha256(text.encode()).hexdigest()[:32]


def _plain(record: Any, without: frozenset[str] | set[str] = frozenset()) -> dict[str, Any]:
    return {
        field.name: _value(getattr(record, field.name))
        for field in attrs.fields(type(record))
        if field.name not in without
    }


def _value(value: Any) -> Any:
    match value:
        case enum.Enum():
            return value.value
        case PromptTemplate():
            return {"template": value.text}
        case JsonOutput():
            return {"schema": value.plain_schema(), "repair": value.repair}
        case tuple():
            return list(value)
        case _:
            return value
