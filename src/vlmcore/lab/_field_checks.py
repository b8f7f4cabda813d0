"""Checks that the contracts of evidence share."""

from __future__ import annotations

import re
from typing import Any

from vlmcore._arguments import require_kind, shown
from vlmcore._arrays import require_count, require_name
from vlmcore.errors import ContractError
from vlmcore.limits import ArtifactLimits

__all__ = [
    "require_all",
    "require_count_or_none",
    "require_lines",
    "require_lines_or_none",
    "require_sha256",
]

_LIMITS = ArtifactLimits()
_SHA256 = re.compile(r"[0-9a-f]{64}")


def require_sha256(**digests: str) -> None:
    """
    Require digests as ``sha256sum`` writes them.

    Raises:
        ContractError: If one is not 64 small hexadecimals.
    """
    for field, digest in digests.items():
        if not isinstance(digest, str) or not _SHA256.fullmatch(digest):
            raise ContractError(field, f"got {shown(digest)}, expected 64 hexadecimals")


def require_lines(**names: str) -> None:
    """Require texts of one line that are not blank."""
    for field, name in names.items():
        require_name(field, name, max_characters=_LIMITS.max_name_characters)


def require_lines_or_none(**names: str | None) -> None:
    """Require the same of what is there."""
    require_lines(**{field: name for field, name in names.items() if name is not None})


def require_count_or_none(**counts: int | None) -> None:
    """Require whole numbers of at least 1, of what is there."""
    require_count(**{field: count for field, count in counts.items() if count is not None})


def require_all(field: str, values: Any, kind: type) -> None:
    """Require a tuple of one class."""
    require_kind(field, values, tuple)
    for i, value in enumerate(values):
        require_kind(f"{field}[{i}]", value, kind)
