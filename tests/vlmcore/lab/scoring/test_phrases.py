"""Tests of `vlmcore.lab.scoring.phrases`."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vlmcore.lab.scoring.phrases import Mentions, Passage, words_of
from vlmcore.lab.scoring.scores import Seen

WORDS = st.sampled_from(["no", "dog", "a", "not", "is", "but", "there", "cat", "isn't"])


def mentions(text: str, phrase: str, *, window: int = 5, plurals: bool = False) -> Mentions:
    """Look for a phrase in a text."""
    passage = Passage(Seen(text, ()), window=window)
    return passage.mentions(words_of(phrase), plurals=plurals)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("high-five", ("high", "five")),
        ("The dog's tail.", ("the", "dog", "tail")),
        ("end.Next", ("end", "next")),
        ("3.5-litre", ("3.5-litre",)),
        ("isn't", ("isn't",)),
    ],
)
def test_words_are_what_phrases_are_made_of(text: str, words: tuple[str, ...]) -> None:
    """
    A hyphen or a point between letters is a boundary; one at a number is not.
    """
    assert words == words_of(text)


def test_each_mention_is_counted_and_each_that_is_denied() -> None:
    """
    One that is not denied is enough.
    """
    found = mentions("There is no dog here. A dog sleeps there, a dog.", "dog")

    assert Mentions(count=3, negated=1) == found
    assert found.affirmed
    assert not Mentions(count=1, negated=1).affirmed
    assert not Mentions(count=0, negated=0).affirmed


def test_phrases_are_found_across_lines_and_overlap() -> None:
    """
    Models break lines where they like.
    """
    assert 1 == mentions("a golden\nretriever", "golden retriever").count
    assert 2 == mentions("ha ha ha", "ha ha").count


def test_the_window_is_a_number_of_words() -> None:
    """
    The word that negates is one of them.
    """
    assert 1 == mentions("not big black hairy dog", "dog", window=4).negated
    assert 0 == mentions("not big black hairy dog", "dog", window=3).negated
    assert 0 == mentions("The dog is not visible", "dog", window=0).negated


def test_the_plural_is_that_of_the_last_word() -> None:
    """
    Two city bus lines have city buses, not cities bus.
    """
    assert 1 == mentions("city buses", "city bus", plurals=True).count
    assert 0 == mentions("cities bus", "city bus", plurals=True).count
    assert 0 == mentions("dog", "dogs", plurals=True).count


@given(words=st.lists(WORDS, max_size=12), window=st.integers(0, 6))
def test_a_larger_window_denies_no_less(words: list[str], window: int) -> None:
    """
    And every mention is counted whatever the window.
    """
    text = " ".join(words)
    smaller, larger = (mentions(text, "dog", window=size) for size in (window, window + 1))

    assert words.count("dog") == smaller.count == larger.count
    assert 0 <= smaller.negated <= larger.negated <= larger.count


@given(text=st.text(), phrase=st.text())
def test_any_text_is_looked_through(text: str, phrase: str) -> None:
    """
    Also what is no language.
    """
    if words_of(phrase):
        found = mentions(text, phrase, plurals=True)
        assert 0 <= found.negated <= found.count


@given(before=st.lists(WORDS, max_size=5), after=st.lists(WORDS, max_size=5))
def test_a_phrase_that_stands_in_a_text_is_found(before: list[str], after: list[str]) -> None:
    """
    Wherever it stands.
    """
    assert 1 == mentions(" ".join([*before, "golden retriever", *after]), "golden retriever").count


def test_a_long_answer_is_looked_through_in_time_that_grows_with_its_length() -> None:
    """
    Repeated denials, line breaks and phrases of many words among them.
    """
    assert 50_000 == mentions("no dog " * 50_000, "dog").negated
    assert 0 == mentions("\n" * 200_000, "dog").count
    assert 19_985 == mentions("a " * 20_000, "a " * 16).count
