"""Tests of `vlmcore.jobs.window`."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from vlmcore.jobs.window import Window


def fill(window: Window) -> list[int]:
    return [window.send() for _ in range(window.allowed - window.in_flight)]


def test_a_window_is_full_at_first() -> None:
    """
    A server that keeps up is never held back.
    """
    window = Window(5)
    assert 5 == len(fill(window))
    assert not window.has_room


def test_calls_that_were_sent_together_and_turned_away_halve_it_once() -> None:
    """
    They all met the same queue: 64 refusals are one piece of news.
    """
    window = Window(64)
    for ticket in fill(window):
        window.came_back(ticket, was_turned_away=True)
    assert 32 == window.allowed


def test_a_call_that_was_sent_after_a_refusal_halves_it_again() -> None:
    """
    The server has seen the smaller window, and it was too large still.
    """
    window = Window(64)
    for _ in range(3):
        window.came_back(window.send(), was_turned_away=True)
    assert 8 == window.allowed


def test_a_window_grows_by_one_for_each_window_of_answers() -> None:
    """
    As TCP does.
    """
    window = Window(64)
    window.came_back(window.send(), was_turned_away=True)
    sizes = []
    for _ in range(4):
        for ticket in fill(window):
            window.came_back(ticket, was_turned_away=False)
        sizes.append(window.allowed)
    assert [32, 33, 34, 35] == sizes


def test_a_window_is_never_shut_and_opens_again() -> None:
    """
    However often a server refuses, it is asked one thing at a time.
    """
    window = Window(4)
    for _ in range(20):
        window.came_back(window.send(), was_turned_away=True)
    assert (1, True) == (window.allowed, window.has_room)
    for _ in range(20):
        window.came_back(window.send(), was_turned_away=False)
    assert 4 == window.allowed


@given(st.integers(1, 100), st.lists(st.tuples(st.booleans(), st.booleans()), max_size=200))
def test_a_window_keeps_within_its_bounds(most: int, steps: list[tuple[bool, bool]]) -> None:
    """
    Whatever comes back, in whatever order: from 1 to what was allowed at first.
    """
    window, out = Window(most), []
    for sends, was_turned_away in steps:
        if sends and window.has_room:
            out.append(window.send())
        elif out:
            window.came_back(out.pop(len(out) // 2), was_turned_away=was_turned_away)
        assert len(out) == window.in_flight <= most
        assert 1 <= window.allowed <= most
