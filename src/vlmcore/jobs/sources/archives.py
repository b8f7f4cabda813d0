"""The images in archives of tar, as WebDataset keeps them; nothing is ever unpacked to a disk."""

from __future__ import annotations

import contextlib
import gzip
import itertools
import os
import tarfile
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO

import attrs

from vlmcore._arguments import require_switch
from vlmcore.errors import JobSourceError, MediaError
from vlmcore.jobs.items import BytesContent, Content, Item, Stamp
from vlmcore.jobs.sources._contents import without_bytes
from vlmcore.jobs.sources._files import key_of, named, opened, require_file
from vlmcore.jobs.sources._patterns import matching_files, place_of
from vlmcore.jobs.sources.folders import IMAGE_SUFFIXES
from vlmcore.limits import JobSourceLimits
from vlmcore.media.sources import Encoded

__all__ = ["MemberContent", "TarImages"]

_LOOKED_AT = 64  # members, to see whether an archive is one of WebDataset
_GZIP = b"\x1f\x8b"
# What tarfile and gzip raise on files that are none.
_FAILURES = (
    tarfile.TarError,
    zlib.error,
    ArithmeticError,
    EOFError,
    LookupError,
    OSError,
    RecursionError,
    ValueError,
)


@attrs.frozen
class MemberContent:
    """
    Part of a file: the bytes of a member of an archive that is not packed.

    Attributes:
        archive: The file.
        name: What the member is called in errors.
        offset: Where it begins.
        size: Its size in bytes.
    """

    archive: Path
    name: str
    offset: int
    size: int

    def read(self) -> Encoded:
        """
        Read it.

        Raises:
            MediaError: If it cannot be read, or is empty.
        """
        if not self.size:
            raise MediaError(self.name, "is empty, expected an image")
        try:
            with opened(self.archive) as file:
                file.seek(self.offset)
                data = file.read(self.size)
        except JobSourceError as error:
            raise MediaError(self.name, f"cannot be read: its archive {error.problem}") from None
        except OSError as error:
            raise MediaError(self.name, f"cannot be read: {error.strerror or error}") from None
        if len(data) != self.size:
            problem = f"got {len(data)} bytes of {self.size}, the archive is cut short"
            raise MediaError(self.name, problem)
        return Encoded(self.name, data)

    def stamp(self) -> Stamp | None:
        """Ask the file system when the archive changed; ``None`` if there is none."""
        try:
            return Stamp(self.size, self.archive.stat().st_mtime_ns)
        except (OSError, ValueError):
            return None


class TarImages:
    """
    The images in archives of tar, in the order that they have there.

    What is an image is told by how its name ends. Where samples of WebDataset are in it, which are
    members that follow each other with the same name up to the first point, as ``007.jpg`` and
    ``007.json``, only the first image of each is taken: the others are masks, depths, or more views
    of the same.

    An image is called by its archive and its name in there: ``shard-000.tar/007.jpg``. Names are
    never paths of anything; ``/`` at their beginning and ``..`` are left out. Links, devices and
    sparse files are passed over. An archive that is packed with gzip is read from its beginning in
    each run, and its images are held in memory until they are used.

    Args:
        paths: Archives, or patterns: ``"shard-{000..015}.tar"``, ``"train/*.tar"``.
        samples: Whether there are samples in them; ``None`` looks at the first members of each
            archive, for an image and another file of the same sample.
        limits: How much is read.

    Raises:
        ContractError: If an argument is not as described.
        JobSourceError: If there is no such archive.
    """

    is_quick_to_list = False

    def __init__(
        self,
        paths: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
        *,
        samples: bool | None = None,
        limits: JobSourceLimits | None = None,
    ) -> None:
        if samples is not None:
            require_switch(samples=samples)
        self._limits = limits or JobSourceLimits()
        self._paths = matching_files(paths, limits=self._limits)
        self._place = place_of(self._paths)
        self._samples = samples
        for path in self._paths:
            require_file(path)

    @property
    def name(self) -> str:
        """The archive, or the folder of several."""
        return named(self._place)

    @property
    def place(self) -> Path:
        """The archive, or the folder of several."""
        return self._place

    def __iter__(self) -> Iterator[Item]:
        """Give the images; an archive that is broken or cut short ends with `JobSourceError`."""
        for path in self._paths:
            samples = self._has_samples(path) if self._samples is None else self._samples
            yield from self._items(path, samples=samples)

    def _items(self, path: Path, *, samples: bool) -> Iterator[Item]:
        shard, sample_done = self._shard(path), ""
        times: dict[str, int] = {}
        for member, file in self._members(path):
            name = _plain_name(member.name)
            if not _is_image(name):
                continue
            sample, stem = _sample_and_stem(name)
            if samples and sample == sample_done:
                continue
            # Where nobody said that there are samples, 'scan.1.jpg' is none of the image 'scan'.
            sample_done = sample if self._samples or sample == stem else ""
            key = f"{shard}/{name}"
            times[key] = times.get(key, 0) + 1
            if times[key] > 1:  # as a file that was added to an archive again
                key = f"{key} ({times[key]})"
            yield self._item(key, member, file, path)

    def _item(self, key: str, member: tarfile.TarInfo, file: Any, path: Path) -> Item:
        name = f"{named(path)}, {_plain_name(member.name)}"
        if member.size > self._limits.max_encoded_bytes:
            problem = f"max_encoded_bytes: got {member.size}, "
            return without_bytes(key, name, f"{problem}limit is {self._limits.max_encoded_bytes}")
        content: Content
        if isinstance(file, gzip.GzipFile):
            with _refusing(path):
                content = BytesContent(name, file.read(member.size))
        else:
            content = MemberContent(path, name, member.offset_data, member.size)
        return Item(key=key, content=content)

    def _has_samples(self, path: Path) -> bool:
        """Look whether an image at the beginning of an archive has something beside it."""
        sample, is_image = "", False
        with contextlib.suppress(JobSourceError):  # what is wrong is told when it is read
            for member, _ in itertools.islice(self._members(path), _LOOKED_AT):
                before, was_image = sample, is_image
                name = _plain_name(member.name)
                (sample, _), is_image = _sample_and_stem(name), _is_image(name)
                if sample == before and is_image != was_image:
                    return True
        return False

    def _members(self, path: Path) -> Iterator[tuple[tarfile.TarInfo, Any]]:
        """Give the regular files of an archive, each when the archive is there."""
        with opened(path) as plain, _refusing(path):
            file = _unpacked(plain)
            reads = _Reads(file, self._limits.max_header_bytes)
            with tarfile.TarFile(fileobj=reads, encoding="utf-8") as archive:  # type: ignore[arg-type]
                while (member := archive.next()) is not None:
                    archive.members.clear()  # type: ignore[attr-defined] # or all are kept
                    if member.size < 0:
                        raise ValueError("has a member of a negative size")
                    if member.isreg() and not member.issparse() and not _is_hidden(member.name):
                        yield member, file
            reads.require_end()

    def _shard(self, path: Path) -> str:
        if len(self._paths) == 1:
            return key_of(path.name)
        return key_of(Path(os.path.relpath(path, self._place)).as_posix())


class _Reads:
    """A file as tarfile is shown it: it only gets on, and never reads much at once."""

    def __init__(self, file: Any, most: int) -> None:
        self._file = file
        self._most = most
        self._last = b""

    def read(self, size: int = -1) -> bytes:
        if not 0 <= size <= self._most:
            raise ValueError(f"has a header of {size} bytes, limit is {self._most}")
        self._last = self._file.read(size)
        return self._last

    def seek(self, position: int) -> None:
        if position < self._file.tell():
            raise ValueError("has a member that ends before it begins")
        self._file.seek(position)

    def tell(self) -> int:
        return int(self._file.tell())

    def require_end(self) -> None:
        """Require what was read last to be the end: tarfile takes a broken header for it, too."""
        if self._last.strip(b"\0"):
            raise ValueError("has something else than a header after one of its members")


def _unpacked(file: BinaryIO) -> Any:
    start = file.read(len(_GZIP))
    file.seek(0)
    return gzip.GzipFile(fileobj=file, mode="rb") if start == _GZIP else file


@contextlib.contextmanager
def _refusing(path: Path) -> Iterator[None]:
    try:
        yield
    except JobSourceError:
        raise
    except _FAILURES as error:
        said = " ".join(str(error).split())[:200]
        raise JobSourceError(named(path), f"cannot be read as a tar: {said}") from None


def _is_image(name: str) -> bool:
    return PurePosixPath(name).suffix.lower() in IMAGE_SUFFIXES


def _is_hidden(name: str) -> bool:
    """Say whether a shell would not list it: as ``._a.jpg``, which macOS adds, and is no image."""
    return any(part.startswith(".") and part not in {".", ".."} for part in name.split("/"))


def _sample_and_stem(name: str) -> tuple[str, str]:
    """Return a name up to the first point, and up to the last."""
    folder, slash, base = name.rpartition("/")
    start = f"{folder}{slash}"
    return start + base.partition(".")[0], start + base.rpartition(".")[0]


def _plain_name(name: str) -> str:
    """Write the name of a member so that it leads nowhere but down."""
    parts = [part for part in name.split("/") if part not in {"", ".", ".."}]
    return key_of("/".join(parts))
