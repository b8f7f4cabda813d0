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

    Example:
        >>> DType("bfloat16").itemsize, DType.BFLOAT16.safetensors
        (2, 'BF16')
        >>> DType.of_safetensors("F8_E4M3")
        <DType.FLOAT8_E4M3FN: 'float8_e4m3fn'>
    """

    BOOL = "bool"
    UINT8 = "uint8"
    INT8 = "int8"
    UINT16 = "uint16"
    INT16 = "int16"
    UINT32 = "uint32"
    INT32 = "int32"
    UINT64 = "uint64"
    INT64 = "int64"
    FLOAT8_E4M3FN = "float8_e4m3fn"
    FLOAT8_E4M3FNUZ = "float8_e4m3fnuz"
    FLOAT8_E5M2 = "float8_e5m2"
    FLOAT8_E5M2FNUZ = "float8_e5m2fnuz"
    FLOAT8_E8M0FNU = "float8_e8m0fnu"
    FLOAT16 = "float16"
    BFLOAT16 = "bfloat16"
    FLOAT32 = "float32"
    FLOAT64 = "float64"
    COMPLEX32 = "complex32"
    COMPLEX64 = "complex64"
    COMPLEX128 = "complex128"

    @property
    def itemsize(self) -> int:
        """Bytes of one number."""
        return self.storage.itemsize

    @property
    def safetensors(self) -> str | None:
        """How safetensors spells it; ``None`` where it has no word for it."""
        return _SAFETENSORS.get(self)

    @property
    def storage(self) -> np.dtype[Any]:
        """
        A type of NumPy alone that holds the same bytes.

        It is the type itself where NumPy has it, and ``uint8``, ``uint16`` or ``uint32`` for
        float8, bfloat16 and complex32. Numbers are little-endian, as in every format here.
        """
        return _STORAGE[self]

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

    @property
    def is_native(self) -> bool:
        """Whether NumPy has it without help."""
        return self not in _AS_INTEGERS

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
        name = str(dtype) if not isinstance(dtype, type) else np.dtype(dtype).name
        try:
            return cls(name.removeprefix("torch."))
        except ValueError:
            raise ContractError("dtype", _unknown(name, _NAMES)) from None

    @classmethod
    def of_safetensors(cls, spelling: str) -> DType:
        """
        Find the member that safetensors spells so.

        Raises:
            ContractError: If there is none; types of 4 and 6 bits are not read.
        """
        found = _OF_SAFETENSORS.get(spelling)
        if found is None:
            raise ContractError("dtype", _unknown(spelling, tuple(_OF_SAFETENSORS)))
        return found


def _unknown(spelling: str, known: tuple[str, ...]) -> str:
    return f"got {spelling!a:.40}, expected one of {', '.join(known)}"


_NAMES = tuple(member.value for member in DType)
_AS_INTEGERS = {
    DType.FLOAT8_E4M3FN: "uint8",
    DType.FLOAT8_E4M3FNUZ: "uint8",
    DType.FLOAT8_E5M2: "uint8",
    DType.FLOAT8_E5M2FNUZ: "uint8",
    DType.FLOAT8_E8M0FNU: "uint8",
    DType.BFLOAT16: "uint16",
    DType.COMPLEX32: "uint32",
}
_STORAGE: dict[DType, np.dtype[Any]] = {
    member: np.dtype(_AS_INTEGERS.get(member, member.value)).newbyteorder("<") for member in DType
}
_SAFETENSORS = {
    DType.BOOL: "BOOL",
    DType.UINT8: "U8",
    DType.INT8: "I8",
    DType.UINT16: "U16",
    DType.INT16: "I16",
    DType.UINT32: "U32",
    DType.INT32: "I32",
    DType.UINT64: "U64",
    DType.INT64: "I64",
    DType.FLOAT8_E4M3FN: "F8_E4M3",
    DType.FLOAT8_E4M3FNUZ: "F8_E4M3FNUZ",
    DType.FLOAT8_E5M2: "F8_E5M2",
    DType.FLOAT8_E5M2FNUZ: "F8_E5M2FNUZ",
    DType.FLOAT8_E8M0FNU: "F8_E8M0",
    DType.FLOAT16: "F16",
    DType.BFLOAT16: "BF16",
    DType.FLOAT32: "F32",
    DType.FLOAT64: "F64",
    DType.COMPLEX64: "C64",
}
_OF_SAFETENSORS = {spelling: member for member, spelling in _SAFETENSORS.items()}
