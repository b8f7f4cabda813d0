"""
A second set of modules over the weights of a model, for steps of one token that are compiled.

Keys and values lie in a place of fixed length, so that the layers see the same shapes at each step.
Only the layers and the head are compiled, each layer by what was compiled for the first: that takes
seconds where the whole model would take minutes. What is between them stays as the model has it.
"""

from __future__ import annotations

import copy
from typing import Any

import torch
import transformers

__all__ = ["HalvedLinear", "Twin"]

_ATTENTION = "vlmcore_one_token"
_OF_OTHER_KINDS = ("softcap", "s_aux", "sliding_window", "position_bias")
_library: Any = transformers  # its annotations are partial


class HalvedLinear(torch.nn.Module):
    """
    A linear layer for one token, with weights in 16 bits and products and sums in float32.

    Args:
        layer: The layer; its bias is used as it is.
        weights: A copy of its weights, ``[E, D]``.
    """

    def __init__(self, layer: torch.nn.Linear, weights: torch.Tensor) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(weights, requires_grad=False)
        self.bias = layer.bias

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        """Take a token, ``[1, 1, D]``, and return its product, ``[1, 1, E]``."""
        product = (self.weight.float() * hidden.reshape(1, -1)).sum(dim=-1)
        if self.bias is not None:
            product = product + self.bias
        return product.view(*hidden.shape[:-1], -1)


class Twin:
    """
    The modules.

    Args:
        model: A model of transformers in float32, on the CPU, each layer of whose language model
            attends to every token before.
        formats: Which linear layers of its language model get copies of their weights, and in
            which format; the others share theirs with the model.
    """

    def __init__(self, model: Any, formats: dict[torch.nn.Linear, torch.dtype]) -> None:
        shared = {id(each): each for each in (*model.parameters(), *model.buffers())}
        self.model: Any = copy.deepcopy(model, shared)
        twins = dict(zip(model.modules(), self.model.modules(), strict=True))
        self._halved = {
            twins[layer]: HalvedLinear(layer, layer.weight.detach().to(dtype))
            for layer, dtype in formats.items()
        }
        self._replace()
        self.model.set_attn_implementation(_ATTENTION)
        decoder = self.model.get_decoder()
        decoder.layers = torch.nn.ModuleList(
            _CompiledLayer(layer, place) for place, layer in enumerate(decoder.layers)
        )
        head = self.model.get_output_embeddings()
        if isinstance(head, HalvedLinear):  # another one is a single product as it is
            head.compile(dynamic=False, fullgraph=True)

    @property
    def nbytes(self) -> int:
        """What the copies hold."""
        return sum(each.weight.nbytes for each in self._halved.values())

    def cache(self, known: Any, room: int, *, tokens: int) -> Any:
        """
        Return a cache of fixed length with the keys and values of another.

        Args:
            known: The other one.
            room: How many tokens are to have their place in it.
            tokens: How many the other one holds.
        """
        config = self.model.config.get_text_config(decoder=True)
        cache = _library.StaticCache(config=config, max_cache_len=room)
        for place, layer in enumerate(known.layers):
            cache.update(layer.keys[:, :, :tokens], layer.values[:, :, :tokens], place)
        return cache

    def _replace(self) -> None:
        for parent in list(self.model.modules()):
            for name, child in list(parent.named_children()):
                if child in self._halved:
                    setattr(parent, name, self._halved[child])


class _CompiledLayer(torch.nn.Module):
    """
    One layer of the twin, which is given its own part of the cache.

    All layers say that they are the first one: what was compiled for it then does for all.
    """

    def __init__(self, layer: torch.nn.Module, place: int) -> None:
        super().__init__()
        for module in layer.modules():
            if hasattr(module, "layer_idx"):
                module.layer_idx = 0  # type: ignore[assignment]
        layer.compile(fullgraph=True)
        self.layer, self._place = layer, place

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:  # as its kind of attention, which the decoder asks for
            return getattr(super().__getattr__("layer"), name)

    def forward(self, hidden: torch.Tensor, *, cache: Any, **given: Any) -> Any:
        # Positions come as embeddings; as numbers they come where there is no picture, and what is
        # compiled with them would not do without.
        given.pop("position_ids", None)
        return self.layer(hidden, cache=_PartOfCache(cache.layers[self._place]), **given)


class _PartOfCache:
    """Keys and values of one layer."""

    def __init__(self, layer: Any) -> None:
        self._layer = layer

    def update(
        self, keys: torch.Tensor, values: torch.Tensor, *_: Any, **__: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        grown: tuple[torch.Tensor, torch.Tensor] = self._layer.update(keys, values)
        return grown


def _attend(  # noqa: PLR0917 - as transformers calls it
    module: torch.nn.Module,  # noqa: ARG001
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    scaling: float | None = None,
    **given: Any,
) -> tuple[torch.Tensor, None]:
    """
    Attend with one token to all before.

    Heads that share keys and values are taken together, so that these are read once and copied for
    none of them.

    Args:
        module: The attention; not asked for anything.
        query: ``[1, G * H, 1, D]``, with G heads for each of H heads of keys and values.
        key: ``[1, H, S, D]``.
        value: ``[1, H, S, D]``.
        attention_mask: ``[1, 1, 1, S]``, true where there is a token.
        scaling: By what products are multiplied; else by ``1 / sqrt(D)``.
        given: More, as dropout, that changes nothing here.

    Raises:
        NotImplementedError: If it is told anything that would.

    Returns:
        ``[1, 1, G * H, D]``, and nothing.
    """
    unknown = [name for name in _OF_OTHER_KINDS if given.get(name) is not None]
    if unknown:
        raise NotImplementedError(f"its attention is told {', '.join(unknown)}")
    heads, size = key.shape[1], query.shape[-1]
    grouped = query.reshape(1, heads, -1, size)
    attended = torch.nn.functional.scaled_dot_product_attention(
        grouped, key, value, attn_mask=attention_mask, scale=scaling
    )
    return attended.reshape(1, 1, -1, value.shape[-1]), None


_library.AttentionInterface.register(_ATTENTION, _attend)
_library.AttentionMaskInterface.register(_ATTENTION, _library.masking_utils.sdpa_mask)
