"""The door to torch, which ComfyUI brings: arrays as the tensors that its sockets carry."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import torch

from vlmcore._arrays import BoolArray, UInt8Array

__all__ = ["image_tensor", "mask_tensor", "waveform_tensor"]


def image_tensor(frames: Sequence[UInt8Array]) -> torch.Tensor:
    """Make a batch of frames of one size: float32, 0 to 1, shape ``[B, H, W, C]``."""
    batch = np.empty((len(frames), *frames[0].shape), np.float32)
    for place, frame in zip(batch, frames, strict=True):
        # By NumPy: torch divides in threads, and waits long for them where a core has other work.
        np.divide(frame, np.float32(255), out=place)
    return torch.from_numpy(batch)


def mask_tensor(masks: Sequence[BoolArray]) -> torch.Tensor:
    """Make a batch of masks of one size: float32, 0 or 1, shape ``[B, H, W]``."""
    return torch.from_numpy(np.stack(masks).astype(np.float32))


def waveform_tensor(waveform: npt.NDArray[np.float32]) -> torch.Tensor:
    """Make a tensor of a waveform ``[B, C, T]``, which shares no memory with it."""
    return torch.from_numpy(waveform.copy())
