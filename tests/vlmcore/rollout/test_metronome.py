"""Tests of `vlmcore.rollout._metronome`."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from control_cases import Clock
from vlmcore.rollout._metronome import Metronome

PERIOD_S = 0.05


def beats(*busy: float, clock: Clock, sleep: object = None) -> tuple[list[float], list[bool]]:
    """Be busy for so long after each tick; tell when the ticks were, and which were late."""
    metronome = Metronome(PERIOD_S, clock=clock, sleep=sleep or clock.sleep)  # type: ignore[arg-type]
    at_s, late = [], []
    for seconds in (*busy, 0.0):
        late.append(metronome.wait())
        at_s.append(clock())
        clock.now_s += seconds
    return at_s, late


@given(st.lists(st.floats(0, 0.049), max_size=300))
def test_the_beat_does_not_drift(busy: list[float]) -> None:
    """
    However long ticks take within their period: they are counted from the first one.
    """
    at_s, late = beats(*busy, clock=Clock())
    assert [100 + i * PERIOD_S for i in range(len(busy) + 1)] == pytest.approx(at_s, abs=1e-9)
    assert not any(late)


@given(st.lists(st.floats(0, 0.3), min_size=1, max_size=50))
def test_two_ticks_are_never_less_than_a_period_apart(busy: list[float]) -> None:
    """
    A step is a speed where it comes at its rate; a burst would be a faster one.
    """
    at_s, late = beats(*busy, clock=Clock())
    gaps = np.diff(at_s)
    assert gaps.min() >= PERIOD_S - 1e-9
    for each, gap, is_late in zip(busy, gaps, late[1:], strict=True):
        if each > PERIOD_S + 1e-6:
            assert is_late
            assert each == pytest.approx(gap)  # at once, and nothing is made up for


def test_a_tick_that_was_slept_through_is_late() -> None:
    """
    As when a laptop was closed; the beat starts anew from there.
    """
    clock = Clock()
    at_s, late = beats(
        0, 0, 0, clock=clock, sleep=lambda s: clock.sleep(3.0 if clock() < 100.01 else s)
    )
    assert [100, 103, 103.05, 103.1] == pytest.approx(at_s)
    assert [False, True, False, False] == late


def test_a_sleep_that_wakes_early_is_slept_again() -> None:
    """
    As one that a signal interrupts.
    """
    clock = Clock()
    at_s, _ = beats(0, 0, clock=clock, sleep=lambda s: clock.sleep(max(s / 2, 1e-4)))
    assert [100, 100.05, 100.1] == pytest.approx(at_s, abs=2e-4)


@given(st.lists(st.tuples(st.floats(0, 0.15), st.floats(0, 0.04)), min_size=2, max_size=50))
def test_what_is_sent_is_never_less_than_a_period_apart(busy: list[tuple[float, float]]) -> None:
    """
    Wherever in its tick it is ready, and however long is worked after it was sent.
    """
    clock = Clock()
    metronome, sent_at_s = Metronome(PERIOD_S, clock=clock, sleep=clock.sleep), []
    for before, after in busy:
        metronome.wait()
        clock.now_s += before
        metronome.wait_to_send()
        sent_at_s.append(clock())
        clock.now_s += after
    gaps = np.diff(sent_at_s)
    assert gaps.min() >= PERIOD_S - 1e-9
    longest = max(before for before, _ in busy)
    assert gaps.max() <= 2 * PERIOD_S + longest + 1e-9


@given(st.lists(st.floats(0, 0.04), min_size=1, max_size=300))
def test_what_is_sent_does_not_drift(busy: list[float]) -> None:
    """
    It comes as long after its tick as the longest work before it, and no longer.
    """
    clock = Clock()
    metronome = Metronome(PERIOD_S, clock=clock, sleep=clock.sleep)
    for seconds in busy:
        assert not metronome.wait()
        clock.now_s += seconds
        metronome.wait_to_send()
    assert 100 + (len(busy) - 1) * PERIOD_S + max(busy) == pytest.approx(clock(), abs=1e-9)
