"""The work of ``vlmcore weights``: what is said of files of weights, and what is done to them."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from vlmcore.cli._bytes_progress import BytesProgress, in_bytes
from vlmcore.cli._exit_codes import ExitCode
from vlmcore.cli._terminal import Terminal
from vlmcore.errors import ContractError, WeightChecksumError, WeightsError
from vlmcore.limits import WeightLimits
from vlmcore.weights.index import WeightIndex
from vlmcore.weights.manifest import Manifest, manifest_path, read_manifest
from vlmcore.weights.opening import WeightFiles, open_files
from vlmcore.weights.verifying import Verification, find_manifest, verify
from vlmcore.weights.writing import Written

__all__ = ["inspect", "told_of", "verify_files", "write"]


def told_of(terminal: Terminal, work: Callable[[], ExitCode]) -> ExitCode:
    """Do the work, and tell what is wrong with a file in one line."""
    try:
        return work()
    except WeightChecksumError as error:
        terminal.complain(f"vlmcore: {error}")
        return ExitCode.UNSAFE
    except WeightsError as error:
        terminal.complain(f"vlmcore: {error}")
        return ExitCode.INCOMPLETE


def inspect(
    terminal: Terminal, path: str, *, limits: WeightLimits, as_json: bool, tensors: bool
) -> ExitCode:
    """
    Tell what files say of their tensors; none of those is read.

    Raises:
        WeightsError: If they cannot be read.
    """
    with open_files(path, limits=limits) as files:
        manifest = _manifest_beside(files)
        if as_json:
            terminal.document(_document(files.index, manifest), indent=2)
            return ExitCode.DONE
        for line in (*_summary(files, manifest), *(_tensor_lines(files.index) if tensors else ())):
            terminal.line(line)
    return ExitCode.DONE


def write(
    terminal: Terminal,
    work: Callable[[BytesProgress], Written],
    *,
    doing: str,
    as_json: bool,
    quiet: bool,
) -> ExitCode:
    """
    Write a file, and tell what was written.

    Raises:
        WeightsError: If a file cannot be read or written.
    """
    with BytesProgress(doing, quiet=quiet) as progress:
        try:
            written = work(progress)
        except ContractError as error:  # about what is in the files, and not about the words
            raise WeightsError(error.field, error.problem) from None
    layout = written.layout
    if as_json:
        terminal.document(_document(layout.index(Path(written.path).name), written.manifest))
        return ExitCode.DONE
    terminal.line(
        f"{written.path}: {layout.format.value}, {len(layout.entries)} tensors, "
        f"{in_bytes(layout.size_bytes)}"
    )
    return ExitCode.DONE


def verify_files(
    terminal: Terminal,
    path: str,
    *,
    manifest: str | None,
    limits: WeightLimits,
    how: Verification,
    seed: int,
    as_json: bool,
    quiet: bool,
) -> ExitCode:
    """
    Compare files with their manifest, and tell what was compared.

    Raises:
        WeightsError: If they cannot be read, or there is no manifest.
        WeightChecksumError: If they are others.
    """
    said = None if manifest is None else read_manifest(manifest, limits=limits)
    with (
        open_files(path, limits=limits) as files,
        BytesProgress("comparing", quiet=quiet) as progress,
    ):
        try:
            found = verify(files, said, how=how, seed=seed, progress=progress)
        except WeightChecksumError as error:
            if as_json:
                terminal.document({"path": path, "same": False, "tensors": list(error.tensors)})
            raise
    if as_json:
        counts = {"tensors": found.tensors, "bytes": found.bytes}
        whole = {"of_tensors": found.of_tensors, "of_bytes": found.of_bytes}
        terminal.document({"path": path, "same": True, "compared": {**counts, **whole}})
    else:
        terminal.line(
            f"{path}: {found.tensors} of {found.of_tensors} tensors "
            f"({in_bytes(found.bytes)}) are those of the manifest"
        )
    return ExitCode.DONE


def _manifest_beside(files: WeightFiles) -> Manifest | None:
    beside = manifest_path(files.chosen)
    return find_manifest(files) if os.path.lexists(beside) else None


def _summary(files: WeightFiles, manifest: Manifest | None) -> Iterator[str]:
    index = files.index
    size = in_bytes(index.payload_bytes)
    yield f"{files.path}: {index.format.value}, {len(index)} tensors, {size}"
    for file in index.files:
        yield f"  file {file.name}: {in_bytes(file.size_bytes)}"
    for dtype, count, nbytes in _by_dtype(index):
        yield f"  {dtype}: {count} tensors, {in_bytes(nbytes)}"
    for alias, name in index.aliases.items():
        yield f"  {alias} is {name}"
    if manifest is None:
        yield "  no manifest"
        return
    yield f"  manifest: payload {manifest.payload}"
    if manifest.provenance is not None:
        revision = manifest.provenance.revision
        yield f"  from {manifest.provenance.checkpoint}{f' at {revision}' if revision else ''}"


def _tensor_lines(index: WeightIndex) -> Iterator[str]:
    for entry in index.entries:
        yield f"{entry.name}  {entry.dtype.value}  {list(entry.shape)}  {in_bytes(entry.nbytes)}"


def _by_dtype(index: WeightIndex) -> list[tuple[str, int, int]]:
    counts: Counter[str] = Counter()
    sizes: Counter[str] = Counter()
    for entry in index.entries:
        counts[entry.dtype.value] += 1
        sizes[entry.dtype.value] += entry.nbytes
    return [(dtype, counts[dtype], size) for dtype, size in sizes.most_common()]


def _document(index: WeightIndex, manifest: Manifest | None) -> dict[str, Any]:
    checksums = {} if manifest is None else manifest.tensors
    source = None if manifest is None else manifest.provenance
    return {
        "format": index.format.value,
        "files": [{"name": file.name, "size_bytes": file.size_bytes} for file in index.files],
        "payload_bytes": index.payload_bytes,
        "metadata": dict(index.metadata),
        "aliases": dict(index.aliases),
        "manifest": None
        if manifest is None
        else {
            "payload_xxh3_128": manifest.payload,
            "sha256": [file.sha256 for file in manifest.files],
            "checkpoint": None if source is None else source.checkpoint,
            "revision": None if source is None else source.revision,
        },
        "tensors": [
            {
                "name": entry.name,
                "dtype": entry.dtype.value,
                "shape": list(entry.shape),
                "file": index.files[entry.file].name,
                "start": entry.start,
                "stop": entry.stop,
                "xxh3_128": checksums.get(entry.name),
            }
            for entry in index.entries
        ],
    }
