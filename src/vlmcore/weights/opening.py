"""Opening files of weights once, checked, so that what is read later is what was checked."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path

import attrs

from vlmcore._arguments import require_kind, require_path
from vlmcore._closing import Closing
from vlmcore._whole_files import what_failed
from vlmcore.errors import (
    ContractError,
    CorruptWeightsError,
    LimitExceededError,
    WeightsChangedError,
    WeightsError,
    WeightsLimitError,
)
from vlmcore.limits import WeightLimits, require_at_most
from vlmcore.weights import flashpack_format, safetensors_format
from vlmcore.weights._candidates import is_safetensors, is_shard_index, weights_of
from vlmcore.weights.index import TensorEntry, WeightFile, WeightFormat, WeightIndex, is_tensor_name
from vlmcore.weights.safetensors_format import Header, Shards

__all__ = ["WeightFiles", "open_files"]


@attrs.frozen
class _Identity:
    """What tells a file from others, and from itself after it was written to."""

    device: int
    inode: int
    size_bytes: int
    modified_ns: int

    @classmethod
    def of(cls, status: os.stat_result) -> _Identity:
        return cls(status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)


@attrs.frozen
class _Opened:
    path: Path
    fd: int
    identity: _Identity


_FLAGS = (
    os.O_RDONLY
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_NONBLOCK", 0)  # what became a pipe since it was asked must not wait
    | getattr(os, "O_NOCTTY", 0)
    | getattr(os, "O_BINARY", 0)
)


class WeightFiles(Closing):
    """
    The files of a checkpoint, open, and what they say; `open_files` makes it. Close it after use.

    Descriptors are read from by position (``os.pread``), by as many threads as like to.

    Attributes:
        path: The path as the caller gave it.
        chosen: The file that it stands for: itself, or one in the folder that it is; of several
            files their index. The manifest lies beside it.
        index: Where each tensor lies.
        limits: What they were opened with.
    """

    def __init__(
        self,
        path: str,
        chosen: Path,
        index: WeightIndex,
        opened: tuple[_Opened, ...],
        *,
        limits: WeightLimits,
    ) -> None:
        self.path = path
        self.chosen = chosen
        self.index = index
        self.limits = limits
        self._is_open = True
        self._opened = opened

    def fd(self, file: int) -> int:
        """
        Return the descriptor of the file at position *file* of the index.

        Raises:
            WeightsError: If the files are closed.
        """
        if not self._is_open:
            raise WeightsError(self.path, "is closed, expected to be open")
        return self._opened[file].fd

    @property
    def paths(self) -> tuple[Path, ...]:
        """The path of each file, in the order of the index."""
        return tuple(each.path for each in self._opened)

    def check_unchanged(self) -> None:
        """
        Require that every open file is as it was when it was opened: its size, its last change.

        What was put in its place under the same name since is another file, and is not read.

        Raises:
            WeightsChangedError: If one is not.
        """
        for number, each in enumerate(self._opened):
            now = _Identity.of(os.fstat(self.fd(number)))
            if now.size_bytes != each.identity.size_bytes:
                raise WeightsChangedError(
                    str(each.path),
                    f"has {now.size_bytes} bytes, and had {each.identity.size_bytes} when opened",
                )
            if now != each.identity:
                raise WeightsChangedError(str(each.path), "was written to after it was opened")

    def close(self) -> None:
        """Close all files; what was mapped of them stays."""
        if self._is_open:
            self._is_open = False
            for each in self._opened:
                os.close(each.fd)

    def __del__(self) -> None:
        """Close what nobody closed, as Python does with files of its own."""
        if hasattr(self, "_opened"):
            self.close()

    def __repr__(self) -> str:
        return f"<WeightFiles {self.path}: {self.index!r}>"


def open_files(path: str | os.PathLike[str], *, limits: WeightLimits | None = None) -> WeightFiles:
    """
    Open a checkpoint, read what its files say of their tensors, and check it; read no tensor.

    Each file is opened once, and what is read later is read from what was checked. Links are
    followed, as the cache of the hub consists of them; what is behind must be a regular file.

    Args:
        path: A pack, a file of safetensors, an index of several (``*.safetensors.index.json``), or
            a folder that holds one of them.
        limits: How much is read before the tensors.

    Raises:
        WeightsError: If there is no such file, it cannot be read, or it is no regular one.
        CorruptWeightsError: If what it says cannot be true.
        WeightsLimitError: If it is larger than *limits* allow.
        ContractError: If an argument is of another class.

    Example:
        >>> from vlmcore.embedded import model_directory
        >>> with open_files(model_directory()) as files:
        ...     print(files.index)
        <WeightIndex safetensors: 109 tensors, 3825664 bytes>
    """
    limits = WeightLimits() if limits is None else limits
    require_kind("limits", limits, WeightLimits)
    shown = require_path("path", path)
    if not shown:  # which Python takes for the folder that the process happens to be in
        raise WeightsError(shown, "is no path, expected that of a file or a folder")
    opener = _Opener(limits)
    try:
        with _said_of(shown):
            chosen = weights_of(Path(shown))
        index = opener.sharded(chosen) if is_shard_index(chosen) else opener.single(chosen)
    except BaseException:
        opener.close()
        raise
    return WeightFiles(shown, chosen, index, tuple(opener.opened), limits=limits)


class _Opener:
    """Opens files one by one and reads what they say."""

    def __init__(self, limits: WeightLimits) -> None:
        self.limits = limits
        self.opened: list[_Opened] = []

    def close(self) -> None:
        for each in self.opened:
            os.close(each.fd)

    def single(self, path: Path) -> WeightIndex:
        with _said_of(str(path)):
            opened = self._open(path)
            file = WeightFile(name=path.name, size_bytes=opened.identity.size_bytes)
            if is_safetensors(path) or not _is_pack(opened):
                header = self._header(opened)
                return WeightIndex(
                    format=WeightFormat.SAFETENSORS,
                    files=(file,),
                    entries=header.entries,
                    metadata=header.metadata,
                    aliases=_aliases(header.entries, header.metadata),
                )
            size, tail = file.size_bytes, flashpack_format.TAIL_BYTES
            start, stop = flashpack_format.footer_span(
                _read(opened, max(size - tail, 0), size), size_bytes=size, limits=self.limits
            )
            return flashpack_format.parse_footer(
                _read(opened, start, stop), file=file, limits=self.limits
            )

    def sharded(self, path: Path) -> WeightIndex:
        with _said_of(str(path)):
            shards = self._shards(path)
        files: list[WeightFile] = []
        entries: list[TensorEntry] = []
        metadata: dict[str, str] = {}
        said = [shards.metadata]
        for name in sorted(set(shards.files.values())):
            with _said_of(str(path.with_name(name))):
                opened = self._open(path.with_name(name))
                header = self._header(opened)
                _require_named(header, shards, name)
                require_at_most(
                    "max_tensors", len(entries) + len(header.entries), self.limits.max_tensors
                )
            files.append(WeightFile(name=name, size_bytes=opened.identity.size_bytes))
            entries += header.entries
            metadata.update(header.metadata)
            said.append(header.metadata)
        with _said_of(str(path)):
            there = {entry.name for entry in entries}
            for tensor, name in shards.files.items():
                if tensor not in there:
                    raise ContractError("weight_map", f"got {tensor!a:.90}, which {name} has not")
            aliases = _aliases(entries, *said)
            return WeightIndex(
                format=WeightFormat.SAFETENSORS,
                files=files,
                entries=entries,
                metadata={**metadata, **aliases},
                aliases=aliases,
            )

    def _open(self, path: Path) -> _Opened:
        # Asked before it is opened: opening a device may do something, opening a pipe waits.
        _require_regular(path, path.stat())
        fd = os.open(path, _FLAGS)
        try:
            status = os.fstat(fd)
            _require_regular(path, status)
        except BaseException:
            os.close(fd)
            raise
        opened = _Opened(path, fd, _Identity.of(status))
        self.opened.append(opened)
        return opened

    def _header(self, opened: _Opened) -> Header:
        size = opened.identity.size_bytes
        start, stop = safetensors_format.header_span(
            _read(opened, 0, safetensors_format.HEAD_BYTES), size_bytes=size, limits=self.limits
        )
        return safetensors_format.parse_header(
            _read(opened, start, stop),
            file=len(self.opened) - 1,
            size_bytes=size,
            limits=self.limits,
        )

    def _shards(self, path: Path) -> Shards:
        index = self._open(path)
        size = index.identity.size_bytes
        require_at_most("max_header_bytes", size, self.limits.max_header_bytes)
        shards = safetensors_format.parse_shards(_read(index, 0, size), limits=self.limits)
        self.opened.remove(index)
        os.close(index.fd)
        return shards


@contextlib.contextmanager
def _said_of(path: str) -> Iterator[None]:
    """Say of what is wrong with a file which file it is."""
    try:
        yield
    except LimitExceededError as error:
        raise WeightsLimitError(path, error.limit, error.actual, error.allowed) from None
    except ContractError as error:
        raise CorruptWeightsError(path, str(error)) from None
    except (OSError, ValueError) as error:  # ValueError: a zero byte in a path
        what = what_failed(error) if isinstance(error, OSError) else "is no path"
        raise WeightsError(path, what) from None


def _require_regular(path: Path, status: os.stat_result) -> None:
    if not stat.S_ISREG(status.st_mode):
        kind = "a folder" if stat.S_ISDIR(status.st_mode) else "a pipe, a socket or a device"
        raise WeightsError(str(path), f"is {kind}, expected a regular file")


def _is_pack(opened: _Opened) -> bool:
    size = opened.identity.size_bytes
    if opened.path.name.endswith(".flashpack"):
        return True
    return _read(opened, max(size - 8, 0), size) == flashpack_format.MAGIC


def _read(opened: _Opened, start: int, stop: int) -> bytes:
    os.lseek(opened.fd, start, os.SEEK_SET)
    parts: list[bytes] = []
    while start < stop and (part := os.read(opened.fd, stop - start)):
        parts.append(part)
        start += len(part)
    if start < stop <= opened.identity.size_bytes:
        raise WeightsChangedError(str(opened.path), "shrank while it was opened")
    return parts[0] if len(parts) == 1 else b"".join(parts)


def _require_named(header: Header, shards: Shards, name: str) -> None:
    for entry in header.entries:
        if shards.files.get(entry.name) != name:
            raise ContractError(entry.name, "is here, and the index does not say so")


def _aliases(entries: list[TensorEntry], *said: Mapping[str, str]) -> dict[str, str]:
    """
    Find tied weights, as safetensors notes them: a name that is left out, and one that is in.

    What could be the name of no tensor is some other note.
    """
    names = {entry.name for entry in entries}
    aliases: dict[str, str] = {}
    for metadata in said:
        for alias, name in metadata.items():
            if name not in names or alias in names or not is_tensor_name(alias):
                continue
            if aliases.setdefault(alias, name) != name:
                raise ContractError(
                    f"{alias!a:.90}", f"is tied to {aliases[alias]!a:.90} and to {name!a:.90}"
                )
    return aliases
