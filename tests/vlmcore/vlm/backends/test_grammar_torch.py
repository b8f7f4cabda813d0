"""Models are kept to the JSON that was asked for, token by token."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import jsonschema
import numpy as np
import pytest
import torch
import transformers

from structure_cases import Dot
from tiny_models import CHAT_KINDS
from vlmcore.errors import GenerationError, StructureError
from vlmcore.vlm.backends._grammar import Grammar
from vlmcore.vlm.generation import GenerationCache, GenerationOptions, StopReason
from vlmcore.vlm.loading import load_predictor
from vlmcore.vlm.outputs import JsonOutput
from vlmcore.vlm.predictor import Predictor
from vlmcore.vlm.prompt import Prompt

IMAGE = np.full((64, 64, 3), (200, 30, 30), np.uint8)
PROMPT = Prompt.of("What colour is the shape?", IMAGE)
SCHEMA = {
    "type": "object",
    "properties": {
        "colour": {"enum": ["red", "blue"]},
        "counts": {"type": "array", "items": {"type": "boolean"}, "minItems": 2, "maxItems": 3},
    },
    "required": ["colour", "counts"],
    "additionalProperties": False,
}
OPTIONS = GenerationOptions(output=SCHEMA, max_new_tokens=200)


@pytest.fixture(scope="module", params=CHAT_KINDS)
def predictor(request: pytest.FixtureRequest, tiny_model: Callable[[str], Path]) -> Any:
    with load_predictor(tiny_model(request.param), device="cpu") as opened:
        yield opened


def test_a_model_that_answers_nonsense_answers_what_fits(predictor: Predictor) -> None:
    """
    Random weights write any token; the grammar lets only some through, and ends the answer.
    """
    generation = predictor.generate(PROMPT, OPTIONS)

    jsonschema.validate(generation.value, SCHEMA)
    assert generation.value == json.loads(generation.text)
    assert StopReason.END is generation.stop_reason


def test_a_stream_and_a_batch_are_kept_to_it_as_well(predictor: Predictor) -> None:
    """
    Each row by itself: they end at different tokens.
    """
    other = Prompt.of("Describe this image.", IMAGE[:32])
    with predictor.stream(PROMPT, OPTIONS) as stream:
        pieces = list(stream)
    single = [predictor.generate(prompt, OPTIONS).text for prompt in (PROMPT, other, PROMPT)]
    many = predictor.generate_many([PROMPT, other, PROMPT], OPTIONS)

    assert single[0] == "".join(pieces) == stream.result.text
    assert single == [generation.text for generation in many]
    for generation in many:
        jsonschema.validate(generation.value, SCHEMA)


@pytest.fixture(scope="module")
def tiny(tiny_model: Callable[[str], Path]) -> Any:
    with load_predictor(tiny_model("llava"), device="cpu") as opened:
        yield opened


@pytest.mark.parametrize("seed", range(4))
def test_sampling_is_kept_to_it(tiny: Predictor, seed: int) -> None:
    """
    However hot: what may not come has no probability.
    """
    hot = GenerationOptions(
        output=SCHEMA, temperature=5.0, seed=seed, max_new_tokens=200, repetition_penalty=1.3
    )

    jsonschema.validate(tiny.generate(PROMPT, hot).value, SCHEMA)


def test_a_static_cache_changes_nothing(tiny: Predictor) -> None:
    """
    The grammar sees tokens, not caches.
    """
    static = GenerationOptions(output=SCHEMA, max_new_tokens=200, cache=GenerationCache.STATIC)

    assert tiny.generate(PROMPT, OPTIONS).text == tiny.generate(PROMPT, static).text


def test_white_space_is_no_way_to_go_on_for_ever(tiny: Predictor) -> None:
    """
    Between two numbers there is one space, and nothing where none is needed.
    """
    schema = {"type": "array", "items": {"enum": [1, 2]}, "minItems": 4, "maxItems": 4}
    text = tiny.generate(PROMPT, GenerationOptions(output=schema, max_new_tokens=60)).text

    assert text == json.dumps(json.loads(text))


def test_a_class_is_made_of_the_answer(tiny: Predictor) -> None:
    """
    With its fields of their types.
    """
    schema = JsonOutput.of(Dot).plain_schema()
    assert schema is not None
    schema["properties"]["x"] = {"type": "integer", "minimum": 0, "maximum": 9}
    schema["properties"]["y"] = {"enum": [0.5]}
    output = JsonOutput(schema=schema, kind=Dot)

    assert isinstance(tiny.generate(PROMPT, GenerationOptions(output=output)).value, Dot)


def test_an_answer_that_is_cut_is_an_error_with_what_was_written(tiny: Predictor) -> None:
    """
    Four tokens are not enough for an object.
    """
    with pytest.raises(StructureError, match="max_new_tokens were written") as error:
        tiny.generate(PROMPT, GenerationOptions(output=SCHEMA, max_new_tokens=4))

    assert '{"' == error.value.text[:2]
    assert "length" == error.value.stop_reason


def test_a_stop_text_inside_json_cuts_it(tiny: Predictor) -> None:
    """
    Whoever asks for both gets the error that says so.
    """
    with pytest.raises(StructureError, match="is no whole JSON"):
        tiny.generate(PROMPT, GenerationOptions(output=SCHEMA, stop=("colour",)))


def test_of_a_batch_a_wrong_answer_says_so_by_itself(tiny: Predictor) -> None:
    """
    The others are not lost.
    """
    short = GenerationOptions(output=SCHEMA, max_new_tokens=4)
    generations = tiny.generate_many([PROMPT, PROMPT], short)

    for generation in generations:
        with pytest.raises(StructureError):
            _ = generation.value


def test_without_constraint_nonsense_is_an_error(tiny: Predictor) -> None:
    """
    The answer is validated in any case.
    """
    free = JsonOutput(schema=SCHEMA, constrained=False)

    with pytest.raises(StructureError):
        tiny.generate(PROMPT, GenerationOptions(output=free, max_new_tokens=8))


def test_what_the_grammar_has_no_rule_for_is_validated_afterwards(tiny: Predictor) -> None:
    """
    It lets more through than the schema, and the error names what is wrong.
    """
    schema = {"type": "array", "items": {"const": 1}, "minItems": 2, "maxItems": 2}

    with pytest.raises(StructureError, match="has non-unique elements"):
        tiny.generate(PROMPT, GenerationOptions(output={**schema, "uniqueItems": True}))


@pytest.mark.parametrize(
    "schema",
    [{"type": "string", "pattern": "(?=a)b"}, {"type": "integer", "minimum": 3, "maximum": 1}],
)
def test_a_schema_that_no_grammar_can_follow_is_told(
    tiny: Predictor, schema: dict[str, Any]
) -> None:
    """
    Before the model has written anything.
    """
    with pytest.raises(GenerationError, match="no grammar can be made of the schema"):
        tiny.generate(PROMPT, GenerationOptions(output=schema))


def test_a_schema_that_says_nothing_lets_any_json_through(tokenizer: Any) -> None:
    """
    It is not the same as asking for an object.
    """
    kept = Grammar(
        tokenizer,
        JsonOutput(schema={}),
        [Row()],  # type: ignore[list-item]
        end_tokens=frozenset([tokenizer.eos_token_id]),
        may_think=False,
        model="m",
    )

    assert {"[", "{", '"', "1"} <= allowed(tokenizer, kept, "x")[0]


def test_the_model_is_free_again_afterwards(tiny: Predictor) -> None:
    """
    Nothing of the grammar stays with it.
    """
    free = GenerationOptions(max_new_tokens=12)
    before = tiny.generate(PROMPT, free).text
    tiny.generate(PROMPT, OPTIONS)

    assert before == tiny.generate(PROMPT, free).text


@attrs.define
class Row:
    """What the grammar sees of an answer."""

    ended: bool = False
    is_thinking: bool = False
    has_begun: bool = False


@pytest.fixture(scope="module")
def tokenizer(tiny_model: Callable[[str], Path]) -> Any:
    opened = transformers.AutoTokenizer.from_pretrained(tiny_model("llava"))
    opened.add_tokens(["<think>", "</think>"])
    return opened


def grammar(tokenizer: Any, rows: list[Row], *, may_think: bool = True) -> Grammar:
    ends = frozenset([tokenizer.eos_token_id])
    return Grammar(
        tokenizer,
        JsonOutput(schema={"enum": [1, 2]}),
        rows,  # type: ignore[arg-type]
        end_tokens=ends,
        may_think=may_think,
        model="m",
    )


def allowed(tokenizer: Any, kept: Grammar, *newest: str) -> list[set[str]]:
    """
    Say which tokens may follow, row by row.
    """
    ids = [[tokenizer.convert_tokens_to_ids(token)] for token in newest]
    scores = kept(torch.tensor(ids), torch.zeros(len(ids), len(tokenizer)))
    return [
        set(tokenizer.convert_ids_to_tokens(torch.nonzero(row == 0).ravel().tolist()))
        for row in scores
    ]


def test_reasoning_is_free_and_the_answer_after_it_is_not(tokenizer: Any) -> None:
    """
    Whoever thinks first writes no JSON meanwhile; what closes the reasoning is not of the answer.
    """
    thinker, other = Row(is_thinking=True), Row()
    kept = grammar(tokenizer, [thinker, other])

    free, held = allowed(tokenizer, kept, "x", "x")
    assert (len(tokenizer), {"1", "2", "<think>"}) == (len(free), held)

    thinker.is_thinking, thinker.has_begun, other.has_begun = False, True, True
    first, second = allowed(tokenizer, kept, "</think>", "2")
    assert ({"1", "2"}, {tokenizer.eos_token}) == (first, second)


def test_a_model_may_open_its_reasoning_where_that_is_not_ruled_out(tokenizer: Any) -> None:
    """
    The tag that opens it is no part of the answer either.
    """
    row = Row()
    kept = grammar(tokenizer, [row])
    allowed(tokenizer, kept, "x")
    row.has_begun = row.is_thinking = True
    (thinking,) = allowed(tokenizer, kept, "<think>")
    row.is_thinking = False
    (answering,) = allowed(tokenizer, kept, "</think>")

    assert (len(tokenizer), {"1", "2"}) == (len(thinking), answering)
    assert [{"1", "2"}] == allowed(tokenizer, grammar(tokenizer, [Row()], may_think=False), "x")


def test_a_row_that_has_ended_is_left_alone(tokenizer: Any) -> None:
    """
    What follows in it is padding, which no grammar takes.
    """
    row = Row()
    kept = grammar(tokenizer, [row])
    allowed(tokenizer, kept, "x")
    row.ended = True

    assert [len(tokenizer)] == [len(each) for each in allowed(tokenizer, kept, "<|pad|>")]


def test_a_slow_tokenizer_is_told() -> None:
    """
    The grammar reads the files of fast ones.
    """

    class Slow:
        pass

    with pytest.raises(GenerationError, match="its tokenizer is not a fast one"):
        Grammar(Slow(), JsonOutput(), [], end_tokens=frozenset(), may_think=False, model="m")
