"""Which questions a model is given at once: those about pictures of about the same size."""

from __future__ import annotations

from collections import deque

import attrs

from vlmcore.jobs.journal import Answer
from vlmcore.vlm.generation import GenerationOptions
from vlmcore.vlm.prompt import Prompt

__all__ = ["Batches", "Question"]

_AT_ONCE = 4  # batches of which the questions are sorted together


@attrs.frozen(kw_only=True, eq=False)
class Question:
    """
    One prompt about one image.

    Attributes:
        key: The image.
        digest: SHA-256 of its bytes.
        mark: What tells the question from others.
        prompt: What the model is asked.
        options: How it is to answer.
        tries: How often it was asked in vain while others were answered.
        answered_then: How many others had been answered when it was last asked in vain.
    """

    key: str
    digest: bytes
    mark: str
    prompt: Prompt
    options: GenerationOptions
    tries: int = 0
    answered_then: int = 0

    @property
    def held_bytes(self) -> int:
        """The memory that its picture takes."""
        return sum(int(image.nbytes) for image in self.prompt.images)

    def failed(self, problem: str, text: str = "", stop: str = "") -> Answer:
        """Make the answer that says why there is none."""
        return Answer(mark=self.mark, text=text, stop=stop, problem=problem)


class Batches:
    """
    Makes batches of questions, the same ones in every run over the same images.

    Some batches' worth of questions are collected in the order of the source, sorted by how they
    are to be answered and by the size of their picture, and divided.

    Args:
        size: Questions of a batch at most.
        max_bytes: Bytes of the pictures that are collected at most; one more may come on top.
    """

    def __init__(self, size: int, max_bytes: int) -> None:
        self._size = size
        self._max_bytes = max_bytes
        self._collected: list[Question] = []
        self._bytes = 0
        self._ready: deque[list[Question]] = deque()

    def add(self, question: Question) -> None:
        """Add a question."""
        self._collected.append(question)
        self._bytes += question.held_bytes
        many = self._size * _AT_ONCE if self._size > 1 else 1
        if len(self._collected) >= many or self._bytes >= self._max_bytes:
            self.complete()

    def complete(self) -> None:
        """Divide what was collected: no more is coming."""
        kinds: dict[GenerationOptions, list[Question]] = {}
        for question in self._collected:
            kinds.setdefault(question.options, []).append(question)
        for questions in kinds.values():
            questions.sort(key=_size)
            for start in range(0, len(questions), self._size):
                self._ready.append(questions[start : start + self._size])
        self._collected, self._bytes = [], 0

    def put_back(self, questions: list[Question]) -> None:
        """Have *questions* answered after those that are ready: they may be at fault."""
        if questions:
            self._ready.append(questions)

    def take(self) -> list[Question] | None:
        """Return the next batch; ``None`` if there is none yet."""
        return self._ready.popleft() if self._ready else None

    def __len__(self) -> int:
        return sum(map(len, self._ready)) + len(self._collected)


def _size(question: Question) -> tuple[int, int]:
    height, width, _ = question.prompt.images[0].shape
    return height * width, width
