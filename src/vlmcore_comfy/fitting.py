"""
What a node is given, held to what it declares.

ComfyUI looks at widgets only: what comes over a link is whatever the node before it made, so that a
number may be not a number, or out of its range, and a label one that is not there.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from vlmcore._arguments import shown
from vlmcore._spelling import did_you_mean
from vlmcore.errors import ContractError

if TYPE_CHECKING:
    from vlmcore_comfy.declaring import Input

__all__ = ["fitting"]


def fitting(declared: Sequence[Input], inputs: Mapping[str, Any]) -> dict[str, Any]:
    """
    Take what a node is given: its texts, numbers, switches and choices fit their declarations.

    Arrays and tensors of one number are that number. What comes through sockets of other types is
    given on as it is: the node looks at it.

    Raises:
        ContractError: If one does not fit; its field is the name of the input.
    """
    taken = dict(inputs)
    for each in declared:
        fit = _FITS.get(each.type)
        if fit is not None and each.name in taken:
            taken[each.name] = fit(each, _plain(taken[each.name]))
    return taken


def _plain(value: Any) -> Any:
    """Take the number out of an array or tensor that has no dimensions."""
    return value.item() if getattr(value, "shape", None) == () else value


def _text(declared: Input, value: Any) -> str:
    if not isinstance(value, str):
        raise ContractError(declared.name, f"got {type(value).__name__}, expected text")
    return value


def _switch(declared: Input, value: Any) -> bool:
    if not isinstance(value, bool):
        raise ContractError(declared.name, f"got {shown(value)}, expected true or false")
    return value


def _whole(declared: Input, value: Any) -> int:
    try:
        number = operator.index(value)
    except TypeError:
        number = None
    if number is None or isinstance(value, bool):
        raise ContractError(declared.name, f"got {shown(value)}, expected a whole number")
    _require_between(declared, number)
    return number


def _number(declared: Input, value: Any) -> float:
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        raise ContractError(declared.name, f"got {shown(value)}, expected a number")
    _require_between(declared, value)  # what is not a number lies between no two
    return float(value)


def _require_between(declared: Input, number: float) -> None:
    low = declared.options.get("min", -math.inf)
    high = declared.options.get("max", math.inf)
    if not low <= number <= high:
        raise ContractError(declared.name, f"got {shown(number)}, expected {low} to {high}")


def _choice(declared: Input, value: Any) -> Any:
    options = declared.options["options"]
    if declared.is_open:
        return _text(declared, value)
    if isinstance(value, (str, int)) and not isinstance(value, bool) and value in options:
        return value
    labels = {str(option).lower(): str(option) for option in options}
    hint = did_you_mean(value, labels) if isinstance(value, str) else ""
    expected = ", ".join(labels.values())
    raise ContractError(declared.name, f"got {shown(value)}, expected one of {expected}{hint}")


_FITS = {"STRING": _text, "BOOLEAN": _switch, "INT": _whole, "FLOAT": _number, "COMBO": _choice}
