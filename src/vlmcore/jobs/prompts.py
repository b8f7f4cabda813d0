"""What is asked about every image of a job, and the mark by which an answer to it is known again."""

from __future__ import annotations

import enum
import hashlib
import json
from typing import Any

import attrs

from vlmcore._arrays import require_name, require_text
from vlmcore.errors import ContractError
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
        text: The question.
        name: What its answers are called, in tables and in templates of captions.
        system: The system text; empty leaves it out.
        options: How the model is to answer. JSON is asked for here: ``output``.

    Raises:
        ContractError: If a field is not as described.

    Example:
        >>> CaptionPrompt(text="What is this?").name
        'caption'
    """

    text: str
    name: str = "caption"
    system: str = ""
    options: GenerationOptions = attrs.field(factory=GenerationOptions)

    def __attrs_post_init__(self) -> None:
        require_text(text=self.text)
        require_name("name", self.name, max_characters=_LONGEST_NAME)
        if not self.name.isidentifier():
            raise ContractError("name", f"got {self.name!r}, expected a name as 'short_caption'")
        if not isinstance(self.options, GenerationOptions):
            kind = type(self.options).__name__
            raise ContractError("options", f"got {kind}, expected GenerationOptions")
        Prompt(text=self.text, system=self.system)  # what it refuses is refused before any image

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
            "text": self.text,
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
        case JsonOutput():
            return {"schema": value.plain_schema(), "repair": value.repair}
        case tuple():
            return list(value)
        case _:
            return value
