"""Tests of `vlmcore_robotics.adapters.lerobot` where LeRobot is not installed."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from vlmcore.errors import MissingDependencyError
from vlmcore_robotics import adapters
from vlmcore_robotics.adapters import LeRobotPolicy

RUNTIME = "_lerobot_runtime"


def save(path: Path) -> Path:
    """Make a folder that may be loaded, as far as that is known without LeRobot."""
    config = {
        "type": "act",
        "n_obs_steps": 1,
        "input_features": {"observation.state": {"type": "STATE", "shape": [1]}},
        "output_features": {"action": {"type": "ACTION", "shape": [1]}},
    }
    (path / "config.json").write_text(json.dumps(config), encoding="utf-8")
    (path / "model.safetensors").write_bytes(b"")
    for name in ("policy_preprocessor.json", "policy_postprocessor.json"):
        (path / name).write_text('{"steps": []}', encoding="utf-8")
    return path


@pytest.mark.parametrize("is_folder", [True, False])
def test_what_is_missing_is_said_with_the_way_to_have_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_folder: bool
) -> None:
    """
    For a folder and for a repository.
    """
    monkeypatch.setitem(sys.modules, "lerobot", None)
    monkeypatch.delitem(sys.modules, f"{adapters.__name__}.{RUNTIME}", raising=False)
    monkeypatch.delattr(adapters, RUNTIME, raising=False)
    policy = str(save(tmp_path)) if is_folder else "org/name"
    with pytest.raises(MissingDependencyError, match=r'pip install "vlmcore\[lerobot\]"'):
        LeRobotPolicy.from_pretrained(policy, action_names=["x"])


def test_the_adapter_is_imported_without_torch() -> None:
    """
    It is loaded when a policy is.
    """
    program = (
        "import sys; import vlmcore_robotics.adapters; "
        "sys.exit(not {'torch', 'lerobot', 'huggingface_hub'}.isdisjoint(sys.modules))"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
