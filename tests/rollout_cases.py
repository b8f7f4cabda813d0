"""Small chunks, and strategies of plain ones, for tests of what happens with chunks over time."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from safety_cases import chunk
from vlmcore.contracts.actions import ActionChunk
from vlmcore.contracts.embodiment import ActionSpace
from vlmcore.testing.contract_strategies import action_dims


def column(*numbers: float, name: str = "x") -> ActionChunk:
    """Make a chunk of one dimension."""
    return chunk([[number] for number in numbers], name)


@st.composite
def spaces(draw: st.DrawFn) -> ActionSpace:
    """Draw a space of dimensions of every kind; their names are no matter here."""
    count = draw(st.integers(1, 3))
    dims = tuple(draw(action_dims(name=f"d{i}")) for i in range(count))
    return ActionSpace(dims=dims, rate_hz=20)


@st.composite
def finite_chunks(draw: st.DrawFn, dims: ActionSpace) -> ActionChunk:
    """Draw a chunk of finite numbers, near the bounds or of any size."""
    steps = draw(st.integers(1, 6))
    near = st.floats(-1e3, 1e3)
    elements = draw(st.sampled_from((near, st.floats(allow_nan=False, allow_infinity=False))))
    values = draw(hnp.arrays("float64", (steps, len(dims.dims)), elements=elements))
    return ActionChunk(values=values, names=dims.names, source="drawn", observed_at_s=0)
