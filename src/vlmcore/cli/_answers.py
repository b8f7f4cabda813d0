"""How answers are shown: piece by piece to a person, as text to a pipe, as JSON to a program."""

from __future__ import annotations

from typing import Any, Protocol

import attrs

from vlmcore.cli._sources import Question
from vlmcore.cli._terminal import Terminal
from vlmcore.contracts.json_text import write_json
from vlmcore.vlm.generation import CancelToken, Generation, GenerationOptions
from vlmcore.vlm.predictor import Predictor
from vlmcore.vlm.prompt import Prompt

__all__ = ["AnswerSink", "JsonLines", "PlainText", "Streaming"]


class AnswerSink(Protocol):
    """Asks a predictor and shows what it answers, and shows what failed."""

    def begin(self, question: Question, asked: str | None = None) -> None:
        """Announce what is described next, and what is *asked* about it once that is certain."""
        ...

    def answer(
        self, predictor: Predictor, prompt: Prompt, options: GenerationOptions, cancel: CancelToken
    ) -> Generation:
        """Ask, and show the answer."""
        ...

    def failed(self, problem: str, text: str | None = None) -> None:
        """Show that what was announced could not be described, and what was written of it."""
        ...


class PlainText:
    """The answers as text, each ended by a new line; with headings where a person needs them."""

    def __init__(self, terminal: Terminal, *, headings: bool, prompts: bool = False) -> None:
        self._terminal = terminal
        self._headings = headings and terminal.is_interactive
        self._prompts = prompts
        self._answers = 0

    def begin(self, question: Question, asked: str | None = None) -> None:
        """Write what the answer is about, if there are several and a person is watching."""
        if self._headings:
            if self._answers:
                self._terminal.line()
            named = asked if self._prompts else None
            self._terminal.heading(question.name if named is None else f"{question.name}: {named}")
        self._answers += 1

    def answer(
        self, predictor: Predictor, prompt: Prompt, options: GenerationOptions, cancel: CancelToken
    ) -> Generation:
        """Ask, and write the answer when it is whole."""
        generation = predictor.generate(prompt, options, cancel=cancel)
        self._terminal.line(_shown(generation, options))
        return generation

    def failed(self, problem: str, text: str | None = None) -> None:
        """Write nothing: the complaint is on standard error."""


class Streaming(PlainText):
    """The answers piece by piece, as the model writes them."""

    def answer(
        self, predictor: Predictor, prompt: Prompt, options: GenerationOptions, cancel: CancelToken
    ) -> Generation:
        """Ask, and write each piece as it comes."""
        with predictor.stream(prompt, options, cancel=cancel) as stream:
            for piece in stream:
                self._terminal.write(piece)
        self._terminal.end_line()
        return stream.result


class JsonLines:
    """One JSON object a line for each answer, and for each image that could not be described."""

    def __init__(self, terminal: Terminal) -> None:
        self._terminal = terminal
        self._about: dict[str, str | list[str]] = {}

    def begin(self, question: Question, asked: str | None = None) -> None:
        """Remember what the next object is about."""
        self._about = {"source": question.source}
        if asked is not None:
            self._about["prompt"] = asked

    def answer(
        self, predictor: Predictor, prompt: Prompt, options: GenerationOptions, cancel: CancelToken
    ) -> Generation:
        """Ask, and write the answer with everything that is known about it."""
        generation = predictor.generate(prompt, options, cancel=cancel)
        document = self._document(generation, predictor.info.model)
        if _has_value(generation, options):
            document["value"] = generation.value
        self._terminal.document(document)
        return generation

    def failed(self, problem: str, text: str | None = None) -> None:
        """Write an object that says why there is no answer."""
        written = {} if text is None else {"written": text}
        self._terminal.document({**self._about, "error": problem, **written})

    def _document(self, generation: Generation, model: str) -> dict[str, Any]:
        timings = generation.timings
        return {
            **self._about,
            "text": generation.text,
            "reasoning": generation.reasoning,
            "stop_reason": generation.stop_reason.value,
            "prompt_tokens": generation.prompt_tokens,
            "new_tokens": generation.new_tokens,
            "timings": None if timings is None else attrs.asdict(timings),
            "model": model,
        }


def _has_value(generation: Generation, options: GenerationOptions) -> bool:
    return options.output is not None and generation.structure_error is None


def _shown(generation: Generation, options: GenerationOptions) -> str:
    """Return the answer as it is written; of JSON that was asked for, nothing but that."""
    if not _has_value(generation, options):
        return generation.text
    return write_json(generation.value, indent=None)
