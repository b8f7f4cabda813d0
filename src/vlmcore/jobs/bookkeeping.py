"""What a job decides about an image, and how that gets into the journal and the caption files."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor

import attrs

from vlmcore._closing import Closing
from vlmcore.errors import JobSinkError
from vlmcore.jobs.journal import Answer, Journal, Known, Outcome
from vlmcore.jobs.plans import CaptionPlan
from vlmcore.jobs.reading import Seen
from vlmcore.jobs.reports import Result, Tally
from vlmcore.jobs.sinks.sidecars import Pending, SidecarWriter, fails_everywhere
from vlmcore.vlm.generation import StopReason

__all__ = ["Books", "Verdict"]

_OUTCOMES = {
    Result.CAPTIONED: Outcome.CAPTIONED,
    Result.REUSED: Outcome.CAPTIONED,
    Result.DONE: Outcome.CAPTIONED,
    Result.KEPT: Outcome.KEPT,
    Result.DUPLICATE: Outcome.DUPLICATE,
    Result.FAILED: Outcome.FAILED,
}

_WRITERS = 4  # a disk takes little longer over four files than over one
_GONE = "is gone: it was there when the images were counted"


@attrs.frozen(kw_only=True)
class Verdict:
    """
    What is to be done about an image that needs no asking.

    Attributes:
        result: What becomes of it.
        answers: What its caption is made of; empty if it gets none.
        problem: Why it failed.
        duplicate_of: Which image it is like.
    """

    result: Result
    answers: Mapping[str, Answer] = attrs.field(factory=dict)
    problem: str = ""
    duplicate_of: str = ""


@attrs.frozen(kw_only=True)
class _ToWrite:
    key: str
    result: Result
    pending: Pending


class Books(Closing):
    """
    Keeps the journal and the caption files of one run in step.

    What is told is safe after the next `keep`: first the journal has it, then the caption files.

    Args:
        plan: What is to be done.
        identity: The model that is asked.
        journal: The journal, with a run begun.
        sidecars: Writes the caption files; ``None`` if there are to be none.
        tally: Is told what is done.
        every_s: How often things are kept, in seconds.
    """

    def __init__(
        self,
        plan: CaptionPlan,
        identity: str,
        journal: Journal,
        *,
        sidecars: SidecarWriter | None,
        tally: Tally,
        every_s: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._plan = plan
        self._names = {mark: p.name for mark, p in zip(plan.marks, plan.prompts, strict=True)}
        self._identity = identity
        self._journal = journal
        self._sidecars = sidecars
        self._tally = tally
        self._every_s = every_s
        self._clock = clock
        self._kept_s = clock()
        self._to_write: list[_ToWrite] = []
        self._writers = ThreadPoolExecutor(_WRITERS, thread_name_prefix="writer")
        self._writing: deque[tuple[_ToWrite, Future[bool]]] = deque()

    def answers(self, key: str, digest: bytes) -> dict[str, Answer]:
        """Return what is known to be said about an image; failures only if they are to stay."""
        known = self._journal.answers(key, digest, self._identity, list(self._names))
        if not self._plan.retry_failed:
            return known
        return {mark: answer for mark, answer in known.items() if not answer.problem}

    def answered_before(self, key: str) -> dict[bytes, frozenset[str]]:
        """Say which questions need no asking, for each of the bytes that an image has had."""
        statement = "SELECT DISTINCT digest FROM answers WHERE key = ? AND model = ?"
        with self._journal.told():
            found = self._journal.database.execute(statement, (key, self._identity)).fetchall()
        return {digest: frozenset(self.answers(key, digest)) for (digest,) in found}

    def stays(self, key: str) -> Verdict | None:
        """Say what follows from the caption file that is there; ``None`` if nothing does."""
        try:
            stays = self._sidecars is not None and self._sidecars.stays(key)
        except JobSinkError as error:
            return Verdict(result=Result.FAILED, problem=error.problem)
        return Verdict(result=Result.KEPT) if stays else None

    def missing(self, keys: Iterable[str]) -> None:
        """Tell that images are gone that were there when they were counted."""
        for key in keys:
            self._journal.note_seen(key, stamp=None, digest=None)
            self._note(key, Result.FAILED, _GONE)

    def verdict(self, key: str, known: Known, digest: bytes | None) -> Verdict | None:
        """
        Say what is to be done about an image with these bytes; ``None`` if it has to be looked at.

        Args:
            key: The image.
            known: What the journal knows of it.
            digest: SHA-256 of its bytes.
        """
        answers = {} if digest is None else self.answers(key, digest)
        if answers.keys() == self._names.keys():
            return self.verdict_of(answers, Result.DONE)
        was_unreadable = known.outcome is Outcome.FAILED and not known.is_readable
        if digest == known.digest and was_unreadable and not self._plan.retry_failed:
            return Verdict(result=Result.FAILED, problem=known.problem)
        return None

    def lacks_looks(self, known: Known) -> bool:
        """Say whether an image has to be decoded so that others can be compared with it."""
        plan = self._plan
        lacks_pixels = plan.reuse_identical and not known.has_pixels
        return lacks_pixels or (plan.near_duplicates is not None and known.likeness is None)

    def seen(self, seen: Seen) -> None:
        """Tell that an image was read."""
        self._journal.note_seen(
            seen.item.key,
            stamp=seen.stamp,
            digest=seen.digest,
            size_px=seen.size_px,
            pixels=seen.identity,
            likeness=seen.likeness,
        )

    def answered(self, key: str, digest: bytes, answer: Answer) -> None:
        """Tell what the model said."""
        self._journal.note_answer(key, digest, self._identity, answer)
        if answer.stop == StopReason.LENGTH.value:
            self._tally.cut += 1

    def conclude(self, key: str, verdict: Verdict) -> None:
        """Do what was decided about an image, and count it."""
        if not verdict.answers:
            self._note(key, verdict.result, verdict.problem, verdict.duplicate_of)
            return
        if self._sidecars is None:
            self._note(key, verdict.result)
            return
        texts = {self._names[mark]: verdict.answers[mark].text for mark in self._names}
        separator = self._plan.sidecars.separator if self._plan.sidecars else "\n"
        caption = self._plan.template.render(texts, key=key, separator=separator)
        try:
            if verdict.result is Result.DONE and self._sidecars.is_written(key, caption):
                self._note(key, Result.DONE)
                return
            pending = self._sidecars.begin(key, caption)
        except JobSinkError as error:
            self._note(key, Result.FAILED, error.problem)
            return
        if pending is None:
            self._note(key, Result.KEPT)
        else:
            self._to_write.append(_ToWrite(key=key, result=verdict.result, pending=pending))

    def verdict_of(self, answers: Mapping[str, Answer], result: Result) -> Verdict:
        """Say what answers that are complete come to."""
        for answer in answers.values():
            if answer.problem:
                return Verdict(result=Result.FAILED, problem=answer.problem)
        return Verdict(result=result, answers=answers)

    def keep(self, *, at_once: bool = False) -> None:
        """
        Keep what was told since the last time, if that is some time ago.

        The journal has it then. The caption files are written by threads, so that a disk that takes
        its time holds up nothing else.

        Args:
            at_once: Whether it is kept now in any case.

        Raises:
            JobJournalError: If the journal cannot be written.
            JobSinkError: If no caption file can be.
        """
        now_s = self._clock()
        if at_once or now_s - self._kept_s >= self._every_s:
            self._kept_s = now_s
            self._journal.commit()
            for each in self._to_write:
                self._writing.append((each, self._writers.submit(self._write, each.pending)))
            self._to_write = []
        while self._writing and self._writing[0][1].done():
            self._written(*self._writing.popleft())

    def finish(self) -> None:
        """
        Keep all that was told, and wait until every caption file is written.

        Raises:
            JobJournalError: If the journal cannot be written.
            JobSinkError: If no caption file can be.
        """
        self.keep(at_once=True)
        while self._writing:
            self._written(*self._writing.popleft())
        self._journal.commit()

    def close(self) -> None:
        """End the threads that write."""
        self._writers.shutdown(wait=True, cancel_futures=True)

    def _write(self, pending: Pending) -> bool:
        return self._sidecars is None or self._sidecars.write(pending)

    def _written(self, each: _ToWrite, writing: Future[bool]) -> None:
        try:
            is_written = writing.result()
        except JobSinkError as error:
            if fails_everywhere(error):
                raise
            self._note(each.key, Result.FAILED, error.problem)
            return
        if self._sidecars is not None:
            self._sidecars.finish(each.pending, is_written=is_written)
        self._note(each.key, each.result if is_written else Result.KEPT)

    def _note(self, key: str, result: Result, problem: str = "", duplicate_of: str = "") -> None:
        self._journal.note_outcome(
            key, _OUTCOMES[result], problem=problem, duplicate_of=duplicate_of
        )
        self._tally.count(key, result, problem)
