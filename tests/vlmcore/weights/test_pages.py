"""What the system knows about the pages of a file."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from vlmcore.weights import _pages
from vlmcore.weights._pages import PageCache, file_system, is_remote, open_direct, populate
from weight_cases import forget_pages, run_child

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="Linux alone tells")
PAGE = 0x1000


@pytest.fixture
def path(tmp_path: Path) -> Path:
    (tmp_path / "file").write_bytes(bytes(64 * PAGE + 5))
    return tmp_path / "file"


@pytest.fixture
def fd(path: Path) -> Iterator[int]:
    fd = os.open(path, os.O_RDONLY)
    yield fd
    os.close(fd)


def test_pages_are_in_memory_once_they_were_read(fd: int, path: Path) -> None:
    """
    The share is that of the pages that the bytes lie on, however few bytes there are.
    """
    forget_pages(path)
    with PageCache(fd, 64 * PAGE + 5) as cache:
        assert 0.0 == cache.cached_share(0, 64 * PAGE + 5)
        os.pread(fd, 64 * PAGE + 5, 0)
        assert 1.0 == cache.cached_share(0, 64 * PAGE + 5)
        assert 1.0 == cache.cached_share(PAGE - 1, PAGE + 1)


def test_nothing_is_said_of_pages_where_nobody_knows(fd: int) -> None:
    """
    What is not known is read the plain way, by all readers.
    """
    size = 64 * PAGE + 5
    with PageCache(fd, size, looks=False) as cache:
        assert cache.holds(0, PAGE) is None
    with PageCache(fd, size + PAGE) as cache:  # longer than the file
        assert cache.holds(0, PAGE) is None
    with PageCache(fd, 0) as cache:
        assert cache.holds(0, 0) is None


def test_a_direct_descriptor_is_of_the_file_that_was_opened(fd: int, path: Path) -> None:
    """
    A file that takes the place of another under its name is not the one that was checked.
    """
    path.unlink()
    path.write_bytes(b"another")
    direct_fd = open_direct(fd)
    assert direct_fd is not None
    try:
        assert os.path.sameopenfile(fd, direct_fd)
    finally:
        os.close(direct_fd)


def test_a_system_without_direct_reads_has_no_such_descriptor(
    fd: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    It is no error: files are read the plain way.
    """
    monkeypatch.delattr(os, "O_DIRECT")
    assert open_direct(fd) is None


POPULATE = """
import os, sys
from vlmcore.weights._mapping import map_file
from vlmcore.weights._pages import populate
fd = os.open(sys.argv[1], os.O_RDONLY)
size = os.fstat(fd).st_size
mapped = map_file(fd, size)
print(populate(mapped, 0, size))
os.truncate(sys.argv[1], 4096)
try:
    populate(mapped, 8192, size)
except OSError as error:
    print(type(error).__name__)
"""


def test_pages_that_are_gone_are_an_error_where_they_are_asked_for(path: Path) -> None:
    """
    Asked for by the system's own call, such a page is an error and no end of the process.
    """
    assert ["True", "OSError"] == run_child(POPULATE, path).split()


def test_a_system_without_the_call_says_that_nothing_was_done(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """
    An old kernel knows no such advice.
    """
    monkeypatch.setattr(_pages, "_libc_function", lambda _: None)
    assert not populate(np.zeros(2 * PAGE, np.uint8), 0, PAGE)


MOUNTS = """\
22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw
40 22 0:45 / /mnt/models rw - nfs4 server:/models rw,vers=4.2
41 22 0:46 / /mnt/a\\040b rw master:3 - fuse.sshfs user@host:/ rw
"""


@pytest.mark.parametrize(
    ("mount", "kind"), [("22", "ext4"), ("40", "nfs4"), ("41", "fuse.sshfs"), ("9", "")]
)
def test_the_file_system_is_that_of_the_mount(tmp_path: Path, mount: str, kind: str) -> None:
    """
    Linux names the mount of each descriptor, and the kind of each mount.
    """
    (tmp_path / "proc/self/fdinfo").mkdir(parents=True)
    (tmp_path / "proc/self/fdinfo/7").write_text(f"pos:\t0\nflags:\t0100000\nmnt_id:\t{mount}\n")
    (tmp_path / "proc/self/mountinfo").write_text(MOUNTS)
    assert kind == file_system(7, tmp_path)
    assert is_remote(kind) == (kind in {"nfs4", "fuse.sshfs"})


def test_a_system_without_such_a_list_names_no_file_system(tmp_path: Path) -> None:
    """
    Elsewhere files count as local.
    """
    assert "" == file_system(0, tmp_path)
    assert not is_remote("")


def test_the_file_system_of_this_machine_is_named(fd: int) -> None:
    """
    The list is what Linux writes, and not only what the test above does.
    """
    assert "" != file_system(fd)
