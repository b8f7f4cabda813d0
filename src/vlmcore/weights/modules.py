"""
Weights into modules of torch: bounded, checked, and all of them or none.

`load_tensors` gives the tensors of a checkpoint by name, `load_into` gives them to a module.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import attrs

from vlmcore._arrays import require_member
from vlmcore._optional import optional_dependency
from vlmcore.errors import ContractError
from vlmcore.limits import WeightLimits
from vlmcore.weights._crew import Cancelling, Progress
from vlmcore.weights.budget import ReadBudget
from vlmcore.weights.manifest import Manifest
from vlmcore.weights.opening import open_files
from vlmcore.weights.report import LoadReport, Way
from vlmcore.weights.verifying import Verification

if TYPE_CHECKING:
    import torch

    from vlmcore.weights._torch.matching import Match

__all__ = ["LoadedTensors", "ModuleReport", "load_into", "load_tensors"]


@attrs.frozen(kw_only=True)
class ModuleReport(LoadReport):
    """
    What a load into a module did.

    Attributes:
        device: Where the weights are.
        missing: Names of the module that the file lacks; their tensors were left alone.
        unused: Names of the file that the module has no place for; they were not read.
        converted: Names of weights that have another dtype than in the file.
        tied: Names of weights that the module holds under several names.
        left_on_meta: Names of what holds no numbers yet: of `missing`, and of buffers that no file
            holds.
    """

    device: str = "cpu"
    missing: tuple[str, ...] = ()
    unused: tuple[str, ...] = ()
    converted: tuple[str, ...] = ()
    tied: tuple[str, ...] = ()
    left_on_meta: tuple[str, ...] = ()

    @classmethod
    def of(
        cls, report: LoadReport, found: Match, device: str, left_on_meta: tuple[str, ...]
    ) -> ModuleReport:
        """Report what was read, as *report* says, and where it went."""
        return cls(
            **{field.name: getattr(report, field.name) for field in attrs.fields(LoadReport)},
            device=device,
            missing=found.missing,
            unused=found.unused,
            converted=found.converted,
            tied=found.tied,
            left_on_meta=left_on_meta,
        )

    def to_dict(self) -> dict[str, Any]:
        """Write it as a JSON object."""
        fields = super().to_dict()
        return {name: list(v) if isinstance(v, tuple) else v for name, v in fields.items()}


class LoadedTensors(Mapping[str, "torch.Tensor"]):
    """
    The tensors of a checkpoint by name; `load_tensors` makes it.

    Attributes:
        report: What the load did.
    """

    def __init__(self, tensors: Mapping[str, torch.Tensor], report: LoadReport) -> None:
        self._tensors = dict(tensors)
        self.report = report

    def __getitem__(self, name: str) -> torch.Tensor:
        return self._tensors[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._tensors)

    def __len__(self) -> int:
        return len(self._tensors)

    def __repr__(self) -> str:
        return f"<LoadedTensors {self.report.path}: {len(self)} tensors>"


def load_tensors(
    path: str | os.PathLike[str],
    *,
    device: torch.device | str = "cpu",
    dtype: torch.dtype | str | None = None,
    way: Way | None = None,
    names: Collection[str] | None = None,
    verification: Verification = Verification.OFF,
    manifest: Manifest | None = None,
    budget: ReadBudget | None = None,
    progress: Progress | None = None,
    cancel: Cancelling | None = None,
    limits: WeightLimits | None = None,
) -> LoadedTensors:
    """
    Load the tensors of a checkpoint as tensors of torch.

    They are on *device*, of the shape that the file says, and may be written to: no write reaches
    the file. A tensor that is mapped is as aligned as it is in its file, any other starts at a
    multiple of 64 bytes.

    Args:
        path: A pack, a file of safetensors, an index of several, or a folder that holds one.
        device: Where they go, as ``"cuda:0"``. They get there by way of a ring of staging memory,
            pinned where the device copies from such, and are read while others are copied.
        dtype: What floating-point numbers are converted to; ``None`` leaves them as they are.
        way: How they are had on the CPU; mapped if it is ``None``. Elsewhere they are copied.
        names: Which to load; all if it is ``None``.
        verification: How much is compared with the manifest, while it is read.
        manifest: What the weights were; the manifest that lies beside the files by default.
        budget: How to read; as the host can bear it if it is ``None``.
        progress: Called with the bytes that are done and those that there are.
        cancel: Stops the load from another thread.
        limits: How much is read before the tensors.

    Raises:
        WeightsError: As of `vlmcore.weights.loading.load_weights`.
        ContractError: If the device is not here, or an argument is none of those above.
        MissingDependencyError: If torch is not installed.
    """
    with optional_dependency("local", "torch"):
        from vlmcore.weights._torch import reading, tensors  # noqa: PLC0415 - a door
    target = reading.open_device(device)
    with open_files(path, limits=limits) as files:
        aliases = files.index.aliases
        asked = [*files.index, *aliases] if names is None else names
        wanted = tensors.wanted_dtypes(files.index, asked, dtype)
        loaded, report = reading.Reading(
            files=files,
            device=target,
            way=_way(way, target),
            budget=budget or ReadBudget.for_host(),
            progress=progress,
            cancel=cancel,
            verification=verification,
            manifest=manifest,
        ).read(wanted)
    return LoadedTensors({name: loaded[aliases.get(name, name)] for name in asked}, report)


def load_into(
    module: torch.nn.Module,
    path: str | os.PathLike[str],
    *,
    device: torch.device | str = "cpu",
    dtype: torch.dtype | str | None = None,
    strict: bool = True,
    way: Way | None = None,
    names: Mapping[str, str] | None = None,
    verification: Verification = Verification.OFF,
    manifest: Manifest | None = None,
    budget: ReadBudget | None = None,
    progress: Progress | None = None,
    cancel: Cancelling | None = None,
    limits: WeightLimits | None = None,
) -> ModuleReport:
    """
    Load weights into a module, which may be a skeleton on the meta device.

    Names, then shapes, then dtypes are compared for all weights before the first is read, and all
    are read before the first is assigned: an error leaves the module as it was. A module that holds
    numbers already takes room for both meanwhile. What is tied in the
    module stays tied, whether the file has one of its names or all of them. Parameters stay the
    objects that they are if they hold numbers of *device* already, and are replaced otherwise.

    Buffers that no file holds, as those that ``register_buffer(persistent=False)`` makes, keep
    their numbers and go to *device* with the rest; those on the meta device are named in
    `ModuleReport.left_on_meta`, and are the caller's to fill.

    Args:
        module: The module, or what ``torch.compile`` made of it.
        path: A pack, a file of safetensors, an index of several, or a folder that holds one.
        device: Where the weights go; see `load_tensors`.
        dtype: ``None`` where the dtypes of the file must be those of the module; ``"module"`` to
            convert to those of the module, ``"file"`` to take those of the file; or a dtype of
            torch, or its name, for all floating-point weights.
        strict: Whether the names of both must be the same. Otherwise what is only in one of them is
            left alone, and named in the report.
        way: How they are had on the CPU; mapped if it is ``None``. Elsewhere they are copied.
        names: What the module calls a weight, by its name in the file, where it is another.
        verification: How much is compared with the manifest, while it is read.
        manifest: What the weights were; the manifest that lies beside the files by default.
        budget: How to read; as the host can bear it if it is ``None``.
        progress: Called with the bytes that are done and those that there are.
        cancel: Stops the load from another thread.
        limits: How much is read before the tensors.

    Raises:
        WeightMismatchError: If the weights are not those of the module, with all that differs.
        WeightsError: As of `vlmcore.weights.loading.load_weights`.
        ContractError: If the module keeps weights in a form of its own, as quantized ones do, the
            device is not here, or an argument is none of those above.
        MissingDependencyError: If torch is not installed.

    Example:
        >>> import torch
        >>> from vlmcore.embedded import model_directory
        >>> with torch.device("meta"):
        ...     norm = torch.nn.LayerNorm(128, bias=False, dtype=torch.bfloat16)
        >>> name = "model.text_model.norm.weight"
        >>> report = load_into(
        ...     norm, model_directory(), dtype="module", strict=False, names={name: "weight"}
        ... )
        >>> norm.weight.device.type, report.missing, report.converted
        ('cpu', (), ('weight',))
    """
    with optional_dependency("local", "torch"):
        from vlmcore.weights._torch import into, reading  # noqa: PLC0415 - a door
    plain = into.plain_module(module)
    target = reading.open_device(device)
    with open_files(path, limits=limits) as files:
        found = into.match_module(plain, files, dtype=dtype, strict=strict, names=names)
        report = into.fill(
            plain,
            found,
            reading.Reading(
                files=files,
                device=target,
                way=_way(way, target),
                budget=budget or ReadBudget.for_host(),
                progress=progress,
                cancel=cancel,
                verification=verification,
                manifest=manifest,
            ),
        )
    return ModuleReport.of(report, found, str(target), into.left_on_meta(plain))


def _way(way: Way | None, device: torch.device) -> Way:
    """Views are of the memory of the host; what goes elsewhere is copied."""
    if way is None:
        return Way.VIEWS if device.type == "cpu" else Way.COPY
    require_member(Way, way=way)
    if way is Way.VIEWS and device.type != "cpu":
        raise ContractError("way", f"got views on {device}, expected copy: only the CPU has views")
    return way
