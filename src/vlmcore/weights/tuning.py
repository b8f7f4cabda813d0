"""Which readers are fastest on this machine for this file: measured once, and remembered."""

from __future__ import annotations

import contextlib
import json
import os
import platform
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs

from vlmcore._whole_files import write_whole
from vlmcore.errors import ContractError
from vlmcore.limits import WeightLimits
from vlmcore.weights._arena import allocate
from vlmcore.weights._granting import granted
from vlmcore.weights._pages import file_system
from vlmcore.weights.budget import ReadBudget
from vlmcore.weights.opening import WeightFiles, open_files
from vlmcore.weights.ranges import FileRange, RangeReader

__all__ = ["Trial", "Tuning", "autotune", "default_memory", "remembered"]

_MIB = 0x10_0000
_CLOSE = 0.9  # what is nearly as fast as the best is taken if it comes before it
_SAMPLE = 128 * _MIB  # what each trial reads, where there is so much
_ON_DISK = tuple((count, mib * _MIB) for count, mib in ((4, 8), (8, 8), (16, 4), (4, 16), (2, 16)))
_IN_MEMORY = (1, 2, 4, 8)  # cached readers
_ROUNDS = 3
_MOST_BYTES = _MIB  # of what is remembered


@attrs.frozen(kw_only=True)
class Trial:
    """
    One way to read that was tried.

    Attributes:
        where: ``"disk"`` or ``"memory"``: where the bytes were.
        readers: As of `ReadBudget`; for what is in memory, its `cached_readers`.
        chunk_bytes: As of `ReadBudget`.
        direct: Whether they were read past the page cache.
        gb_per_s: The best of some rounds, in 10**9 bytes a second.
    """

    where: str
    readers: int
    chunk_bytes: int
    direct: bool
    gb_per_s: float


@attrs.frozen(kw_only=True)
class Tuning:
    """
    What is fastest on this machine for files that lie where one does.

    Attributes:
        budget: How to read.
        trials: What was tried; empty if it was remembered.
        is_remembered: Whether it was measured by an earlier call.
    """

    budget: ReadBudget
    trials: tuple[Trial, ...] = ()
    is_remembered: bool = False

    def to_dict(self) -> dict[str, Any]:
        """Write it as a JSON object."""
        return {
            "budget": _settings(self.budget),
            "trials": [attrs.asdict(trial) for trial in self.trials],
            "is_remembered": self.is_remembered,
        }


def autotune(
    path: str | os.PathLike[str],
    *,
    memory: str | os.PathLike[str] | None = None,
    again: bool = False,
    limits: WeightLimits | None = None,
) -> Tuning:
    """
    Find out how files that lie where *path* does are read fastest, and remember it.

    Up to 128 MiB of the file are read a few times each way, with their pages dropped from the cache
    in between; it takes some seconds, and memory of that size. The next call for the same machine
    and file system takes what was remembered.

    Args:
        path: A checkpoint, as for `load_weights`. The larger the better.
        memory: The file that remembers, JSON; one in the user's folder of caches if it is ``None``.
        again: Whether to measure though it is remembered.
        limits: As for `load_weights`.

    Raises:
        WeightsError: If the files cannot be opened or read.
        ContractError: If *memory* cannot be written.
    """
    kept = default_memory() if memory is None else Path(memory)
    with open_files(path, limits=limits) as files:
        key = _key(files)
        known = None if again else _recall(kept, key)
        if known is not None:
            return Tuning(budget=known, is_remembered=True)
        with granted(files.path, _SAMPLE):
            tuning = _Trials(files).run()
    _remember(kept, key, tuning)
    return tuning


def remembered(
    files: WeightFiles, *, memory: str | os.PathLike[str] | None = None
) -> ReadBudget | None:
    """Return what `autotune` found for files that lie where *files* do, if it was asked."""
    return _recall(default_memory() if memory is None else Path(memory), _key(files))


def default_memory() -> Path:
    """Name the file that remembers, in the folder of caches that the system has for its user."""
    match sys.platform:
        case "darwin":
            folder = Path.home() / "Library" / "Caches"
        case "win32":
            folder = Path.home() / "AppData" / "Local"
        case _:
            folder = Path.home() / ".cache"
    return folder / "vlmcore" / "weights.json"


class _Trials:
    """Reads a sample of a checkpoint in several ways."""

    def __init__(self, files: WeightFiles) -> None:
        self._files = files
        entries = files.index.entries
        self._usual = ReadBudget.for_host()
        most = min(_SAMPLE, self._usual.staging_bytes)
        # The file with the most bytes, from its first tensor on: what lies side by side.
        last = max(entries, key=lambda each: each.stop, default=None)
        self._file = last.file if last is not None else 0
        inside = [each for each in entries if each.file == self._file]
        self._start = inside[0].start if inside else 0
        self._size = min(last.stop - self._start, most) if last is not None else 0
        self._into = allocate(self._size + 0x1000)[self._start % 0x1000 :][: self._size]

    def run(self) -> Tuning:
        usual = self._usual
        disk = self._tried("disk", _for_disk(usual), self._forget)
        memory = self._tried("memory", _for_memory(usual), lambda: None)
        best, copier = _first_of_the_best(disk), _first_of_the_best(memory)
        budget = attrs.evolve(
            usual,
            readers=best.readers,
            chunk_bytes=best.chunk_bytes,
            direct=None if best.direct else False,
            cached_readers=copier.readers,
        )
        return Tuning(budget=budget, trials=(*disk, *memory))

    def _tried(
        self, where: str, budgets: list[ReadBudget], prepare: Callable[[], None]
    ) -> list[Trial]:
        """Try each some times, in turns, so that a busy moment hits all of them."""
        seconds = [float("inf")] * len(budgets)
        for _ in range(_ROUNDS):
            for i, budget in enumerate(budgets):
                prepare()
                seconds[i] = min(seconds[i], self._seconds(budget))
        return [
            Trial(
                where=where,
                readers=budget.cached_readers if where == "memory" else budget.readers,
                chunk_bytes=budget.chunk_bytes,
                direct=budget.direct is True,
                gb_per_s=self._size / least / 1e9,
            )
            for budget, least in zip(budgets, seconds, strict=True)
        ]

    def _seconds(self, budget: ReadBudget) -> float:
        with RangeReader(self._files, budget) as reader:
            started = time.perf_counter()
            reader.read([FileRange(file=self._file, start=self._start, into=self._into)])
            return max(time.perf_counter() - started, 1e-9)

    def _forget(self) -> None:
        if sys.platform == "linux":
            fd = self._files.fd(self._file)
            os.posix_fadvise(fd, self._start, self._size, os.POSIX_FADV_DONTNEED)


def _first_of_the_best(trials: list[Trial]) -> Trial:
    fast = _CLOSE * max(trial.gb_per_s for trial in trials)
    return next(trial for trial in trials if trial.gb_per_s >= fast)


def _for_disk(usual: ReadBudget) -> list[ReadBudget]:
    """Make the budgets that are tried with pages on disk, those that this host can bear."""
    return [
        attrs.evolve(
            usual,
            readers=readers,
            chunk_bytes=chunk,
            cached_readers=readers,
            direct=direct,
        )
        for readers, chunk in ((usual.readers, usual.chunk_bytes), *_ON_DISK)
        for direct in (True, False)
        if readers * chunk <= usual.staging_bytes
    ]


def _for_memory(usual: ReadBudget) -> list[ReadBudget]:
    """Make the budgets that are tried with pages in memory: no more copiers than cores."""
    most = min(max(os.cpu_count() or 1, 2), usual.readers)
    return [attrs.evolve(usual, cached_readers=count) for count in _IN_MEMORY if count <= most]


def _key(files: WeightFiles) -> str:
    """Name this machine and the file system that the first file is on."""
    fd = files.fd(0)
    machine = (platform.node(), platform.machine(), platform.release(), str(os.cpu_count()))
    return " ".join((*machine, file_system(fd), str(os.fstat(fd).st_dev)))


def _settings(budget: ReadBudget) -> dict[str, Any]:
    return attrs.asdict(budget, filter=lambda field, _: field.name != "steps_down")


def _recall(memory: Path, key: str) -> ReadBudget | None:
    """Read what is remembered, fit for what the host has free now; whatever is wrong with it."""
    with _whatever_is_wrong(), memory.open("rb") as file:
        return ReadBudget.for_host(**json.loads(file.read(_MOST_BYTES))["budgets"][key])
    return None


def _remember(memory: Path, key: str, tuning: Tuning) -> None:
    budgets: dict[str, Any] = {}
    with _whatever_is_wrong(), memory.open("rb") as file:
        budgets = dict(json.loads(file.read(_MOST_BYTES))["budgets"])
    budgets[key] = _settings(tuning.budget)
    text = json.dumps({"budgets": budgets}, indent=2, sort_keys=True)
    try:
        memory.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ContractError(str(memory), f"its folder cannot be made: {error.strerror}") from None
    write_whole(str(memory), text.encode() + b"\n")


def _whatever_is_wrong() -> contextlib.suppress:
    """Go on without a memory that is not there, or that somebody else wrote."""
    return contextlib.suppress(OSError, ValueError, TypeError, KeyError, RecursionError)
