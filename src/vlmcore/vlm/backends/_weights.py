"""Weights of a model of transformers, loaded by `vlmcore.weights`: the same numbers, other ways."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs
import torch
import transformers

from vlmcore.errors import UnsupportedModelError
from vlmcore.vlm.checkpoint import weights_path
from vlmcore.vlm.placement import Placement, WeightLoading
from vlmcore.weights.lazy import LazyWeights, load_lazily
from vlmcore.weights.modules import load_into, load_tensors
from vlmcore.weights.opening import open_files
from vlmcore.weights.report import Way

__all__ = ["IncompleteError", "load_by_ourselves", "require_loadable"]

_library: Any = transformers  # its annotations are partial


def require_loadable(
    model: str, config: Mapping[str, Any], placement: Placement, device: torch.device
) -> None:
    """
    Require what loading the weights by ourselves needs.

    Args:
        model: The model as it was named.
        config: Its configuration.
        placement: How its weights are to be loaded.
        device: Where it runs.

    Raises:
        UnsupportedModelError: If the checkpoint is quantized, the device has no mapped weights, or
            transformers is too old.
    """
    if placement.weights is WeightLoading.TRANSFORMERS:
        return
    asked = f"weights={placement.weights.value!r}"
    if config.get("quantization_config") is not None:
        problem = f"{asked} does not load quantized weights, and its are; use 'transformers'"
        raise UnsupportedModelError(model, problem)
    if placement.weights is WeightLoading.MAPPED and device.type != "cpu":
        problem = f"{asked} is for the CPU, and it would run on {device}; use 'copied'"
        raise UnsupportedModelError(model, problem)
    if int(transformers.__version__.partition(".")[0]) < 5:
        problem = f"{asked} needs transformers 5, and {transformers.__version__} is installed"
        raise UnsupportedModelError(model, problem)


class IncompleteError(Exception):
    """Weights that the architecture has are not in the files."""

    def __init__(self, names: Sequence[str]) -> None:
        super().__init__(f"its files lack {len(names)} of its weights, as {names[0]!r}")


def load_by_ourselves(
    folder: Path, config: Any, placement: Placement, device: torch.device, **options: Any
) -> tuple[Any, LazyWeights | None]:
    """
    Build the model without its weights, find out from transformers where each goes, and load them.

    transformers gets tensors without numbers in the place of those of the files, and renames and
    assigns them as if they were. Those that it computes with, as where it merges the experts of a
    layer, it gets with their numbers then.

    Args:
        folder: The folder of the model.
        config: Its configuration.
        placement: How its weights are loaded.
        device: Where they go.
        options: What ``from_pretrained`` gets beside that.

    Returns:
        The model, and its weights where they come and go.

    Raises:
        IncompleteError: If weights are missing.
        WeightsError: If they cannot be loaded.
    """
    path = weights_path(folder)
    with open_files(path) as files:
        stored = {
            name: (getattr(torch, entry.dtype.value), entry.shape)
            for name, entry in files.index.items()
        }
        stored |= {alias: stored[name] for alias, name in files.index.aliases.items()}
    skeleton = _build(config, stored, {}, options)
    if skeleton.computed:
        numbers = load_tensors(path, names=skeleton.computed, way=Way.COPY)
        skeleton = _build(config, stored, numbers, options)
    if skeleton.missing:
        raise IncompleteError(skeleton.missing)
    how: dict[str, Any] = {
        "device": device,
        "dtype": "module",
        "strict": False,
        "names": skeleton.names,
    }
    lazy = None
    if placement.weights_budget_bytes is not None:
        lazy = load_lazily(skeleton.model, path, pool=placement.weights_budget_bytes, **how)
        left = lazy.report.left_on_meta
    else:
        way = Way.VIEWS if placement.weights is WeightLoading.MAPPED else Way.COPY
        left = load_into(skeleton.model, path, way=way, **how).left_on_meta
    if left:
        raise IncompleteError(left)
    if (folder / "generation_config.json").exists():
        skeleton.model.generation_config = _library.GenerationConfig.from_pretrained(folder)
    return skeleton.model, lazy


@attrs.frozen(kw_only=True)
class _Skeleton:
    """
    A model whose weights hold no numbers yet.

    Attributes:
        model: The model.
        names: What the model calls a weight, by its name in the files.
        computed: Names in the files of weights that transformers computes others from.
        missing: Names of weights that the files lack.
    """

    model: Any
    names: Mapping[str, str]
    computed: tuple[str, ...]
    missing: tuple[str, ...]


def _build(
    config: Any,
    stored: Mapping[str, tuple[torch.dtype, tuple[int, ...]]],
    numbers: Mapping[str, torch.Tensor],
    options: Mapping[str, Any],
) -> _Skeleton:
    origins: dict[int, tuple[str, torch.Tensor]] = {}
    given = {
        name: numbers[name] if name in numbers else _StandIn.of(name, dtype, shape, origins)
        for name, (dtype, shape) in stored.items()
    }
    kind = _library.MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING[type(config)]
    model, report = kind.from_pretrained(
        None, config=config, state_dict=given, output_loading_info=True, **options
    )
    names: dict[str, str] = {}
    is_computed = False
    for name, tensor in model.state_dict(keep_vars=True).items():
        if tensor.is_meta:
            origin, shown = origins.get(_identity(tensor), ("", tensor))
            is_whole = tensor.shape == shown.shape and tensor.is_contiguous()
            if origin and is_whole:
                names.setdefault(origin, name)
            else:
                is_computed = True
    unexpected = set(report["unexpected_keys"])
    left = stored.keys() - names.keys() - unexpected - numbers.keys() if is_computed else ()
    return _Skeleton(
        model=model,
        names=names,
        computed=tuple(sorted(left)),
        missing=tuple(sorted(report["missing_keys"])),
    )


def _identity(tensor: torch.Tensor) -> int:
    return int(tensor.untyped_storage()._cdata)  # noqa: SLF001 - torch has no other name for it


class _StandIn(torch.Tensor):
    """
    A tensor without numbers that transformers takes for one of a file.

    Whatever device it is sent to, it comes as a tensor of the meta device, of the dtype that was
    asked for, and is found again among *origins* by its memory.
    """

    origin: str
    origins: dict[int, tuple[str, torch.Tensor]]

    @classmethod
    def of(
        cls,
        name: str,
        dtype: torch.dtype,
        shape: tuple[int, ...],
        origins: dict[int, tuple[str, torch.Tensor]],
    ) -> _StandIn:
        """Make one for the weight *name* of a file."""
        made = torch.empty(shape, dtype=dtype, device="meta").as_subclass(cls)
        made.origin, made.origins = name, origins
        return made

    @classmethod
    def __torch_function__(
        cls,
        func: Callable[..., Any],
        types: Any,
        args: Any = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        kwargs = dict(kwargs or {})
        if func is torch.Tensor.__getitem__ and args[1] is Ellipsis:
            return args[0]
        if func is torch.Tensor.to:
            stand_in: _StandIn = args[0]
            asked = [*args[1:], *kwargs.values()]
            dtype = next((each for each in asked if isinstance(each, torch.dtype)), stand_in.dtype)
            sent = torch.empty(stand_in.shape, dtype=dtype, device="meta")
            stand_in.origins[_identity(sent)] = (stand_in.origin, sent)
            return sent
        return super().__torch_function__(func, types, args, kwargs)  # type: ignore[no-untyped-call]
