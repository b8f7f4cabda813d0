"""Files of weights from arrays or tensors, written whole or not at all."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

import attrs

from vlmcore._arguments import require_path
from vlmcore._whole_files import what_failed, whole_file
from vlmcore.errors import ContractError, WeightsError
from vlmcore.weights._array_sources import source_of
from vlmcore.weights._crew import Cancelling, Progress, stop_if
from vlmcore.weights.checksums import new_checksum
from vlmcore.weights.index import TensorEntry, WeightIndex
from vlmcore.weights.layouts import ALIGN_BYTES, Layout, lay_out_flashpack, lay_out_safetensors
from vlmcore.weights.manifest import (
    Manifest,
    Provenance,
    coming_manifest_path,
    manifest_path,
    write_manifest,
)

__all__ = ["Written", "write_layout", "write_pack", "write_safetensors"]

_ZEROS = bytes(0x1000)


@attrs.frozen(kw_only=True, eq=False)
class Written:
    """
    A file that was written.

    Attributes:
        path: Its path.
        layout: What is where in it.
        manifest: What was written beside it; ``None`` if nothing was.
    """

    path: str
    layout: Layout
    manifest: Manifest | None


def write_pack(
    tensors: Mapping[str, Any],
    path: str | os.PathLike[str],
    *,
    align_bytes: int = ALIGN_BYTES,
    manifest: bool = True,
    progress: Progress | None = None,
    cancel: Cancelling | None = None,
) -> Written:
    """
    Write a FlashPack file, as upstream's writer does, byte for byte.

    Nothing is converted and nothing left out: what cannot be written is an error before there is a
    file. Tensors need not be contiguous, and may be on a device; each is fetched when its turn
    comes, so that no more than one is held a second time.

    Args:
        tensors: Arrays of NumPy, also those of ``ml_dtypes``, or tensors of torch, by name.
        path: The file; one that is there is replaced when the new one is whole.
        align_bytes: What each tensor is aligned to.
        manifest: Whether checksums are written beside it, which needs ``xxhash``.
        progress: Called with the bytes that are written and those that there are.
        cancel: Stops it from another thread.

    Raises:
        ContractError: If a name or a dtype cannot be in such a file, or there is nothing to pack.
        WeightsError: If the file cannot be written, or there is no room for it.
        WeightsCancelledError: If *cancel* says so.

    Example:
        >>> import tempfile
        >>> import numpy as np
        >>> from vlmcore.weights.opening import open_files
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = f"{folder}/model.flashpack"
        ...     _ = write_pack({"w": np.ones((2, 3), np.float32)}, path)
        ...     with open_files(path) as files:
        ...         print(files.index)
        <WeightIndex flashpack_v3: 1 tensors, 24 bytes>
    """
    sources = {name: source_of(name, value) for name, value in tensors.items()}
    layout = lay_out_flashpack([each.spec for each in sources.values()], align_bytes=align_bytes)
    return write_layout(
        layout,
        require_path("path", path),
        lambda entry: sources[entry.name].chunks(),
        manifest=manifest,
        progress=progress,
        cancel=cancel,
    )


def write_safetensors(
    tensors: Mapping[str, Any],
    path: str | os.PathLike[str],
    *,
    metadata: Mapping[str, str] | None = None,
    manifest: bool = True,
    progress: Progress | None = None,
    cancel: Cancelling | None = None,
) -> Written:
    """
    Write a file of safetensors, as upstream's writer does, byte for byte.

    Args:
        tensors: As of `write_pack`.
        path: As of `write_pack`.
        metadata: What goes under ``__metadata__``; transformers asks for ``{"format": "pt"}``.
        manifest: As of `write_pack`.
        progress: As of `write_pack`.
        cancel: As of `write_pack`.

    Raises:
        ContractError: If a name or a dtype cannot be in such a file.
        WeightsError: If the file cannot be written, or there is no room for it.
        WeightsCancelledError: If *cancel* says so.
    """
    sources = {name: source_of(name, value) for name, value in tensors.items()}
    layout = lay_out_safetensors([each.spec for each in sources.values()], metadata=metadata)
    return write_layout(
        layout,
        require_path("path", path),
        lambda entry: sources[entry.name].chunks(),
        manifest=manifest,
        progress=progress,
        cancel=cancel,
    )


def write_layout(
    layout: Layout,
    path: str,
    chunks: Callable[[TensorEntry], Iterator[memoryview]],
    *,
    manifest: bool = True,
    provenance: Callable[[], Provenance] | None = None,
    check: Callable[[], None] = lambda: None,
    progress: Progress | None = None,
    cancel: Cancelling | None = None,
) -> Written:
    """
    Write a file as it was laid out, and its manifest beside it.

    Args:
        layout: What goes where.
        path: The file.
        chunks: Gives the bytes of a tensor, piece by piece; called once for each, in their order.
        manifest: Whether a manifest is written; without, one of an older file is removed.
        provenance: Says where the tensors come from, asked when they are written.
        check: Called before the file takes its place; what it raises keeps it from that.
        progress: Called with the bytes that are written and those that there are.
        cancel: Stops it from another thread.

    Raises:
        WeightsError: If the file cannot be written, or there is no room for it.
        WeightsCancelledError: If *cancel* says so.
    """
    name = Path(path).name
    if not name:
        raise WeightsError(path, "is no path of a file")
    _require_room(path, layout.size_bytes)
    index = layout.index(name)  # so that it is read again as it is written
    writer = _Writer(path, layout.size_bytes, progress, cancel, checksums=manifest)
    said: Manifest | None = None
    beside, coming = manifest_path(path), None
    try:
        with whole_file(path) as file:
            writer.write_all(file, layout, chunks)
            check()
            file.flush()
            os.fsync(file.fileno())  # what has no room is known before anything is replaced
            said = writer.manifest(index, provenance and provenance()) if manifest else None
            coming = _announce(said, path)
        announced, coming = coming, None  # the file is replaced: what was announced has to come
        if announced is not None:
            _replace_manifest(announced, beside, is_there=manifest)
    except ContractError as error:
        problem = error.problem if error.field == path else str(error)
        raise WeightsError(path, problem) from None
    except OSError as error:
        raise WeightsError(str(beside), what_failed(error)) from None
    finally:
        if coming is not None:
            coming.unlink(missing_ok=True)
    return Written(path=path, layout=layout, manifest=said)


def _announce(manifest: Manifest | None, path: str) -> Path | None:
    """
    Put what comes beside the manifest that is there, so that an end in between is seen.

    Without a manifest to come, an empty file announces that the old one goes.
    """
    beside = manifest_path(path)
    if manifest is None and not os.path.lexists(beside):
        return None
    if beside.is_dir():
        raise WeightsError(str(beside), "is a folder, expected a file")
    coming = coming_manifest_path(path)
    if manifest is None:
        coming.touch()
    else:
        write_manifest(manifest, coming)
    return coming


def _replace_manifest(coming: Path, beside: Path, *, is_there: bool) -> None:
    if is_there:
        os.replace(coming, os.path.realpath(beside))  # noqa: PTH105 - a link is kept
    else:
        beside.unlink(missing_ok=True)
        coming.unlink()


class _Writer:
    """Writes one file from its first byte to its last, and makes its checksums meanwhile."""

    def __init__(
        self,
        path: str,
        total: int,
        progress: Progress | None,
        cancel: Cancelling | None,
        *,
        checksums: bool,
    ) -> None:
        self._path = path
        self._total = total
        self._progress = progress
        self._cancel = cancel
        self._makes_checksums = checksums
        self._checksums: dict[str, str] = {}
        self._sha256 = hashlib.sha256()
        self._done = 0

    def write_all(
        self,
        file: BinaryIO,
        layout: Layout,
        chunks: Callable[[TensorEntry], Iterator[memoryview]],
    ) -> None:
        self._write(file, layout.head)
        for entry in layout.entries:
            self._pad(file, entry.start)
            checksum = new_checksum() if self._makes_checksums else None
            for data in chunks(entry):
                self._write(file, data)
                if checksum is not None:
                    checksum.update(data)
            if checksum is not None:
                self._checksums[entry.name] = checksum.hexdigest()
        self._pad(file, layout.payload_stop)
        self._write(file, layout.tail)

    def manifest(self, index: WeightIndex, provenance: Provenance | None) -> Manifest:
        digests = (self._sha256.hexdigest(),)
        return Manifest.of(index, self._checksums, sha256=digests, provenance=provenance)

    def _pad(self, file: BinaryIO, until: int) -> None:
        while self._done < until:
            self._write(file, _ZEROS[: until - self._done])

    def _write(self, file: BinaryIO, data: bytes | memoryview) -> None:
        stop_if(self._cancel, self._path, self._done, self._total)
        file.write(data)
        if self._makes_checksums:
            self._sha256.update(data)
        self._done += len(data)
        if self._progress is not None:
            self._progress(self._done, self._total)


def _require_room(path: str, needed: int) -> None:
    """Require room for the whole file, before minutes are spent on a part of it."""
    folder = Path() if "\0" in path else Path(os.path.realpath(path)).parent
    if not folder.is_dir():
        return  # what is wrong is said where it is written
    free = shutil.disk_usage(folder).free
    if free < needed:
        raise WeightsError(path, f"needs {needed} bytes, and there is room for {free}")
