"""Arrays as ``numpy.save`` writes them."""

from __future__ import annotations

import io
import math
import warnings
from typing import Any

import numpy as np
import numpy.typing as npt

from vlmcore.errors import ContractError

__all__ = ["is_npy", "read_npy"]

_HEADERS = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}


def is_npy(data: bytes) -> bool:
    """Say whether *data* begins as such a file does, whatever it is called."""
    return data.startswith(np.lib.format.MAGIC_PREFIX)


def read_npy(data: bytes) -> npt.NDArray[Any]:
    """
    Read one array of numbers; what its header promises is checked before memory is spent on it.

    Raises:
        ContractError: If it is anything else.
    """
    stream = io.BytesIO(data)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about headers of Python 2
            shape, _, dtype = _HEADERS[np.lib.format.read_magic(stream)](stream)
    except Exception as error:
        # The header is an expression of Python: a hostile one makes its reader raise anything.
        raise ContractError("array", "got a header that cannot be read") from error
    if dtype.kind not in "fiu":
        raise ContractError("array", f"got values of {dtype}, expected numbers")
    needed, there = math.prod(shape) * dtype.itemsize, len(data) - stream.tell()
    if min(shape, default=0) < 0 or needed != there:
        raise ContractError("array", f"got {there:,} bytes of values for shape {shape}, {dtype}")
    array: npt.NDArray[Any] = np.load(io.BytesIO(data), allow_pickle=False)
    return array
