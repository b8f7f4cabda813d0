"""The door of ml_dtypes: types of numbers that NumPy has not."""

from __future__ import annotations

from typing import Any

from vlmcore._optional import optional_dependency

with optional_dependency("weights", "ml_dtypes"):
    import ml_dtypes

__all__ = ["scalar_type"]


def scalar_type(name: str) -> Any:
    """Return the type of numbers that is called *name*, as ``"bfloat16"``."""
    return getattr(ml_dtypes, name)
