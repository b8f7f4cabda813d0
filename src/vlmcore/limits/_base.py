"""What all bounds have in common."""

from __future__ import annotations

import attrs

from vlmcore.errors import ContractError, LimitExceededError

__all__ = ["MIB", "Bounds", "require_at_most"]

MIB = 1 << 20


def require_at_most(limit: str, actual: int, allowed: int) -> None:
    """
    Refuse a size over its limit.

    Raises:
        LimitExceededError: If *actual* is larger than *allowed*.
    """
    if actual > allowed:
        raise LimitExceededError(limit, actual, allowed)


@attrs.frozen(kw_only=True)
class Bounds:
    """A group of bounds: whole numbers of at least 1."""

    def __attrs_post_init__(self) -> None:
        for field in attrs.fields(type(self)):
            value = getattr(self, field.name)
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise ContractError(
                    field.name, f"got {value!r}, expected a whole number of at least 1"
                )
