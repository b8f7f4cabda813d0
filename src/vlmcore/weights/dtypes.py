"""What one number of a tensor is, and how each format spells it."""

from __future__ import annotations

import enum
from typing import Any

import numpy as np

from vlmcore.errors import ContractError

__all__ = ["DType"]


class DType(enum.Enum):
    """
    The type of the numbers of a tensor; the value is the name that torch and FlashPack give it.

    Attributes:
        safetensors: How safetensors spells it; ``None`` where it has no word for it.
        storage: A type of NumPy alone that holds the same bytes: the type itself where NumPy has
            it, and ``uint8``, ``uint16`` or ``uint32`` for float8, bfloat16 and complex32. Numbers
            are little-endian, as in every format here.
        itemsize: Bytes of one number.

    Example:
        >>> DType("bfloat16").itemsize, DType.BFLOAT16.safetensors
        (2, 'BF16')
        >>> DType.of_safetensors("F8_E4M3")
        <DType.FLOAT8_E4M3FN: 'float8_e4m3fn'>
    """

    safetensors: str | None
    storage: np.dtype[Any]
    itemsize: int

    BOOL = "bool", "BOOL"
    UINT8 = "uint8", "U8"
    INT8 = "int8", "I8"
    UINT16 = "uint16", "U16"
    INT16 = "int16", "I16"
    UINT32 = "uint32", "U32"
    INT32 = "int32", "I32"
    UINT64 = "uint64", "U64"
    INT64 = "int64", "I64"
    FLOAT8_E4M3FN = "float8_e4m3fn", "F8_E4M3", "uint8"
    FLOAT8_E4M3FNUZ = "float8_e4m3fnuz", "F8_E4M3FNUZ", "uint8"
    FLOAT8_E5M2 = "float8_e5m2", "F8_E5M2", "uint8"
    FLOAT8_E5M2FNUZ = "float8_e5m2fnuz", "F8_E5M2FNUZ", "uint8"
    FLOAT8_E8M0FNU = "float8_e8m0fnu", "F8_E8M0", "uint8"
    FLOAT16 = "float16", "F16"
    BFLOAT16 = "bfloat16", "BF16", "uint16"
    FLOAT32 = "float32", "F32"
    FLOAT64 = "float64", "F64"
    COMPLEX32 = "complex32", None, "uint32"
    COMPLEX64 = "complex64", "C64"
    COMPLEX128 = "complex128"

    def __new__(cls, name: str, safetensors: str | None = None, storage: str = "") -> DType:
        """Make a member of its name; *storage* where NumPy has no such type."""
        member = object.__new__(cls)
        member._value_ = name
        member.safetensors = safetensors
        member.storage = np.dtype(storage or name).newbyteorder("<")
        member.itemsize = member.storage.itemsize
        return member

    @property
    def is_native(self) -> bool:
        """Whether NumPy has it without help."""
        return bool(self.storage.name == self.value)

    @property
    def numpy(self) -> np.dtype[Any]:
        """
        The type as arrays have it; that of ``ml_dtypes`` for bfloat16 and float8.

        Raises:
            MissingDependencyError: If ``ml_dtypes`` is needed and is not installed.
            ContractError: If there is no such type: complex32.
        """
        if self.is_native:
            return self.storage
        if self is DType.COMPLEX32:
            raise ContractError("dtype", "got complex32, expected a dtype that NumPy has")
        from vlmcore.weights._ml_dtypes import scalar_type  # noqa: PLC0415 - a door

        dtype: np.dtype[Any] = np.dtype(scalar_type(self.value))
        return dtype

    @classmethod
    def of(cls, dtype: Any) -> DType:
        """
        Find the member that a name, a type of NumPy, of ``ml_dtypes`` or of torch stands for.

        Raises:
            ContractError: If there is none.

        Example:
            >>> DType.of(np.float32), DType.of("torch.bfloat16")
            (<DType.FLOAT32: 'float32'>, <DType.BFLOAT16: 'bfloat16'>)
        """
        if isinstance(dtype, cls):
            return dtype
        if isinstance(dtype, (type, np.dtype)):
            name = np.dtype(dtype).name
        else:
            name = str(dtype).removeprefix("torch.")
        try:
            return cls(name)
        except ValueError:
            raise ContractError("dtype", _unknown(name, [each.value for each in cls])) from None

    @classmethod
    def of_safetensors(cls, spelling: str) -> DType:
        """
        Find the member that safetensors spells so.

        Raises:
            ContractError: If there is none; types of 4 and 6 bits are not read.
        """
        found = _OF_SAFETENSORS.get(spelling) if isinstance(spelling, str) else None
        if found is None:
            raise ContractError("dtype", _unknown(spelling, list(_OF_SAFETENSORS)))
        return found


def _unknown(spelling: str, known: list[str]) -> str:
    return f"got {spelling!a:.40}, expected one of {', '.join(known)}"


_OF_SAFETENSORS = {each.safetensors: each for each in DType if each.safetensors is not None}
