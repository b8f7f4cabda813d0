"""A broker that goes on while its policy thinks."""

from __future__ import annotations

import time
import weakref
from collections.abc import Callable
from concurrent.futures import Executor, Future, wait
from typing import Any

import attrs

from vlmcore._arguments import shown
from vlmcore._arrays import plain_float, require_member, require_positive
from vlmcore.contracts.actions import ActionChunk
from vlmcore.contracts.observation import Observation
from vlmcore.errors import ContractError, PolicyError
from vlmcore.limits import ContractLimits
from vlmcore.policy.interface import Policy
from vlmcore.rollout._checks import require_steps
from vlmcore.rollout._inference_thread import InferenceThread, Request
from vlmcore.rollout._looking_back import LookingBack
from vlmcore.rollout._policy_terms import PolicyTerms, require_observer
from vlmcore.rollout.freshness import Freshness, MaxAges, TimedObservation
from vlmcore.rollout.holding import Starvation, hold_still
from vlmcore.rollout.plans import ActionPlan, Blend
from vlmcore.rollout.prefetch_counts import PrefetchCounts
from vlmcore.safety.gate import SafetyGate
from vlmcore.safety.latch import SafetyLatch
from vlmcore.safety.vetted import VettedChunk

__all__ = ["PrefetchingBroker"]

_LIMITS = ContractLimits()


class PrefetchingBroker:
    """
    As a `ChunkBroker`, but the robot goes on while the policy thinks: `step` never waits for it.

    The policy is called on a thread of its own, one call at a time. It is asked as soon as at most
    *prefetch_at* steps are left, with an observation that is made then. When its answer is there,
    as many of its first rows are dropped as were executed since that observation: rows are counted,
    no latency is estimated. An answer all of whose rows are past is not taken. After a failure, a
    late answer or an observation that was too old the next step asks again.

    While there is nothing to execute, the robot stands still: each such step is vetted, counted,
    and has ``"hold"`` for its source. `Starvation.STOP` raises instead, but not while the first
    answer of an episode is awaited, or the first after a step that the gate refused.

    What the gate refuses was not sent, so nothing that was planned to follow it is, and neither is
    the answer that is under way. Not safe for threads: one thread steps and resets.

    Args:
        policy: Who proposes. Nobody else calls it meanwhile. The broker does not close it.
        gate: As for `ChunkBroker`. Steps that stand still do not count for a latch.
        prefetch_at: How many steps are left when the policy is asked: those that are executed in
            the time of an inference, and some more.
        blend: How a new chunk takes over; ``None`` for at once.
        starvation: What to do when nothing is left and no answer is there.
        max_ages: How old observations and chunks may be; ``None`` for any age. Too old an
            observation is not shown to the policy, and the rest of too old a chunk not executed.
        tolerate_failures: How many times in a row the policy may fail; ``None`` for any number.
        executor: What calls the policy, one call at a time; a thread of its own unless given.
        clock: The clock by which observations are stamped, in seconds.

    Raises:
        ContractError: If an argument is not as described, or the policy says of itself that it is
            for another robot than the gate.

    Example:
        >>> import numpy as np
        >>> from vlmcore.contracts.embodiment import ActionDim, ActionSpace
        >>> from vlmcore.policy.interface import PolicyInfo
        >>> from vlmcore.testing import ScriptedPolicy
        >>> slide = ActionDim(name="x", unit="m", low=-1.0, high=1.0, max_step=0.15)
        >>> gate = SafetyGate(space=ActionSpace(dims=(slide,), rate_hz=20))
        >>> info = PolicyInfo(name="forward", action_names=("x",))
        >>> policy = ScriptedPolicy([[[0.1], [0.2], [0.3], [0.4]]], info=info)
        >>> broker = PrefetchingBroker(policy, gate, prefetch_at=1)
        >>> def observe():
        ...     picture = np.zeros((8, 8, 3), np.uint8)
        ...     return Observation(instruction="go", state=[0.0], images={"front": picture},
        ...         frame_rate_hz=20, captured_at_s=time.monotonic())
        >>> first = broker.step(observe, last_command=[0.0])
        >>> broker.wait_for_policy(timeout_s=10)
        True
        >>> second = broker.step(observe, last_command=first.values[-1])
        >>> [(each.source, each.values.tolist()) for each in (first, second)]
        [('hold', [[0.0]]), ('forward', [[0.1]])]
    """

    def __init__(
        self,
        policy: Policy,
        gate: SafetyGate | SafetyLatch,
        *,
        prefetch_at: int,
        blend: Blend | None = None,
        starvation: Starvation = Starvation.HOLD,
        max_ages: MaxAges | None = None,
        tolerate_failures: int | None = None,
        executor: Executor | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._terms = PolicyTerms(policy, gate)
        rules = self._terms.rules
        require_steps("prefetch_at", prefetch_at, 0, _LIMITS.max_horizon)
        require_member(Starvation, starvation=starvation)
        starvation.require_fits(rules.actions)
        if tolerate_failures is not None:
            require_steps("tolerate_failures", tolerate_failures, 0)
        if not (executor is None or isinstance(executor, Executor)):
            raise ContractError("executor", f"got {shown(executor)}, expected an Executor")
        if executor is None:
            executor = InferenceThread("asking a policy")
            weakref.finalize(self, executor.shutdown)
        self._policy, self._gate, self._past = policy, gate, LookingBack(policy)
        self._prefetch_at = prefetch_at
        self._starvation = starvation
        self._ages = max_ages
        self._freshness = None if max_ages is None else Freshness(max_ages)
        self._tolerate_failures = tolerate_failures
        self._executor = executor
        self._clock = clock
        self._plan = ActionPlan(
            space=rules.actions, blend=blend, execution_horizon=rules.execution_horizon
        )
        self._running: Future[ActionChunk] | None = None  # also what nobody waits for any more
        self._episode = self._episode_of_policy = 0
        self._forget()

    def _forget(self) -> None:
        self._plan.clear()
        self._past.take()
        self._request: Request | None = None
        self._counts = PrefetchCounts()
        self._failures = 0
        self._trouble = ""
        self._has_begun = False
        self._observation: Observation | None = None
        self._answered: Observation | None = None  # by the newest chunk in the plan
        self._proposed: ActionChunk | None = None
        self._is_starved = False

    @property
    def name(self) -> str:
        """What the policy is called."""
        return self._terms.name

    @property
    def gate(self) -> SafetyGate | SafetyLatch:
        """Through which every step goes."""
        return self._gate

    @property
    def observation(self) -> Observation | None:
        """
        What was seen last; ``None`` if nothing was.

        It belongs to what is sent from then on, also while older answers are executed: so it is
        recorded. Which observation a step answers, its ``observed_at_s`` says.
        """
        return self._observation

    @property
    def proposed(self) -> ActionChunk | None:
        """What the last step put to the gate, refused or not; ``None`` if it put nothing."""
        return self._proposed

    @property
    def is_starved(self) -> bool:
        """Whether there was nothing to execute in the last step."""
        return self._is_starved

    @property
    def failures(self) -> int:
        """How many times in a row the policy has failed."""
        return self._failures

    @property
    def trouble(self) -> str:
        """Why there was no new chunk when one was wanted; empty once there is one."""
        return self._trouble

    @property
    def counts(self) -> PrefetchCounts:
        """What came of all requests since the last reset."""
        return self._counts

    def step(
        self,
        observe: Callable[[], Observation | TimedObservation],
        *,
        last_command: Any,
        position: Any = None,
    ) -> VettedChunk:
        """
        Give the next step, vetted.

        Args:
            observe: As for `ChunkBroker.step`.
            last_command: As for `SafetyGate.vet`: what was really sent last.
            position: As for `SafetyGate.vet`.

        Returns:
            One step. Its ``observed_at_s`` is that of the newest chunk in it, or now if it stands
            still.

        Raises:
            PolicyError: If the policy has failed more often than is tolerated, or there is nothing
                to execute under `Starvation.STOP`.
            UnsafeActionError: If the gate refuses the step.
            ContractError: As for `ChunkBroker.step`; and if an observation was made after now.
        """
        require_observer(observe)
        self._proposed, self._is_starved = None, False
        try:
            self._take_in()
            self._drop_what_is_old()
            self._ask(observe)
            if not self._plan.remaining:
                return self._starve(last_command)
            self._proposed = proposed = self._plan.next(last_command=last_command)
            return self._gate.vet(proposed, last_command=last_command, position=position)
        except BaseException:  # also when somebody presses Ctrl-C: it was taken, and is not sent
            self._plan.clear()
            self._request = None
            self._has_begun = False
            raise

    def reset(self) -> None:
        """
        Forget the episode, at once: also an answer that is under way is never executed.

        The policy forgets it on its own thread, before it is asked next; if it fails to, that is a
        failure like others, and it is told again.
        """
        self._terms.forget()
        if self._freshness is not None:
            self._freshness.forget()
        self._episode += 1
        self._forget()

    def wait_for_policy(self, *, timeout_s: float) -> bool:
        """
        Wait until the policy is not being called, as before it is closed.

        Returns:
            Whether it is not.

        Raises:
            ContractError: If *timeout_s* is not a number above 0.
        """
        timeout_s = plain_float(timeout_s)
        require_positive(timeout_s=timeout_s)
        return self._running is None or not wait((self._running,), timeout_s).not_done

    def _count(self, what: str) -> None:
        self._counts = attrs.evolve(self._counts, **{what: getattr(self._counts, what) + 1})

    def _take_in(self) -> None:
        """Take in the answer, if it is there."""
        request = self._request
        if request is None or not request.answer.done():
            return
        self._request = None
        try:
            chunk = self._terms.read(request.answer.result(), request.observation)
        except PolicyError as error:
            self._failures += 1
            self._trouble = str(error)
            self._count("failed")
            most = self._tolerate_failures
            if most is not None and self._failures > most:
                raise
            return
        self._failures = 0
        elapsed = self._plan.step - request.step
        rows = min(chunk.horizon, self._terms.rules.execution_horizon or chunk.horizon)
        if elapsed >= rows:
            self._trouble = f"{chunk.source}: answered with {rows} steps after {elapsed}, too late"
            self._count("late")
            return
        self._plan.offer(chunk, observed_at_step=request.step)
        self._answered, self._trouble, self._has_begun = request.observation, "", True
        self._count("answered")

    def _ask(self, observe: Callable[[], Observation | TimedObservation]) -> None:
        """Ask for what follows the present step, if it is time to, and nothing else is asked."""
        plan = self._plan
        is_answered = plan.observed_at_step == plan.step
        is_busy = self._running is not None and not self._running.done()
        is_due = not (is_answered or is_busy or plan.remaining > self._prefetch_at)
        if not (is_due or self._past.is_wanted):
            return
        seen = observe()
        timed = seen if isinstance(seen, TimedObservation) else None
        observation = self._terms.look(seen if timed is None else timed.observation)
        self._observation = observation
        if self._freshness is not None:
            problem = self._freshness.problem(timed or observation, now_s=self._clock())
            if problem is not None:
                self._trouble = problem
                self._count("stale_observations")
                return
        if not is_due:
            self._past.keep(observation)
            return
        answer = self._executor.submit(self._infer, observation, self._episode, self._past.take())
        self._running = answer
        self._request = Request(observation, plan.step, answer)
        self._count("asked")

    def _infer(self, observation: Observation, episode: int, past: Any) -> ActionChunk:
        """Ask the policy, on its thread; let it forget the last episode first."""
        if self._episode_of_policy != episode:
            self._policy.reset()
            self._episode_of_policy = episode
        self._past.show(past)
        return self._policy.infer(observation)

    def _drop_what_is_old(self) -> None:
        if self._ages is None or self._answered is None or not self._plan.remaining:
            return
        age_s, most_s = self._clock() - self._answered.captured_at_s, self._ages.chunk_s
        if age_s > most_s:
            self._plan.clear()
            self._trouble = f"the chunk is {age_s:g} s old, expected at most {most_s:g} s"
            self._count("stale_chunks")

    def _starve(self, last_command: Any) -> VettedChunk:
        """Stand still, through the gate, unless a latch lets nothing pass."""
        self._is_starved = True
        self._count("starved")
        held = hold_still(self._terms.rules, last_command=last_command, now_s=self._clock())
        self._proposed = held.proposed
        gate = self._gate
        if isinstance(gate, SafetyLatch) and gate.is_tripped:
            return gate.vet(held.proposed, last_command=last_command)
        if self._starvation is Starvation.STOP and self._has_begun:
            why = f"nothing is left to execute: {self._trouble or 'the answer is not there yet'}"
            if isinstance(gate, SafetyLatch):
                gate.trip(held.report, why)
            raise PolicyError(self._terms.name, why)
        return held
