"""What is known of the machine that measures, without its name and its user."""

from __future__ import annotations

import math
import os
import platform
from collections.abc import Iterator, Sequence
from pathlib import Path

from vlmcore.errors import MissingDependencyError
from vlmcore.lab.identity import Accelerator, Host
from vlmcore.vlm.devices import Device, accelerators, host

__all__ = ["find_devices", "find_host"]

_ROOT = Path("/")


def find_host(
    devices: Sequence[Device] | None, *, root: Path = _ROOT
) -> tuple[Host, dict[str, str]]:
    """
    Look at this machine.

    Args:
        devices: Its devices for models, as `find_devices` finds them; ``None`` if nobody looked.
        root: Where the file system of Linux begins.

    Returns:
        What was found, and why the rest was not, by its place in an identity.

    Example:
        >>> found, reasons = find_host(devices=[])
        >>> found.accelerators, reasons.get("host.accelerators")
        ((), None)
    """
    found = Host(
        system=f"{platform.system()} {platform.release()}",
        machine=platform.machine() or "unknown",
        python=f"{platform.python_implementation()} {platform.python_version()}",
        processor=next(_processors(root), None),
        cores=min([*_cores(), *_quotas(root)], default=None),
        memory_bytes=host().total_bytes,
        accelerators=devices
        and tuple(Accelerator(name=d.label, memory_bytes=d.total_bytes) for d in devices),
    )
    reasons = {
        "host.processor": "the system does not tell",
        "host.cores": "the system does not tell",
        "host.memory_bytes": "the system does not tell",
        "host.accelerators": "nothing that could look at them is installed",
    }
    unknown = {f"host.{name}" for name in _names_of_none(found)}
    return found, {place: why for place, why in reasons.items() if place in unknown}


def find_devices() -> tuple[Device, ...] | None:
    """Look at the devices for models, by PyTorch; ``None`` if it is not installed."""
    try:
        return accelerators()
    except MissingDependencyError:
        return None


def _names_of_none(found: Host) -> Iterator[str]:
    for name in ("processor", "cores", "memory_bytes", "accelerators"):
        if getattr(found, name) is None:
            yield name


def _processors(root: Path) -> Iterator[str]:
    for line in _read(root / "proc/cpuinfo").splitlines():
        key, _, value = line.partition(":")
        if key.strip() in ("model name", "Model", "cpu model") and value.strip():
            yield " ".join(value.split())


def _cores() -> Iterator[int]:
    if hasattr(os, "sched_getaffinity"):
        yield len(os.sched_getaffinity(0))
    elif (count := os.cpu_count()) is not None:
        yield count


def _quotas(root: Path) -> Iterator[int]:
    """Look how much of its processors a container may use, new style."""
    for line in _read(root / "proc/self/cgroup").splitlines():
        _, controllers, inner = line.split(":", 2)
        mount = root / "sys/fs/cgroup"
        group = mount / inner.lstrip("/")
        for folder in (group, *group.parents) if controllers == "" else ():
            if folder.is_relative_to(mount):
                quota, _, period = _read(folder / "cpu.max").strip().partition(" ")
                if quota.isdigit() and period.isdigit() and int(period):
                    yield max(1, math.ceil(int(quota) / int(period)))


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
