"""
Caption files, written so that a kill at any moment neither loses nor doubles a caption.

Before a file is written the journal is told what is in it and what will be; afterwards, that it
was. A run that finds the first without the second looks at the file, and knows.
"""

from __future__ import annotations

import codecs
import contextlib
import enum
import errno
import hashlib
import os
import stat
from pathlib import Path

import attrs

from vlmcore._whole_files import remove_leftovers, what_failed, write_whole
from vlmcore.errors import ContractError, JobSinkError
from vlmcore.jobs.journal import Journal
from vlmcore.jobs.sinks.settings import ExistingCaption, Sidecars
from vlmcore.limits import JobLimits

__all__ = ["Pending", "SidecarWriter", "fails_everywhere"]

_LIMITS = JobLimits()
_EVERYWHERE = {errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO}


class _State(enum.Enum):
    CLAIMED = "claimed"  # what is in the file is not of the job
    BEGUN = "begun"  # it was to be written, where nothing of the job was
    REWRITING = "rewriting"  # it was to be written over what the job wrote before
    WRITTEN = "written"


@attrs.frozen(kw_only=True)
class _Record:
    path: bytes
    state: _State
    base: str | None  # what was in the file before the job, and stays beside the caption
    after: bytes | None  # the digest of what the job wrote last, or was to write


@attrs.frozen(kw_only=True)
class Pending:
    """
    A caption file that the journal knows of, and that is still to be written.

    Attributes:
        path: The file.
        data: What is to be in it.
        before: The digest of what is in it; ``None`` if there is no file.
        is_ours: Whether the job wrote that.
    """

    path: bytes
    data: bytes
    before: bytes | None
    is_ours: bool


class SidecarWriter:
    """
    Writes the caption files of one run.

    Args:
        journal: The journal, with a run begun and the files claimed.
        sidecars: How they are written.
    """

    def __init__(self, journal: Journal, sidecars: Sidecars) -> None:
        self._journal = journal
        self._sidecars = sidecars

    def recover(self) -> None:
        """Find out about the files that an earlier run was killed over."""
        with self._journal.told():
            begun = self._journal.database.execute(
                "SELECT path, state, before, after FROM sidecars WHERE state IN (?, ?)",
                (_State.BEGUN.value, _State.REWRITING.value),
            ).fetchall()
        remove_leftovers(os.fsdecode(path) for path, *_ in begun)
        for path, state, before, after in begun:
            with contextlib.suppress(JobSinkError):  # it is told of when its turn comes
                self._recover(path, _State(state), before, after)

    def _recover(self, path: bytes, state: _State, before: bytes | None, after: bytes) -> None:
        found = _digest(_read(path))
        if found != before or found == after:
            self._note(path, _State.WRITTEN)  # if somebody has edited it since, that is seen later
        elif state is _State.BEGUN:
            self._note(path, _State.CLAIMED)
        else:
            self._journal.write("UPDATE sidecars SET after = before WHERE path = ?", (path,))
            self._note(path, _State.WRITTEN)

    def stays(self, key: str) -> bool:
        """Say whether the image has a caption file that is not the job's and stays as it is."""
        if self._sidecars.existing is not ExistingCaption.SKIP:
            return False
        record = self._found(key)
        if record is None or record.state is not _State.CLAIMED:
            return False
        return not _is_blank(_read(record.path))

    def is_written(self, key: str, caption: str) -> bool:
        """Say whether the job has written *caption*, and the file is still there."""
        record = self._record(key)
        wanted = self._joined(self._base_of(record), caption)
        is_ours = record.state is _State.WRITTEN and record.after == _digest(wanted)
        return is_ours and Path(os.fsdecode(record.path)).exists()

    def begin(self, key: str, caption: str) -> Pending | None:
        """
        Tell the journal what is to be written for an image; ``None`` if another text stays.

        The journal has to be committed before the file is written.

        Raises:
            JobSinkError: If what is in the file cannot be read, and is not to be written over.
        """
        record = self._record(key)
        current = _read(record.path)
        found = _digest(current)
        is_ours = record.state is _State.WRITTEN and found == record.after
        if is_ours:
            base = self._base_of(record)
        elif _is_blank(current) or self._overwrites:
            base = None
        elif record.state is _State.WRITTEN or self._sidecars.existing is ExistingCaption.SKIP:
            return None  # somebody has edited it
        else:
            base = _decoded(record.path, current)
        data = self._joined(base, caption)
        self._journal.write(
            "UPDATE sidecars SET state = ?, base = ?, before = ?, after = ? WHERE path = ?",
            (
                (_State.REWRITING if is_ours else _State.BEGUN).value,
                base,
                found,
                _digest(data),
                record.path,
            ),
        )
        return Pending(path=record.path, data=data, before=found, is_ours=is_ours)

    def write(self, pending: Pending) -> bool:
        """
        Write a file, whole; say ``False`` if somebody else just wrote it, whose text stays.

        Any thread may call it. The journal is to be told with `finish`.

        Raises:
            JobSinkError: If it cannot be written.
        """
        name = os.fsdecode(pending.path)
        if not self._overwrites and _digest(_read(pending.path)) != pending.before:
            return False
        try:
            Path(name).parent.mkdir(parents=True, exist_ok=True)
            write_whole(name, pending.data)
        except (ContractError, OSError) as error:
            problem = error.problem if isinstance(error, ContractError) else what_failed(error)
            raise JobSinkError(name, problem) from error
        return True

    def finish(self, pending: Pending, *, is_written: bool) -> None:
        """Tell the journal what `write` said."""
        is_ours = is_written or pending.is_ours
        self._note(pending.path, _State.WRITTEN if is_ours else _State.CLAIMED)

    @property
    def _overwrites(self) -> bool:
        return self._sidecars.existing is ExistingCaption.OVERWRITE

    def _base_of(self, record: _Record) -> str | None:
        return None if self._overwrites else record.base

    def _joined(self, base: str | None, caption: str) -> bytes:
        parts = [caption]
        if base is not None:
            is_first = self._sidecars.existing is ExistingCaption.PREPEND
            parts = [caption, base] if is_first else [base, caption]
        text = self._sidecars.separator.join(parts)
        return f"{text.rstrip()}\n".encode()

    def _record(self, key: str) -> _Record:
        record = self._found(key)
        if record is None:
            raise JobSinkError(key, "was given no caption file: it may have none beside it")
        return record

    def _found(self, key: str) -> _Record | None:
        with self._journal.told():
            found = self._journal.database.execute(
                "SELECT path, state, base, after FROM sidecars WHERE key = ? AND run = ?",
                (key, self._journal.run),
            ).fetchone()
        if found is None:
            return None
        path, state, base, after = found
        return _Record(path=path, state=_State(state), base=base, after=after)

    def _note(self, path: bytes, state: _State) -> None:
        self._journal.write("UPDATE sidecars SET state = ? WHERE path = ?", (state.value, path))


def _read(path: bytes) -> bytes | None:
    """Return what is in a caption file, or ``None`` if there is none."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | getattr(os, "O_NONBLOCK", 0))
        with os.fdopen(fd, "rb") as file:
            if not stat.S_ISREG(os.fstat(fd).st_mode):
                raise JobSinkError(os.fsdecode(path), "is no regular file, expected a caption file")
            data = file.read(_LIMITS.max_sidecar_bytes + 1)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise JobSinkError(os.fsdecode(path), what_failed(error)) from None
    if len(data) > _LIMITS.max_sidecar_bytes:
        most = _LIMITS.max_sidecar_bytes
        raise JobSinkError(os.fsdecode(path), f"has more than {most:,} bytes: it is no caption")
    return data


def _decoded(path: bytes, data: bytes | None) -> str | None:
    try:
        text = (data or b"").decode("utf-8-sig")
    except UnicodeDecodeError:
        problem = "is no UTF-8 text, so that no caption can be added to it"
        raise JobSinkError(os.fsdecode(path), problem) from None
    return text.replace("\r\n", "\n").strip("\n")


def _is_blank(data: bytes | None) -> bool:
    return data is None or not data.removeprefix(codecs.BOM_UTF8).strip()


def _digest(data: bytes | None) -> bytes | None:
    return None if data is None else hashlib.sha256(data).digest()


def fails_everywhere(error: JobSinkError) -> bool:
    """Say whether no other file could be written either, as on a disk that is full."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, OSError) and cause.errno in _EVERYWHERE:
            return True
        cause = cause.__cause__
    return False
