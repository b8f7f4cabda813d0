"""Tests of `vlmcore.rollout.replay`: a file is outside, and the robot stands elsewhere today."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import attrs
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from episode_cases import (
    GATE,
    HEADER,
    ROBOT,
    observation,
    outcome,
    proposal,
    some_steps,
    step,
    write,
)
from safety_cases import joint, space
from vlmcore.contracts.embodiment import ActionDim, Reference
from vlmcore.errors import ContractError
from vlmcore.rollout.episode_reader import EpisodeReader
from vlmcore.rollout.episode_writer import EpisodeWriter
from vlmcore.rollout.episodes import EpisodeHeader
from vlmcore.rollout.replay import Replay, replay
from vlmcore.safety import Remedy, SafetyGate, VettedChunk, ViolationKind
from vlmcore.safety.latch import SafetyLatch
from vlmcore.testing.contract_strategies import hostile_actions

HERE = [0.0, 0.0]
BLOCK = SafetyGate(embodiment=ROBOT)


@pytest.fixture
def episode(tmp_path: Path) -> EpisodeReader:
    """Read an episode of three steps: kept, clamped, refused."""
    return EpisodeReader(write(tmp_path / "run.jsonl", *some_steps()))


def values(played: Any) -> Any:
    """List what was vetted, rounded; the reason where it was refused."""
    if played.vetted is None:
        return played.refusal.reason
    return played.vetted.values.round(6).tolist()


def test_every_chunk_passes_the_gate_again(episode: EpisodeReader) -> None:
    """
    With the same start and the same gate comes what was recorded, until that was refused.
    """
    played = list(replay(episode, GATE, last_command=HERE))
    assert [0, 1, 2] == [each.index for each in played]
    for each, recorded in zip(played[:2], some_steps(), strict=False):
        assert each.recorded == recorded
        assert type(each.vetted) is VettedChunk
        assert each.refusal is None
        assert np.array_equal(each.vetted.values, recorded.vetted)


def test_the_first_chunk_starts_where_the_robot_stands_today(episode: EpisodeReader) -> None:
    """
    And not where it stood when the file was made.
    """
    elsewhere = replay(episode, GATE, last_command={"y": 0.5, "x": -0.5})
    assert [[-0.4, 0.4], [-0.3, 0.3]] == values(next(elsewhere))
    assert "step" in values_of_refusal(next(replay(episode, BLOCK, last_command=[0.9, 0.9])))


def values_of_refusal(played: Any) -> list[str]:
    """List the kinds that were found in what was refused."""
    counts = played.refusal.report.counts
    return [kind.value for kind, count in counts.items() if count]


def test_a_robot_that_stands_nobody_knows_where_does_not_move(episode: EpisodeReader) -> None:
    """
    The file says where it was, and that is not taken for where it is.
    """
    played = list(replay(episode, GATE, last_command=None))
    assert ["first_step_unchecked"] * 2 == [values(each) for each in (played[0], played[2])]
    assert all(each.vetted is None and each.last_command is None for each in played)


def test_the_next_chunk_starts_from_what_was_executed_of_this_one(episode: EpisodeReader) -> None:
    """
    As many steps as when it was recorded; of a refused one none.
    """
    first, second, third = replay(episode, GATE, last_command=HERE)
    assert HERE == first.last_command.tolist()  # type: ignore[union-attr]
    assert [0.1, 0.0] == second.last_command.tolist()  # type: ignore[union-attr]
    assert second.vetted is not None
    assert third.last_command.tolist() == second.vetted.values[0].tolist()  # type: ignore[union-attr]


def test_a_caller_who_sends_something_else_says_so(episode: EpisodeReader) -> None:
    """
    Fewer steps than were recorded, none, or more.
    """
    playback = replay(episode, GATE, last_command=HERE)
    next(playback)
    playback.sent(0)
    assert HERE == playback.last_command.tolist()  # type: ignore[union-attr]
    playback.sent(1)
    assert [0.05, 0.0] == playback.last_command.tolist()  # type: ignore[union-attr]
    assert [0.05, 0.0] == next(playback).last_command.tolist()  # type: ignore[union-attr]


@pytest.mark.parametrize("wrong", [-1, 3, True, 1.0, None])
def test_no_more_is_sent_than_was_vetted(episode: EpisodeReader, wrong: Any) -> None:
    """
    And nothing of what was refused, nor before the first chunk.
    """
    playback = replay(episode, GATE, last_command=HERE)
    with pytest.raises(ContractError, match=r"^steps: got .*, expected 0 to 0"):
        playback.sent(1)
    playback.sent(0)
    next(playback)
    with pytest.raises(ContractError, match=r"^steps: got .*, expected 0 to 2"):
        playback.sent(wrong)
    refused = replay(episode, GATE, last_command=None)
    next(refused)
    with pytest.raises(ContractError, match=r"^steps: got 1, expected 0 to 0"):
        refused.sent(1)


def test_steps_are_vetted_when_they_are_asked_for(episode: EpisodeReader) -> None:
    """
    A robot plays for minutes; its next chunk is not decided before this one is done.
    """
    times = iter([100.0, 101.5, 103.0])
    playback = replay(episode, GATE, last_command=HERE, clock=lambda: next(times))
    assert isinstance(playback, Replay)
    seen = [each.outcome.observed_at_s for each in playback if each.vetted is not None]  # type: ignore[union-attr]
    assert [100.0, 101.5, 103.0][: len(seen)] == seen


def test_chunks_keep_the_time_of_the_recording_without_a_clock(episode: EpisodeReader) -> None:
    """
    So that a hand-over by age refuses them.
    """
    first = next(replay(episode, GATE, last_command=HERE))
    assert first.vetted is not None
    assert 7.0 == first.vetted.observed_at_s


def test_limits_that_differ_are_listed_and_the_gate_keeps_those_of_today(
    episode: EpisodeReader,
) -> None:
    """
    What was recorded under other limits is vetted under these.
    """
    dims = (joint(0.02, name="x"), joint(name="y"))
    today = attrs.evolve(ROBOT, name="slow", actions=attrs.evolve(ROBOT.actions, dims=dims))
    gate = SafetyGate(embodiment=today, remedy=Remedy.CLAMP)
    playback = replay(episode, gate, last_command=HERE)
    assert [
        "name: recorded 'two joints', today 'slow'",
        "actions['x'].max_step: recorded 0.1, today 0.02",
    ] == [str(difference) for difference in playback.differences]
    assert [[0.02, 0.0], [0.04, 0.0]] == values(next(playback))
    assert () == replay(episode, GATE, last_command=HERE).differences


def test_an_episode_of_other_actions_is_refused_at_once(episode: EpisodeReader) -> None:
    """
    Before anything moves.
    """
    other = SafetyGate(space=space(joint(name="x"), joint(name="z")))
    with pytest.raises(ContractError, match=r"^gate: got the actions x, z, expected .*, x, y"):
        replay(episode, other, last_command=HERE)
    with pytest.raises(ContractError, match=r"^last_command: got 1 numbers, expected 2"):
        replay(episode, GATE, last_command=[0.0])


def test_arguments_of_another_kind_are_named(episode: EpisodeReader) -> None:
    """
    A path is no reader, and a robot no gate.
    """
    with pytest.raises(ContractError, match=r"^episode: got str, expected an EpisodeReader"):
        replay("run.jsonl", GATE, last_command=HERE)  # type: ignore[arg-type]
    with pytest.raises(ContractError, match=r"^gate: got Embodiment, expected a SafetyGate"):
        replay(episode, ROBOT, last_command=HERE)  # type: ignore[arg-type]
    with pytest.raises(ContractError, match=r"^position: got list, expected numbers by name"):
        replay(episode, GATE, last_command=HERE, position=[0.0])  # type: ignore[arg-type]


def test_actions_in_another_order_are_put_in_it_if_the_gate_is_told_to(
    episode: EpisodeReader,
) -> None:
    """
    A gate that was not refuses, and says how.
    """
    turned = space(*reversed(ROBOT.actions.dims))
    told = SafetyGate(space=turned, remedy=Remedy.CLAMP, reorder=True)
    playback = replay(episode, told, last_command={"x": 0.0, "y": 0.0})
    assert [[0.0, 0.05], [0.0, 0.1]] == values(next(playback))
    assert [0.0, 0.1] == next(playback).last_command.tolist()  # type: ignore[union-attr]
    with pytest.raises(ContractError, match=r"^chunk.names: .*reorder=True"):
        next(replay(episode, SafetyGate(space=turned), last_command=HERE))


def test_a_latch_shuts_a_replay_that_is_refused_again_and_again(tmp_path: Path) -> None:
    """
    Until a person rearms it.
    """
    far = [step([[0.9, 0.0]], executed_steps=1)] * 3
    latch = SafetyLatch(BLOCK, max_consecutive=2)
    reader = EpisodeReader(write(tmp_path / "run.jsonl", *far))
    reasons = [values(each) for each in replay(reader, latch, last_command=HERE)]
    assert ["violations", "violations", "tripped"] == reasons


SLIDE = ActionDim(
    name="x",
    reference=Reference.DELTA,
    low=-1,
    high=1,
    max_step=1,
    position_low=0.0,
    position_high=1.0,
)
SPEED = attrs.evolve(SLIDE, name="y", reference=Reference.VELOCITY, position_high=9.0)


def test_the_positions_of_changes_are_followed_from_where_things_are(tmp_path: Path) -> None:
    """
    Changes are added up, rates times the time of a step, until somebody measures.
    """
    robot = attrs.evolve(ROBOT, actions=space(SLIDE, SPEED))
    gate = SafetyGate(embodiment=robot)
    chunk = proposal([[0.25, 0.5], [0.25, 1.0], [0.25, 0.0]])
    there = {"x": 0.0, "y": 1.0}
    path = tmp_path / "run.jsonl"
    with EpisodeWriter(path, EpisodeHeader(embodiment=robot)) as writer:
        for _ in range(3):
            vetted = gate.vet(chunk, last_command=HERE, position=there)
            more: dict[str, Any] = {"last_command": HERE, "at_s": 7.0, "executed_steps": 2}
            written = writer.record(observation(), chunk, vetted, **more)
    assert there == written.position

    playback = replay(EpisodeReader(path), gate, last_command=HERE, position=there)
    assert there == next(playback).position
    assert {"x": 0.5, "y": 1.075} == playback.position
    assert "violations" == values(next(playback))
    assert {"x": 0.5, "y": 1.075} == playback.position
    playback.sent(0, position={"x": 0.1, "y": 2.0})
    assert {"x": 0.1, "y": 2.0} == next(playback).position
    blind = next(replay(EpisodeReader(path), gate, last_command=HERE))
    assert blind.refusal is not None
    assert 2 == blind.refusal.report.counts[ViolationKind.POSITION_UNKNOWN]  # type: ignore[attr-defined]


@given(st.lists(hostile_actions(steps=2, dims=2), min_size=1, max_size=3), st.data())
def test_whatever_was_recorded_nothing_unsafe_is_played(
    tmp_path_factory: pytest.TempPathFactory, chunks: list[np.ndarray], data: st.DataObject
) -> None:
    """
    All that leaves keeps every limit from the last command on, which follows what was sent.
    """
    path = tmp_path_factory.getbasetemp() / "any.jsonl"
    with EpisodeWriter(path, HEADER, overwrite=True) as writer:
        for each in chunks:
            chunk = proposal(each)
            came = outcome(chunk, HERE)
            writer.record(observation(), chunk, came, last_command=HERE, at_s=7.0)
    start = data.draw(st.sampled_from(([0.0, 0.0], [1.0, -1.0], [5.0, 0.0])))
    playback = replay(EpisodeReader(path), GATE, last_command=start)
    before = np.array(start)
    for played in playback:
        assert played.last_command is not None
        assert np.array_equal(before, played.last_command)
        if played.vetted is None:
            continue
        sent = played.vetted.values
        assert (np.abs(sent) <= 1.0).all()
        assert (np.abs(np.diff(np.vstack((before, sent)), axis=0)) <= 0.1 * 1.01).all()
        count = data.draw(st.integers(0, len(sent)))
        playback.sent(count)
        before = sent[count - 1] if count else before


def test_a_chunk_that_was_cut_off_is_recorded_and_replayed_as_it_left(tmp_path: Path) -> None:
    """
    It has fewer steps than the report looked at, and no more are sent than left.
    """
    gate = attrs.evolve(GATE, non_finite=None)
    chunk = proposal([[0.05, 0.0], [0.1, 0.0], [0.15, np.nan], [0.2, 0.0]])
    came = outcome(chunk, HERE, gate)
    assert isinstance(came, VettedChunk)
    with EpisodeWriter(tmp_path / "run.jsonl", HEADER) as writer:
        writer.record(
            observation(), chunk, came, at_s=7.5, last_command=HERE, executed_steps=came.horizon
        )
    (recorded,) = episode = EpisodeReader(tmp_path / "run.jsonl")
    assert (2, 4) == (len(recorded.sent), recorded.report.execution_horizon)
    again = replay(episode, gate, last_command=HERE)
    assert [[0.05, 0.0], [0.1, 0.0]] == values(next(again))
    assert [0.1, 0.0] == again.last_command.tolist()
    with pytest.raises(ContractError, match=r"^vetted: got shape"):
        attrs.evolve(recorded, vetted=np.zeros((5, 2)))
    unchanged = attrs.evolve(recorded.report, changed=False, cut_steps=0)
    with pytest.raises(ContractError, match=r"^vetted: got shape"):
        attrs.evolve(recorded, report=unchanged)
