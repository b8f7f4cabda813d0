"""
What is computed once for many prompts: outputs of the vision tower, keys and values of a prefix.

Vision outputs are the very numbers that the model would compute again. Keys and values of a prefix
are, too; but what follows them is then computed in a pass of its own, whose sums may be rounded
otherwise than those of one pass over all. In float32 the tests see the same tokens; in shorter
formats a rounding weighs more. So prefixes are taken over in float32 only, and not where a seed
promises the same sample.
"""

from __future__ import annotations

import inspect
from collections.abc import Hashable, Iterator
from typing import Any

import attrs
import torch
import transformers

from vlmcore.limits import ReuseLimits
from vlmcore.vlm.backends._conversation import OF_TEXT, ModelInputs
from vlmcore.vlm.backends._kept import KeptBytes
from vlmcore.vlm.backends._writing import CACHE, keeps_every_token
from vlmcore.vlm.generation import GenerationCache, GenerationOptions
from vlmcore.vlm.reuse import Reused, ReuseReport

__all__ = ["KeptWork", "Turn"]

_library: Any = transformers  # its annotations are partial
_PIXELS = {"image": "pixel_values", "video": "pixel_values_videos"}
_VISION_TOKENS = ("image_token_id", "image_token_index", "video_token_id", "video_token_index")
# Tokens that are always computed: a lone one would be taken for a step of the answer.
_LEFT = 2


@attrs.frozen(eq=False)
class _Prefix:
    """The tokens of a prompt, ``[L]``, with keys and values of each layer, ``[1, H, L, D]``."""

    ids: torch.Tensor
    layers: list[tuple[torch.Tensor, torch.Tensor]]
    rope_deltas: torch.Tensor | None

    @property
    def nbytes(self) -> int:
        return sum(keys.nbytes + values.nbytes for keys, values in self.layers)


class KeptWork:
    """What one model keeps. Used by one thread at a time: by whose turn it is."""

    def __init__(self) -> None:
        self.visions: KeptBytes[Any] = KeptBytes()
        self.prefixes: KeptBytes[_Prefix] = KeptBytes()
        self.report = ReuseReport()

    def clear(self) -> None:
        """Give all memory back."""
        self.visions.clear()
        self.prefixes.clear()
        self.count()

    def count(self, **more: int) -> None:
        """Add *more* to the report, and tell in it what is kept now."""
        sums = {name: getattr(self.report, name) + count for name, count in more.items()}
        self.report = attrs.evolve(
            self.report,
            vision_bytes=self.visions.nbytes,
            prefix_bytes=self.prefixes.nbytes,
            **sums,
        )


class Turn:
    """
    One run of a model: what it is given in place of what is known, and what is kept of it.

    Args:
        model: A model of transformers.
        kept: What it keeps.
        inputs: What it is asked.
        options: How it is to answer.
        limits: What may be kept, and no more than that is left behind; ``None`` keeps and takes
            nothing, and leaves alone what others keep.
    """

    def __init__(
        self,
        model: Any,
        kept: KeptWork,
        inputs: ModelInputs,
        options: GenerationOptions,
        limits: ReuseLimits | None,
    ) -> None:
        self._model, self._kept, self._limits = model, kept, limits
        self._inputs = inputs
        self._ids = inputs.tensors["input_ids"]
        self._key: Hashable = (inputs.pictures, options.matmul_precision)
        self._cache: Any = None
        self._known: _Prefix | None = None
        self._is_extended = False
        self.reused = Reused(fresh_because=self._obstacle(options))

    def arguments(self) -> dict[str, Any]:
        """Return the arguments of ``generate``, with what is known in place of its pixels."""
        tensors = self._inputs.tensors
        if self._limits is None:
            return tensors
        given = self._with_prefix() if not self.reused.fresh_because else {}
        if self.reused.prefix_tokens:
            return {**{name: tensors[name] for name in OF_TEXT if name in tensors}, **given}
        return {**self._with_vision(self._limits), **given}

    def keep(self) -> None:
        """Keep keys and values of the prompt, once the model has written."""
        if self._limits is None:
            return
        if self._cache is not None and (self._known is None or self._is_extended):
            self._keep_prefix(self._limits.max_prefix_bytes)
        self._kept.visions.trim(self._limits.max_vision_bytes)
        self._kept.prefixes.trim(self._limits.max_prefix_bytes)
        self._kept.count()

    def _keep_prefix(self, limit: int) -> None:
        length = self._ids.shape[1]
        layers = _whole_layers(self._cache, length)
        if not layers:
            return
        deltas = getattr(self._model.base_model, "rope_deltas", None)
        prefix = _Prefix(
            ids=self._ids[0].clone(),
            layers=[
                (keys[:, :, :length].clone(), values[:, :, :length].clone())
                for keys, values in layers
            ],
            rope_deltas=None if deltas is None else deltas.clone(),
        )
        if self._known is not None:
            self._kept.prefixes.drop(self._key_of(self._known.ids))
        self._kept.prefixes.put(self._key_of(prefix.ids), prefix, prefix.nbytes, limit=limit)

    def _key_of(self, ids: torch.Tensor) -> Hashable:
        return self._key, tuple(ids.tolist())

    def _obstacle(self, options: GenerationOptions) -> str:
        """Say why no prefix can be taken over, or nothing."""
        places_unknown = self._inputs.pictures and self._last_vision_token() < 0
        obstacles = {
            "nothing is kept: reuse is off": self._limits is None,
            "several prompts are answered at once": len(self._ids) != 1,
            "the cache of keys and values is static": options.cache is not GenerationCache.DYNAMIC,
            "a seed promises the same sample each time": options.samples
            and options.seed is not None,
            "in any format but float32, rounding could change the answer": self._model.dtype
            is not torch.float32,
            "it is not known where the pictures stand in its prompts": places_unknown,
            "its cache of keys and values cannot be shortened": not _can_be_shortened(self._model),
        }
        return next((reason for reason, is_so in obstacles.items() if is_so), "")

    def _last_vision_token(self) -> int:
        """Return the place of the last token of a picture in a single prompt; -1 for none."""
        config = self._model.config
        tokens = [getattr(config, name, None) for name in _VISION_TOKENS]
        wanted = torch.tensor([t for t in tokens if isinstance(t, int)], device=self._ids.device)
        places = torch.isin(self._ids[0], wanted).nonzero()
        return int(places[-1]) if len(places) else -1

    def _with_prefix(self) -> dict[str, Any]:
        config = self._model.config.get_text_config(decoder=True)
        cache = self._cache = _library.DynamicCache(config=config)
        known, length = self._longest_known()
        if known is None:
            self._kept.count(prefix_misses=1)
            return {CACHE: cache}
        for index, (keys, values) in enumerate(known.layers):
            cache.update(keys[:, :, :length], values[:, :, :length], index)
        if known.rope_deltas is not None:
            self._model.base_model.rope_deltas = known.rope_deltas.clone()
        self._known, self._is_extended = known, length == len(known.ids)
        self.reused = Reused(vision=bool(self._inputs.pictures), prefix_tokens=length)
        self._kept.count(prefix_hits=1, prefix_tokens=length)
        return {CACHE: cache}

    def _longest_known(self) -> tuple[_Prefix | None, int]:
        """Find what begins most like this prompt, and has all its pictures in what it shares."""
        best, longest = None, max(self._last_vision_token(), 0)
        for key, prefix in self._kept.prefixes:
            if isinstance(key, tuple) and key[0] == self._key:
                shared = min(_shared(prefix.ids, self._ids[0]), self._ids.shape[1] - _LEFT)
                if shared > longest:
                    best, longest = prefix, shared
        if best is not None:
            self._kept.prefixes.get(self._key_of(best.ids))
        return best, longest

    def _with_vision(self, limits: ReuseLimits) -> dict[str, Any]:
        """Return the arguments with the vision tower's outputs in place of its inputs."""
        tensors = dict(self._inputs.tensors)
        shown = [kind for kind, pixels in _PIXELS.items() if pixels in tensors]
        if not shown or not _takes_vision_outputs(self._model, shown):
            return tensors
        outputs = self._kept.visions.get(self._key)
        if outputs is None:
            outputs = {kind: _look(self._model, kind, tensors) for kind in shown}
            nbytes = sum(tensor.nbytes for tensor in _tensors(outputs))
            limit = limits.max_vision_bytes
            self._kept.visions.put(self._key, outputs, nbytes, limit=limit)
            self._kept.count(vision_misses=1)
        else:
            self.reused = attrs.evolve(self.reused, vision=True)
            self._kept.count(vision_hits=1)
        for kind in shown:
            del tensors[_PIXELS[kind]]
        return {**tensors, "mm_encoder_outputs": dict(outputs)}


def _shared(one: torch.Tensor, other: torch.Tensor) -> int:
    """Count the tokens with which both begin."""
    length = min(len(one), len(other))
    differ = (one[:length] != other[:length]).nonzero()
    return int(differ[0]) if len(differ) else length


def _whole_layers(cache: Any, length: int) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """Return keys and values of each layer, or nothing where one does not hold the prompt."""
    layers = [(layer.keys, layer.values) for layer in cache.layers if layer.is_initialized]
    held = all(keys.shape[2] >= length for keys, _ in layers)
    return layers if held and len(layers) == len(cache.layers) else []


def _can_be_shortened(model: Any) -> bool:
    """Whether each layer keeps every token, as one that slides or sums up does not."""
    config = model.config.get_text_config(decoder=True)
    return keeps_every_token(_library.DynamicCache(config=config))


def _takes_vision_outputs(model: Any, kinds: list[str]) -> bool:
    known = "mm_encoder_outputs" in inspect.signature(model.forward).parameters
    return known and all(hasattr(model.base_model, f"get_{kind}_features") for kind in kinds)


def _look(model: Any, kind: str, tensors: dict[str, Any]) -> Any:
    """Compute what the vision tower makes of its inputs, and leave out what is not used later."""
    features = getattr(model.base_model, f"get_{kind}_features")
    named = inspect.signature(features).parameters
    with torch.no_grad():
        made = features(**{n: t for n, t in tensors.items() if n in named}, return_dict=True)
    unused = ("last_hidden_state", "hidden_states", "attentions")
    return type(made)(**{name: value for name, value in made.items() if name not in unused})


def _tensors(value: Any) -> Iterator[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for each in value:
            yield from _tensors(each)
    elif isinstance(value, dict):
        for each in value.values():
            yield from _tensors(each)
