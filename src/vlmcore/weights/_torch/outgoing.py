"""Tensors of torch on their way to a file."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from vlmcore.errors import ContractError
from vlmcore.weights.dtypes import DType
from vlmcore.weights.layouts import TensorSpec

__all__ = ["fetcher", "spec_of"]

_INTEGERS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


def spec_of(name: str, tensor: torch.Tensor) -> TensorSpec:
    """
    Say what would be written of *tensor*.

    Raises:
        ContractError: If it has no numbers, or of a kind that cannot be written.
    """
    if tensor.is_meta:
        raise ContractError("device", "got meta, expected a device that holds numbers")
    if tensor.layout is not torch.strided or tensor.is_quantized or tensor.is_nested:
        kind = "quantized, " if tensor.is_quantized else "nested, " if tensor.is_nested else ""
        raise ContractError("layout", f"got {kind}{tensor.layout}, expected a plain tensor")
    return TensorSpec(name, DType.of(tensor.dtype), tuple(tensor.shape))


def fetcher(tensor: torch.Tensor) -> Callable[[], npt.NDArray[Any]]:
    """Return what brings the numbers of *tensor* to the CPU, as whole numbers of their size."""

    def fetch() -> npt.NDArray[Any]:
        plain = tensor.detach().resolve_conj().resolve_neg().cpu()
        if plain.dtype in (torch.complex64, torch.complex128):
            whole: npt.NDArray[Any] = plain.numpy()
            return whole
        found: npt.NDArray[Any] = plain.view(_INTEGERS[plain.element_size()]).numpy()
        return found.view(np.dtype(f"<u{plain.element_size()}"))

    return fetch
