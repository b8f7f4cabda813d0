"""Files of weights from files of another format, without holding more than some MiB of them."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import attrs

from vlmcore._arguments import require_path
from vlmcore.errors import WeightsError
from vlmcore.limits import WeightLimits
from vlmcore.weights._converting import convert, converted, float_target
from vlmcore.weights._crew import Cancelling, Progress
from vlmcore.weights._granting import granted
from vlmcore.weights._streaming import Piece, pieces_of
from vlmcore.weights.budget import ReadBudget
from vlmcore.weights.checksums import sha256_of
from vlmcore.weights.dtypes import DType
from vlmcore.weights.index import TensorEntry
from vlmcore.weights.layouts import (
    ALIGN_BYTES,
    Layout,
    TensorSpec,
    lay_out_flashpack,
    lay_out_safetensors,
)
from vlmcore.weights.manifest import FileNote, Provenance
from vlmcore.weights.opening import WeightFiles, open_files
from vlmcore.weights.writing import Written, write_layout

__all__ = ["pack", "unpack"]

_STAGING = 0x200_0000
_READERS = 4
_PYTORCH = {"format": "pt"}  # transformers asks for it


def pack(
    source: str | os.PathLike[str],
    target: str | os.PathLike[str],
    *,
    dtype: DType | str | None = None,
    align_bytes: int = ALIGN_BYTES,
    checkpoint: str | None = None,
    revision: str | None = None,
    manifest: bool = True,
    limits: WeightLimits | None = None,
    progress: Progress | None = None,
    cancel: Cancelling | None = None,
) -> Written:
    """
    Pack a checkpoint into one FlashPack file, as upstream's writer does, byte for byte.

    Tensors go from file to file piece by piece: some 32 MiB are held at a time. What was at
    *target* is there until the new file is whole, and nothing is left of one that was not finished.

    Args:
        source: What `vlmcore.weights.opening.open_files` opens.
        target: The pack.
        dtype: What floating-point numbers of 16 bits and more are converted to: ``"float16"``,
            ``"bfloat16"``, ``"float32"``, ``"float64"``. Nothing else is converted, nothing at all
            by default.
        align_bytes: What each tensor is aligned to.
        checkpoint: What the manifest calls the source; its name, or that of its repository where
            it lies in the cache of a hub, by default.
        revision: The version of it; the commit, where it lies in the cache of a hub, by default.
        manifest: Whether checksums and the source are written beside it, which needs ``xxhash``.
        limits: How much of the source's headers is read.
        progress: Called with the bytes that are written and those that there are.
        cancel: Stops it from another thread.

    Raises:
        ContractError: If there is nothing to pack, or a number does not fit *dtype*.
        WeightsError: If a file cannot be read or written, or there is no room for it.
        CorruptWeightsError: If what the source says cannot be true.
        WeightsCancelledError: If *cancel* says so.

    Example:
        >>> import tempfile
        >>> from vlmcore.embedded import model_directory
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     written = pack(model_directory(), f"{folder}/model.flashpack")
        ...     print(written.layout.format.value, written.manifest.provenance.checkpoint)
        flashpack_v3 model
    """
    with open_files(source, limits=limits) as files:
        layout = lay_out_flashpack(_specs(files, float_target(dtype)), align_bytes=align_bytes)
        work = _Rewriting(files, layout, require_path("target", target), progress, cancel)
        return work.run(_origin(files, checkpoint, revision) if manifest else None)


def unpack(
    source: str | os.PathLike[str],
    target: str | os.PathLike[str],
    *,
    dtype: DType | str | None = None,
    checkpoint: str | None = None,
    revision: str | None = None,
    manifest: bool = True,
    limits: WeightLimits | None = None,
    progress: Progress | None = None,
    cancel: Cancelling | None = None,
) -> Written:
    """
    Write a checkpoint as one file of safetensors, as upstream's writer does, byte for byte.

    What safetensors say beside their tensors is kept; of a pack, which says nothing, they say
    ``{"format": "pt"}``.

    Args:
        source: As of `pack`.
        target: The file of safetensors.
        dtype: As of `pack`.
        checkpoint: As of `pack`.
        revision: As of `pack`.
        manifest: As of `pack`.
        limits: As of `pack`.
        progress: As of `pack`.
        cancel: As of `pack`.

    Raises:
        ContractError: If safetensors has no word for a dtype, or a number does not fit *dtype*.
        WeightsError: If a file cannot be read or written, or there is no room for it.
        CorruptWeightsError: If what the source says cannot be true.
        WeightsCancelledError: If *cancel* says so.
    """
    with open_files(source, limits=limits) as files:
        metadata = files.index.metadata or _PYTORCH
        layout = lay_out_safetensors(_specs(files, float_target(dtype)), metadata=metadata)
        work = _Rewriting(files, layout, require_path("target", target), progress, cancel)
        return work.run(_origin(files, checkpoint, revision) if manifest else None)


@attrs.frozen
class _Rewriting:
    """One file that is made of others."""

    files: WeightFiles
    layout: Layout
    target: str
    progress: Progress | None
    cancel: Cancelling | None

    def run(self, origin: Provenance | None) -> Written:
        """Write it, with a manifest if there is something to say of its origin."""
        self._require_another_file()
        stopped = threading.Event()
        budget = ReadBudget.for_host(staging_bytes=_STAGING, readers=_READERS)
        entries = [self.files.index[entry.name] for entry in self.layout.entries]
        with granted(self.files.path, _STAGING), ThreadPoolExecutor(1) as beside:
            hashed = None if origin is None else beside.submit(self._with_digests, origin, stopped)
            try:
                with contextlib.closing(pieces_of(self.files, entries, budget)) as pieces:
                    return write_layout(
                        self.layout,
                        self.target,
                        lambda entry: self._chunks(entry, pieces),
                        manifest=origin is not None,
                        provenance=None if hashed is None else hashed.result,
                        check=self.files.check_unchanged,
                        progress=self.progress,
                        cancel=self.cancel,
                    )
            finally:
                stopped.set()

    def _chunks(self, entry: TensorEntry, pieces: Iterator[Piece]) -> Iterator[memoryview]:
        for piece in pieces:
            yield convert(piece.data.data, entry.name, piece.entry.dtype, entry.dtype)
            if piece.is_last:
                return

    def _with_digests(self, origin: Provenance, stopped: threading.Event) -> Provenance:
        notes = [
            FileNote(
                name=file.name,
                size_bytes=file.size_bytes,
                sha256=sha256_of(self.files.fd(i), str(self.files.paths[i]), stop=stopped.is_set),
            )
            for i, file in enumerate(self.files.index.files)
        ]
        return attrs.evolve(origin, files=notes)

    def _require_another_file(self) -> None:
        target = Path(self.target)
        if target.exists() and any(target.samefile(path) for path in self.files.paths):
            raise WeightsError(self.target, "is a file of the source, expected another one")


def _specs(files: WeightFiles, target: DType | None) -> list[TensorSpec]:
    return [
        TensorSpec(entry.name, converted(entry.dtype, target), entry.shape)
        for entry in files.index.entries
    ]


def _origin(files: WeightFiles, checkpoint: str | None, revision: str | None) -> Provenance:
    """Say where *files* come from: by their place in the cache of a hub, or by their name."""
    path = Path(files.path).absolute()
    parts = path.parts
    for i in range(len(parts) - 2):
        if parts[i].startswith("models--") and parts[i + 1] == "snapshots":
            checkpoint = checkpoint or parts[i].removeprefix("models--").replace("--", "/")
            revision = revision or parts[i + 2]
    return Provenance(checkpoint=checkpoint or path.name or "unnamed", revision=revision)
