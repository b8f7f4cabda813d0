"""What is asked of a generation, and what comes back."""

from __future__ import annotations

import enum
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import attrs

from vlmcore._arrays import require_count, require_finite_between, require_positive
from vlmcore.errors import ContractError, StructureError
from vlmcore.limits import PromptLimits
from vlmcore.vlm.batch import Batched
from vlmcore.vlm.lookup import LookedUp
from vlmcore.vlm.outputs import JsonOutput, output_of
from vlmcore.vlm.reuse import Reused

__all__ = [
    "CancelToken",
    "Generation",
    "GenerationCache",
    "GenerationOptions",
    "MatmulPrecision",
    "ServerReport",
    "StopReason",
    "Timings",
]


class StopReason(enum.Enum):
    """Why a generation ended."""

    END = "end"  # the model said that it was done, or wrote a stop text
    LENGTH = "length"  # max_new_tokens were written: the text is cut
    CANCELLED = "cancelled"  # the caller stopped it
    REPETITION = "repetition"  # the model fell into a loop; the text is not an answer
    FILTERED = "filtered"  # the server withheld the answer, or the rest of it, for its content


class GenerationCache(enum.Enum):
    """How keys and values of earlier tokens are kept while generating."""

    DYNAMIC = "dynamic"  # grows as needed; works with every model
    STATIC = "static"  # allocated once, and compiled where the device gains by it


class MatmulPrecision(enum.Enum):
    """Precision of float32 matrix products while generating; the names are those of PyTorch."""

    HIGHEST = "highest"  # float32 throughout
    HIGH = "high"  # TensorFloat-32 where the device has it


class CancelToken:
    """
    Stops the generations that it was given to, from any thread.

    One token may be given to many calls; once cancelled it stays so.

    Example:
        >>> token = CancelToken()
        >>> token.cancel()
        >>> token.cancelled
        True
    """

    __slots__ = ("_calls", "_event")

    def __init__(self) -> None:
        self._event = threading.Event()
        self._calls: list[Callable[[], None]] = []

    @property
    def cancelled(self) -> bool:
        """Whether `cancel` has been called."""
        return self._event.is_set()

    def cancel(self) -> None:
        """Ask every generation that holds this token to stop within one token."""
        self._event.set()
        for call in tuple(self._calls):
            call()

    @contextmanager
    def calling(self, call: Callable[[], None]) -> Iterator[None]:
        """
        Have *call* called when the token is cancelled within the block, at once if it is already.

        It is called in the thread that cancels, which may be a handler of signals, perhaps twice:
        it has to be quick, and to wait for nothing.
        """
        self._calls.append(call)
        try:
            if self.cancelled:
                call()
            yield
        finally:
            self._calls.remove(call)


_LIMITS = PromptLimits()
_COLDEST = 0.001  # below it, logits over temperature leave the range of float32


def _stop_texts(value: object) -> object:
    """A lone string is one stop text, not a tuple of its characters."""
    if isinstance(value, str):
        return (value,)
    return tuple(value) if isinstance(value, list) else value


@attrs.frozen(kw_only=True)
class GenerationOptions:
    """
    How a model is to answer. The defaults are greedy, so that an answer can be repeated.

    Attributes:
        max_new_tokens: The longest answer in tokens; an answer cut there says
            `StopReason.LENGTH`.
        temperature: 0 takes the likeliest token each time (greedy); 0.001 to 100 samples.
        top_p: Sample from the likeliest tokens that together have this probability. 1 is off.
        top_k: Sample from this many likeliest tokens at the most. ``None`` is off.
        seed: Seed of the sampling. ``None`` draws a new one each time.
        repetition_penalty: Above 1 makes tokens that were written already less likely. 1 is off.
        stop: Texts that end the answer; the stop text itself is not part of it.
        thinking: Ask models that can to think first, or not to. ``None`` leaves it to the model.
        stop_on_repetition: End an answer that has fallen into an endless loop, with
            `StopReason.REPETITION`, instead of paying for it until *max_new_tokens*.
        cache: How the key-value cache is kept.
        prompt_lookup: Guess tokens from what the prompt and the answer said before, and write
            several at once where the guess holds: for answers that repeat their prompt. A model in
            this process does so where the answer is greedy; `Generation.looked_up` tells.
        matmul_precision: Precision of float32 matrix products, set for this generation only.
        output: What the answer is to be: ``"text"``, which is ``None``; ``"json"`` for any JSON
            object; a JSON Schema; a class of attrs, a dataclass or a pydantic model; or a
            `vlmcore.vlm.outputs.JsonOutput`, which says more. Kept as that.
    """

    max_new_tokens: int = 512
    temperature: float = 0.0
    top_p: float = 1.0
    top_k: int | None = None
    seed: int | None = None
    repetition_penalty: float = 1.0
    stop: tuple[str, ...] = attrs.field(default=(), converter=_stop_texts)
    thinking: bool | None = None
    stop_on_repetition: bool = True
    cache: GenerationCache = GenerationCache.DYNAMIC
    prompt_lookup: bool = False
    matmul_precision: MatmulPrecision = MatmulPrecision.HIGHEST
    output: JsonOutput | None = attrs.field(default=None, converter=output_of)

    def __attrs_post_init__(self) -> None:
        require_count(max_new_tokens=self.max_new_tokens)
        if self.max_new_tokens > _LIMITS.max_new_tokens:
            most = _LIMITS.max_new_tokens
            raise ContractError("max_new_tokens", f"got more than {most:,}, expected at most that")
        if self.temperature != 0:
            require_finite_between(_COLDEST, 100.0, temperature=self.temperature)
        require_positive(top_p=self.top_p, repetition_penalty=self.repetition_penalty)
        if self.top_p > 1:
            raise ContractError("top_p", f"got {self.top_p}, expected a number from above 0 to 1")
        if self.top_k is not None:
            require_count(top_k=self.top_k)
        for field in ("thinking", "stop_on_repetition", "prompt_lookup"):
            value = getattr(self, field)
            if not isinstance(value, bool) and not (field == "thinking" and value is None):
                raise ContractError(field, f"got {value!r:.80}, expected True or False")
        self._check_seed()
        self._check_stop()
        for field, kind in (("cache", GenerationCache), ("matmul_precision", MatmulPrecision)):
            if not isinstance(getattr(self, field), kind):
                names = ", ".join(str(member) for member in kind)
                raise ContractError(field, f"got {getattr(self, field)!r}, expected one of {names}")

    def _check_seed(self) -> None:
        seed = self.seed
        if seed is None:
            return
        if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed < 1 << 63:
            # Python refuses to write out whole numbers of thousands of digits.
            shown = "a huge number" if isinstance(seed, int) and abs(seed) >> 128 else repr(seed)
            raise ContractError("seed", f"got {shown}, expected a whole number from 0 to 2**63 - 1")

    def _check_stop(self) -> None:
        texts = self.stop
        if not isinstance(texts, tuple) or not all(isinstance(t, str) and t for t in texts):
            raise ContractError("stop", f"got {texts!r}, expected texts of one character or more")

    @property
    def samples(self) -> bool:
        """Whether the answer is sampled, not greedy."""
        return self.temperature > 0


@attrs.frozen(kw_only=True)
class Timings:
    """
    Where the time of a generation went, in seconds of a monotonic clock.

    Attributes:
        prepare_s: From the call until the model was given its inputs.
        first_token_s: From the call until the first token was written; ``None`` if none was.
        total_s: From the call until the end. For a batch, each answer has the batch's.
    """

    prepare_s: float
    first_token_s: float | None
    total_s: float


@attrs.frozen(kw_only=True)
class ServerReport:
    """
    What a server said about an answer.

    Attributes:
        finish_reason: Why the answer ended, in the server's word; empty if it did not say.
        model: The model, as the server names it; empty if it did not.
        response_id: What the server calls the answer; empty if it did not.
        cached_tokens: Tokens of the prompt that it had kept from before; ``None`` if not told.
        reasoning_tokens: Tokens of the reasoning; ``None`` if not told.
        attempts: How often it was asked, from 1.
        left_out: Fields of the request that it refused, and that were left out then.
    """

    finish_reason: str = ""
    model: str = ""
    response_id: str = ""
    cached_tokens: int | None = None
    reasoning_tokens: int | None = None
    attempts: int = 1
    left_out: tuple[str, ...] = ()


@attrs.frozen(kw_only=True)
class Generation:
    """
    What a model answered.

    Attributes:
        text: The answer, without special tokens and without the reasoning.
        reasoning: What the model thought before the answer, kept apart; empty if it did not.
        stop_reason: Why it ended. Only `StopReason.END` is a whole answer.
        prompt_tokens: Tokens that the model was given, those of the images included; ``None`` if a
            server did not say.
        new_tokens: Tokens that the model wrote, those of the reasoning included; ``None`` if a
            server did not say.
        timings: Where the time went; ``None`` where it was not measured.
        served: What the server said, whose counts those of the tokens are then; ``None`` for a
            model in this process, where they are counted.
        reused: What was taken over from earlier answers; ``None`` for a server.
        batched: The batch that it was answered in, by ``generate_many`` of a model in this process.
        looked_up: What guessing it from its prompt came to, where a model in this process was asked
            to.
        parsed: What the answer says, where JSON was asked for: plain values, or an instance of the
            class that was asked for.
        structure_error: What is wrong with the answer, where JSON was asked for and it is not so.
    """

    text: str
    stop_reason: StopReason
    prompt_tokens: int | None
    new_tokens: int | None
    reasoning: str = ""
    timings: Timings | None = None
    served: ServerReport | None = None
    reused: Reused | None = None
    batched: Batched | None = None
    looked_up: LookedUp | None = None
    parsed: Any = attrs.field(default=None, hash=False)
    structure_error: StructureError | None = attrs.field(default=None, eq=False)

    @property
    def value(self) -> Any:
        """
        What the answer says, where JSON was asked for.

        Raises:
            StructureError: If the answer is cut, is no JSON, or does not fit.
        """
        if self.structure_error is not None:
            raise self.structure_error
        return self.parsed
