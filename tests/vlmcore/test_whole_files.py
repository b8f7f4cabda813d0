"""Tests of `vlmcore._whole_files`."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from unittest import mock

import pytest

from vlmcore._whole_files import what_failed, write_whole
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
    opened = Path.open

    def broken(self: Path, mode: str) -> object:
        file = mock.MagicMock(wraps=opened(self, mode))
        getattr(file, at).side_effect = error
        file.__enter__.return_value = file
        file.__exit__.side_effect = lambda *_: file.close()
        return file

    if at == "fsync":
        monkeypatch.setattr(os, "fsync", mock.Mock(side_effect=error))
    elif at == "replace":
        monkeypatch.setattr(Path, "replace", mock.Mock(side_effect=error))
    else:
        monkeypatch.setattr(Path, "open", broken)
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
