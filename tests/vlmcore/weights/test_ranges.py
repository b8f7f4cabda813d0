"""Byte ranges of files, read into memory of the caller."""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from vlmcore.errors import ContractError, WeightsChangedError, WeightsError
from vlmcore.weights import _pages, _sources
from vlmcore.weights._arena import allocate
from vlmcore.weights.budget import ReadBudget
from vlmcore.weights.opening import WeightFiles, open_files
from vlmcore.weights.ranges import FileRange, RangeReader, parts_of
from weight_cases import forget_pages, write_safetensors

SECTOR = 0x1000
SMALL = ReadBudget(readers=3, chunk_bytes=2 * SECTOR)
budgets = pytest.mark.parametrize(
    "budget",
    [ReadBudget(chunk_bytes=8 * SECTOR, direct=direct) for direct in (True, False, None)],
    ids=["direct", "plain", "as it comes"],
)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    numbers = np.random.default_rng(1).integers(0, 255, 70_001, np.uint8)
    path = tmp_path_factory.mktemp("ranges") / "some.safetensors"
    return write_safetensors(path, {"numbers": numbers})


@pytest.fixture
def files(path: Path) -> Iterator[WeightFiles]:
    with open_files(path) as files:
        yield files


def test_ranges_of_any_place_and_alignment_are_read_right(path: Path) -> None:
    """
    Heads, tails, gaps, ends of the file, memory anywhere: the bytes are those of the file.
    """
    data = path.read_bytes()
    places = st.integers(0, len(data))
    gaps = st.sampled_from([0, 1, 7, 100, SECTOR - 1, SECTOR, 3 * SECTOR])

    @settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
    @given(
        st.lists(st.tuples(places, st.integers(0, 5 * SECTOR), gaps), max_size=6),
        st.integers(0, 600),
        st.sampled_from([True, False, None]),
        st.sampled_from(["in memory", "on disk"]),
    )
    def check(wanted: list[tuple[int, int, int]], skew: int, direct: object, pages: str) -> None:
        if pages == "on disk":
            forget_pages(path)
        memory = allocate(200_000)
        ranges, at = [], skew
        for start, length, gap in wanted:
            into = memory[at : at + min(length, len(data) - start)]
            ranges.append(FileRange(file=0, start=start, into=into))
            at += into.size + gap
        budget = ReadBudget(readers=3, chunk_bytes=2 * SECTOR, direct=direct)
        with open_files(path) as files, RangeReader(files, budget) as reader:
            reader.read(ranges)
            total = sum(each.into.size for each in ranges)
            assert total == reader.direct_bytes + reader.plain_bytes
        for each in ranges:
            assert data[each.start : each.stop] == each.into.tobytes()

    check()


@budgets
def test_memory_around_a_range_is_left_alone(
    files: WeightFiles, path: Path, budget: ReadBudget
) -> None:
    """
    Reads of whole sectors do not spill over what was asked for.
    """
    memory = allocate(6 * SECTOR)
    memory[...] = 0xA5
    into = memory[SECTOR + 72 : 4 * SECTOR]
    with RangeReader(files, budget) as reader:
        reader.read([FileRange(file=0, start=72, into=into)])
    assert path.read_bytes()[72 : 72 + into.size] == into.tobytes()
    assert {0xA5} == {*memory[: SECTOR + 72].tolist(), *memory[4 * SECTOR :].tolist()}


def test_aligned_memory_is_read_into_without_staging(files: WeightFiles) -> None:
    """
    Memory that is a multiple of 4,096 away from the place in the file needs nothing between.
    """
    budget = ReadBudget(chunk_bytes=8 * SECTOR, direct=True)
    with RangeReader(files, budget) as reader:
        memory = allocate(4 * SECTOR)
        reader.read([FileRange(file=0, start=72, into=memory[72:])])
        assert (memory.size - 72, 0) == (reader.direct_bytes, reader.staging_bytes)
        reader.read([FileRange(file=0, start=72, into=memory[64:])])
        assert 0 < reader.staging_bytes <= budget.readers * budget.chunk_bytes


@pytest.mark.parametrize("refusal", ["on opening", "on reading"])
def test_a_file_system_that_refuses_direct_reads_is_read_through_the_cache(
    files: WeightFiles, path: Path, refusal: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    Some refuse when a file is opened, others at the first read; both are told, neither is an error.
    """
    opened, read = os.open, os.preadv
    direct_fds = set()

    def refuse_open(name: Any, flags: int, *rest: Any) -> int:
        if flags & os.O_DIRECT and refusal == "on opening":
            raise OSError(errno.EINVAL, "refused")
        fd = opened(name, flags, *rest)
        if flags & os.O_DIRECT:
            direct_fds.add(fd)
        return fd

    def refuse_read(fd: int, *rest: Any) -> int:
        if fd in direct_fds:
            raise OSError(errno.EINVAL, "refused")
        return read(fd, *rest)

    monkeypatch.setattr(os, "open", refuse_open)
    monkeypatch.setattr(os, "preadv", refuse_read)
    into = allocate(3 * SECTOR)
    with RangeReader(files, ReadBudget(chunk_bytes=8 * SECTOR, direct=True)) as reader:
        reader.read([FileRange(file=0, start=5, into=into)])
        assert (0, into.size) == (reader.direct_bytes, reader.plain_bytes)
        assert "takes no direct reads, read through the page cache" in reader.steps_down[0]
    assert path.read_bytes()[5 : 5 + into.size] == into.tobytes()


@budgets
def test_a_disk_that_fails_is_an_error_with_its_file(
    files: WeightFiles, path: Path, budget: ReadBudget, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    A failing disk is told as what the system says, with the file that lies on it.
    """

    def fail(*_: Any) -> int:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    with RangeReader(files, budget) as reader:
        monkeypatch.setattr(os, "preadv", fail)
        with pytest.raises(WeightsError) as error:
            reader.read([FileRange(file=0, start=0, into=allocate(SECTOR))])
    assert f"{path}: cannot be read: Input/output error" == str(error.value)


@budgets
def test_bytes_behind_the_end_are_an_error(files: WeightFiles, budget: ReadBudget) -> None:
    """
    A file that is shorter than it was does not give zeros.
    """
    with RangeReader(files, budget) as reader:
        size = files.index.files[0].size_bytes
        ranges = [FileRange(file=0, start=size - 2 * SECTOR, into=allocate(2 * SECTOR + 1))]
        with pytest.raises(WeightsChangedError, match=f"ended at byte {size}"):
            reader.read(ranges)


def test_one_part_at_a_time_can_be_asked_for(files: WeightFiles, path: Path) -> None:
    """
    A ring of buffers asks for parts as it has room, and waits for each where it needs it.
    """
    buffers = [allocate(2 * SECTOR) for _ in range(4)]
    with RangeReader(files, SMALL) as reader:
        waiting: list[Future[None]] = [
            reader.submit(FileRange(file=0, start=i * 2 * SECTOR, into=buffer))
            for i, buffer in enumerate(buffers)
        ]
        for future in waiting:
            future.result(timeout=10)
    read = b"".join(buffer.tobytes() for buffer in buffers)
    assert path.read_bytes()[: len(read)] == read


def test_a_part_that_is_larger_than_a_chunk_is_refused(files: WeightFiles) -> None:
    """
    What is on its way stays in its budget.
    """
    with RangeReader(files, SMALL) as reader, pytest.raises(ContractError, match="one chunk"):
        reader.submit(FileRange(file=0, start=0, into=allocate(3 * SECTOR)))


@pytest.mark.parametrize(
    "into",
    [np.zeros(8, np.int8), np.zeros((2, 4), np.uint8), np.zeros(8, np.uint8)[::2]],
    ids=["another dtype", "two axes", "gaps"],
)
def test_memory_that_is_no_plain_bytes_is_refused(into: np.ndarray, files: WeightFiles) -> None:
    """
    Bytes would land elsewhere than where the array has them.
    """
    with RangeReader(files, SMALL) as reader, pytest.raises(ContractError, match="into: got"):
        reader.read([FileRange(file=0, start=0, into=into)])


def test_memory_that_is_read_only_is_refused(files: WeightFiles) -> None:
    """
    An array that promises not to change does not.
    """
    into = np.zeros(8, np.uint8)
    into.flags.writeable = False
    with RangeReader(files, SMALL) as reader, pytest.raises(ContractError, match="written to"):
        reader.read([FileRange(file=0, start=0, into=into)])


def test_pieces_are_told_as_they_come(files: WeightFiles) -> None:
    """
    What is done with bytes while they are fresh, as checking them, sees each of them once.
    """
    seen: list[tuple[int, int, int]] = []
    with RangeReader(files, SMALL) as reader:
        reader.read(
            [FileRange(file=0, start=11, into=allocate(9 * SECTOR + 5))],
            arrived=lambda *place: seen.append(place),
        )
    stops = [11, *(stop for _, _, stop in sorted(seen))]
    assert [(0, *pair) for pair in pairwise(stops)] == sorted(seen)
    assert 11 + 9 * SECTOR + 5 == stops[-1]


@given(
    st.lists(st.tuples(st.integers(0, 9000), st.integers(0, 30_000)), max_size=8),
    st.sampled_from([SECTOR, 2 * SECTOR, 16 * SECTOR]),
)
def test_parts_are_bounded_and_leave_nothing_out(
    shapes: list[tuple[int, int]], chunk_bytes: int
) -> None:
    """
    A part spans at most a chunk, and all parts together are all bytes, each once and in order.
    """
    memory = np.zeros(300_000, np.uint8)
    ranges, start = [], 0
    for gap, length in shapes:
        start += gap
        ranges.append(FileRange(file=0, start=start, into=memory[:length]))
        start += length
    parts = list(parts_of(ranges, chunk_bytes))
    assert all(part[-1].stop - part[0].start <= chunk_bytes for part in parts)
    covered = [each for part in parts for each in part]
    expected = [place for each in ranges for place in range(each.start, each.stop, 997)]
    assert sum(each.into.size for each in ranges) == sum(each.into.size for each in covered)
    assert all(any(each.start <= place < each.stop for each in covered) for place in expected)
    assert sorted(covered, key=lambda each: each.start) == covered


def test_small_tensors_that_lie_side_by_side_are_read_at_once() -> None:
    """
    Thousands of small tensors do not cost thousands of reads.
    """
    memory = np.zeros(100, np.uint8)
    ranges = [FileRange(file=0, start=i * 128, into=memory) for i in range(1000)]
    assert 1 == len(list(parts_of(ranges, 64 * SECTOR)))
    assert 2 == len(list(parts_of([ranges[0], ranges[99]], 64 * SECTOR)))
    assert 32 == len(list(parts_of(ranges, SECTOR)))


def test_what_is_in_memory_is_read_from_there(files: WeightFiles, path: Path) -> None:
    """
    The page cache is asked for each part: what is in it is copied, the rest is read past it.
    """
    into = allocate(8 * SECTOR)
    for is_cached in (True, False):
        forget_pages(path)
        if is_cached:
            path.read_bytes()
        with RangeReader(files, ReadBudget(chunk_bytes=8 * SECTOR)) as reader:
            reader.read([FileRange(file=0, start=0, into=into)])
            assert is_cached == (reader.direct_bytes == 0)


@pytest.mark.parametrize(("pages", "most"), [("in memory", 2), ("unknown", 6)])
def test_few_readers_copy_from_memory_and_all_read_what_may_be_far(
    files: WeightFiles, path: Path, pages: str, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    Copies are bound by memory; a network disk, of which nothing is known, wants many reads at once.
    """
    path.read_bytes()
    if pages == "unknown":
        monkeypatch.setattr(_sources, "file_system", lambda _: "nfs4")
    together = threading.Barrier(most)
    read, at_once, now, lock = os.preadv, [0], [0], threading.Lock()

    def note(*words: Any) -> int:
        with lock:
            now[0] += 1
            at_once[0] = max(at_once[0], now[0])
        together.wait(timeout=10)  # until as many as may are here
        with lock:
            now[0] -= 1
        return read(*words)

    monkeypatch.setattr(os, "preadv", note)
    budget = ReadBudget(readers=6, cached_readers=2, chunk_bytes=SECTOR)
    with RangeReader(files, budget) as reader:
        reader.read([FileRange(file=0, start=0, into=allocate(12 * SECTOR))])
    assert most == at_once[0]


def test_a_process_that_may_not_ask_about_pages_reads_through_the_cache(
    files: WeightFiles, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    Where nothing is known about pages, nothing is lost by the plain way.
    """
    monkeypatch.setattr(_pages, "_call", lambda *_: errno.EPERM)
    forget_pages(path)
    with RangeReader(files, SMALL) as reader:
        reader.read([FileRange(file=0, start=0, into=allocate(SECTOR))])
        assert 0 == reader.direct_bytes
