"""Weights of open files into a module: compared, read and assigned, each as a whole."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import torch
from torch import nn

from vlmcore.errors import ContractError, WeightMismatchError
from vlmcore.weights._torch.assigning import assign
from vlmcore.weights._torch.matching import Match, Pair, Target, choose_dtype, match, targets_of
from vlmcore.weights._torch.reading import Reading
from vlmcore.weights.loading import read_weights
from vlmcore.weights.opening import WeightFiles
from vlmcore.weights.report import LoadReport, Way

__all__ = ["fill", "left_on_meta", "match_module", "plain_module"]

_COMPARED_BYTES = 0x80_0000  # at a time


def plain_module(module: object) -> nn.Module:
    """
    Take a module, or what ``torch.compile`` made of it.

    Raises:
        ContractError: If it is none.
    """
    found = getattr(module, "_orig_mod", module)
    if not isinstance(found, nn.Module):
        kind = type(module).__name__
        raise ContractError("module", f"got {kind}, expected a torch.nn.Module")
    return found


def match_module(
    module: nn.Module,
    files: WeightFiles,
    *,
    dtype: torch.dtype | str | None,
    strict: bool,
    names: Mapping[str, str] | None,
) -> Match:
    """
    Compare files with a module, and the values that a file holds for tied tensors.

    Raises:
        WeightMismatchError: If they differ; see `match`.
    """
    found = match(
        module,
        files.index,
        path=files.path,
        chosen=choose_dtype(dtype),
        strict=strict,
        names=names,
    )
    differing = [fault for pair in found.pairs for fault in _differing_copies(files, pair)]
    if differing:
        raise WeightMismatchError(files.path, mismatched=tuple(differing))
    return found


def fill(
    module: nn.Module, found: Match, reading: Reading, only: Sequence[Pair] | None = None
) -> LoadReport:
    """
    Read what was matched, and assign it; what the module holds besides follows to the device.

    Args:
        module: The module.
        found: What was matched.
        reading: How files are read.
        only: Which of it is read now; all if it is ``None``. The rest is left where it is.

    Raises:
        WeightsError: If it cannot be read; then the module is as it was.
    """
    pairs = found.pairs if only is None else only
    with torch.no_grad():
        tensors, report = reading.read({pair.entry.name: pair.dtype for pair in pairs})
        loaded = [(pair.target, tensors[pair.entry.name]) for pair in pairs]
        known = {id(pair.target.tensor) for pair in found.pairs}
        moved = list(_following(module, known, reading.device))
        assign([*loaded, *moved])
    return report


def left_on_meta(module: nn.Module) -> tuple[str, ...]:
    """Name the parameters and buffers that hold no numbers yet."""
    tensors = [*module.named_parameters(), *module.named_buffers()]
    return tuple(name for name, tensor in tensors if tensor.is_meta)


def _following(
    module: nn.Module, loaded: set[int], device: torch.device
) -> Iterator[tuple[Target, torch.Tensor]]:
    """Move what no file holds, as buffers that are not kept, to where the rest goes."""
    for target in targets_of(module, with_all=True):
        tensor = target.tensor
        if id(tensor) not in loaded and not tensor.is_meta and tensor.device != device:
            yield target, tensor.detach().to(device)


def _differing_copies(files: WeightFiles, pair: Pair) -> Iterator[tuple[str, str]]:
    """A tied tensor has one value: what a file holds under its other names must be the same."""
    if not pair.copies:
        return
    names = [pair.entry.name, *(copy.name for copy in pair.copies)]
    with read_weights(files, way=Way.VIEWS, names=names) as weights:
        first = weights.raw(pair.entry.name)
        for copy in pair.copies:
            other = weights.raw(copy.name)
            for start in range(0, len(first), _COMPARED_BYTES):
                stop = start + _COMPARED_BYTES
                if not np.array_equal(first[start:stop], other[start:stop]):
                    how = f"got other values than those of {pair.entry.name!a:.120}, which is tied"
                    yield copy.name, f"{how} to it in the module"
                    break
