"""Steps of one token that are compiled, on a CPU."""

from __future__ import annotations

import warnings
from typing import Any

import torch
import transformers
from torch import _dynamo  # settings that it documents

from vlmcore.errors import UnsupportedModelError
from vlmcore.vlm.backends._twin import Twin
from vlmcore.vlm.backends._writing import (
    CACHE,
    IS_KNOWN_RELEASE,
    Writer,
    Writing,
    cache_of,
    keeps_every_token,
    write_plainly,
)

__all__ = ["CompiledSteps"]

_library: Any = transformers  # its annotations are partial
_SHORTEST = 256  # tokens of the shortest cache; the next ones are twice as long
_NEAR, _NEAR_ROUNDED = 1e-4, 0.05  # of the largest logit: sums in another order, rounded weights
_MOST_FORMS = 256  # of one layer: sizes of other models in this process count, too


class CompiledSteps:
    """
    A loop for ``generate`` of transformers, as its ``custom_generate``, for a single prompt.

    The prompt is read by the model itself. Steps read each weight once, and that is what they cost:
    layers whose weights 16 bits can hold exactly, as those of checkpoints in 16 bits, get copies of
    half as many bytes, which are multiplied and summed in float32.

    Args:
        model: A model of transformers in float32, on the CPU.
        name: Its name, for errors.
        rounds: Whether weights that 16 bits cannot hold exactly are rounded to float16; those that
            it cannot hold at all stay as they are.

    Raises:
        UnsupportedModelError: If its steps cannot be compiled, or not here.
    """

    def __init__(self, model: Any, *, name: str, rounds: bool) -> None:
        _require_known(model, name)
        modules = [*model.get_decoder().modules(), model.get_output_embeddings()]
        linear = list(dict.fromkeys(each for each in modules if type(each) is torch.nn.Linear))
        formats = {layer: _format(layer.weight, rounds=rounds) for layer in linear}
        halved = {layer: each[0] for layer, each in formats.items() if each is not None}
        self._left = len(linear) - len(halved)
        self._is_exact = all(each[1] for each in formats.values() if each is not None)
        self._twin: Twin | None = Twin(model, halved)
        self._compile(model, name)

    @property
    def nbytes(self) -> int:
        """What the copies hold."""
        return 0 if self._twin is None else self._twin.nbytes

    @property
    def report(self) -> str:
        """What steps read, and whether these are the same numbers."""
        numbers = "the same numbers" if self._is_exact else "rounded to float16"
        left = f", {self._left} layers read in float32" if self._left else ""
        return f"compiled ({numbers}{left})"

    def drop(self) -> None:
        """Give the copies' memory back."""
        self._twin = None

    def write(
        self,
        model: Any,
        input_ids: torch.Tensor,
        *,
        logits_processor: Any,
        stopping_criteria: Any,
        generation_config: Any,
        **given: Any,
    ) -> torch.Tensor:
        """Write after *input_ids*, ``[B, L]``; several prompts as transformers does it."""
        mask = given.get("attention_mask")
        padded = mask is not None and not bool(mask.all())
        if len(input_ids) != 1 or padded or not keeps_every_token(cache_of(given)):
            return write_plainly(
                model,
                input_ids,
                logits_processor=logits_processor,
                stopping_criteria=stopping_criteria,
                generation_config=generation_config,
                **given,
            )
        for name in ("synced_gpus", "streamer"):
            given.pop(name, None)
        writing = Writing(model, input_ids, logits_processor, stopping_criteria, generation_config)
        outputs = writing.read_prompt(given)
        writing.choose(outputs.logits[0, -1])
        with _dynamo.config.patch(recompile_limit=_MOST_FORMS):
            return self._go_on(writing, given, outputs)

    def _go_on(self, writing: Writing, given: dict[str, Any], outputs: Any) -> torch.Tensor:
        twin = self._twin
        assert twin is not None
        room = 0
        while not writing.is_over():
            given = writing.grown(given, outputs, 1)
            length = writing.ids.shape[1]
            if length > room:
                room = max(_SHORTEST, 1 << (length - 1).bit_length())
                cache = twin.cache(cache_of(outputs), room, tokens=length - 1)
            inputs = writing.inputs(given | {CACHE: cache}, [])
            outputs = twin.model(**inputs, return_dict=True)
            writing.choose(outputs.logits[0, -1])
        return writing.ids

    def _compile(self, model: Any, name: str) -> None:
        """Try a step as it is, then compile the layers at two lengths, which do for all others."""
        assert self._twin is not None
        asked = "decoding='compiled' cannot be had"
        try:
            with torch.compiler.set_stance("force_eager"):
                apart = _apart(model, self._twin)
            if not apart < (_NEAR if self._is_exact else _NEAR_ROUNDED):  # it may be no number
                told = f"{asked}: its steps would tell of other tokens (logits {apart:.2g} apart)"
                raise UnsupportedModelError(name, f"{told}; use another decoding")
            with warnings.catch_warnings():
                # PyTorch imports parts of its own here that it calls deprecated.
                warnings.simplefilter("ignore", DeprecationWarning)
                for length in (2, _SHORTEST):
                    _generate(model, length, self.write)
        except RuntimeError as error:
            inner = getattr(error, "inner_exception", error)
            said = (str(inner).strip() or type(inner).__name__).splitlines()[0]
            needs = "" if isinstance(error, NotImplementedError) else "; it takes a C++ compiler"
            problem = f"{asked}: {said}{needs}; use another decoding"
            raise UnsupportedModelError(name, problem) from error


def _apart(model: Any, twin: Twin) -> float:
    """Return how far a step of the twin is from that of the model, as part of its largest logit."""
    found: list[float] = []

    def write(model: Any, input_ids: torch.Tensor, **given: Any) -> torch.Tensor:
        names = ("logits_processor", "stopping_criteria", "generation_config")
        writing = Writing(model, input_ids, *(given.pop(name) for name in names))
        for name in ("synced_gpus", "streamer"):
            given.pop(name, None)
        outputs = writing.read_prompt(given)
        writing.choose(outputs.logits[0, -1])
        given = writing.grown(given, outputs, 1)
        cache = twin.cache(cache_of(outputs), _SHORTEST, tokens=writing.ids.shape[1] - 1)
        step = twin.model(**writing.inputs(given | {CACHE: cache}, []), return_dict=True)
        expected = model(**writing.inputs(given, []), return_dict=True).logits
        found.append(float((step.logits - expected).abs().max() / expected.abs().max()))
        return writing.ids

    _generate(model, 2, write)
    return found[0]


def _generate(model: Any, length: int, write: Writer) -> None:
    """Have two tokens written after a prompt of no meaning."""
    ids = torch.ones((1, length), dtype=torch.long)
    two = transformers.GenerationConfig(max_new_tokens=2, min_new_tokens=2, pad_token_id=0)
    model.generate(
        input_ids=ids,
        attention_mask=torch.ones_like(ids),
        generation_config=two,
        custom_generate=write,
    )


def _require_known(model: Any, name: str) -> None:
    decoder = model.get_decoder()
    cache = _library.DynamicCache(config=model.config.get_text_config(decoder=True))
    obstacles = {
        "transformers before 5 takes its steps otherwise": not IS_KNOWN_RELEASE,
        "not every layer of it attends to every token before": not keeps_every_token(cache),
        "its layers are not where other models have theirs": not isinstance(
            getattr(decoder, "layers", None), torch.nn.ModuleList
        ),
    }
    for reason, is_so in obstacles.items():
        if is_so:
            raise UnsupportedModelError(
                name, f"decoding='compiled' cannot be had: {reason}; use another decoding"
            )


def _format(weights: torch.Tensor, *, rounds: bool) -> tuple[torch.dtype, bool] | None:
    """Choose the format of a copy, and say whether it holds the same numbers."""
    for dtype in (torch.float16, torch.bfloat16):
        if torch.equal(weights.to(dtype).to(weights.dtype), weights):
            return dtype, True
    if rounds and bool(weights.to(torch.float16).isfinite().all()):
        return torch.float16, False
    return None
