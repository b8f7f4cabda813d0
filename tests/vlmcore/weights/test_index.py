"""Tests of `vlmcore.weights.index`."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vlmcore.errors import ContractError
from vlmcore.weights.dtypes import DType
from vlmcore.weights.index import TensorEntry, WeightFile, WeightFormat, WeightIndex


def entry(name: str = "w", start: int = 0, **changes: Any) -> TensorEntry:
    """Make an entry of six float32."""
    values = {"dtype": DType.FLOAT32, "shape": (2, 3), "file": 0, "stop": start + 24}
    return TensorEntry(**({"name": name, "start": start} | values | changes))


def index(*entries: TensorEntry, size: int = 1000, **more: Any) -> WeightIndex:
    """Make an index of one file."""
    files = (WeightFile(name="m", size_bytes=size),)
    return WeightIndex(format=WeightFormat.SAFETENSORS, files=files, entries=entries, **more)


def test_tensors_are_found_by_name_and_listed_by_place() -> None:
    """
    Whatever order they came in.
    """
    found = index(entry("b", 24), entry("a", 100), entry("c", 0))
    assert ["c", "b", "a"] == list(found)
    assert (3, 72, 24) == (len(found), found.payload_bytes, found["b"].start)
    assert "d" not in found
    assert found.get("d") is None


@pytest.mark.parametrize("change", [pickle.dumps, copy.copy, copy.deepcopy])
def test_an_index_can_be_copied_and_sent_to_other_processes(change: Any) -> None:
    """
    It is the same there, and checked again.
    """
    found = index(entry(), metadata={"format": "pt"}, aliases={"tied": "w"})
    other = change(found)
    other = pickle.loads(other) if isinstance(other, bytes) else other
    assert found == other
    assert {"tied": "w"} == dict(other.aliases)


@pytest.mark.parametrize(
    "wrong",
    [
        {"name": ""},
        {"name": "a/b"},
        {"name": "a\\b"},
        {"name": "a\n"},
        {"name": "a" * 1025},
        {"name": 1},
        {"dtype": "float32"},
        {"shape": (2.0, 3)},
        {"shape": (-2, -3)},
        {"shape": (True, 6)},
        {"shape": 6},
        {"shape": "6"},
        {"shape": (1 << 70, 0)},
        {"shape": (2, 4)},
        {"start": -1, "stop": 23},
        {"start": 0.0},
        {"start": 1 << 63, "stop": (1 << 63) + 24},
        {"stop": 25},
        {"stop": 10**5000},
        {"file": -1},
        {"file": None},
    ],
    ids=lambda wrong: next(iter(wrong)),
)
def test_an_entry_that_contradicts_itself_is_refused(wrong: dict[str, Any]) -> None:
    """
    Names, types, shapes, ranges: the length must be that of the shape.
    """
    with pytest.raises(ContractError):
        entry(**wrong)


def test_lists_of_lengths_become_tuples() -> None:
    """
    As they come from JSON.
    """
    assert (2, 3) == entry(shape=[2, 3]).shape


@pytest.mark.parametrize(
    ("entries", "match"),
    [
        ([entry("a"), entry("a", 24)], "'a' twice"),
        ([entry("a"), entry("b")], "belong to 'a'"),
        ([entry("a"), entry("b", 23)], "belong to 'a'"),
        ([entry("a", 977)], "the size of its file"),
        ([entry("a", file=1)], "expected one of 1"),
        ([1], "TensorEntry"),
        (1, "TensorEntry"),
    ],
)
def test_an_index_that_its_files_cannot_hold_is_refused(entries: Any, match: str) -> None:
    """
    Overlaps, names twice, and what is behind the end.
    """
    with pytest.raises(ContractError, match=match):
        WeightIndex(
            format=WeightFormat.SAFETENSORS,
            files=(WeightFile(name="m", size_bytes=1000),),
            entries=entries,
        )


@pytest.mark.parametrize("aliases", [{"w": "w"}, {"x": "y"}, {1: "w"}, {"x": 1}, []])
def test_an_alias_is_a_new_name_for_a_tensor_that_is_there(aliases: Any) -> None:
    """
    Nothing else.
    """
    with pytest.raises(ContractError):
        index(entry(), aliases=aliases)


def test_tensors_of_no_numbers_take_no_room() -> None:
    """
    They may lie where another begins.
    """
    nothing = entry("n", 24, shape=(0, 3), stop=24)
    assert 2 == len(index(entry("a", 24), nothing))


@given(st.permutations([0, 3, 1 << 31, 1 << 31, 1 << 40, 1 << 62]), st.integers(1, 6))
def test_a_shape_of_no_numbers_is_let_pass_if_an_array_can_have_it(
    lengths: list[int], axes: int
) -> None:
    """
    NumPy is asked: it counts how far apart the numbers would be, though there are none.
    """
    shape = (0, *lengths[:axes])
    try:
        expected = np.zeros(0, np.float32).reshape(shape).shape
    except ValueError:
        with pytest.raises(ContractError, match="axes that an array can have"):
            entry(shape=shape, stop=0)
    else:
        assert expected == entry(shape=shape, stop=0).shape


def test_whether_views_are_possible_is_known() -> None:
    """
    Where numbers begin at a multiple of their size.
    """
    assert entry(start=8).is_aligned
    assert not entry(start=6).is_aligned


@given(st.lists(st.tuples(st.integers(0, 40), st.integers(0, 5)), max_size=6))
def test_ranges_are_let_pass_if_no_byte_is_in_two(ranges: list[tuple[int, int]]) -> None:
    """
    As counting each byte says.
    """
    entries = [
        TensorEntry(
            name=f"t{i}", dtype=DType.UINT8, shape=(n,), file=0, start=start, stop=start + n
        )
        for i, (start, n) in enumerate(ranges)
    ]
    taken = [byte for start, n in ranges for byte in range(start, start + n)]
    # One of no bytes inside another belongs to nobody, and is refused as any other that is inside.
    inside = any(a < start < a + n for start, none in ranges if not none for a, n in ranges if n)
    is_good = len(taken) == len(set(taken)) and not inside
    try:
        index(*entries)
    except ContractError:
        assert not is_good
    else:
        assert is_good
