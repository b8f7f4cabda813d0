"""Tensors take their places in a module: all of them, or none."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import nn

from vlmcore.weights._torch.matching import Target

__all__ = ["assign"]


def assign(targets: Sequence[tuple[Target, torch.Tensor]]) -> None:
    """
    Give each target its tensor, under all names that it has in its module.

    A parameter that holds numbers of the same device already stays the object that it is, so that
    optimizers and hooks that know it still do; others are replaced by new ones. If a module
    refuses its tensor, what was assigned before is taken back.
    """
    undo: list[Callable[[], None]] = []
    try:
        for target, tensor in targets:
            undo.append(_give(target, tensor))
    except BaseException:
        for step in reversed(undo):
            step()
        raise


def _give(target: Target, tensor: torch.Tensor) -> Callable[[], None]:
    new = tensor
    if not target.is_buffer:
        new = nn.Parameter(tensor, requires_grad=target.tensor.requires_grad)
        new.__dict__.update(target.tensor.__dict__)
    steps = [_place(owner, name, new) for owner, name in target.holders]

    def take_back() -> None:
        for step in reversed(steps):
            step()

    return take_back


def _place(owner: nn.Module, name: str, new: torch.Tensor) -> Callable[[], None]:
    old = getattr(owner, name)
    if old.is_meta or not torch._has_compatible_shallow_copy_type(old, new):  # noqa: SLF001
        setattr(owner, name, new)
        return lambda: setattr(owner, name, old)
    before = old.data
    old.data = new.detach()
    return lambda: setattr(old, "data", before)
