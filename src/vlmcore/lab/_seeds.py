"""What a seed may be."""

from __future__ import annotations

from typing import Any

from vlmcore._arguments import shown
from vlmcore.errors import ContractError

__all__ = ["require_seed"]

_BITS = 63


def require_seed(field: str, value: Any) -> None:
    """
    Require a whole number from 0 to ``2**63 - 1``.

    Raises:
        ContractError: If it is none.
    """
    is_whole = isinstance(value, int) and not isinstance(value, bool)
    if not is_whole or not 0 <= value < 1 << _BITS:
        raise ContractError(
            field, f"got {shown(value)}, expected a whole number from 0 to 2**63 - 1"
        )
