"""One checkpoint for several ranks: each reads its share of it, and all get all tensors."""

from __future__ import annotations

import os
from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from vlmcore._optional import optional_dependency
from vlmcore.limits import WeightLimits
from vlmcore.weights._crew import Cancelling, Progress
from vlmcore.weights.budget import ReadBudget
from vlmcore.weights.manifest import Manifest
from vlmcore.weights.modules import LoadedTensors
from vlmcore.weights.verifying import Verification

if TYPE_CHECKING:
    import torch

__all__ = ["load_shards"]


def load_shards(
    path: str | os.PathLike[str],
    *,
    group: Any = None,
    device: torch.device | str = "cpu",
    dtype: torch.dtype | str | None = None,
    names: Collection[str] | None = None,
    verification: Verification = Verification.OFF,
    manifest: Manifest | None = None,
    budget: ReadBudget | None = None,
    progress: Progress | None = None,
    cancel: Cancelling | None = None,
    limits: WeightLimits | None = None,
) -> LoadedTensors:
    """
    Load the tensors of a checkpoint together with the other ranks, which all call this.

    The ranks take turns with the parts of the files, and exchange what they read through
    torch.distributed: each byte is read once, by one of them, and all of them get the tensors that
    `vlmcore.weights.modules.load_tensors` would give them.

    If one of them cannot, all end with an error: that one with its own, the others with one that
    names it. A rank that is gone ends the others as soon as the backend notices, and one that never
    calls this after the time-out of the group.

    Args:
        path: The checkpoint, the same in every rank, as of `load_tensors`.
        group: The process group; that of all processes if it is ``None``.
        device: Where the tensors of this rank go.
        dtype: As of `load_tensors`.
        names: As of `load_tensors`; the same in every rank.
        verification: How much this rank compares with the manifest, whichever rank has read it.
        manifest: As of `load_tensors`.
        budget: How to read, with the same staging memory in every rank. Messages are part of it; a
            default of 256 MiB is not made less by what one host has free, as ranks must agree.
        progress: Called with the bytes that this rank has and those that there are.
        cancel: Stops the load of all ranks from another thread of this one.
        limits: How much is read before the tensors.

    Raises:
        WeightsError: If it cannot be loaded, here or in another rank, or was cancelled there.
        WeightChecksumError: If a tensor is another than the manifest says; all are named.
        WeightsCancelledError: If it was cancelled here.
        ContractError: If torch.distributed is not initialized, or an argument is none of those
            above.
        MissingDependencyError: If torch is not installed.
    """
    with optional_dependency("local", "torch"):
        from vlmcore.weights._torch import sharing  # noqa: PLC0415 - a door
    tensors, report = sharing.load_together(
        path,
        group=group,
        device=device,
        dtype=dtype,
        names=names,
        verification=verification,
        manifest=manifest,
        budget=budget or ReadBudget(),
        progress=progress,
        cancel=cancel,
        limits=limits,
    )
    return LoadedTensors(tensors, report)
