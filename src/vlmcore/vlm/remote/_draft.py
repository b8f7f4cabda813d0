"""An answer as it comes from a server, in whatever protocol."""

from __future__ import annotations

from collections.abc import Callable

from vlmcore.vlm.answers import AnswerWriter
from vlmcore.vlm.generation import (
    Generation,
    GenerationOptions,
    ServerReport,
    StopReason,
    Timings,
)
from vlmcore.vlm.remote._units import TextLoops

__all__ = ["Draft"]

_REASONS = {
    StopReason.LENGTH: (
        "length",
        "max_tokens",
        "max_output_tokens",
        "incomplete",  # of responses that do not say why
        "model_context_window_exceeded",
        "model_length",
        "pause_turn",
    ),
    StopReason.FILTERED: (
        "content_filter",
        "refusal",
        "sensitive",
        "safety",  # this and those below: Gemini, which does not translate them
        "recitation",
        "blocklist",
        "prohibited_content",
        "spii",
        "image_safety",
        "image_recitation",
        "image_prohibited_content",
    ),
}
_BY_WORD = {word: reason for reason, words in _REASONS.items() for word in words}


class Draft:
    """
    What came of an answer so far.

    Args:
        options: How the model is to answer.
        clock: Gives the time, in seconds.
        began_s: When the call began.
    """

    def __init__(
        self, options: GenerationOptions, *, clock: Callable[[], float], began_s: float
    ) -> None:
        self._writer = AnswerWriter(stop=options.stop)
        self._loops = TextLoops() if options.stop_on_repetition else None
        self._clock = clock
        self._began_s = began_s
        self._sent_s = began_s
        self._first_s: float | None = None
        self._thoughts: list[str] = []
        self._pieces: list[str] = []
        self._half = ""
        self._stop_reason: StopReason | None = None
        self.finish_reason: str | None = None
        self.is_whole = False  # the server said that nothing more comes
        self.is_asked = False  # the server may have seen the request
        self.has_head = False  # something of the answer came
        self.model = ""
        self.response_id = ""
        self.prompt_tokens: int | None = None
        self.new_tokens: int | None = None
        self.cached_tokens: int | None = None
        self.reasoning_tokens: int | None = None

    @property
    def text(self) -> str:
        """The answer so far."""
        return self._writer.text

    @property
    def is_begun(self) -> bool:
        """Whether the model has written something."""
        return self._first_s is not None

    @property
    def is_told(self) -> bool:
        """Whether the server said that the answer ended, and how."""
        return self.is_whole or bool(self.finish_reason)

    @property
    def is_over(self) -> bool:
        """Whether nothing that may still come belongs to the answer."""
        return self._stop_reason is not None

    def sent(self) -> None:
        """Note that the request is on its way."""
        self.is_asked = True
        self._sent_s = self._clock()

    def write(self, text: str) -> None:
        """Take more of what the model wrote, with its thoughts in tags or without any."""
        if not text or self.is_over:
            return
        self._note_token()
        text = self._whole(text)
        self._show(self._writer.write(text))
        if self._writer.stopped:
            self._stop_reason = StopReason.END
        else:
            self._watch(text)

    def think(self, text: str) -> None:
        """Take more of what the model thought, where the server keeps that apart."""
        if not text or self.is_over:
            return
        self._note_token()
        self._thoughts.append(text)
        self._watch(text)

    def take(self) -> list[str]:
        """Take the pieces of the answer that are certain, and were not taken yet."""
        pieces, self._pieces = self._pieces, []
        return pieces

    def finish(self, *, cancelled: bool = False) -> list[str]:
        """Say that nothing more comes, and take the last piece."""
        self._show(self._writer.write(_characters(self._half)) + self._writer.finish())
        if cancelled and not self.is_told:
            self._stop_reason = self._stop_reason or StopReason.CANCELLED
        if not self.is_asked:
            self.prompt_tokens = self.new_tokens = 0
        return self.take()

    def generation(self, *, attempts: int, left_out: tuple[str, ...]) -> Generation:
        """Give the answer."""
        reasoning = _characters("".join(self._thoughts)).strip() or self._writer.reasoning
        if self._thoughts and self._writer.reasoning:
            reasoning = f"{reasoning}\n{self._writer.reasoning}"
        return Generation(
            text=self.text,
            reasoning=reasoning,
            stop_reason=self._stop_reason or self._told_reason(),
            prompt_tokens=self.prompt_tokens,
            new_tokens=self.new_tokens,
            timings=Timings(
                prepare_s=self._sent_s - self._began_s,
                first_token_s=None if self._first_s is None else self._first_s - self._began_s,
                total_s=self._clock() - self._began_s,
            ),
            served=ServerReport(
                finish_reason=self.finish_reason or "",
                model=self.model,
                response_id=self.response_id,
                cached_tokens=self.cached_tokens,
                reasoning_tokens=self.reasoning_tokens,
                attempts=attempts,
                left_out=left_out,
            ),
        )

    def _told_reason(self) -> StopReason:
        reason = _BY_WORD.get((self.finish_reason or "").lower(), StopReason.END)
        is_cut = reason is StopReason.LENGTH
        if is_cut and self._loops is not None and self._loops.is_one_loop:
            return StopReason.REPETITION
        return reason

    def _whole(self, text: str) -> str:
        """Hold half a character back: some servers cut text between the two escapes of one."""
        text, self._half = self._half + text, ""
        if "\ud800" <= text[-1] <= "\udbff":
            text, self._half = text[:-1], text[-1]
        return _characters(text)

    def _note_token(self) -> None:
        if self._first_s is None:
            self._first_s = self._clock()

    def _watch(self, text: str) -> None:
        if self._loops is not None and self._loops.add(text):
            self._stop_reason = StopReason.REPETITION

    def _show(self, piece: str) -> None:
        if piece:
            self._pieces.append(piece)


def _characters(text: str) -> str:
    """Join halves of characters, and mark those that are alone."""
    if text.isascii():
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
