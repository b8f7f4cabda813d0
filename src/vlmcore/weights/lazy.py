"""
Models larger than the memory that they get: weights come when a module needs them, and go.

Several models may share one budget, which is how to switch between them.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

from vlmcore._closing import Closing
from vlmcore._optional import optional_dependency
from vlmcore.errors import ContractError
from vlmcore.limits import WeightLimits
from vlmcore.weights.budget import ReadBudget
from vlmcore.weights.manifest import Manifest
from vlmcore.weights.modules import ModuleReport
from vlmcore.weights.opening import open_files
from vlmcore.weights.pool import WeightPool
from vlmcore.weights.report import Way
from vlmcore.weights.verifying import Verification

if TYPE_CHECKING:
    import torch

    from vlmcore.weights._torch.lazily import LazyLoad

__all__ = ["LazyWeights", "load_lazily"]


class LazyWeights(Closing):
    """
    The weights of a module that come and go; `load_lazily` makes it.

    Closing it gives the memory and the files back. The module cannot be used any more then, and
    says so when it is.

    Attributes:
        pool: The budget that they live in, with what is in memory now and what was.
        report: What goes where, and what was read at once.
    """

    def __init__(self, load: LazyLoad, pool: WeightPool, report: ModuleReport) -> None:
        self._load = load
        self.pool = pool
        self.report = report

    def close(self) -> None:
        """Give back memory and files. Closing twice is no error."""
        self._load.close()

    def __repr__(self) -> str:
        return f"<LazyWeights {self.report.path}, within {self.pool.budget_bytes} bytes>"


def load_lazily(
    module: torch.nn.Module,
    path: str | os.PathLike[str],
    *,
    pool: WeightPool | int,
    device: torch.device | str = "cpu",
    dtype: torch.dtype | str | None = None,
    strict: bool = True,
    names: Mapping[str, str] | None = None,
    verification: Verification = Verification.OFF,
    manifest: Manifest | None = None,
    budget: ReadBudget | None = None,
    limits: WeightLimits | None = None,
) -> LazyWeights:
    """
    Let the weights of a module come from a file when they are needed, within a budget.

    The module is compared with the file as by `vlmcore.weights.modules.load_into`, and computes
    what it would compute if all its weights were loaded. Who asks it for a parameter gets the
    weight, read now if it is not in memory, and with it the others of the same module; what was
    needed next the last time is read meanwhile. `WeightPool` says which go when the budget is used
    up. Buffers, and the weights of recurrent modules, are read at once and stay.

    It is for inference: weights take no gradients. A weight that is written to stays from then on;
    torch does not tell of writes through ``.data`` or NumPy, and those are lost when it goes.
    ``state_dict``, ``copy.deepcopy`` and ``torch.save`` read all weights, and what they give is
    whole and no longer lazy. ``module.to`` can neither move nor convert it. What
    ``torch.compile`` makes of it runs it as it is, not compiled.

    Args:
        module: The module, which may be on the meta device.
        path: A pack, a file of safetensors, an index of several, or a folder that holds one. It
            must not change while the module is in use; that it did is found and told.
        pool: The budget, or its size in bytes for one of its own.
        device: Where the weights are while they are in memory.
        dtype: As of `vlmcore.weights.modules.load_into`.
        strict: As of `vlmcore.weights.modules.load_into`.
        names: As of `vlmcore.weights.modules.load_into`.
        verification: How much is compared with the manifest, each time that it is read.
        manifest: As of `vlmcore.weights.modules.load_into`.
        budget: How to read. Its staging memory is taken besides *pool*.
        limits: How much is read before the tensors.

    Raises:
        WeightMismatchError: If the weights are not those of the module.
        WeightsBudgetError: If the weights of one module alone, or what stays, are beyond *pool*.
        WeightsError: As of `vlmcore.weights.loading.load_weights`.
        ContractError: As of `vlmcore.weights.modules.load_into`.
        MissingDependencyError: If torch is not installed.

    Example:
        >>> import torch
        >>> from vlmcore.embedded import model_directory
        >>> with torch.device("meta"):
        ...     norm = torch.nn.LayerNorm(128, bias=False, dtype=torch.float16)
        >>> name = "model.text_model.norm.weight"
        >>> with load_lazily(
        ...     norm, model_directory(), pool=1 << 20, strict=False, names={name: "weight"}
        ... ) as weights:
        ...     before = weights.pool.resident_bytes
        ...     out = norm(torch.ones(1, 128, dtype=torch.float16))
        ...     before, weights.pool.resident_bytes > 0, tuple(out.shape)
        (0, True, (1, 128))
    """
    with optional_dependency("local", "torch"):
        from vlmcore.weights._torch import into, lazily, reading  # noqa: PLC0415 - a door
    plain = into.plain_module(module)
    target = reading.open_device(device)
    room = _pool(pool)
    files = open_files(path, limits=limits)
    try:
        found = into.match_module(plain, files, dtype=dtype, strict=strict, names=names)
        how = reading.Reading(
            files=files,
            device=target,
            way=Way.COPY,
            budget=budget or ReadBudget.for_host(),
            verification=verification,
            manifest=manifest,
        )
        load = lazily.LazyLoad(plain, found, how, room)
    except BaseException:
        files.close()
        raise
    report = ModuleReport.of(load.report, found, str(target), into.left_on_meta(plain))
    return LazyWeights(load, room, report)


def _pool(pool: object) -> WeightPool:
    if isinstance(pool, WeightPool):
        return pool
    if type(pool) is not int:
        kind = type(pool).__name__
        raise ContractError("pool", f"got {kind}, expected a WeightPool, or a size in bytes")
    return WeightPool(pool)
