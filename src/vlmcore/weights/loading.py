"""Weights of a checkpoint as arrays of NumPy: mapped, or in memory of their own."""

from __future__ import annotations

import os
import time
from collections.abc import Collection, Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from vlmcore._closing import Closing
from vlmcore.errors import WeightsError
from vlmcore.limits import WeightLimits
from vlmcore.weights._crew import Cancelling, Progress
from vlmcore.weights._loads import Held, Load
from vlmcore.weights.budget import ReadBudget
from vlmcore.weights.index import TensorEntry, WeightIndex
from vlmcore.weights.manifest import Manifest
from vlmcore.weights.opening import WeightFiles, open_files
from vlmcore.weights.report import LoadReport, Way
from vlmcore.weights.verifying import Verification

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
        held: Held,
        report: LoadReport,
        *,
        owns_files: bool,
    ) -> None:
        self.index: WeightIndex = files.index
        self.report = report
        self._files = files
        self._held = held
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
    verification: Verification = Verification.OFF,
    manifest: Manifest | None = None,
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
        verification: How much of them is compared with their manifest, while they are read.
        manifest: What they were; the manifest that lies beside the files by default.
        budget: How to read; as the host can bear it if it is ``None``.
        progress: Called with the bytes that are done and those that there are.
        cancel: Stops the load from another thread.
        limits: How much is read before the tensors.

    Raises:
        WeightsError: If the files cannot be opened or read; see `open_files`.
        WeightsChangedError: If a file changed while it was read.
        WeightsBudgetError: If the tensors do not fit into the memory that is free.
        WeightChecksumError: If a tensor is another than the manifest says; all are named.
        WeightsCancelledError: If it was cancelled.
        ContractError: If a name is not in the checkpoint, or an argument is of another class.

    Example:
        >>> import tempfile
        >>> import numpy as np
        >>> from vlmcore.weights.writing import write_pack
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = write_pack({"w": np.ones((2, 3), np.float32)}, f"{folder}/m.flashpack").path
        ...     with load_weights(path, way=Way.COPY, verification=Verification.WHOLE) as weights:
        ...         weights["w"].shape, weights.report.verified_bytes
        ((2, 3), 24)
    """
    started = time.perf_counter()
    files = open_files(path, limits=limits)
    try:
        load = Load(files, names, budget, progress, cancel, started=started)
        load.will_compare(verification, manifest)
        return Weights(files, *load.run(way), owns_files=True)
    except BaseException:
        files.close()
        raise


def read_weights(
    files: WeightFiles,
    *,
    way: Way = Way.VIEWS,
    names: Collection[str] | None = None,
    verification: Verification = Verification.OFF,
    manifest: Manifest | None = None,
    budget: ReadBudget | None = None,
    progress: Progress | None = None,
    cancel: Cancelling | None = None,
) -> Weights:
    """Load tensors of files that are open; as `load_weights`, and the files stay the caller's."""
    load = Load(files, names, budget, progress, cancel, started=time.perf_counter())
    load.will_compare(verification, manifest)
    return Weights(files, *load.run(way), owns_files=False)
