"""ComfyUI prints how long a pack holds up its start: declaring all nodes loads next to nothing."""

from __future__ import annotations

import json
import subprocess
import sys

# What a declaration needs: the words of errors, and how a wrong label is answered.
ALLOWED = {
    "vlmcore",
    "vlmcore._arguments",
    "vlmcore._spelling",
    "vlmcore.errors",
}


def test_declaring_every_node_loads_nothing_of_the_core() -> None:
    """
    A node imports what it calls when it runs, and annotations under ``if TYPE_CHECKING``.
    """
    program = (
        "import json, sys\n"
        "from vlmcore_comfy.catalog import load_catalog\n"
        "import vlmcore_comfy.hosting\n"
        "load_catalog()\n"
        "print(json.dumps(sorted(sys.modules)))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    loaded = {
        name
        for name in json.loads(done.stdout)
        if name.startswith("vlmcore") and not name.startswith(("vlmcore_comfy", "vlmcore.errors."))
    }
    assert ALLOWED == loaded


def test_declaring_every_node_loads_no_framework() -> None:
    """
    Neither NumPy nor a network client, beside what is heavy: ComfyUI has the first, not the second.
    """
    program = (
        "import json, sys\n"
        "from vlmcore_comfy.catalog import load_catalog\n"
        "import vlmcore_comfy.hosting\n"
        "load_catalog()\n"
        "print(json.dumps(sorted({name.partition('.')[0] for name in sys.modules})))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    heavy = {"torch", "PIL", "numpy", "h11", "httpx", "transformers", "soundfile", "websockets"}
    assert set() == heavy & set(json.loads(done.stdout))
