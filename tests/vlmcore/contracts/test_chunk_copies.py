"""Tests of `vlmcore.contracts._chunk_copies`: what is checked of a chunk that is like another."""

from __future__ import annotations

import copy
import math
from typing import Any

import attrs
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vlmcore.contracts._chunk_copies import chunk_like
from vlmcore.contracts.actions import ActionChunk, Stream
from vlmcore.errors import ContractError

CHUNK = ActionChunk(
    values=[[0.0, 1.0], [2.0, 3.0]],
    names=("x", "y"),
    source="test",
    observed_at_s=1.0,
    streams=(Stream(name="arm", start=0, end=2),),
    metadata={"info": {"took_ms": 3}},
)


@given(
    values=st.lists(st.lists(st.floats(), min_size=2, max_size=2), min_size=2, max_size=2),
    observed_at_s=st.one_of(st.floats(allow_nan=False, allow_infinity=False), st.integers(0, 9)),
)
def test_it_is_the_chunk_that_is_made_with_the_same_fields(
    values: Any, observed_at_s: float
) -> None:
    """
    Nothing tells it from one that was checked as a whole: not its fields, its hash or a copy.
    """
    expected = attrs.evolve(CHUNK, values=values, observed_at_s=observed_at_s)

    made = chunk_like(CHUNK, values, observed_at_s=observed_at_s)

    assert expected == made
    assert repr(expected) == repr(made)
    assert expected == copy.deepcopy(made)
    assert float is type(made.observed_at_s)


def test_its_numbers_are_a_copy_that_cannot_be_written_to() -> None:
    """
    What the caller does with the array afterwards does not move a robot.
    """
    values = np.ones((2, 2), np.float32)

    made = chunk_like(CHUNK, values, observed_at_s=2.0)
    values[:] = 9.0

    assert [[1.0, 1.0], [1.0, 1.0]] == made.values.tolist()
    assert np.float64 == made.values.dtype
    with pytest.raises(ValueError, match="WRITEABLE"):
        made.values.flags.writeable = True


@pytest.mark.parametrize(
    "values", [[[0.0, 1.0]], [[0.0], [1.0]], [0.0, 1.0], "no", [[True, 0]] * 2]
)
def test_numbers_of_another_shape_or_kind_are_refused(values: Any) -> None:
    """
    Names and streams fit the shape that they were checked with, and no other.
    """
    with pytest.raises(ContractError, match="values"):
        chunk_like(CHUNK, values, observed_at_s=2.0)


@pytest.mark.parametrize("observed_at_s", [math.nan, math.inf, None, "1", True])
def test_a_time_that_is_none_is_refused(observed_at_s: Any) -> None:
    """
    A chunk without a time would never be too old.
    """
    with pytest.raises(ContractError, match="observed_at_s"):
        chunk_like(CHUNK, CHUNK.values, observed_at_s=observed_at_s)
