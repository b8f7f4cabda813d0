"""What importing costs: no framework is loaded before a door is opened."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from architecture.tree import PACKAGES, is_door, module_files, module_name

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


def test_every_light_module_imports_on_its_own(tmp_path: Path) -> None:
    """
    A module that imports only after another one has been imported holds a hidden cycle.
    """
    program = (
        "import contextlib, importlib, json, os, sys\n"
        "names, ours = json.loads(sys.argv[1]), tuple(json.loads(sys.argv[2]))\n"
        "told, heard = os.pipe()\n"
        "if os.fork() == 0:\n"
        "    for name in names: importlib.import_module(name)\n"
        "    os.write(heard, json.dumps([name for name in sys.modules]).encode())\n"
        "    os._exit(0)\n"
        "os.close(heard)\n"
        "for name in json.loads(open(told).read()):\n"  # loaded once, what is of others
        "    with contextlib.suppress(ImportError):\n"
        "        if name.partition('.')[0] not in ours: importlib.import_module(name)\n"
        "failed = []\n"
        "for name in names:\n"
        "    pid = os.fork()\n"
        "    if pid == 0:\n"
        "        try: importlib.import_module(name)\n"
        "        except BaseException as error: print(name, repr(error), flush=True); os._exit(1)\n"
        "        os._exit(0)\n"
        "    if os.waitpid(pid, 0)[1]: failed.append(name)\n"
        "sys.exit(bool(failed))\n"
    )
    if not hasattr(sys, "getwindowsversion"):
        words = [json.dumps(LIGHT), json.dumps(PACKAGES)]
        # Compiled once for all of them, also where the environment says that nothing is kept.
        kept = {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": str(tmp_path)}
        done = subprocess.run(
            [sys.executable, "-W", "ignore", "-c", program, *words],
            env=os.environ | kept,
            capture_output=True,
            text=True,
            check=False,
        )
        assert (0, "") == (done.returncode, done.stdout), done.stderr
