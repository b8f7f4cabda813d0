"""
The loop of a job: read ahead, ask, keep, write.

One thread runs it, and it alone touches the journal and the caption files. Others read images, in
the order of the source, and ask the model. What is read and not yet asked about is bounded, so that
the memory of a job does not depend on how many images there are.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator

import attrs

from vlmcore._arrays import UInt8Array
from vlmcore.errors import ContractError, JobError, JobJournalError
from vlmcore.jobs._ahead import Ahead, Begun
from vlmcore.jobs._calls import Calls
from vlmcore.jobs.asking import Asked
from vlmcore.jobs.batching import Batches, Question
from vlmcore.jobs.bookkeeping import Books, Verdict
from vlmcore.jobs.items import Item
from vlmcore.jobs.journal import Answer, Journal, Outcome
from vlmcore.jobs.likeness import Alike
from vlmcore.jobs.models import JobModel
from vlmcore.jobs.plans import CaptionPlan
from vlmcore.jobs.reading import Looking, Seen
from vlmcore.jobs.reports import Result, Tally

__all__ = ["Engine"]

_LOOKED_AT_ONCE = 256  # images of which all is known, before the loop goes round
_TICK_S = 0.2


@attrs.define(kw_only=True)
class _Image:
    """An image that is asked about: the answers that it has, and how many are still to come."""

    digest: bytes
    same: tuple[bytes, tuple[str, ...]] | None  # its pixels, and what is asked about them
    answers: dict[str, Answer]
    missing: int
    held_bytes: int
    followers: list[Seen] = attrs.field(factory=list)  # with the same pixels


class Engine:
    """
    Runs one job.

    Args:
        plan: What is to be done.
        model: What is asked.
        journal: The journal, with a run begun.
        books: Keeps journal and caption files.
        tally: Is told how far it is.
        stop: Once set, nothing new is begun; what is being answered is kept.
        is_surveyed: Whether the journal knows already which images there are.
    """

    def __init__(
        self,
        plan: CaptionPlan,
        model: JobModel,
        journal: Journal,
        *,
        books: Books,
        tally: Tally,
        stop: threading.Event,
        is_surveyed: bool,
    ) -> None:
        self._plan = plan
        self._marks = plan.marks
        self._journal = journal
        self._books = books
        self._tally = tally
        self._stop = stop
        self._is_surveyed = is_surveyed
        self._items: Iterator[tuple[int, Item]] = enumerate(plan.source)
        self._is_exhausted = False
        self._ahead = Ahead(
            Looking(
                budget=plan.budget,
                wants_identity=plan.reuse_identical,
                wants_likeness=plan.near_duplicates is not None,
            ),
            plan.limits,
        )
        size = 1 if model.is_served else plan.batch_size
        self._batches = Batches(size, plan.limits.max_ahead_bytes // 2)
        self._images: dict[str, _Image] = {}
        self._asked_with: dict[tuple[bytes, tuple[str, ...]], str] = {}
        self._alike = None if plan.near_duplicates is None else Alike(plan.near_duplicates)
        self._calls = Calls(
            model, in_flight=plan.in_flight, patience_s=plan.patience_s, wake=self._ahead.wake
        )
        self._keeps_each_batch = not model.is_served
        self._next_position = 0

    @property
    def held_bytes(self) -> int:
        """The memory of the pictures that were read and are not yet answered about."""
        return self._ahead.held_bytes

    def run(self) -> bool:
        """
        Do the job, and say whether all of it was done.

        Raises:
            VlmcoreError: If it cannot go on; what was done is kept.
        """
        try:
            while not self._is_over():
                self._go_round()
            self._books.keep(at_once=True)
        except JobJournalError:
            raise  # there is nothing to keep things in
        except BaseException:
            with contextlib.suppress(JobError):  # that it could not be kept is told already
                self._books.keep(at_once=True)
            raise
        finally:
            self._ahead.close()
            self._calls.close()
            self._tally.show(at_once=True)
        return self._is_done()

    def _go_round(self) -> None:
        self._feed()
        self._take()
        self._send()
        if self._stop.is_set():
            self._calls.withdraw()
        self._tally.waiting_for = self._calls.waiting_for
        self._tally.show()
        self._ahead.wait(_TICK_S)
        came = self._calls.collect()
        for asked in came:
            self._settle(asked)
        self._books.keep(at_once=bool(came) and self._keeps_each_batch)

    def _is_done(self) -> bool:
        is_read = self._is_exhausted and not self._ahead
        return is_read and not self._batches and self._calls.is_idle

    def _is_over(self) -> bool:
        return self._calls.is_idle if self._stop.is_set() else self._is_done()

    def _feed(self) -> None:
        """Begin to read images, as many as there is room for."""
        for _ in range(_LOOKED_AT_ONCE):
            is_over = self._stop.is_set() or self._is_exhausted
            if is_over or not self._ahead.has_room(len(self._batches)):
                return
            found = next(self._items, None)
            if found is None:
                self._exhaust()
            else:
                self._begin(*found)
        self._ahead.wake()

    def _exhaust(self) -> None:
        """All images were given: those are gone that were counted, and were not given."""
        self._is_exhausted = True
        self._ahead.wake()
        self._pass_over(self._next_position, None)
        if not self._is_surveyed:
            self._journal.note_listed()
            self._tally.total = self._journal.count()

    def _pass_over(self, first: int, end: int | None) -> None:
        if self._is_surveyed and first != end:
            self._books.missing(self._journal.keys_between(first, end))

    def _begin(self, position: int, item: Item) -> None:
        if not self._is_surveyed:
            self._journal.register([(position, item.key)])
        known = self._journal.known(item.key)
        if known is None or known.position < self._next_position:
            return  # it came after the images were counted, or has the key of one before
        self._pass_over(self._next_position, known.position)
        self._next_position = known.position + 1
        verdict = self._books.stays(item.key)
        if verdict is not None:
            self._books.conclude(item.key, verdict)
            return
        begun = Begun(item=item, known=known)
        self._ahead.add(begun)
        if self._books.lacks_looks(known):
            self._ahead.read(begun)
            return
        verdict = self._books.verdict(item.key, known, known.digest)
        stamp = item.content.stamp()
        is_same = stamp is not None and stamp == known.stamp
        was_skipped = self._alike is not None and known.outcome is Outcome.DUPLICATE
        if is_same and (verdict is not None or was_skipped):
            begun.seen = Seen(item=item, stamp=stamp, digest=known.digest)
        else:
            self._ahead.read(begun, None if verdict is None else known.digest)

    def _take(self) -> None:
        """Decide about the images that were seen, in the order of the source."""
        while not self._stop.is_set() and (found := self._ahead.next()):
            self._ahead.wake()  # there is room for others
            if self._is_decided(*found):
                self._ahead.drop()
            else:  # it was like another one, and is not any more
                self._ahead.read(found[0])

    def _is_decided(self, begun: Begun, seen: Seen) -> bool:
        key, known = seen.item.key, begun.known
        if begun.was_read:
            self._books.seen(seen)
        likeness = seen.likeness or known.likeness
        verdict = self._books.verdict(key, known, seen.digest)
        if seen.problem:
            verdict = Verdict(result=Result.FAILED, problem=seen.problem)
        elif verdict is None:
            verdict = self._verdict_by_looks(seen, likeness)
        if verdict is not None:
            self._ahead.held_bytes -= seen.held_bytes
            self._conclude(key, verdict, likeness)
            return True
        if not begun.was_read:
            return False
        if self._alike is not None and likeness is not None:
            self._alike.add(key, likeness)
        self._ask(seen)
        return True

    def _conclude(self, key: str, verdict: Verdict, likeness: bytes | None) -> None:
        is_one = verdict.result not in {Result.DUPLICATE, Result.FAILED}
        if self._alike is not None and likeness is not None and is_one:
            self._alike.add(key, likeness)
        self._books.conclude(key, verdict)

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
            is_whole = len(answers) == len(self._marks) and not verdict.problem
            if is_whole and self._words(seen, other) == self._words(seen, key):
                self._take_over(key, seen.digest, answers)
                return verdict
        return None

    def _words(self, seen: Seen, key: str) -> tuple[str, ...]:
        """What is asked about an image if it is called *key*."""
        size_px = seen.size_px or (0, 0)
        return tuple(prompt.words(key=key, size_px=size_px) for prompt in self._plan.prompts)

    def _take_over(self, key: str, digest: bytes, answers: dict[str, Answer]) -> None:
        for answer in answers.values():
            self._books.answered(key, digest, answer)

    def _ask(self, seen: Seen) -> None:
        """Ask about an image, or have it wait for one with the same pixels."""
        key, digest = seen.item.key, seen.digest
        if digest is None or seen.pixels is None or seen.size_px is None:
            raise AssertionError(f"{key}: nothing was seen of it, and no problem told")
        image = _Image(
            digest=digest,
            same=None if seen.identity is None else (seen.identity, self._words(seen, key)),
            answers=self._books.answers(key, digest),
            missing=0,
            held_bytes=seen.held_bytes,
        )
        if image.same is not None:
            first = self._asked_with.setdefault(image.same, key)
            if first != key:
                self._ahead.held_bytes -= seen.held_bytes
                self._images[first].followers.append(attrs.evolve(seen, pixels=None))
                return
        self._images[key] = image
        questions = self._questions(seen, seen.pixels, seen.size_px, image)
        image.missing = len(questions)
        for question in questions:
            self._batches.add(question)
        if not questions:
            self._finish(key, image)

    def _questions(
        self, seen: Seen, pixels: UInt8Array, size_px: tuple[int, int], image: _Image
    ) -> list[Question]:
        """Put the questions that are still open; one that cannot be put is answered so."""
        key, questions = seen.item.key, []
        for prompt, mark in zip(self._plan.prompts, self._marks, strict=True):
            if mark in image.answers:
                continue
            try:
                asked = prompt.about(pixels, key=key, size_px=size_px)
            except ContractError as error:
                answer = Answer(mark=mark, text="", problem=f"cannot be asked: {error}")
                self._books.answered(key, image.digest, answer)
                image.answers[mark] = answer
                continue
            question = Question(
                key=key, digest=image.digest, mark=mark, prompt=asked, options=prompt.options
            )
            questions.append(question)
        return questions

    def _send(self) -> None:
        """Have the model answer as many batches as it may be given now."""
        while self._calls.has_room and not self._stop.is_set():
            batch = self._batches.take()
            if (
                batch is None
                and not self._ahead
                and (self._is_exhausted or not self._ahead.has_room(len(self._batches)))
            ):
                self._batches.complete()
                batch = self._batches.take()
            if batch is None:
                return
            self._calls.send(batch)

    def _settle(self, asked: Asked) -> None:
        question, answer = asked.question, asked.answer
        if answer is None:
            self._batches.put_back([question])
            return
        image = self._images[question.key]
        self._books.answered(question.key, image.digest, answer)
        image.answers[answer.mark] = answer
        image.missing -= 1
        if image.missing == 0:
            self._finish(question.key, image)

    def _finish(self, key: str, image: _Image) -> None:
        del self._images[key]
        self._ahead.held_bytes -= image.held_bytes
        self._books.conclude(key, self._books.verdict_of(image.answers, Result.CAPTIONED))
        if image.same is not None:
            del self._asked_with[image.same]
        for seen in image.followers:
            if seen.digest is not None:
                self._take_over(seen.item.key, seen.digest, image.answers)
            verdict = self._books.verdict_of(image.answers, Result.REUSED)
            self._books.conclude(seen.item.key, verdict)
