"""
The loop of a job: read ahead, ask, keep, write.

One thread runs it, and it alone touches the journal and the caption files. Others read images, in
the order of the source, and ask the model. What is read and not yet asked about is bounded, so that
the memory of a job does not depend on how many images there are.
"""

from __future__ import annotations

import contextlib
import threading

import attrs

from vlmcore.errors import JobError, JobJournalError
from vlmcore.jobs._ahead import Ahead
from vlmcore.jobs._calls import Calls
from vlmcore.jobs.asking import Asked, questions_about
from vlmcore.jobs.batching import Batches
from vlmcore.jobs.bookkeeping import Books
from vlmcore.jobs.choosing import Choices, Same
from vlmcore.jobs.journal import Answer, Journal
from vlmcore.jobs.models import JobModel
from vlmcore.jobs.plans import CaptionPlan
from vlmcore.jobs.reading import Looking, Seen
from vlmcore.jobs.reports import Result, Tally
from vlmcore.jobs.walking import Walk

__all__ = ["Engine"]

_LOOKED_AT_ONCE = 256  # images of which all is known, before the loop goes round
_TICK_S = 0.2


@attrs.define(kw_only=True)
class _Image:
    """An image that is asked about: the answers that it has, and how many are still to come."""

    digest: bytes
    same: Same | None
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
        self._marks = plan.marks  # they are digests: not worked out for each image again
        self._books = books
        self._tally = tally
        self._stop = stop
        self._walk = iter(Walk(plan, journal, books=books, tally=tally, is_surveyed=is_surveyed))
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
        self._asked_with: dict[Same, str] = {}
        self._choices = Choices(plan, journal, books)
        self._calls = Calls(
            model,
            in_flight=plan.in_flight,
            patience_s=plan.patience_s,
            wake=self._ahead.wake,
            stop=stop,
        )
        self._keeps_each_batch = not model.is_served

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
            self._books.finish()
        except JobJournalError:
            raise  # there is nothing to keep things in
        except BaseException:
            self._calls.withdraw()
            with contextlib.suppress(JobError):  # that it could not be kept is told already
                self._books.finish()
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
        came = self._calls.collect(len(self._batches) if self._is_read() else None)
        for asked in came:
            self._settle(asked)
        self._books.keep(at_once=bool(came) and self._keeps_each_batch)

    def _is_read(self) -> bool:
        return self._is_exhausted and not self._ahead

    def _is_done(self) -> bool:
        return self._is_read() and not self._batches and self._calls.is_idle

    def _is_over(self) -> bool:
        return self._calls.is_idle if self._stop.is_set() else self._is_done()

    def _feed(self) -> None:
        """Begin to read images, as many as there is room for."""
        for _ in range(_LOOKED_AT_ONCE):
            is_over = self._stop.is_set() or self._is_exhausted
            if is_over or not self._ahead.has_room(len(self._batches)):
                return
            try:
                begun = next(self._walk)
            except StopIteration:
                self._is_exhausted = True
                self._ahead.wake()
                return
            if begun is not None:
                self._ahead.add(begun)
                if begun.seen is None:
                    self._ahead.read(begun, begun.done)
        self._ahead.wake()

    def _take(self) -> None:
        """Decide about the images that were seen, in the order of the source."""
        while not self._stop.is_set() and (found := self._ahead.next()):
            begun, seen = found
            self._ahead.wake()  # there is room for others
            if self._choices.is_decided(seen, begun.known, was_read=begun.was_read):
                self._ahead.held_bytes -= seen.held_bytes
                self._ahead.drop()
            elif begun.was_read:
                self._choices.chosen(seen, begun.known)
                self._ask(seen)
                self._ahead.drop()
            else:  # it was like another one, and is not any more
                self._ahead.read(begun)

    def _ask(self, seen: Seen) -> None:
        """Ask about an image, or have it wait for one with the same pixels."""
        key, digest = seen.item.key, seen.digest
        if digest is None:
            raise AssertionError(f"{key}: nothing was seen of it, and no problem told")
        image = _Image(
            digest=digest,
            same=self._choices.same(seen),
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
        questions, refused = questions_about(
            seen, self._plan.prompts, self._marks, without=image.answers.keys()
        )
        for answer in refused:
            self._books.answered(key, digest, answer)
            image.answers[answer.mark] = answer
        image.missing = len(questions)
        for question in questions:
            self._batches.add(question)
        if not questions:
            self._finish(key, image)

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
            self._choices.take_over(seen, image.answers)
            verdict = self._books.verdict_of(image.answers, Result.REUSED)
            self._books.conclude(seen.item.key, verdict)
