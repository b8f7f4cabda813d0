"""Questions to a model, and what became of each: an answer, a failure of its own, or one of all."""

from __future__ import annotations

import enum
from collections.abc import Collection, Sequence

import attrs

from vlmcore.contracts.json_text import read_json
from vlmcore.errors import (
    ContractError,
    GenerationError,
    IncompleteAnswersError,
    MediaError,
    ModelError,
    ModelNotServedError,
    ModelServerBusyError,
    ModelServerKeyError,
    ModelServerProtocolError,
    ModelServerRateLimitError,
    ModelServerRefusedError,
    ModelServerTimeoutError,
    ModelServerUnavailableError,
    StructureError,
    VlmcoreError,
)
from vlmcore.jobs.batching import Question
from vlmcore.jobs.journal import Answer
from vlmcore.jobs.prompts import CaptionPrompt
from vlmcore.jobs.reading import Seen
from vlmcore.vlm.generation import CancelToken, Generation, StopReason
from vlmcore.vlm.predictor import Predictor

__all__ = ["Asked", "Fate", "ask", "fate_of", "questions_about"]

_UNUSABLE = {
    StopReason.REPETITION: "the model fell into a loop over it",
    StopReason.FILTERED: "the server withheld the answer, or the rest of it, for its content",
}


class Fate(enum.Enum):
    """What an error says about the questions after it."""

    OF_IT = "of it"  # the question itself is at fault: go on
    OF_THE_MOMENT = "of the moment"  # ask again, later
    OF_ALL = "of all"  # no question can be answered: stop


@attrs.frozen(kw_only=True)
class Asked:
    """
    What came back for a question.

    Attributes:
        question: The question.
        answer: The answer, or the failure that is the answer; ``None`` to ask again, or to stop.
        error: Why there is none.
        was_turned_away: Whether the server had no time for it at first, or at all.
    """

    question: Question
    answer: Answer | None
    error: VlmcoreError | None = None
    was_turned_away: bool = False


def fate_of(error: VlmcoreError) -> Fate:
    """Tell what an error of a call says about the other questions."""
    match error:
        case ModelServerKeyError() | ModelNotServedError():
            return Fate.OF_ALL
        case (
            ModelServerUnavailableError()
            | ModelServerTimeoutError()
            | ModelServerBusyError()
            | ModelServerRateLimitError()
            | ModelServerProtocolError()
        ):
            return Fate.OF_THE_MOMENT
        case ModelServerRefusedError() | GenerationError() | ContractError() | MediaError():
            return Fate.OF_IT
        case _:
            return Fate.OF_ALL


def questions_about(
    seen: Seen,
    prompts: Sequence[CaptionPrompt],
    marks: Sequence[str],
    *,
    without: Collection[str],
) -> tuple[list[Question], list[Answer]]:
    """
    Put questions about an image; one that cannot be put is answered so.

    Args:
        seen: The image, with its pixels.
        prompts: What is asked about each image.
        marks: What tells each of *prompts* from others.
        without: The marks of those that are answered already.
    """
    key = seen.item.key
    if seen.digest is None or seen.pixels is None or seen.size_px is None:
        raise AssertionError(f"{key}: there is nothing to ask about")
    questions, refused = [], []
    for prompt, mark in zip(prompts, marks, strict=True):
        if mark in without:
            continue
        try:
            asked = prompt.about(seen.pixels, key=key, size_px=seen.size_px)
        except ContractError as error:
            refused.append(Answer(mark=mark, text="", problem=f"cannot be asked: {error}"))
            continue
        question = Question(
            key=key, digest=seen.digest, mark=mark, prompt=asked, options=prompt.options
        )
        questions.append(question)
    return questions, refused


def ask(predictor: Predictor, questions: Sequence[Question], cancel: CancelToken) -> list[Asked]:
    """
    Ask a batch of questions that are to be answered in the same way.

    Where a batch fails, each question is asked alone, so that one that cannot be answered costs the
    others nothing.
    """
    options = questions[0].options
    prompts = [question.prompt for question in questions]
    results: Sequence[object]
    try:
        if len(prompts) == 1:
            results = [predictor.generate(prompts[0], options, cancel=cancel)]
        else:
            results = predictor.generate_many(
                prompts, options, cancel=cancel, batch_size=len(prompts)
            )
    except IncompleteAnswersError as error:
        results = error.answers
    except (ModelError, ContractError, MediaError) as error:
        if len(questions) > 1:
            return [one for question in questions for one in ask(predictor, [question], cancel)]
        results = [error]
    return [_asked(*pair) for pair in zip(questions, results, strict=True)]


def _asked(question: Question, result: object) -> Asked:
    if isinstance(result, Generation):
        attempts = 1 if result.served is None else result.served.attempts
        answer = _answer(question, result)
        return Asked(question=question, answer=answer, was_turned_away=attempts > 1)
    if not isinstance(result, VlmcoreError):  # it was not asked any more, after one of all
        return Asked(question=question, answer=None)
    fate = fate_of(result)
    is_busy = isinstance(result, (ModelServerBusyError, ModelServerRateLimitError))
    answer = None
    if fate is Fate.OF_IT:
        text = result.text if isinstance(result, StructureError) else ""
        answer = question.failed(_told(result), text)
    return Asked(question=question, answer=answer, error=result, was_turned_away=is_busy)


def _answer(question: Question, generation: Generation) -> Answer | None:
    stop = generation.stop_reason
    if stop is StopReason.CANCELLED:
        return None
    text = generation.text
    if stop in _UNUSABLE:
        return question.failed(_UNUSABLE[stop], text, stop.value)
    if question.options.output is None:
        if not text.strip():
            return question.failed("the model wrote nothing", text, stop.value)
        return Answer(mark=question.mark, text=text, stop=stop.value)
    try:
        value = generation.value
        if question.options.output.kind is not None:
            value = read_json(text)  # a journal keeps plain values, not instances of a class
    except (StructureError, ContractError) as error:
        return question.failed(error.problem, text, stop.value)
    return Answer(mark=question.mark, text=text, value=value, stop=stop.value)


def _told(error: VlmcoreError) -> str:
    return str(getattr(error, "problem", error))
