"""Tests of `vlmcore.testing.contract_strategies`: they draw what is hard."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import Phase, find, given, settings

from vlmcore.contracts.embodiment import Reference
from vlmcore.testing.contract_strategies import (
    action_chunks,
    action_dims,
    action_spaces,
    hostile_json,
    hostile_numbers,
    names,
    observations,
)

# What is found first is enough: the smallest one takes long to find.
QUICK = settings(phases=[Phase.generate], max_examples=2000, database=None)

FOUND: list[tuple[Any, Callable[[Any], bool]]] = [
    (action_dims(), lambda dim: dim.reference is Reference.VELOCITY),
    (action_dims(), lambda dim: dim.period is not None and dim.max_rate is not None),
    (action_dims(), lambda dim: dim.is_discrete and dim.max_step is None and dim.max_rate is None),
    (action_dims(), lambda dim: dim.is_discrete and dim.reference.is_change and dim.low < 0),
    (action_spaces(), lambda space: space.is_change.any() and space.is_discrete.any()),
    (hostile_numbers(), math.isnan),
    (hostile_numbers(), math.isinf),
    (hostile_numbers(), lambda number: number == 0 and math.copysign(1, number) < 0),
    (action_chunks(), lambda chunk: len(chunk.streams) > 1),
    (action_chunks(hostile=True), lambda chunk: np.isnan(chunk.values).any()),
    (observations(), lambda seen: len({len(frames) for frames in seen.images.values()}) > 1),
    (names(), lambda name: not name.isascii()),
    (hostile_json(), lambda text: "\ud800" in text),
]


@pytest.mark.parametrize(("strategy", "wanted"), FOUND)
def test_what_breaks_things_is_drawn(strategy: Any, wanted: Callable[[Any], bool]) -> None:
    """
    A strategy that draws only what is easy proves nothing.
    """
    find(strategy, wanted, settings=QUICK)


@given(action_chunks())
def test_chunks_are_finite_unless_hostile_ones_are_asked_for(chunk: Any) -> None:
    """
    So that they can be written.
    """
    assert chunk.is_finite


def test_chunks_are_drawn_for_a_space() -> None:
    """
    With its names.
    """
    space = find(action_spaces(), lambda space: len(space.names) == 2, settings=QUICK)
    assert space.names == find(action_chunks(space=space), lambda _: True, settings=QUICK).names
