"""Tests of `vlmcore.rollout.recorded_policies`."""

from __future__ import annotations

from pathlib import Path

import attrs
import numpy as np
import pytest

from episode_cases import HEADER, NAN, ROBOT, observation, proposal, some_steps, step, write
from vlmcore.errors import ContractError, PolicyError
from vlmcore.policy.interface import ForkingPolicy, PolicyInfo
from vlmcore.rollout.episode_calls import PolicyCall, digest_of
from vlmcore.rollout.episode_reader import EpisodeReader
from vlmcore.rollout.recorded_policies import ConstantPolicy, EpisodePolicy, episode_horizon
from vlmcore.testing import check_policy, example_observation

CHUNK = proposal([[0.1, 0.2], [0.3, 0.4]])
SEEN = observation(9.0)


@pytest.fixture
def episode(tmp_path: Path) -> EpisodeReader:
    """An episode of three steps."""
    return EpisodeReader(write(tmp_path / "run.jsonl", *some_steps()))


def test_a_constant_policy_keeps_the_promises_of_a_policy() -> None:
    """
    Whatever it is shown.
    """
    robot = attrs.evolve(ROBOT, state_names=("x", "y"))
    info = PolicyInfo(name="still", state_names=("x", "y"), cameras=robot.cameras)
    check_policy(lambda: ConstantPolicy(CHUNK, info=info), example_observation(robot))
    assert isinstance(ConstantPolicy(CHUNK), ForkingPolicy)


def test_an_episode_keeps_the_promises_of_a_policy(tmp_path: Path) -> None:
    """
    While it lasts.
    """
    path = write(tmp_path / "run.jsonl", *[step() for _ in range(64)])
    seen = example_observation(ROBOT)
    check_policy(lambda: EpisodePolicy(EpisodeReader(path)), seen)
    assert isinstance(EpisodePolicy(EpisodeReader(path)), ForkingPolicy)


def test_an_episode_whose_chunks_agree_says_its_horizon(tmp_path: Path) -> None:
    """
    Servers that tell their clients beforehand cannot serve it otherwise.
    """
    longer = step([[0.0, 0.0]] * 5)
    agree = EpisodeReader(write(tmp_path / "a.jsonl", step(), step()))
    differ = EpisodeReader(write(tmp_path / "b.jsonl", step(), longer))
    none = EpisodeReader(write(tmp_path / "c.jsonl"))

    assert [2, None, None] == [episode_horizon(each) for each in (agree, differ, none)]
    policy = EpisodePolicy(agree, horizon=2)
    assert [2, 2] == [policy.info.horizon, policy.fork().info.horizon]
    policy = EpisodePolicy(differ, horizon=2)
    assert 2 == policy.infer(SEEN).horizon
    with pytest.raises(PolicyError, match="its chunk at call 1 has 5 steps, expected 2"):
        policy.infer(SEEN)


def test_a_constant_policy_answers_with_its_chunk_at_the_time_of_the_observation() -> None:
    """
    In its own name.
    """
    policy = ConstantPolicy(CHUNK)
    assert attrs.evolve(CHUNK, observed_at_s=9.0) == policy.infer(SEEN)
    assert PolicyInfo(name="test", action_names=("x", "y"), horizon=2) == policy.info


@pytest.mark.parametrize(
    "info",
    [
        PolicyInfo(name="other", action_names=("y", "x")),
        PolicyInfo(name="other", horizon=3),
        "other",
    ],
)
def test_a_constant_policy_says_nothing_else_than_its_chunk(info: PolicyInfo) -> None:
    """
    A client would refuse each answer.
    """
    with pytest.raises(ContractError, match="info"):
        ConstantPolicy(CHUNK, info=info)
    with pytest.raises(ContractError, match="chunk"):
        ConstantPolicy([[0.0]])  # type: ignore[arg-type]


def test_a_fork_is_closed_by_itself(episode: EpisodeReader) -> None:
    """
    And an episode begins anew in it.
    """
    constant, played = ConstantPolicy(CHUNK), EpisodePolicy(episode)
    played.infer(SEEN)
    for policy in (constant, played):
        fork = policy.fork()
        policy.close()
        assert fork.info == policy.info
        fork.infer(SEEN)
        with pytest.raises(PolicyError, match="closed"):
            policy.infer(SEEN)
        with pytest.raises(PolicyError, match="closed"):
            policy.reset()


def test_an_episode_answers_call_by_call_as_it_was_recorded(episode: EpisodeReader) -> None:
    """
    With what was proposed, NaN included, and the time of today.
    """
    policy = EpisodePolicy(episode, name="yesterday")
    came = [policy.infer(SEEN) for _ in range(3)]
    for chunk, recorded in zip(came, episode, strict=True):
        assert np.array_equal(recorded.chunk.values, chunk.values, equal_nan=True)
        assert ("yesterday", 9.0) == (chunk.source, chunk.observed_at_s)


def test_what_comes_after_the_end_is_an_error_until_it_is_reset(episode: EpisodeReader) -> None:
    """
    Nothing is invented, and the last chunk is not given again.
    """
    policy = EpisodePolicy(episode)
    first = policy.infer(SEEN)
    policy.infer(SEEN)
    policy.infer(SEEN)
    for _ in range(2):
        with pytest.raises(PolicyError, match="its episode of 3 calls is at its end"):
            policy.infer(SEEN)
    policy.reset()
    assert first == policy.infer(SEEN)


def test_something_else_that_is_shown_is_refused_where_it_is_to_be_checked(tmp_path: Path) -> None:
    """
    The actions were for what was seen then.
    """
    seen = observation()
    call = PolicyCall(digest=digest_of(seen), took_s=0.1)
    path = write(tmp_path / "run.jsonl", step(call=call), step(call=call), step())
    policy = EpisodePolicy(EpisodeReader(path), is_checked=True)

    assert policy.infer(attrs.evolve(seen, captured_at_s=99.0)).horizon == 2
    with pytest.raises(PolicyError, match="something else is shown at call 1"):
        policy.infer(attrs.evolve(seen, instruction="run"))
    with pytest.raises(PolicyError, match="call 2 was recorded without a digest"):
        policy.infer(seen)


def test_dimensions_come_in_the_order_that_was_announced(tmp_path: Path) -> None:
    """
    A step may have been recorded in another one.
    """
    chunk = proposal([[0.0, 0.05], [0.0, 0.1]], names=("y", "x"))
    path = write(tmp_path / "run.jsonl", step(chunk=chunk))
    policy = EpisodePolicy(EpisodeReader(path))
    assert (policy.info.action_names, [[0.05, 0.0], [0.1, 0.0]]) == (
        (came := policy.infer(SEEN)).names,
        came.values.tolist(),
    )


def test_a_line_that_cannot_be_read_is_an_error_of_the_policy(tmp_path: Path) -> None:
    """
    A server tells it to its client, as any other.
    """
    path = write(tmp_path / "run.jsonl", step())
    with path.open("a") as file:
        file.write('{"schema": "unknown"}\n')
    policy = EpisodePolicy(EpisodeReader(path))
    policy.infer(SEEN)
    with pytest.raises(PolicyError, match=r"run\.jsonl, line 3"):
        policy.infer(SEEN)


def test_only_observations_are_taken(episode: EpisodeReader) -> None:
    """
    A call that was refused does not count.
    """
    for policy in (ConstantPolicy(CHUNK), EpisodePolicy(episode)):
        with pytest.raises(ContractError, match="observation: got str"):
            policy.infer("look")  # type: ignore[arg-type]
        policy.infer(SEEN)


def test_arguments_are_checked(episode: EpisodeReader) -> None:
    """
    A path is no episode.
    """
    with pytest.raises(ContractError, match="episode: got str"):
        EpisodePolicy("run.jsonl")  # type: ignore[arg-type]
    with pytest.raises(ContractError, match="is_checked"):
        EpisodePolicy(episode, is_checked=1)  # type: ignore[arg-type]
    with pytest.raises(ContractError, match="name"):
        EpisodePolicy(episode, name="")
    assert HEADER.embodiment.actions.names == EpisodePolicy(episode).info.action_names


def test_nan_in_a_constant_chunk_is_for_the_gate_to_find() -> None:
    """
    It is passed on as it is.
    """
    assert not ConstantPolicy(proposal([[NAN, 0.0]])).infer(SEEN).is_finite
