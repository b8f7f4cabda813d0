"""How contracts are pickled, copied and compared."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import attrs
import numpy as np
import numpy.typing as npt

from vlmcore.errors import ContractError

__all__ = ["as_array", "by_value", "rebuild", "thawed", "through_constructor"]


def through_constructor(contract: Any) -> tuple[Any, ...]:
    """
    Pickle and copy *contract* by its fields; for use as ``__reduce__``.

    What arrives in another process is built anew: it is checked, and its arrays cannot be written
    to, which NumPy's own pickling would forget.
    """
    fields = attrs.fields(type(contract))
    values = {field.name: thawed(getattr(contract, field.name)) for field in fields if field.init}
    return rebuild, (type(contract), values)


def rebuild(contract: type, fields: dict[str, Any]) -> Any:
    """Build a contract from its fields."""
    return contract(**fields)


def thawed(value: Any) -> Any:
    """Turn read-only mappings into plain dicts, and the tuples in them into lists."""
    if not isinstance(value, MappingProxyType):
        return value
    return {key: _plain(each) for key, each in value.items()}


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _plain(each) for key, each in value.items()}
    if isinstance(value, tuple):
        return [_plain(each) for each in value]
    return value


def as_array(values: npt.NDArray[Any], dtype: Any, *, copy: bool | None) -> npt.NDArray[Any]:
    """
    Answer NumPy's ``__array__`` with *values*, which are copied only if they have to be.

    Raises:
        ContractError: If they have to be, and must not.
    """
    if dtype is None or np.dtype(dtype) == values.dtype:
        return values.copy() if copy else values
    if copy is False:
        kind = np.dtype(dtype)
        raise ContractError("copy", f"got False for {kind}, expected None or True: it takes a copy")
    return values.astype(dtype)


def by_value(array: npt.NDArray[Any] | None) -> tuple[Any, ...] | None:
    """
    Stand for *array* where contracts are compared and hashed, as ``attrs.field(eq=by_value)``.

    Arrays are the same if their numbers are: NaN as NaN, and -0.0 as 0.0.
    """
    if array is None:
        return None
    if array.dtype.kind == "f":
        array = np.where(np.isnan(array), np.nan, array) + 0.0
    return array.shape, array.tobytes()
