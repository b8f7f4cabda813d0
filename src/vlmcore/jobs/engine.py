"""
The loop of a job: read ahead, ask, keep, write.

One thread runs it, and it alone touches the journal and the caption files. Others read images, in
the order of the source, and ask the model. What is read and not yet asked about is bounded, so that
the memory of a job does not depend on how many images there are.
"""

from __future__ import annotations

import contextlib
import queue
import threading
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import attrs

from vlmcore.errors import JobError, VlmcoreError
from vlmcore.jobs._calls import Calls
from vlmcore.jobs.asking import Asked
from vlmcore.jobs.batching import Batches, Question
from vlmcore.jobs.bookkeeping import Books, Verdict
from vlmcore.jobs.items import Item
from vlmcore.jobs.journal import Answer, Journal, Known
from vlmcore.jobs.likeness import Alike
from vlmcore.jobs.models import JobModel
from vlmcore.jobs.plans import CaptionPlan
from vlmcore.jobs.reading import Looking, Seen
from vlmcore.jobs.reports import Result, Tally

__all__ = ["Engine"]

_LOOKED_AT_ONCE = 256  # images of which all is known, before the loop goes round
_READ_AT_ONCE = 2  # images for each thread that reads: the one it has, and the next
_TICK_S = 0.2


@attrs.define(kw_only=True)
class _Image:
    """An image that is asked about: the answers that it has, and how many are still to come."""

    digest: bytes
    identity: bytes | None
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
        self._limits = plan.limits
        self._journal = journal
        self._books = books
        self._tally = tally
        self._stop = stop
        self._is_surveyed = is_surveyed
        self._items: Iterator[tuple[int, Item]] = enumerate(plan.source)
        self._is_exhausted = False
        self._looking = Looking(
            budget=plan.budget,
            wants_identity=plan.reuse_identical,
            wants_likeness=plan.near_duplicates is not None,
        )
        self._readers = ThreadPoolExecutor(plan.limits.max_readers, thread_name_prefix="reader")
        self._reading: deque[tuple[Future[Seen], Known]] = deque()
        self._wakes: queue.SimpleQueue[Future[Seen] | None] = queue.SimpleQueue()
        size = 1 if model.is_served else plan.batch_size
        self._batches = Batches(size, plan.limits.max_ahead_bytes // 2)
        self._images: dict[str, _Image] = {}
        self._asked_with: dict[bytes, str] = {}
        self._alike = None if plan.near_duplicates is None else Alike(plan.near_duplicates)
        self._calls = Calls(
            model, in_flight=plan.in_flight, patience_s=plan.patience_s, wake=self._wake
        )
        self._being_read = 0
        self._held_bytes = 0

    def run(self) -> bool:
        """
        Do the job, and say whether all of it was done.

        Raises:
            VlmcoreError: If it cannot go on; what was done is kept.
        """
        try:
            while not self._is_over():
                self._feed()
                self._take()
                self._send()
                self._tally.waiting_for = self._calls.waiting_for
                self._tally.show()
                self._wait()
                for asked in self._calls.collect():
                    self._settle(asked)
                self._books.keep()
            self._books.keep(at_once=True)
        except VlmcoreError:
            with contextlib.suppress(JobError):  # that it could not be kept is told already
                self._books.keep(at_once=True)
            raise
        finally:
            self._readers.shutdown(wait=False, cancel_futures=True)
            self._calls.close()
            self._readers.shutdown(wait=True)
            self._tally.show(at_once=True)
        return self._is_done()

    def _is_done(self) -> bool:
        is_read = self._is_exhausted and not self._reading
        return is_read and not self._batches and self._calls.is_idle

    def _is_over(self) -> bool:
        return self._calls.is_idle if self._stop.is_set() else self._is_done()

    def _wake(self) -> None:
        self._wakes.put(None)

    def _wait(self) -> None:
        """Wait until something was read or answered, or for a moment."""
        with contextlib.suppress(queue.Empty):
            self._awoken(self._wakes.get(timeout=_TICK_S))
            while True:
                self._awoken(self._wakes.get_nowait())

    def _awoken(self, seen: Future[Seen] | None) -> None:
        if seen is not None:
            self._being_read -= 1
            self._held_bytes += seen.result().held_bytes

    def _has_room(self) -> bool:
        limits = self._limits
        return (
            self._being_read < _READ_AT_ONCE * limits.max_readers
            and len(self._reading) + len(self._batches) < limits.max_ahead_images
            and self._held_bytes < limits.max_ahead_bytes
        )

    def _feed(self) -> None:
        """Begin to read images, as many as there is room for."""
        for _ in range(_LOOKED_AT_ONCE):
            if self._stop.is_set() or self._is_exhausted or not self._has_room():
                return
            found = next(self._items, None)
            if found is None:
                self._is_exhausted = True
                return
            self._begin(*found)
        self._wake()

    def _begin(self, position: int, item: Item) -> None:
        if not self._is_surveyed:
            self._journal.register([(position, item.key)])
        known = self._journal.known(item.key)
        if known is None:
            return  # it came after the images were counted: the next run finds it
        if self._books.stays(item.key):
            self._books.conclude(item.key, Verdict(result=Result.KEPT))
            return
        done = None
        if not self._books.lacks_looks(known):
            verdict = self._books.verdict(item.key, known, known.digest)
            if verdict is not None:
                stamp = item.content.stamp()
                if stamp is not None and stamp == known.stamp:
                    self._conclude(item.key, verdict, known.likeness)
                    return
                done = known.digest
        seen = self._readers.submit(self._looking.look, item, done)
        self._reading.append((seen, known))
        self._being_read += 1
        seen.add_done_callback(self._wakes.put)

    def _take(self) -> None:
        """Decide about the images that were read, in the order of the source."""
        while self._reading and self._reading[0][0].done() and not self._stop.is_set():
            seen, known = self._reading.popleft()
            self._decide(seen.result(), known)

    def _decide(self, seen: Seen, known: Known) -> None:
        key = seen.item.key
        verdict = self._books.verdict(key, known, seen.digest)
        self._books.seen(seen)
        if seen.problem:
            verdict = Verdict(result=Result.FAILED, problem=seen.problem)
        elif verdict is None:
            verdict = self._verdict_by_looks(seen)
        if verdict is not None:
            self._held_bytes -= seen.held_bytes
            self._conclude(key, verdict, seen.likeness or known.likeness)
        else:
            if self._alike is not None and seen.likeness is not None:
                self._alike.add(key, seen.likeness)
            if not self._follows(seen):
                self._ask(seen)

    def _conclude(self, key: str, verdict: Verdict, likeness: bytes | None) -> None:
        is_one = verdict.result not in {Result.DUPLICATE, Result.FAILED}
        if self._alike is not None and likeness is not None and is_one:
            self._alike.add(key, likeness)
        self._books.conclude(key, verdict)

    def _verdict_by_looks(self, seen: Seen) -> Verdict | None:
        key = seen.item.key
        if self._alike is not None and seen.likeness is not None:
            other = self._alike.find(key, seen.likeness)
            if other is not None:
                return Verdict(result=Result.DUPLICATE, duplicate_of=other)
        if seen.identity is None or seen.digest is None:
            return None
        for other, digest in self._journal.with_pixels(seen.identity, key):
            answers = self._books.answers(other, digest)
            verdict = self._books.verdict_of(answers, Result.REUSED)
            if len(answers) == len(self._plan.prompts) and not verdict.problem:
                self._take_over(key, seen.digest, answers)
                return verdict
        return None

    def _take_over(self, key: str, digest: bytes, answers: dict[str, Answer]) -> None:
        for answer in answers.values():
            self._books.answered(key, digest, answer)

    def _follows(self, seen: Seen) -> bool:
        """Have an image wait for one with the same pixels that is being asked about."""
        if seen.identity is None:
            return False
        first = self._asked_with.setdefault(seen.identity, seen.item.key)
        if first == seen.item.key:
            return False
        self._held_bytes -= seen.held_bytes
        self._images[first].followers.append(attrs.evolve(seen, pixels=None))
        return True

    def _ask(self, seen: Seen) -> None:
        key, digest = seen.item.key, seen.digest
        if digest is None or seen.pixels is None or seen.size_px is None:
            raise AssertionError(f"{key}: nothing was seen of it, and no problem told")
        answers = self._books.answers(key, digest)
        image = _Image(
            digest=digest,
            identity=seen.identity,
            answers=answers,
            missing=0,
            held_bytes=seen.held_bytes,
        )
        self._images[key] = image
        for prompt, mark in zip(self._plan.prompts, self._marks, strict=True):
            if mark not in answers:
                image.missing += 1
                question = Question(
                    key=key,
                    digest=digest,
                    mark=mark,
                    prompt=prompt.about(seen.pixels, key=key, size_px=seen.size_px),
                    options=prompt.options,
                )
                self._batches.add(question)

    def _send(self) -> None:
        """Have the model answer as many batches as it may be given now."""
        while self._calls.has_room and not self._stop.is_set():
            batch = self._batches.take()
            if batch is None and not self._reading and (self._is_exhausted or not self._has_room()):
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
        self._held_bytes -= image.held_bytes
        self._books.conclude(key, self._books.verdict_of(image.answers, Result.CAPTIONED))
        if image.identity is not None:
            del self._asked_with[image.identity]
        for seen in image.followers:
            if seen.digest is not None:
                self._take_over(seen.item.key, seen.digest, image.answers)
            verdict = self._books.verdict_of(image.answers, Result.REUSED)
            self._books.conclude(seen.item.key, verdict)
