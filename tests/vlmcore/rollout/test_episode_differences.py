"""Tests of `vlmcore.rollout.episode_differences`: what a change of limits would have refused."""

from __future__ import annotations

from pathlib import Path

import attrs
import pytest

from episode_cases import GATE, ROBOT, observation, proposal, some_steps, write
from safety_cases import GRIPPER, joint, space
from vlmcore.contracts.embodiment import ActionDim, LimitsSource, Reference
from vlmcore.errors import ContractError
from vlmcore.rollout.episode_differences import limit_differences, recheck
from vlmcore.rollout.episode_reader import EpisodeReader
from vlmcore.rollout.episode_writer import EpisodeWriter
from vlmcore.rollout.episodes import EpisodeHeader
from vlmcore.safety import Remedy, SafetyGate, ViolationKind


@pytest.fixture
def episode(tmp_path: Path) -> EpisodeReader:
    """Read an episode of three steps: kept, clamped, refused."""
    return EpisodeReader(write(tmp_path / "run.jsonl", *some_steps()))


def test_the_gate_of_the_recording_says_what_it_said(episode: EpisodeReader) -> None:
    """
    Only differences are reported.
    """
    assert [] == list(recheck(episode, GATE))


def test_tighter_limits_tell_what_they_would_have_refused(episode: EpisodeReader) -> None:
    """
    With the last command that was known then; nothing leaves, and nothing is raised.
    """
    dims = (joint(0.02, name="x"), joint(name="y"))
    tight = attrs.evolve(ROBOT, actions=attrs.evolve(ROBOT.actions, dims=dims))
    found = list(recheck(episode, SafetyGate(embodiment=tight)))
    assert [0, 1, 2] == [each.index for each in found]
    assert [True, True, False] == [each.is_newly_refused for each in found]
    assert not any(each.is_newly_safe for each in found)
    first = found[0]
    assert ("mode", "counts", "safe_for_handoff", "reason") == first.fields
    assert 2 == first.today.counts[ViolationKind.STEP]
    assert (
        "step 0: mode clamp -> block, counts[step] 0 -> 2, safe_for_handoff True -> False, "
        "reason None -> violations" == str(first)
    )


def test_counts_that_add_up_to_the_same_are_told_by_their_kinds(tmp_path: Path) -> None:
    """
    "counts 8 -> 8" said that something had changed, and not what.
    """
    chunk = proposal([[0.05, 0.0], [0.3, 0.0]])  # a step of 0.25
    path = tmp_path / "run.jsonl"
    with EpisodeWriter(path, EpisodeHeader(embodiment=ROBOT)) as writer:
        report = GATE.check(chunk, last_command=[0.0, 0.0])
        writer.record(observation(), chunk, report, last_command=[0.0, 0.0], at_s=7.0)
    narrow = ActionDim(name="x", low=-0.1, high=0.1, max_step=0.3)
    today = SafetyGate(space=space(narrow, joint(name="y")), remedy=Remedy.REPORT)
    (found,) = recheck(EpisodeReader(path), today)
    assert (1, 1) == (found.recorded.total, found.today.total)
    assert "counts[out_of_bounds] 0 -> 1, counts[step] 1 -> 0" in str(found)
    assert "counts 1" not in str(found)


def test_wider_limits_tell_what_they_would_have_let_pass(tmp_path: Path) -> None:
    """
    The other way round.
    """
    block = SafetyGate(embodiment=ROBOT)
    chunk = proposal([[0.5, 0.0]])
    with EpisodeWriter(tmp_path / "run.jsonl", EpisodeHeader(embodiment=ROBOT)) as writer:
        report = block.check(chunk, last_command=[0.0, 0.0])
        writer.record(observation(), chunk, report, last_command=[0.0, 0.0], at_s=7.0)
    wide = attrs.evolve(ROBOT, actions=space(joint(1.0, name="x"), joint(name="y")))
    gate = SafetyGate(embodiment=wide, remedy=Remedy.REPORT)
    (found,) = recheck(EpisodeReader(tmp_path / "run.jsonl"), gate)
    assert found.is_newly_safe
    assert not found.is_newly_refused


def test_the_last_command_goes_by_its_names(episode: EpisodeReader) -> None:
    """
    A gate that has them in another order is not told x for y.
    """
    turned = attrs.evolve(ROBOT, actions=space(*reversed(ROBOT.actions.dims)))
    gate = SafetyGate(embodiment=turned, remedy=Remedy.CLAMP, reorder=True)
    assert [] == list(recheck(episode, gate))


def test_positions_that_were_recorded_are_used_where_the_gate_asks_for_them(
    tmp_path: Path,
) -> None:
    """
    And where it asks for others, nobody knows.
    """
    slide = ActionDim(name="x", reference=Reference.DELTA, low=-1, high=1, max_step=1)
    bounded = attrs.evolve(slide, position_low=0.0, position_high=1.0)
    robot = attrs.evolve(ROBOT, actions=space(bounded, attrs.evolve(slide, name="y")))
    gate, chunk = SafetyGate(embodiment=robot), proposal([[0.5, 0.25]])
    path = tmp_path / "run.jsonl"
    with EpisodeWriter(path, EpisodeHeader(embodiment=robot)) as writer:
        vetted = gate.vet(chunk, last_command=[0.0, 0.0], position={"x": 0.25})
        writer.record(observation(), chunk, vetted, last_command=[0.0, 0.0], at_s=7.0)
    assert [] == list(recheck(EpisodeReader(path), gate))
    narrow = space(attrs.evolve(bounded, position_high=0.5), robot.actions.dims[1])
    (found,) = recheck(EpisodeReader(path), SafetyGate(space=narrow))
    assert 1 == found.today.counts[ViolationKind.POSITION]
    other = space(slide, attrs.evolve(bounded, name="y"))
    (found,) = recheck(EpisodeReader(path), SafetyGate(space=other))
    assert 1 == found.today.counts[ViolationKind.POSITION_UNKNOWN]


def test_a_gate_of_other_actions_is_refused(episode: EpisodeReader) -> None:
    """
    Nothing can be said of them.
    """
    with pytest.raises(ContractError, match=r"^gate: got Embodiment, expected a SafetyGate"):
        list(recheck(episode, ROBOT))  # type: ignore[arg-type]
    with pytest.raises(ContractError, match=r"^episode: got PosixPath|^episode: got WindowsPath"):
        list(recheck(Path("run.jsonl"), GATE))  # type: ignore[arg-type]
    with pytest.raises(ContractError, match=r"^chunk.names: got x, y, expected x"):
        list(recheck(episode, SafetyGate(space=space(joint(name="x")))))


def test_every_difference_of_two_robots_is_listed() -> None:
    """
    By the field that a person would change; notes are for people.
    """
    other = attrs.evolve(
        ROBOT,
        name="other",
        state_names=("x",),
        actions=attrs.evolve(space(joint(name="x", bound=2.0), GRIPPER), rate_hz=50),
        limits_source=LimitsSource.TEMPLATE,
        notes="a word",
    )
    found = [each.field for each in limit_differences(ROBOT, SafetyGate(embodiment=other))]
    assert [
        "name",
        "state_names",
        "limits_source",
        "actions.names",
        "actions.rate_hz",
        "actions['x'].low",
        "actions['x'].high",
    ] == found
    only_space = limit_differences(ROBOT, SafetyGate(space=ROBOT.actions))
    assert () == only_space == limit_differences(ROBOT, SafetyGate(embodiment=ROBOT))
