"""The pieces of an answer, however the text arrives."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vlmcore.vlm.answers import AnswerWriter, opens_reasoning

MARKS = ["<think>", "</think>", "<thinking>", "</thinking>", "STOP", "TO", "\n\n"]
PARTS = [*MARKS, "<", "S", "ST", "/", " ", "\n", "word", "é", "🙂", "</thi"]
MODEL_TEXTS = st.lists(st.sampled_from(PARTS), max_size=12).map("".join)


def answered(portions: list[str], **options: object) -> tuple[str, str, str, bool]:
    writer = AnswerWriter(**options)  # type: ignore[arg-type]
    pieces = [writer.write(portion) for portion in portions]
    pieces.append(writer.finish())
    return "".join(pieces), writer.text, writer.reasoning, writer.stopped


def in_portions(text: str, cuts: list[int]) -> list[str]:
    edges = [0, *sorted(cut % (len(text) + 1) for cut in cuts), len(text)]
    return [text[a:b] for a, b in pairwise(edges)]


@given(
    text=MODEL_TEXTS,
    cuts=st.lists(st.integers(0, 200), max_size=8),
    stop=st.sampled_from(
        [(), ("STOP",), ("STOP", "TO"), ("\n\n",), ("word é", "d"), ("<",), ("th",)]
    ),
    in_reasoning=st.booleans(),
)
def test_how_the_text_was_cut_into_portions_makes_no_difference(text, cuts, stop, in_reasoning):
    """An answer is the same whether it came at once, by token, or by network packet."""
    whole = answered([text], stop=stop, in_reasoning=in_reasoning)

    assert whole == answered(in_portions(text, cuts), stop=stop, in_reasoning=in_reasoning)
    assert whole == answered(list(text), stop=stop, in_reasoning=in_reasoning)


@given(text=MODEL_TEXTS, stop=st.sampled_from([(), ("STOP",), ("word",)]))
def test_pieces_join_to_the_text_and_no_stop_text_is_in_it(text, stop):
    """What was shown piece by piece is what `text` says, and ends before any stop text."""
    joined, shown, _, _ = answered(list(text), stop=stop)

    assert joined == shown
    assert not any(mark in shown for mark in stop)
    assert shown == shown.strip()


@pytest.mark.parametrize(
    ("text", "reasoning", "answer"),
    [
        ("<think>one\ntwo</think>\n\nA cat.", "one\ntwo", "A cat."),
        ("\n <think></think>A cat.", "", "A cat."),
        ("◁think▷hm◁/think▷A cat.", "hm", "A cat."),
        ("<thinking>hm</thinking> A cat.", "hm", "A cat."),
        ("<think>it never ends", "it never ends", ""),
        ("A <think>b</think> c", "", "A <think>b</think> c"),
        ("<thin", "", "<thin"),
        ("  A cat. ", "", "A cat."),
        ("", "", ""),
    ],
)
def test_reasoning_is_kept_apart_from_the_answer(text, reasoning, answer):
    """Reasoning comes first and between tags; tags further on are the answer's own text."""
    _, shown, thought, _ = answered([text])

    assert (reasoning, answer) == (thought, shown)


def test_reasoning_that_the_prompt_opened_ends_at_its_closing_tag():
    """Templates of Qwen 3.5 write the opening tag themselves; the model only closes it."""
    _, shown, thought, _ = answered(["a hat?</th", "ink>\nA hat."], in_reasoning=True)

    assert ("a hat?", "A hat.") == (thought, shown)


def test_stop_texts_do_not_end_the_reasoning():
    """A stop text is about the answer; a model that thinks it aloud has not answered yet."""
    _, shown, thought, stopped = answered(["<think>STOP?</think>A cat.STOP no"], stop=("STOP",))

    assert ("STOP?", "A cat.", True) == (thought, shown, stopped)


@pytest.mark.parametrize(("text", "stop", "answer"), [("<t", "<", ""), ("<th", "th", "<")])
def test_a_stop_text_in_what_looked_like_a_tag_ends_the_answer(text, stop, answer):
    """An answer may begin like a tag and still hold a stop text."""
    assert (answer, answer, "", True) == answered(list(text), stop=(stop,))


def test_the_stop_text_that_is_complete_first_ends_the_answer():
    """Of two that overlap, a streaming model has written the shorter one first."""
    assert "a" == answered(["abcd"], stop=("abcd", "bc"))[1]


def test_nothing_that_may_become_a_stop_text_is_shown():
    """A reader must not see the first half of a stop text."""
    writer = AnswerWriter(stop=("###",))

    assert ["A cat.", "", "", " #1"] == [writer.write(p) for p in ("A cat.", " #", "", "1")]


@pytest.mark.parametrize(
    ("prompt", "opens"),
    [("Assistant:<think>\n", True), ("<think>\n\n</think>\n\n", False), ("Assistant:", False)],
)
def test_a_prompt_that_ends_inside_reasoning_is_known(prompt, opens):
    """Thinking switched off is an empty pair of tags, which is closed."""
    assert opens is opens_reasoning(prompt)
