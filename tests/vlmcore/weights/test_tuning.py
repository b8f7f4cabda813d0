"""What is fastest on a machine: measured once, and remembered."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest

from vlmcore.errors import ContractError, WeightsError
from vlmcore.weights import tuning
from vlmcore.weights.budget import ReadBudget
from vlmcore.weights.opening import open_files
from vlmcore.weights.tuning import autotune, default_memory, remembered
from weight_cases import write_safetensors

MIB = 1 << 20


@pytest.fixture
def path(tmp_path: Path) -> Path:
    numbers = np.random.default_rng(0).integers(0, 255, 3 * MIB, np.uint8)
    return write_safetensors(tmp_path / "some.safetensors", {"numbers": numbers})


@pytest.fixture
def memory(tmp_path: Path) -> Path:
    return tmp_path / "caches" / "weights.json"


def test_it_is_measured_once_and_remembered(path: Path, memory: Path) -> None:
    """
    The second call for the same machine and file system reads nothing.
    """
    first = autotune(path, memory=memory)
    assert not first.is_remembered
    assert {"disk", "memory"} == {trial.where for trial in first.trials}
    assert all(trial.gb_per_s > 0 for trial in first.trials)
    second = autotune(path, memory=memory)
    assert (first.budget, (), True) == (second.budget, second.trials, second.is_remembered)
    with open_files(path) as files:
        assert first.budget == remembered(files, memory=memory)
    assert not autotune(path, memory=memory, again=True).is_remembered


def test_nothing_is_remembered_before_it_was_measured(path: Path, memory: Path) -> None:
    """
    A load that nobody tuned goes the usual way.
    """
    with open_files(path) as files:
        assert remembered(files, memory=memory) is None


def test_one_file_remembers_several_machines(
    path: Path, memory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    A home that several machines share does not mix them up.
    """
    here = autotune(path, memory=memory).budget
    monkeypatch.setattr(tuning.platform, "node", lambda: "another")
    with open_files(path) as files:
        assert remembered(files, memory=memory) is None
    autotune(path, memory=memory)
    monkeypatch.undo()
    with open_files(path) as files:
        assert here == remembered(files, memory=memory)
    assert 2 == len(json.loads(memory.read_text())["budgets"])


@pytest.mark.parametrize(
    "text",
    [
        "",
        "no JSON",
        "[1]",
        '{"budgets": 7}',
        '{"budgets": {"KEY": {"readers": 0}}}',
        '{"budgets": {"KEY": {"direct": "yes"}}}',
        '{"budgets": {"KEY": {"surprise": 1}}}',
        "[" * 100_000,
    ],
)
def test_a_memory_that_somebody_broke_is_as_none(path: Path, memory: Path, text: str) -> None:
    """
    What cannot be read there is measured again, and written whole.
    """
    with open_files(path) as files:
        memory.parent.mkdir()
        memory.write_text(text.replace("KEY", tuning._key(files)))
        assert remembered(files, memory=memory) is None
        found = autotune(path, memory=memory)
        assert found.budget == remembered(files, memory=memory)


def test_what_is_remembered_is_fit_for_what_the_host_has_free(
    path: Path, memory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    A budget of a free machine does not drive a busy one out of memory.
    """
    autotune(path, memory=memory)
    monkeypatch.setattr("vlmcore.weights.budget.free_host_bytes", lambda: 8 * MIB)
    with open_files(path) as files:
        budget = remembered(files, memory=memory)
    assert budget is not None
    assert MIB == budget.staging_bytes
    assert budget.steps_down


def test_a_small_host_is_tuned_with_little_memory(
    path: Path, memory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    What is tried fits into what the host has free, down to a page.
    """
    for free in (0, 100_000, 8 * MIB):
        monkeypatch.setattr("vlmcore.weights.budget.free_host_bytes", lambda free=free: free)
        tuning = autotune(path, memory=memory, again=True)
        assert tuning.budget.staging_bytes <= max(free // 8, 0x1000)
        assert tuning.trials


def test_a_memory_that_cannot_be_written_is_an_error(path: Path, tmp_path: Path) -> None:
    """
    Who asks to remember is told that it was not.
    """
    (tmp_path / "file").write_text("no folder")
    with pytest.raises(ContractError, match="its folder cannot be made"):
        autotune(path, memory=tmp_path / "file" / "memory.json")


def test_a_file_that_is_not_there_cannot_be_measured(tmp_path: Path, memory: Path) -> None:
    """
    Nothing is written for it.
    """
    with pytest.raises(WeightsError):
        autotune(tmp_path / "nothing", memory=memory)
    assert not memory.exists()


def test_a_checkpoint_without_numbers_is_measured_as_well(tmp_path: Path, memory: Path) -> None:
    """
    There is nothing to read, and that is no error.
    """
    path = write_safetensors(tmp_path / "none.safetensors", {"none": np.zeros(0)})
    assert isinstance(autotune(path, memory=memory).budget, ReadBudget)


@pytest.mark.parametrize("system", ["linux", "darwin", "win32"])
def test_the_memory_is_where_the_system_keeps_caches(
    system: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    Each system has a folder for what may be deleted.
    """
    monkeypatch.setattr(sys, "platform", system)
    folders = {"linux": ".cache", "darwin": "Library/Caches", "win32": "AppData/Local"}
    assert Path.home() / folders[system] / "vlmcore/weights.json" == default_memory()
