"""``vlmcore weights load`` and ``tune``: how fast weights are read, and how fastest."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from vlmcore.weights import tuning
from vlmcore.weights.budget import ReadBudget
from vlmcore.weights.writing import write_pack
from weight_cases import some_tensors


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tuning, "default_memory", lambda: tmp_path / "memory.json")
    return Path(write_pack(some_tensors(), tmp_path / "some.flashpack").path)


def test_loading_says_what_was_read_and_how_fast(command: Any, path: Path) -> None:
    """
    One line for a person, and the figures that explain it.
    """
    done = command("weights", "load", path)
    assert (0, "") == (done.code, done.err)
    first, *rest = done.out.splitlines()
    assert first.startswith(f"{path}: 48 tensors, 10.4 MB in ")
    assert first.endswith("GB/s (views)")
    assert "  10.4 MB mapped" in rest


def test_loading_says_which_bytes_came_through_the_page_cache(command: Any, path: Path) -> None:
    """
    In a line that can be read alone.
    """
    done = command("weights", "load", path, "--way", "copy", "--no-direct")
    assert "  10.4 MB read through the page cache" in done.out.splitlines()


def test_the_figures_come_as_json_too(command: Any, path: Path) -> None:
    """
    A program reads the report of the load, whole.
    """
    done = command("weights", "load", path, "--way", "copy", "--verify", "whole", "--json")
    report = json.loads(done.out)
    assert ("copy", 48) == (report["way"], report["tensors"])
    assert report["payload_bytes"] == report["verified_bytes"]


def test_options_make_the_budget(command: Any, path: Path, monkeypatch: Any) -> None:
    """
    Every value of the budget can be set on the command line.
    """
    asked: list[dict[str, Any]] = []

    def note(**wishes: Any) -> ReadBudget:
        asked.append(wishes)
        return ReadBudget()

    monkeypatch.setattr(ReadBudget, "for_host", note)
    words = "--staging-mib 64 --readers 3 --chunk-mib 2 --cached-readers 1 --no-direct"
    assert 0 == command("weights", "load", path, *words.split()).code
    mib = 1 << 20
    expected = {"staging_bytes": 64 * mib, "readers": 3, "chunk_bytes": 2 * mib}
    assert [{**expected, "cached_readers": 1, "direct": False}] == asked


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("--readers", "0"), 2, "readers: got 0, expected a whole number of at least 1"),
        (("--way", "lazy"), 2, "invalid choice: 'lazy'"),
    ],
)
def test_words_that_make_no_sense_are_told(
    command: Any, path: Path, words: tuple[str, ...], code: int, said: str
) -> None:
    """
    Nothing is read for a command line that is not right.
    """
    done = command("weights", "load", path, *words)
    assert code == done.code
    assert said in done.err


def test_a_flipped_byte_ends_loading_with_a_code_of_its_own(command: Any, path: Path) -> None:
    """
    A script can tell weights that are others from weights that cannot be read.
    """
    with path.open("r+b") as file:
        file.write(b"\xff")
    done = command("weights", "load", path, "--verify", "whole")
    assert 5 == done.code
    assert "got other bytes than the manifest's in" in done.err
    missing = command("weights", "load", path.with_name("nothing"))
    assert (1, "") == (missing.code, missing.out)


def test_tuning_measures_once_and_loading_takes_what_was_found(command: Any, path: Path) -> None:
    """
    The second time nothing is measured, and loads have no need to be told.
    """
    first = json.loads(command("weights", "tune", path, "--json").out)
    again = json.loads(command("weights", "tune", path, "--json").out)
    assert (False, True) == (first["is_remembered"], again["is_remembered"])
    assert first["budget"] == again["budget"]
    assert first["trials"]
    assert not again["trials"]
    said = command("weights", "tune", path).out
    assert said.endswith("as it was measured before\n")
    assert 0 == command("weights", "load", path).code
