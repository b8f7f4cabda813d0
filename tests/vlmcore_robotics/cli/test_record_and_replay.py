"""``vlmcore policy record`` and ``replay``, on files and on real servers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import attrs
import numpy as np
import pytest

from openpi_cases import INFO, ROBOT
from vlmcore.contracts.documents import embodiment_to_json
from vlmcore.errors import PolicyError
from vlmcore.rollout.episode_calls import EpisodeFailure
from vlmcore.rollout.episode_reader import EpisodeReader
from vlmcore.testing import ScriptedPolicy

SMALL = [[0.05, 0.05], [0.1, 0.1]]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where the episode goes."""
    return tmp_path / "run.jsonl"


def record(policy: Any, robot: Path, path: Path, *words: object) -> Any:
    """Record one action, again and again."""
    return policy("record", "constant:0.05,0.05", path, "--embodiment", robot, *words)


@pytest.mark.parametrize("protocol", ["openpi", "http", "groot"])
def test_a_served_policy_is_recorded(policy, serving, robot, path: Path, protocol: str) -> None:
    """
    Each call is a step of an episode.
    """
    with serving(protocol, ScriptedPolicy([SMALL], info=INFO)) as url:
        done = policy("record", url, path, "--embodiment", robot, "--calls", 3)
    assert (0, f"{path}: 3 calls, 0 of them failed\n") == (done.code, done.out)
    steps = list(EpisodeReader(path))
    for step in steps:
        np.testing.assert_allclose(SMALL, step.chunk.values, rtol=1e-6)
    assert len(steps) == 3
    assert all(step.call is not None for step in steps)


def test_a_call_that_fails_is_recorded_and_the_next_one_is_made(
    policy, serving, robot, path: Path
) -> None:
    """
    The exit code says that there was one.
    """
    answers = [SMALL, PolicyError("scripted", "it is dark"), SMALL]
    with serving("http", ScriptedPolicy(answers, info=INFO)) as url:
        done = policy("record", url, path, "--embodiment", robot, "--calls", 3, "--json")
    assert (1, 1) == (done.code, done.document["failed"])
    assert "call 2: " in done.err
    events = list(EpisodeReader(path).events())
    assert [False, True, False] == [isinstance(each, EpisodeFailure) for each in events]


def test_what_was_recorded_is_shown_again_to_another_policy(policy, robot, path: Path) -> None:
    """
    With the frames that were kept, to the last pixel.
    """
    pytest.importorskip("PIL")
    again = path.with_name("again.jsonl")
    record(policy, robot, path, "--frames", "png", "--calls", 2, "--instruction", "wave")
    done = record(policy, robot, again, "--observations", path)
    assert (0, f"{again}: 2 calls, 0 of them failed\n") == (done.code, done.out)
    first, second = EpisodeReader(path), EpisodeReader(again)
    assert [each.call and each.call.digest for each in first] == [
        each.call and each.call.digest for each in second
    ]


def test_frames_are_needed_to_show_them_again(policy, robot, path: Path) -> None:
    """
    An episode without them is told so.
    """
    record(policy, robot, path)
    done = record(policy, robot, path.with_name("again.jsonl"), "--observations", path)
    assert done.code == 1
    assert "frames" in done.err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--calls", "0"), "--calls: got 0"),
        (("--horizon", "0"), "--horizon: got 0"),
        (("--observations", "x.jsonl", "--state", "0,0"), "--observations: got it with --state"),
        (("--observations", "x.jsonl"), "x.jsonl: does not exist"),
    ],
)
def test_wrong_words_of_record_are_told(
    policy, robot, path: Path, words: tuple[str, ...], said: str
) -> None:
    """
    Nothing is written then.
    """
    done = record(policy, robot, path, *words)
    assert done.code in {1, 2}
    assert said in done.err
    assert not path.exists()


def test_a_file_that_is_there_is_not_overwritten(policy, robot, path: Path) -> None:
    """
    It may be the recording that somebody needs.
    """
    path.write_text("precious")
    done = record(policy, robot, path)
    assert (1, "precious") == (done.code, path.read_text())
    assert "exists already" in done.err


def test_a_server_that_cannot_be_reached_leaves_no_file(policy, robot, path: Path) -> None:
    """
    The next try may use the same name.
    """
    done = policy("record", "ws://127.0.0.1:1", path, "--embodiment", robot)
    assert (1, False) == (done.code, path.exists())
    assert "nothing listens there" in done.err


def test_a_replay_says_the_same_of_the_same_limits(policy, robot, path: Path) -> None:
    """
    The robot of the episode is taken, unless another one is said.
    """
    record(policy, robot, path, "--previous", "state", "--calls", 2)
    done = policy("replay", path)
    assert done.code == 0
    assert "2 steps, 0 refused then, 0 calls failed\n" in done.out
    assert "the gate of today says the same of every step" in done.out


def test_a_replay_lists_what_stricter_limits_refuse(
    policy, robot, path: Path, tmp_path: Path
) -> None:
    """
    What is in the way, step by step; the exit code says that something is refused today.
    """
    record(policy, robot, path, "--previous", "state", "--calls", 2)
    dims = [attrs.evolve(dim, max_step=0.01) for dim in ROBOT.actions.dims]
    slow = attrs.evolve(ROBOT, actions=attrs.evolve(ROBOT.actions, dims=dims))
    today = tmp_path / "slow.json"
    today.write_text(embodiment_to_json(slow))

    done = policy("replay", path, "--embodiment", today)
    assert done.code == 5
    assert "actions['elbow'].max_step: recorded 0.1, today 0.01" in done.out
    assert "       1  safe                                      refused: violations (2)" in done.out
    assert "2 steps differ, 2 of them are refused today and were not" in done.out

    clamped = policy("replay", path, "--embodiment", today, "--mode", "clamp", "--json")
    assert (0, 0, 2) == (
        clamped.code,
        clamped.document["newly_refused"],
        len(clamped.document["differences"]),
    )


def test_a_long_list_is_cut(policy, robot, path: Path) -> None:
    """
    JSON holds all of it.
    """
    record(policy, robot, path, "--previous", "state", "--calls", 25)
    lines = path.read_text().splitlines()
    changed = [json.loads(line) for line in lines[1:]]
    for each in changed:
        each["report"]["safe_for_handoff"] = False
        each["report"]["reason"] = "violations"
    path.write_text("\n".join([lines[0], *map(json.dumps, changed), ""]))
    done = policy("replay", path)
    assert "  and 5 more\n" in done.out
    assert len(policy("replay", path, "--json").document["differences"]) == 25


def test_a_recording_that_was_cut_off_is_told(policy, robot, path: Path) -> None:
    """
    As a crash leaves it; the steps before are looked at.
    """
    record(policy, robot, path, "--previous", "state", "--calls", 2)
    path.write_bytes(path.read_bytes()[:-10])
    done = policy("replay", path)
    assert done.code == 1
    assert "1 steps, " in done.out
    assert "its last line is cut off" in done.err


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "does not exist"),
        ("", "is empty"),
        ("{}\n", "line 1"),
        ("not json\n", "line 1"),
    ],
)
def test_what_is_no_episode_is_told(policy, path: Path, content: str | None, said: str) -> None:
    """
    In one line.
    """
    if content is not None:
        path.write_text(content)
    done = policy("replay", path)
    assert (1, True) == (done.code, said in done.err)
    assert len(done.err.splitlines()) == 1


def test_a_replay_for_other_actions_is_refused(policy, robot, path: Path) -> None:
    """
    Nothing could be compared.
    """
    record(policy, robot, path)
    done = policy("replay", path, "--embodiment", "aloha_bimanual_template")
    assert done.code == 2
    assert "--embodiment: got 'aloha_bimanual_template'" in done.err


def test_what_the_gate_was_told_is_recorded(policy, robot, path: Path) -> None:
    """
    Only where it is said that the state is where the robot was sent.
    """
    record(policy, robot, path, "--previous", "state", "--state", "0.5,0.25", "--calls", 1)
    (step,) = EpisodeReader(path)
    assert step.last_command is not None
    assert np.array_equal([0.5, 0.25], step.last_command)


def test_a_state_that_names_no_actions_is_no_last_command(policy, path: Path) -> None:
    """
    Of changes it tells nothing.
    """
    robot = "generic_eef_delta_gripper"
    done = policy("record", "constant:zero", path, "--embodiment", robot, "--previous", "state")
    assert done.code == 2
    assert "--previous: got 'state' for 'generic_eef_delta_gripper'" in done.err
    assert not path.exists()
