"""Tests of `vlmcore_robotics.adapters._lerobot_training`: the data that a policy was trained on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from vlmcore.errors import ContractError, PolicyError
from vlmcore_robotics.adapters._lerobot_training import TrainedOn, trained_on


def read(dataset: Path | None = None, **said: Any) -> TrainedOn:
    nothing = {"action_names": None, "state_names": None, "rate_hz": None}
    return trained_on("mine", dataset=dataset, **{**nothing, **said})


def dataset(path: Path, *, fps: Any = 30, **names: Any) -> Path:
    (path / "meta").mkdir()
    features = {key.replace("_", "."): {"names": each} for key, each in names.items()}
    text = json.dumps({"fps": fps, "features": features})
    (path / "meta" / "info.json").write_text(text, encoding="utf-8")
    return path


def test_names_and_rate_are_read_from_a_data_set(tmp_path: Path) -> None:
    """
    Those that LeRobot writes.
    """
    path = dataset(tmp_path, action=["a", "b"], observation_state=["x", "y", "z"])
    assert TrainedOn(action_names=["a", "b"], state_names=["x", "y", "z"], rate_hz=30) == read(path)


def test_names_under_the_kinds_of_parts_are_read(tmp_path: Path) -> None:
    """
    So did data sets of before write them.
    """
    path = dataset(tmp_path, action={"motors": ["a", "b"], "hand": ["c"]})
    assert ("a", "b", "c") == read(path).action_names


@pytest.mark.parametrize("names", [None, [], [1, 2], {"axes": 3}, "ab"])
def test_a_data_set_without_names_says_nothing(tmp_path: Path, names: Any) -> None:
    """
    Then somebody else has to.
    """
    assert read(dataset(tmp_path, action=names)).action_names is None


def test_a_folder_that_is_no_data_set_is_refused(tmp_path: Path) -> None:
    """
    With the file that was looked for.
    """
    with pytest.raises(PolicyError, match=r"mine: info\.json cannot be read"):
        read(tmp_path)


def test_what_is_said_beside_a_data_set_is_refused(tmp_path: Path) -> None:
    """
    One of the two would be passed over.
    """
    with pytest.raises(ContractError, match="rate_hz: got it beside dataset"):
        read(dataset(tmp_path), rate_hz=30)


@pytest.mark.parametrize(
    "said",
    [{"action_names": "ab"}, {"state_names": ["a", "a"]}, {"rate_hz": 0}, {"rate_hz": True}],
)
def test_what_the_caller_says_is_checked(said: Any) -> None:
    """
    Text is no sequence of names, and a rate is above zero.
    """
    with pytest.raises(ContractError):
        read(**said)


@pytest.mark.parametrize("fps", [0, -1, "30", True, 1e999])
def test_a_rate_of_a_data_set_is_checked(tmp_path: Path, fps: Any) -> None:
    """
    Infinity, too, is written by some.
    """
    with pytest.raises(ContractError, match="rate_hz"):
        read(dataset(tmp_path, fps=fps))
