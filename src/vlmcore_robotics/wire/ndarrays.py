"""
How arrays are spelled in MessagePack: three ways are in use, and one reader takes them all.

=============  =====================================================================  ==========
spelling       an array is a map of                                                   used by
=============  =====================================================================  ==========
OPENPI         ``__ndarray__``, ``data``, ``dtype``, ``shape``                        openpi
MSGPACK_NUMPY  ``nd``, ``type``, ``kind``, ``shape``, ``data``                        GR00T N1.7
NPY            ``__ndarray_class__``, ``as_npy``, a file as of ``numpy.save``         GR00T N1.5
=============  =====================================================================  ==========

Keys are text or bytes. What an array is is decided by its type alone, before NumPy sees it: bool,
whole numbers and floats of up to 8 bytes. Objects, structures, text, times and complex numbers are
refused in both directions; nothing is ever unpickled.
"""

from __future__ import annotations

import enum
import math
import re
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from vlmcore.errors import ContractError
from vlmcore.limits import WireLimits, require_at_most
from vlmcore_robotics.wire._blobs import Blob, Part, Parts
from vlmcore_robotics.wire._npy import npy_header, npy_layout

__all__ = [
    "ArraySpelling",
    "pixels_of",
    "plain_array",
    "read_spelled",
    "spelled_array",
    "spelled_number",
]

_DTYPE = re.compile(r"\|[biu]1|[<>](?:[iu][248]|f[248])")
_EXPECTED = "expected bool, whole numbers or floats of up to 8 bytes, as '<f4'"
_LARGEST_SIDE = 0x7FFFFFFF
_OF_KIND: Mapping[str, tuple[type, ...]] = {
    "b": (bool,),
    "i": (int,),
    "u": (int,),
    "f": (int, float),
}

_Fail = Callable[[str], ContractError]


class ArraySpelling(enum.Enum):
    """How arrays are written; by the key that marks one."""

    OPENPI = "__ndarray__"
    MSGPACK_NUMPY = "nd"
    NPY = "__ndarray_class__"


def plain_array(value: npt.NDArray[Any], limits: WireLimits) -> npt.NDArray[Any]:
    """
    Lay out an array as it is sent: little-endian, the last axis the fastest.

    Raises:
        ContractError: If its type is not one that is sent.
        LimitExceededError: If it has too many axes.
    """
    if isinstance(value, np.ma.MaskedArray):
        raise ContractError("array", "got a masked array, expected a plain one: masks are not sent")
    dtype = _sent_type(value)
    require_at_most("max_rank", value.ndim, limits.max_rank)
    array = np.ascontiguousarray(value, dtype)
    return array.reshape(value.shape)  # contiguous ones have an axis at least


def pixels_of(array: npt.NDArray[Any]) -> memoryview | bytes:
    """View the bytes of a `plain_array`."""
    return array.reshape(-1).view(np.uint8).data if array.size else b""


def spelled_array(dtype: str, shape: tuple[int, ...], data: Part, spelling: ArraySpelling) -> Any:
    """Spell an array of *data*, which are as many bytes as its type and shape say."""
    match spelling:
        case ArraySpelling.OPENPI:
            return {
                b"__ndarray__": True,
                b"data": Parts((data,)),
                b"dtype": dtype,
                b"shape": shape,
            }
        case ArraySpelling.MSGPACK_NUMPY:
            return {
                b"nd": True,
                b"type": dtype,
                b"kind": b"",
                b"shape": shape,
                b"data": Parts((data,)),
            }
        case ArraySpelling.NPY:
            file = Parts((npy_header(dtype, shape), data))
            return {"__ndarray_class__": True, "as_npy": file}


def spelled_number(value: np.generic, spelling: ArraySpelling) -> Any:
    """
    Spell a number of NumPy.

    Raises:
        ContractError: If its type is not one that is sent.
    """
    dtype = _sent_type(value)
    match spelling:
        case ArraySpelling.OPENPI:
            return {b"__npgeneric__": True, b"data": value.item(), b"dtype": dtype.str}
        case ArraySpelling.MSGPACK_NUMPY:
            data = np.asarray(value, dtype).tobytes()
            return {b"nd": False, b"type": dtype.str, b"data": data}
        case ArraySpelling.NPY:  # it has no spelling for numbers
            return value.item()


def _sent_type(value: npt.NDArray[Any] | np.generic) -> np.dtype[Any]:
    dtype: np.dtype[Any] = value.dtype.newbyteorder("<")
    if not _DTYPE.fullmatch(dtype.str):
        raise ContractError("array", f"got {value.dtype}, {_EXPECTED}")
    return dtype


def read_spelled(found: Mapping[str, Any], limits: WireLimits, fail: _Fail) -> Any:
    """
    Read a map that spells an array or a number, in whichever way.

    Args:
        found: The map, with text as keys and a ``Blob`` for bytes.
        limits: How many axes and how many bytes it may have.
        fail: Makes the error, given the problem.

    Returns:
        The array, which cannot be written to, or the number; ``None`` if *found* is a plain map.

    Raises:
        ContractError: If it is marked as an array and is not one that is taken.
        LimitExceededError: If there is more of something than *limits* allow.
    """
    if "__ndarray__" in found:
        _require_keys(found, {"__ndarray__", "data", "dtype", "shape"}, fail)
        return _array(found["data"], found["dtype"], found["shape"], limits, fail)
    if "__npgeneric__" in found:
        _require_keys(found, {"__npgeneric__", "data", "dtype"}, fail)
        return _number(found["data"], found["dtype"], fail)
    if "__ndarray_class__" in found:
        _require_keys(found, {"__ndarray_class__", "as_npy"}, fail)
        return _file(found["as_npy"], limits, fail)
    if isinstance(found.get("nd"), bool) and "type" in found and "data" in found:
        return _of_msgpack_numpy(found, limits, fail)
    if found.keys() == {"complex", "data"}:
        raise fail("got a complex number, expected none: no robot has a use for it")
    return None


def _of_msgpack_numpy(found: Mapping[str, Any], limits: WireLimits, fail: _Fail) -> Any:
    if found["nd"]:
        keys = {"nd", "type", "shape", "data"}
        _require_keys(found, keys | ({"kind"} & found.keys()), fail)
        return _array(found["data"], found["type"], found["shape"], limits, fail)
    _require_keys(found, {"nd", "type", "data"} | ({"kind"} & found.keys()), fail)
    return _array(found["data"], found["type"], [], limits, fail)[()]


def _require_keys(found: Mapping[str, Any], keys: set[str], fail: _Fail) -> None:
    if found.keys() != keys:
        raise fail(
            f"got an array of the keys {', '.join(sorted(found)):.200}, "
            f"expected {', '.join(sorted(keys))}"
        )


def _array(
    data: Any, dtype: Any, shape: Any, limits: WireLimits, fail: _Fail, *, fortran: bool = False
) -> npt.NDArray[Any]:
    """Make an array of bytes that are as many as its type and shape say, to the byte."""
    kind = _dtype(dtype, fail)
    if not isinstance(data, Blob):
        raise fail(f"got {type(data).__name__} as the data of an array, expected bytes")
    if not isinstance(shape, (list, tuple)):
        raise fail(f"got {type(shape).__name__} as a shape, expected whole numbers")
    require_at_most("max_rank", len(shape), limits.max_rank)
    for side in shape:
        if type(side) is not int or not 0 <= side <= _LARGEST_SIDE:
            raise fail(f"got the shape {shape!r:.80}, expected whole numbers from 0 to 2**31 - 1")
    # Without the sides of 0: NumPy cannot count the others if their product is too large.
    spread = math.prod(side for side in shape if side) * kind.itemsize
    require_at_most("max_binary_bytes", spread, limits.max_binary_bytes)
    size = math.prod(shape) * kind.itemsize
    if data.size != size:
        raise fail(f"got {data.size} bytes for {kind.str} of shape {list(shape)}, expected {size}")
    if kind.itemsize == 1:
        flat = np.frombuffer(data.frame, kind, data.size, data.start) if size else np.empty(0, kind)
    else:  # aligned, and in the byte order of this machine
        flat = np.frombuffer(bytes(data), kind).astype(kind.newbyteorder("="))
    if kind.kind == "b" and size and flat.view(np.uint8).max() > 1:
        raise fail("got bytes other than 0 and 1 as bool, expected 0 and 1")
    array = flat.reshape(shape[::-1]).T if fortran else flat.reshape(shape)
    array.flags.writeable = False
    return array


def _dtype(text: Any, fail: _Fail) -> np.dtype[Any]:
    if isinstance(text, Blob) and text.size <= 8:
        text = bytes(text).decode("latin-1")
    if not isinstance(text, str) or not _DTYPE.fullmatch(text):
        shown = "bytes" if isinstance(text, Blob) else f"{text!r:.40}"
        raise fail(f"got an array of type {shown}, {_EXPECTED}")
    return np.dtype(text)


def _number(value: Any, dtype: Any, fail: _Fail) -> np.generic:
    """Make a number of NumPy of a plain one, which must be one of its kind."""
    kind = _dtype(dtype, fail)
    is_of_kind = isinstance(value, _OF_KIND[kind.kind])
    if is_of_kind and (kind.kind == "b" or not isinstance(value, bool)):
        try:
            with np.errstate(over="ignore"):  # a float that is too large is infinite
                number: np.generic = kind.type(value)
        except OverflowError:
            pass
        else:
            return number
    raise fail(f"got {value!r:.40} as a number of type {kind.str}, expected one that it can hold")


def _file(file: Any, limits: WireLimits, fail: _Fail) -> npt.NDArray[Any]:
    layout = npy_layout(file, limits) if isinstance(file, Blob) else None
    if layout is None:
        raise fail("got an array that is no file of NumPy, expected one as of numpy.save")
    dtype, shape, fortran, data = layout
    return _array(data, dtype, shape, limits, fail, fortran=fortran)
