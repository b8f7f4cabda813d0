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
from vlmcore.weights._mapping import _chunks, fetch_pages, map_file
from vlmcore.weights.budget import ReadBudget
from vlmcore.weights.dtypes import DType
from vlmcore.weights.index import TensorEntry
from vlmcore.weights.opening import open_files
from weight_cases import write_safetensors

PAGE = 0x1000
BUDGET = ReadBudget(readers=2, chunk_bytes=4 * PAGE)


@given(st.lists(st.tuples(st.integers(0, 90_000), st.integers(0, 90_000)), max_size=12))
def test_parts_are_all_pages_once_and_in_order(shapes: list[tuple[int, int]]) -> None:
    """
    Pages come in chunks of the budget, and nothing is left out.
    """
    entries, start = [], 0
    for i, (gap, size) in enumerate(shapes):
        start += gap
        place = {"file": 0, "start": start, "stop": start + size}
        entries.append(TensorEntry(name=f"t{i}", dtype=DType.UINT8, shape=(size,), **place))
        start += size
    parts = list(_chunks(entries, BUDGET.chunk_bytes))
    assert all(a[2] <= b[1] for a, b in pairwise(parts))
    assert all(0 < stop - start <= BUDGET.chunk_bytes for _, start, stop in parts)
    for entry in entries:
        covered = sum(
            max(0, min(entry.stop, stop) - max(entry.start, start)) for _, start, stop in parts
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


@pytest.mark.skipif(not Path("/sys/kernel/mm/transparent_hugepage").exists(), reason="has none")
def test_large_pages_are_asked_for(tmp_path: Path) -> None:
    """
    The system notes it with the mapping; whether there are any is for its file system to say.
    """
    path = tmp_path / "file"
    path.write_bytes(bytes(8192))
    with path.open("rb") as file:
        mapped = map_file(file.fileno(), 8192)
    said = Path("/proc/self/smaps").read_text(encoding="utf-8").partition(f"{path}\n")[2]
    flags = next(line for line in said.splitlines() if line.startswith("VmFlags"))
    assert "hg" in flags.split()
    assert 8192 == mapped.size


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
