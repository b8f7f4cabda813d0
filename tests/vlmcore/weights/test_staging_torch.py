"""The way to a device: a ring of staging memory, pinned or not, bounded, and left in good order."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import hypothesis.strategies as st
import pytest
import torch
from hypothesis import given
from safetensors.torch import save_file
from torch import nn

from vlmcore.errors import WeightsBudgetError, WeightsCancelledError, WeightsError
from vlmcore.weights._chunks import cut
from vlmcore.weights._torch import reading, staging
from vlmcore.weights._torch.reading import Reading
from vlmcore.weights._torch.staging import Carrier, Ring, place
from vlmcore.weights.budget import ReadBudget
from vlmcore.weights.dtypes import DType
from vlmcore.weights.index import TensorEntry
from vlmcore.weights.modules import load_into, load_tensors
from vlmcore.weights.opening import open_files
from vlmcore.weights.ranges import RangeReader
from vlmcore.weights.report import Way
from weight_cases import run_child

TINY = ReadBudget(staging_bytes=1 << 16, readers=2, chunk_bytes=1 << 12)


@pytest.fixture
def checkpoint(tmp_path) -> tuple[Path, dict[str, torch.Tensor]]:
    """Some hundred KiB, at odd places in the file."""
    torch.manual_seed(2)
    weights = {
        "wide": torch.randn(200, 301),
        "half": torch.randn(33, 1001).to(torch.bfloat16),
        "bytes": torch.randint(0, 256, (70_001,), dtype=torch.uint8),
        "scalar": torch.tensor(-2.5, dtype=torch.float64),
        "complex": torch.randn(9, 7, dtype=torch.complex64),
        "nothing": torch.zeros(3, 0),
        **{f"tiny.{i}": torch.randn(i) for i in range(20)},
    }
    save_file(weights, tmp_path / "m.safetensors")
    return tmp_path / "m.safetensors", weights


def staged(path: Path, **options):
    """Read a file as a device is read for, onto the CPU."""
    with open_files(path) as files:
        how = Reading(files=files, device=torch.device("cpu"), way=Way.COPY, budget=TINY, **options)
        dtypes = {name: getattr(torch, entry.dtype.value) for name, entry in files.index.items()}
        return how._staged(dtypes, how.progress)


def test_what_goes_by_way_of_staging_memory_comes_bit_by_bit(checkpoint) -> None:
    """
    Through a ring that is much smaller than the file, each tensor in many pieces.
    """
    path, weights = checkpoint

    tensors, report = staged(path)

    assert all(torch.equal(weights[name], tensor) for name, tensor in tensors.items())
    assert weights.keys() == tensors.keys()
    assert {0} == {t.data_ptr() % 64 for t in tensors.values() if t.numel()}
    assert report.payload_bytes > 5 * TINY.staging_bytes
    assert report.staging_bytes <= TINY.staging_bytes


def test_progress_is_told_and_what_is_cancelled_ends(checkpoint) -> None:
    """
    With the bytes that were done; no reader is left at work.
    """
    path, _ = checkpoint
    told: list[tuple[int, int]] = []

    class Soon:
        @property
        def cancelled(self) -> bool:
            return len(told) == 5

    with pytest.raises(WeightsCancelledError) as error:
        staged(path, progress=lambda done, total: told.append((done, total)), cancel=Soon())

    assert told[-1] == (error.value.done_bytes, error.value.total_bytes)
    assert 5 == len(told)
    assert not [t for t in threading.enumerate() if t.name.startswith("vlmcore-weights")]


def test_a_read_that_fails_midway_is_told_and_leaves_no_reader(checkpoint, monkeypatch) -> None:
    """
    The first failure, whatever the others do.
    """
    path, _ = checkpoint
    submit, calls = RangeReader.submit, []

    def failing(self, *part):
        calls.append(part)
        if len(calls) == 20:
            raise WeightsError("disk", "is on fire")
        return submit(self, *part)

    monkeypatch.setattr(RangeReader, "submit", failing)

    with pytest.raises(WeightsError, match="is on fire"):
        staged(path)

    assert not [t for t in threading.enumerate() if t.name.startswith("vlmcore-weights")]


def test_memory_that_a_device_does_not_have_is_known_before_anything_is_read(
    checkpoint, monkeypatch
) -> None:
    """
    All of it is allocated first.
    """
    path, _ = checkpoint

    def refuse(*_: object, **__: object) -> None:
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(reading.torch, "empty", refuse)
    monkeypatch.setattr(reading, "RangeReader", lambda *_: pytest.fail("it was read"))

    with pytest.raises(WeightsBudgetError, match="on cpu, and they are not free there") as error:
        staged(path)

    assert error.value.needed_bytes > 300_000


def test_pinning_that_the_host_refuses_is_stepped_down_from_and_said(monkeypatch) -> None:
    """
    Plain memory is slower, and there; the host is asked once, not for each part.
    """
    empty, asked = torch.empty, []

    def refuse(*sizes: object, pin_memory: bool = False, **options: object) -> torch.Tensor:
        if pin_memory:
            asked.append(sizes)
            raise RuntimeError("CUDA error: out of memory\nand more")
        return empty(*sizes, **options)

    monkeypatch.setattr(staging.torch, "empty", refuse)

    ring = Ring(1 << 20, 1 << 24, part_bytes=4096, pins=True)

    assert ("pinned memory: refused, plain memory taken (CUDA error: out of memory)",) == (
        ring.steps_down
    )
    assert (1, 0, 1 << 20) == (len(asked), ring.pinned_bytes, ring.nbytes)


@given(st.integers(1, 1 << 22), st.integers(0, 1 << 22), st.integers(1, 9))
def test_a_ring_is_no_larger_than_its_budget_or_what_there_is_to_read(
    budget, needed, slots
) -> None:
    """
    Two pages it needs, whatever the budget.
    """
    ring = Ring(budget, needed, part_bytes=4096, pins=False, slots=slots)

    assert ring.nbytes <= max(budget, 8192)
    assert ring.nbytes <= needed + (slots + 1) * 8192
    assert 0 < ring.chunk_bytes <= ring.nbytes


@given(
    st.lists(st.tuples(st.integers(0, 40), st.integers(0, 200_000), st.booleans()), max_size=12),
    st.integers(16, 5000),
)
def test_chunks_hold_each_byte_of_each_tensor_once(tensors, chunk_bytes) -> None:
    """
    In the order of the files, within their size, and no number is cut through.
    """
    entries, at, file = [], 0, 0
    for i, (numbers, gap, is_next) in enumerate(tensors):
        file, at = (file + 1, 0) if is_next else (file, at + gap)
        entries.append(
            TensorEntry(
                name=str(i),
                dtype=DType.COMPLEX128,
                shape=(numbers,),
                file=file,
                start=at,
                stop=at + 16 * numbers,
            )
        )
        at += 16 * numbers

    chunks = list(cut(entries, chunk_bytes))

    got: dict[str, list[tuple[int, int]]] = {}
    for chunk in chunks:
        assert 0 < chunk.nbytes <= chunk_bytes
        for piece in chunk.pieces:
            assert (piece.start % 16, piece.stop % 16, chunk.file) == (0, 0, piece.entry.file)
            assert chunk.start + piece.at == piece.entry.start + piece.start
            got.setdefault(piece.entry.name, []).append((piece.start, piece.stop))
    for entry in entries:
        spans = got.get(entry.name, [])
        joined = [0, *(stop for _, stop in spans)]
        assert [start for start, _ in spans] == joined[:-1]
        assert joined[-1] == entry.nbytes


CHILD = """
import sys, threading, torch
from vlmcore.weights.budget import ReadBudget
from vlmcore.weights.modules import load_tensors
from vlmcore.weights.report import Way

def resident(field):
    lines = open("/proc/self/status").read().splitlines()
    return int(next(l for l in lines if l.startswith(field)).split()[1]) >> 10

path, device = sys.argv[1:]
torch.ones(1 << 16, device=device).to(torch.bfloat16)
before = resident("VmRSS")
budget = ReadBudget(staging_bytes=32 << 20, readers=4, chunk_bytes=4 << 20)
loaded = load_tensors(path, device=device, way=Way.COPY, dtype="bfloat16", budget=budget)
print(resident("VmHWM") - before, loaded.report.staging_bytes >> 20)
"""


needs_cuda = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device is here")


@pytest.mark.parametrize(
    ("device", "weights_mib"),
    [("cpu", 96), pytest.param("cuda", 0, marks=[pytest.mark.gpu, needs_cuda])],
)
def test_memory_stays_within_what_is_bounded(tmp_path, device, weights_mib) -> None:
    """
    In a process of its own: 192 MiB of float32 that become 96 MiB, through 32 MiB of staging.

    Of those 96 the host holds none if they are on another device.
    """
    weights = {f"{i}": torch.full((1 << 22,), 1.5) for i in range(12)}
    save_file(weights, tmp_path / "m.safetensors")

    peak, taken = map(int, run_child(CHILD, tmp_path / "m.safetensors", device).split())

    assert taken <= 32
    assert peak < weights_mib + 32 + 64


class SlowDevice:
    """
    Stands for a device with streams: what it is told to copy it copies when somebody waits for it.
    """

    def __init__(self) -> None:
        self.said: list[str] = []
        self._later: list[Callable[[], None]] = []

    def current_stream(self, device: torch.device) -> str:
        return f"the stream of {device}"

    def Stream(self, _: torch.device) -> SlowDevice:  # noqa: N802 - as torch calls it
        return self

    @contextmanager
    def stream(self, stream: SlowDevice) -> Iterator[None]:
        assert stream is self
        yield

    def wait_stream(self, stream: str) -> None:
        self.said.append(f"waits for {stream}")

    def copy(self, how: Callable[[], None]) -> None:
        self._later.append(how)

    def record_event(self) -> Any:
        return SimpleNamespace(synchronize=partial(self._copy_first, len(self._later)))

    def synchronize(self) -> None:
        self.said.append("copied everything")
        self._copy_first(len(self._later))

    def _copy_first(self, count: int) -> None:
        for i in range(count):
            self._later[i]()
            self._later[i] = lambda: None


def test_memory_that_a_device_copies_from_is_left_alone_until_it_has(
    checkpoint, monkeypatch
) -> None:
    """
    Nothing is read into a part of the ring whose copies are not done, and all are done in the end.
    """
    path, weights = checkpoint
    device = SlowDevice()
    with monkeypatch.context() as patched:
        patched.setattr(torch, "cuda", device)
        carrier = Carrier(torch.device("cuda", 0))
    flat = {name: torch.empty(each.numel(), dtype=each.dtype) for name, each in weights.items()}

    with open_files(path) as files, carrier, RangeReader(files, TINY) as reader:
        ring = Ring(TINY.staging_bytes, 1 << 20, part_bytes=TINY.chunk_bytes, pins=False)
        for chunk, slot in ring.chunks(files.index.entries, reader):
            with carrier.copying(slot):
                device.copy(partial(place, chunk, slot, flat))

    assert carrier.pins
    assert ["waits for the stream of cuda:0", "copied everything"] == device.said
    assert all(torch.equal(weights[name].reshape(-1), each) for name, each in flat.items())


class Noting(torch.Tensor):
    """Notes whether it is copied to in the background."""

    asked: ClassVar[list[object]] = []

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        if func is torch.Tensor.copy_:
            cls.asked.append((kwargs or {}).get("non_blocking"))
        return super().__torch_function__(func, types, args, kwargs)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_devices_without_streams_are_copied_to_before_memory_is_read_into_again(
    checkpoint, monkeypatch, dtype
) -> None:
    """
    As those of Apple, which copy in the background if they are let: nobody would wait for them.
    """
    path, _ = checkpoint
    empty = torch.empty
    monkeypatch.setattr(
        reading.torch,
        "empty",
        lambda *sizes, **options: empty(*sizes, **options).as_subclass(Noting),
    )
    Noting.asked.clear()

    with open_files(path) as files:
        how = Reading(files=files, device=torch.device("cpu"), way=Way.COPY, budget=TINY)
        how._staged({"wide": dtype}, None)

    assert Noting.asked
    assert {False} == set(Noting.asked)


@pytest.mark.gpu
@needs_cuda
def test_weights_go_to_a_cuda_device(checkpoint) -> None:
    """
    By way of pinned memory, on a stream of its own, whole when the load is.
    """
    path, weights = checkpoint

    for dtype in (None, torch.float16):
        loaded = load_tensors(path, device="cuda", dtype=dtype, budget=TINY)
        for name, tensor in loaded.items():
            is_rounded = dtype is not None and weights[name].is_floating_point()
            expected = weights[name].to(dtype) if is_rounded else weights[name]
            assert "cuda" == tensor.device.type
            assert torch.equal(expected, tensor.cpu())
    with torch.device("meta"):
        module = nn.Linear(301, 200, bias=False)
    load_into(module, path, device="cuda", strict=False, names={"wide": "weight"})
    assert torch.equal(weights["wide"], module.weight.cpu())
