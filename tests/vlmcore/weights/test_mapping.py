"""Files mapped privately, and their pages fetched ahead."""

from __future__ import annotations

import errno
import os
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vlmcore.errors import WeightsError
from vlmcore.weights import _mapping
from vlmcore.weights._mapping import _parts, fetch_pages, map_file
from vlmcore.weights.budget import ReadBudget
from vlmcore.weights.dtypes import DType
from vlmcore.weights.index import TensorEntry
from vlmcore.weights.opening import open_files
from weight_cases import write_safetensors

PAGE = 0x1000
BUDGET = ReadBudget(readers=2, chunk_bytes=4 * PAGE)


class SomeCached:
    """Says that some chunks of a file are in memory."""

    def __init__(self, cached: frozenset[int]) -> None:
        self.cached = cached

    def holds(self, start: int, _stop: int) -> bool:
        """Look the chunk up."""
        return start // BUDGET.chunk_bytes in self.cached


@given(
    st.lists(st.tuples(st.integers(0, 90_000), st.integers(0, 90_000)), max_size=12),
    st.frozensets(st.integers(0, 70)),
)
def test_parts_are_all_pages_once_and_in_order(
    shapes: list[tuple[int, int]], cached: frozenset[int]
) -> None:
    """
    What is on disk comes in chunks, what is in memory in runs of a few, and nothing is left out.
    """
    entries, start = [], 0
    for i, (gap, size) in enumerate(shapes):
        start += gap
        place = {"file": 0, "start": start, "stop": start + size}
        entries.append(TensorEntry(name=f"t{i}", dtype=DType.UINT8, shape=(size,), **place))
        start += size
    parts = list(_parts(entries, [SomeCached(cached)], BUDGET))  # type: ignore[list-item]
    assert all(a.stop <= b.start for a, b in pairwise(parts))
    for part in parts:
        most = 8 if part.is_cached else 1
        assert 0 < part.stop - part.start <= most * BUDGET.chunk_bytes
    for entry in entries:
        covered = sum(
            max(0, min(entry.stop, part.stop) - max(entry.start, part.start)) for part in parts
        )
        assert entry.nbytes == covered


def test_a_mapping_outlives_its_descriptor_and_keeps_its_changes(tmp_path: Path) -> None:
    """
    What is written stays in this process, on the pages that it was written to.
    """
    path = tmp_path / "file"
    path.write_bytes(bytes(range(256)) * 32)
    fd = os.open(path, os.O_RDONLY)
    mapped, other = map_file(fd, 8192), map_file(fd, 8192)
    os.close(fd)
    mapped[5] = 77
    assert (77, 5) == (mapped[5], other[5])
    assert bytes(range(256)) * 32 == path.read_bytes()
    assert 0 == map_file(-1, 0).size


def test_a_page_that_the_disk_does_not_give_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    A bad sector is told with the file that lies on it, while the file is as it was.
    """
    path = write_safetensors(tmp_path / "some.safetensors", {"a": np.ones(99, np.uint8)})

    def fail(*_: Any) -> bool:
        raise OSError(errno.EIO, "bad sector")

    monkeypatch.setattr(_mapping, "populate", fail)
    with open_files(path) as files:
        maps = [map_file(files.fd(0), files.index.files[0].size_bytes)]
        with pytest.raises(WeightsError, match="a page cannot be read") as error:
            fetch_pages(files, maps, files.index.entries, BUDGET)
    assert str(path) == error.value.path
