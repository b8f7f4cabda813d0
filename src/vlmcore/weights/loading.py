"""Weights of a checkpoint as arrays of NumPy: mapped, or in memory of their own."""

from __future__ import annotations

import os
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from vlmcore._arrays import require_member
from vlmcore._closing import Closing
from vlmcore._host_memory import free_host_bytes, in_gib
from vlmcore.errors import ContractError, WeightsBudgetError, WeightsError
from vlmcore.limits import WeightLimits
from vlmcore.weights._arena import allocate
from vlmcore.weights._crew import Cancelling, Progress
from vlmcore.weights._layout import lay_out
from vlmcore.weights._mapping import fetch_pages, map_file
from vlmcore.weights._pages import file_system, is_remote
from vlmcore.weights.budget import ReadBudget
from vlmcore.weights.index import TensorEntry, WeightIndex
from vlmcore.weights.opening import WeightFiles, open_files
from vlmcore.weights.ranges import FileRange, RangeReader
from vlmcore.weights.report import LoadReport, Way

__all__ = ["Weights", "load_weights", "read_weights"]

UInt8Array = npt.NDArray[np.uint8]


class Weights(Mapping[str, npt.NDArray[Any]], Closing):
    """
    The tensors of a checkpoint by name; `load_weights` makes it.

    An array stays good after `close`, as long as it is held, and its memory with it; the rest goes
    back to the host. Arrays may be written to: that reaches neither the file nor other processes.

    Tied tensors that the file names twice are the same memory. Names that only stand for another
    (`WeightIndex.aliases`) are found, and not listed.

    Attributes:
        index: What the files say about the tensors.
        report: What the load did.
    """

    def __init__(
        self,
        files: WeightFiles,
        held: Mapping[str, tuple[UInt8Array, int]],
        report: LoadReport,
        *,
        owns_files: bool,
    ) -> None:
        self.index: WeightIndex = files.index
        self.report = report
        self._files = files
        self._held = dict(held)
        self._owns_files = owns_files
        self._is_open = True

    def __getitem__(self, name: str) -> npt.NDArray[Any]:
        raw = self.raw(name)
        entry = self.entry(name)
        return raw.view(entry.dtype.numpy).reshape(entry.shape)

    def __iter__(self) -> Iterator[str]:
        return iter(self._held)

    def __len__(self) -> int:
        return len(self._held)

    def __repr__(self) -> str:
        return f"<Weights {self._files.path}: {len(self)} tensors, {self.report.way.value}>"

    def entry(self, name: str) -> TensorEntry:
        """Return where the tensor *name* lies, and its dtype and shape."""
        return self.index[self.index.aliases.get(name, name)]

    def raw(self, name: str) -> UInt8Array:
        """
        Return the bytes of a tensor, uint8 of one axis, whether NumPy has its dtype or not.

        Raises:
            KeyError: If there is no such tensor, or it was not asked for.
            WeightsChangedError: If it is mapped, and a file was written to since it was opened.
            WeightsError: If the weights are closed.
        """
        if not self._is_open:
            raise WeightsError(self._files.path, "is closed, expected to be open")
        memory, at = self._held[self.index.aliases.get(name, name)]
        if self.report.way is Way.VIEWS:
            self._files.check_unchanged()
        return memory[at : at + self.entry(name).nbytes]

    def close(self) -> None:
        """Let go of the files and of the memory that no array holds."""
        self._is_open = False
        self._held.clear()
        if self._owns_files:
            self._files.close()


def load_weights(
    path: str | os.PathLike[str],
    *,
    way: Way = Way.VIEWS,
    names: Collection[str] | None = None,
    budget: ReadBudget | None = None,
    progress: Progress | None = None,
    cancel: Cancelling | None = None,
    limits: WeightLimits | None = None,
) -> Weights:
    """
    Load the tensors of a checkpoint.

    With `Way.VIEWS` they are mapped, and fetched ahead by several readers. A file that shrinks or
    is written to is found before pages are first touched and each time that a tensor is handed out.
    What happens to the file *later*, while an array is in use, is out of reach: the system ends a
    process that touches a page which is gone. Where others may write to the file, use `Way.COPY`.
    A file on a network disk is not mapped, but copied; the report says so.

    With `Way.COPY` they are read into memory of their own, each at a multiple of 64 bytes.

    Args:
        path: A pack, a file of safetensors, an index of several, or a folder that holds one.
        way: How the tensors are had.
        names: Which to load; all if it is ``None``.
        budget: How to read; as the host can bear it if it is ``None``.
        progress: Called with the bytes that are done and those that there are.
        cancel: Stops the load from another thread.
        limits: How much is read before the tensors.

    Raises:
        WeightsError: If the files cannot be opened or read; see `open_files`.
        WeightsChangedError: If a file changed while it was read.
        WeightsBudgetError: If the tensors do not fit into the memory that is free.
        WeightsCancelledError: If it was cancelled.
        ContractError: If a name is not in the checkpoint.
    """
    started = time.perf_counter()
    files = open_files(path, limits=limits)
    try:
        load = _Load(files, names, budget, progress, cancel, started=started)
        return load.run(way, owns_files=True)
    except BaseException:
        files.close()
        raise


def read_weights(
    files: WeightFiles,
    *,
    way: Way = Way.VIEWS,
    names: Collection[str] | None = None,
    budget: ReadBudget | None = None,
    progress: Progress | None = None,
    cancel: Cancelling | None = None,
) -> Weights:
    """Load tensors of files that are open; as `load_weights`, and the files stay the caller's."""
    load = _Load(files, names, budget, progress, cancel, started=time.perf_counter())
    return load.run(way, owns_files=False)


class _Load:
    """One load on its way."""

    def __init__(
        self,
        files: WeightFiles,
        names: Collection[str] | None,
        budget: ReadBudget | None,
        progress: Progress | None,
        cancel: Cancelling | None,
        *,
        started: float,
    ) -> None:
        self._files = files
        self._entries = _chosen(files, names)
        self._payload = sum(entry.nbytes for entry in self._entries)
        self._budget = budget if budget is not None else ReadBudget.for_host()
        self._progress = progress
        self._cancel = cancel
        self._steps = list(self._budget.steps_down)
        self._phases: dict[str, float] = {}
        self._since = started
        self._done: dict[str, int] = {}
        self._end_phase("open")

    def run(self, way: Way, *, owns_files: bool) -> Weights:
        require_member(Way, way=way)
        self._files.check_unchanged()
        maps = self._maps() if way is Way.VIEWS else None
        way = Way.COPY if maps is None else Way.VIEWS
        held = self._copy(self._entries) if maps is None else self._view(maps)
        self._files.check_unchanged()
        report = LoadReport(
            path=self._files.path,
            way=way,
            tensors=len(self._entries),
            payload_bytes=self._payload,
            phases_s=self._phases,
            steps_down=tuple(self._steps),
            **self._done,
        )
        return Weights(self._files, held, report, owns_files=owns_files)

    def _maps(self) -> list[UInt8Array] | None:
        """Map the files; ``None`` where they are better not."""
        maps = []
        for i, file in enumerate(self._files.index.files):
            path, kind = self._files.paths[i], file_system(self._files.fd(i))
            if is_remote(kind):
                self._steps.append(f"views: {path} is on {kind}, read into own memory instead")
                return None
            try:
                maps.append(map_file(self._files.fd(i), file.size_bytes))
            except (OSError, ValueError):  # of no such use to its file system, or shorter by now
                self._files.check_unchanged()
                self._steps.append(f"views: {path} cannot be mapped, read into own memory instead")
                return None
        self._end_phase("map")
        return maps

    def _view(self, maps: Sequence[UInt8Array]) -> dict[str, tuple[UInt8Array, int]]:
        """Fetch the pages of mapped files; what lies across its own numbers in them is copied."""
        mapped = [entry for entry in self._entries if entry.is_aligned]
        fetched = fetch_pages(
            self._files,
            maps,
            mapped,
            self._budget,
            progress=self._progress,
            cancel=self._cancel,
        )
        if not fetched:
            self._steps.append("views: this system fetches no pages ahead, they come when touched")
        self._end_phase("fetch")
        self._done["mapped_bytes"] = sum(entry.nbytes for entry in mapped)
        held = {entry.name: (maps[entry.file], entry.start) for entry in mapped}
        crooked = [entry for entry in self._entries if not entry.is_aligned]
        return {**held, **self._copy(crooked)} if crooked else held

    def _copy(self, entries: Sequence[TensorEntry]) -> dict[str, tuple[UInt8Array, int]]:
        layout = lay_out(entries)
        _require_memory(self._files.path, layout.nbytes)
        arena = allocate(layout.nbytes)
        self._end_phase("allocate")
        with RangeReader(self._files, self._budget) as reader:
            reader.read(
                (
                    FileRange(
                        file=each.file,
                        start=each.start,
                        into=arena[each.at : each.at + each.stop - each.start],
                    )
                    for each in layout.segments
                ),
                progress=self._progress,
                cancel=self._cancel,
            )
            self._done["direct_bytes"] = reader.direct_bytes
            self._done["plain_bytes"] = reader.plain_bytes
            self._done["staging_bytes"] = reader.staging_bytes
            self._steps += reader.steps_down
        self._end_phase("read")
        return {name: (arena, at) for name, at in layout.places.items()}

    def _end_phase(self, name: str) -> None:
        now = time.perf_counter()
        self._phases[name] = self._phases.get(name, 0.0) + now - self._since
        self._since = now


def _chosen(files: WeightFiles, names: Collection[str] | None) -> tuple[TensorEntry, ...]:
    """Pick the tensors that are wanted, in the order of the files."""
    index = files.index
    if names is None:
        return index.entries
    if isinstance(names, str):
        raise ContractError("names", "got one text, expected several names")
    wanted = {index.aliases.get(name, name) for name in names}
    unknown = sorted(map(str, wanted - index.keys()))
    if unknown:
        raise ContractError(
            "names",
            f"got {unknown[0]!a:.90}, which {files.path} does not have ({len(unknown)} of such)",
        )
    return tuple(entry for entry in index.entries if entry.name in wanted)


def _require_memory(path: str, needed: int) -> None:
    free = free_host_bytes()
    if free is not None and needed > free:
        raise WeightsBudgetError(
            path, f"needs {in_gib(needed)}, and the host has {in_gib(free)} free", needed, free
        )
