"""A load that several ranks do together, from opening the files to the report."""

from __future__ import annotations

import os
import time
from collections.abc import Collection
from contextlib import ExitStack
from typing import Any

import torch

from vlmcore.limits import WeightLimits
from vlmcore.weights._crew import Cancelling, Progress, stop_if
from vlmcore.weights._granting import granted
from vlmcore.weights._torch.checking import PieceChecks
from vlmcore.weights._torch.exchange import Crew, crew_of
from vlmcore.weights._torch.reading import Reading, open_device
from vlmcore.weights._torch.staging import Ring, place
from vlmcore.weights._torch.tensors import wanted_dtypes
from vlmcore.weights.budget import ReadBudget
from vlmcore.weights.manifest import Manifest
from vlmcore.weights.opening import open_files
from vlmcore.weights.ranges import RangeReader
from vlmcore.weights.report import LoadReport, Way
from vlmcore.weights.verifying import Verification

__all__ = ["load_together"]


def load_together(
    path: str | os.PathLike[str],
    *,
    group: Any,
    device: torch.device | str,
    dtype: torch.dtype | str | None,
    names: Collection[str] | None,
    verification: Verification,
    manifest: Manifest | None,
    budget: ReadBudget,
    progress: Progress | None,
    cancel: Cancelling | None,
    limits: WeightLimits | None,
) -> tuple[dict[str, torch.Tensor], LoadReport]:
    """
    Load tensors together with other ranks; see `vlmcore.weights.shards.load_shards`.

    Returns:
        The tensors by name, and what was done.

    Raises:
        WeightsError: If a rank cannot.
        ContractError: If the ranks were not introduced, or an argument is wrong.
    """
    target = open_device(device)
    crew = crew_of(group, target)
    shown = os.fspath(path)
    with ExitStack() as opened:
        load = _Share(crew, budget, progress, cancel)

        def prepare() -> bytes:
            reading = Reading(
                files=opened.enter_context(open_files(path, limits=limits)),
                device=target,
                way=Way.COPY,
                budget=budget,
                verification=verification,
                manifest=manifest,
            )
            with granted(shown, reading.files.index.payload_bytes):
                return load.prepare(opened, reading, names, dtype)

        crew.agree(shown, prepare)
        return load.run(shown)


class _Share:
    """What one rank does."""

    def __init__(
        self,
        crew: Crew,
        budget: ReadBudget,
        progress: Progress | None,
        cancel: Cancelling | None,
    ) -> None:
        self._crew = crew
        self._budget = budget
        self._progress = progress
        self._cancel = cancel
        self._done = 0
        self._since = time.perf_counter()

    def prepare(
        self,
        opened: ExitStack,
        reading: Reading,
        names: Collection[str] | None,
        dtype: torch.dtype | str | None,
    ) -> bytes:
        """Do all that may fail before ranks wait for each other; say what must be the same."""
        self._files = reading.files
        index = self._files.index
        self._asked = [*index, *index.aliases] if names is None else list(names)
        wanted = wanted_dtypes(index, self._asked, dtype)
        self._entries = [index[name] for name in wanted]
        self._payload = sum(entry.nbytes for entry in self._entries)
        self._checks = PieceChecks(self._entries, reading.expected)
        reading.require_room(wanted)
        self._flat = reading.allocate(self._entries, wanted)
        self._ring = Ring(
            self._budget.staging_bytes // 2,  # the other half is for messages
            self._payload,
            part_bytes=self._budget.chunk_bytes,
            pins=False,
            slots=self._crew.size + 1,
        )
        self._reader = opened.enter_context(RangeReader(self._files, self._budget))
        return repr((self._entries, self._ring.chunk_bytes)).encode()

    def run(self, path: str) -> tuple[dict[str, torch.Tensor], LoadReport]:
        """Read this rank's share, and get those of the others."""
        prepared = time.perf_counter()
        shared = self._crew.share(path, self._entries, self._reader, self._ring, go_on=self._go_on)
        with granted(path, self._payload):
            for chunk, slot in shared:
                place(chunk, slot, self._flat)
                self._checks.note(chunk, slot)
                self._done += sum(piece.stop - piece.start for piece in chunk.pieces)
        self._files.check_unchanged()
        self._tell()
        self._checks.finish(path)
        report = LoadReport(
            path=path,
            way=Way.COPY,
            tensors=len(self._flat),
            payload_bytes=self._payload,
            direct_bytes=self._reader.direct_bytes,
            plain_bytes=self._reader.plain_bytes,
            staging_bytes=2 * self._ring.nbytes + self._reader.staging_bytes,
            verified_bytes=self._checks.nbytes,
            phases_s={
                "prepare": prepared - self._since,
                "share": time.perf_counter() - prepared,
            },
            steps_down=(*self._budget.steps_down, *self._reader.steps_down),
        )
        index = self._files.index
        tensors = {name: flat.reshape(index[name].shape) for name, flat in self._flat.items()}
        aliases = index.aliases
        return {name: tensors[aliases.get(name, name)] for name in self._asked}, report

    def _go_on(self) -> None:
        if self._done:
            self._tell()
        stop_if(self._cancel, self._files.path, self._done, self._payload)

    def _tell(self) -> None:
        if self._progress is not None:
            self._progress(self._done, self._payload)
