"""The compliance kit for predictors: what every one must do, whatever runs its model."""

from __future__ import annotations

import gc
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import attrs

from vlmcore.errors import IncompleteAnswersError, StructureError, VlmcoreError
from vlmcore.testing._promises import BrokenPromiseError, keep_within, require
from vlmcore.vlm.generation import CancelToken, Generation, GenerationOptions, StopReason
from vlmcore.vlm.outputs import JsonOutput
from vlmcore.vlm.predictor import Predictor, PredictorInfo
from vlmcore.vlm.prompt import Prompt

__all__ = ["PREDICTOR_CHECKS", "PredictorCheck", "PredictorCheckError", "check_predictor"]

_OPTIONS = GenerationOptions(max_new_tokens=48)
_FEWEST_TOKENS = 4
_THREADS = 3


class PredictorCheckError(AssertionError):
    """
    A predictor breaks the contract; an `AssertionError`, so that test runners call it a failure.

    Attributes:
        check: The name of the check.
        problem: What the predictor did, and what was expected.
    """

    def __init__(self, check: str, problem: str) -> None:
        super().__init__(check, problem)
        self.check = check
        self.problem = problem

    def __str__(self) -> str:
        return f"{self.check}: {self.problem}"


@attrs.frozen
class PredictorCheck:
    """
    One promise of the contract, with the code that holds a predictor to it.

    Attributes:
        name: The promise, as a sentence.
        closes: Whether the predictor is closed afterwards.
    """

    name: str
    closes: bool
    _check: Callable[[Predictor, Prompt], None] = attrs.field(repr=False)

    def __call__(self, predictor: Predictor, prompt: Prompt, *, patience_s: float = 120.0) -> None:
        """
        Hold *predictor* to the promise.

        The check runs in a thread of its own, so that a predictor that waits for ever fails it
        and does not hang the tests.

        Raises:
            PredictorCheckError: If the promise is not kept within *patience_s*.
        """
        try:
            keep_within(patience_s, partial(self._check, predictor, prompt))
        except BrokenPromiseError as error:
            raise PredictorCheckError(self.name, str(error)) from error.__cause__


def check_predictor(
    make_predictor: Callable[[], Predictor], prompt: Prompt, *, patience_s: float = 120.0
) -> tuple[str, ...]:
    """
    Hold a predictor to the whole contract of `vlmcore.vlm.predictor.Predictor`.

    Args:
        make_predictor: Makes an open predictor. It is called twice: once for the checks that use
            a predictor, once for those that close it.
        prompt: A prompt with a greedy answer of at least four tokens and two words.
        patience_s: The longest that one check may take, in seconds.

    Returns:
        The names of the checks, all of which passed.

    Raises:
        PredictorCheckError: At the first promise that is not kept.

    Example:
        >>> from vlmcore.testing import EchoPredictor
        >>> from vlmcore.vlm.prompt import Prompt
        >>> passed = check_predictor(EchoPredictor, Prompt(text="What does the picture show?"))
        >>> passed[3]
        'the pieces of a stream join to the answer'
    """
    for closes in (False, True):
        with make_predictor() as predictor:
            for check in PREDICTOR_CHECKS:
                if check.closes is closes:
                    check(predictor, prompt, patience_s=patience_s)
    return tuple(check.name for check in PREDICTOR_CHECKS)


def _require_same(got: Generation, expected: Generation, what: str) -> None:
    for field in ("text", "reasoning", "stop_reason", "prompt_tokens", "new_tokens"):
        had, wanted = getattr(got, field), getattr(expected, field)
        require(had == wanted, f"{what} has {field} {had!r}, expected {wanted!r}")


def _reports_itself(predictor: Predictor, _prompt: Prompt) -> None:
    require(isinstance(predictor, Predictor), "a method of Predictor is missing")
    info = predictor.info
    require(isinstance(info, PredictorInfo), f"info is {info!r}, expected a PredictorInfo")
    for field, value in attrs.asdict(info).items():
        filled = isinstance(value, bool) if field == "supports_video" else value
        require(filled, f"info.{field} is {value!r}, expected what it is and how it runs")


def _answers_whole(predictor: Predictor, prompt: Prompt) -> None:
    answer = predictor.generate(prompt, _OPTIONS)
    written, read = _count(answer, "new_tokens"), _count(answer, "prompt_tokens")
    require(
        (written is None or written >= _FEWEST_TOKENS) and len(answer.text.split()) > 1,
        f"the answer is {answer.text!r} of {written} tokens: "
        f"choose a prompt with an answer of at least {_FEWEST_TOKENS} tokens and two words",
    )
    require(
        written is None or written <= _OPTIONS.max_new_tokens,
        f"{written} new tokens, expected at most {_OPTIONS.max_new_tokens}",
    )
    require(read is None or read > 0, "prompt_tokens is 0, expected those that the model was given")
    require(answer.text == answer.text.strip(), f"{answer.text!r} has white space at its ends")
    timings = answer.timings
    if timings is not None:
        first_s = timings.total_s if timings.first_token_s is None else timings.first_token_s
        ordered = 0 <= timings.prepare_s <= first_s <= timings.total_s
        require(ordered, f"{timings} do not follow each other")


def _count(answer: Generation, field: str) -> int | None:
    """Read a count of tokens, which only a server may leave out."""
    count: int | None = getattr(answer, field)
    require(
        count is not None or answer.served is not None,
        f"{field} is None, expected a number: only what a server does not tell is None",
    )
    return count


def _repeats_greedy_answers(predictor: Predictor, prompt: Prompt) -> None:
    first = predictor.generate(prompt, _OPTIONS)
    _require_same(predictor.generate(prompt, _OPTIONS), first, "a second greedy answer")


def _streams_the_answer(predictor: Predictor, prompt: Prompt) -> None:
    answer = predictor.generate(prompt, _OPTIONS)
    with predictor.stream(prompt, _OPTIONS) as stream:
        pieces = list(stream)
    _require_same(stream.result, answer, "the result of the stream")
    joined = "".join(pieces)
    require(joined == answer.text, f"the pieces join to {joined!r}, expected {answer.text!r}")
    require(len(pieces) > 1, "the whole answer came in one piece")
    for piece in pieces:
        half = "\ufffd" in piece and "\ufffd" not in answer.text
        require(not half, f"the piece {piece!r} has half a character")


def _refuses_an_early_result(predictor: Predictor, prompt: Prompt) -> None:
    with predictor.stream(prompt, _OPTIONS) as stream:
        next(stream)
        try:
            result = stream.result
        except RuntimeError:
            return
    raise BrokenPromiseError(f"after one piece the result is {result!r}, expected RuntimeError")


def _stops_at_the_length(predictor: Predictor, prompt: Prompt) -> None:
    answer = predictor.generate(prompt, GenerationOptions(max_new_tokens=1))
    require(
        answer.stop_reason is StopReason.LENGTH and _count(answer, "new_tokens") in (1, None),
        f"max_new_tokens=1 gave {answer.new_tokens} tokens and {answer.stop_reason}, "
        f"expected 1 and {StopReason.LENGTH}",
    )


def _stops_at_a_stop_text(predictor: Predictor, prompt: Prompt) -> None:
    whole = predictor.generate(prompt, _OPTIONS).text
    stop = whole.split()[1][:2]
    expected = whole[: whole.index(stop)].rstrip()
    options = attrs.evolve(_OPTIONS, stop=(stop,))
    for answer in (predictor.generate(prompt, options), _streamed(predictor, prompt, options)):
        require(
            (answer.text, answer.stop_reason) == (expected, StopReason.END),
            f"the stop text {stop!r} gave {answer.text!r} and {answer.stop_reason}, "
            f"expected {expected!r} and {StopReason.END}",
        )


def _streamed(predictor: Predictor, prompt: Prompt, options: GenerationOptions) -> Generation:
    with predictor.stream(prompt, options) as stream:
        joined = "".join(stream)
    require(joined == stream.result.text, f"the pieces join to {joined!r}, not to the result")
    return stream.result


def _obeys_a_cancelled_token(predictor: Predictor, prompt: Prompt) -> None:
    token = CancelToken()
    token.cancel()
    answers = [predictor.generate(prompt, _OPTIONS, cancel=token)]
    answers += predictor.generate_many([prompt, prompt], _OPTIONS, cancel=token)
    require(len(answers) == 3, f"two prompts gave {len(answers) - 1} answers when cancelled")
    for answer in answers:
        require(
            answer.stop_reason is StopReason.CANCELLED and answer.new_tokens in (0, 1),
            f"a token cancelled before gave {answer.new_tokens} tokens and {answer.stop_reason}, "
            f"expected at most 1 and {StopReason.CANCELLED}",
        )


def _cancels_a_stream(predictor: Predictor, prompt: Prompt) -> None:
    whole = predictor.generate(prompt, _OPTIONS).text
    token = CancelToken()
    with predictor.stream(prompt, _OPTIONS, cancel=token) as stream:
        first = next(stream)
        token.cancel()
        rest = list(stream)
    answer = stream.result
    require(len(rest) <= 2, f"{len(rest)} pieces came after cancelling, expected that of one token")
    # One that writes ahead of its reader may have written all of it by then.
    require(
        answer.stop_reason is StopReason.CANCELLED or answer.text == whole,
        f"a stream cancelled after one piece ended with {answer.stop_reason}, "
        f"expected {StopReason.CANCELLED}",
    )
    cut = whole.startswith(answer.text) and answer.text == first + "".join(rest)
    require(cut, f"the cancelled answer is {answer.text!r}, expected the beginning of {whole!r}")


def _survives_a_stream_left_early(predictor: Predictor, prompt: Prompt) -> None:
    answer = predictor.generate(prompt, _OPTIONS)
    predictor.stream(prompt, _OPTIONS).close()
    stream = predictor.stream(prompt, _OPTIONS)
    next(stream)
    stream.close()
    stream.close()
    require(not list(stream), "a closed stream gave another piece")
    _require_same(predictor.generate(prompt, _OPTIONS), answer, "the answer after a closed stream")
    for _ in predictor.stream(prompt, _OPTIONS):
        break
    gc.collect()
    _require_same(predictor.generate(prompt, _OPTIONS), answer, "the answer after a dropped stream")


def _answers_many_as_one_by_one(predictor: Predictor, prompt: Prompt) -> None:
    longer = attrs.evolve(prompt, text=f"{prompt.text} Please look again, and answer carefully.")
    prompts = [prompt, longer, prompt]
    answers = predictor.generate_many(prompts, _OPTIONS)
    require(len(answers) == 3, f"three prompts gave {len(answers)} answers")
    for number, (each, answer) in enumerate(zip(prompts, answers, strict=True), start=1):
        expected = predictor.generate(each, _OPTIONS)
        _require_same(answer, expected, f"answer {number} of 3 prompts of unlike length")


def _answers_none(predictor: Predictor, _prompt: Prompt) -> None:
    answers = predictor.generate_many([], _OPTIONS)
    require(answers == [], f"no prompts gave {answers!r}, expected []")


def _holds_answers_to_their_output(predictor: Predictor, prompt: Prompt) -> None:
    options = attrs.evolve(_OPTIONS, output=JsonOutput(constrained=False))
    calls: dict[str, Callable[[], object]] = {
        "generate": lambda: predictor.generate(prompt, options).value,
        "generate_many": lambda: predictor.generate_many([prompt], options)[0].value,
        "stream": lambda: _streamed(predictor, prompt, options).value,
    }
    for name, call in calls.items():
        _require_object_or_error(name, call)


def _require_object_or_error(name: str, call: Callable[[], object]) -> None:
    try:
        value = call()
    except StructureError as error:
        require(isinstance(error.text, str), f"the error of {name} has no text of the model")
        return
    except IncompleteAnswersError as error:  # how many are answered where each is a request
        (value,) = error.answers
        if isinstance(value, StructureError):
            return
    problem = f"{name} gave {value!r:.80}, expected an object or a StructureError"
    require(isinstance(value, dict), problem)


def _serves_threads_in_turn(predictor: Predictor, prompt: Prompt) -> None:
    expected = predictor.generate(prompt, _OPTIONS)
    with ThreadPoolExecutor(_THREADS) as pool:
        calls = [pool.submit(predictor.generate, prompt, _OPTIONS) for _ in range(_THREADS)]
        calls += [pool.submit(_streamed, predictor, prompt, _OPTIONS) for _ in range(_THREADS)]
    for call in calls:
        _require_same(call.result(), expected, f"an answer beside {len(calls) - 1} other threads")


def _refuses_work_once_closed(predictor: Predictor, prompt: Prompt) -> None:
    predictor.close()
    predictor.close()
    calls: dict[str, Callable[[], object]] = {
        "generate": lambda: predictor.generate(prompt, _OPTIONS),
        "stream": lambda: list(predictor.stream(prompt, _OPTIONS)),
        "generate_many": lambda: predictor.generate_many([prompt], _OPTIONS),
    }
    for name, call in calls.items():
        try:
            answer = call()
        except VlmcoreError:
            continue
        raise BrokenPromiseError(
            f"{name} after close gave {answer!r}, expected an error of vlmcore"
        )


PREDICTOR_CHECKS: tuple[PredictorCheck, ...] = tuple(
    PredictorCheck(name, closes, check)
    for name, closes, check in (
        ("it reports what it is", False, _reports_itself),
        ("an answer is whole and measured", False, _answers_whole),
        ("greedy answers can be repeated", False, _repeats_greedy_answers),
        ("the pieces of a stream join to the answer", False, _streams_the_answer),
        ("a stream has no result before its end", False, _refuses_an_early_result),
        ("an answer that is cut says so", False, _stops_at_the_length),
        ("a stop text ends the answer", False, _stops_at_a_stop_text),
        ("a cancelled token stops every call", False, _obeys_a_cancelled_token),
        ("cancelling stops a stream", False, _cancels_a_stream),
        ("a stream left early leaves it usable", False, _survives_a_stream_left_early),
        ("many prompts are answered as one by one", False, _answers_many_as_one_by_one),
        ("no prompts have no answers", False, _answers_none),
        ("what is to be JSON is JSON or an error", False, _holds_answers_to_their_output),
        ("threads are served in turn", False, _serves_threads_in_turn),
        ("once closed it refuses work", True, _refuses_work_once_closed),
    )
)
"""Every check, in the order in which they make sense: the first failure explains the later ones."""
