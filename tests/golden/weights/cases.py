"""Small tensors of every type and shape that files of weights have; the same bytes every time."""

from __future__ import annotations

from typing import Any

import numpy as np

from vlmcore.weights.dtypes import DType

# What both upstream writers can write. FlashPack also knows complex128; safetensors does not.
BOTH = tuple(dtype for dtype in DType if dtype.safetensors is not None)
SHAPES: dict[str, tuple[int, ...]] = {
    "matrix": (3, 5),
    "scalar": (),
    "nothing": (0, 4),
    "one": (1,),
    "deep": (2, 1, 2, 1, 3),
}


def numbers(dtype: DType, shape: tuple[int, ...], seed: int) -> Any:
    """Make an array of *dtype* whose bytes are anything, NaN and infinity among them."""
    random = np.random.default_rng(seed)
    if dtype is DType.BOOL:
        return random.integers(0, 2, shape).astype(bool)
    raw = random.integers(0, 256, (*shape, dtype.itemsize), np.uint8)
    return raw.view(dtype.storage).reshape(shape).view(dtype.numpy)


def one_dtype() -> dict[str, Any]:
    """Make what becomes a pack of version 3."""
    return {
        f"layers.{i}.{name}": numbers(DType.BFLOAT16, shape, i)
        for i, (name, shape) in enumerate(SHAPES.items())
    }


def all_dtypes(dtypes: tuple[DType, ...] = BOTH) -> dict[str, Any]:
    """Make what becomes a pack of version 4, and a file of safetensors; names are no ASCII."""
    return {
        f"{dtype.value}.{name}.gewicht-ä": numbers(dtype, shape, 10 * i + j)
        for i, dtype in enumerate(dtypes)
        for j, (name, shape) in enumerate(SHAPES.items())
    }
