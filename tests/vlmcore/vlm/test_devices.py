"""Where models can run: the host needs no framework, accelerators are asked of PyTorch."""

import subprocess
import sys

import pytest

from vlmcore.vlm import devices
from vlmcore.vlm.devices import host


def test_the_host_is_known_without_a_framework() -> None:
    """
    Its memory, where the system tells it; what is free is part of it.
    """
    cpu = host()

    assert "cpu" == cpu.name
    assert "cores" in cpu.label
    if cpu.total_bytes is not None and cpu.free_bytes is not None:
        assert 0 < cpu.free_bytes <= cpu.total_bytes


@pytest.mark.parametrize("text", ["", "MemTotal: 12 kB\n", "\N{SNOWMAN}"])
def test_a_system_that_does_not_tell_is_unknown_and_no_error(tmp_path, monkeypatch, text) -> None:
    """
    Containers and other systems have no such file, or another.
    """
    monkeypatch.setattr(devices, "_MEMORY", tmp_path / "meminfo")
    assert host().free_bytes is None

    (tmp_path / "meminfo").write_text(text, encoding="utf-8")
    assert host().free_bytes is None


def test_free_memory_counts_what_caches_would_give_back(tmp_path, monkeypatch) -> None:
    """
    Linux calls it available; its unit is KiB.
    """
    (tmp_path / "meminfo").write_text("MemFree: 1 kB\nMemAvailable:    2048 kB\n")
    monkeypatch.setattr(devices, "_MEMORY", tmp_path / "meminfo")

    assert 2 << 20 == host().free_bytes


def test_without_torch_the_error_says_what_to_install() -> None:
    """
    And importing the module loads no framework.
    """
    program = (
        "import sys; sys.modules['torch'] = None\n"
        "from vlmcore.vlm.devices import accelerators\n"
        "try:\n    accelerators()\n"
        "except ImportError as error:\n    print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True
    )

    assert 'pip install "vlmcore[local]"' in done.stdout
