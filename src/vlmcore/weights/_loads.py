"""One load on its way: what is mapped, what is copied, what is compared, how long it takes."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Sequence
from functools import partial
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from vlmcore._arguments import require_kind
from vlmcore._arrays import require_member
from vlmcore.errors import ContractError
from vlmcore.weights._arena import allocate, require_room
from vlmcore.weights._arrivals import ArrivalChecks, Take, take_from_file
from vlmcore.weights._crew import Cancelling, Progress
from vlmcore.weights._granting import granted
from vlmcore.weights._layout import lay_out
from vlmcore.weights._mapping import fetch_pages, map_file
from vlmcore.weights._pages import file_system, is_remote
from vlmcore.weights.budget import ReadBudget
from vlmcore.weights.checksums import Checksum
from vlmcore.weights.index import TensorEntry
from vlmcore.weights.manifest import Manifest
from vlmcore.weights.opening import WeightFiles
from vlmcore.weights.ranges import Arrived, FileRange, RangeReader
from vlmcore.weights.report import LoadReport, Way
from vlmcore.weights.verifying import TensorChecks, Verification, find_manifest

__all__ = ["Held", "Load"]

UInt8Array: TypeAlias = npt.NDArray[np.uint8]
Held: TypeAlias = dict[str, tuple[UInt8Array, int]]
"""The memory that each tensor is in, and where it begins there."""


class Load:
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
        self._budget = budget if budget is not None else ReadBudget.for_host()
        require_kind("budget", self._budget, ReadBudget)
        if progress is not None and not callable(progress):
            raise ContractError("progress", f"got {type(progress).__name__}, expected a function")
        if cancel is not None and not hasattr(cancel, "cancelled"):
            raise ContractError("cancel", f"got {type(cancel).__name__}, expected a CancelToken")
        self._progress = progress
        self._cancel = cancel
        self._steps = list(self._budget.steps_down)
        self._phases: dict[str, float] = {}
        self._since = started
        self._done: dict[str, int] = {}
        self._checks: TensorChecks | None = None
        self._end_phase("open")

    def will_compare(self, verification: Verification, manifest: Manifest | None) -> None:
        """Compare what is loaded with a manifest, whose first lines are compared now."""
        if verification is not Verification.OFF:
            manifest = manifest or find_manifest(self._files)
            self._checks = TensorChecks(self._files, manifest, how=verification)

    def run(self, way: Way) -> tuple[Held, LoadReport]:
        """Load the tensors: where each begins in which memory, and what was done."""
        require_member(Way, way=way)
        self._files.check_unchanged()
        maps = self._maps() if way is Way.VIEWS else None
        with granted(self._files.path, _payload(self._entries)):
            held = self._copy(self._entries) if maps is None else self._view(maps)
        self._files.check_unchanged()
        if self._checks is not None:
            self._done["verified_bytes"] = self._checks.finish().bytes
        return held, LoadReport(
            path=self._files.path,
            way=Way.COPY if maps is None else Way.VIEWS,
            tensors=len(self._entries),
            payload_bytes=_payload(self._entries),
            phases_s=self._phases,
            steps_down=tuple(self._steps),
            **self._done,
        )

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

    def _view(self, maps: Sequence[UInt8Array]) -> Held:
        """Fetch the pages of mapped files; what lies across its own numbers in them is copied."""
        mapped = [entry for entry in self._entries if entry.is_aligned]
        crooked = [entry for entry in self._entries if not entry.is_aligned]
        copied_bytes, mapped_bytes = _payload(crooked), _payload(mapped)
        copied = self._copy(crooked, to_come=mapped_bytes) if crooked else {}
        fetched = fetch_pages(
            self._files,
            maps,
            mapped,
            self._budget,
            arrived=self._arrivals(mapped, partial(take_from_file, self._files)),
            progress=self._told(mapped_bytes, before=copied_bytes),
            cancel=self._cancel,
        )
        if not fetched:
            self._steps.append("views: this system fetches no pages ahead, they come when touched")
        self._end_phase("fetch")
        self._done["mapped_bytes"] = mapped_bytes
        return {**{entry.name: (maps[entry.file], entry.start) for entry in mapped}, **copied}

    def _copy(self, entries: Sequence[TensorEntry], *, to_come: int = 0) -> Held:
        layout = lay_out(entries)
        require_room(self._files.path, layout.nbytes)
        arena = allocate(layout.nbytes)
        self._end_phase("allocate")

        def take(checksum: Checksum, entry: TensorEntry, start: int, stop: int) -> None:
            shift = layout.places[entry.name] - entry.start
            checksum.update(arena[start + shift : stop + shift].data)

        arrived = self._arrivals(entries, take)
        ranges = (
            FileRange(
                file=each.file,
                start=each.start,
                into=arena[each.at : each.at + each.stop - each.start],
            )
            for each in layout.segments
        )
        with RangeReader(self._files, self._budget) as reader:
            progress = self._told(_payload(entries), to_come=to_come)
            reader.read(ranges, progress=progress, cancel=self._cancel, arrived=arrived)
            self._done["direct_bytes"] = reader.direct_bytes
            self._done["plain_bytes"] = reader.plain_bytes
            self._done["staging_bytes"] = reader.staging_bytes
            self._steps += reader.steps_down
        self._end_phase("read")
        return {name: (arena, at) for name, at in layout.places.items()}

    def _told(self, own: int, *, before: int = 0, to_come: int = 0) -> Progress | None:
        """Tell of one of two steps, of *own* bytes of tensors, as a part of both."""
        progress, end = self._progress, before + own
        if progress is None or not own:
            return None

        def tell(done: int, total: int) -> None:  # of what is read, bytes between tensors too
            progress(end if done >= total else before + min(done, own), end + to_come)

        return tell

    def _arrivals(self, entries: Sequence[TensorEntry], take: Take) -> Arrived | None:
        if self._checks is None:
            return None
        return ArrivalChecks(self._checks, entries, take).arrived

    def _end_phase(self, name: str) -> None:
        now = time.perf_counter()
        self._phases[name] = self._phases.get(name, 0.0) + now - self._since
        self._since = now


def _chosen(files: WeightFiles, names: Collection[str] | None) -> tuple[TensorEntry, ...]:
    """Pick the tensors that are wanted, in the order of the files."""
    index = files.index
    if names is None:
        return index.entries
    if isinstance(names, str) or not isinstance(names, Iterable):
        kind = "one text" if isinstance(names, str) else type(names).__name__
        raise ContractError("names", f"got {kind}, expected several names")
    wanted = {index.aliases.get(name, name) for name in names}
    unknown = sorted(map(str, wanted - index.keys()))
    if unknown:
        raise ContractError(
            "names",
            f"got {unknown[0]!a:.90}, which {files.path} does not have ({len(unknown)} of such)",
        )
    return tuple(entry for entry in index.entries if entry.name in wanted)


def _payload(entries: Iterable[TensorEntry]) -> int:
    return sum(entry.nbytes for entry in entries)
