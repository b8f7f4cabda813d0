"""Tests of `vlmcore.vlm.structure`: answers are held to what was asked for."""

from __future__ import annotations

import pickle
from typing import Any

import attrs
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from structure_cases import Colour, Dot, Model, Plain, Scene
from vlmcore.contracts.json_text import write_json
from vlmcore.errors import ContractError, StructureError
from vlmcore.testing.contract_strategies import json_objects
from vlmcore.vlm.generation import Generation, GenerationOptions, StopReason
from vlmcore.vlm.outputs import JsonOutput
from vlmcore.vlm.prompt import Prompt
from vlmcore.vlm.structure import (
    instruction,
    mended,
    read_answer,
    repair_prompt,
    required,
    structured,
)

ANY = JsonOutput()
DOT = {"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"]}


def answer(text: str, reason: StopReason = StopReason.END) -> Generation:
    return Generation(text=text, stop_reason=reason, prompt_tokens=1, new_tokens=1)


def held(text: str, output: Any, reason: StopReason = StopReason.END) -> Generation:
    return structured(answer(text, reason), GenerationOptions(output=output), model="m")


@example(value={"": "```"})
@example(value={"a": 'b"```\n```json\n{}'})
@given(value=json_objects())
def test_an_object_is_read_back_from_between_words(value: dict[str, Any]) -> None:
    """
    Alone, in a fence, and in a sentence.
    """
    text = write_json(value)

    assert value == read_answer(text, ANY)
    assert value == read_answer(f"Here:\n```json\n{text}\n```\nDone.", ANY)
    assert value == read_answer(f"It is {text}.", ANY)


@pytest.mark.parametrize(
    ("schema", "right", "wrong"),
    [
        ({"multipleOf": 0.01}, [0.07, 4.35, 1e300, 7, 0], [0.075, 1e-300]),
        ({"multipleOf": 0.1}, [0.3, -1.1, 3], [0.35]),
        ({"multipleOf": 3}, [9, 9.0, "no number", True], [10, 9.5]),
        ({"pattern": "^[A-Z]{2}$"}, ["AB", 5], ["AB\n", "ABC", "\nAB"]),
        ({"pattern": r"^\d+$"}, ["12"], ["\u0661\u0662", "12\n"]),
        ({"pattern": r"^\$[$]$"}, ["$$"], ["$", "$$\n"]),
        ({"pattern": "^(a|b$)"}, ["a\n", "b"], ["b\n"]),
        (
            {"patternProperties": {r"^\d$": {"pattern": "^a$"}}},
            [{"1": "a"}, {"1\n": "b"}, {"\u0661": "b"}, "1"],
            [{"1": "b"}],
        ),
    ],
)
def test_numbers_and_patterns_mean_what_json_schema_says(
    schema: dict[str, Any], right: list[Any], wrong: list[Any]
) -> None:
    """
    Not what floats and Python's patterns make of them.
    """
    output = JsonOutput(schema={"items": schema})

    assert right == read_answer(write_json(right), output)
    for each in wrong:
        with pytest.raises(ContractError, match=r"is not a multiple of|does not match"):
            read_answer(write_json([each]), output)


def test_what_no_pattern_names_is_additional() -> None:
    """
    Also a name with a line break behind it, or in digits of another script.
    """
    ours = {"properties": {"a": {}}, "patternProperties": {r"^\d$": {}}}
    strict = JsonOutput(schema={**ours, "additionalProperties": False})
    typed = JsonOutput(schema={**ours, "additionalProperties": {"type": "string"}})

    assert {"a": 1, "1": 2} == read_answer('{"a": 1, "1": 2}', strict)
    assert {"b": "c"} == read_answer('{"b": "c"}', typed)
    for name in ("1\n", "\u0661", "b"):
        with pytest.raises(ContractError, match="unexpected"):
            read_answer(write_json({name: 1}), strict)
        with pytest.raises(ContractError, match="is not of type 'string'"):
            read_answer(write_json({name: 1}), typed)


@given(text=st.text() | st.text('[]{}",:1a ').map(lambda text: text * 3))
def test_any_text_gives_a_value_or_our_error(text: str) -> None:
    """
    Whatever a model writes.
    """
    generation = held(text, "json")

    assert (generation.structure_error is None) is isinstance(generation.parsed, dict)


@pytest.mark.parametrize(
    ("text", "output", "value"),
    [
        ('{"x": 1}', DOT, {"x": 1}),
        ('{"x": 1.0}', Dot, Dot(x=1)),
        ('{"name": "a", "private": true}', Scene, Scene(name="a", private=True)),
        (
            (
                '{"name": "a", "dots": [{"x": 1, "y": 2}], "colour": "red", "size": "large",'
                ' "pair": [1, "b"], "counts": {"c": 3}, "inner": {"name": "d"}, "anything": [null]}'
            ),
            Scene,
            Scene(
                name="a",
                dots=(Dot(x=1, y=2.0),),
                colour=Colour.RED,
                size="large",
                pair=(1, "b"),
                counts={"c": 3},
                inner=Scene(name="d"),
                anything=[None],
            ),
        ),
        ('{"names": [], "number": 2}', Plain, Plain(names=[], number=2)),
        ('{"names": ["a"], "number": null}', Plain, Plain(names=["a"])),
        ('{"names": ["a"], "count": 3}', Model, Model(names=["a"], count=3)),
        ("[1, 2]", {"type": "array"}, [1, 2]),
        ('"red"', {"enum": ["red"]}, "red"),
    ],
)
def test_a_right_answer_is_what_was_asked_for(text: str, output: Any, value: Any) -> None:
    """
    Plain values, or instances with their fields made.
    """
    generation = held(text, output)

    assert value == generation.value
    assert generation is required(generation)


@pytest.mark.parametrize(
    ("text", "output", "fault"),
    [
        ("a dog", "json", ("$", "is no JSON: got Expecting value")),
        ("", "json", ("$", "is no JSON")),
        ('{"x": 1', "json", ("$", "is no whole JSON")),
        ('Look: [{"x": 1}, {"x"', "json", ("$", "is no whole JSON")),
        ('{"x": 1} or {"x": 2}', "json", ("$", "got 2 objects or lists, expected one")),
        ("[1]", "json", ("$", "got list, expected an object")),
        ('{"x": NaN}', "json", ("$", "is no JSON: got NaN")),
        ('{"x": 1, "x": 2}', "json", ("$", "is no JSON: got the key 'x' twice")),
        ('{"x": "1"}', DOT, ("$.x", "'1' is not of type 'integer'")),
        ("{}", Dot, ("$", "'x' is a required property")),
        ('{"x": 1, "z": 2}', Dot, ("$", "Additional properties are not allowed")),
        ('{"name": "a", "colour": "green"}', Scene, ("$.colour", "is not valid under any")),
        ('{"names": [], "count": 12}', Model, ("$.count", "12 is greater than the maximum")),
    ],
)
def test_a_wrong_answer_is_an_error_that_carries_the_text(
    text: str, output: Any, fault: tuple[str, str]
) -> None:
    """
    With the place of what is wrong, and why the answer ended.
    """
    generation = held(text, output)

    with pytest.raises(StructureError, match="m: its answer is not what was asked for") as error:
        required(generation)
    assert (text, "end") == (error.value.text, error.value.stop_reason)
    assert fault[0] == error.value.faults[0][0]
    assert fault[1] in error.value.faults[0][1]
    with pytest.raises(StructureError):
        _ = generation.value
    assert str(error.value) == str(pickle.loads(pickle.dumps(error.value)))


@pytest.mark.parametrize(
    ("reason", "words"),
    [
        (StopReason.LENGTH, "is cut: max_new_tokens were written"),
        (StopReason.REPETITION, "is no answer: the model fell into a loop"),
        (StopReason.CANCELLED, "is cut: it was cancelled"),
    ],
)
def test_a_cut_answer_is_never_passed_off_as_whole(reason: StopReason, words: str) -> None:
    """
    Not even where what was written so far happens to be JSON that fits.
    """
    generation = held('{"x": 1}', DOT, reason)

    assert generation.structure_error is not None
    assert words in str(generation.structure_error)
    assert reason.value == generation.structure_error.stop_reason


def test_a_cancelled_answer_is_returned_as_it_is() -> None:
    """
    Who cancels wants no error, and reads no value.
    """
    generation = held("{", "json", StopReason.CANCELLED)

    assert generation is required(generation)
    with pytest.raises(StructureError, match="it was cancelled"):
        _ = generation.value


def test_text_stays_as_it_is() -> None:
    """
    Where nothing else was asked for.
    """
    generation = answer("a dog")

    assert generation is structured(generation, GenerationOptions(), model="m")
    assert generation.value is None


@attrs.frozen
class Even:
    number: int

    def __attrs_post_init__(self) -> None:
        if self.number % 2:
            raise ValueError("odd\x1b" + "x" * 500)


def test_what_a_class_itself_refuses_is_a_fault_too() -> None:
    """
    Its error may be of any kind, and as long as it likes.
    """
    error = held('{"number": 3}', Even).structure_error

    assert error is not None
    assert "Even does not take it (ValueError: odd x" in str(error)
    assert len(str(error)) < 400


def test_a_wrong_answer_is_sent_back_once_with_what_is_wrong() -> None:
    """
    The model sees what it wrote, the faults and the schema; the second answer counts.
    """
    options = GenerationOptions(output=JsonOutput(schema=DOT, repair=True))
    asked: list[Prompt] = []

    def ask(prompt: Prompt) -> Generation:
        asked.append(prompt)
        return structured(answer('{"x": 2}'), options, model="m")

    wrong = structured(answer('{"x": "two"}'), options, model="m")
    generation = mended(wrong, Prompt(text="Where?", system="Be exact."), options, ask)

    assert {"x": 2} == generation.value
    (prompt,) = asked
    assert ("Be exact.", True) == (prompt.system, prompt.text.startswith("Where?\n"))
    for words in ('{"x": "two"}', "- $.x: 'two' is not of type 'integer'", '"required"'):
        assert words in prompt.text


@pytest.mark.parametrize(
    ("text", "reason", "is_asked"),
    [
        ("{", StopReason.END, True),
        ("{", StopReason.LENGTH, True),
        ("{", StopReason.CANCELLED, False),
        ("{", StopReason.REPETITION, False),
        ('{"x": 1}', StopReason.END, False),
    ],
)
def test_only_a_wrong_answer_that_ended_by_itself_or_for_length_is_sent_back(
    text: str, reason: StopReason, *, is_asked: bool
) -> None:
    """
    And only once: the second answer may be wrong again.
    """
    options = GenerationOptions(output=JsonOutput(repair=True))
    asked: list[Prompt] = []

    def ask(prompt: Prompt) -> Generation:
        asked.append(prompt)
        return structured(answer("no"), options, model="m")

    mended(structured(answer(text, reason), options, model="m"), Prompt(text="?"), options, ask)

    assert is_asked is bool(asked)


def test_nothing_is_sent_back_unless_that_is_wanted() -> None:
    """
    A second request costs time and money.
    """
    options = GenerationOptions(output="json")
    wrong = structured(answer("no"), options, model="m")

    def ask(_: Prompt) -> Generation:
        raise AssertionError("asked again")

    assert wrong is mended(wrong, Prompt(text="?"), options, ask)


def test_a_very_long_wrong_answer_is_sent_back_in_part() -> None:
    """
    A prompt has a bound, too.
    """
    options = GenerationOptions(output=JsonOutput(repair=True))
    wrong = structured(answer("x" * 100_000), options, model="m")

    assert len(repair_prompt(Prompt(text="?"), wrong, options).text) < 20_000


def test_the_instruction_says_the_schema() -> None:
    """
    For a model that nothing keeps to it.
    """
    assert "Answer with one JSON object, and nothing else." == instruction(ANY)
    assert write_json(DOT, indent=None) in instruction(JsonOutput(schema=DOT))


BOMB = {
    "$defs": {
        "a": {
            "anyOf": [
                {"properties": {"n": {"$ref": "#/$defs/a"}, "z": {"const": i}}, "required": ["z"]}
                for i in range(4)
            ]
        }
    },
    "$ref": "#/$defs/a",
}


def test_a_schema_whose_work_doubles_with_every_level_ends() -> None:
    """
    Each level asks each of four branches, which ask the next level again.
    """
    value: dict[str, Any] = {}
    for _ in range(25):
        value = {"n": value}

    with pytest.raises(ContractError, match="max_validation_steps: got 131073"):
        read_answer(write_json(value), JsonOutput(schema=BOMB))


@pytest.mark.parametrize(
    ("schema", "value", "limit"),
    [
        ({"items": {"pattern": "a*b*c*d*e"}}, ["a" * 200], "max_pattern_steps"),
        ({"pattern": "a?" * 60}, "a" * 60, "max_pattern_steps"),
        ({"patternProperties": {"a*b*c*d*e": {}}}, {"a" * 200: 1}, "max_pattern_steps"),
        ({"uniqueItems": True}, [[i] for i in range(3000)], "max_validation_steps"),
        ({"items": {"enum": list(range(4000))}}, list(range(200)), "max_validation_steps"),
    ],
)
def test_work_that_somebody_elses_schema_asks_for_is_bounded(
    schema: dict[str, Any], value: Any, limit: str
) -> None:
    """
    Patterns, lists without repeats, long lists of choices.
    """
    with pytest.raises(ContractError, match=f"{limit}: got .*, limit is"):
        read_answer(write_json(value), JsonOutput(schema=schema))


def test_references_longer_than_a_stack_are_an_error() -> None:
    """
    One after the other, each to the next.
    """
    count = 1500
    schema = {
        "$ref": "#/$defs/0",
        "$defs": {str(i): {"$ref": f"#/$defs/{i + 1}"} for i in range(count)},
    }
    schema["$defs"][str(count)] = True  # type: ignore[index]

    with pytest.raises(ContractError, match="refers to itself more often than can be followed"):
        read_answer("{}", JsonOutput(schema=schema))


def test_answers_with_values_are_hashed_and_compared_as_before() -> None:
    """
    A dict is a value, and so is what is wrong with an answer.
    """
    one, other = held('{"x": 1}', DOT), held('{"x": 1}', DOT)

    assert (one, hash(one)) == (other, hash(other))
    assert held("{", DOT) == held("{", DOT)
