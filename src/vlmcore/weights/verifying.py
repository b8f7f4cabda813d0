"""Weights compared with their manifest, all or some of them, while they are read or alone."""

from __future__ import annotations

import contextlib
import enum
import os
import random
import threading
from collections.abc import Callable, Sequence
from typing import Any

import attrs

from vlmcore._arrays import require_member
from vlmcore.errors import (
    ContractError,
    CorruptWeightsError,
    WeightChecksumError,
    WeightsError,
)
from vlmcore.weights._crew import Cancelling, Progress, stop_if
from vlmcore.weights._granting import granted
from vlmcore.weights._streaming import pieces_of
from vlmcore.weights.budget import ReadBudget
from vlmcore.weights.checksums import checksum_of, new_checksum, sha256_of
from vlmcore.weights.index import TensorEntry, WeightIndex
from vlmcore.weights.manifest import (
    Manifest,
    Provenance,
    coming_manifest_path,
    index_checksum,
    manifest_path,
    read_manifest,
)
from vlmcore.weights.opening import WeightFiles

__all__ = [
    "TensorChecks",
    "Verification",
    "Verified",
    "find_manifest",
    "manifest_of",
    "verify",
]

_SAMPLE = 16  # of so many bytes one is compared, at least


class Verification(enum.Enum):
    """How much of weights is compared with their manifest."""

    WHOLE = "whole"
    SAMPLED = "sampled"
    OFF = "off"


@attrs.frozen(kw_only=True)
class Verified:
    """
    What was compared, and found the same.

    Attributes:
        tensors: How many tensors.
        bytes: How many bytes of them.
        of_tensors: How many tensors there are.
        of_bytes: How many bytes those have.
    """

    tensors: int
    bytes: int
    of_tensors: int
    of_bytes: int


class TensorChecks:
    """
    Compares tensors with a manifest as they are read, in any order and by any number of threads.

    Args:
        files: The files. What they say is compared here and now: names, types, shapes and places.
        manifest: What they were.
        how: Which tensors are compared; some of at least a sixteenth of all bytes, or all.
        seed: Which of them, where they are some.

    Attributes:
        names: The tensors that are to be compared.

    Raises:
        CorruptWeightsError: If the files say something else of their tensors.

    Example:
        >>> import tempfile
        >>> import numpy as np
        >>> from vlmcore.weights.opening import open_files
        >>> from vlmcore.weights.writing import write_pack
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     written = write_pack({"w": np.ones(4, np.float32)}, f"{folder}/m.flashpack")
        ...     with open_files(written.path) as files:
        ...         checks = TensorChecks(files, written.manifest)
        >>> checks.check("w", np.ones(4, np.float32))
        >>> checks.finish().bytes
        16
    """

    def __init__(
        self,
        files: WeightFiles,
        manifest: Manifest,
        *,
        how: Verification = Verification.WHOLE,
        seed: int = 0,
    ) -> None:
        require_member(Verification, how=how)
        if type(manifest) is not Manifest:  # a path, most often
            kind = type(manifest).__name__
            raise ContractError(
                "manifest", f"got {kind}, expected a Manifest: read_manifest reads one"
            )
        self._path = files.path
        self._coming = coming_manifest_path(files.chosen)
        self._index = files.index
        self._manifest = manifest
        self._lock = threading.Lock()
        self._done: dict[str, bool] = {}
        self.names: frozenset[str] = frozenset()
        if how is not Verification.OFF:
            try:
                _require_same_index(files, manifest)
            except CorruptWeightsError:
                self._require_replaced()
                raise
            self.names = _chosen(files.index, how, seed)

    def check(self, name: str, data: Any) -> None:
        """
        Compare a tensor whose bytes are all there; nothing happens if it is not to be compared.

        Args:
            name: The tensor.
            data: Its bytes, any contiguous buffer.
        """
        if name in self.names:
            self.note(name, checksum_of(data))

    def note(self, name: str, checksum: str) -> None:
        """Compare a tensor by a checksum that the caller made while its bytes went by."""
        with self._lock:
            self._done[name] = checksum == self._manifest.tensors[name]

    def finish(self) -> Verified:
        """
        Tell what was compared.

        Raises:
            WeightsError: If a writer was ended while it replaced the file and its manifest.
            WeightChecksumError: If one was another; all of them are named.
        """
        other = tuple(
            each.name for each in self._index.entries if self._done.get(each.name) is False
        )
        if other:
            self._require_replaced()
            raise WeightChecksumError(self._path, other)
        return Verified(
            tensors=len(self._done),
            bytes=sum(self._index[name].nbytes for name in self._done),
            of_tensors=len(self._index),
            of_bytes=self._index.payload_bytes,
        )

    def _require_replaced(self) -> None:
        """Require that no writer was ended between the file and its manifest."""
        if self._coming.exists():
            raise WeightsError(
                self._path,
                "is not what its manifest says, as its writer was ended before it had replaced "
                f"both: {self._coming.name[:200]!a} is still there; write the file again",
            )


def find_manifest(files: WeightFiles) -> Manifest:
    """
    Read the manifest that lies beside *files*: of the pack, or of the index of several files.

    Raises:
        WeightsError: If there is none, as a writer was ended before it took its place or for
            another reason, or it cannot be read.
        CorruptWeightsError: If it is none, or contradicts itself.
    """
    beside, coming = manifest_path(files.chosen), coming_manifest_path(files.chosen)
    if coming.exists() and not os.path.lexists(beside):
        raise WeightsError(
            str(beside),
            "is not there, as its writer was ended before it had replaced it: "
            f"{coming.name[:200]!a} is still there; write the file again",
        )
    return read_manifest(beside, limits=files.limits)


def manifest_of(
    files: WeightFiles,
    *,
    provenance: Provenance | None = None,
    budget: ReadBudget | None = None,
    progress: Progress | None = None,
    cancel: Cancelling | None = None,
) -> Manifest:
    """
    Make the manifest of files that are there, whoever wrote them, for later.

    `vlmcore.weights.manifest.write_manifest` writes it, beside ``files.chosen``.

    Args:
        files: The files.
        provenance: Where their tensors come from.
        budget: How they are read.
        progress: Called with the bytes that are read and those that there are.
        cancel: Stops it from another thread.

    Raises:
        WeightsChangedError: If a file changed since it was opened.
        WeightsError: If a file cannot be read.
        WeightsCancelledError: If *cancel* says so.
    """
    checksums: dict[str, str] = {}
    reading = _Reading(files, budget, progress, cancel)
    reading.go_through(files.index.entries, checksums.__setitem__)
    digests = [sha256_of(files.fd(i), str(path)) for i, path in enumerate(files.paths)]
    files.check_unchanged()
    return Manifest.of(files.index, checksums, sha256=tuple(digests), provenance=provenance)


def verify(
    files: WeightFiles,
    manifest: Manifest | None = None,
    *,
    how: Verification = Verification.WHOLE,
    seed: int = 0,
    budget: ReadBudget | None = None,
    progress: Progress | None = None,
    cancel: Cancelling | None = None,
) -> Verified:
    """
    Compare weights with their manifest, and keep nothing of them.

    Args:
        files: The files.
        manifest: What they were; the manifest that lies beside them by default.
        how: All of them, or some: tensors of at least a sixteenth of all bytes.
        seed: Which of them, where they are some.
        budget: How they are read.
        progress: Called with the bytes that are compared and those that are to be.
        cancel: Stops it from another thread.

    Raises:
        WeightChecksumError: If a tensor is another; all of them are named.
        CorruptWeightsError: If the files say something else of their tensors.
        WeightsChangedError: If a file changed since it was opened.
        WeightsError: If there is no manifest, or a file cannot be read.
        WeightsCancelledError: If *cancel* says so.
    """
    checks = TensorChecks(files, manifest or find_manifest(files), how=how, seed=seed)
    entries = [entry for entry in files.index.entries if entry.name in checks.names]
    _Reading(files, budget, progress, cancel).go_through(entries, checks.note)
    files.check_unchanged()
    return checks.finish()


@attrs.frozen
class _Reading:
    """Reads tensors, and keeps nothing of them but their checksums."""

    files: WeightFiles
    budget: ReadBudget | None
    progress: Progress | None
    cancel: Cancelling | None

    def go_through(self, entries: Sequence[TensorEntry], note: Callable[[str, str], None]) -> None:
        done, total = 0, sum(entry.nbytes for entry in entries)
        checksum = new_checksum()
        pieces = pieces_of(self.files, entries, self.budget or ReadBudget.for_host())
        with granted(self.files.path, total), contextlib.closing(pieces):
            for piece in pieces:
                stop_if(self.cancel, self.files.path, done, total)
                checksum.update(piece.data.data)
                done += len(piece.data)
                if piece.is_last:
                    note(piece.entry.name, checksum.hexdigest())
                    checksum = new_checksum()
                if self.progress is not None:
                    self.progress(done, total)


def _chosen(index: WeightIndex, how: Verification, seed: int) -> frozenset[str]:
    if how is Verification.WHOLE:
        return frozenset(index)
    left = list(index.entries)
    random.Random(seed).shuffle(left)  # noqa: S311 - no secret: who reads may choose the seed
    wanted, names = -(-index.payload_bytes // _SAMPLE), set[str]()
    while left and wanted > 0:
        entry: TensorEntry = left.pop()
        names.add(entry.name)
        wanted -= entry.nbytes
    return frozenset(names)


def _require_same_index(files: WeightFiles, manifest: Manifest) -> None:
    index = files.index
    missing = [name for name in manifest.tensors if name not in index]
    more = [name for name in index if name not in manifest.tensors]
    if missing or more:
        name = (missing or more)[0]
        how = "is not there" if missing else "is there"
        raise CorruptWeightsError(
            files.path, f"{name!a:.90} {how}, and the manifest says otherwise"
        )
    if index_checksum(index) != manifest.index:
        raise CorruptWeightsError(
            files.path, "has other types, shapes or places of tensors than its manifest says"
        )
    sizes = [file.size_bytes for file in index.files]
    if sizes != [file.size_bytes for file in manifest.files]:
        raise CorruptWeightsError(files.path, "has files of other sizes than its manifest says")
    if manifest.payload_bytes != index.payload_bytes:
        raise CorruptWeightsError(
            files.path,
            f"has {index.payload_bytes} bytes of tensors, and its manifest says "
            f"{manifest.payload_bytes}",
        )
