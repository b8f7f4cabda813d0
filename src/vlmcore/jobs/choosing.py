"""Which images are asked about, and which need not be: they are known, or like others."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from vlmcore.jobs.bookkeeping import Books, Verdict
from vlmcore.jobs.journal import Answer, Journal, Known
from vlmcore.jobs.likeness import Alike
from vlmcore.jobs.plans import CaptionPlan
from vlmcore.jobs.reading import Seen
from vlmcore.jobs.reports import Result

__all__ = ["Choices", "Same"]

Same: TypeAlias = tuple[bytes, tuple[str, ...]]
"""The pixels of an image, as a digest, and what is asked about them."""


class Choices:
    """
    Decides about images that were seen. It has to be told of them in the order of the source.

    Args:
        plan: What is to be done.
        journal: The journal, with a run begun.
        books: Keeps journal and caption files.
    """

    def __init__(self, plan: CaptionPlan, journal: Journal, books: Books) -> None:
        self._plan = plan
        self._journal = journal
        self._books = books
        self._alike = None if plan.near_duplicates is None else Alike(plan.near_duplicates)

    def is_decided(self, seen: Seen, known: Known, *, was_read: bool) -> bool:
        """
        Conclude an image if it needs no asking, and say whether it was concluded.

        Args:
            seen: What was seen of it.
            known: What the journal knew of it before.
            was_read: Whether it was seen now, and not in an earlier run.
        """
        key = seen.item.key
        if was_read:
            self._books.seen(seen)
        likeness = seen.likeness or known.likeness
        verdict = self._books.verdict(key, known, seen.digest)
        if seen.problem:
            verdict = Verdict(result=Result.FAILED, problem=seen.problem)
        elif verdict is None:
            verdict = self._verdict_by_looks(seen, likeness)
        if verdict is None:
            return False
        if verdict.result not in {Result.DUPLICATE, Result.FAILED}:
            self._remember(key, likeness)
        self._books.conclude(key, verdict)
        return True

    def chosen(self, seen: Seen, known: Known) -> None:
        """Tell that an image is asked about: later ones may be like it."""
        self._remember(seen.item.key, seen.likeness or known.likeness)

    def same(self, seen: Seen) -> Same | None:
        """Say what else is asked in the same way, if it has the same; ``None`` if nothing is."""
        return None if seen.identity is None else (seen.identity, self._words(seen, seen.item.key))

    def take_over(self, seen: Seen, answers: Mapping[str, Answer]) -> None:
        """Give an image the answers of another one."""
        if seen.digest is not None:
            for answer in answers.values():
                self._books.answered(seen.item.key, seen.digest, answer)

    def _remember(self, key: str, likeness: bytes | None) -> None:
        if self._alike is not None and likeness is not None:
            self._alike.add(key, likeness)

    def _verdict_by_looks(self, seen: Seen, likeness: bytes | None) -> Verdict | None:
        key = seen.item.key
        if self._alike is not None and likeness is not None:
            other = self._alike.find(key, likeness)
            if other is not None:
                return Verdict(result=Result.DUPLICATE, duplicate_of=other)
        if seen.identity is None or seen.digest is None:
            return None
        for other, digest in self._journal.with_pixels(seen.identity, key):
            answers = self._books.answers(other, digest)
            verdict = self._books.verdict_of(answers, Result.REUSED)
            is_whole = len(answers) == len(self._plan.prompts) and not verdict.problem
            if is_whole and self._words(seen, other) == self._words(seen, key):
                self.take_over(seen, answers)
                return verdict
        return None

    def _words(self, seen: Seen, key: str) -> tuple[str, ...]:
        """What is asked about an image if it is called *key*."""
        size_px = seen.size_px or (0, 0)
        return tuple(prompt.words(key=key, size_px=size_px) for prompt in self._plan.prompts)
