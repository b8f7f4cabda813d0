"""Bytes become tensors of torch."""

from __future__ import annotations

from collections.abc import Collection

import torch

from vlmcore.errors import ContractError
from vlmcore.weights.dtypes import DType
from vlmcore.weights.index import TensorEntry, WeightIndex

__all__ = ["float_dtype", "tensor_over", "torch_dtype", "wanted_dtypes"]


def torch_dtype(dtype: DType) -> torch.dtype:
    """
    Find what torch calls *dtype*.

    Raises:
        ContractError: If this version of torch does not have it.
    """
    found = getattr(torch, dtype.value, None)
    if not isinstance(found, torch.dtype):
        version = torch.__version__
        raise ContractError("dtype", f"got {dtype.value}, which torch {version} does not have")
    return found


def tensor_over(raw: torch.Tensor, entry: TensorEntry) -> torch.Tensor:
    """
    Read *raw* as the tensor of *entry*; the result shares its memory where it can.

    Args:
        raw: The bytes of the tensor, uint8 ``[entry.nbytes]``.
        entry: Its dtype and shape.

    Returns:
        A tensor of the shape of *entry*; a copy where *raw* does not start at a multiple of the
        size of its numbers.
    """
    dtype = torch_dtype(entry.dtype)
    if raw.data_ptr() % dtype.itemsize or raw.storage_offset() % dtype.itemsize:
        raw = raw.clone()
    return raw.view(dtype).reshape(entry.shape)


def wanted_dtypes(
    index: WeightIndex, names: Collection[str], dtype: torch.dtype | str | None
) -> dict[str, torch.dtype]:
    """
    Say for each tensor that is wanted in which dtype it is.

    Args:
        index: What the files hold.
        names: Which are wanted; aliases stand for what they name.
        dtype: What floating-point numbers are converted to; ``None`` leaves them as they are.

    Raises:
        ContractError: If a name is not in the files, or *dtype* is no floating-point dtype.
    """
    target = None if dtype is None else float_dtype(dtype)
    if isinstance(names, str):
        raise ContractError("names", "got one text, expected several names")
    wanted = {}
    for name in names:
        entry = index.get(index.aliases.get(name, name))
        if entry is None:
            raise ContractError("names", f"got {name!a:.90}, which the files do not have")
        stored = torch_dtype(entry.dtype)
        wanted[entry.name] = (target or stored) if stored.is_floating_point else stored
    return wanted


def float_dtype(dtype: torch.dtype | str) -> torch.dtype:
    """
    Take a floating-point dtype, or its name.

    Raises:
        ContractError: If it is none.
    """
    found = getattr(torch, dtype, None) if isinstance(dtype, str) else dtype
    if not isinstance(found, torch.dtype) or not found.is_floating_point:
        raise ContractError("dtype", f"got {dtype!r:.80}, expected a floating-point dtype of torch")
    return found
