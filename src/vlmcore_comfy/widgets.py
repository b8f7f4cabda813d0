"""What people write into the text widgets of nodes, read: JSON, and nothing where it is blank."""

from __future__ import annotations

from typing import Any

from vlmcore.contracts.json_text import read_json
from vlmcore.errors import ContractError, LimitExceededError

__all__ = ["names_in", "numbers_in", "value_in"]


def value_in(name: str, text: str) -> Any:
    """
    Read the JSON of a widget; ``None`` where it is blank.

    Raises:
        ContractError: If it is no JSON; its field is *name*.
        LimitExceededError: If it is too large.
    """
    if not isinstance(text, str):
        raise ContractError(name, f"got {type(text).__name__}, expected text")
    if not text.strip():
        return None
    try:
        return read_json(text)
    except LimitExceededError:
        raise
    except ContractError as error:
        raise ContractError(name, f"is no JSON: {error.problem}") from None


def names_in(name: str, text: str) -> list[str] | None:
    """
    Read a list of names; ``None`` where it is blank.

    Raises:
        ContractError: If it is none.
        LimitExceededError: If it is too large.
    """
    value = value_in(name, text)
    if value is None:
        return None
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        raise ContractError(name, 'expected a JSON list of names, as ["x", "y", "gripper"]')
    return value


def numbers_in(name: str, text: str) -> list[float] | None:
    """
    Read a list of numbers; ``None`` where it is blank.

    Raises:
        ContractError: If it is none.
        LimitExceededError: If it is too large.
    """
    value = value_in(name, text)
    if value is None:
        return None
    if not isinstance(value, list) or not all(
        isinstance(each, (int, float)) and not isinstance(each, bool) for each in value
    ):
        raise ContractError(name, "expected a JSON list of numbers, as [0, 0.5, -1]")
    return value
