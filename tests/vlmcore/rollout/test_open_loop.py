"""Tests of `vlmcore.rollout.open_loop`."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataset_cases import GOLDEN, record, seen
from episode_cases import GATE, INF, NAN, ROBOT
from safety_cases import joint
from vlmcore.contracts.actions import ActionChunk
from vlmcore.contracts.embodiment import ActionDim, ActionSpace
from vlmcore.contracts.rotations import RotationForm, RotationGroup
from vlmcore.errors import ContractError, PolicyError
from vlmcore.policy import PolicyInfo
from vlmcore.rollout import evaluate_open_loop
from vlmcore.rollout.recorded_moments import RecordedMoment
from vlmcore.safety.findings import ViolationKind
from vlmcore.testing.policies import ScriptedPolicy
from vlmcore_robotics.datasets import LeRobotDatasetReader

XY = PolicyInfo(name="mine", action_names=("x", "y"))


@attrs.define
class Recorded:
    """An episode of a test: one action after each observation, unless it says otherwise."""

    rows: Any
    space: ActionSpace | None = None
    action_names: tuple[str, ...] = ("x", "y")
    name: str = "test"
    broken_after: tuple[int, ...] = ()

    def moments(self) -> Iterator[RecordedMoment]:
        for i, row in enumerate(self.rows):
            sent = np.atleast_2d(np.array(row, np.float64))
            yield RecordedMoment(
                observe=lambda i=i: seen(i), sent=sent, is_followed=i not in self.broken_after
            )


def policy(answer: Any, names: tuple[str, ...] = ("x", "y")) -> ScriptedPolicy:
    """Make a policy that answers by the number of the observation."""
    info = PolicyInfo(name="mine", action_names=names)
    return ScriptedPolicy(lambda shown: answer(int(shown.state[0])), info=info)


def test_a_policy_that_says_what_was_sent_has_no_error(tmp_path: Path) -> None:
    """
    Step by step, across the observations.
    """
    episode = record(tmp_path / "a", sent=(2, 2, 2))
    perfect = policy(lambda i: [[0.01 * (2 * i + k + 1), 0.0] for k in range(4)])
    report = evaluate_open_loop(perfect, [episode])
    assert (1, 3, 0) == (report.episodes, report.observations, report.failures)
    assert [3, 3, 2, 2] == report.count[:, 0].tolist()
    assert 0 == pytest.approx(report.worst_of(0), abs=1e-12)


def test_step_k_of_a_chunk_is_compared_with_what_was_sent_k_steps_later() -> None:
    """
    By hand: the policy stands still while the robot goes on by 1.
    """
    report = evaluate_open_loop(
        policy(lambda i: [[i, 0.0]] * 3), [Recorded([[i, 0.0] for i in range(5)])]
    )
    assert [0.0, 1.0, 2.0] == report.mae[:, 0].tolist()
    assert [0.0, 1.0, 2.0] == report.worst[:, 0].tolist()
    assert [5, 4, 3] == report.count[:, 0].tolist()
    assert (0 * 5 + 1 * 4 + 2 * 3) / 12 == pytest.approx(report.mae_of(0))
    assert math.sqrt((0 * 5 + 1 * 4 + 4 * 3) / 12) == pytest.approx(report.rmse_of(0))
    assert 2.0 == report.worst_of(0)


def test_every_so_many_observations_one_is_shown() -> None:
    """
    The first of each episode always.
    """
    mine = policy(lambda i: [[i, 0.0]] * 2)
    report = evaluate_open_loop(mine, [Recorded([[i, 0.0] for i in range(5)])] * 2, every=3)
    assert [0, 3, 0, 3] == [int(shown.state[0]) for shown in mine.shown]
    assert (4, 2) == (report.observations, mine.resets)


def test_the_horizon_that_is_compared_can_be_cut() -> None:
    """
    Longer chunks are compared in part.
    """
    report = evaluate_open_loop(
        policy(lambda i: [[i, 0.0]] * 4), [Recorded([[0.0, 0.0]] * 6)], horizon=2
    )
    assert 2 == report.horizon


def test_a_comparison_ends_where_nobody_knows_the_time() -> None:
    """
    What was sent after the gap belongs to no step of the chunk before it.
    """
    report = evaluate_open_loop(
        policy(lambda i: [[i, 0.0]] * 3),
        [Recorded([[i, 0.0] for i in range(4)], broken_after=(1,))],
    )
    assert [4, 2] == report.count[:2, 0].tolist()
    assert 2 == report.horizon


def test_an_angle_that_comes_round_is_measured_the_short_way() -> None:
    """
    From 179 to -179 degrees it is 2, not 358.
    """
    turn = ActionDim(name="x", unit="deg", low=-180, high=180, max_step=5, period=360)
    space = ActionSpace(dims=(turn, joint(name="y")), rate_hz=10)
    report = evaluate_open_loop(policy(lambda _: [[179, 0.0]]), [Recorded([[-179, 0.0]], space)])
    assert 2.0 == pytest.approx(report.mae_of(0))
    assert ("deg", "") == report.units


def test_a_gripper_that_knows_levels_agrees_or_not() -> None:
    """
    Which level is nearest counts, beside the error in numbers.
    """
    gripper = ActionDim(name="y", low=0, high=1, levels=(0.0, 1.0))
    space = ActionSpace(dims=(joint(name="x"), gripper), rate_hz=10)
    said = [[0, 0.9], [0, 0.8], [0, 0.4], [0, 0.1]]
    report = evaluate_open_loop(
        policy(lambda i: [said[i]]), [Recorded([[0, 1], [0, 1], [0, 1], [0, 0]], space)]
    )
    assert 0.75 == report.agreement_of(1)
    assert math.isnan(report.agreement_of(0))
    assert "75.0 %" in str(report)


def test_a_rotation_in_space_is_one_angle() -> None:
    """
    Whatever its numbers do: q and -q are the same.
    """
    names = ("w", "i", "j", "k")
    dims = tuple(ActionDim(name=name, low=-1.1, high=1.1, rotation="hand") for name in names)
    group = RotationGroup(name="hand", form=RotationForm.QUATERNION_WXYZ, max_step_rad=0.1)
    space = ActionSpace(dims=dims, rotations=(group,), rate_hz=10)
    half = math.sqrt(0.5)
    said = [[-1.0, 0, 0, 0], [half, half, 0, 0], [0.0, 0, 0, 0]]
    report = evaluate_open_loop(
        policy(lambda i: [said[i]], names), [Recorded([[1.0, 0, 0, 0]] * 3, space, names)]
    )
    assert (("hand",), ("rad",)) == (report.names, report.units)
    assert math.pi / 2 == pytest.approx(report.worst_of(0))
    assert (2, (1,)) == (report.count.sum(), report.lost)


@pytest.mark.parametrize("lost", [NAN, INF, -INF, 1e300])
def test_a_value_that_cannot_be_compared_is_counted_and_told(lost: float) -> None:
    """
    And does not spoil the others.
    """
    report = evaluate_open_loop(
        policy(lambda i: [[lost if i else 1.0, 0.0]]), [Recorded([[0.0, 0.0]] * 3)]
    )
    assert ((2, 0), (0, 0)) == (report.lost, report.unknown)
    assert 1.0 == report.mae_of(0)
    assert "2 proposed values could not be compared" in str(report)


def test_a_recorded_value_that_is_no_number_is_counted_and_told() -> None:
    """
    It is the fault of the recording, not of the policy.
    """
    report = evaluate_open_loop(policy(lambda _: [[0.5, NAN]]), [Recorded([[NAN, NAN]])])
    assert ((0, 0), (1, 1)) == (report.lost, report.unknown)
    assert math.isnan(report.mae_of(0))


def test_failures_are_counted_and_told_and_do_not_end_it() -> None:
    """
    Each text once.
    """

    def answer(i: int) -> Any:
        return PolicyError("mine", "silent for 2 s") if i % 2 else [[0.0, 0.0]]

    report = evaluate_open_loop(policy(answer), [Recorded([[0.0, 0.0]] * 6)])
    assert (6, 3) == (report.observations, report.failures)
    assert 1 == len(report.failure_examples)
    assert "silent for 2 s" in str(report)
    assert 3 == report.count[0, 0]


def test_a_policy_that_fails_again_and_again_ends_it_with_its_error() -> None:
    """
    A server that is gone is not asked ten thousand times.
    """
    dead = policy(lambda _: PolicyError("mine", "gone"))
    with pytest.raises(PolicyError, match="gone"):
        evaluate_open_loop(dead, [Recorded([[0.0, 0.0]] * 9)], most_failures=3)
    assert 4 == len(dead.shown)


def test_a_bug_of_a_policy_is_raised_as_it_is() -> None:
    """
    It is nobody's answer.
    """
    with pytest.raises(ZeroDivisionError):
        evaluate_open_loop(policy(lambda _: ZeroDivisionError()), [Recorded([[0.0, 0.0]])])


def test_names_in_another_order_are_put_in_order_and_others_refused() -> None:
    """
    By name, never by place.
    """
    turned = policy(lambda _: [[5.0, 1.0]], ("y", "x"))
    report = evaluate_open_loop(turned, [Recorded([[1.0, 5.0]])])
    assert (0.0, 0.0) == (report.mae_of(0), report.mae_of(1))
    other = policy(lambda _: [[5.0, 1.0]], ("x", "z"))
    with pytest.raises(ContractError, match=r"chunk.names: got x, z, expected those that were"):
        evaluate_open_loop(other, [Recorded([[1.0, 5.0]])])


def test_episodes_of_different_actions_are_refused() -> None:
    """
    Their errors are not of the same things.
    """
    with pytest.raises(ContractError, match="got the actions a, b in test, expected those"):
        evaluate_open_loop(
            policy(lambda _: [[0.0, 0.0]]),
            [Recorded([[0.0, 0.0]]), Recorded([[0.0, 0.0]], action_names=("a", "b"))],
        )


def test_the_gate_is_asked_about_each_chunk_from_where_the_robot_was(tmp_path: Path) -> None:
    """
    It counts what it would have stopped, and nothing leaves it.
    """
    episode = record(tmp_path / "a", sent=(1, 1, 1))
    report = evaluate_open_loop(
        policy(lambda i: [[0.9 if i == 1 else 0.01 * i, 0.0]]), [episode], gate=GATE
    )
    assert report.gate is not None
    assert (3, 1) == (report.gate.chunks, report.gate.unsafe)
    assert {ViolationKind.STEP: 1} == dict(report.gate.violations)
    assert "would stop 1 of 3 chunks" in str(report)


def test_latency_is_that_of_the_policy_alone() -> None:
    """
    By the clock that is given.
    """
    ticks = iter(range(100))
    times = [0.0, 1.0, 1.0, 3.0, 3.0, 6.0]
    report = evaluate_open_loop(
        policy(lambda _: [[0.0, 0.0]]),
        [Recorded([[0.0, 0.0]] * 3)],
        clock=lambda: times[next(ticks)],
    )
    assert report.latency is not None
    assert (2000, 3000, 3000) == (
        report.latency.median_ms,
        report.latency.p95_ms,
        report.latency.longest_ms,
    )


def test_the_trace_lays_chunks_end_to_end() -> None:
    """
    Of the first episode; where a chunk had ended nothing is said.
    """
    report = evaluate_open_loop(
        policy(lambda i: [[i, 0.0], [i + 0.5, 0.0]]),
        [Recorded([[i, 0.0] for i in range(4)]), Recorded([[9.0, 0.0]])],
        every=3,
    )
    assert report.trace is not None
    assert [0, 1, 2, 3] == report.trace.recorded[:, 0].tolist()
    proposed = report.trace.proposed[:, 0].tolist()
    assert [0.0, 0.5, 3.0] == [proposed[0], proposed[1], proposed[3]]
    assert math.isnan(proposed[2])
    assert 4 == report.trace.chart().horizon


def test_a_data_set_of_lerobot_is_evaluated_as_well() -> None:
    """
    Its rows are moments of one action each.
    """
    data = LeRobotDatasetReader(GOLDEN / "image", robot=ROBOT)

    def answer(shown: Any) -> Any:
        return [[shown.state[0] / 4, (shown.state[1] + k) / 8] for k in range(2)]

    report = evaluate_open_loop(ScriptedPolicy(answer, info=XY), data)
    assert (3, 12, 0.0) == (report.episodes, report.observations, report.worst_of(1))
    assert [12, 9] == report.count[:, 0].tolist()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"every": 0}, "every: got 0"),
        ({"horizon": 0}, "horizon: got 0"),
        ({"most_failures": -1}, "most_failures: got -1"),
        ({"gate": ROBOT}, "gate: got Embodiment"),
        ({"space": attrs.evolve(ROBOT.actions, dims=(joint(name="z"),))}, "space: got z"),
    ],
)
def test_an_argument_that_is_none_is_refused(options: dict[str, Any], said: str) -> None:
    """
    In one sentence.
    """
    with pytest.raises(ContractError, match=said):
        evaluate_open_loop(policy(lambda _: [[0, 0]]), [Recorded([[0.0, 0.0]])], **options)


def test_no_episode_and_what_is_none_are_refused() -> None:
    """
    A report of nothing would look like a good one.
    """
    with pytest.raises(ContractError, match="episodes: got none"):
        evaluate_open_loop(policy(lambda _: [[0, 0]]), [])
    with pytest.raises(ContractError, match="episodes: got str, expected an EpisodeReader"):
        evaluate_open_loop(policy(lambda _: [[0, 0]]), ["run.jsonl"])  # type: ignore[list-item]


@given(
    rows=st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=12),
    chunks=st.lists(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=5), min_size=12),
    every=st.integers(1, 4),
)
def test_errors_are_those_of_a_plain_loop(
    rows: list[float], chunks: list[list[float]], every: int
) -> None:
    """
    Whatever is proposed, however long chunks are.
    """
    report = evaluate_open_loop(
        ScriptedPolicy(
            lambda shown: ActionChunk(
                values=[[each] for each in chunks[int(shown.state[0])]],
                names=("x",),
                source="mine",
                observed_at_s=0.0,
            ),
            info=PolicyInfo(name="mine"),
        ),
        [Recorded([[row] for row in rows], action_names=("x",))],
        every=every,
    )
    for k in range(report.horizon):
        errors = [
            abs(chunks[i][k] - rows[i + k])
            for i in range(0, len(rows), every)
            if k < len(chunks[i]) and i + k < len(rows)
        ]
        assert len(errors) == report.count[k, 0]
        assert np.mean(errors) == pytest.approx(report.mae[k, 0])
        assert max(errors) == report.worst[k, 0]
