"""Memory of our own, in large pages where there are some."""

from __future__ import annotations

import gc
from pathlib import Path

import pytest

from vlmcore.weights import _arena
from vlmcore.weights._arena import allocate

MIB = 1 << 20
SMAPS = Path("/proc/self/smaps")
has_large_pages = pytest.mark.skipif(
    not Path("/sys/kernel/mm/transparent_hugepage").exists(), reason="has none"
)


def mapping_of(address: int) -> list[str]:
    """Return what Linux says of the mapping that an address lies in."""
    said: list[str] = []
    for line in SMAPS.read_text(encoding="utf-8").splitlines():
        first = line.split()[0]
        if "-" in first and not first.endswith(":"):
            low, high = (int(each, 16) for each in first.split("-"))
            said = []
            is_it = low <= address < high
        said.append(line)
        if line.startswith("VmFlags") and is_it:
            return said
    return []


@has_large_pages
@pytest.mark.parametrize("large_pages", [True, False])
def test_large_pages_are_asked_for_where_they_are_wanted(large_pages: bool) -> None:  # noqa: FBT001
    """
    The system notes it with the mapping; whether there are any is for it to say.
    """
    memory = allocate(3 * MIB, large_pages=large_pages)
    flags = mapping_of(memory.ctypes.data)[-1].split()
    assert large_pages == ("hg" in flags)
    assert 0 == memory.ctypes.data % (2 * MIB)
    assert 3 * MIB == memory.size
    assert memory.flags.writeable


@has_large_pages
def test_nothing_is_taken_before_it_is_written_to_and_all_goes_back() -> None:
    """
    What is allocated and never filled costs nothing.
    """
    memory = allocate(64 * MIB)
    address = memory.ctypes.data
    resident = next(line for line in mapping_of(address) if line.startswith("Rss:"))
    assert 0 == int(resident.split()[1])
    memory[...] = 1
    part = memory[5:9]
    del memory
    assert mapping_of(address)
    del part
    gc.collect()
    assert not mapping_of(address)


def test_memory_that_the_host_does_not_grant_is_no_error_of_the_system() -> None:
    """
    As everywhere in Python.
    """
    with pytest.raises(MemoryError, match="the host did not grant"):
        allocate(1 << 60)


def test_a_host_without_large_pages_has_small_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    """
    Nobody is told, as nothing is lost.
    """
    monkeypatch.delattr(_arena.mmap, "MADV_HUGEPAGE", raising=False)
    assert 5 == allocate(5).size
