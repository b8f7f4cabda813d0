"""The comparison of loaders of weights: what is measured is kept, and nothing is done twice."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

FOLDER = Path(__file__).parents[2] / "bench" / "weights"
WAYS = ["limit: direct read", "limit: buffered read", "one", "other"]


class Loads:
    """Stands for the loads: says what was asked for, and stops where it is told to."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str]] = []
        self.stops_at = 1000
        self.wrong = ""
        self._state = ""

    def prepare(self, _: Path, state: str) -> None:
        self._state = state

    def load(self, way: str, _: Path, more: list[str]) -> dict[str, Any]:
        if len(self.asked) == self.stops_at:
            raise KeyboardInterrupt
        self.asked.append((self._state, way))
        took = {"seconds": len(self.asked), "cpu_seconds": 0.5, "peak_mb": 10.0}
        return took | ({"digest": str(way == self.wrong)} if "--digest" in more else {})


@pytest.fixture
def loads() -> Loads:
    return Loads()


@pytest.fixture
def compare(loads: Loads, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The program, with loads that take no time."""
    monkeypatch.syspath_prepend(FOLDER)
    spec = importlib.util.spec_from_file_location("weights_compare", FOLDER / "compare.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "prepare", loads.prepare)
    monkeypatch.setattr(module, "load", loads.load)
    return module


def words(results: Path) -> list[str]:
    return ["folder", "--rounds", "2", "--results", str(results), "--ways", *WAYS]


@pytest.mark.parametrize("cut", [0, 5])
def test_a_comparison_that_was_stopped_goes_on_where_it_was(
    cut: int, compare: ModuleType, loads: Loads, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """
    Each load is done once; one that was cut off while it was written down is done again.
    """
    results = tmp_path / "results"
    loads.stops_at = 7
    assert 0 == compare.main(words(results))
    kept = results.read_text()
    results.write_text(kept[: len(kept) - cut])
    loads.stops_at = 1000

    assert 0 == compare.main(words(results))

    everything = [(state, way) for _, state, way in compare.order(2, WAYS)]
    again = everything[6:7] if cut else []
    assert sorted([*everything, *again]) == sorted(loads.asked)
    lines = [json.loads(line) for line in results.read_text().splitlines()]
    assert everything == [(each["state"], each["way"]) for each in lines]
    capsys.readouterr()
    loads.stops_at = len(loads.asked)
    assert 0 == compare.main(words(results))
    assert 4 == capsys.readouterr().out.count("| 2 |")


def test_a_comparison_that_is_stopped_early_shows_what_there_is(
    compare: ModuleType, loads: Loads, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """
    Ways that were measured cold and warm have a line.
    """
    loads.stops_at = 5
    assert 0 == compare.main(words(tmp_path / "results"))
    out = capsys.readouterr().out
    assert "| limit: direct read | 1 |" in out
    assert "| other |" not in out


def test_ways_that_give_other_bytes_are_told(
    compare: ModuleType, loads: Loads, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """
    A loader that is fast and wrong does not win.
    """
    loads.wrong = "other"
    assert 1 == compare.main(words(tmp_path / "results"))
    assert "not the same bytes" in capsys.readouterr().out


def test_every_other_round_goes_the_other_way(compare: ModuleType) -> None:
    """
    So that no way always comes after the same other one.
    """
    ways = [way for _, state, way in compare.order(2, ["a", "b"]) if state == "cold"]
    assert ["a", "b", "b", "a"] == ways


def test_what_is_wanted_is_said_with_whether_it_is_so(
    compare: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    """
    Loads onto a GPU are held to the slower of disk and bus, and all to the memory that they take.
    """
    took = {
        "limit: direct read": (1.0, 1),
        "limit: buffered read": (0.4, 1),
        "limit: bus": (0.5, 1),
        "vlmcore device, pack": (1.05, 310),
        "vlmcore copy, pack": (1.2, 2400),
        "safetensors load_file, touched": (0.1, 2000),
        "safetensors load_file, cloned": (1.5, 4000),
    }
    results = [
        {
            "way": way,
            "state": state,
            "seconds": seconds if state == "cold" else seconds / 2,
            "cpu_seconds": 0.1,
            "peak_mb": peak_mb,
            "file_mb": 2000.0,
        }
        for way, (seconds, peak_mb) in took.items()
        for state in ("cold", "warm")
    ]
    compare.show(list(took), results)
    said = capsys.readouterr().out.splitlines()
    assert "met    vlmcore device, pack, cold, of the limit: 1.05, at most 1.1 is wanted" in said
    assert "missed vlmcore device, pack, warm, of the limit: 2.10, at most 1.1 is wanted" in said
    assert "met    vlmcore copy, pack, cold, of the best peer: 0.80, at most 1.0 is wanted" in said
    assert any(line.startswith("missed vlmcore copy, pack, cold, MB besides") for line in said)
    assert any(line.startswith("met    vlmcore device, pack, cold, MB besides") for line in said)
