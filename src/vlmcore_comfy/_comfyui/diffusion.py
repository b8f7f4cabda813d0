"""Weights as a diffusion model of ComfyUI, which finds out of their names and shapes what it is."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

import comfy.sd
import torch

from vlmcore.errors import ContractError
from vlmcore_comfy.hosting import DIFFUSION_DTYPES, DiffusionWeights

__all__ = ["diffusion_model"]

_OPTIONS: dict[str, dict[str, Any]] = {
    "default": {},
    "fp8_e4m3fn": {"dtype": torch.float8_e4m3fn},
    "fp8_e4m3fn_fast": {"dtype": torch.float8_e4m3fn, "fp8_optimizations": True},
    "fp8_e5m2": {"dtype": torch.float8_e5m2},
}
if _OPTIONS.keys() != set(DIFFUSION_DTYPES):
    raise AssertionError("each way to keep weights needs its options")


def diffusion_model(
    read: Callable[[], DiffusionWeights], *, name: str, kept_as: str, **more: Any
) -> Any:
    """
    Make a model, as `vlmcore_comfy.hosting.Host.diffusion_model` says.

    *more* is for ComfyUI itself, which calls this again where it wants a second copy.
    """
    weights = read()
    make = comfy.sd.load_diffusion_model_state_dict
    taken = inspect.signature(make).parameters  # older ones know of no metadata
    if "metadata" in taken:
        more["metadata"] = weights.metadata or None
    model = make(weights.tensors, model_options=dict(_OPTIONS[kept_as]), **more)
    if model is None:
        raise ContractError(
            name, "is no diffusion model that this ComfyUI knows, by the names of its tensors"
        )
    again = functools.partial(diffusion_model, read, name=name, kept_as=kept_as)
    model.cached_patcher_init = (again, ())
    return model
