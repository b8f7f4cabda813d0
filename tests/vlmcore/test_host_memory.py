"""How much memory is free: what the system and the containers around the process tell."""

from __future__ import annotations

from pathlib import Path

import pytest

from vlmcore._host_memory import free_host_bytes, in_gib

MIB = 1024 * 1024


def write(root: Path, **files: str) -> None:
    for name, content in files.items():
        path = root / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="ascii")


def write_system(root: Path, available_kib: int, groups: str) -> None:
    write(root / "proc", meminfo=f"MemTotal: 9 kB\nMemAvailable: {available_kib} kB\n")
    write(root / "proc/self", cgroup=groups)


def test_memory_of_this_machine_is_known_on_linux() -> None:
    """
    A real machine says how much is free.
    """
    if Path("/proc/meminfo").exists():
        assert free_host_bytes() > MIB


def test_what_the_host_has_free_counts_where_no_container_bounds_it(tmp_path) -> None:
    """
    Without a limit, it is what can be had without swapping.
    """
    write_system(tmp_path, 1024, "0::/\n")
    (tmp_path / "sys/fs/cgroup").mkdir(parents=True)

    assert MIB == free_host_bytes(tmp_path)


def test_a_container_with_less_than_the_host_counts(tmp_path) -> None:
    """
    The limit of a group around the process binds it too, and its file caches count as free.
    """
    write_system(tmp_path, 8192, "0::/pod/me\n")
    outer = tmp_path / "sys/fs/cgroup/pod"
    for group, limit in ((outer, 5 * MIB), (outer / "me", "max")):
        group.mkdir(parents=True)
        (group / "memory.max").write_text(f"{limit}\n")
        (group / "memory.current").write_text(f"{4 * MIB}\n")
        (group / "memory.stat").write_text(f"anon 7\ninactive_file {MIB}\n")

    assert 2 * MIB == free_host_bytes(tmp_path)


def test_containers_of_the_old_style_count_as_well(tmp_path) -> None:
    """
    Control groups of version 1 have other names for the same.
    """
    write_system(tmp_path, 8192, "3:cpu:/x\n2:memory:/job\n")
    group = tmp_path / "sys/fs/cgroup/memory/job"
    group.mkdir(parents=True)
    (group / "memory.limit_in_bytes").write_text(f"{3 * MIB}")
    (group / "memory.usage_in_bytes").write_text(f"{4 * MIB}")

    assert 0 == free_host_bytes(tmp_path)


@pytest.mark.parametrize(
    ("nbytes", "text"), [(0, "0.0 MiB"), (3 * MIB, "3.0 MiB"), (1536 * MIB, "1.5 GiB")]
)
def test_sizes_are_written_for_people(nbytes, text) -> None:
    """
    Small models are told in MiB, others in GiB.
    """
    assert text == in_gib(nbytes)
