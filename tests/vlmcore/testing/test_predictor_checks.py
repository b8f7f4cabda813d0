"""`check_predictor`: each check passes for a predictor that keeps the contract, and bites."""

import pickle
import time
from collections.abc import Callable
from typing import Any

import attrs
import pytest

from vlmcore.errors import VlmcoreError
from vlmcore.testing.predictor_checks import (
    PREDICTOR_CHECKS,
    PredictorCheckError,
    check_predictor,
)
from vlmcore.testing.predictors import EchoPredictor
from vlmcore.vlm.generation import Generation, GenerationOptions, StopReason
from vlmcore.vlm.predictor import GenerationStream
from vlmcore.vlm.prompt import Prompt

PROMPT = Prompt(text="What do you see in this picture?")
BY_NAME = {check.name: check for check in PREDICTOR_CHECKS}


class Wrapped:
    """A predictor that keeps the contract; each test breaks one promise of it."""

    def __init__(self, **made: Any) -> None:
        self.echo = EchoPredictor(**made)

    @property
    def info(self) -> Any:
        return self.echo.info

    def generate(self, prompt, options=None, /, *, cancel=None):
        return self.echo.generate(prompt, options or GenerationOptions(), cancel=cancel)

    def stream(self, prompt, options=None, /, *, cancel=None):
        return self.echo.stream(prompt, options or GenerationOptions(), cancel=cancel)

    def generate_many(self, prompts, options=None, /, *, cancel=None):
        return [self.generate(prompt, options, cancel=cancel) for prompt in prompts]

    def close(self) -> None:
        self.echo.close()

    def __enter__(self):
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Nameless(Wrapped):
    @property
    def info(self):
        return attrs.evolve(self.echo.info, device="")


class WithoutAStream(Wrapped):
    stream = None  # type: ignore[assignment]


class Padded(Wrapped):
    def generate(self, prompt, options=None, /, *, cancel=None):
        answer = super().generate(prompt, options, cancel=cancel)
        return attrs.evolve(answer, text=f" {answer.text}")


class Moody(Wrapped):
    asked = 0

    def generate(self, prompt, options=None, /, *, cancel=None):
        self.asked += 1
        answer = super().generate(prompt, options, cancel=cancel)
        return attrs.evolve(answer, text=f"{answer.text} {self.asked}")


def _piecewise(pieces: list[str], result: Generation) -> GenerationStream:
    def written():
        yield from pieces
        return result

    return GenerationStream(written())


class Lossy(Wrapped):
    def stream(self, prompt, options=None, /, *, cancel=None):
        stream = super().stream(prompt, options, cancel=cancel)
        pieces = list(stream)
        return _piecewise(pieces[:-1], stream.result)


class AllAtOnce(Wrapped):
    def stream(self, prompt, options=None, /, *, cancel=None):
        stream = super().stream(prompt, options, cancel=cancel)
        return _piecewise(["".join(stream)], stream.result)


class Hasty(Wrapped):
    def stream(self, prompt, options=None, /, *, cancel=None):
        stream = super().stream(prompt, options, cancel=cancel)
        pieces = list(stream)

        class Eager(GenerationStream):
            result = stream.result

        return Eager(_piecewise(pieces, stream.result)._pieces)


class CutInSilence(Wrapped):
    def generate(self, prompt, options=None, /, *, cancel=None):
        answer = super().generate(prompt, options, cancel=cancel)
        return attrs.evolve(answer, stop_reason=StopReason.END)


class Unstoppable(Wrapped):
    def generate(self, prompt, options=None, /, *, cancel=None):
        options = attrs.evolve(options, stop=())
        return super().generate(prompt, options, cancel=cancel)


class Deaf(Wrapped):
    def generate(self, prompt, options=None, /, **_):
        return super().generate(prompt, options)

    def stream(self, prompt, options=None, /, **_):
        return super().stream(prompt, options)


class Stuck(Wrapped):
    """Keeps its turn when a stream is closed, as a worker that nobody stops."""

    left = False

    def stream(self, *_, **__):
        def written():
            try:
                yield "a"
            finally:
                self.left = True

        return GenerationStream(written())

    def generate(self, prompt, options=None, /, *, cancel=None):
        while self.left:
            time.sleep(0.01)
        return super().generate(prompt, options, cancel=cancel)


class PaddedBatches(Wrapped):
    def generate_many(self, prompts, options=None, /, *, cancel=None):
        answers = super().generate_many(prompts, options, cancel=cancel)
        longest = max((answer.prompt_tokens for answer in answers), default=0)
        return [attrs.evolve(answer, prompt_tokens=longest) for answer in answers]


class NeedsOne(Wrapped):
    def generate_many(self, prompts, options=None, /, *, cancel=None):
        first = prompts[0]
        return [self.generate(first, options, cancel=cancel) for _ in prompts]


class Chatty(Wrapped):
    def stream(self, prompt, options=None, /, *, cancel=None):
        plain = attrs.evolve(options or GenerationOptions(), output=None)
        return self.echo.stream(prompt, plain, cancel=cancel)


class Racy(Wrapped):
    busy = False

    def generate(self, prompt, options=None, /, *, cancel=None):
        crowded, self.busy = self.busy, True
        time.sleep(0.05)
        answer = super().generate(prompt, options, cancel=cancel)
        self.busy = False
        return attrs.evolve(answer, text="what?") if crowded else answer


class Undead(Wrapped):
    def close(self) -> None:
        pass


class ForeignError(Wrapped):
    def close(self) -> None:
        def fail(*_: object, **__: object) -> None:
            raise AttributeError("'NoneType' object has no attribute 'generate'")

        self.generate = fail  # type: ignore[method-assign]


BROKEN: list[tuple[str, Callable[[], Wrapped], str]] = [
    ("it reports what it is", Nameless, "info.device is ''"),
    ("it reports what it is", object, "a method of Predictor is missing"),
    ("an answer is whole and measured", lambda: Wrapped(answer=lambda _: "No."), "choose a prompt"),
    ("an answer is whole and measured", Padded, "white space at its ends"),
    ("greedy answers can be repeated", Moody, "a second greedy answer has text"),
    ("the pieces of a stream join to the answer", Lossy, "the pieces join to"),
    ("the pieces of a stream join to the answer", AllAtOnce, "in one piece"),
    ("a stream has no result before its end", Hasty, "expected RuntimeError"),
    ("an answer that is cut says so", CutInSilence, "StopReason.END"),
    ("a stop text ends the answer", Unstoppable, "the stop text"),
    ("a cancelled token stops every call", Deaf, "a token cancelled before gave 7 tokens"),
    ("cancelling stops a stream", Deaf, "pieces came after cancelling"),
    ("a stream left early leaves it usable", Stuck, "no end within"),
    ("many prompts are answered as one by one", PaddedBatches, "prompt_tokens"),
    ("no prompts have no answers", NeedsOne, "raised IndexError"),
    ("what is to be JSON is JSON or an error", Chatty, "stream gave None, expected an object"),
    ("threads are served in turn", Racy, "beside 5 other threads"),
    ("once closed it refuses work", Undead, "generate after close gave"),
    ("once closed it refuses work", ForeignError, "raised AttributeError"),
]


@pytest.mark.parametrize("check", PREDICTOR_CHECKS, ids=lambda check: check.name)
def test_a_predictor_that_keeps_the_contract_passes(check) -> None:
    """
    The echo keeps each promise, whether it thinks or not.
    """
    check(EchoPredictor(), PROMPT, patience_s=20)
    check(EchoPredictor(thoughts="let me look"), PROMPT, patience_s=20)


@pytest.mark.parametrize(("name", "make", "problem"), BROKEN)
def test_a_broken_promise_is_found_and_named(name, make, problem) -> None:
    """
    A predictor that breaks one promise fails the check of that name, and the message says how.
    """
    with pytest.raises(PredictorCheckError) as error:
        BY_NAME[name](make(), PROMPT, patience_s=2 if make is Stuck else 20)

    assert name == error.value.check
    assert problem in error.value.problem
    assert f"{name}: {error.value.problem}" == str(error.value)


def test_every_check_has_a_predictor_that_fails_it() -> None:
    """
    A check that cannot fail is decoration.
    """
    assert set(BY_NAME) == {name for name, _, _ in BROKEN}


def test_the_kit_makes_a_predictor_for_use_and_one_for_closing() -> None:
    """
    Loading a model is dear: two are made, both are closed, and the names of the checks return.
    """
    made = []

    def make() -> EchoPredictor:
        made.append(EchoPredictor())
        return made[-1]

    passed = check_predictor(make, PROMPT)

    assert tuple(BY_NAME) == passed
    assert 2 == len(made)
    for predictor in made:
        with pytest.raises(VlmcoreError):
            predictor.generate(PROMPT)


def test_a_failure_crosses_process_boundaries() -> None:
    """
    Test runners that use several processes pickle it.
    """
    error = PredictorCheckError("threads are served in turn", "it hung")

    copy = pickle.loads(pickle.dumps(error))

    assert (str(error), error.check) == (str(copy), copy.check)


def test_a_predictor_that_answers_json_keeps_the_contract_of_outputs() -> None:
    """
    One whose answers are objects has no error to show.
    """
    answering = EchoPredictor(answer=lambda _: '{"seen": "a red cup"}')

    BY_NAME["what is to be JSON is JSON or an error"](answering, PROMPT, patience_s=20)
