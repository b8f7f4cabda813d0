"""What importing costs: no framework is loaded before a door is opened."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from architecture.tree import PACKAGES, SRC, is_door, module_files, module_name

HEAVY = (
    "torch",
    "transformers",
    "PIL",
    "httpx",
    "h11",
    "websockets",
    "zmq",
    "starlette",
    "uvicorn",
    "pyarrow",
    "soundfile",
)

MODULES = [module_name(file) for file in module_files() if file.stem != "__main__"]
LIGHT = [name for name in MODULES if not is_door(name)]
LONE = Path(__file__).with_name("lone_imports.py")


def loaded_by(*modules: str) -> list[str]:
    """Import *modules* in a fresh process and list what is loaded afterwards, top level only."""
    program = (
        "import importlib, json, sys\n"
        "for name in json.loads(sys.argv[1]): importlib.import_module(name)\n"
        "print(json.dumps(sorted({name.partition('.')[0] for name in sys.modules})))\n"
    )
    command = [sys.executable, "-c", program, json.dumps(modules)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return list(json.loads(done.stdout))


@pytest.mark.parametrize("package", PACKAGES)
def test_importing_a_package_loads_no_framework(package: str) -> None:
    """
    ``import vlmcore`` is what every program pays for, also one that only reads a result.
    """
    assert [] == [name for name in loaded_by(package) if name in HEAVY]


def test_importing_everything_but_the_doors_loads_no_framework() -> None:
    """
    The contracts read the source; this runs it: an import that hides from them is caught here.
    """
    assert len(LIGHT) > 15
    assert [] == [name for name in loaded_by(*LIGHT) if name in HEAVY]


def test_import_vlmcore_loads_only_what_the_base_install_brings() -> None:
    """
    A package that is not a dependency must not be needed, nor used because it happens to be there.
    """
    ours = {*PACKAGES, "attr", "attrs", "numpy"}
    loaded = {name for name in loaded_by("vlmcore") if name not in sys.stdlib_module_names}
    assert set() == loaded - ours - set(loaded_by("attrs", "numpy"))


def lone_imports(
    *modules: str, packages: Sequence[str], folder: Path, path: Path = SRC
) -> tuple[int, str]:
    """Import each of *modules* on its own; return the exit code, and those that failed."""
    # Compiled once for all of them, also where the environment says that nothing is kept.
    kept = {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": str(folder / "compiled")}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", LONE, json.dumps(modules), json.dumps(packages)],
        env=os.environ | kept | {"PYTHONPATH": str(path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert not done.stderr, done.stderr
    return done.returncode, done.stdout


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes do not fork here")
def test_every_light_module_imports_on_its_own(tmp_path: Path) -> None:
    """
    A module that imports only after another one has been imported holds a hidden cycle.
    """
    assert (0, "") == lone_imports(*LIGHT, packages=PACKAGES, folder=tmp_path)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes do not fork here")
def test_a_module_that_needs_another_one_first_is_found(tmp_path: Path) -> None:
    """
    Also deep in a package, and also where all of them together import.
    """
    files = {
        "house/__init__.py": "",
        "house/rooms/__init__.py": "from house.rooms import bath",
        "house/rooms/bath.py": "",
        "house/rooms/attic.py": "from house.stairs import UP\nROOF = 1",
        "house/stairs.py": "from house.rooms.attic import ROOF\nUP = 1",
        "house/cellar.py": "import house\nhouse.rooms",
        "house/alarm.py": "raise SystemExit",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    modules = [
        name.removesuffix(".py").removesuffix("/__init__").replace("/", ".") for name in files
    ]
    code, failed = lone_imports(*modules, packages=["house"], folder=tmp_path, path=tmp_path)
    assert 1 == code
    assert ["house.alarm", "house.cellar", "house.rooms.attic", "house.stairs"] == [
        line.partition(" ")[0] for line in failed.splitlines()
    ]
