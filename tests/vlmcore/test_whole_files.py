"""Tests of `vlmcore._whole_files`."""

from __future__ import annotations

import errno
import io
import os
import signal
import subprocess
import sys
from pathlib import Path
from unittest import mock

import pytest

from vlmcore import _whole_files
from vlmcore._whole_files import require_writable, what_failed, whole_file, write_whole
from vlmcore.errors import ContractError


@pytest.mark.parametrize("before", [None, b"", b"before"])
def test_a_file_holds_all_afterwards(before: bytes | None, tmp_path: Path) -> None:
    """
    Whether there was one or not; nothing is left beside it.
    """
    path = tmp_path / "song.mp3"
    if before is not None:
        path.write_bytes(before)
    write_whole(str(path), b"after")
    assert b"after" == path.read_bytes()
    assert [path] == list(tmp_path.iterdir())


class Breaking(io.FileIO):
    """A file of which one method fails."""

    def __init__(self, path: Path, at: str, error: BaseException) -> None:
        super().__init__(path, "x")
        setattr(self, at, mock.Mock(side_effect=error))


@pytest.mark.parametrize("at", ["write", "flush", "fsync", "replace"])
@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "No space left"), KeyboardInterrupt()])
def test_a_file_that_cannot_be_written_holds_what_it_held(
    at: str, error: BaseException, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    Whatever goes wrong, and wherever, Ctrl-C too; nothing is left beside it.
    """
    path = tmp_path / "song.mp3"
    path.write_bytes(b"before")
    if at in ("write", "flush"):
        monkeypatch.setattr(_whole_files, "_OPEN_FILES", Path("/nowhere"))
        monkeypatch.setattr(Path, "open", lambda path, _: Breaking(path, at, error))
    else:
        owner = os if at == "fsync" else Path
        monkeypatch.setattr(owner, at, mock.Mock(side_effect=error))
    expected = ContractError if isinstance(error, OSError) else KeyboardInterrupt
    with pytest.raises(expected) as caught:
        write_whole(str(path), b"after")
    monkeypatch.undo()
    if isinstance(caught.value, ContractError):
        assert (str(path), "No space left") == (caught.value.field, caught.value.problem)
    assert b"before" == path.read_bytes()
    assert [path] == list(tmp_path.iterdir())


def test_a_link_stays_one(tmp_path: Path) -> None:
    """
    What it leads to is written, and not the link replaced.
    """
    path, link = tmp_path / "song.mp3", tmp_path / "link.mp3"
    link.symlink_to(path)
    write_whole(str(link), b"after")
    assert b"after" == path.read_bytes()
    assert link.is_symlink()


@pytest.mark.parametrize("kind", ["folder", "no folder", "link in a circle"])
def test_what_is_no_file_is_not_written(kind: str, tmp_path: Path) -> None:
    """
    It is told by its name.
    """
    circle = tmp_path / "circle"
    circle.symlink_to(circle)
    name = {"folder": tmp_path, "no folder": tmp_path / "no" / "a", "link in a circle": circle}
    with pytest.raises(ContractError) as error:
        write_whole(str(name[kind]), b"after")
    assert str(name[kind]) == error.value.field
    assert [circle] == list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("nowhere/a", "nowhere', does not exist"),
        ("file/a", "file' is no folder: Not a directory"),
        ("folder", "is a folder, expected a file"),
        ("o" * 300, "File name too long"),
    ],
)
def test_what_could_not_be_written_is_known_before_the_work(
    name: str, problem: str, tmp_path: Path
) -> None:
    """
    Nothing is made on the way, and nothing is changed.
    """
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_bytes(b"before")
    with pytest.raises(ContractError) as error:
        require_writable(str(tmp_path / name))
    assert str(tmp_path / name) == error.value.field
    assert problem in error.value.problem

    require_writable(str(tmp_path / "file"))
    require_writable(str(tmp_path / "new"))
    assert ["file", "folder"] == sorted(each.name for each in tmp_path.iterdir())


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_may_not_be_written_to_is_known_before_the_work(tmp_path: Path) -> None:
    """
    It was said after the work.
    """
    tmp_path.chmod(0o500)
    with pytest.raises(ContractError, match="permission denied"):
        require_writable(str(tmp_path / "a"))


@pytest.mark.parametrize("name", ["", " ", "-", "a\0b"])
def test_what_is_no_path_is_not_written(name: str) -> None:
    """
    Nor is a file called so in the folder of the process.
    """
    with pytest.raises(ContractError, match="is no path"):
        write_whole(name, b"after")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes with names")
def test_a_pipe_is_not_replaced_by_a_file(tmp_path: Path) -> None:
    """
    Somebody reads from it.
    """
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ContractError, match="no regular file"):
        write_whole(str(tmp_path / "pipe"), b"after")


@pytest.mark.skipif(not Path("/dev/fd").exists(), reason="open files have no names")
def test_a_pipe_without_a_name_is_not_said_to_be_missing(tmp_path: Path) -> None:
    """
    `-o /dev/stdout` into a pipe was told that it does not exist.
    """
    reading, writing = os.pipe()
    link = tmp_path / "link"
    link.symlink_to(f"/dev/fd/{writing}")
    with os.fdopen(reading), os.fdopen(writing, "wb"):
        for name in (f"/dev/fd/{writing}", str(link)):
            with pytest.raises(ContractError, match="no regular file"):
                write_whole(name, b"after")


def test_the_longest_name_can_be_written(tmp_path: Path) -> None:
    """
    Though what is written first has a name of its own.
    """
    path = tmp_path / ("s" * 251 + ".mp3")
    write_whole(str(path), b"after")
    assert [path] == list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (FileNotFoundError(), "does not exist"),
        (PermissionError(13, "Permission denied"), "permission denied"),
        (OSError(errno.ENOSPC, "No space left on device"), "No space left on device"),
        (OSError("odd"), "odd"),
    ],
)
def test_what_the_system_did_not_do_is_said_in_a_few_words(error: OSError, said: str) -> None:
    """
    Without the number, and without the name, which the caller knows.
    """
    assert said == what_failed(error)


WRITER = """
import sys
from vlmcore._whole_files import whole_file
with whole_file(sys.argv[1]) as file:
    file.write(b"half")
    file.flush()
    print("half", flush=True)
    sys.stdin.read()
"""


@pytest.mark.parametrize("open_files", ["/proc/self/fd", "/nowhere"])
def test_the_old_file_is_there_until_the_new_one_is_whole(
    open_files: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    Also where the system has no files without a name.
    """
    monkeypatch.setattr(_whole_files, "_OPEN_FILES", Path(open_files))
    path = tmp_path / "song.mp3"
    path.write_bytes(b"before")
    with whole_file(str(path)) as file:
        file.write(b"after")
        file.flush()
        assert b"before" == path.read_bytes()
    assert b"after" == path.read_bytes()
    assert [path] == list(tmp_path.iterdir())


@pytest.mark.parametrize("open_files", ["/proc/self/fd", "/nowhere"])
def test_what_fails_in_the_block_is_passed_on_and_nothing_is_left(
    open_files: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    Neither of what was written nor of what was there.
    """
    monkeypatch.setattr(_whole_files, "_OPEN_FILES", Path(open_files))
    path = tmp_path / "song.mp3"
    path.write_bytes(b"before")
    with pytest.raises(ValueError, match="range"), whole_file(str(path)) as file:
        file.write(bytes([999]))
    assert b"before" == path.read_bytes()
    assert [path] == list(tmp_path.iterdir())


@pytest.mark.skipif(not hasattr(os, "O_TMPFILE"), reason="Linux has files without a name")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_process_that_is_ended_leaves_the_old_file_and_nothing_beside_it(
    number: signal.Signals, tmp_path: Path
) -> None:
    """
    Also where it cannot tidy up any more.
    """
    path = tmp_path / "song.mp3"
    path.write_bytes(b"before")
    command = [sys.executable, "-c", WRITER, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        assert b"half\n" == child.stdout.readline()
        child.send_signal(number)
        child.wait(timeout=30)
    assert b"before" == path.read_bytes()
    assert [path] == list(tmp_path.iterdir())


@pytest.mark.skipif(os.name != "posix", reason="there is no mask of modes")
@pytest.mark.parametrize("open_files", ["/proc/self/fd", "/nowhere"])
def test_a_new_file_has_the_mode_that_new_files_have(
    open_files: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    Not that of temporary files, which nobody else can read.
    """
    monkeypatch.setattr(_whole_files, "_OPEN_FILES", Path(open_files))
    before = os.umask(0o027)
    try:
        write_whole(str(tmp_path / "song.mp3"), b"after")
    finally:
        os.umask(before)
    assert 0o640 == (tmp_path / "song.mp3").stat().st_mode & 0o777
