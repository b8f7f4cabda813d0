"""What a load did, how long it took, and how fast that was."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import attrs

__all__ = ["LoadReport", "Way"]


class Way(enum.Enum):
    """
    How tensors are had.

    ``VIEWS`` maps the files: tensors are pages of the page cache until they are written to, and
    what is written stays in this process. ``COPY`` reads them into memory of their own.
    """

    VIEWS = "views"
    COPY = "copy"


def _frozen(phases_s: Mapping[str, float]) -> Mapping[str, float]:
    return MappingProxyType(dict(phases_s))


@attrs.frozen(kw_only=True)
class LoadReport:
    """
    What a load did.

    Attributes:
        path: The file or the folder, as the caller named it.
        way: How the tensors are had, which may be another than asked for; `steps_down` says why.
        tensors: How many.
        payload_bytes: Their bytes.
        direct_bytes: Bytes read past the page cache.
        plain_bytes: Bytes read through it.
        mapped_bytes: Bytes that were mapped.
        staging_bytes: The most memory that was taken for bytes on their way.
        verified_bytes: Bytes that were compared with the manifest.
        phases_s: How long each phase took, in seconds, by name and in order.
        steps_down: What was asked for and could not be had, one sentence each.
    """

    path: str
    way: Way
    tensors: int
    payload_bytes: int
    direct_bytes: int = 0
    plain_bytes: int = 0
    mapped_bytes: int = 0
    staging_bytes: int = 0
    verified_bytes: int = 0
    phases_s: Mapping[str, float] = attrs.field(factory=dict, converter=_frozen)
    steps_down: tuple[str, ...] = ()

    @property
    def total_s(self) -> float:
        """How long all of it took, in seconds."""
        return sum(self.phases_s.values())

    @property
    def gb_per_s(self) -> float:
        """The payload over the time, in 10**9 bytes a second."""
        return self.payload_bytes / max(self.total_s, 1e-9) / 1e9

    def to_dict(self) -> dict[str, Any]:
        """Write it as a JSON object; `total_s` and `gb_per_s` are in it."""
        fields = {field.name: getattr(self, field.name) for field in attrs.fields(type(self))}
        return {
            **fields,
            "way": self.way.value,
            "phases_s": dict(self.phases_s),
            "steps_down": list(self.steps_down),
            "total_s": self.total_s,
            "gb_per_s": self.gb_per_s,
        }
