"""Where models can run on this machine."""

from __future__ import annotations

import os
import platform
from pathlib import Path

import attrs

from vlmcore._optional import optional_dependency

__all__ = ["Device", "accelerators", "host"]

_MEMORY = Path("/proc/meminfo")


@attrs.frozen(kw_only=True)
class Device:
    """
    A place where a model can run.

    Attributes:
        name: Its name, as `vlmcore.load_predictor` takes it: ``"cuda:0"``, ``"cpu"``, ...
        label: What it is, as its maker calls it.
        total_bytes: Its memory; ``None`` where unknown.
        free_bytes: What of it is free; ``None`` where unknown.
    """

    name: str
    label: str
    total_bytes: int | None
    free_bytes: int | None


def host() -> Device:
    """
    Look at the processor and the memory of this machine; needs no framework.

    Example:
        >>> host().name
        'cpu'
    """
    label = f"{os.cpu_count()} cores, {platform.machine()}"
    return Device(name="cpu", label=label, total_bytes=_total_bytes(), free_bytes=_free_bytes())


def accelerators() -> tuple[Device, ...]:
    """
    Look at the accelerators that PyTorch can use here, the one that ``"auto"`` takes first.

    Raises:
        MissingDependencyError: If PyTorch is not installed.
    """
    with optional_dependency("local", "torch"):
        from vlmcore.vlm.backends import _devices  # noqa: PLC0415 - the door
    return tuple(
        Device(name=name, label=label, total_bytes=total, free_bytes=free)
        for name, label, total, free in _devices.accelerators()
    )


def _total_bytes() -> int | None:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):  # Windows has no sysconf
        return None


def _free_bytes() -> int | None:
    """Ask Linux what can be had without swapping; caches count as free."""
    try:
        lines = _MEMORY.read_text(encoding="ascii").splitlines()
    except (OSError, ValueError):
        return None
    found = [line.split()[1] for line in lines if line.startswith("MemAvailable:")]
    return int(found[0]) * 1024 if found else None
