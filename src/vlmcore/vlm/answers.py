"""
From what a model writes to what a person is shown: reasoning kept apart, stop texts, clean ends.

No engine and no clock: text in, pieces out. Local models feed it what their tokenizer decodes,
servers what arrives in events; so an answer means the same wherever it was written.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Sequence

__all__ = ["THINKING_TAGS", "AnswerWriter", "opens_reasoning"]

THINKING_TAGS: tuple[tuple[str, str], ...] = (
    ("<think>", "</think>"),  # Qwen, DeepSeek, GLM, Granite, SmolLM and most others
    ("<thinking>", "</thinking>"),
    ("◁think▷", "◁/think▷"),  # Kimi-VL
)
"""The tags between which models write their reasoning, opening and closing."""


class _Phase(enum.Enum):
    START = enum.auto()  # only white space so far: an opening tag may still come
    THINKING = enum.auto()
    ANSWER = enum.auto()
    STOPPED = enum.auto()  # a stop text came: nothing more belongs to the answer


def opens_reasoning(prompt_text: str) -> bool:
    """Whether a rendered prompt ends inside reasoning, so that the model goes on thinking."""
    return prompt_text.rstrip().endswith(tuple(opening for opening, _ in THINKING_TAGS))


class AnswerWriter:
    """
    Turns text, in whatever portions it comes, into the pieces of an answer.

    How the text was cut into portions makes no difference to the answer. Reasoning, which comes
    first and between tags, is kept apart. White space at both ends of the answer and of the
    reasoning is dropped. The answer ends before the first of the stop texts.

    Args:
        stop: Texts that end the answer.
        in_reasoning: Whether the prompt already opened the reasoning.

    Example:
        >>> writer = AnswerWriter(stop=("###",))
        >>> [writer.write(portion) for portion in ("<thi", "nk>a dog?</think> A", " dog. #", "##")]
        ['', 'A', ' dog.', '']
        >>> writer.finish(), writer.text, writer.reasoning, writer.stopped
        ('', 'A dog.', 'a dog?', True)
    """

    def __init__(self, *, stop: Sequence[str] = (), in_reasoning: bool = False) -> None:
        self._stop = tuple(stop)
        self._closings = tuple(closing for _, closing in THINKING_TAGS)
        self._phase = _Phase.THINKING if in_reasoning else _Phase.START
        self._pending = ""  # may be the start of a tag, of a stop text, or white space at the end
        self._shown: list[str] = []
        self._thought: list[str] = []

    @property
    def text(self) -> str:
        """The answer so far, which is all pieces that were given out."""
        return "".join(self._shown)

    @property
    def reasoning(self) -> str:
        """The reasoning so far."""
        return "".join(self._thought).strip()

    @property
    def stopped(self) -> bool:
        """Whether a stop text ended the answer."""
        return self._phase is _Phase.STOPPED

    @property
    def thinking(self) -> bool:
        """Whether the reasoning is open."""
        return self._phase is _Phase.THINKING

    def write(self, text: str) -> str:
        """Take the next portion, and return the piece of the answer that is now certain."""
        self._pending += text
        if self._phase is _Phase.START:
            self._leave_start()
        if self._phase is _Phase.THINKING:
            self._think()
        if self._phase is _Phase.ANSWER:
            return self._answer()
        return ""

    def finish(self) -> str:
        """Say that nothing more comes, and return the last piece of the answer."""
        if self._phase is _Phase.START:
            self._phase = _Phase.ANSWER  # no tag came any more: what looked like one is text
        piece = self._answer() if self._phase is _Phase.ANSWER else ""
        rest, self._pending = self._pending, ""
        if self._phase is _Phase.THINKING:
            self._thought.append(rest)
        if self._phase is not _Phase.ANSWER:
            return piece
        if not self._shown:
            rest = rest.lstrip()
        # White space that was held back stands before what is certain now.
        return piece + self._show(rest.rstrip())

    def _leave_start(self) -> None:
        seen = self._pending.lstrip()
        for opening, closing in THINKING_TAGS:
            if seen.startswith(opening):
                self._phase, self._closings = _Phase.THINKING, (closing,)
                self._pending = seen[len(opening) :]
                return
        if not any(opening.startswith(seen) for opening, _ in THINKING_TAGS):
            self._phase = _Phase.ANSWER

    def _think(self) -> None:
        at, closing = _first_of(self._closings, self._pending)
        if closing:
            self._thought.append(self._pending[:at])
            self._pending = self._pending[at + len(closing) :]
            self._phase = _Phase.ANSWER
            return
        certain = len(self._pending) - _possible_start(self._closings, self._pending)
        self._thought.append(self._pending[:certain])
        self._pending = self._pending[certain:]

    def _answer(self) -> str:
        if not self._shown:
            self._pending = self._pending.lstrip()
        at, stop = _first_of(self._stop, self._pending)
        if stop:
            piece, self._pending = self._pending[:at].rstrip(), ""
            self._phase = _Phase.STOPPED
            return self._show(piece)
        certain = len(self._pending) - _possible_start(self._stop, self._pending)
        certain = len(self._pending[:certain].rstrip())
        piece, self._pending = self._pending[:certain], self._pending[certain:]
        return self._show(piece)

    def _show(self, piece: str) -> str:
        if piece:
            self._shown.append(piece)
        return piece


def _first_of(marks: Iterable[str], text: str) -> tuple[int, str]:
    """Return where the mark that is complete first stands, and which it is."""
    found = [(at + len(mark), at, mark) for mark in marks if (at := text.find(mark)) >= 0]
    if not found:
        return -1, ""
    _, at, mark = min(found)
    return at, mark


def _possible_start(marks: Iterable[str], text: str) -> int:
    """Return how many characters at the end of *text* may be the start of a mark still to come."""
    longest = 0
    for mark in marks:
        for length in range(min(len(mark) - 1, len(text)), longest, -1):
            if text.endswith(mark[:length]):
                longest = length
                break
    return longest
