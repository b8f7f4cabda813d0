"""Every model of transformers that takes images and has a chat template."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any

import torch
import transformers

from vlmcore._arrays import require_count
from vlmcore.errors import (
    ContractError,
    GenerationError,
)
from vlmcore.limits import ReuseLimits
from vlmcore.vlm.backends._answering import answer_all
from vlmcore.vlm.backends._batches import answer_in_batches
from vlmcore.vlm.backends._calls import (
    Call,
    cancel_tokens,
    listed,
    not_begun,
    require_call,
)
from vlmcore.vlm.backends._failures import failures_while
from vlmcore.vlm.backends._held import HeldModel
from vlmcore.vlm.backends._opening import OpenedModel, estimate_bytes, open_model
from vlmcore.vlm.backends._quietly import quietly
from vlmcore.vlm.backends._turns import RunAhead, taken
from vlmcore.vlm.generation import (
    CancelToken,
    Generation,
    GenerationOptions,
)
from vlmcore.vlm.placement import Placement
from vlmcore.vlm.predictor import GenerationStream, PredictorInfo
from vlmcore.vlm.prompt import Prompt
from vlmcore.vlm.residency import Residency
from vlmcore.vlm.reuse import ReuseReport
from vlmcore.vlm.session import Session
from vlmcore.vlm.sources import ModelSource
from vlmcore.vlm.structure import mended, required, structured

__all__ = ["TransformersPredictor"]

_GREEDY = GenerationOptions()


class TransformersPredictor:
    """
    A model of transformers, in this process.

    Threads may share it: their calls are served one after the other. Two predictors of the same
    model, placed alike, share one copy of its weights.

    Args:
        source: Which model.
        placement: Where and in what form it is loaded.
        residency: Whose memory it lives in.
        chat_template: A Jinja chat template to use in place of the model's own.
        reuse: What may be kept for answers to come; ``None`` keeps nothing.

    Raises:
        ModelError: If the model cannot be loaded; see `vlmcore.load_predictor`.
    """

    def __init__(
        self,
        *,
        source: ModelSource,
        placement: Placement,
        residency: Residency,
        chat_template: str | None = None,
        reuse: ReuseLimits | None = None,
    ) -> None:
        self._source = source
        self._reuse = reuse
        self._held = HeldModel(
            name=source.name,
            role="predictor",
            key=(source.location, source.revision, placement, chat_template),
            load=lambda: open_model(source, placement, chat_template=chat_template),
            needed_bytes=estimate_bytes(source, placement),
            residency=residency,
        )
        with self._held.using() as opened:
            self._info = _describe(source, placement, opened)

    @property
    def info(self) -> PredictorInfo:
        """What it is and how it runs."""
        return self._info

    def generate(
        self,
        prompt: Prompt,
        options: GenerationOptions = _GREEDY,
        /,
        *,
        cancel: CancelToken | None = None,
    ) -> Generation:
        """
        Answer *prompt*.

        Raises:
            GenerationError: If the model fails.
            StructureError: If JSON was asked for, and the answer is not so.
            ModelMemoryError: If its memory does not suffice.
            ModelError: If the predictor is closed.
        """
        self._held.require_open()
        require_call([prompt], options)
        cancels = cancel_tokens(cancel)
        generation = self._answer([prompt], options, cancels)[0]
        return required(self._mended(generation, prompt, options, cancels))

    def generate_many(
        self,
        prompts: Sequence[Prompt],
        options: GenerationOptions = _GREEDY,
        /,
        *,
        cancel: CancelToken | None = None,
        batch_size: int = 8,
        batch_bytes: int | None = None,
    ) -> list[Generation]:
        """
        Answer each of *prompts*, in their order, several at a time.

        Answers are those of `generate`. So that this holds when sampling with a seed too, such
        prompts are not batched. Once cancelled, prompts that were not begun are answered with an
        empty text and `StopReason.CANCELLED`. An answer that is not the JSON that was asked for
        says so by its ``structure_error``, and raises it where its ``value`` is read.

        Args:
            prompts: What to ask.
            options: How to answer each.
            cancel: Stops the batch in flight and all that follow.
            batch_size: How many prompts to give to the model at once, at the most. Where memory
                runs out, it goes on with half as many.
            batch_bytes: What a batch may take beside the weights, by estimate: fewer prompts are
                given at once where it would be more. ``None`` for three quarters of what is free.
                `Generation.batched` tells how many were.

        Raises:
            GenerationError: If the model fails.
            ModelMemoryError: If its memory does not suffice for a single prompt.
            ModelError: If the predictor is closed.
        """
        self._held.require_open()
        prompts = listed(prompts)
        require_call(prompts, options)
        require_count(batch_size=batch_size)
        if batch_bytes is not None:
            require_count(batch_bytes=batch_bytes)
        cancels = cancel_tokens(cancel)
        size = 1 if options.samples and options.seed is not None else batch_size
        answers = answer_in_batches(
            prompts, size, lambda batch: self._answer(batch, options, cancels, at_most=batch_bytes)
        )
        return [
            self._mended(answer, prompt, options, cancels)
            for prompt, answer in zip(prompts, answers, strict=True)
        ]

    def stream(
        self,
        prompt: Prompt,
        options: GenerationOptions = _GREEDY,
        /,
        *,
        cancel: CancelToken | None = None,
    ) -> GenerationStream:
        """
        Answer *prompt* piece by piece.

        The model starts when the first piece is asked for, and writes on while pieces are being
        read. Errors are those of `generate`, raised where the next piece is asked for. What was
        shown cannot be taken back: a wrong answer is not sent back to be mended.
        """
        self._held.require_open()
        require_call([prompt], options)
        cancels = cancel_tokens(cancel)

        def answer(show: Callable[[str], None], left: CancelToken) -> Generation:
            return required(self._answer([prompt], options, (*cancels, left), show)[0])

        ahead = RunAhead(answer, cancels)
        return GenerationStream(ahead.pieces(), stop=ahead.stop)

    def session(self, **about: Any) -> Session:
        """
        Ask many questions about the same pictures, which are looked at once.

        Args:
            about: The keyword arguments of `vlmcore.vlm.session.Session`: ``images``, ``system``,
                ``video`` and what belongs to it.

        Raises:
            MediaError: If a source cannot be read as an image.
            ContractError: If an argument is not as described.
            ModelError: If the predictor is closed.
        """
        self._held.require_open()
        return Session(self, **about)

    @property
    def reuse_report(self) -> ReuseReport:
        """What the model keeps for answers to come, and what it served, to all that share it."""
        self._held.require_open()
        with self._held.using() as opened:
            report: ReuseReport = opened.kept.report
        return report

    def close(self) -> None:
        """Stop what is running and give the model's memory back. Closing twice is no error."""
        self._held.close()

    def __enter__(self) -> TransformersPredictor:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _answer(
        self,
        prompts: Sequence[Prompt],
        options: GenerationOptions,
        cancels: Sequence[CancelToken],
        show: Callable[[str], None] = lambda _: None,
        at_most: int | None = None,
    ) -> list[Generation]:
        cancels = (*cancels, self._held.closing)
        answers = self._answers(Call(prompts, options, cancels, show, at_most))
        return [structured(each, options, model=self._source.name) for each in answers]

    def _mended(
        self,
        generation: Generation,
        prompt: Prompt,
        options: GenerationOptions,
        cancels: Sequence[CancelToken],
    ) -> Generation:
        def ask(again: Prompt) -> Generation:
            return self._answer([again], options, cancels)[0]

        return mended(generation, prompt, options, ask)

    def _answers(self, call: Call) -> list[Generation]:
        try:
            using = self._held.using()
            with using as opened, taken(opened.turn, call.cancels) as ours:
                if not ours:
                    return [not_begun(call) for _ in call.prompts]
                with failures_while("generating", self._source.name, GenerationError), quietly():
                    return answer_all(opened, call, model=self._source.name, reuse=self._reuse)
        except ContractError:
            if not self._held.is_closed:
                raise
            return [not_begun(call) for _ in call.prompts]  # closed while this call was on its way


def _describe(source: ModelSource, placement: Placement, opened: OpenedModel) -> PredictorInfo:
    return PredictorInfo(
        model=source.name,
        source=source.location,
        backend=f"transformers {transformers.__version__}, torch {torch.__version__}",
        device=str(opened.device),
        dtype=f"{str(opened.dtype).removeprefix('torch.')} ({opened.dtype_reason})",
        memory=placement.memory.value,
        attention=opened.attention,
        supports_video=opened.supports_video,
        decoding=placement.decoding.value if opened.copies is None else opened.copies.report,
    )
