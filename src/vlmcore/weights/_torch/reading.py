"""Weights as tensors of torch, on any device: mapped, copied, or by way of staging memory."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping

import attrs
import torch

from vlmcore._host_memory import in_gib
from vlmcore.errors import ContractError, WeightsBudgetError
from vlmcore.weights._arena import require_room
from vlmcore.weights._crew import Cancelling, Progress, stop_if
from vlmcore.weights._granting import granted
from vlmcore.weights._torch.checking import PieceChecks, expected_checksums
from vlmcore.weights._torch.staging import Carrier, Ring, place
from vlmcore.weights._torch.tensors import tensor_over, torch_dtype
from vlmcore.weights.budget import ReadBudget
from vlmcore.weights.index import TensorEntry
from vlmcore.weights.loading import read_weights
from vlmcore.weights.manifest import Manifest
from vlmcore.weights.opening import WeightFiles
from vlmcore.weights.ranges import RangeReader
from vlmcore.weights.report import LoadReport, Way
from vlmcore.weights.verifying import Verification

__all__ = ["Reading", "open_device"]


def open_device(device: torch.device | str) -> torch.device:
    """
    Require a device on which tensors can be made.

    Raises:
        ContractError: If there is none of that name here.
    """
    try:
        found = torch.device(device)
        torch.empty(0, device=found)
    except Exception as error:  # noqa: BLE001 - each backend has errors of its own
        line = str(error).strip().partition("\n")[0]
        problem = f"got {str(device)!r:.80}, expected a device that is here ({line:.200})"
        raise ContractError("device", problem) from None
    if found.type == "meta":
        raise ContractError("device", "got 'meta', expected a device that holds numbers")
    return found


@attrs.frozen(kw_only=True, eq=False)
class Reading:
    """
    Reads tensors of files that are open.

    Attributes:
        files: The files.
        device: Where the tensors go.
        way: How they are had, on the CPU; elsewhere they are copied.
        budget: How files are read.
        progress: Called with the bytes that are done and those that there are.
        cancel: Stops it from another thread.
        verification: How much is compared with the manifest.
        manifest: What they were; the manifest beside the files if it is ``None``.
        expected: The checksums of the tensors that are compared.
    """

    files: WeightFiles
    device: torch.device
    way: Way
    budget: ReadBudget
    progress: Progress | None = None
    cancel: Cancelling | None = None
    verification: Verification = Verification.OFF
    manifest: Manifest | None = None
    expected: Mapping[str, str] = attrs.field(init=False)

    @expected.default
    def _expected(self) -> Mapping[str, str]:
        return expected_checksums(self.files, self.verification, self.manifest)

    def read(self, wanted: Mapping[str, torch.dtype]) -> tuple[dict[str, torch.Tensor], LoadReport]:
        """
        Read tensors.

        Args:
            wanted: The dtype that each is wanted in, by its name in the files.

        Returns:
            The tensors by name, and what was done.

        Raises:
            WeightsError: If they cannot be read.
            WeightsBudgetError: If they do not fit into memory.
            WeightsCancelledError: If it was cancelled.
        """
        entries = {name: self.files.index[name] for name in wanted}
        plain = [
            name for name, entry in entries.items() if torch_dtype(entry.dtype) == wanted[name]
        ]
        total = sum(entry.nbytes for entry in entries.values())
        self.require_room(wanted)
        with granted(self.files.path, total):
            if self.device.type != "cpu":
                return self._staged(wanted, self.progress)
            if self.way is Way.VIEWS or len(plain) == len(wanted):
                return self._on_host(wanted, self.progress)
            return self._in_two_steps(wanted, plain, total)

    def _in_two_steps(
        self, wanted: Mapping[str, torch.dtype], plain: list[str], total: int
    ) -> tuple[dict[str, torch.Tensor], LoadReport]:
        """Copy what is *plain*, and read the rest by way of staging memory, to convert it."""
        tensors, report = self._on_host(
            {name: wanted[name] for name in plain}, _of_whole(self.progress, 0, total)
        )
        others = {name: wanted[name] for name in wanted.keys() - set(plain)}
        converted, more = self._staged(
            others, _of_whole(self.progress, report.payload_bytes, total)
        )
        return {**tensors, **converted}, _both(report, more)

    def _on_host(
        self, wanted: Mapping[str, torch.dtype], progress: Progress | None
    ) -> tuple[dict[str, torch.Tensor], LoadReport]:
        with read_weights(
            self.files,
            way=self.way,
            names=wanted.keys(),
            verification=self.verification,
            manifest=self.manifest,
            budget=self.budget,
            progress=progress,
            cancel=self.cancel,
        ) as weights:
            tensors = {
                name: tensor_over(torch.from_numpy(weights.raw(name)), weights.entry(name)).to(
                    dtype
                )
                for name, dtype in wanted.items()
            }
            return tensors, weights.report

    def _staged(
        self, wanted: Mapping[str, torch.dtype], progress: Progress | None
    ) -> tuple[dict[str, torch.Tensor], LoadReport]:
        """Read into staging memory, and copy out of it meanwhile."""
        since = time.perf_counter()
        entries = [self.files.index[name] for name in wanted]
        payload = sum(entry.nbytes for entry in entries)
        flat = self.allocate(entries, wanted)
        allocated = time.perf_counter()
        with Carrier(self.device) as carrier, RangeReader(self.files, self.budget) as reader:
            ring = Ring(
                self.budget.staging_bytes,
                payload,
                part_bytes=self.budget.chunk_bytes,
                pins=carrier.pins,
            )
            checks = PieceChecks(entries, self.expected)
            done = 0
            for chunk, slot in ring.chunks(entries, reader):
                with carrier.copying(slot):
                    place(chunk, slot, flat, in_stream=carrier.pins)
                checks.note(chunk, slot)
                done += sum(piece.stop - piece.start for piece in chunk.pieces)
                self._tell(progress, done, payload)
        self.files.check_unchanged()
        checks.finish(self.files.path)
        report = LoadReport(
            path=self.files.path,
            way=Way.COPY,
            tensors=len(entries),
            payload_bytes=payload,
            direct_bytes=reader.direct_bytes,
            plain_bytes=reader.plain_bytes,
            staging_bytes=ring.nbytes + reader.staging_bytes,
            verified_bytes=checks.nbytes,
            phases_s={"allocate": allocated - since, "read": time.perf_counter() - allocated},
            steps_down=(*self.budget.steps_down, *ring.steps_down, *reader.steps_down),
        )
        tensors = {entry.name: flat[entry.name].reshape(entry.shape) for entry in entries}
        return tensors, report

    def require_room(self, wanted: Mapping[str, torch.dtype]) -> None:
        """
        Require that the host has room for what is not mapped, before any of it is read.

        Other devices say themselves what they do not have, as `allocate` asks them.

        Raises:
            WeightsBudgetError: If it has not.
        """
        if self.device.type != "cpu":
            return
        entries = [self.files.index[name] for name in wanted]
        needed = sum(
            _nbytes(entry, wanted[entry.name])
            for entry in entries
            if self.way is Way.COPY or torch_dtype(entry.dtype) != wanted[entry.name]
        )
        require_room(self.files.path, needed)

    def allocate(
        self, entries: list[TensorEntry], wanted: Mapping[str, torch.dtype]
    ) -> dict[str, torch.Tensor]:
        """
        Have all memory before anything is read, so that a lack of it is known soon.

        Returns:
            Memory for each of *entries*, of one axis, by name.

        Raises:
            WeightsBudgetError: If the device does not have it.
        """
        needed = sum(_nbytes(entry, wanted[entry.name]) for entry in entries)
        try:
            return {
                entry.name: torch.empty(
                    math.prod(entry.shape), dtype=wanted[entry.name], device=self.device
                )
                for entry in entries
            }
        except (torch.OutOfMemoryError, MemoryError, RuntimeError) as error:
            problem = f"needs {in_gib(needed)} on {self.device}, and they are not free there"
            raise WeightsBudgetError(self.files.path, problem, needed, 0) from error

    def _tell(self, progress: Progress | None, done: int, total: int) -> None:
        if progress is not None:
            progress(done, total)
        stop_if(self.cancel, self.files.path, done, total)


def _nbytes(entry: TensorEntry, dtype: torch.dtype) -> int:
    return math.prod(entry.shape) * dtype.itemsize


def _of_whole(progress: Progress | None, before: int, total: int) -> Progress | None:
    """Tell of a part, which comes after *before* bytes, as of the *total* that there is."""
    if progress is None:
        return None
    return lambda done, _: progress(before + done, total)


def _both(one: LoadReport, other: LoadReport) -> LoadReport:
    """Report two reads that came one after the other."""
    phases = dict(one.phases_s)
    for name, seconds in other.phases_s.items():
        phases[name] = phases.get(name, 0.0) + seconds
    return attrs.evolve(
        one,
        tensors=one.tensors + other.tensors,
        payload_bytes=one.payload_bytes + other.payload_bytes,
        direct_bytes=one.direct_bytes + other.direct_bytes,
        plain_bytes=one.plain_bytes + other.plain_bytes,
        staging_bytes=max(one.staging_bytes, other.staging_bytes),
        verified_bytes=one.verified_bytes + other.verified_bytes,
        phases_s=phases,
        steps_down=tuple(dict.fromkeys((*one.steps_down, *other.steps_down))),
    )
