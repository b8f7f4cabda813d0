"""Copies of the language weights in float16, for the steps of one token on a CPU."""

from __future__ import annotations

import math
from typing import Any

import torch

from vlmcore.vlm.backends._writing import write_plainly

__all__ = ["StepCopies"]


class StepCopies:
    """
    Has the linear layers of a language model read float16 where they are given a single token.

    A step of one token reads every weight once, and that is what it costs on a CPU: half the bytes
    are read sooner. Only products with a single token are made so. The prompt, batches, everything
    between the layers, and keys and values stay in float32.

    A layer whose weights float16 cannot hold is not copied, and a product that leaves the range of
    float16 is made again from the weights themselves.

    Args:
        model: A model of transformers in float32, on the CPU.
    """

    write = staticmethod(write_plainly)  # the layers themselves read the copies

    def __init__(self, model: Any) -> None:
        modules = [*model.get_decoder().modules(), model.get_output_embeddings()]
        found = {id(each): each for each in modules if type(each) is torch.nn.Linear}
        self._linear = tuple(found.values())
        self._copied: list[_Copied] = []
        self._is_exact = False
        self.renew()

    @property
    def nbytes(self) -> int:
        """What the copies hold."""
        return sum(each.copy.nbytes for each in self._copied)

    @property
    def layers(self) -> tuple[torch.nn.Linear, ...]:
        """The layers that are copied."""
        return tuple(each.layer for each in self._copied)

    @property
    def report(self) -> str:
        """What is copied, and whether the copies are the same numbers."""
        left = len(self._linear) - len(self._copied)
        numbers = "the same numbers" if self._is_exact else "rounded"
        apart = f", {left} layers left in float32" if left else ""
        return f"float16 ({numbers}{apart})"

    def renew(self) -> None:
        """Copy the weights again, as they are now."""
        self.drop()
        for layer in self._linear:
            copy = layer.weight.to(torch.float16)
            if copy.isfinite().all():
                self._copied.append(_Copied(layer, copy))
        self._is_exact = all(each.is_exact for each in self._copied)
        for each in self._copied:
            vars(each.layer)["forward"] = each  # before that of the class

    def drop(self) -> None:
        """Have the layers read their own weights again, and give the copies' memory back."""
        for each in self._copied:
            del vars(each.layer)["forward"]
        self._copied = []


class _Copied:
    """The ``forward`` of one linear layer."""

    def __init__(self, layer: torch.nn.Linear, copy: torch.Tensor) -> None:
        self.layer, self.copy = layer, copy
        self._forward = layer.forward

    @property
    def is_exact(self) -> bool:
        return torch.equal(self.copy.to(self.layer.weight.dtype), self.layer.weight)

    def __call__(self, hidden: torch.Tensor) -> torch.Tensor:
        """Take what is to be multiplied, shape ``[..., D]``, and return it, ``[..., E]``."""
        if hidden.numel() != self.layer.in_features:
            return self._forward(hidden)
        # A product of a matrix and a vector: that of two matrices is several times slower.
        product = torch.mv(self.copy, hidden.reshape(-1).half()).float()
        if not math.isfinite(product.sum().item()):
            return self._forward(hidden)
        if self.layer.bias is not None:
            product += self.layer.bias
        return product.view(*hidden.shape[:-1], -1)
