"""How much memory reading may take besides the weights."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vlmcore.errors import ContractError
from vlmcore.weights import budget as budget_module
from vlmcore.weights.budget import ReadBudget

MIB = 1 << 20


def test_staging_is_256_mib_where_the_host_has_plenty() -> None:
    """
    The default of the facts: 256 MiB for what is on its way, unless told otherwise.
    """
    budget = ReadBudget.for_host(free_bytes=64 << 30)
    assert (256 * MIB, 8, 4 * MIB) == (budget.staging_bytes, budget.readers, budget.chunk_bytes)
    assert () == budget.steps_down


@pytest.mark.parametrize(
    ("free_mib", "expected"),
    [(2048, (256, 8, 4)), (1024, (128, 8, 4)), (128, (16, 4, 4)), (16, (2, 1, 2))],
)
def test_a_small_host_has_less_staging(free_mib: int, expected: tuple[int, int, int]) -> None:
    """
    An eighth of what is free: fewer readers first, smaller parts where that is not enough.
    """
    budget = ReadBudget.for_host(free_bytes=free_mib * MIB)
    found = (budget.staging_bytes // MIB, budget.readers, budget.chunk_bytes // MIB)
    assert expected == found
    assert (free_mib < 2048) == bool(budget.steps_down)


@given(
    st.integers(0, 1 << 40), st.integers(1, 1 << 34), st.integers(1, 256), st.integers(1, 1 << 28)
)
def test_any_host_and_any_wish_make_a_budget(
    free: int, staging: int, readers: int, chunk: int
) -> None:
    """
    What is asked for is an upper bound, but for one page, and what cannot be had is told.
    """
    budget = ReadBudget.for_host(
        free_bytes=free, staging_bytes=staging, readers=readers, chunk_bytes=chunk
    )
    assert budget.readers * budget.chunk_bytes <= budget.staging_bytes <= max(staging, 0x1000)
    assert budget.readers <= readers
    assert budget.chunk_bytes <= max(chunk, 0x1000)
    assert budget.staging_bytes <= max(free // 8, 0x1000)


def test_the_host_is_asked_where_nothing_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """
    The limits of containers count as much as the memory of the machine.
    """
    monkeypatch.setattr(budget_module, "free_host_bytes", lambda: 80 * MIB)
    assert 10 * MIB == ReadBudget.for_host().staging_bytes
    monkeypatch.setattr(budget_module, "free_host_bytes", lambda: None)
    assert 256 * MIB == ReadBudget.for_host().staging_bytes


@pytest.mark.parametrize(
    ("wish", "problem"),
    [
        ({"readers": 0}, "readers: got 0, expected a whole number of at least 1"),
        ({"readers": 257}, "readers: got 257, expected at most 256"),
        ({"chunk_bytes": 5000}, "chunk_bytes: got 5000, expected a multiple of 4096"),
        ({"cached_readers": 1.5}, "cached_readers: got 1.5, expected a whole number of at least 1"),
        ({"direct": "no"}, "direct: got 'no', expected True, False or None"),
        (
            {"staging_bytes": 4 * MIB},
            "staging_bytes: got 4194304, expected at least readers times chunk_bytes, 33554432",
        ),
    ],
)
def test_a_budget_that_cannot_be_is_refused(wish: dict[str, Any], problem: str) -> None:
    """
    A value of no sense is told with its name, and not found while reading.
    """
    with pytest.raises(ContractError) as error:
        ReadBudget(**wish)
    assert problem == str(error.value)


def test_readers_for_which_there_is_no_room_are_told() -> None:
    """
    What was asked for by argument is not made less in silence.
    """
    budget = ReadBudget.for_host(readers=1000, free_bytes=1 << 40)
    assert 64 == budget.readers
    assert ("readers: 1000 asked for, 64 taken: there is no room for more",) == budget.steps_down
