"""Tests of `vlmcore.jobs._locking`."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
from multiprocessing.connection import Connection
from pathlib import Path
from unittest import mock

import pytest

from vlmcore.errors import JobRunningError, JobSinkError
from vlmcore.jobs._locking import is_locked, locked


def test_a_second_one_is_refused_and_told_who_the_first_is(tmp_path: Path) -> None:
    """
    By its process and machine, as they may share a file system.
    """
    path = tmp_path / "lock"
    with locked(path, "photos"), pytest.raises(JobRunningError) as caught, locked(path, "photos"):
        pass
    assert "photos" == caught.value.where
    assert f"another job is at work here: process {os.getpid()} on " in caught.value.problem


def test_a_lock_ends_with_its_block(tmp_path: Path) -> None:
    """
    Its file stays, and names nobody.
    """
    path = tmp_path / "lock"
    assert not is_locked(path)
    with locked(path, "photos"):
        assert is_locked(path)
    assert (False, b"") == (is_locked(path), path.read_bytes())
    with locked(path, "photos"):
        assert is_locked(path)


def _hold(path: Path, pipe: Connection) -> None:
    with locked(path, "photos"):
        pipe.send("locked")
        pipe.recv()


@pytest.mark.skipif(sys.platform == "win32", reason="needs SIGKILL")
def test_a_lock_ends_with_its_process(tmp_path: Path) -> None:
    """
    However that ends; what it wrote into the file makes no difference.
    """
    path = tmp_path / "lock"
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    child = context.Process(target=_hold, args=(path, theirs))
    child.start()
    assert "locked" == ours.recv()
    with pytest.raises(JobRunningError, match=f"process {child.pid} on "), locked(path, "x"):
        pass
    os.kill(child.pid or 0, signal.SIGKILL)
    child.join(60)
    with locked(path, "photos"):
        assert f"process {os.getpid()} on" in path.read_text()


def test_a_full_disk_keeps_nobody_from_a_lock(tmp_path: Path) -> None:
    """
    The name of who holds it is a courtesy, and the file holds nothing else.
    """
    path = tmp_path / "lock"
    full = OSError(28, "No space left on device")
    with (
        mock.patch("vlmcore.jobs._locking.socket.gethostname", side_effect=full),
        locked(path, "photos"),
        pytest.raises(JobRunningError, match="its process is not known"),
        locked(path, "photos"),
    ):
        pass


def test_a_lock_that_cannot_be_made_is_told_of(tmp_path: Path) -> None:
    """
    By the name of its file.
    """
    path = tmp_path / "none" / "lock"
    with pytest.raises(JobSinkError, match="does not exist"), locked(path, "photos"):
        pass
