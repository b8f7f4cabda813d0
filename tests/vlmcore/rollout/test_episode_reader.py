"""Tests of `vlmcore.rollout.episode_reader`: any bytes give steps or our error."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from episode_cases import HEADER, some_steps, step, write
from vlmcore.errors import EpisodeError
from vlmcore.limits import EpisodeLimits
from vlmcore.rollout.episode_reader import EpisodeReader


@pytest.fixture(scope="module")
def lines(tmp_path_factory: pytest.TempPathFactory) -> list[bytes]:
    """Write an episode of three steps, and give its lines."""
    path = write(tmp_path_factory.mktemp("episode") / "run.jsonl", *some_steps())
    return path.read_bytes().splitlines(keepends=True)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Name a file that is not there."""
    return tmp_path / "run.jsonl"


def steps_of(path: Path, data: bytes) -> tuple[int, bool]:
    """Read bytes as an episode: how many steps it has, and whether its last line is cut."""
    path.write_bytes(data)
    reader = EpisodeReader(path)
    return sum(1 for _ in reader), reader.truncated


def test_an_episode_is_read_as_often_as_asked(path: Path) -> None:
    """
    Every loop opens the file anew.
    """
    reader = EpisodeReader(write(path, *some_steps()))
    assert reader.header == HEADER
    for _ in range(2):
        assert all(a == b for a, b in zip(reader, some_steps(), strict=True))
    first, again = iter(reader), iter(reader)
    assert next(first) == next(again)


def test_steps_are_read_one_at_a_time(path: Path, lines: list[bytes]) -> None:
    """
    A fault in a later line does not take the steps before it.
    """
    path.write_bytes(b"".join([*lines[:3], b"?\n"]))
    steps = iter(EpisodeReader(path))
    assert all(next(steps) == each for each in some_steps()[:2])
    with pytest.raises(EpisodeError, match=r"run\.jsonl, line 4: JSON: got "):
        next(steps)


def test_a_last_line_that_is_cut_is_told_apart_and_the_steps_before_it_are_given(
    path: Path, lines: list[bytes]
) -> None:
    """
    At every byte where a crash may cut it; nothing else is called truncated.
    """
    before = b"".join(lines[:2])
    third = lines[2]
    for cut in (*range(1, 60), *range(60, len(third) - 1, 97), len(third) - 2):
        assert (1, True) == steps_of(path, before + third[:cut]), cut
    assert (2, False) == steps_of(path, before + third[:-1])
    assert (2, False) == steps_of(path, before + third)
    assert (1, False) == steps_of(path, before)


def test_zeros_that_a_power_cut_leaves_at_the_end_are_a_cut_line(
    path: Path, lines: list[bytes]
) -> None:
    """
    File systems grow a file before they fill it.
    """
    assert (3, True) == steps_of(path, b"".join(lines) + b"\0" * 5000)
    assert (2, True) == steps_of(path, b"".join(lines[:3]) + lines[3][:99] + b"\0" * 5000)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "line 1: is empty, expected the header of an episode"),
        (b"\n", "line 1: JSON: got Expecting value"),
        (b"\xef\xbb\xbf{}\n", "line 1: JSON: got .*BOM"),
        (b"\x1f\x8b\x08\0", "line 1: JSON: got text that is not UTF-8"),
        (b"\0" * 99, "line 1: JSON: got "),
        (b"[" * 5000, "line 1: JSON: got values nested more than 40 deep"),
        (b"{}\n", r"line 1: robot-episode: 3 faults\n  \$\.schema: is missing"),
        (b"[]\n", "line 1: robot-episode: .*got list, expected an object"),
        (b"null", "line 1: robot-episode: "),
        (b'{"schema": "comfyui-vlm/robot-actions"}', "line 1: .*expected 'comfyui-vlm/robot-epis"),
        (b'{"schema": "comfyui-vlm/robot-episode", "version": 2}\n', "line 1: .*version: got 2"),
        (b'{"schema": "comfyui-vlm/robot-episode", "vers', "line 1: JSON: got Unterminated string"),
    ],
    ids=lambda value: repr(value)[:24],
)
def test_what_is_no_episode_is_refused_at_once(path: Path, data: bytes, message: str) -> None:
    """
    With the path and the line.
    """
    path.write_bytes(data)
    with pytest.raises(EpisodeError, match=message) as error:
        EpisodeReader(path)
    assert (str(path), 1) == (error.value.path, error.value.line)


def broken_files(lines: list[bytes]) -> Iterator[tuple[str, list[bytes], int, str]]:
    """Break an episode in each way; which line is at fault, and what is said."""
    head, *steps = lines
    other = steps[0].replace(b'"version": 1', b'"version": 2', 1)
    yield "header twice", [head, head, *steps], 2, "expected 'comfyui-vlm/robot-episode-step'"
    yield "a step first", steps, 1, "expected 'comfyui-vlm/robot-episode'"
    yield "wrong order", [head, steps[1], steps[0]], 2, r"\$\.step: got 1, expected 0"
    yield "a step twice", [head, steps[0], steps[0]], 3, r"\$\.step: got 0, expected 1"
    yield "a step lost", [head, steps[0], steps[2]], 3, r"\$\.step: got 2, expected 1"
    yield "another version", [head, other], 2, r"\$\.version: got 2, expected 1"
    yield "a blank line", [head, b"\n", steps[0]], 2, "JSON: got Expecting value"
    yield "a blank line at the end", [*lines, b"\n"], 5, "JSON: got Expecting value"
    yield "zeros in the middle", [head, b"\0\0\n", steps[0]], 2, "JSON: got "
    yield "two in a line", [head, steps[0][:-1] + steps[1]], 2, "JSON: got Extra data at column"
    yield "cut in the middle", [head, steps[0][:40] + b"\n", steps[1]], 2, "JSON: got "
    yield "NaN", [head, steps[0].replace(b"0.05", b"NaN", 1)], 2, "JSON: got NaN, expected numbers"
    yield "deep", [head, b"[" * 99 + b"]" * 99 + b"\n"], 2, "nested more than 40 deep"
    yield "not UTF-8", [head, b'"\xff"\n'], 2, "not UTF-8"
    yield "a BOM in a line", [head, b"\xef\xbb\xbf" + steps[0]], 2, "BOM"
    twice = steps[0].replace(b'"step": 0', b'"step": 0, "step": 0', 1)
    yield "a key twice", [head, twice], 2, "got the key 'step' twice"


def test_every_fault_has_the_number_of_its_line(path: Path, lines: list[bytes]) -> None:
    """
    As an editor counts them.
    """
    for name, data, line, message in broken_files(lines):
        path.write_bytes(b"".join(data))
        with pytest.raises(EpisodeError, match=f"line {line}: .*{message}") as error:
            list(EpisodeReader(path))
        assert line == error.value.line, name


def test_lines_that_end_as_on_windows_are_read(path: Path, lines: list[bytes]) -> None:
    """
    Editors and version control change them.
    """
    data = b"".join(lines).replace(b"\n", b"\r\n")
    assert (3, False) == steps_of(path, data)


@pytest.mark.parametrize(
    ("limits", "line", "message"),
    [
        (EpisodeLimits(max_file_bytes=99), None, r"max_file_bytes: got \d+, limit is 99"),
        (EpisodeLimits(max_line_bytes=99), 1, "max_line_bytes: got more than 99, limit is 99"),
        (EpisodeLimits(max_steps=2), 4, "max_steps: got 3, limit is 2"),
        (EpisodeLimits(max_nodes=60), 2, r"max_nodes: got \d+, limit is 60"),
        (EpisodeLimits(max_depth=2), 1, "nested more than 2 deep"),
    ],
    ids=str,
)
def test_a_file_over_the_limits_is_refused(
    path: Path, limits: EpisodeLimits, line: int | None, message: str
) -> None:
    """
    Each size is known before memory is spent on it.
    """
    write(path, *some_steps())
    with pytest.raises(EpisodeError, match=message) as error:
        list(EpisodeReader(path, limits=limits))
    assert line == error.value.line


def test_a_line_without_an_end_is_not_read_into_memory(path: Path, lines: list[bytes]) -> None:
    """
    No more than the limit of a line and one byte; a hole of 8 GiB costs nothing on the disk.
    """
    path.write_bytes(lines[0])
    with path.open("r+b") as file:
        file.truncate(8 << 30)
    with pytest.raises(EpisodeError, match="line 2: max_line_bytes: got more than 5000"):
        list(EpisodeReader(path, limits=EpisodeLimits(max_line_bytes=5000)))


def test_a_file_that_cannot_be_opened_is_an_error_of_ours(tmp_path: Path) -> None:
    """
    Also a pipe, which would be waited for.
    """
    with pytest.raises(EpisodeError, match="no such: does not exist"):
        EpisodeReader(tmp_path / "no such")
    with pytest.raises(EpisodeError, match="is a folder, expected a file"):
        EpisodeReader(tmp_path)
    if hasattr(os, "mkfifo"):
        os.mkfifo(tmp_path / "pipe")
        with pytest.raises(EpisodeError, match="is not a regular file"):
            EpisodeReader(tmp_path / "pipe")


def test_a_path_with_control_characters_is_shown_on_one_line(tmp_path: Path) -> None:
    """
    An error must not write to the terminal what somebody named a file.
    """
    with pytest.raises(EpisodeError) as error:
        EpisodeReader(tmp_path / "a\n\x1b[2J")
    assert str(error.value).endswith("a\\n\\x1b[2J: does not exist")


def test_an_episode_can_be_read_while_it_is_written(path: Path) -> None:
    """
    What is there so far is given.
    """
    write(path, step())
    reader = EpisodeReader(path)
    with path.open("ab") as file:
        file.write(b'{"schema": "comfyui-vlm/rob')
    assert 1 == sum(1 for _ in reader)
    assert reader.truncated


@given(st.data())
def test_any_bytes_give_steps_or_our_error(
    tmp_path_factory: pytest.TempPathFactory, lines: list[bytes], data: st.DataObject
) -> None:
    """
    Random ones, and true ones with some of them changed, cut out, or put in.
    """
    path = tmp_path_factory.getbasetemp() / "any.jsonl"
    junk = data.draw(st.binary(max_size=40) | st.sampled_from([b"\n", b"{}", b"\0", lines[0]]))
    whole = b"".join(data.draw(st.permutations(lines)) if data.draw(st.booleans()) else lines)
    start = data.draw(st.integers(0, len(whole)))
    end = data.draw(st.integers(start, min(len(whole), start + 50)) | st.just(len(whole)))
    path.write_bytes(data.draw(st.sampled_from((junk, whole[:start] + junk + whole[end:]))))
    try:
        found = list(EpisodeReader(path))
    except EpisodeError:
        return
    assert len(found) <= 3


def test_a_last_line_over_the_limits_is_refused_and_not_called_cut(
    path: Path, lines: list[bytes]
) -> None:
    """
    Nobody knows whether it is whole, since it is not read.
    """
    path.write_bytes(lines[0] + b"[" + b"0," * 300)
    with pytest.raises(EpisodeError, match="line 2: max_nodes: got 302, limit is 200"):
        list(EpisodeReader(path, limits=EpisodeLimits(max_nodes=200)))
