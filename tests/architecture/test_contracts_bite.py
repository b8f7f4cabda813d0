"""Each contract catches a planted violation: a rule that cannot fail is decoration."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import attrs
import pytest

from architecture.tree import ROOT, SRC, law


@attrs.frozen
class Plant:
    """A line that breaks a contract, and the file to append it to (made if it is not there)."""

    contract: str
    file: str
    line: str


PLANTS = [
    Plant("floors", "vlmcore/limits/__init__.py", "import vlmcore_robotics"),
    Plant("floors", "vlmcore_audio/__init__.py", "import vlmcore_robotics"),
    Plant("floors", "vlmcore_robotics/__init__.py", "import vlmcore_comfy"),
    Plant("core-floors", "vlmcore/errors/__init__.py", "import vlmcore.limits"),
    Plant("core-floors", "vlmcore/media/images.py", "def later():\n    import vlmcore.vlm.prompt"),
    Plant("core-floors", "vlmcore/vlm/loading.py", "import vlmcore.cli"),
    Plant("core-floors", "vlmcore/contracts/actions.py", "import vlmcore.safety.report"),
    Plant("core-floors", "vlmcore/policy/interface.py", "import vlmcore.safety.gate"),
    Plant("core-floors", "vlmcore/safety/gate.py", "import vlmcore.rollout"),
    Plant("core-floors", "vlmcore/weights/opening.py", "import vlmcore.vlm.prompt"),
    Plant("core-floors", "vlmcore/charts/__init__.py", "import vlmcore.contracts.actions"),
    Plant("core-floors", "vlmcore/testing/__init__.py", "import vlmcore.cli"),
    Plant("core-floors", "vlmcore/vlm/predictor.py", "import vlmcore.lab"),
    Plant("core-floors", "vlmcore/utils.py", "nothing = None"),
    Plant("core-floors", "vlmcore/vision/reading.py", "import vlmcore.vlm.prompt"),
    Plant("robotics-floors", "vlmcore_robotics/wire/codec.py", "import vlmcore_robotics.clients"),
    Plant(
        "robotics-floors", "vlmcore_robotics/servers/runtime.py", "import vlmcore_robotics.clients"
    ),
    Plant(
        "robotics-floors", "vlmcore_robotics/testing/protocols.py", "import vlmcore_robotics.cli"
    ),
    Plant("robotics-floors", "vlmcore_robotics/helpers.py", "nothing = None"),
    Plant("sans-io", "vlmcore_robotics/wire/frames.py", "import time"),
    Plant("sans-io", "vlmcore_robotics/wire/ndarrays.py", "def later():\n    import socket"),
    Plant("pillow-behind-resizing", "vlmcore_robotics/wire/openpi.py", "from PIL import Image"),
    Plant("transports-behind-doors", "vlmcore_robotics/clients/websocket.py", "import websockets"),
    Plant("transports-behind-doors", "vlmcore_robotics/servers/runtime.py", "import torch"),
    Plant("transports-behind-doors", "vlmcore_robotics/adapters/lerobot.py", "import lerobot"),
    Plant("transports-behind-doors", "vlmcore_robotics/datasets/lerobot_export.py", "import av"),
    Plant(
        "robotics-floors",
        "vlmcore_robotics/datasets/lerobot_info.py",
        "import vlmcore_robotics.cli",
    ),
    Plant("audio-floors", "vlmcore_audio/music.py", "import vlmcore_audio.minimax"),
    Plant("transports-behind-doors", "vlmcore_audio/clips.py", "import soundfile"),
    Plant("comfy-floors", "vlmcore_comfy/sockets.py", "import vlmcore_comfy.nodes"),
    Plant("comfy-behind-its-door", "vlmcore_comfy/sockets.py", "import torch"),
    Plant("framework-free", "vlmcore/limits/__init__.py", "import torch"),
    Plant("framework-free", "vlmcore/vlm/loading.py", "def later():\n    import torch"),
    Plant("framework-free", "vlmcore/media/images.py", "def later():\n    from PIL import Image"),
    Plant("framework-free", "vlmcore/media/_pillow.py", "import torch"),
    Plant("framework-free", "vlmcore/media/video.py", "def later():\n    import av"),
    Plant("framework-free", "vlmcore/weights/opening.py", "def later():\n    import torch"),
    Plant("framework-free", "vlmcore/weights/checksums.py", "def later():\n    import xxhash"),
    Plant("framework-free", "vlmcore/vlm/remote/predictors.py", "import h11"),
    Plant("framework-free", "vlmcore/vlm/outputs.py", "def later():\n    import jsonschema"),
    Plant("framework-free", "vlmcore/jobs/sinks/tables.py", "def later():\n    import pyarrow"),
    Plant("backends-behind-loading", "vlmcore/cli/__init__.py", "import vlmcore.vlm.backends"),
    Plant("pillow-behind-media", "vlmcore/vlm/prompt.py", "import vlmcore.media._pillow"),
    Plant("pillow-behind-media", "vlmcore/vlm/prompt.py", "import vlmcore.media._av"),
    Plant("drawing-behind-charts", "vlmcore/safety/report.py", "import vlmcore.charts._matplotlib"),
    Plant("comfy-only-in-comfy", "vlmcore_robotics/__init__.py", "import comfy"),
    Plant("no-cycles", "vlmcore/errors/__init__.py", "def later():\n    import vlmcore.limits"),
]

# What a planted line refers to, where the room is not built yet.
STAND_INS = {
    "vlmcore_comfy/nodes/__init__.py",
    "vlmcore_comfy/sockets.py",
}


def check(tree: Path, contract: str) -> subprocess.CompletedProcess[str]:
    """Hold the copy in *tree* to one contract."""
    program = "import sys; from importlinter.cli import lint_imports_command as lint; lint()"
    command = [sys.executable, "-c", program, "--contract", contract, "--no-cache"]
    environment = {**os.environ, "PYTHONPATH": str(tree / "src"), "COLUMNS": "200"}
    return subprocess.run(
        command, cwd=tree, env=environment, capture_output=True, text=True, check=False
    )


def contract_ids() -> list[str]:
    """Name every contract of the law."""
    return [
        section.removeprefix("importlinter:contract:")
        for section in law().sections()
        if section.startswith("importlinter:contract:")
    ]


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """
    Copy the sources and the law to a place of their own; a test leaves the copy as it found it.
    """
    folder = tmp_path_factory.mktemp("tree")
    skip = shutil.ignore_patterns("__pycache__", "*.safetensors", "*.png", "*.json")
    shutil.copytree(SRC, folder / "src", ignore=skip)
    shutil.copy(ROOT / ".importlinter", folder)
    return folder


@contextlib.contextmanager
def planted(plant: Plant, tree: Path) -> Iterator[None]:
    """Append the line, and make what stands in for rooms; take both away again."""
    lines = {name: "" for name in STAND_INS if not (tree / "src" / name).exists()}
    lines[plant.file] = plant.line
    files = {tree / "src" / name: line for name, line in lines.items()}
    before = {file: file.read_text("utf-8") if file.exists() else None for file in files}
    for file, line in files.items():
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{before[file] or ''}\n{line}\n", encoding="utf-8")
    try:
        yield
    finally:
        for file, text in before.items():
            if text is None:
                file.unlink()
            else:
                file.write_text(text, encoding="utf-8")


@pytest.mark.parametrize("plant", PLANTS, ids=lambda plant: f"{plant.contract}-{plant.file}")
def test_a_planted_violation_breaks_its_contract(plant: Plant, tree: Path) -> None:
    """
    The contract that is named breaks, and it is the contract that says so, not a crash.
    """
    with planted(plant, tree):
        done = check(tree, plant.contract)

    assert done.returncode == 1, done.stdout + done.stderr
    assert f"{law()[f'importlinter:contract:{plant.contract}']['name']} BROKEN" in done.stdout


@pytest.mark.parametrize("contract", contract_ids())
def test_the_tree_keeps_every_contract_and_every_contract_has_a_plant(
    contract: str, tree: Path
) -> None:
    """
    Without the planted line the same copy is lawful, so it is the line that was caught.
    """
    assert contract in {plant.contract for plant in PLANTS}
    done = check(tree, contract)
    assert done.returncode == 0, done.stdout + done.stderr
