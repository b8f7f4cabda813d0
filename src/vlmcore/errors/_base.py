"""The root of the tree."""

from __future__ import annotations

__all__ = [
    "VlmcoreError",
]


class VlmcoreError(Exception):
    """The base of every error that vlmcore raises on purpose."""
