"""The accelerators that PyTorch can use here, and how much memory they have."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeAlias

import torch

__all__ = ["accelerators"]

_NameLabelTotalFree: TypeAlias = tuple[str, str, int, "int | None"]


def accelerators() -> Iterator[_NameLabelTotalFree]:
    """Look at each accelerator, in the order in which ``device="auto"`` prefers them."""
    modules: tuple[tuple[str, Any], ...] = (("cuda", torch.cuda), ("xpu", torch.xpu))
    for kind, module in modules:
        for index in range(module.device_count() if module.is_available() else 0):
            properties = module.get_device_properties(index)
            free = _free_bytes(module, index)
            yield f"{kind}:{index}", str(properties.name), int(properties.total_memory), free
    if torch.backends.mps.is_available():
        total = int(torch.mps.recommended_max_memory())
        free = max(0, total - int(torch.mps.driver_allocated_memory()))
        yield "mps", "Apple GPU, in the memory of the host", total, free


def _free_bytes(module: Any, index: int) -> int | None:
    try:
        free, _total = module.mem_get_info(index)
    except (RuntimeError, AttributeError):  # older PyTorch, or a driver that does not tell
        return None
    return int(free)
