"""
Tests of `vlmcore_robotics.adapters.lerobot` against LeRobot itself, with small policies.

They run where LeRobot is installed, which ``nox -s lerobot`` and ``nox -s lerobot06`` see to.
"""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import attrs
import numpy as np
import pytest

pytest.importorskip("lerobot", reason="LeRobot is installed by nox -s lerobot only")

import torch

from lerobot_cases import (
    CAMERA,
    LAYOUT,
    NAMES,
    RATE_HZ,
    ROBOT,
    ACTPolicy,
    RealPolicy,
    change,
    save_act,
    save_diffusion,
    save_vqbet,
    seen_at,
)
from vlmcore.cli import main
from vlmcore.contracts.documents import embodiment_to_json
from vlmcore.contracts.embodiment import CameraSpec
from vlmcore.errors import ContractError, PolicyError, PolicyRefusedError
from vlmcore.policy.interface import ForkingPolicy, OffloadingPolicy, Policy
from vlmcore.rollout.episode_reader import EpisodeReader
from vlmcore.testing import check_policy
from vlmcore_robotics.adapters import FrameSize, LeRobotPolicy
from vlmcore_robotics.clients import WebSocketPolicy
from vlmcore_robotics.servers import OpenPIServer, PolicyRuntime, serve_in_thread
from vlmcore_robotics.wire.resizing import resize_with_pad


@pytest.fixture(scope="module")
def act(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Save an ACT policy."""
    return save_act(tmp_path_factory.mktemp("saved") / "act")


@pytest.fixture(scope="module")
def diffusion(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Save a Diffusion Policy, which looks at two steps."""
    return save_diffusion(tmp_path_factory.mktemp("saved") / "diffusion")


@pytest.fixture(scope="module")
def vqbet(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Save a VQ-BeT, which looks at five steps."""
    return save_vqbet(tmp_path_factory.mktemp("saved") / "vqbet")


@pytest.fixture(scope="module")
def loaded(act: Path, diffusion: Path, vqbet: Path) -> dict[str, LeRobotPolicy]:
    """Load each once; each test takes forks."""
    return {path.name: load(path) for path in (act, diffusion, vqbet)}


@pytest.fixture(scope="module")
def real(act: Path, diffusion: Path, vqbet: Path) -> dict[str, RealPolicy]:
    """Load each with LeRobot alone; each test begins with a reset."""
    return {path.name: RealPolicy(path) for path in (act, diffusion, vqbet)}


def load(path: Path, **options: Any) -> LeRobotPolicy:
    return LeRobotPolicy.from_pretrained(path, **{"embodiment": ROBOT, **options})


def test_a_chunk_of_act_is_that_of_lerobot_to_the_bit(loaded: Any, real: Any) -> None:
    """
    Its processors around its ``predict_action_chunk``.
    """
    ours, theirs = loaded["act"].fork(), real["act"]
    for step in range(3):
        chunk = ours.infer(seen_at(step))
        assert np.array_equal(theirs.chunk(seen_at(step)), chunk.values.astype(np.float32))
        assert ((16, 3), NAMES) == (chunk.values.shape, chunk.names)


def test_the_rows_of_act_are_the_actions_that_lerobot_selects(loaded: Any, real: Any) -> None:
    """
    One after the other, until its queue is empty.
    """
    expected = real["act"].actions(16)
    assert np.array_equal(
        expected, loaded["act"].fork().infer(seen_at(0)).values.astype(np.float32)
    )


def test_a_chunk_of_diffusion_is_what_lerobot_selects_at_the_start_of_an_episode(
    loaded: Any, real: Any
) -> None:
    """
    The first observation stands for the step before.
    """
    torch.manual_seed(1)
    expected = real["diffusion"].actions(4)
    torch.manual_seed(1)
    assert np.array_equal(
        expected, loaded["diffusion"].fork().infer(seen_at(0)).values.astype(np.float32)
    )


@pytest.mark.parametrize("name", ["diffusion", "vqbet"])
@pytest.mark.filterwarnings("ignore:To evaluate in the environment")  # it was never trained
def test_a_loop_that_shows_each_step_gets_what_lerobot_selects(
    loaded: Any, real: Any, name: str
) -> None:
    """
    Over three chunks: the queues hold what was seen one step apart, of two steps or of five.
    """
    ours = loaded[name].fork()
    torch.manual_seed(2)
    expected = real[name].actions(12)
    torch.manual_seed(2)
    rows: list[Any] = []
    for step in range(12):
        if step == len(rows):
            rows.extend(ours.infer(seen_at(step)).values)
        else:
            ours.observe(seen_at(step))
    assert np.array_equal(expected, np.array(rows[:12], np.float32))


def test_diffusion_that_is_asked_once_a_chunk_is_not_shown_a_leap(loaded: Any) -> None:
    """
    What was seen a chunk ago does not stand for the step before.
    """
    ours, fresh = loaded["diffusion"].fork(), loaded["diffusion"].fork()
    ours.infer(seen_at(0))
    torch.manual_seed(3)
    later = ours.infer(seen_at(4))
    torch.manual_seed(3)
    assert np.array_equal(fresh.infer(seen_at(4)).values, later.values)


def test_what_diffusion_saw_a_step_ago_changes_its_answer(loaded: Any) -> None:
    """
    Until it is reset.
    """
    ours = loaded["diffusion"].fork()

    def answer() -> Any:
        torch.manual_seed(4)
        return ours.infer(seen_at(1)).values

    alone = answer()
    ours.reset()
    ours.observe(seen_at(0))
    assert not np.array_equal(alone, answer())
    ours.reset()
    assert np.array_equal(alone, answer())


def test_the_sessions_of_two_robots_do_not_mix(loaded: Any) -> None:
    """
    A fork has the same weights, in the same memory, and its own episode.
    """
    ours, alone, fork = (loaded["diffusion"].fork() for _ in range(3))
    torch.manual_seed(5)
    expected = [alone.infer(seen_at(step)).values for step in (0, 1)]
    torch.manual_seed(5)
    first = ours.infer(seen_at(0)).values
    state = torch.get_rng_state()
    fork.infer(seen_at(50))  # in between, and of another episode
    fork.infer(seen_at(1, state=[0.9, 0.9, 0.9]))
    fork.reset()
    torch.set_rng_state(state)
    assert np.array_equal(expected, [first, ours.infer(seen_at(1)).values])
    assert ours._session.diffusion is fork._session.diffusion


def test_a_fork_outlives_the_one_that_it_was_made_of(loaded: Any) -> None:
    """
    And says the same of itself.
    """
    ours = loaded["act"].fork()
    expected = ours.infer(seen_at(0))
    fork = ours.fork()
    ours.close()
    assert (ours.info, expected) == (fork.info, fork.infer(seen_at(0)))
    with pytest.raises(PolicyError, match="this policy is closed"):
        ours.fork()


def test_weights_that_were_moved_away_come_back_by_themselves(loaded: Any) -> None:
    """
    Also when a fork asks, and however often they were moved.
    """
    ours = loaded["act"].fork()
    expected = ours.infer(seen_at(0))
    fork = ours.fork()
    ours.offload()
    ours.offload()
    assert expected == fork.infer(seen_at(0))
    assert expected == ours.infer(seen_at(0))


@pytest.mark.parametrize("name", ["act", "diffusion"])
def test_it_keeps_every_promise_of_a_policy(loaded: Any, name: str) -> None:
    """
    Those of the kit, for a robot.
    """
    whole = loaded[name]
    report = check_policy(whole.fork, seen_at(0), embodiment=ROBOT)
    assert 20 == len(report.passed)
    assert isinstance(whole, Policy)
    assert isinstance(whole, ForkingPolicy)
    assert isinstance(whole, OffloadingPolicy)


def test_it_says_what_it_is_fed_and_what_it_gives(loaded: Any) -> None:
    """
    To clients, who compare it with their robot, and as the contract of the HTTP protocol.
    """
    info = loaded["act"].info
    assert ("act", NAMES, NAMES, 16, RATE_HZ) == (
        info.name,
        info.action_names,
        info.state_names,
        info.horizon,
        info.rate_hz,
    )
    assert ROBOT.cameras == info.cameras
    contract = info.metadata["policy_contract"]
    assert (1, 16, 16) == tuple(
        contract[field] for field in ("n_obs_steps", "chunk_size", "n_action_steps")
    )
    assert (3, 64, 64) == contract["input_features"][CAMERA]["shape"]
    assert "act" == info.metadata["policy_type"]


def test_a_server_of_openpi_gives_what_lerobot_gives(loaded: Any, real: Any) -> None:
    """
    To the bit, over a real socket, with the contract in its metadata.
    """
    with (
        PolicyRuntime(loaded["act"].fork()) as runtime,
        serve_in_thread(OpenPIServer(runtime, layout=LAYOUT, port=0)) as url,
        WebSocketPolicy(url, embodiment=ROBOT, layout=LAYOUT, timeout_s=60) as remote,
    ):
        chunk = remote.infer(seen_at(0))
        metadata = remote.info.metadata
    expected = real["act"].chunk(seen_at(0))
    assert np.array_equal(expected, chunk.values.astype(np.float32))
    assert 16 == metadata["policy_contract"]["chunk_size"]


def test_the_shell_takes_a_folder_for_a_policy(act: Path, tmp_path: Path) -> None:
    """
    As ``vlmcore policy serve`` does, to be recorded here.
    """
    robot, recording = tmp_path / "robot.json", tmp_path / "run.jsonl"
    robot.write_text(embodiment_to_json(ROBOT))
    words = ("--embodiment", robot, "--previous", "state", "--calls", 2)
    assert 0 == main(["policy", "record", f"lerobot:{act}", *map(str, (recording, *words))])
    chunks = [step.chunk for step in EpisodeReader(recording)]
    assert [((16, 3), NAMES)] * 2 == [(chunk.values.shape, chunk.names) for chunk in chunks]


def test_the_page_runs_as_it_is_printed(act: Path, tmp_path: Path, monkeypatch: Any) -> None:
    """
    With a policy where it has one.
    """
    folder = tmp_path / "outputs/train/checkpoints/last/pretrained_model"
    shutil.copytree(act, folder)
    monkeypatch.chdir(tmp_path)
    page = Path(__file__).parents[3] / "docs/how-to/serve-a-lerobot-policy.md"
    blocks = re.findall(r"(?ms)^```py\n(.*?)^```", page.read_text(encoding="utf-8"))
    names: dict[str, Any] = {}
    for block in blocks:
        exec(compile(block, page.name, "exec"), names)
    assert ((16, 3), "cup") == (names["chunk"].values.shape, names["chunk"].source)


def test_nan_in_the_weights_reaches_the_gate_as_nan(act: Path) -> None:
    """
    It is not hidden, and it is no error.
    """
    ours = load(act)
    with torch.no_grad():
        ours._session.model.action_head.bias[1] = float("nan")
    values = ours.infer(seen_at(0)).values
    assert np.isnan(values[:, 1]).all()
    assert np.isfinite(values[:, [0, 2]]).all()


def test_a_state_in_the_order_of_the_robot_is_put_into_that_of_the_training(
    act: Path, real: Any
) -> None:
    """
    By the names.
    """
    turned = attrs.evolve(ROBOT, state_names=NAMES[::-1])
    ours = load(act, embodiment=turned, action_names=NAMES, state_names=NAMES)
    state = seen_at(0).state
    expected = real["act"].chunk(seen_at(0))
    chunk = ours.infer(seen_at(0, state=state[::-1]))
    assert np.array_equal(expected, chunk.values.astype(np.float32))


def test_names_and_rate_come_from_the_data_set_where_there_is_no_robot(
    diffusion: Path, tmp_path: Path
) -> None:
    """
    As LeRobot writes them down.
    """
    (tmp_path / "meta").mkdir()
    features = {key: {"names": NAMES} for key in ("action", "observation.state")}
    text = json.dumps({"fps": 20, "features": features})
    (tmp_path / "meta" / "info.json").write_text(text, encoding="utf-8")
    ours = load(diffusion, embodiment=None, dataset=tmp_path)
    assert (NAMES, NAMES, 20.0) == (
        ours.info.action_names,
        ours.info.state_names,
        ours.info.rate_hz,
    )
    assert (CameraSpec(name=CAMERA, height_px=64, width_px=64),) == ours.info.cameras


def test_frames_of_another_size_are_refused_or_resized_as_asked(act: Path, loaded: Any) -> None:
    """
    ACT itself would take them, and answer.
    """
    larger = np.full((128, 128, 3), 90, np.uint8)
    robot = attrs.evolve(ROBOT, cameras=[CameraSpec(name="front")])
    seen = seen_at(0, images={"front": larger})
    with pytest.raises(ContractError, match="got 128 x 128 pixels, expected 64 x 64"):
        loaded["act"].fork().infer(seen)
    padded = load(act, embodiment=robot, frame_size=FrameSize.PADDED).infer(seen)
    smaller = resize_with_pad(larger, height_px=64, width_px=64)
    assert loaded["act"].fork().infer(seen_at(0, images={"front": smaller})) == padded
    assert padded != load(act, embodiment=robot, frame_size=FrameSize.ANY).infer(seen)


def test_a_backbone_that_the_weights_overwrite_is_not_fetched(tmp_path: Path) -> None:
    """
    A policy that began with weights of the internet is loaded without them.
    """
    path = save_act(tmp_path / "act")
    name = "ResNet18_Weights.IMAGENET1K_V1"
    change(path, "config.json", lambda config: config.update(pretrained_backbone_weights=name))
    assert 16 == load(path).infer(seen_at(0)).horizon


def test_the_hub_is_not_asked_while_a_policy_is_built(act: Path, monkeypatch: Any) -> None:
    """
    Unless it is said that it may be; and afterwards all is as it was.
    """
    from huggingface_hub import constants  # noqa: PLC0415 - it comes with LeRobot

    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    found: list[bool] = []
    loading = ACTPolicy.from_pretrained.__func__

    def watched(*arguments: Any, **options: Any) -> Any:
        found.append(constants.HF_HUB_OFFLINE)
        return loading(*arguments, **options)

    monkeypatch.setattr(ACTPolicy, "from_pretrained", classmethod(watched))
    load(act)
    load(act, download=True)
    assert [True, False] == found
    assert constants.HF_HUB_OFFLINE is False


def test_weights_that_are_not_all_there_are_refused(tmp_path: Path) -> None:
    """
    LeRobot would go on with those that were drawn at random.
    """
    path = save_act(tmp_path / "act")
    change(path, "config.json", lambda config: config.update(n_decoder_layers=2))
    with pytest.raises(PolicyRefusedError, match=r"cannot load it: RuntimeError: .*Missing key"):
        load(path)


def test_a_policy_that_lerobot_does_not_know_is_refused_in_its_words(tmp_path: Path) -> None:
    """
    As one of a later version.
    """
    path = change(save_act(tmp_path / "act"), "config.json", lambda c: c.update(type="act2"))
    with pytest.raises(PolicyRefusedError, match=r"^act: LeRobot .* cannot load it: "):
        load(path)


def test_a_state_that_float32_cannot_hold_is_refused(loaded: Any) -> None:
    """
    And the next one is answered.
    """
    ours = loaded["act"].fork()
    expected = ours.infer(seen_at(0))
    with pytest.raises(ContractError, match="float32 cannot hold"):
        ours.infer(seen_at(1, state=[1e300, 0.0, 0.0]))
    assert expected == ours.infer(seen_at(0))


def test_what_lerobot_raises_is_an_error_of_ours(loaded: Any, monkeypatch: Any) -> None:
    """
    With its words on one line, and the next call is answered.
    """
    ours = loaded["act"].fork()
    expected = ours.infer(seen_at(0))

    def fail(batch: Any) -> None:
        raise RuntimeError(f"no\nmemory for {len(batch)} keys, Bearer sekret")

    with monkeypatch.context() as patched:
        patched.setattr(ours._session, "predict_action_chunk", fail)
        with pytest.raises(PolicyRefusedError, match=r"failed: RuntimeError: no memory") as error:
            ours.infer(seen_at(0))
    assert "sekret" not in str(error.value)
    assert expected == ours.infer(seen_at(0))


def test_what_is_no_chunk_of_one_is_refused(loaded: Any, monkeypatch: Any) -> None:
    """
    As the actions of two robots.
    """
    ours = loaded["act"].fork()
    monkeypatch.setattr(ours._session, "predict_action_chunk", lambda _: torch.zeros(2, 16, 3))
    with pytest.raises(PolicyRefusedError, match=r"of shape \[2, 16, 3\], expected \[1, "):
        ours.infer(seen_at(0))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"device": "gpu7"}, "device: got 'gpu7'"),
        ({"revision": "main"}, "revision: got 'main' for a folder"),
        ({"rename": ["front"]}, "rename: got"),
        ({"rename": {"front": 7}}, "rename: got"),
        ({"frame_size": "padded"}, "frame_size: got"),
        ({"name": " "}, "name: got blank"),
        ({"embodiment": "so101"}, "embodiment: got str"),
    ],
)
def test_arguments_are_checked_before_anything_is_loaded(
    act: Path, options: Any, words: str
) -> None:
    """
    With the field.
    """
    with pytest.raises(ContractError, match=words):
        load(act, **options)


def test_a_repository_that_is_not_in_the_cache_is_not_fetched_unasked() -> None:
    """
    The way to have it is told.
    """
    with pytest.raises(
        PolicyError, match=r"nobody_x: neither a folder nor in the cache .*download"
    ):
        LeRobotPolicy.from_pretrained("vlmcore-nobody/nobody_x", action_names=["x"])


@pytest.mark.parametrize("name", ["nowhere", "/nowhere/at/all", "a/b/c", "../x", "hf://a/b"])
def test_what_is_neither_a_folder_nor_a_repository_is_refused(name: str) -> None:
    """
    The hub is not asked for it.
    """
    with pytest.raises(PolicyError, match="is neither a folder nor the name of a repository"):
        LeRobotPolicy.from_pretrained(name)
