"""
What a run was made with: package, host and targets, and what of it nobody could tell.

What is not known is ``None`` in the contracts and null in documents, never a guess, and each place
of it has a reason. `vlmcore.lab.host_facts` and its neighbours find out what can be found out.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import attrs

from vlmcore._arguments import require_kind
from vlmcore._arrays import as_tuple, require_member
from vlmcore._copying import through_constructor
from vlmcore._json_values import frozen_object
from vlmcore.errors import ContractError
from vlmcore.lab._field_checks import (
    require_all,
    require_count_or_none,
    require_lines,
    require_lines_or_none,
)
from vlmcore.lab.targets import Checkpoint, Server, Target

__all__ = ["Accelerator", "Host", "Identity", "Package", "PackageSource"]


class PackageSource(enum.Enum):
    """Where the code of a package came from."""

    RELEASE = "release"  # an index or a wheel: the version says which code it is
    REPOSITORY = "repository"  # a commit, as pip took it
    FOLDER = "folder"  # a working copy, which may have changes


@attrs.frozen(kw_only=True)
class Package:
    """
    The code that measured.

    Attributes:
        version: Its version.
        source: Where it came from.
        commit: The commit of its repository; a release has none.
        has_changes: Whether there is more in its folder than the commit.

    Raises:
        ContractError: If a field is not as described.
    """

    version: str
    source: PackageSource
    commit: str | None = None
    has_changes: bool | None = None

    def __attrs_post_init__(self) -> None:
        require_lines(version=self.version)
        require_member(PackageSource, source=self.source)
        require_lines_or_none(commit=self.commit)
        if self.has_changes is not None:
            require_kind("has_changes", self.has_changes, bool)


@attrs.frozen(kw_only=True)
class Accelerator:
    """
    A device that models can run on.

    Attributes:
        name: As its maker calls it.
        memory_bytes: Its memory.

    Raises:
        ContractError: If a field is not as described.
    """

    name: str
    memory_bytes: int | None = None

    def __attrs_post_init__(self) -> None:
        require_lines(name=self.name)
        require_count_or_none(memory_bytes=self.memory_bytes)


@attrs.frozen(kw_only=True)
class Host:
    """
    The machine that measured. Neither its name nor its user is in it.

    Attributes:
        system: Kernel and its version.
        machine: The architecture, as ``"x86_64"``.
        python: Implementation and version.
        processor: As its maker calls it.
        cores: How many this process may use.
        memory_bytes: Its memory.
        accelerators: Its devices for models; empty if there are none.

    Raises:
        ContractError: If a field is not as described.
    """

    system: str
    machine: str
    python: str
    processor: str | None = None
    cores: int | None = None
    memory_bytes: int | None = None
    accelerators: tuple[Accelerator, ...] | None = attrs.field(default=None, converter=as_tuple)

    def __attrs_post_init__(self) -> None:
        require_lines(system=self.system, machine=self.machine, python=self.python)
        require_lines_or_none(processor=self.processor)
        require_count_or_none(cores=self.cores, memory_bytes=self.memory_bytes)
        if self.accelerators is not None:
            require_all("accelerators", self.accelerators, Accelerator)


@attrs.frozen(kw_only=True)
class Identity:
    """
    What a run was made with.

    Attributes:
        package: The code that measured.
        packages: The versions of the packages that matter, by name.
        host: The machine that measured.
        targets: What was asked, each name once.
        unknown: Each place that is not known, as ``"targets[0].precision"``, and why. What is left
            away here "was not told".

    Raises:
        ContractError: If a field is not as described, or a reason is given for what is known.

    Example:
        >>> identity = Identity(
        ...     package=Package(version="0.1", source=PackageSource.RELEASE),
        ...     host=Host(system="Linux 6.1", machine="x86_64", python="CPython 3.11.2"),
        ...     targets=[Target(name="mine", checkpoint=Checkpoint(model="embedded"))],
        ...     unknown={"host.processor": "the system does not tell"},
        ... )
        >>> identity.unknown["host.processor"], identity.unknown["targets[0].precision"]
        ('the system does not tell', 'was not told')
    """

    package: Package
    packages: Mapping[str, str] = attrs.field(factory=dict, hash=False)
    host: Host
    targets: tuple[Target, ...] = attrs.field(converter=as_tuple)
    unknown: Mapping[str, str] = attrs.field(factory=dict, hash=False, repr=False)

    def __attrs_post_init__(self) -> None:
        require_kind("package", self.package, Package)
        require_kind("host", self.host, Host)
        require_all("targets", self.targets, Target)
        names = [target.name for target in self.targets]
        if not names or len({*names}) < len(names):
            raise ContractError("targets", f"got {names}, expected targets, each name once")
        for field in ("packages", "unknown"):
            said = frozen_object(getattr(self, field), field=field)
            for key, value in said.items():
                require_lines(**{f"{field} key": key, f"{field}[{key!r:.80}]": value})
            object.__setattr__(self, field, said)
        places = _unknown_in(self)
        known = sorted({*self.unknown} - {*places})
        if known:
            raise ContractError("unknown", f"got why {known[:3]} are not known, but they are")
        told = {place: self.unknown.get(place, "was not told") for place in places}
        object.__setattr__(self, "unknown", MappingProxyType(told))

    __reduce__ = through_constructor


def _unknown_in(value: Any, path: str = "") -> list[str]:
    found = []
    for field in attrs.fields(type(value)):
        each, place = getattr(value, field.name), f"{path}{field.name}"
        if each is None and not _may_be_absent(value, field.name):
            found.append(place)
        elif isinstance(each, tuple):
            for i, item in enumerate(each):
                found += _unknown_in(item, f"{place}[{i}].") if attrs.has(type(item)) else []
        elif attrs.has(type(each)):
            found += _unknown_in(each, f"{place}.")
    return found


def _may_be_absent(value: Any, field: str) -> bool:
    """Say whether ``None`` is no gap: what is not there need not be known."""
    match value:
        case Package():
            return value.source is PackageSource.RELEASE
        case Checkpoint():  # a folder has no revision, and its files say all
            return field == "revision" and value.files is not None
        case Target():
            return field == "server"
        case Server():
            return field == "metrics"
        case _:
            return False
