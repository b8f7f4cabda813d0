"""The one module here that imports torch for itself: arrays become tensors, and back."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch

from vlmcore._arrays import Float64Array, UInt8Array
from vlmcore.errors import ContractError

__all__ = [
    "array_from",
    "frame_tensor",
    "inferring",
    "release",
    "require_device",
    "side_by_side",
    "state_tensor",
    "unseeded",
]


def frame_tensor(frame: UInt8Array) -> torch.Tensor:
    """
    Turn a frame, uint8 ``[H, W, 3]``, into float32 ``[1, 3, H, W]`` from 0 to 1.

    It is scaled on the CPU, where a number divided by 255 is rounded once: accelerators multiply
    by a rounded 1/255.
    """
    channels = np.array(frame.transpose(2, 0, 1), order="C")  # a copy that torch may write to
    return torch.from_numpy(channels).to(torch.float32).div_(255)[None]


def state_tensor(state: Float64Array) -> torch.Tensor:
    """
    Turn a state, ``[S]``, into float32 ``[1, S]``.

    Raises:
        ContractError: If float32 cannot hold a number of it.
    """
    with np.errstate(over="ignore"):
        values = state.astype(np.float32)
    if not np.isfinite(values).all():
        raise ContractError("state", "got a number beyond 3.4e38, which float32 cannot hold")
    return torch.from_numpy(values)[None]


def array_from(tensor: Any) -> Float64Array:
    """Copy a tensor of any kind of float to the CPU, as float64; NaN stays NaN."""
    array: Float64Array = tensor.detach().to("cpu", torch.float64).numpy()
    return array


def side_by_side(frames: list[torch.Tensor]) -> torch.Tensor:
    """Stack the frames of several cameras, each ``[..., 3, H, W]``, as ``[..., N, 3, H, W]``."""
    return torch.stack(frames, dim=-4)


@contextmanager
def inferring(device: str, *, mixed: bool) -> Iterator[None]:
    """Record no gradients during the block; in mixed precision if asked to, on CUDA devices."""
    kind = torch.device(device).type
    with torch.autocast(kind, enabled=mixed and kind == "cuda"), torch.inference_mode():
        yield


@contextmanager
def unseeded(device: str) -> Iterator[None]:
    """Let random numbers go on after the block as if it had not been."""
    devices = [device] if torch.device(device).type == "cuda" else []
    with torch.random.fork_rng(devices):
        yield


def require_device(device: str) -> str:
    """
    Require a device on which tensors can be made.

    Raises:
        ContractError: If there is none of that name here.
    """
    try:
        torch.empty(0, device=device)
    except Exception as error:
        raise ContractError(
            "device", f"got {device!r:.80}, expected a device of torch that is here, as 'cpu'"
        ) from error
    return device


def release() -> None:
    """Give memory that nothing holds any more back to the accelerator."""
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
