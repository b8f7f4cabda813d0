"""Tests of `vlmcore.lab.scoring.normalising`."""

from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vlmcore.lab.scoring.normalising import Answer, Level, answer_of, normalised, tokens_of

TEXTS = st.text() | st.text(alphabet="aAé e\u0301\u200bßİ1\uff11½.-+$'\u2019\ufb01\u00ad\u0345 \n")


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("blue", "blue"),
        ("<think>a red bird? no</think>blue", "blue"),
        ("<think>red", ""),
        ("blue <think>or red?", "blue"),
        ("a red bird? no</think>\n\nblue", "blue"),
        ("<THINK>red</Think>blue", "blue"),
        ("<thinking>red</thinking>blue", "blue"),
        ("◁think▷red◁/think▷blue", "blue"),
        ("<think>a</think>light <think>b</think>blue", "light blue"),
        ("<think>a<think>b</think>c</think>blue", "blue"),
        ("<think>a </thinking> b</think>blue", "blue"),
        ("<think></think>", ""),
        ("</think>", ""),
    ],
)
def test_reasoning_is_left_out_be_it_closed_or_not(text: str, answer: str) -> None:
    """
    A keyword in it is no answer. What came stays in the sample as it came.
    """
    found = answer_of(text)

    assert (answer, text != answer) == (found.text, found.had_reasoning)


def test_a_text_without_tags_stays_as_it_is() -> None:
    """
    Space and all: the level says what is forgiven.
    """
    assert Answer(" a < b \n", had_reasoning=False) == answer_of(" a < b \n")


@given(text=st.text(alphabet="<>/think a"))
def test_no_answer_has_a_whole_tag_left_in_it(text: str) -> None:
    """
    However they are nested, cut or repeated.
    """
    answer = answer_of(f"{text}<think>{text}</think>{text}").text

    assert "<think>" not in answer
    assert "</think>" not in answer


def test_a_text_of_nothing_but_tags_is_read_in_time_that_grows_with_its_length() -> None:
    """
    A model that has fallen into a loop writes such.
    """
    assert "" == answer_of("<think>" * 200_000).text
    assert "" == answer_of("</think>" * 200_000).text


@given(text=TEXTS)
def test_what_is_normalised_is_normal(text: str) -> None:
    """
    Once is as good as twice, at every level.
    """
    for level in Level:
        once = normalised(text, level)
        assert once == normalised(once, level)


@given(text=TEXTS)
def test_each_level_forgives_what_the_one_before_it_does(text: str) -> None:
    """
    So that what is the same at one is the same at all after it.
    """
    for before, after in combinations(Level, 2):
        assert normalised(text, after) == normalised(normalised(text, before), after)


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("C++, C# and .5", ["c++", "c#", "and", ".5"]),
        ("-5 -.5 --5 -dog", ["-5", "-.5", "-5", "dog"]),
        ("\u22125 \u20105", ["-5", "-5"]),
        ("$5.00 €5 -$5", ["$5.00", "€5", "-$5"]),
        ("1,000 12:30 1/2", ["1,000", "12:30", "1/2"]),
        ("one,two a:b a/b", ["one", "two", "a", "b", "a", "b"]),
        ("don\u2019t 'quote' dogs'", ["don't", "quote", "dogs"]),
        ("# Head\n- item\n* item", ["head", "item", "item"]),
        ("5 - 3 dog - cat", ["5", "-", "3", "dog", "cat"]),
        ("x<y a=b", ["x", "<", "y", "a", "=", "b"]),
        ("well-known e.g. U.S.A.", ["well-known", "e.g", "u.s.a"]),
        ("a_b `c` x^2", ["a", "b", "c", "x", "^", "2"]),
        ("d\u200bo\u00adg", ["dog"]),
        ("犬です", ["犬", "で", "す"]),
        ("...", []),
        ("", []),
    ],
)
def test_signs_stay_in_the_token_that_they_belong_to(text: str, tokens: list[str]) -> None:
    """
    The rest of punctuation is space.
    """
    assert tokens == list(tokens_of(text))


@given(text=TEXTS)
def test_tokens_are_not_empty_and_have_no_space(text: str) -> None:
    """
    Whatever the text.
    """
    assert all(token and not token.isspace() for token in tokens_of(text))
