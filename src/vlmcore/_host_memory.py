"""How much memory this process may still take, as far as the system tells."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

__all__ = ["free_host_bytes", "in_gib"]

_ROOT = Path("/")
_V2 = ("memory.max", "memory.current", "inactive_file")
_V1 = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")


def free_host_bytes(root: Path = _ROOT) -> int | None:
    """
    Find out what can be had without swapping; caches count as free.

    A container may be allowed less than its host has free: the smaller counts.

    Args:
        root: Where the file system of Linux begins.

    Returns:
        Bytes; ``None`` where the system does not tell.
    """
    found = [*_available(root), *_left_in_containers(root)]
    if found:
        return max(min(found), 0)
    return _by_sysconf()


def in_gib(nbytes: float) -> str:
    """Write a size for people; what is small is given in MiB."""
    mib = nbytes / 1024 / 1024
    return f"{mib:.1f} MiB" if mib < 1024 / 2 else f"{mib / 1024:.1f} GiB"


def _available(root: Path) -> Iterator[int]:
    for line in _read(root / "proc/meminfo").splitlines():
        if line.startswith("MemAvailable:"):
            yield int(line.split()[1]) * 1024


def _left_in_containers(root: Path) -> Iterator[int]:
    """Look at the control group of this process and at those around it, old and new style."""
    for line in _read(root / "proc/self/cgroup").splitlines():
        _, controllers, inner = line.split(":", 2)
        if controllers == "":
            mount, names = root / "sys/fs/cgroup", _V2
        elif "memory" in controllers.split(","):
            mount, names = root / "sys/fs/cgroup/memory", _V1
        else:
            continue
        group = mount / inner.lstrip("/")
        for folder in (group, *group.parents):
            if folder.is_relative_to(mount):
                yield from _left(folder, *names)


def _left(folder: Path, limit: str, usage: str, cache: str) -> Iterator[int]:
    allowed, used = _read(folder / limit).strip(), _read(folder / usage).strip()
    if not allowed.isdigit() or not used.isdigit():  # "max", or there is no such group
        return
    caches = [
        int(words[1])
        for words in map(str.split, _read(folder / "memory.stat").splitlines())
        if words[:1] == [cache]
    ]
    yield int(allowed) - int(used) + sum(caches)


def _by_sysconf() -> int | None:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_AVPHYS_PAGES")
    except (AttributeError, OSError, ValueError):  # Windows and macOS do not say
        return None


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii", errors="replace")
    except OSError:
        return ""
