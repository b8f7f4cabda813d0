"""
What is measured: cases of an image or a video and a prompt, and how their answers are scored.

A suite is written once and given to every model that is compared. Its digest
(`vlmcore.lab.suite_documents.suite_digest`) says that two runs had the same.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import attrs

from vlmcore._arguments import require_characters
from vlmcore._arrays import (
    plain_float,
    require_count,
    require_finite_between,
    require_name,
    require_text,
)
from vlmcore.errors import ContractError
from vlmcore.lab.scoring.scores import Evaluator
from vlmcore.limits import PromptLimits, SuiteLimits, VideoLimits, require_at_most

__all__ = ["Case", "Suite"]

_LIMITS = SuiteLimits()


@attrs.frozen(kw_only=True)
class Case:
    """
    One question about an image or a video, and what is expected of the answer.

    Attributes:
        name: The name; no other case of the suite has it.
        prompt: What the model is asked.
        evaluator: How the answer is scored.
        image: Path of the image in the folder of the suite, with ``/`` between its parts; ``None``
            if there is a video.
        video: Path of the video; ``None`` if there is an image.
        frames: How many frames of the video are shown, at even steps of time; ``None`` if there is
            an image.
        longest_edge_px: Longer edges of the image or the frames are made that short; ``None``
            leaves them.
        system: The system text; empty leaves it out.
        max_new_tokens: Tokens that the answer may have; ``None`` for as many as the run says.
        margin: How much lower than that of the baseline the score may be, 0 to 1.

    Raises:
        ContractError: If a field is not as described.
        LimitExceededError: If it is larger than `vlmcore.limits.SuiteLimits` allows.

    Example:
        >>> from vlmcore.lab.scoring.number import NumberEvaluator
        >>> Case(
        ...     name="dice", image="dice.png", prompt="How many dice are there?",
        ...     evaluator=NumberEvaluator(expected=3), longest_edge_px=448,
        ... ).margin
        0.0
    """

    name: str
    prompt: str
    evaluator: Evaluator
    image: str | None = None
    video: str | None = None
    frames: int | None = None
    longest_edge_px: int | None = None
    system: str = ""
    max_new_tokens: int | None = None
    margin: float = attrs.field(default=0.0, converter=plain_float)

    def __attrs_post_init__(self) -> None:
        require_name("name", self.name, max_characters=_LIMITS.max_name_characters)
        _require_prompt("prompt", self.prompt)
        if self.system != "":
            _require_prompt("system", self.system)
        _require_evaluator(self.evaluator)
        self._check_media()
        if self.longest_edge_px is not None:
            require_count(longest_edge_px=self.longest_edge_px)
            require_at_most("max_edge_px", self.longest_edge_px, _LIMITS.max_edge_px)
        if self.max_new_tokens is not None:
            require_count(max_new_tokens=self.max_new_tokens)
            require_at_most("max_new_tokens", self.max_new_tokens, PromptLimits().max_new_tokens)
        require_finite_between(0.0, 1.0, margin=self.margin)

    def _check_media(self) -> None:
        if (self.image is None) == (self.video is None):
            came = "neither" if self.image is None else "an image and a video"
            raise ContractError("image", f"got {came}, expected an image or a video")
        _require_path("image" if self.video is None else "video", self.media)
        if (self.frames is None) == (self.image is None):
            came = "None for a video" if self.frames is None else "a number for an image"
            raise ContractError("frames", f"got {came}, expected how many frames of a video")
        if self.frames is not None:
            require_count(frames=self.frames)
            require_at_most("max_frames", self.frames, VideoLimits().max_frames)

    @property
    def media(self) -> str:
        """The path of the image or the video in the folder of the suite."""
        return self.image or self.video or ""


def _require_evaluator(evaluator: object) -> None:
    if not isinstance(evaluator, Evaluator):
        raise ContractError("evaluator", f"got {type(evaluator).__name__}, expected an Evaluator")


def _require_prompt(field: str, text: str) -> None:
    require_text(**{field: text})
    require_at_most("max_prompt_characters", len(text), _LIMITS.max_prompt_characters)
    require_characters(field, text)


def _require_path(field: str, path: str) -> None:
    """Require a path that stays in its folder on every system, and is no address."""
    require_name(field, path, max_characters=_LIMITS.max_name_characters)
    parts = path.split("/")
    if any(part in ("", ".", "..") for part in parts) or "\\" in path or ":" in path:
        expected = "expected a path in the folder of the suite, as 'photos/beach.jpg'"
        raise ContractError(field, f"got {path[:80]!r}, {expected}")


def _cases(value: Any) -> Any:
    return tuple(value) if isinstance(value, Iterable) else value


@attrs.frozen(kw_only=True)
class Suite:
    """
    Cases that are measured together.

    Attributes:
        name: What people call it.
        cases: The cases, at least one, each of another name.
        notes: For people.
        folder: Where its images and videos lie; ``None`` if nobody said. It is no part of what the
            suite says, and two suites that differ in it alone are equal.

    Raises:
        ContractError: If a field is not as described.
        LimitExceededError: If it is larger than `vlmcore.limits.SuiteLimits` allows.
    """

    name: str
    cases: tuple[Case, ...] = attrs.field(converter=_cases)
    notes: str = ""
    folder: Path | None = attrs.field(default=None, eq=False)

    def __attrs_post_init__(self) -> None:
        require_name("name", self.name, max_characters=_LIMITS.max_name_characters)
        _require_cases(self.cases)
        twice = Counter(case.name for case in self.cases)
        for i, case in enumerate(self.cases):
            if twice[case.name] > 1:
                problem = f"got {case.name[:80]!r} more than once, expected each name once"
                raise ContractError(f"cases[{i}].name", problem)
        if self.notes != "":
            require_text(notes=self.notes)
            require_characters("notes", self.notes)
        require_at_most("max_notes_characters", len(self.notes), _LIMITS.max_notes_characters)
        if not isinstance(self.folder, (Path, type(None))):
            raise ContractError("folder", f"got {type(self.folder).__name__}, expected a Path")

    def path_of(self, case: Case) -> Path:
        """
        Return where the image or the video of a case lies.

        Raises:
            ContractError: If the suite has no folder.
        """
        if self.folder is None:
            raise ContractError("folder", "got None, expected where the images and videos lie")
        return self.folder / case.media


def _require_cases(cases: object) -> None:
    if not isinstance(cases, tuple) or not cases:
        came = "no cases" if cases == () else type(cases).__name__
        raise ContractError("cases", f"got {came}, expected at least one Case")
    require_at_most("max_cases", len(cases), _LIMITS.max_cases)
    for i, case in enumerate(cases):
        if not isinstance(case, Case):
            raise ContractError(f"cases[{i}]", f"got {type(case).__name__}, expected a Case")
