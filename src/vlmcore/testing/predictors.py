"""A predictor without a model: it answers from its prompt, at once or as slowly as a test needs."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import final

from vlmcore._arrays import require_count, require_finite_between
from vlmcore.errors import GenerationError, ModelError
from vlmcore.vlm.answers import THINKING_TAGS, AnswerWriter
from vlmcore.vlm.generation import (
    CancelToken,
    Generation,
    GenerationOptions,
    StopReason,
    Timings,
)
from vlmcore.vlm.predictor import GenerationStream, PredictorInfo
from vlmcore.vlm.prompt import Prompt
from vlmcore.vlm.structure import mended, required, structured

__all__ = ["EchoPredictor", "echo"]

_GREEDY = GenerationOptions()
_TOKEN = re.compile(r"\s*\S+")
_ROUNDS_BEFORE_A_LOOP_IS_SEEN = 3


def echo(prompt: Prompt) -> str:
    """
    Say back what *prompt* holds: its texts, and the size and mean colour of what is to be seen.

    Example:
        >>> import numpy as np
        >>> red = np.full((2, 3, 3), (255, 0, 0), np.uint8)
        >>> echo(Prompt(text="What is this?", images=(red,)))
        'What is this? [image 3x2 #ff0000]'
    """
    parts = [prompt.text.strip()]
    if prompt.system.strip():
        parts.insert(0, f"[system {prompt.system.strip()}]")
    for image in prompt.images:
        height, width, _ = image.shape
        red, green, blue = (round(float(mean)) for mean in image.mean(axis=(0, 1)))
        parts.append(f"[image {width}x{height} #{red:02x}{green:02x}{blue:02x}]")
    if prompt.video is not None:
        frames, height, width, _ = prompt.video.shape
        parts.append(f"[video {frames} frames {width}x{height}]")
    return " ".join(parts)


@final
class EchoPredictor:
    """
    A `vlmcore.vlm.predictor.Predictor` that repeats its prompt, for tests of code that uses one.

    It keeps the whole contract and needs no model: `vlmcore.testing.check_predictor` passes. A
    token is a word with the white space before it; sampling options change nothing. Like a model's,
    its answer loses the white space at its ends, and thinking tags in it are taken for reasoning.

    Args:
        answer: What it answers to a prompt; by default `echo`.
        thoughts: What it thinks before it answers, unless the options say not to.
        delay_s: How long each token takes, in seconds.
        fails_after: It fails with `GenerationError` once it has written this many tokens.
        loops: It falls into an endless loop of its answer.
        model: The name under which it is known.

    Raises:
        ContractError: If *delay_s* is not a number of seconds from 0 to 3600.

    Example:
        >>> with EchoPredictor() as predictor:
        ...     predictor.generate(Prompt(text="two words")).text
        'two words'
        >>> list(EchoPredictor().stream(Prompt(text="two words")))
        ['two', ' words']
    """

    def __init__(
        self,
        *,
        answer: Callable[[Prompt], str] = echo,
        thoughts: str = "",
        delay_s: float = 0.0,
        fails_after: int | None = None,
        loops: bool = False,
        model: str = "echo",
    ) -> None:
        require_finite_between(0.0, 3600.0, delay_s=delay_s)
        self._answer = answer
        self._thoughts = thoughts
        self._delay_s = delay_s
        self._fails_after = fails_after
        self._loops = loops
        self._model = model
        self._turn = threading.Lock()
        self._served: int | None = None  # the thread whose turn it is
        self._closed = False

    @property
    def info(self) -> PredictorInfo:
        """What it is and how it runs."""
        return PredictorInfo(
            model=self._model,
            source="vlmcore.testing",
            backend="echo",
            device="cpu",
            dtype="none: there are no weights",
            memory="none",
            attention="none",
            supports_video=True,
        )

    def generate(
        self,
        prompt: Prompt,
        options: GenerationOptions = _GREEDY,
        /,
        *,
        cancel: CancelToken | None = None,
    ) -> Generation:
        """
        Answer *prompt*, and return when the answer is whole.

        Raises:
            GenerationError: If it was made to fail.
            StructureError: If JSON was asked for, and the answer is not so.
            ModelError: If it is closed, or a stream of it is still open in this thread.
        """
        return required(self._mended(prompt, options, cancel))

    def stream(
        self,
        prompt: Prompt,
        options: GenerationOptions = _GREEDY,
        /,
        *,
        cancel: CancelToken | None = None,
    ) -> GenerationStream:
        """
        Answer *prompt* word by word.

        Raises:
            ModelError: If it is closed. While reading, the same as `generate`.
        """
        self._require_open()

        def pieces() -> Generator[str, None, Generation]:
            return required((yield from self._write_in_turn(prompt, options, cancel)))

        return GenerationStream(pieces())

    def generate_many(
        self,
        prompts: Sequence[Prompt],
        options: GenerationOptions = _GREEDY,
        /,
        *,
        cancel: CancelToken | None = None,
        batch_size: int = 1,
    ) -> list[Generation]:
        """
        Answer each of *prompts*, in their order, one at a time whatever *batch_size* is.

        Raises:
            ContractError: If *batch_size* is not at least 1.
            GenerationError: If it was made to fail.
            ModelError: If it is closed, or a stream of it is still open in this thread.
        """
        self._require_open()
        require_count(batch_size=batch_size)
        return [self._mended(prompt, options, cancel) for prompt in prompts]

    def close(self) -> None:
        """Refuse further calls; those being served end as if they were cancelled."""
        self._closed = True

    def __enter__(self) -> EchoPredictor:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _mended(
        self, prompt: Prompt, options: GenerationOptions, cancel: CancelToken | None
    ) -> Generation:
        def ask(prompt: Prompt) -> Generation:
            self._require_open()
            stream = GenerationStream(self._write_in_turn(prompt, options, cancel))
            for _ in stream:
                pass
            return stream.result

        return mended(ask(prompt), prompt, options, ask)

    def _require_open(self) -> None:
        if self._closed:
            raise ModelError(self._model, "this predictor is closed: load it again")

    @contextmanager
    def _own_turn(self) -> Iterator[None]:
        # A second call of the thread that is being served could only wait for itself.
        if self._served == threading.get_ident():
            raise ModelError(
                self._model,
                "a stream of it is still open in this thread: read it to its end or close it first",
            )
        with self._turn:
            self._served = threading.get_ident()
            try:
                yield
            finally:
                self._served = None

    def _write_in_turn(
        self, prompt: Prompt, options: GenerationOptions, cancel: CancelToken | None
    ) -> Generator[str, None, Generation]:
        with self._own_turn():
            return (yield from self._write(_Draft(options), prompt, cancel or CancelToken()))

    def _write(
        self, draft: _Draft, prompt: Prompt, cancel: CancelToken
    ) -> Generator[str, None, Generation]:
        answer = _TOKEN.findall(self._answer(prompt))
        for token in self._tokens(answer, draft):
            if self._ends(draft, cancel):
                break
            self._take_a_token(draft)
            yield from draft.write(token)
        yield from draft.finish()
        generation = draft.generation(prompt_tokens=len(answer) + 1)
        return structured(generation, draft.options, model=self._model)

    def _tokens(self, answer: list[str], draft: _Draft) -> Iterator[str]:
        thoughts = _TOKEN.findall(self._thoughts) if draft.options.thinking is not False else []
        if thoughts:
            opening, closing = THINKING_TAGS[0]
            yield from (opening + thoughts[0], *thoughts[1:], closing)
        yield from answer
        rounds = 1
        while self._loops and answer:
            if draft.options.stop_on_repetition and rounds == _ROUNDS_BEFORE_A_LOOP_IS_SEEN:
                draft.stop_reason = StopReason.REPETITION
                return
            yield f" {answer[0]}"
            yield from answer[1:]
            rounds += 1

    def _ends(self, draft: _Draft, cancel: CancelToken) -> bool:
        if draft.writer.stopped:
            draft.stop_reason = StopReason.END
        elif cancel.cancelled or self._closed:
            draft.stop_reason = StopReason.CANCELLED
        elif draft.new_tokens >= draft.options.max_new_tokens:
            draft.stop_reason = StopReason.LENGTH
        return draft.stop_reason is not None

    def _take_a_token(self, draft: _Draft) -> None:
        if self._delay_s:
            time.sleep(self._delay_s)
        if draft.new_tokens == self._fails_after:
            raise GenerationError(self._model, f"made to fail after {self._fails_after} tokens")
        draft.new_tokens += 1
        if draft.first_token_s is None:
            draft.first_token_s = time.monotonic() - draft.began_s


class _Draft:
    """An answer that is being written."""

    def __init__(self, options: GenerationOptions) -> None:
        self.options = options
        self.writer = AnswerWriter(stop=options.stop)
        self.new_tokens = 0
        self.stop_reason: StopReason | None = None
        self.began_s = time.monotonic()
        self.first_token_s: float | None = None

    def write(self, token: str) -> Iterator[str]:
        piece = self.writer.write(token)
        if piece:
            yield piece

    def finish(self) -> Iterator[str]:
        piece = self.writer.finish()
        if piece:
            yield piece

    def generation(self, *, prompt_tokens: int) -> Generation:
        return Generation(
            text=self.writer.text,
            reasoning=self.writer.reasoning,
            stop_reason=self.stop_reason or StopReason.END,
            prompt_tokens=prompt_tokens,
            new_tokens=self.new_tokens,
            timings=Timings(
                prepare_s=0.0,
                first_token_s=self.first_token_s,
                total_s=time.monotonic() - self.began_s,
            ),
        )
