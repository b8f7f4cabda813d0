"""
The loop of a job whose images are read, and asked about, by the workers of a cluster of Ray.

This process alone has the journal, the caption files and the counts. It decides, as the loop of one
machine does, which images there is something to do about, gives the cluster orders for those, and
keeps what the workers say as it comes. Without an order, no cluster is begun or reached.
"""

from __future__ import annotations

import contextlib
import itertools
import threading
from collections import deque
from collections.abc import Generator, Iterator
from typing import TypeVar

import attrs

from vlmcore._optional import optional_dependency
from vlmcore.errors import ContractError, JobError, JobJournalError
from vlmcore.jobs._arrivals import arriving
from vlmcore.jobs.bookkeeping import Books, Verdict
from vlmcore.jobs.choosing import Choices, Same
from vlmcore.jobs.clusters import RayCluster
from vlmcore.jobs.items import Content, FileContent, Item
from vlmcore.jobs.journal import Answer, Journal, Known
from vlmcore.jobs.models import JobModel, LoadedModel
from vlmcore.jobs.orders import Asking, Order, Told
from vlmcore.jobs.plans import CaptionPlan
from vlmcore.jobs.reading import Looking, Seen
from vlmcore.jobs.reports import Result, Tally
from vlmcore.jobs.sources.archives import MemberContent
from vlmcore.jobs.walking import Begun, Walk

__all__ = ["RayEngine"]

T = TypeVar("T")

_CHANGED = "has the pixels of {key}, which changed meanwhile: run the job again"


class RayEngine:
    """
    Runs one job on a cluster.

    Args:
        plan: What is to be done.
        model: What is asked; each worker loads it.
        journal: The journal, with a run begun.
        books: Keeps journal and caption files.
        tally: Is told how far it is.
        stop: Once set, no more is taken of the workers; what came is kept.
        is_surveyed: Whether the journal knows already which images there are.
        cluster: Where it runs.

    Raises:
        MissingDependencyError: If Ray is not installed.
        ContractError: If the model is a predictor, which cannot go to another process.
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
        cluster: RayCluster,
    ) -> None:
        with optional_dependency("ray", "ray", "pandas"):
            from vlmcore.jobs import _ray  # noqa: PLC0415
        if isinstance(model, LoadedModel):
            problem = "got a predictor, which cannot go to other processes; expected its name"
            raise ContractError("model", problem)
        self._ray = _ray
        self._plan = plan
        self._model = model
        self._journal = journal
        self._books = books
        self._tally = tally
        self._stop = stop
        self._cluster = cluster
        self._walk = iter(Walk(plan, journal, books=books, tally=tally, is_surveyed=is_surveyed))
        self._choices = Choices(plan, journal, books)
        self._looking = Looking(
            budget=plan.budget,
            wants_identity=plan.reuse_identical,
            wants_likeness=plan.near_duplicates is not None,
        )
        self._is_connected = False
        self._is_walked = False  # to the end of the source
        self._is_decided = False  # about every image
        self._open = 0  # orders that nothing has come back for
        self._asked_with: dict[Same, str] = {}
        self._followers: dict[str, list[Seen]] = {}  # with the pixels of one that is asked about

    def run(self) -> bool:
        """
        Do the job, and say whether all of it was done.

        Raises:
            VlmcoreError: If it cannot go on; what came is kept.
        """
        try:
            with contextlib.ExitStack() as stack:
                self._run(stack)
            self._books.finish()
        except JobJournalError:
            raise  # there is nothing to keep things in
        except BaseException:
            with contextlib.suppress(JobError):  # that it could not be kept is told already
                self._books.finish()
            raise
        finally:
            self._tally.show(at_once=True)
        return self._is_decided and not self._open

    def _run(self, stack: contextlib.ExitStack) -> None:
        compares = self._looking.wants_identity or self._looking.wants_likeness
        orders = self._chosen(stack) if compares else self._orders()
        first = next(orders, None)
        if first is None:
            return
        self._connect(stack)
        told = self._ray.answered(
            itertools.chain([first], orders),
            self._looking,
            self._model,
            cluster=self._cluster,
            asking=Asking(
                prompts=self._plan.prompts,
                marks=self._plan.marks,
                batch_size=self._plan.batch_size,
                in_flight=self._plan.in_flight,
                patience_s=self._plan.patience_s,
                limits=self._plan.limits,
            ),
        )
        for block in self._arriving(told, stack):
            self._tally.waiting_for = ""
            for each in block:
                self._settle(each)
            self._books.finish()
            for each in block:
                if each.error is not None:
                    raise each.error

    def _connect(self, stack: contextlib.ExitStack) -> None:
        """Be connected until the end of the run, from the first order on."""
        if not self._is_connected:
            self._tally.waiting_for = "the cluster"
            self._tally.show(at_once=True)
            stack.enter_context(self._ray.connected(self._cluster))
            self._is_connected = True

    def _arriving(
        self, blocks: Generator[list[T], None, None], stack: contextlib.ExitStack
    ) -> Iterator[list[T]]:
        came = arriving(blocks, meanwhile=self._tick, is_over=self._stop.is_set)
        stack.callback(came.close)  # before the cluster is left
        return came

    def _tick(self) -> None:
        self._tally.show()
        self._books.keep()

    def _begun(self) -> Iterator[Begun]:
        for begun in self._walk:
            self._tick()
            if self._stop.is_set():
                return
            if begun is not None:
                yield begun
        self._is_walked = True

    def _orders(self) -> Iterator[Order]:
        """Give an order for each image that is not known to be done, to be read and asked about."""
        for begun in self._begun():
            seen = begun.seen
            if seen is None or not self._choices.is_decided(seen, begun.known, was_read=False):
                yield self._order(begun.item, begun.done)
        self._is_decided = self._is_walked

    def _chosen(self, stack: contextlib.ExitStack) -> Iterator[Order]:
        """Have all images looked at that nothing is known of, and give an order for some."""
        waiting: deque[tuple[Known, Seen | None]] = deque()
        looks = self._looks(waiting, stack)
        while waiting and not self._stop.is_set():
            known, seen = waiting.popleft()
            was_read = seen is None
            if seen is None:
                seen = next(looks, None)
                self._tally.waiting_for = ""
            if seen is None:
                return  # it was stopped
            self._tick()
            if self._choices.is_decided(seen, known, was_read=was_read):
                continue
            self._choices.chosen(seen, known)
            same = self._choices.same(seen)
            key = seen.item.key
            first = key if same is None else self._asked_with.setdefault(same, key)
            if first == key:
                yield self._order(seen.item)
            else:
                self._followers.setdefault(first, []).append(seen)
        self._is_decided = self._is_walked and not waiting

    def _looks(
        self, waiting: deque[tuple[Known, Seen | None]], stack: contextlib.ExitStack
    ) -> Iterator[Seen]:
        """Put all images into *waiting*, and have those looked at that were not seen."""

        def orders() -> Iterator[Order]:
            for begun in self._begun():
                waiting.append((begun.known, begun.seen))
                if begun.seen is None:
                    yield Order(item=_placed(begun.item), done=begun.done)

        lacking = orders()
        first = next(lacking, None)
        if first is None:
            return iter(())
        self._connect(stack)
        blocks = self._ray.looked_at(itertools.chain([first], lacking), self._looking)
        return itertools.chain.from_iterable(self._arriving(blocks, stack))

    def _order(self, item: Item, done: bytes | None = None) -> Order:
        self._open += 1
        answered = self._books.answered_before(item.key)
        return Order(item=_placed(item), done=done, answered=answered)

    def _settle(self, told: Told) -> None:
        """Keep what a worker says about an image, and conclude it if that is all."""
        seen = told.seen
        key, digest = seen.item.key, seen.digest
        known = self._journal.known(key)
        if known is None:
            raise AssertionError(f"{key}: no order was given for it")
        self._open -= 1
        self._books.seen(seen)
        answers: dict[str, Answer] = {}
        verdict: Verdict | None = Verdict(result=Result.FAILED, problem=seen.problem)
        if digest is not None and not seen.problem:
            for answer in told.answers:
                self._books.answered(key, digest, answer)
            answers = self._books.answers(key, digest) | {each.mark: each for each in told.answers}
            if told.answers and answers.keys() == set(self._plan.marks):
                verdict = self._books.verdict_of(answers, Result.CAPTIONED)
            else:
                verdict = self._books.verdict(key, known, digest)
        if verdict is not None:
            self._books.conclude(key, verdict)
            self._settle_followers(seen, answers)

    def _settle_followers(self, first: Seen, answers: dict[str, Answer]) -> None:
        """Conclude the images with the pixels of *first*, unless these are others by now."""
        for seen in self._followers.pop(first.item.key, ()):
            if answers and seen.identity == first.identity:
                self._choices.take_over(seen, answers)
                verdict = self._books.verdict_of(answers, Result.REUSED)
            else:
                problem = _CHANGED.format(key=first.item.key)
                verdict = Verdict(result=Result.FAILED, problem=problem)
            self._books.conclude(seen.item.key, verdict)


def _placed(item: Item) -> Item:
    """Say where an image is in words that mean the same in any process."""
    match item.content:
        case FileContent(path=path):
            content: Content = FileContent(path.absolute())
        case MemberContent() as member:
            content = attrs.evolve(member, archive=member.archive.absolute())
        case content:
            pass
    return attrs.evolve(item, content=content)
