"""The bytes of arrays and tensors in C order, piece by piece, whatever their strides and device."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import attrs
import numpy as np
import numpy.typing as npt

from vlmcore.errors import ContractError
from vlmcore.weights.dtypes import DType
from vlmcore.weights.layouts import TensorSpec

__all__ = ["ArraySource", "source_of"]

_CHUNK = 0x40_0000  # bytes of a piece, about

Array: TypeAlias = npt.NDArray[Any]


@attrs.frozen(eq=False)
class ArraySource:
    """
    One tensor that is to be written.

    Attributes:
        spec: Its name, type and shape.
        fetch: Returns its numbers, from a device where it is on one.
    """

    spec: TensorSpec
    fetch: Callable[[], Array]

    def chunks(self) -> Iterator[memoryview]:
        """Give its bytes, little-endian and in C order."""
        return _chunks(self.fetch())


def source_of(name: str, value: Any) -> ArraySource:
    """
    Take an array or a tensor.

    Raises:
        ContractError: If it is neither, or of a dtype that cannot be written.
    """
    try:
        if isinstance(value, (np.ndarray, np.generic)) and not isinstance(value, np.ma.MaskedArray):
            array = np.asarray(value)
            return ArraySource(TensorSpec(name, DType.of(array.dtype), array.shape), lambda: array)
        if any(
            f"{base.__module__}.{base.__qualname__}" == "torch.Tensor"
            for base in type(value).__mro__
        ):
            from vlmcore.weights._torch.outgoing import fetcher, spec_of  # noqa: PLC0415 - a door

            return ArraySource(spec_of(name, value), fetcher(value))
    except ContractError as error:
        raise ContractError(f"{error.field} of {name!a:.90}", error.problem) from None
    raise ContractError(
        f"{name!a:.90}", f"got {type(value).__name__}, expected an array of NumPy or a torch tensor"
    )


def _chunks(array: Array) -> Iterator[memoryview]:
    if array.flags.c_contiguous and _is_little(array):
        flat = array.reshape(-1).view(np.uint8)
        for start in range(0, flat.size, _CHUNK):
            yield flat[start : start + _CHUNK].data
    elif array.nbytes <= _CHUNK or array.ndim == 0:
        little = array if _is_little(array) else array.astype(array.dtype.newbyteorder("<"))
        yield np.ascontiguousarray(little).reshape(-1).view(np.uint8).data
    else:
        rows = max(_CHUNK // array[0].nbytes, 1)
        for start in range(0, len(array), rows):
            yield from _chunks(array[start] if rows == 1 else array[start : start + rows])


def _is_little(array: Array) -> bool:
    order = array.dtype.byteorder
    return order in "<|" or (order == "=" and sys.byteorder == "little")
