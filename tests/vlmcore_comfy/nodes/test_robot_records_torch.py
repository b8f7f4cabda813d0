"""The nodes that record what a policy did and play it back: nothing of it comes out vetted."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from vlmcore.contracts.documents import action_chunk_from_json
from vlmcore.contracts.presets import find_embodiment
from vlmcore.errors import ContractError, EpisodeError, UnsafeActionError
from vlmcore.rollout import EpisodeReader
from vlmcore.safety.documents import safety_report_from_json
from vlmcore_comfy.declaring import Blocked
from vlmcore_comfy.hosting import AloneHost, NodeStoppedError
from vlmcore_comfy.nodes.actions import actions_from_json
from vlmcore_comfy.nodes.observations import observation_builder
from vlmcore_comfy.nodes.robot_records import (
    episode_replay,
    policy_recorder,
    vetted_actions_document,
)
from vlmcore_comfy.nodes.safety import action_safety
from vlmcore_comfy.seeing import SeenBy

torch = pytest.importorskip("torch")

ARM = find_embodiment("generic_7dof_joint_gripper")
STILL = json.dumps([0.0] * 8)


class Folder(AloneHost):
    """A host with an output folder of its own."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @property
    def output_folder(self) -> Path:
        return self._folder


class Stopped(Folder):
    def raise_if_stopped(self) -> None:
        raise NodeStoppedError


def seen(state: str = STILL) -> SeenBy:
    return observation_builder(
        task="Pick up the cube.",
        state_json=state,
        primary_image=torch.full((1, 6, 8, 3), 0.5),
        primary_camera="front",
        history_fps=10.0,
        timestamp=0.0,
        embodiment=ARM,
    )[0]


def chunk(value: float = 0.01) -> Any:
    return actions_from_json(json.dumps([[value] * 8] * 3))[0]


def vetted_of(actions: Any) -> Any:
    return action_safety(actions, ARM, "Block unsafe", 8, STILL)[3]


def recorded(folder: Path, actions: Any, **changes: Any) -> Any:
    given = {
        "observation": seen(),
        "embodiment": ARM,
        "episode_name": "run",
        "frames": "As PNG, every pixel",
        "new_episode": False,
        **changes,
    }
    return policy_recorder(actions=actions, comfyui=Folder(folder), **given).values


def replayed(folder: Path, episode: str, step: int = 0) -> Any:
    return episode_replay(episode, step, comfyui=Folder(folder))


def test_what_was_recorded_is_played_back(tmp_path: Path) -> None:
    """
    The chunk, the robot, what was sent before, the report, and what was shown, pixel by pixel.
    """
    proposed = chunk()
    episode, report, steps = recorded(tmp_path, proposed, vetted_actions=vetted_of(proposed))
    assert (episode, steps) == ("episodes/run_00001.jsonl", 1)
    assert safety_report_from_json(report).safe_for_handoff
    actions, robot, previous, found, again = replayed(tmp_path, episode)
    assert actions.values.tolist() == proposed.values.tolist()
    assert robot == ARM
    assert json.loads(previous) == [0.0] * 8
    assert found == report
    assert again.observation.images["front"].tolist() == seen().observation.images["front"].tolist()
    assert action_safety(actions, robot, "Block unsafe", 8, previous)[2]


def test_graphs_go_on_with_the_same_episode_until_another_is_begun(tmp_path: Path) -> None:
    """
    Or until somebody takes the file away: what follows would be lost.
    """
    assert recorded(tmp_path, chunk())[2] == 1
    assert recorded(tmp_path, chunk())[2] == 2
    name, _, steps = recorded(tmp_path, chunk(), new_episode=True)
    assert (name, steps) == ("episodes/run_00002.jsonl", 1)
    (tmp_path / name).unlink()
    assert recorded(tmp_path, chunk())[2] == 1
    assert len(list(EpisodeReader(tmp_path / "episodes/run_00001.jsonl"))) == 2


def test_what_the_gate_would_refuse_is_recorded_without_it(tmp_path: Path) -> None:
    """
    The report says so, and played back it is refused as it would have been.
    """
    name, report, _ = recorded(tmp_path, chunk(9.0), previous_action_json=STILL)
    assert not safety_report_from_json(report).safe_for_handoff
    actions, robot, previous, *_ = replayed(tmp_path, name)
    with pytest.raises(UnsafeActionError):
        action_safety(actions, robot, "Block unsafe", 8, previous)


def test_vetted_actions_of_another_chunk_are_not_recorded_with_it(tmp_path: Path) -> None:
    """
    Two policies in a graph are easily crossed.
    """
    with pytest.raises(ContractError, match="chunk: got another one"):
        recorded(tmp_path, chunk(0.02), vetted_actions=vetted_of(chunk()))


def test_an_episode_without_pictures_says_why_there_is_no_observation(tmp_path: Path) -> None:
    """
    Everything else is played back.
    """
    name = recorded(tmp_path, chunk(), frames="None")[0]
    actions, *_, again = replayed(tmp_path, name)
    assert actions.horizon == 3
    assert isinstance(again, Blocked)
    assert "does not hold what was shown" in again.reason


@pytest.mark.parametrize("name", ["", "../run", "a/b", ".hidden", "a\0b", "a\nb", "x" * 101])
def test_an_episode_is_written_nowhere_else(tmp_path: Path, name: str) -> None:
    """
    A name leads to no other folder.
    """
    with pytest.raises(ContractError, match="episode_name: got"):
        recorded(tmp_path, chunk(), episode_name=name)


def test_an_episode_may_be_called_in_any_letters(tmp_path: Path) -> None:
    """
    People name things in their own language.
    """
    assert recorded(tmp_path, chunk(), episode_name="Würfel 立方体")[2] == 1


@pytest.mark.parametrize(
    "episode", ["", " ", "../secret.jsonl", "/etc/passwd", "a\0b", "a\nb", "a" * 9999]
)
def test_nothing_but_the_output_folder_is_read(tmp_path: Path, episode: str) -> None:
    """
    A graph of a stranger opens no other file.
    """
    with pytest.raises(ContractError, match=r"episode: (got|is blank)") as caught:
        replayed(tmp_path, episode)
    assert len(str(caught.value)) < 300


def test_a_link_out_of_the_output_folder_is_not_followed(tmp_path: Path) -> None:
    """
    It is looked at where it leads.
    """
    (tmp_path / "link.jsonl").symlink_to("/etc/passwd")
    with pytest.raises(ContractError, match="expected a file in ComfyUI's output folder"):
        replayed(tmp_path, "link.jsonl")


@pytest.mark.parametrize("text", ["", "not JSON\n", "{}\n", "[1]\n", "\x00\n"])
def test_what_is_no_episode_is_told(tmp_path: Path, text: str) -> None:
    """
    With the file and the line.
    """
    (tmp_path / "bad.jsonl").write_text(text)
    with pytest.raises(EpisodeError, match=r"bad\.jsonl"):
        replayed(tmp_path, "bad.jsonl")


def test_a_step_that_was_not_recorded_is_told(tmp_path: Path) -> None:
    """
    With the steps that were.
    """
    name = recorded(tmp_path, chunk())[0]
    with pytest.raises(ContractError, match="step: got 7, expected 0 to 0"):
        replayed(tmp_path, name, 7)


def test_the_replay_of_a_long_episode_is_stopped(tmp_path: Path) -> None:
    """
    Between two steps, and so is a recording before it begins.
    """
    name = recorded(tmp_path, chunk())[0]
    with pytest.raises(NodeStoppedError):
        episode_replay(name, 0, comfyui=Stopped(tmp_path))


def test_vetted_actions_are_written_down() -> None:
    """
    As the documents that a program at the robot reads.
    """
    document, report, horizon, width = vetted_actions_document(vetted_of(chunk()))
    assert (horizon, width) == (3, 8)
    read = action_chunk_from_json(document, observed_at_s=0.0)
    assert read.values.tolist() == chunk().values.tolist()
    assert safety_report_from_json(report).safe_for_handoff


def test_what_no_gate_let_through_is_not_taken_for_vetted(tmp_path: Path) -> None:
    """
    Whatever a page joins to the socket.
    """
    for come in (chunk(), "x"):
        with pytest.raises(ContractError, match="expected what the safety gate let through"):
            vetted_actions_document(come)  # type: ignore[arg-type]
        with pytest.raises(ContractError, match="expected what the safety gate let through"):
            recorded(tmp_path, chunk(), vetted_actions=come)


@pytest.mark.parametrize("field", ["observation", "actions", "embodiment"])
def test_sockets_of_another_colour_are_told(tmp_path: Path, field: str) -> None:
    """
    By their name, and no file is left.
    """
    given: dict[str, Any] = {"actions": chunk(), field: "x"}
    with pytest.raises(ContractError, match=f"{field}: got 'x', expected"):
        recorded(tmp_path, given.pop("actions"), **given)
    assert not list(tmp_path.iterdir())
