"""The work of ``vlmcore describe``: open, load, ask, show, report; go on where one image fails."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack

import attrs

from vlmcore._arrays import UInt8Array
from vlmcore.cli._answers import AnswerSink
from vlmcore.cli._exit_codes import ExitCode
from vlmcore.cli._interrupts import cancelled_by_interrupt
from vlmcore.cli._sources import Question, Viewing
from vlmcore.cli._terminal import Terminal
from vlmcore.errors import ContractError, MediaError, ModelError, StructureError
from vlmcore.media.sampling import SampledVideo
from vlmcore.vlm.generation import Generation, GenerationOptions, StopReason
from vlmcore.vlm.predictor import Predictor, PredictorInfo
from vlmcore.vlm.prompt import Prompt
from vlmcore.vlm.remote.providers import names_a_server
from vlmcore.vlm.sources import EMBEDDED

__all__ = ["PROMPT", "VIDEO_PROMPT", "Describing"]

PROMPT = "Describe this image in one sentence."
VIDEO_PROMPT = "Describe this video in one sentence."

_WARNINGS = {
    StopReason.LENGTH: "the answer is cut after {tokens} tokens: --max-new-tokens allows more",
    StopReason.REPETITION: "the model fell into a loop: what it wrote is not an answer",
    StopReason.FILTERED: "the server withheld the answer, or the rest of it, for its content",
}


@attrs.define(kw_only=True)
class Describing:
    """
    One run of the command.

    Images are opened one after the other, so that a hundred thousand of them need the memory of
    one. The model is loaded when the first image was opened: a wrong path is told at once.

    Attributes:
        terminal: Where notes and complaints go.
        sink: Where answers go.
        prompts: What is asked about each image, one after the other; `PROMPT` becomes
            `VIDEO_PROMPT` for a video.
        options: How the model is to answer.
        load: Loads the model.
        model: The model as the user named it.
        verbose: Whether to tell how it ran.
        viewing: What the model is shown of an image or a video.
    """

    terminal: Terminal
    sink: AnswerSink
    prompts: Sequence[Prompt]
    options: GenerationOptions
    load: Callable[[], Predictor]
    model: str
    verbose: bool
    viewing: Viewing
    _failures: int = attrs.field(default=0, init=False)
    _predictor: Predictor | None = attrs.field(default=None, init=False)
    _kept: ExitStack = attrs.field(factory=ExitStack, init=False)

    def run(self, questions: Sequence[Question]) -> ExitCode:
        """
        Answer all *questions* that can be answered.

        Raises:
            ModelError: If the model cannot be loaded.
            MissingDependencyError: If a package is not installed.
        """
        failed = 0
        with self._kept:
            for question in questions:
                before = self._failures
                for prompt in self._open(question):
                    if self._answer(question, prompt) is StopReason.CANCELLED:
                        return ExitCode.INTERRUPTED
                failed += self._failures > before
        if failed and len(questions) > 1:
            self._complain(f"{failed} of {len(questions)} images could not be described")
        return ExitCode.INCOMPLETE if failed else ExitCode.DONE

    def _answer(self, question: Question, prompt: Prompt) -> StopReason | None:
        """Return why the answer ended, or ``None`` if there is none."""
        predictor = self._loaded()
        self.sink.begin(question, prompt.text)
        try:
            with cancelled_by_interrupt() as cancel:
                generation = self.sink.answer(predictor, prompt, self.options, cancel)
        except (ModelError, ContractError, MediaError) as error:
            self._fail(question.name, error)
            return None
        self._report(question.name, generation)
        return generation.stop_reason

    def _open(self, question: Question) -> Sequence[Prompt]:
        """Return all that is asked about what could be opened, once: nothing where it could not."""
        images: list[UInt8Array] = []
        video: SampledVideo | None = None
        for source in question.sources:
            name = Question((source,), together=False).name
            try:
                opened = source.look(self.viewing)
                _require_one(name, opened, video)
            except MediaError as error:
                self.sink.begin(question)
                self._fail(name, error)
                return ()
            if isinstance(opened, SampledVideo):
                video = opened
                self._introduce_video(name, video)
                continue
            images.append(opened.pixels)
            if opened.pictures > 1:
                self.terminal.note(f"{name}: the first of {opened.pictures} pictures is described")
        return [_about(prompt, images, video) for prompt in self.prompts]

    def _introduce_video(self, name: str, video: SampledVideo) -> None:
        selection = video.selection
        shown = f"{len(selection.frames)} frames of {selection.duration_s:.1f} s"
        self.terminal.note(f"{name}: {shown} are looked at")
        if video.problem:
            self._complain(f"{name}: {video.problem}")
        if self.verbose:
            for frame in selection.frames:
                self.terminal.note(f"  {frame.timestamp_s:.2f} s: {frame.reason.value}")

    def _loaded(self) -> Predictor:
        if self._predictor is None:
            if self.model != EMBEDDED and not names_a_server(self.model):
                self.terminal.note(f"loading {self.model}")
            self._predictor = self._kept.enter_context(self.load())
            self._introduce(self._predictor.info)
        return self._predictor

    def _introduce(self, info: PredictorInfo) -> None:
        known = (
            "a small test model that knows drawn scenes only; " if self.model == EMBEDDED else ""
        )
        more = info.source if names_a_server(self.model) else info.dtype
        self.terminal.note(f"{info.model}: {known}on {info.device}, {more}")
        if self.verbose:
            for field, value in attrs.asdict(info).items():
                self.terminal.note(f"  {field}: {value}")

    def _report(self, name: str, generation: Generation) -> None:
        warning = _WARNINGS.get(generation.stop_reason)
        if warning is not None:
            tokens = generation.new_tokens
            tokens = self.options.max_new_tokens if tokens is None else tokens
            self._complain(f"{name}: {warning.format(tokens=tokens)}")
        if generation.stop_reason in (StopReason.REPETITION, StopReason.FILTERED):
            self._failures += 1
        timings = generation.timings
        if self.verbose and timings is not None:
            first = "none" if timings.first_token_s is None else f"{timings.first_token_s:.2f} s"
            read, written = (
                "an untold number of" if count is None else count
                for count in (generation.prompt_tokens, generation.new_tokens)
            )
            self.terminal.note(
                f"{name}: {read} tokens read, {written} written "
                f"in {timings.total_s:.2f} s, the first after {first}"
            )

    def _fail(self, name: str, error: MediaError | ModelError | ContractError) -> None:
        self._failures += 1
        self.sink.failed(error.problem, error.text if isinstance(error, StructureError) else None)
        self._complain(f"{name}: {error.problem}")

    def _complain(self, text: str) -> None:
        self.terminal.complain(f"vlmcore: {text}")


def _about(prompt: Prompt, images: Sequence[UInt8Array], video: SampledVideo | None) -> Prompt:
    if video is not None:
        text = VIDEO_PROMPT if prompt.text == PROMPT else prompt.text
        prompt = Prompt.of_video(text, video, system=prompt.system)
    return attrs.evolve(prompt, images=tuple(images))


def _require_one(name: str, opened: object, video: SampledVideo | None) -> None:
    if video is not None and isinstance(opened, SampledVideo):
        raise MediaError(name, "is a second video, and a prompt holds one")
