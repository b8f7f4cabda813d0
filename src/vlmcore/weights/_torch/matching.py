"""Which weight of a file goes where in a module: compared as a whole before any is read."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise
from typing import Any

import attrs
import torch
from torch import nn
from torch.nn.parameter import is_lazy

from vlmcore.errors import ContractError, WeightMismatchError
from vlmcore.weights._torch.tensors import float_dtype, torch_dtype
from vlmcore.weights.index import TensorEntry, WeightIndex

__all__ = ["Chooser", "Match", "Pair", "Target", "choose_dtype", "match", "targets_of"]

Chooser = Callable[[torch.dtype, torch.dtype], "torch.dtype | None"]
"""Says which dtype a tensor gets, of that in the file and that in the module; ``None`` if none."""


_PLAIN = (torch.Tensor, nn.Parameter, getattr(nn, "Buffer", nn.Parameter))


@attrs.frozen(kw_only=True, eq=False)
class Target:
    """
    One tensor of a module that weights are loaded into, under all names that it has there.

    Attributes:
        names: Its names; more than one where it is tied.
        holders: The modules that hold it, each with the name that it has in them.
        tensor: What is there now, which may be on the meta device.
        is_buffer: Whether it is a buffer, and no parameter.
    """

    names: tuple[str, ...]
    holders: tuple[tuple[nn.Module, str], ...]
    tensor: torch.Tensor
    is_buffer: bool


@attrs.frozen(kw_only=True, eq=False)
class Pair:
    """
    A tensor of a module and the weight that it gets.

    Attributes:
        target: The tensor.
        entry: The weight.
        dtype: The dtype that it has in the module afterwards.
        copies: What the file holds under the other names of a tied tensor, each for itself. They
            must be the same numbers.
    """

    target: Target
    entry: TensorEntry
    dtype: torch.dtype
    copies: tuple[TensorEntry, ...] = ()


@attrs.frozen(kw_only=True, eq=False)
class Match:
    """
    How the weights of a file and the tensors of a module go together.

    Attributes:
        pairs: What goes where, in the order of the module.
        missing: Names of tensors of the module that the file lacks.
        unused: Names of the file that the module has no place for.
    """

    pairs: tuple[Pair, ...]
    missing: tuple[str, ...]
    unused: tuple[str, ...]

    @property
    def converted(self) -> tuple[str, ...]:
        """Names of the module whose weights have another dtype in the file."""
        return tuple(
            pair.target.names[0]
            for pair in self.pairs
            if pair.dtype != torch_dtype(pair.entry.dtype)
        )

    @property
    def tied(self) -> tuple[str, ...]:
        """Names of weights that the module holds under several names, the first of each."""
        return tuple(pair.target.names[0] for pair in self.pairs if len(pair.target.names) > 1)


def match(
    module: nn.Module,
    index: WeightIndex,
    *,
    path: str,
    chosen: Chooser,
    strict: bool,
    names: Mapping[str, str] | None = None,
) -> Match:
    """
    Compare the names, then the shapes, then the dtypes of a file with those of a module.

    Args:
        module: The module, which may be on the meta device.
        index: What the file holds.
        path: The file as the caller named it, for errors.
        chosen: Says which dtype a tensor gets.
        strict: Whether every name must be on both sides.
        names: What the module calls a name of the file, where it is called otherwise.

    Raises:
        WeightMismatchError: If anything differs, with all that differs.
        ContractError: If the module keeps weights in a form of its own, one of its weights is a
            part of another, or *names* gives two the same name.
    """
    offered = _offered(index, {} if names is None else names)
    targets = targets_of(module)
    known = {name for target in targets for name in target.names}
    unused = [name for name in offered if name not in known]
    used = {offered[name].name for name in offered if name in known}
    unused = [name for name in unused if offered[name].name not in used]
    missing = [t.names[0] for t in targets if not any(name in offered for name in t.names)]
    if strict and (missing or unused):
        raise WeightMismatchError(path, tuple(missing), tuple(unused))
    found = [(target, _entries(target, offered)) for target in targets]
    found = [(target, entries) for target, entries in found if entries]
    _require_apart([target for target, _ in found])
    faults = [fault for target, entries in found for fault in _shape_faults(target, entries)]
    if faults:
        raise WeightMismatchError(path, mismatched=tuple(faults))
    pairs = []
    for target, (entry, *copies) in found:
        dtype = chosen(torch_dtype(entry.dtype), target.tensor.dtype)
        is_other = any(copy.dtype != entry.dtype for copy in copies)
        if dtype is None or is_other or not _may_hold(target, dtype):
            faults.append(_dtype_fault(target, entry))
        else:
            pairs.append(Pair(target=target, entry=entry, dtype=dtype, copies=tuple(copies)))
    if faults:
        raise WeightMismatchError(path, mismatched=tuple(faults))
    return Match(pairs=tuple(pairs), missing=tuple(missing), unused=tuple(unused))


def _require_apart(targets: list[Target]) -> None:
    """Refuse what is part of another weight: with memory of its own it would be that no more."""
    places = sorted((*_place(target.tensor), target.names[0]) for target in targets)
    for (storage, _, stop, name), (other, start, _, part) in pairwise(places):
        if storage == other and start < stop:
            raise ContractError(
                part, f"shares some of its memory with {name!a:.90}, expected all of it or none"
            )


def _place(tensor: torch.Tensor) -> tuple[int, int, int]:
    """Say which memory a tensor is in, and from where to where."""
    start = int(tensor.storage_offset()) * tensor.element_size()
    axes = zip(tensor.shape, tensor.stride(), strict=True)
    span = sum((int(size) - 1) * int(step) for size, step in axes)
    stop = start + (span + 1) * tensor.element_size() if tensor.numel() else start
    return tensor.untyped_storage()._cdata, start, stop  # noqa: SLF001


def _entries(target: Target, offered: Mapping[str, TensorEntry]) -> list[TensorEntry]:
    entries = [offered[name] for name in target.names if name in offered]
    return list({entry.name: entry for entry in entries}.values())


def choose_dtype(dtype: torch.dtype | str | None) -> Chooser:
    """
    Make of what a caller asked for a choice between the dtype of the file and of the module.

    Args:
        dtype: ``None`` where they must be the same; ``"module"`` or ``"file"`` for that of the
            one or the other; or a dtype of torch, or its name, for all floating-point numbers.

    Raises:
        ContractError: If it is none of these.
    """
    if dtype is None:
        return lambda file, module: module if file == module else None
    if dtype == "file":
        return lambda file, _: file
    if dtype == "module":
        return lambda file, module: module if file == module or _may_round(file, module) else None
    wanted = float_dtype(dtype)

    def choose(file: torch.dtype, module: torch.dtype) -> torch.dtype | None:
        if file.is_floating_point and module.is_floating_point:
            return wanted
        return module if file == module else None

    return choose


def targets_of(module: nn.Module, *, with_all: bool = False) -> list[Target]:
    """
    List the parameters and persistent buffers of *module*, each once, in its order.

    Args:
        module: The module.
        with_all: Whether to list the buffers too that are in no file.

    Raises:
        ContractError: If it keeps weights in another form, as quantized modules do.
    """
    kept = module.state_dict(keep_vars=True)
    found: dict[Any, list[_Held]] = {}
    for held in _held_by(module):
        if held.is_buffer and held.full_name not in kept and not with_all:
            continue
        _require_plain(held)
        found.setdefault(_identity(held.tensor), []).append(held)
    targets = [
        Target(
            names=tuple(held.full_name for held in group),
            holders=tuple(dict.fromkeys((held.owner, held.name) for held in group)),
            tensor=group[0].tensor,
            is_buffer=group[0].is_buffer,
        )
        for group in found.values()
    ]
    _require_no_other_state(module, kept, targets)
    return targets


@attrs.frozen(eq=False)
class _Held:
    """A tensor under one of its names."""

    full_name: str
    owner: nn.Module
    name: str
    tensor: torch.Tensor
    is_buffer: bool


def _held_by(module: nn.Module) -> Iterator[_Held]:
    for path, owner in module.named_modules(remove_duplicate=False):
        prefix = f"{path}." if path else ""
        everything = {"recurse": False, "remove_duplicate": False}
        for name, parameter in owner.named_parameters(**everything):
            yield _Held(prefix + name, owner, name, parameter, is_buffer=False)
        for name, buffer in owner.named_buffers(**everything):
            yield _Held(prefix + name, owner, name, buffer, is_buffer=True)


def _identity(tensor: torch.Tensor) -> tuple[Any, ...]:
    """Two names are tied if they are the same numbers of the same memory."""
    place = (tensor.untyped_storage()._cdata, tensor.storage_offset())  # noqa: SLF001
    return *place, tensor.dtype, tuple(tensor.shape), tensor.stride()


def _require_plain(held: _Held) -> None:
    tensor = held.tensor
    if is_lazy(tensor):
        problem = "got a parameter without a shape, expected a module that has run once"
        raise ContractError(held.full_name, problem)
    if type(tensor) not in _PLAIN or tensor.layout != torch.strided:
        raise ContractError(
            held.full_name,
            f"got a tensor of the kind {type(tensor).__name__}, expected a plain one: quantized "
            "and distributed modules load their weights themselves",
        )


def _require_no_other_state(
    module: nn.Module, kept: Mapping[str, Any], targets: list[Target]
) -> None:
    known = {name for target in targets for name in target.names}
    for name in kept:
        if name not in known:
            raise ContractError(
                name,
                f"got state that {type(module).__name__} keeps in a form of its own, expected "
                "parameters and buffers only",
            )


def _offered(index: WeightIndex, names: Any) -> dict[str, TensorEntry]:
    """Know the weights by what the module calls them, aliases too."""
    offered = {name: index[real] for name, real in index.aliases.items()} | dict(index)
    if not isinstance(names, Mapping):
        kind = type(names).__name__
        raise ContractError("names", f"got {kind}, expected what the module calls each weight")
    called: dict[str, TensorEntry] = {}
    for name, entry in offered.items():
        if called.setdefault(names.get(name, name), entry) is not entry:
            raise ContractError(
                "names", f"got two weights for {names.get(name, name)!a:.90}, expected one"
            )
    return called


def _shape_faults(target: Target, entries: list[TensorEntry]) -> list[tuple[str, str]]:
    expected = tuple(target.tensor.shape)
    return [
        (entry.name, f"got shape {list(entry.shape)}, expected {list(expected)}")
        for entry in entries
        if entry.shape != expected
    ]


def _may_hold(target: Target, dtype: torch.dtype) -> bool:
    """Only numbers that change smoothly have gradients."""
    is_smooth = dtype.is_floating_point or dtype.is_complex
    return target.is_buffer or is_smooth or not target.tensor.requires_grad


def _dtype_fault(target: Target, entry: TensorEntry) -> tuple[str, str]:
    wanted = target.tensor.dtype
    name = str(wanted).removeprefix("torch.")
    may_round = _may_round(wanted, torch_dtype(entry.dtype))
    hint = " (dtype='module' converts it)" if may_round else ""
    return entry.name, f"got {entry.dtype.value}, expected {name}{hint}"


def _may_round(one: torch.dtype, other: torch.dtype) -> bool:
    return one.is_floating_point and other.is_floating_point
