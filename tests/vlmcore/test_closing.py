"""What is closed at the end of a ``with`` block: every policy that is not asked over a network."""

from __future__ import annotations

import pytest

from vlmcore.contracts.presets import find_embodiment
from vlmcore.errors import PolicyError
from vlmcore.policy.interface import PolicyInfo
from vlmcore.rollout.episode_reader import EpisodeReader
from vlmcore.rollout.episode_writer import EpisodeWriter
from vlmcore.rollout.episodes import EpisodeHeader
from vlmcore.rollout.flight_recorder import FlightRecorder
from vlmcore.rollout.recorded_policies import ConstantPolicy, EpisodePolicy
from vlmcore.rollout.shadow import ShadowPolicy
from vlmcore.safety import SafetyGate
from vlmcore.testing import ScriptedPolicy, check_policy, example_observation

ROBOT = find_embodiment("generic_7dof_joint_gripper")
SEEN = example_observation(ROBOT)
INFO = PolicyInfo(
    name="still",
    action_names=ROBOT.actions.names,
    state_names=ROBOT.state_names,
    cameras=ROBOT.cameras,
    horizon=1,
    rate_hz=ROBOT.actions.rate_hz,
)


def scripted() -> ScriptedPolicy:
    """Make a policy that stands still."""
    return ScriptedPolicy([[[0.0] * 8]], info=INFO)


def constant() -> ConstantPolicy:
    """Make one that gives a chunk."""
    return ConstantPolicy(scripted().infer(SEEN), info=INFO)


def recorder() -> FlightRecorder:
    """Make one that is recorded."""
    return FlightRecorder(scripted(), ROBOT, clock=lambda: 0.0)


def shadow() -> ShadowPolicy:
    """Make one with a candidate beside it."""
    gate = SafetyGate(embodiment=ROBOT)
    return ShadowPolicy(scripted(), constant(), gate, last_command=lambda seen: seen.state)


MAKERS = pytest.mark.parametrize(
    "make", [scripted, constant, recorder, shadow], ids=lambda make: make.__name__
)


@MAKERS
def test_each_policy_around_another_keeps_all_promises(make) -> None:
    """
    Whatever stands between a loop and a policy is a policy.
    """
    check_policy(make, SEEN, embodiment=ROBOT, deterministic=True)


@MAKERS
def test_each_policy_is_closed_at_the_end_of_its_block(make) -> None:
    """
    Also if the block ended with an error, which is passed on.
    """
    policy = make()
    with pytest.raises(ZeroDivisionError), policy as opened:
        assert opened.infer(SEEN).horizon / 0
    with pytest.raises(PolicyError):
        policy.infer(SEEN)


def test_an_episode_is_closed_as_a_policy_and_as_a_file(tmp_path) -> None:
    """
    What was recorded in one block is played in the next.
    """
    path = tmp_path / "run.jsonl"
    with (
        EpisodeWriter(path, EpisodeHeader(embodiment=ROBOT)) as writer,
        FlightRecorder(scripted(), ROBOT, clock=lambda: 0.0, writer=writer) as policy,
    ):
        policy.infer(SEEN)
    with EpisodePolicy(EpisodeReader(path)) as replayed:
        assert 1 == replayed.infer(SEEN).horizon
    with pytest.raises(PolicyError):
        replayed.infer(SEEN)
