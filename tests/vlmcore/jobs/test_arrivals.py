"""Tests of `vlmcore.jobs._arrivals`."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from vlmcore.jobs._arrivals import arriving


def test_what_comes_is_given_in_order() -> None:
    """
    To its end.
    """
    values = (number for number in range(50))
    given = arriving(values, meanwhile=lambda: None, is_over=lambda: False)
    assert list(range(50)) == list(given)


def test_no_more_than_one_is_taken_ahead() -> None:
    """
    Who gives them is held back by who takes them.
    """
    taken: list[int] = []
    begun = threading.Event()

    def values() -> Iterator[int]:
        for number in range(50):
            taken.append(number)
            begun.set()
            yield number

    given = arriving(values(), meanwhile=lambda: None, is_over=lambda: False)
    assert 0 == next(given)
    given.close()
    assert begun.is_set()
    assert len(taken) <= 4


def test_other_things_are_done_while_nothing_comes() -> None:
    """
    And what comes then is given.
    """
    let_go = threading.Event()

    def values() -> Iterator[int]:
        assert let_go.wait(30)
        yield 1

    assert [1] == list(arriving(values(), meanwhile=let_go.set, is_over=lambda: False))


def test_an_error_is_raised_where_the_values_are_taken() -> None:
    """
    After what came before it.
    """

    def values() -> Iterator[int]:
        yield 1
        raise KeyError("gone")

    given = arriving(values(), meanwhile=lambda: None, is_over=lambda: False)
    assert 1 == next(given)
    with pytest.raises(KeyError, match="gone"):
        next(given)


def test_it_ends_while_nothing_comes_once_it_is_over() -> None:
    """
    What never comes is not waited for.
    """
    never, is_over = threading.Event(), threading.Event()

    def values() -> Iterator[int]:
        yield 1
        never.wait(30)

    given = arriving(values(), meanwhile=lambda: None, is_over=is_over.is_set)
    assert 1 == next(given)
    is_over.set()
    assert [] == list(given)
    never.set()
