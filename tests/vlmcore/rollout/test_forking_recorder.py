"""Tests of `vlmcore.rollout.forking_recorder`."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import pytest

from episode_cases import HEADER, ROBOT, observation
from vlmcore.errors import ContractError, EpisodeError
from vlmcore.policy.interface import ForkingPolicy, PolicyInfo
from vlmcore.rollout import EpisodeReader, EpisodeWriter, FlightRecorder, ForkingFlightRecorder
from vlmcore.rollout.recorded_policies import EpisodePolicy
from vlmcore.testing import ScriptedPolicy, check_policy, example_observation

INFO = PolicyInfo(name="scripted", action_names=("x", "y"))
FIRST, SECOND = [[0.05, 0.0]], [[0.1, 0.0]]


def numbered(folder: Path) -> Callable[[], EpisodeWriter]:
    """Write to the files 1, 2 and so on."""
    numbers = itertools.count(1)
    return lambda: EpisodeWriter(folder / str(next(numbers)), HEADER)


def recorder(new_writer: Any) -> ForkingFlightRecorder:
    script = ScriptedPolicy([FIRST, SECOND], info=INFO)
    return ForkingFlightRecorder(script, ROBOT, clock=lambda: 0.0, new_writer=new_writer)


def values_in(path: Path) -> list[list[list[float]]]:
    return [step.chunk.values.tolist() for step in EpisodeReader(path)]


def test_a_recorder_that_forks_is_the_policy_that_it_records(tmp_path: Path) -> None:
    """
    It keeps every promise of one, those of forks included.
    """
    info = attrs.evolve(INFO, state_names=ROBOT.state_names, cameras=ROBOT.cameras)
    new_writer = numbered(tmp_path)

    def make() -> ForkingFlightRecorder:
        return ForkingFlightRecorder(
            ScriptedPolicy([FIRST], info=info), ROBOT, clock=lambda: 0.0, new_writer=new_writer
        )

    assert isinstance(make(), ForkingPolicy)
    check_policy(make, example_observation(ROBOT), embodiment=ROBOT)


def test_each_fork_is_an_episode_that_can_be_played_by_itself(tmp_path: Path) -> None:
    """
    Two robots that ask in turn neither share the policy's memory nor a file.
    """
    recording = recorder(numbered(tmp_path))
    one, other = recording.fork(), recording.fork()
    assert not any(tmp_path.iterdir())
    for session in (one, other, one):
        session.infer(observation())
    one.close()
    recording.infer(observation())
    other.close()
    recording.close()
    assert [FIRST, SECOND] == values_in(tmp_path / "1")
    assert [FIRST] == values_in(tmp_path / "2") == values_in(tmp_path / "3")
    played = EpisodePolicy(EpisodeReader(tmp_path / "1"))
    assert [FIRST, SECOND] == [played.infer(observation()).values.tolist() for _ in range(2)]


def test_a_file_that_cannot_be_written_stops_no_fork() -> None:
    """
    What is lost is counted where somebody looks.
    """

    def full() -> EpisodeWriter:
        raise EpisodeError("run", None, "cannot be written: no space left")

    recording = recorder(full)
    fork = recording.fork()
    assert FIRST == fork.infer(observation()).values.tolist()
    assert FIRST == recording.infer(observation()).values.tolist()
    assert SECOND == fork.infer(observation()).values.tolist()
    assert (2, 3) == (fork.lost, recording.lost)
    assert "no space left" in recording.problem


def test_what_cannot_fork_or_be_written_is_refused(tmp_path: Path) -> None:
    """
    Sessions would share it in silence.
    """
    script = ScriptedPolicy([FIRST], info=INFO)
    plain: Any = FlightRecorder(script, ROBOT, clock=lambda: 0.0)
    options: Any = {"clock": lambda: 0.0, "new_writer": numbered(tmp_path)}
    with pytest.raises(ContractError, match=r"^policy: got FlightRecorder, expected a Forking"):
        ForkingFlightRecorder(plain, ROBOT, **options)
    with pytest.raises(ContractError, match=r"^new_writer: got int, expected a function"):
        ForkingFlightRecorder(script, ROBOT, **{**options, "new_writer": 3})
    with (
        EpisodeWriter(tmp_path / "w", HEADER) as file,
        pytest.raises(ContractError, match=r"^writer"),
    ):
        ForkingFlightRecorder(script, ROBOT, writer=file, **options)
