"""A model in this process that is asked and measured."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest

from vlmcore.errors import GenerationError, ModelError, ModelMemoryError
from vlmcore.lab.asking.predictors import PredictorAsker
from vlmcore.lab.asking.requests import Request
from vlmcore.lab.events import FailureKind, Phase
from vlmcore.testing import EchoPredictor
from vlmcore.vlm.generation import GenerationOptions
from vlmcore.vlm.prompt import Prompt

PROMPT = Prompt(text="What is it?", images=[np.zeros((8, 8, 3), np.uint8)])


def request(*, deadline_s: float = 20, most: int = 16) -> Request:
    began_ns = time.perf_counter_ns()
    return Request(
        case="dog",
        target="mine",
        phase=Phase.WARM_UP,
        block=1,
        leg=2,
        prompt=lambda: PROMPT,
        options=GenerationOptions(max_new_tokens=most, stop_on_repetition=False),
        deadline_s=deadline_s,
        clock_ns=lambda: time.perf_counter_ns() - began_ns,
    )


def test_an_answer_is_measured_piece_by_piece() -> None:
    """
    Its tokens are counted by the model.
    """
    predictor = EchoPredictor()
    sample = PredictorAsker(predictor).ask(request())

    expected = predictor.generate(PROMPT, request().options)
    assert expected.text == sample.text
    assert expected.new_tokens == sample.generated_tokens
    assert ("dog", "mine", Phase.WARM_UP) == (sample.case, sample.target, sample.phase)
    assert sum(each.characters for each in sample.chunks) == len(sample.text)
    assert sample.prepared_ns <= sample.first_token_ns <= sample.last_token_ns
    assert "" == sample.excluded


def test_an_answer_that_is_cut_says_so() -> None:
    """
    Evaluators are told, which may want whole answers.
    """
    assert "length" == PredictorAsker(EchoPredictor()).ask(request(most=2)).finish_reason


def test_a_model_that_takes_too_long_is_stopped() -> None:
    """
    What it wrote until then stays.
    """
    sample = PredictorAsker(EchoPredictor(delay_s=0.2)).ask(request(deadline_s=0.5))

    assert FailureKind.TIMEOUT is sample.failure.kind
    assert "no answer within 0.5 s" == sample.failure.message


def test_errors_of_a_model_are_samples() -> None:
    """
    One word says which kind.
    """

    class Broken(EchoPredictor):
        def __init__(self, error: Exception) -> None:
            super().__init__()
            self._error = error

        def stream(self, *_: Any, **__: Any) -> Any:
            raise self._error

    errors = {
        FailureKind.GENERATION: GenerationError("mine", "it broke"),
        FailureKind.MEMORY: ModelMemoryError("mine", "it does not fit", 2, 1),
    }
    for kind, error in errors.items():
        sample = PredictorAsker(Broken(error)).ask(request())
        assert kind is sample.failure.kind
        assert str(error) == sample.failure.message
        assert sample.first_token_ns is None


def test_closing_gives_the_model_back() -> None:
    """
    The asker is its only user.
    """
    predictor = EchoPredictor()
    PredictorAsker(predictor).close()

    with pytest.raises(ModelError, match="closed"):
        predictor.generate(PROMPT)
