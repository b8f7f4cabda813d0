"""Where a model can run here, in which number format, and whether it fits."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import torch

from vlmcore._host_memory import free_host_bytes, in_gib
from vlmcore.errors import (
    ContractError,
    MissingDependencyError,
    ModelMemoryError,
    UnsupportedModelError,
)
from vlmcore.vlm.checkpoint import Checkpoint
from vlmcore.vlm.placement import Attention, Dtype, MemoryMode, Placement

__all__ = [
    "check_requirements",
    "choose_device",
    "choose_dtype",
    "free_bytes",
    "needed_bytes",
    "present_devices",
    "require_copies",
    "require_room",
]

_QUANTIZED = (MemoryMode.NF4, MemoryMode.INT8)
# Bytes a number of a quantized model takes on average: embeddings and the norms stay in 16 bits.
_QUANTIZED_BYTES = {MemoryMode.NF4: 0.7, MemoryMode.INT8: 1.2}
_DTYPES = {
    Dtype.BFLOAT16: torch.bfloat16,
    Dtype.FLOAT16: torch.float16,
    Dtype.FLOAT32: torch.float32,
}


def present_devices() -> tuple[str, ...]:
    """Name the devices that are here, the one that ``"auto"`` takes first."""
    names: list[str] = []
    if torch.cuda.is_available():
        names += [f"cuda:{index}" for index in range(torch.cuda.device_count())]
    if torch.xpu.is_available():
        names += [f"xpu:{index}" for index in range(torch.xpu.device_count())]
    if torch.backends.mps.is_available():
        names.append("mps")
    return (*names, "cpu")


def choose_device(placement: Placement) -> torch.device:
    """
    Take the device that was named, or the first of those that are here.

    Raises:
        ContractError: If the device is not here, or contradicts the memory mode.
    """
    name = placement.device
    if placement.memory is MemoryMode.CPU:
        if name not in ("auto", "cpu"):
            problem = f"got 'cpu' together with the device {name!r}, expected one or the other"
            raise ContractError("memory", problem)
        return torch.device("cpu")
    present = present_devices()
    if name == "auto":
        return torch.device(present[0])
    full_name = f"{name}:0" if name in ("cuda", "xpu") else name
    if full_name not in present:
        here = ", ".join(repr(device) for device in present)
        raise ContractError("device", f"got {name!r}, which is not here; there is {here}")
    return torch.device(full_name)


def check_requirements(model: str, placement: Placement, device: torch.device) -> None:
    """
    Require what a placement needs of the device and of packages, before anything is downloaded.

    Raises:
        UnsupportedModelError: If the device cannot do it, or flash-attn is not installed.
        MissingDependencyError: If a package for quantized weights is not installed.
    """
    if placement.memory in _QUANTIZED:
        if device.type not in ("cuda", "xpu"):
            raise UnsupportedModelError(
                model,
                f"memory={placement.memory.value!r} needs a CUDA or XPU device, and it would run "
                f"on {device}; use 'managed'",
            )
        if find_spec("bitsandbytes") is None:
            raise MissingDependencyError("bitsandbytes", "quantized")
        if find_spec("accelerate") is None:
            raise MissingDependencyError("accelerate", "quantized")
    if placement.attention is Attention.FLASH_2:
        _check_flash_attention(model, placement, device)
    if placement.decoding.copies and device.type != "cpu":
        asked = f"decoding={placement.decoding.value!r}"
        instead = "dtype='float16', and cache=GenerationCache.STATIC, which is compiled there"
        problem = f"{asked} is for the CPU, and it would run on {device}; use {instead}"
        raise UnsupportedModelError(model, problem)


def _check_flash_attention(model: str, placement: Placement, device: torch.device) -> None:
    asked = "attention='flash_attention_2'"
    if device.type != "cuda":
        problem = f"{asked} needs a CUDA device, and it would run on {device}; use 'auto'"
        raise UnsupportedModelError(model, problem)
    if placement.dtype is Dtype.FLOAT32:
        problem = f"{asked} computes in 16 bits only, and dtype='float32' was asked for"
        raise UnsupportedModelError(model, problem)
    if find_spec("flash_attn") is None:
        problem = f"{asked} needs the package 'flash-attn', which is not installed; use 'auto'"
        raise UnsupportedModelError(model, problem)


def choose_dtype(
    device: torch.device,
    wanted: Dtype,
    stored: str | None,
    *,
    fits: Callable[[torch.dtype], bool] = lambda _: True,
) -> tuple[torch.dtype, str]:
    """
    Choose the number format of the weights, and say why.

    Args:
        device: Where the model runs.
        wanted: What was asked for.
        stored: The format of the weights as they are stored.
        fits: Whether the weights fit into memory in a format.

    Raises:
        ContractError: If the device cannot compute in the format that was asked for.
    """
    if wanted is not Dtype.AUTO:
        dtype = _DTYPES[wanted]
        if not _computes_in(device, dtype):
            problem = f"got {wanted.value!r}, which {device} cannot compute in"
            raise ContractError("dtype", problem)
        return dtype, "as asked"
    match device.type:
        case "cuda":
            # Older GPUs only emulate bfloat16, which is slow.
            if torch.cuda.is_bf16_supported(including_emulation=False):
                return torch.bfloat16, "this GPU computes in it"
            return torch.float16, "this GPU has no bfloat16"
        case "cpu":
            return _on_processor(stored, fits)
        case _:
            if _computes_in(device, torch.bfloat16):
                return torch.bfloat16, "this device computes in it"
            return torch.float16, "this device has no bfloat16"


def _on_processor(
    stored: str | None, fits: Callable[[torch.dtype], bool]
) -> tuple[torch.dtype, str]:
    native = _processor_has_bfloat16()
    if stored == "bfloat16" and native:
        return torch.bfloat16, "stored so, and this processor computes in it"
    if stored in ("bfloat16", "float16") and not fits(torch.float32):
        small = torch.bfloat16 if stored == "bfloat16" else torch.float16
        return small, "float32 would not fit into memory"
    if stored in ("float32", "float64") or native:
        return torch.float32, f"stored in {stored}"
    return torch.float32, "this processor is fastest in it"


def _processor_has_bfloat16() -> bool:
    probe = getattr(torch.cpu, "get_capabilities", None)  # since PyTorch 2.10 or so
    found: dict[str, Any] = probe() if probe is not None else {}
    return bool(found.get("amx_bf16") or found.get("avx512_bf16"))


def _computes_in(device: torch.device, dtype: torch.dtype) -> bool:
    """Try: what Apple's and Intel's devices can do depends on the system, too."""
    try:
        square = torch.ones(2, 2, dtype=dtype, device=device)
        return bool((square @ square).sum().item() == 8)
    except (RuntimeError, TypeError, AssertionError):
        return False


def needed_bytes(checkpoint: Checkpoint, dtype: torch.dtype, memory: MemoryMode) -> int:
    """Estimate what the weights hold once they are loaded; answering takes more."""
    return checkpoint.nbytes_as(_QUANTIZED_BYTES.get(memory, dtype.itemsize))


def require_copies(model: str, placement: Placement, dtype: torch.dtype) -> None:
    """
    Require that copies for the steps of one token are smaller than the weights.

    Raises:
        UnsupportedModelError: If they are not.
    """
    if placement.decoding.copies and dtype is not torch.float32:
        loaded = str(dtype).removeprefix("torch.")
        asked = f"decoding={placement.decoding.value!r}"
        problem = f"{asked} copies weights in float32, and these are in {loaded}"
        raise UnsupportedModelError(model, f"{problem}; use dtype='float32'")


def free_bytes(device: torch.device) -> int | None:
    """Find out how much memory of *device* is free; ``None`` where it does not tell."""
    try:
        match device.type:
            case "cpu":
                return free_host_bytes()
            case "mps":
                return torch.mps.recommended_max_memory() - torch.mps.current_allocated_memory()
            case kind:
                module: Any = getattr(torch, kind)
                free, _total = module.mem_get_info(device)
                # What PyTorch keeps for itself and does not use is free for the model, too.
                kept = module.memory_reserved(device) - module.memory_allocated(device)
                return int(free) + int(kept)
    except (RuntimeError, AttributeError):
        return None


def require_room(model: str, needed: int, device: torch.device) -> None:
    """
    Require that *needed* bytes are free on *device*, as far as it tells.

    Raises:
        ModelMemoryError: If they are not, with both numbers.
    """
    free = free_bytes(device)
    if free is None or needed <= free:
        return
    raise ModelMemoryError(
        model,
        f"its weights need {in_gib(needed)}, and {in_gib(free)} are free on {device}",
        needed,
        free,
    )
