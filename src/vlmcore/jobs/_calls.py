"""The threads that ask a model: one for a model in this process, many for one behind a server."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

import attrs

from vlmcore._closing import Closing
from vlmcore.errors import (
    ModelServerBusyError,
    ModelServerRateLimitError,
    ModelServerUnavailableError,
    VlmcoreError,
)
from vlmcore.jobs.asking import Asked, Fate, ask, fate_of
from vlmcore.jobs.batching import Question
from vlmcore.jobs.models import JobModel
from vlmcore.jobs.window import Window
from vlmcore.vlm.generation import CancelToken
from vlmcore.vlm.predictor import Predictor

__all__ = ["Calls"]

_FIRST_WAIT_S, _LONGEST_WAIT_S = 0.5, 30.0
_TRIES = 4  # of a question, while others are answered, or where there is no other
_BROKE = 500  # a server that fails over a question says this; one that is away, 502 and above
_AHEAD = 2  # batches at a model of this process, so that it never waits for the next


class Calls(Closing):
    """
    The calls of one run: how many may be made now, and what comes back.

    It belongs to one thread; *wake* is called in others.

    Args:
        model: What is asked; it is loaded when the first call is made.
        in_flight: Calls at once at most, for a model behind a server.
        patience_s: How long a server may be away.
        wake: Is called when there is something to `collect`.
        stop: Once set, no call is begun any more, whoever was about to.
        clock: The time, in seconds.
    """

    def __init__(
        self,
        model: JobModel,
        *,
        in_flight: int,
        patience_s: float,
        wake: Callable[[], None],
        stop: threading.Event | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._model = model
        self._window = Window(in_flight if model.is_served else _AHEAD)
        self._threads = in_flight if model.is_served else 1
        self._patience_s = patience_s
        self._wake = wake
        self._stop = stop or threading.Event()
        self._clock = clock
        self._pool: ThreadPoolExecutor | None = None
        self._predictor: Predictor | None = None
        self._loading = threading.Lock()
        self._cancel = CancelToken()
        self._running: dict[Future[list[Asked]], tuple[int, list[Question]]] = {}
        self._answered = 0
        self._in_vain: set[tuple[str, str]] = set()  # since the last answer
        self._waits = 0
        self._not_before_s = 0.0
        self._away_since_s: float | None = None
        self._fatal: VlmcoreError | None = None

    def close(self) -> None:
        """End what is running, and give the model back."""
        self._cancel.cancel()
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)
        if self._predictor is not None:
            self._model.close(self._predictor)
            self._predictor = None

    @property
    def is_idle(self) -> bool:
        """Whether nothing is on its way."""
        return not self._running

    @property
    def has_room(self) -> bool:
        """Whether a batch may be sent now."""
        is_open = self._fatal is None and self._clock() >= self._not_before_s
        return is_open and self._window.has_room

    @property
    def waiting_for(self) -> str:
        """What keeps questions from being asked, for a person; empty if nothing does."""
        if self._away_since_s is None:
            return ""
        return f"the server, which is away for {self._clock() - self._away_since_s:.0f} s"

    def send(self, questions: list[Question]) -> None:
        """Ask a batch of questions that are to be answered in the same way."""
        if self._pool is None:
            self._pool = ThreadPoolExecutor(self._threads, thread_name_prefix="caption")
        ticket = self._window.send()
        call = self._pool.submit(self._ask, questions)
        self._running[call] = ticket, questions
        call.add_done_callback(lambda _call: self._wake())

    def withdraw(self) -> None:
        """Take back the questions that nobody has begun to answer."""
        for call in self._running:
            call.cancel()

    def collect(self, waiting: int | None = None) -> list[Asked]:
        """
        Return what came back; a question without an answer is to be asked again.

        Args:
            waiting: How many questions wait to be sent; ``None`` if others may come. Once each that
                is left was asked in vain, no other can tell whether the server is well.

        Raises:
            VlmcoreError: If no question can be answered any more; what was on its way at the news
                of that was returned before.
        """
        if self._fatal is not None and not self._running:
            raise self._fatal
        back = [call for call in self._running if call.done()]
        found: list[Asked] = []
        if waiting is not None:
            waiting += sum(len(questions) for _, questions in self._running.values())
        for call in back:
            ticket, questions = self._running.pop(call)
            if call.cancelled():
                asked = [Asked(question=question, answer=None) for question in questions]
            else:
                asked = call.result()
            turned_away = any(one.was_turned_away for one in asked)
            self._window.came_back(ticket, was_turned_away=turned_away)
            found += [self._judged(one, waiting) for one in asked]
        return found

    def _ask(self, questions: list[Question]) -> list[Asked]:
        # Sooner than the loop, which takes back what was not begun.
        if self._stop.is_set() or self._fatal is not None:
            return [Asked(question=question, answer=None) for question in questions]
        with self._loading:
            if self._predictor is None:
                self._predictor = self._model.open()
        return ask(self._predictor, questions, self._cancel)

    def _judged(self, asked: Asked, left: int | None) -> Asked:
        if asked.answer is not None:
            self._answered += 1
            self._in_vain.clear()
            self._away_since_s, self._waits = None, 0
            return asked
        error = asked.error
        if error is None:
            return asked
        if fate_of(error) is Fate.OF_ALL:
            return self._over(asked.question, error)
        self._in_vain.add((asked.question.key, asked.question.mark))
        return self._again(asked.question, error, is_last=len(self._in_vain) == left)

    def _again(self, question: Question, error: VlmcoreError, *, is_last: bool) -> Asked:
        """Have it asked again, unless it alone is not answered, or the server is away too long."""
        now_s = self._clock()
        is_suspect = question.tries > 1 and not isinstance(error, ModelServerUnavailableError)
        is_suspect = is_suspect or (is_last and not _is_of_the_server(error))
        if is_suspect or question.answered_then != self._answered:
            question = attrs.evolve(
                question, tries=question.tries + 1, answered_then=self._answered
            )
        if question.tries >= _TRIES:
            self._in_vain.discard((question.key, question.mark))
            problem = f"asked {_TRIES} times: {getattr(error, 'problem', error)}"
            return Asked(question=question, answer=question.failed(problem), error=error)
        if self._away_since_s is None:
            self._away_since_s = now_s
        elif now_s - self._away_since_s > self._patience_s:
            return self._over(question, error)
        if now_s >= self._not_before_s:  # the first to come back of those that were on their way
            wait_s = min(_LONGEST_WAIT_S, _FIRST_WAIT_S * 2.0**self._waits)
            self._waits += 1
            self._not_before_s = now_s + wait_s
        return Asked(question=question, answer=None, error=error)

    def _over(self, question: Question, error: VlmcoreError) -> Asked:
        self._fatal = self._fatal or error
        self.withdraw()
        self._wake()
        return Asked(question=question, answer=None, error=error)


def _is_of_the_server(error: VlmcoreError) -> bool:
    """Say whether an error tells of the server alone, whatever it was asked."""
    if isinstance(error, ModelServerBusyError):
        return error.status > _BROKE
    return isinstance(error, (ModelServerUnavailableError, ModelServerRateLimitError))
