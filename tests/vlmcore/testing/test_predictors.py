"""`EchoPredictor`: a predictor without a model, for tests of code that uses one."""

import subprocess
import sys
import threading
import time

import numpy as np
import pytest

from vlmcore.errors import ContractError, GenerationError, ModelError
from vlmcore.testing.predictors import EchoPredictor, echo
from vlmcore.vlm.generation import CancelToken, GenerationOptions, StopReason
from vlmcore.vlm.predictor import Predictor
from vlmcore.vlm.prompt import Prompt

PROMPT = Prompt(text="one two three four")


def test_it_is_a_predictor() -> None:
    """
    It has all that the protocol asks for.
    """
    assert isinstance(EchoPredictor(), Predictor)


def test_it_says_back_everything_that_a_prompt_holds() -> None:
    """
    Text, system text, and size and mean colour of images and video can be read off the answer.
    """
    blue = np.full((2, 3, 3), (0, 0, 255), np.uint8)
    prompt = Prompt(text="Look.", system="Be kind.", images=(blue,), video=blue[np.newaxis])

    answer = echo(prompt)

    assert "[system Be kind.] Look. [image 3x2 #0000ff] [video 1 frames 3x2]" == answer


def test_each_word_is_a_token() -> None:
    """
    A stream gives one word after the other, with the white space before it.
    """
    stream = EchoPredictor().stream(PROMPT)

    assert ["one", " two", " three", " four"] == list(stream)
    assert 4 == stream.result.new_tokens
    assert StopReason.END is stream.result.stop_reason


def test_an_answer_that_is_cut_has_the_words_it_was_allowed() -> None:
    """
    ``max_new_tokens`` words, and the reason says so.
    """
    answer = EchoPredictor().generate(PROMPT, GenerationOptions(max_new_tokens=2))

    assert ("one two", StopReason.LENGTH) == (answer.text, answer.stop_reason)


def test_a_stop_text_is_kept_out_of_the_pieces() -> None:
    """
    A stop text that comes in two tokens ends the answer before its first character.
    """
    stream = EchoPredictor().stream(PROMPT, GenerationOptions(stop=("o three",)))

    assert "one tw" == "".join(stream)
    assert StopReason.END is stream.result.stop_reason


def test_thoughts_are_reasoning_and_not_text() -> None:
    """
    They come first, cost tokens, and can be switched off.
    """
    predictor = EchoPredictor(thoughts="let me see")

    thinking = predictor.generate(PROMPT)
    straight = predictor.generate(PROMPT, GenerationOptions(thinking=False))

    assert ("let me see", PROMPT.text) == (thinking.reasoning, thinking.text)
    assert ("", PROMPT.text) == (straight.reasoning, straight.text)
    assert straight.new_tokens < thinking.new_tokens


def test_a_loop_ends_when_it_is_seen_or_at_the_length() -> None:
    """
    It can play a model that repeats itself for ever, with and without the guard against it.
    """
    predictor = EchoPredictor(loops=True)
    unguarded = GenerationOptions(stop_on_repetition=False, max_new_tokens=50)

    assert StopReason.REPETITION is predictor.generate(PROMPT).stop_reason
    assert StopReason.LENGTH is predictor.generate(PROMPT, unguarded).stop_reason


def test_it_fails_after_the_tokens_it_was_told() -> None:
    """
    The pieces before the failure arrive, then a `GenerationError` that names the model.
    """
    stream = EchoPredictor(fails_after=2, model="frail").stream(PROMPT)

    assert ["one", " two"] == [next(stream), next(stream)]
    with pytest.raises(GenerationError, match="frail: made to fail after 2 tokens"):
        next(stream)


def test_a_failure_leaves_it_usable() -> None:
    """
    Its turn is given back when it fails, so that the next caller is served.
    """
    predictor = EchoPredictor(fails_after=1)
    for _ in range(2):
        with pytest.raises(GenerationError):
            predictor.generate(PROMPT)


def test_cancelling_from_another_thread_stops_a_slow_answer() -> None:
    """
    The token is looked at before each word.
    """
    token = CancelToken()
    predictor = EchoPredictor(answer=lambda _: "word " * 1000, delay_s=0.01)
    threading.Timer(0.05, token.cancel).start()
    began_s = time.monotonic()

    answer = predictor.generate(PROMPT, cancel=token)

    assert StopReason.CANCELLED is answer.stop_reason
    assert time.monotonic() - began_s < 5


def test_a_second_call_beside_an_open_stream_is_refused_and_does_not_hang() -> None:
    """
    In one thread the second call could only wait for itself; it is told so.
    """
    predictor = EchoPredictor()
    with predictor.stream(PROMPT) as stream:
        next(stream)
        with pytest.raises(ModelError, match="still open in this thread"):
            predictor.generate(PROMPT)
    assert PROMPT.text == predictor.generate(PROMPT).text


def test_closing_ends_what_is_being_served() -> None:
    """
    A stream that is open when the predictor is closed ends as if it were cancelled.
    """
    predictor = EchoPredictor()
    stream = predictor.stream(PROMPT)
    next(stream)
    predictor.close()

    assert [] == list(stream)
    assert StopReason.CANCELLED is stream.result.stop_reason


def test_a_delay_that_is_no_time_is_refused() -> None:
    """
    The error names the argument.
    """
    with pytest.raises(ContractError, match="delay_s"):
        EchoPredictor(delay_s=-1)


def test_importing_the_kit_loads_neither_hypothesis_nor_a_framework() -> None:
    """
    Programs may use the kit in production, as a stand-in; only `strategies` needs hypothesis.
    """
    program = (
        "import sys, vlmcore.testing; "
        "print(sorted({'hypothesis', 'torch', 'transformers', 'PIL'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True
    )

    assert ("[]", "") == (done.stdout.strip(), done.stderr)
