"""A run: every request of a plan is made, measured, scored and kept, before anything is judged."""

from __future__ import annotations

import gc
import queue
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from itertools import groupby
from typing import Protocol

import attrs

from vlmcore.errors import ContractError
from vlmcore.lab.artifacts import Ending, ScoredSample
from vlmcore.lab.asking.requests import Asker, Request
from vlmcore.lab.events import Phase, Sample
from vlmcore.lab.journal import Journal
from vlmcore.lab.loads import ClosedLoop, OpenLoop
from vlmcore.lab.preparing import prompt_of, shown_at
from vlmcore.lab.run_plans import CacheMode, RunPlan
from vlmcore.lab.schedules import Leg, arrivals_ns, measured_legs, nonce, warm_up_legs
from vlmcore.lab.suites import Case, Suite
from vlmcore.vlm.generation import GenerationOptions

__all__ = ["RunProgress", "RunTarget", "Runner"]

_MOST_THREADS = 1024  # of an open loop: more requests under way wait, and are measured as late


@attrs.frozen(kw_only=True)
class RunTarget:
    """
    A target of a run: who is asked, and how its answers are generated.

    Attributes:
        name: As samples name it.
        asker: Asks it.
        options: What it changes of how answers are generated, as ``{"cache": ...}``.
        longest_edge_px: How long an edge of a picture it is shown at most; ``None`` for what cases
            say.
    """

    name: str
    asker: Asker
    options: GenerationOptions
    longest_edge_px: int | None = None


class RunProgress(Protocol):
    """Is told how far a run is."""

    def __call__(self, scored: ScoredSample, /, *, done: int, planned: int) -> None:
        """A request has closed: it is the *done*-th of *planned*, warm-ups counted."""


def _quiet(_: ScoredSample, /, *, done: int, planned: int) -> None:
    """Tell nobody."""


class Runner:
    """
    Makes the requests of a plan, and keeps what came of each in a journal.

    Legs of the same target follow one another without a pause; before another target is asked, all
    requests have closed.

    Args:
        suite: The suite, with its folder.
        plan: What is to be done.
        targets: Who is asked, in the order of the plan.
        progress: Is told how far it is.
        stop: Once set, nothing new is asked.
    """

    def __init__(
        self,
        suite: Suite,
        plan: RunPlan,
        targets: Sequence[RunTarget],
        *,
        progress: RunProgress | None = None,
        stop: threading.Event | None = None,
    ) -> None:
        if plan.retries:
            problem = f"got {plan.retries}, expected 0: a request that was made again hides a delay"
            raise ContractError("retries", problem)
        if plan.cache is CacheMode.WARM_PREFIX and not plan.warm_ups_per_case:
            problem = "got 0, expected at least 1 where the cache is to be warm"
            raise ContractError("warm_ups_per_case", problem)
        self._suite = suite
        self._cases = {case.name: case for case in suite.cases}
        self._plan = plan
        self._targets = {each.name: each for each in targets}
        self._progress = progress or _quiet
        self._stop = stop or threading.Event()
        names, cases = list(self._targets), list(self._cases)
        seed = plan.order_seed
        self._legs = (
            *warm_up_legs(names, cases, per_case=plan.warm_ups_per_case, seed=seed),
            *measured_legs(names, cases, blocks=plan.runs_per_case, seed=seed),
        )
        self._began_ns = time.perf_counter_ns()
        self._is_broken = threading.Event()
        self._counting = threading.Lock()
        self._requests = 0
        self._failures = 0

    @property
    def planned(self) -> int:
        """How many samples there will be, warm-ups not counted."""
        measured = (leg for leg in self._legs if leg.phase is not Phase.WARM_UP)
        return sum(len(leg.cases) for leg in measured)

    def clock_ns(self) -> int:
        """Give the time since the run began, in nanoseconds."""
        return time.perf_counter_ns() - self._began_ns

    def run(self, journal: Journal) -> tuple[Ending, str]:
        """
        Make every request, and say how the run ended, and why.

        Args:
            journal: Where each is kept; it is not finished.

        Raises:
            VlmcoreError: If something cannot be kept; what was kept stays in the journal.
        """
        every = sum(len(leg.cases) for leg in self._legs)
        done = 0
        for _, legs in groupby(self._legs, key=lambda leg: (leg.target, leg.phase)):
            try:
                for sample in self._group(list(legs)):
                    scored = journal.append(self._scored(sample))
                    done += 1
                    self._progress(scored, done=done, planned=every)
            except BaseException:
                self._is_broken.set()  # other threads ask nothing more
                raise
            if self._has_failed():
                most = self._plan.max_failures
                return Ending.STOPPED, f"{self._failures} requests failed, and {most} may"
            if self._stop.is_set():
                return Ending.CANCELLED, "somebody ended it"
        return Ending.COMPLETE, ""

    def _goes_on(self) -> bool:
        return not (self._stop.is_set() or self._is_broken.is_set() or self._has_failed())

    def _has_failed(self) -> bool:
        most = self._plan.max_failures
        return most is not None and self._failures > most

    def _group(self, legs: Sequence[Leg]) -> Iterator[Sample]:
        """Ask one target for several legs, and give what came of each request."""
        requests = [self._request(leg, case) for leg in legs for case in leg.cases]
        asked = self._targets[legs[0].target]
        load, is_warm_up = self._plan.load, legs[0].phase is Phase.WARM_UP
        if is_warm_up or load == ClosedLoop(clients=1):
            yield from self._one_by_one(asked, requests)
        elif isinstance(load, ClosedLoop):
            yield from self._by_clients(asked, requests, load.clients)
        else:
            yield from self._when_due(asked, requests, load)

    def _request(self, leg: Leg, case: str) -> Request:
        is_unique = self._plan.cache is CacheMode.UNIQUE
        before = nonce(self._plan.order_seed, self._requests) if is_unique else ""
        self._requests += 1
        target = self._targets[leg.target]
        asked = shown_at(self._cases[case], target.longest_edge_px)
        options = target.options
        if asked.max_new_tokens is not None:
            options = attrs.evolve(options, max_new_tokens=asked.max_new_tokens)
        return Request(
            case=case,
            target=leg.target,
            phase=leg.phase,
            block=leg.block,
            leg=leg.leg,
            prompt=partial(prompt_of, self._suite, asked, nonce=before),
            options=options,
            deadline_s=self._plan.deadline_s,
            clock_ns=self.clock_ns,
        )

    def _one_by_one(self, asked: RunTarget, requests: Iterable[Request]) -> Iterator[Sample]:
        """Ask in this thread, so that keeping one is never done while another is timed."""
        for request in requests:
            if not self._goes_on():
                return
            with _no_collection():
                sample = self._ask(asked, request)
            yield sample

    def _by_clients(
        self, asked: RunTarget, requests: Sequence[Request], clients: int
    ) -> Iterator[Sample]:
        """Have each client ask as soon as it was answered."""
        waiting: queue.SimpleQueue[Request] = queue.SimpleQueue()
        for request in requests:
            waiting.put(request)

        def work() -> None:
            while self._goes_on():
                try:
                    request = waiting.get_nowait()
                except queue.Empty:
                    return
                closed.put(self._ask(asked, request))

        closed: queue.SimpleQueue[Sample | None] = queue.SimpleQueue()
        yield from _samples_of([work] * min(clients, len(requests)), closed)

    def _when_due(
        self, asked: RunTarget, requests: Sequence[Request], load: OpenLoop
    ) -> Iterator[Sample]:
        """Ask when a request is due, whether the ones before were answered or not."""
        due_ns = arrivals_ns(
            len(requests),
            rate_per_s=load.rate_per_s,
            arrivals=load.arrivals,
            seed=self._plan.order_seed + requests[0].block,
        )
        began_ns = self.clock_ns()

        def work(request: Request, scheduled_ns: int) -> None:
            sample = self._ask(asked, request)
            closed.put(attrs.evolve(sample, scheduled_ns=min(scheduled_ns, sample.request_ns)))

        def dispatch() -> None:
            with ThreadPoolExecutor(min(len(requests), _MOST_THREADS)) as pool:
                made = []
                for request, after_ns in zip(requests, due_ns, strict=True):
                    scheduled_ns = began_ns + after_ns
                    self._stop.wait(max(0, scheduled_ns - self.clock_ns()) / 1e9)
                    if not self._goes_on():
                        break
                    made.append(pool.submit(work, request, scheduled_ns))
                for each in made:
                    each.result()

        closed: queue.SimpleQueue[Sample | None] = queue.SimpleQueue()
        yield from _samples_of([dispatch], closed)

    def _ask(self, asked: RunTarget, request: Request) -> Sample:
        sample = asked.asker.ask(request)
        if sample.failure is not None and request.phase is not Phase.WARM_UP:
            with self._counting:
                self._failures += 1
        return sample

    def _scored(self, sample: Sample) -> ScoredSample:
        case: Case = self._cases[sample.case]
        if sample.failure is not None:
            return ScoredSample(sample=sample)
        score = case.evaluator.score(sample.text, finish_reason=sample.finish_reason)
        return ScoredSample(sample=sample, score=score)


def _samples_of(
    works: Sequence[Callable[[], None]], closed: queue.SimpleQueue[Sample | None]
) -> Iterator[Sample]:
    """Do works in threads of their own, and give what they put into *closed* meanwhile."""
    errors: list[BaseException] = []

    def run(work: Callable[[], None]) -> None:
        try:
            work()
        except BaseException as error:  # noqa: BLE001 - it is raised again, in the other thread
            errors.append(error)
        finally:
            closed.put(None)

    threads = [threading.Thread(target=run, args=(work,), daemon=True) for work in works]
    for thread in threads:
        thread.start()
    left = len(threads)
    while left:
        sample = closed.get()
        if sample is None:
            left -= 1
        else:
            yield sample
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


@contextmanager
def _no_collection() -> Iterator[None]:
    """Leave garbage for after the block: to collect it takes time that is no one's."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
