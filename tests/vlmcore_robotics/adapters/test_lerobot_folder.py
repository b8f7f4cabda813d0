"""Tests of `vlmcore_robotics.adapters._lerobot_folder`: what may be loaded; needs no LeRobot."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from vlmcore.errors import PolicyError
from vlmcore.testing._json_strategies import json_objects
from vlmcore_robotics.adapters._lerobot_folder import PolicyFolder, read_policy_folder

PREPROCESSOR, POSTPROCESSOR = "policy_preprocessor.json", "policy_postprocessor.json"
MODES = {"STATE": "MEAN_STD", "ACTION": "MIN_MAX", "VISUAL": "IDENTITY"}
STATE = {"type": "STATE", "shape": [3]}
PICTURE = {"type": "VISUAL", "shape": [3, 8, 8]}
ACTION = {"type": "ACTION", "shape": [2]}


def normalizer(name: str, state_file: str, **changes: Any) -> dict[str, Any]:
    features = {"observation.state": STATE, "observation.images.front": PICTURE, "action": ACTION}
    settings = {"features": features, "norm_map": MODES, **changes}
    return {"registry_name": name, "config": settings, "state_file": state_file}


def tensors(path: Path, **shapes: list[int]) -> None:
    """Write a file of safetensors that ends after its header, which is all that is read."""
    header = {
        name.replace("_of_", "."): {"dtype": "F32", "shape": shape, "data_offsets": [0, 0]}
        for name, shape in shapes.items()
    }
    text = json.dumps({"__metadata__": {"by": "hand"}, **header}).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Make a folder as LeRobot saves one, without numbers in its weights."""
    return make(tmp_path / "so101")


def make(path: Path) -> Path:
    path.mkdir(exist_ok=True)
    (path / "config.json").write_text('{"type": "act"}', encoding="utf-8")
    (path / "model.safetensors").write_bytes(b"")
    tensors(
        path / "in.safetensors", **{"observation.state.mean": [3], "observation.state.std": [3]}
    )
    tensors(path / "out.safetensors", **{"action.min": [2], "action.max": [2]})
    write_steps(
        path,
        PREPROCESSOR,
        [
            {"registry_name": "to_batch_processor"},
            normalizer("normalizer_processor", "in.safetensors"),
        ],
    )
    write_steps(path, POSTPROCESSOR, [normalizer("unnormalizer_processor", "out.safetensors")])
    return path


def write_steps(path: Path, name: str, steps: Any) -> None:
    (path / name).write_text(json.dumps({"name": "any", "steps": steps}), encoding="utf-8")


def edit(path: Path, name: str, change: Callable[[dict[str, Any]], None]) -> None:
    """Change the last step of a processor."""
    document = json.loads((path / name).read_text(encoding="utf-8"))
    change(document["steps"][-1])
    write_steps(path, name, document["steps"])


def read(path: Path) -> PolicyFolder:
    return read_policy_folder("so101", path)


def refuse(path: Path, words: str) -> None:
    with pytest.raises(PolicyError, match=words) as error:
        read(path)
    assert "so101" == error.value.policy


def test_the_steps_of_both_processors_are_named(folder: Path) -> None:
    """
    They say which settings may be given to them.
    """
    found = read(folder)
    assert ("to_batch_processor", "normalizer_processor") == found.preprocessor
    assert ("unnormalizer_processor",) == found.postprocessor


@pytest.mark.parametrize("name", ["pytorch_model.bin", "last.ckpt", "policy.pt", "stats.pkl"])
def test_a_folder_with_a_pickle_in_it_is_refused(folder: Path, name: str) -> None:
    """
    Also beside safetensors: reading it would run code.
    """
    (folder / name).write_bytes(b"\x80\x04.")
    refuse(folder, "has a pickle in its folder")


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("config.json", "no folder of a policy"),
        ("model.safetensors", "has no weights"),
        (PREPROCESSOR, "has no policy_preprocessor.json: save both processors"),
        (POSTPROCESSOR, "has no policy_postprocessor.json: save both processors"),
        ("in.safetensors", "state file 'in.safetensors', expected one beside it"),
    ],
)
def test_a_file_that_is_missing_is_named(folder: Path, name: str, words: str) -> None:
    """
    LeRobot would ask the hub for it.
    """
    (folder / name).unlink()
    refuse(folder, words)


def test_an_adapter_is_not_taken_for_a_policy(folder: Path) -> None:
    """
    It changes weights that are elsewhere.
    """
    (folder / "adapter_config.json").write_text("{}", encoding="utf-8")
    refuse(folder, "is an adapter")


@pytest.mark.parametrize(
    "of_class", ["subprocess.Popen", "os.system", "lerobot_evil.Step", "lerobot", None, 7, ["a"]]
)
def test_a_processor_cannot_name_a_class_that_is_not_of_lerobot(
    folder: Path, of_class: Any
) -> None:
    """
    LeRobot imports what is named there, and calls it with the settings of the file.
    """
    write_steps(folder, PREPROCESSOR, [{"class": of_class, "config": {"args": ["true"]}}])
    refuse(folder, "expected a step of LeRobot")


def test_a_class_of_lerobot_may_be_named(folder: Path) -> None:
    """
    So are steps saved that are in no registry.
    """
    write_steps(folder, PREPROCESSOR, [{"class": "lerobot.processor.hil_processor.Step"}])
    assert ("Step",) == read(folder).preprocessor


@pytest.mark.parametrize(
    "state_file", ["../secret.safetensors", "/etc/passwd", "in.bin", "", 7, ["in.safetensors"]]
)
def test_a_state_file_is_one_beside_its_processor(folder: Path, state_file: Any) -> None:
    """
    And of safetensors.
    """
    edit(folder, PREPROCESSOR, lambda step: step.update(state_file=state_file))
    refuse(folder, "expected one beside it")


@pytest.mark.parametrize("kind", ["groot", "pi0_fast", "wall_x", "sac"])
def test_a_policy_that_runs_code_from_the_hub_is_refused(folder: Path, kind: str) -> None:
    """
    LeRobot trusts it, and there is no way to say no.
    """
    (folder / "config.json").write_text(json.dumps({"type": kind}), encoding="utf-8")
    refuse(folder, "runs code from the hub")


@pytest.mark.parametrize("kind", ["tdmpc", "lingbot_va"])
def test_a_policy_that_has_to_be_told_each_step_is_refused(folder: Path, kind: str) -> None:
    """
    Its chunk would be one of an episode that never was.
    """
    (folder / "config.json").write_text(json.dumps({"type": kind}), encoding="utf-8")
    refuse(folder, "follows an episode step by step")


def test_a_step_that_runs_code_from_the_hub_is_refused(folder: Path) -> None:
    """
    The tokenizer of actions is code.
    """
    write_steps(folder, PREPROCESSOR, [{"registry_name": "action_tokenizer_processor"}])
    refuse(folder, "runs code from the hub")


def test_a_processor_without_statistics_is_refused(folder: Path) -> None:
    """
    LeRobot leaves numbers as they are then, and normalised actions would go to the robot.
    """
    edit(folder, POSTPROCESSOR, lambda step: step.pop("state_file"))
    refuse(folder, "lacks the statistics action.max, action.min")


def test_statistics_that_the_mode_needs_are_missed(folder: Path) -> None:
    """
    Mean and deviation do not help where least and most are asked for.
    """
    tensors(folder / "out.safetensors", **{"action.mean": [2], "action.std": [2]})
    refuse(folder, "lacks the statistics action.max, action.min")


def test_statistics_of_another_robot_are_missed(folder: Path) -> None:
    """
    One number would be spread over all joints.
    """
    tensors(folder / "out.safetensors", **{"action.min": [1], "action.max": [2]})
    refuse(folder, "lacks the statistics action.min,")


def test_only_what_is_normalised_needs_statistics(folder: Path) -> None:
    """
    The observations before the model, the actions after it; nothing where the mode is IDENTITY.
    """
    identity = {"STATE": "IDENTITY", "ACTION": "MIN_MAX"}
    edit(folder, PREPROCESSOR, lambda step: step["config"].update(norm_map=identity))
    edit(folder, PREPROCESSOR, lambda step: step.pop("state_file"))
    assert read(folder).preprocessor


def test_a_normaliser_of_some_keys_needs_the_statistics_of_those(folder: Path) -> None:
    """
    Others are passed through as it was meant.
    """
    edit(folder, PREPROCESSOR, lambda step: step["config"].update(normalize_observation_keys=["x"]))
    edit(folder, PREPROCESSOR, lambda step: step.pop("state_file"))
    assert read(folder).preprocessor


@pytest.mark.parametrize(
    "content", [b"", b"\xff" * 8, b"\xff" * 20, (4).to_bytes(8, "little") + b"[[[["]
)
def test_damaged_statistics_are_refused(folder: Path, content: bytes) -> None:
    """
    With the name of the file, and whatever length they claim.
    """
    (folder / "in.safetensors").write_bytes(content)
    refuse(folder, "in.safetensors is damaged")


@pytest.mark.parametrize(
    "text", ["", "[]", "[" * 10_000, '{"steps": 7}', '{"steps": [7]}', '{"a": 1, "a": 2}', "\x00"]
)
@pytest.mark.parametrize("name", ["config.json", PREPROCESSOR, POSTPROCESSOR])
def test_a_file_that_is_no_proper_json_is_refused(folder: Path, name: str, text: str) -> None:
    """
    And nothing else is raised.
    """
    (folder / name).write_text(text, encoding="utf-8")
    refuse(folder, "json")


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(document=json_objects(), step=json_objects(), features=json_objects())
def test_any_json_in_a_folder_is_read_or_refused(
    tmp_path: Path, document: Any, step: Any, features: Any
) -> None:
    """
    Whatever stands where steps, settings and features are expected.
    """
    path = make(tmp_path / "any")
    attempts: list[Any] = [
        document,
        {"steps": [step]},
        {"steps": [{"registry_name": "normalizer_processor", "config": step}]},
        {"steps": [normalizer("normalizer_processor", "in.safetensors", features=features)]},
        {"steps": [normalizer("normalizer_processor", "in.safetensors", norm_map=features)]},
        {"steps": [normalizer("normalizer_processor", "in.safetensors", features={"x": features})]},
    ]
    for attempt in attempts:
        (path / PREPROCESSOR).write_text(json.dumps(attempt), encoding="utf-8")
        with suppress(PolicyError):
            read(path)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.binary(max_size=200))
def test_any_bytes_as_statistics_are_read_or_refused(tmp_path: Path, content: bytes) -> None:
    """
    And nothing else is raised.
    """
    path = make(tmp_path / "bytes")
    (path / "in.safetensors").write_bytes(content)
    with pytest.raises(PolicyError):
        read(path)
