"""What stands in a module for a weight that is in memory only while it is needed."""

from __future__ import annotations

import copy
import sys
from collections.abc import Callable, Mapping
from typing import Any

import attrs
import torch
from torch import nn

from vlmcore.errors import ContractError
from vlmcore.weights._parts import Part
from vlmcore.weights.pool import WeightPool

__all__ = ["LazyParameters", "LazyWeight", "Placeholder"]

_GETTERS: dict[str, Callable[[WeightPool, Part], Any]] = {}


@attrs.frozen(eq=False)
class LazyWeight:
    """
    A weight that is read when it is asked for.

    Attributes:
        name: Its name in the module, for errors.
        pool: The budget that it lives in.
        part: What it comes and goes with.
        position: Which of the weights of *part* it is.
        device: Where it is then.
    """

    name: str
    pool: WeightPool
    part: Part
    position: int
    device: torch.device

    def get(self) -> nn.Parameter:
        """Return it, read now if it is not in memory; it stays as long as it is held."""
        if "torch._dynamo" in sys.modules and "compiled" not in _GETTERS:
            # Reading files is nothing to compile. What says so is large, and only loaded by those
            # who compile.
            _GETTERS["compiled"] = torch.compiler.disable(WeightPool.get)  # type: ignore[no-untyped-call]
        get = _GETTERS.get("compiled", WeightPool.get)
        weight: nn.Parameter = get(self.pool, self.part)[self.position]
        return weight


class Placeholder(nn.Parameter):
    """
    A parameter that is not in memory, and says of itself what can be said without reading it.

    Its shape, dtype and device are those that it will have. Any computation with it reads it.
    """

    lazy: LazyWeight

    def __new__(cls, lazy: LazyWeight, shape: torch.Size, dtype: torch.dtype) -> Placeholder:
        without_numbers = torch.empty(shape, dtype=dtype, device="meta")
        placeholder: Placeholder = torch.Tensor._make_subclass(cls, without_numbers, False)  # noqa: SLF001, FBT003 - as nn.Parameter does it
        placeholder.lazy = lazy
        return placeholder

    def __init__(self, *_: object) -> None:
        """Have nothing left to do."""

    @classmethod
    def __torch_function__(
        cls,
        func: Callable[..., Any],
        types: tuple[type, ...],
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        """Answer what needs no numbers, and compute the rest with the weights themselves."""
        name = _name_of(func)
        kwargs = kwargs or {}
        if args and isinstance(args[0], cls):
            if name in _OF_THE_SHAPE:
                with torch._C.DisableTorchFunctionSubclass():  # noqa: SLF001 - torch has no other
                    return func(*args, **kwargs)
            if name in _OTHERWISE:
                return _OTHERWISE[name](args[0], func, *args[1:], **kwargs)
        return func(*_present(args), **{key: _present(value) for key, value in kwargs.items()})

    def __deepcopy__(self, memo: dict[int, Any]) -> nn.Parameter:
        if id(self) not in memo:
            weight = self.lazy.get().detach().clone()
            memo[id(self)] = nn.Parameter(weight, requires_grad=False)
        copied: nn.Parameter = memo[id(self)]
        return copied

    def __reduce_ex__(self, protocol: Any) -> Any:
        return self.lazy.get().__reduce_ex__(protocol)  # type: ignore[no-untyped-call]

    def __repr__(self) -> str:  # type: ignore[override]
        return f"<weight {self.lazy.name!a:.120}, in memory only while it is needed>"


class LazyParameters(dict[str, Any]):
    """The parameters of one module by name: who asks for one gets the weight, in memory."""

    def __getitem__(self, name: str) -> Any:
        found = super().__getitem__(name)
        return found.lazy.get() if isinstance(found, Placeholder) else found

    def __deepcopy__(self, memo: dict[int, Any]) -> dict[str, Any]:
        return {name: copy.deepcopy(found, memo) for name, found in self.items()}

    def __reduce__(self) -> tuple[Any, ...]:
        return dict, (dict(self.items()),)


def _name_of(func: Callable[..., Any]) -> str:
    """Name a function of torch; what reads an attribute is called as the attribute."""
    name: str = getattr(func, "__name__", "")
    if name in ("__get__", "__set__"):
        attribute: str = func.__self__.__name__  # type: ignore[attr-defined]
        return attribute if name == "__get__" else f"{attribute} ="
    return name


def _present(value: Any) -> Any:
    """Put weights in the place of what stands for them."""
    if isinstance(value, Placeholder):
        return value.lazy.get()
    if isinstance(value, (tuple, list)):
        return type(value)(map(_present, value)) if type(value) in (tuple, list) else value
    return value


def _place(placeholder: Placeholder, func: Callable[..., Any], *_: Any, **__: Any) -> Any:
    """Answer where it is, as any tensor of that device would."""
    return func(torch.empty(0, device=placeholder.lazy.device))


def _converted(
    placeholder: Placeholder, func: Callable[..., Any], *args: Any, **kwargs: Any
) -> Any:
    """Convert it; where that changes nothing it stays what it is."""
    probe = torch.empty(0, dtype=placeholder.dtype, device=placeholder.lazy.device)
    if func(probe, *args, **kwargs) is probe:
        return placeholder
    return func(placeholder.lazy.get(), *args, **kwargs)


def _without_gradient(
    placeholder: Placeholder,
    _: Callable[..., Any],
    wanted: bool = True,  # noqa: FBT001, FBT002 - as in torch
) -> Any:
    if wanted:
        problem = "got requires_grad, and weights that come and go are for inference only"
        raise ContractError(placeholder.lazy.name, problem)
    return placeholder


def _nothing(*_: Any) -> None:
    return None


def _replaced(placeholder: Placeholder, _: Callable[..., Any], new: Any) -> None:
    if new is not placeholder:
        raise ContractError(
            placeholder.lazy.name,
            "cannot be moved or converted while it comes and goes: load it as it is wanted",
        )


def _data(placeholder: Placeholder, _: Callable[..., Any]) -> Any:
    """Give what knows of writes to it, which the data of torch does not."""
    return placeholder.lazy.get().detach()


_OF_THE_SHAPE = frozenset(
    (
        *("dim", "dtype", "element_size", "is_complex", "is_contiguous", "is_floating_point"),
        *("is_leaf", "is_quantized", "is_sparse", "itemsize", "layout", "nbytes", "ndim"),
        *("ndimension", "nelement", "numel", "requires_grad", "shape", "size", "stride"),
        *("__len__", "_has_compatible_shallow_copy_type"),
    )
)
_OTHERWISE: dict[str, Callable[..., Any]] = {
    **dict.fromkeys(
        ("device", "get_device", "is_cpu", "is_cuda", "is_meta", "is_mps", "is_xpu"), _place
    ),
    **dict.fromkeys(
        ("bfloat16", "cpu", "cuda", "double", "float", "half", "to", "type", "xpu"), _converted
    ),
    "requires_grad_": _without_gradient,
    "requires_grad =": _without_gradient,
    "grad": _nothing,
    "grad =": _nothing,
    "data": _data,
    "data =": _replaced,
}
