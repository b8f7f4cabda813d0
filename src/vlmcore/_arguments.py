"""Arguments that are a switch, or an object of one class."""

from __future__ import annotations

from typing import Any

from vlmcore.errors import ContractError

__all__ = ["require_kind", "require_switch"]


def require_kind(field: str, value: Any, kind: type) -> None:
    """
    Require an argument of one class. What came is not shown: it may be a token.

    Raises:
        ContractError: If it is of another.
    """
    if not isinstance(value, kind):
        raise ContractError(field, f"got {type(value).__name__}, expected {kind.__name__}")


def require_switch(**switches: bool) -> None:
    """
    Require True or False: ``"no"`` is true, too, and must not open what was to stay shut.

    Raises:
        ContractError: If a value is neither.
    """
    for field, value in switches.items():
        if not isinstance(value, bool):
            raise ContractError(field, f"got {value!r:.80}, expected True or False")
