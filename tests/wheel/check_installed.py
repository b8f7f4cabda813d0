"""
Check an installed wheel, in an environment that has nothing else: run by ``nox -s build``.

Needs no pytest, which would bring packages that hide a missing dependency.
"""

from __future__ import annotations

import importlib
import subprocess
import sys
from importlib import metadata
from pathlib import Path

PACKAGES = ("vlmcore", "vlmcore_robotics", "vlmcore_audio", "vlmcore_comfy")
PYTEST_PLUGIN = "_vlmcore_pytest.py"
EMBEDDED_AT_MOST_BYTES = 8_000_000
EMBEDDED_FILES = ("config.json", "model.safetensors", "tokenizer.json", "chat_template.jinja")


def main() -> None:
    """Raise at the first thing that is not as it should be."""
    distribution = metadata.distribution("vlmcore")
    files = {str(file) for file in distribution.files or ()}
    for package in PACKAGES:
        module = importlib.import_module(package)
        require("site-packages" in str(module.__file__), f"{package} is the installed one")
        require(f"{package}/py.typed" in files, f"{package} has its py.typed")
    tops = {file.partition("/")[0] for file in files if not file.startswith("..")}
    require(PYTEST_PLUGIN in tops, "the pytest plugin stands beside the packages")
    extra = {top for top in tops if top not in PACKAGES and not top.endswith(".dist-info")}
    extra -= {PYTEST_PLUGIN, "__pycache__"}
    require(not extra, f"nothing else is installed, found {extra}")
    require(any("licenses/LICENSE" in file for file in files), "the licence is there")
    require("Apache-2.0" == distribution.metadata["License-Expression"], "and it is named")

    check_embedded_model()
    check_that_a_missing_extra_is_named()
    check_command()
    print("the wheel is as it should be")  # noqa: T201


def check_embedded_model() -> None:
    """Require the model's files, its card, its pictures, and that it is small."""
    from vlmcore import embedded  # noqa: PLC0415 - after the checks above

    folder = embedded.model_directory()
    for name in EMBEDDED_FILES:
        require((folder / name).is_file(), f"the embedded model has its {name}")
    home = folder.parent
    require((home / "MODEL_CARD.md").is_file(), "the embedded model has its card")
    require(embedded.sample_scene_path().is_file(), "and a picture")
    size = sum(file.stat().st_size for file in home.rglob("*") if file.is_file())
    require(size <= EMBEDDED_AT_MOST_BYTES, f"it is small: {size} bytes")


def check_that_a_missing_extra_is_named() -> None:
    """Require the clear error where torch is not installed."""
    import vlmcore  # noqa: PLC0415 - after the checks above

    try:
        vlmcore.load_predictor("embedded")
    except vlmcore.MissingDependencyError as error:
        require('pip install "vlmcore[local]"' in str(error), f"the way out: {error}")
    else:
        raise SystemExit("not so: torch is missing here, and that is said")


def check_command() -> None:
    """Require that the command starts, both ways, and that ``doctor`` needs nothing."""
    script = Path(sys.executable).with_name("vlmcore")
    for command in ([str(script)], [sys.executable, "-m", "vlmcore"]):
        for words in (["--help"], ["--version"], ["catalog", "vlm"], ["doctor"]):
            done = subprocess.run([*command, *words], capture_output=True, text=True, check=False)
            require(bool(done.stdout), f"{words} prints something: {done.stderr}")
            require("Traceback" not in done.stderr, f"{words} ends well: {done.stderr}")


def require(holds: bool, what: str) -> None:  # noqa: FBT001 - reads as a sentence
    """Fail unless it holds; assert would be switched off by -O."""
    if not holds:
        raise SystemExit(f"not so: {what}")


if __name__ == "__main__":
    main()
