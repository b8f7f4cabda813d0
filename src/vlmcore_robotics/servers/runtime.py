"""One inference at a time, on a thread of its own, whatever asks for it."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

import attrs

from vlmcore._arrays import require_count, require_finite_between, require_name
from vlmcore._closing import Closing
from vlmcore.contracts.actions import ActionChunk
from vlmcore.contracts.observation import Observation
from vlmcore.errors import (
    ContractError,
    PolicyError,
    PolicyRefusedError,
    PolicyUnavailableError,
    VlmcoreError,
)
from vlmcore.limits import ContractLimits
from vlmcore.policy.fitting import require_expected
from vlmcore.policy.interface import ForkingPolicy, Policy, PolicyInfo
from vlmcore_robotics.servers._idling import Idling
from vlmcore_robotics.servers._sessions import Sessions

__all__ = ["PolicyRuntime", "RuntimeHealth", "TimedChunk"]

_log = logging.getLogger(__name__)
_Result = TypeVar("_Result")
_A_DAY_S = 86_400.0


@attrs.frozen(kw_only=True)
class TimedChunk:
    """
    What a policy proposed, and how long it took.

    Attributes:
        chunk: The proposal.
        queued_s: How long the request waited for others.
        inferred_s: How long the policy took.
    """

    chunk: ActionChunk
    queued_s: float
    inferred_s: float


@attrs.frozen(kw_only=True)
class RuntimeHealth:
    """
    How a runtime is; it never waits for an inference.

    Attributes:
        is_open: Whether it takes requests.
        in_hand: How many requests it has, the one that is computed included.
        answered: How many were answered since it was made.
        failed: How many the policy failed at, or refused.
        refused: How many were refused because too many waited.
    """

    is_open: bool
    in_hand: int
    answered: int
    failed: int
    refused: int


class PolicyRuntime(Closing):
    """
    Runs a policy for servers: what several clients ask is done one after the other.

    All calls of the policy, `close` included, are made on one thread, which is not that of who
    asks: models that belong to a thread stay on theirs, and sockets are served meanwhile. Safe for
    threads. The policy is closed with the runtime.

    A policy that keeps something between its calls, as a queue of steps, offers ``fork``: then each
    session gets a policy of its own (see `vlmcore.policy.interface.ForkingPolicy`), and is reset
    by itself. Without ``fork`` all sessions share the policy, and one resets it for all.

    Args:
        policy: The policy.
        max_waiting: How many requests may wait beside the one that is computed; others are refused
            at once, since an answer to an old observation is worth little.
        max_sessions: How many sessions may have a policy of their own. When another one comes, the
            one that was not used for longest ends; if it is used again, it begins anew.
        session_idle_s: After how many seconds without use a session ends, up to a day.
        idle_offload_s: After how many seconds without an inference the policy is told to give back
            the memory of its accelerator, up to a day; ``None`` for never. It has to be an
            `vlmcore.policy.interface.OffloadingPolicy`.

    Raises:
        ContractError: If an argument is not as described.

    Example:
        >>> from vlmcore.contracts.presets import find_embodiment
        >>> from vlmcore.policy.interface import PolicyInfo
        >>> from vlmcore.testing import ScriptedPolicy, example_observation
        >>> seen = example_observation(find_embodiment("generic_7dof_joint_gripper"))
        >>> info = PolicyInfo(name="nod", action_names=("neck",))
        >>> with PolicyRuntime(ScriptedPolicy([[[0.1], [0.2]]], info=info)) as runtime:
        ...     timed = runtime.submit(seen).result()
        >>> timed.chunk.values.ravel().tolist(), runtime.health.answered
        ([0.1, 0.2], 1)
    """

    def __init__(
        self,
        policy: Policy,
        *,
        max_waiting: int = 8,
        max_sessions: int = 64,
        session_idle_s: float = 600.0,
        idle_offload_s: float | None = None,
    ) -> None:
        if not isinstance(policy, Policy):
            raise ContractError("policy", f"got {type(policy).__name__}, expected a Policy")
        if max_waiting != 0:
            require_count(max_waiting=max_waiting)
        require_count(max_sessions=max_sessions)
        require_finite_between(0.0, _A_DAY_S, session_idle_s=session_idle_s)
        if idle_offload_s is not None:
            require_finite_between(0.0, _A_DAY_S, idle_offload_s=idle_offload_s)
        self._policy = policy
        self._max_waiting = max_waiting
        self._info = policy.info
        self._lock = threading.Lock()  # of the numbers; never held while a policy works
        self._health = RuntimeHealth(is_open=True, in_hand=0, answered=0, failed=0, refused=0)
        self._sessions = Sessions(policy, most=max_sessions, idle_s=session_idle_s)
        self._idling = Idling(policy, self._sessions, offload_s=idle_offload_s, later=self._later)
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=f"policy {self._info.name}")
        self._idling.wait()

    @property
    def info(self) -> PolicyInfo:
        """What the policy said about itself when the runtime was made."""
        return self._info

    @property
    def has_sessions(self) -> bool:
        """Whether sessions are kept apart."""
        return isinstance(self._policy, ForkingPolicy)

    @property
    def health(self) -> RuntimeHealth:
        """How it is now."""
        return self._health

    def submit(self, observation: Observation, *, session: str | None = None) -> Future[TimedChunk]:
        """
        Ask for the next actions.

        What the policy raises beside errors of vlmcore is logged, and told as `PolicyRefusedError`
        by the name of its class only. If the result is cancelled before its turn comes, the policy
        is not asked.

        Args:
            observation: What is seen.
            session: Whose it is; those without a session share one.

        Returns:
            What will hold the chunk or the error.

        Raises:
            ContractError: If *session* is no name, or the observation is not what the policy says
                that it expects.
            PolicyUnavailableError: If too many wait already.
            PolicyError: If it is closed.
        """
        came_at_s = time.perf_counter()
        _require_session(session)
        require_expected(observation, self._info)

        def infer() -> TimedChunk:
            if not self._health.is_open:
                raise self._closed()
            began_at_s = time.perf_counter()
            try:
                chunk = self._policy_of(session).infer(observation)
                ended_at_s = time.perf_counter()
            finally:
                self._idling.used()
            if not isinstance(chunk, ActionChunk):
                raise PolicyRefusedError(
                    self._info.name, f"it gave {type(chunk).__name__}, expected an ActionChunk"
                )
            return TimedChunk(
                chunk=chunk,
                queued_s=began_at_s - came_at_s,
                inferred_s=ended_at_s - began_at_s,
            )

        return self._submitted(infer)

    def reset(self, *, session: str | None = None) -> Future[None]:
        """
        Let the policy forget the episode of *session*, after the requests that wait already.

        Raises:
            ContractError: If *session* is no name.
            PolicyUnavailableError: If too many wait already.
            PolicyError: If it is closed.
        """
        _require_session(session)
        return self._submitted(lambda: self._policy_of(session).reset())

    def end_session(self, session: str) -> None:
        """
        Close what *session* has of its own, after the requests that wait already; do not wait.

        Raises:
            ContractError: If *session* is no name.
        """
        _require_session(session)
        with self._lock:
            if self._health.is_open:
                self._later(lambda: self._sessions.end(session))

    def close(self) -> None:
        """
        End the inference that runs, drop those that wait, and close the policy.

        It waits until the policy is closed. Closing twice is no error.
        """
        with self._lock:
            was_open = self._health.is_open
            self._health = attrs.evolve(self._health, is_open=False)
        try:
            if was_open:
                self._thread.submit(self._guarded, self._close_all).result()
        finally:
            self._thread.shutdown()

    def _policy_of(self, session: str | None) -> Policy:
        policy = self._sessions.policy_of(session, now_s=time.monotonic())
        self._idling.wait()
        return policy

    def _close_all(self) -> None:
        self._idling.stop()
        self._sessions.close()
        self._policy.close()

    def _later(self, action: Callable[[], None]) -> Future[None]:
        return self._thread.submit(action)

    def _submitted(self, action: Callable[[], _Result]) -> Future[_Result]:
        """Queue *action*, unless too much is queued; count it while it is in hand."""
        waiting = [action]  # may hold many frames; what is cancelled stays in the queue

        def counted() -> _Result:
            outcome: object = None
            try:
                outcome = result = self._guarded(waiting.pop())
            except VlmcoreError as error:
                outcome = error
                raise
            finally:  # before anybody hears of it, who may ask again at once
                self._let_out(outcome)
            return result

        def dropped(future: Future[_Result]) -> None:
            if future.cancelled():
                waiting.clear()
                self._let_out(None)

        self._take_in()
        future = self._thread.submit(counted)
        future.add_done_callback(dropped)
        return future

    def _take_in(self) -> None:
        name, most = self._info.name, self._max_waiting + 1
        with self._lock:
            health = self._health
            if not health.is_open:
                raise self._closed()
            if health.in_hand >= most:
                self._health = attrs.evolve(health, refused=health.refused + 1)
                raise PolicyUnavailableError(name, f"busy: {health.in_hand} requests are in hand")
            self._health = attrs.evolve(health, in_hand=health.in_hand + 1)

    def _let_out(self, outcome: object) -> None:
        with self._lock:
            health = self._health
            self._health = attrs.evolve(
                health,
                in_hand=health.in_hand - 1,
                answered=health.answered + isinstance(outcome, TimedChunk),
                failed=health.failed + isinstance(outcome, VlmcoreError),
            )

    def _closed(self) -> PolicyError:
        return PolicyError(self._info.name, "this policy is closed: make it again")

    def _guarded(self, action: Callable[[], _Result]) -> _Result:
        """Let out errors of vlmcore only: others have paths and values of this machine in them."""
        try:
            return action()
        except VlmcoreError:
            raise
        except BaseException as error:  # noqa: BLE001 - an exit, too, is one of the policy's only
            _log.exception("the policy %s failed", self._info.name)
            words = f"the policy failed with {type(error).__name__}; its log says more"
        raise PolicyRefusedError(self._info.name, words)


def _require_session(session: str | None) -> None:
    if session is not None:
        longest = ContractLimits().max_name_characters
        require_name("session", session, max_characters=longest)
