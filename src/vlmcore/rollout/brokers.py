"""Between a control loop that wants one action at a time and a policy that proposes many."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from vlmcore._arrays import require_count
from vlmcore.contracts.actions import ActionChunk
from vlmcore.contracts.observation import Observation
from vlmcore.errors import ContractError, PolicyError
from vlmcore.policy.interface import Policy
from vlmcore.rollout._checks import require_steps
from vlmcore.rollout._looking_back import LookingBack
from vlmcore.rollout._policy_terms import PolicyTerms, require_observer
from vlmcore.rollout.plans import ActionPlan, Blend
from vlmcore.safety.gate import SafetyGate
from vlmcore.safety.latch import SafetyLatch
from vlmcore.safety.vetted import VettedChunk

__all__ = ["ChunkBroker"]


class ChunkBroker:
    """
    Between a control loop that wants one action at a time and a policy that proposes many.

    The policy is asked every *replan_every* steps, and before if its chunk runs out. Each step is
    vetted by itself, from the command that was really sent before it: what a remedy or a controller
    changed on the way is where the next step starts.

    A policy fails if it raises `PolicyError`, and if it answers with NaN or infinity, which cannot
    be blended. A failure is raised, unless it is tolerated: then the chunk before goes on while it
    lasts, and the policy is asked again at the next step. It is never made up for: when nothing is
    left, the failure is raised.

    What the gate refuses was not sent, so nothing that was planned to follow it is either: the
    next step asks the policy anew.

    Inference happens within `step`, which takes as long; where the robot must go on meanwhile, take
    a `vlmcore.rollout.prefetching.PrefetchingBroker`. Not safe for threads.

    Args:
        policy: Who proposes. The broker does not close it.
        gate: Through which every step goes. Its ``execution_horizon`` says for how many steps a
            chunk may be executed, also when the policy fails; ``None`` for all that it has. A
            latch counts unsafe steps then, not chunks: let it trip after as many.
        replan_every: After how many steps the policy is asked again.
        blend: How a new chunk takes over; ``None`` for at once.
        tolerate_failures: How many times in a row the policy may fail.

    Raises:
        ContractError: If an argument is not as described, or the policy says of itself that it is
            for another robot than the gate; all differences are listed.

    Example:
        >>> import numpy as np
        >>> from vlmcore.contracts.embodiment import ActionDim, ActionSpace
        >>> class Forward:
        ...     def infer(self, seen):
        ...         path = [[seen.state[0] + 0.1 * i] for i in range(1, 9)]
        ...         return ActionChunk(
        ...             values=path, names=("x",), source="doc", observed_at_s=seen.captured_at_s
        ...         )
        ...     def reset(self):
        ...         pass
        >>> slide = ActionDim(name="x", unit="m", low=-1.0, high=1.0, max_step=0.15)
        >>> gate = SafetyGate(space=ActionSpace(dims=(slide,), rate_hz=20))
        >>> broker = ChunkBroker(Forward(), gate, replan_every=2)
        >>> at = [0.0]
        >>> def observe():
        ...     picture = np.zeros((8, 8, 3), np.uint8)
        ...     return Observation(instruction="go", state=at, images={"front": picture},
        ...         frame_rate_hz=20, captured_at_s=0)
        >>> for _ in range(3):
        ...     at = broker.step(observe, last_command=at).values[0]
        >>> round(at.item(), 6)
        0.3
    """

    def __init__(
        self,
        policy: Policy,
        gate: SafetyGate | SafetyLatch,
        *,
        replan_every: int,
        blend: Blend | None = None,
        tolerate_failures: int = 0,
    ) -> None:
        self._terms = PolicyTerms(policy, gate)
        rules = self._terms.rules
        require_count(replan_every=replan_every)
        horizon = rules.execution_horizon
        if horizon is not None and replan_every > horizon:
            raise ContractError(
                "replan_every",
                f"got {replan_every}, expected at most execution_horizon of the gate, {horizon}",
            )
        require_steps("tolerate_failures", tolerate_failures, 0)
        self._policy = policy
        self._past = LookingBack(policy)
        self._gate = gate
        self._replan_every = replan_every
        self._tolerate_failures = tolerate_failures
        self._failures = 0
        self._plan = ActionPlan(space=rules.actions, blend=blend, execution_horizon=horizon)
        self._observation: Observation | None = None
        self._proposed: ActionChunk | None = None

    @property
    def gate(self) -> SafetyGate | SafetyLatch:
        """Through which every step goes."""
        return self._gate

    @property
    def observation(self) -> Observation | None:
        """What the newest chunk in the last step answers; ``None`` if there is none yet."""
        return self._observation

    @property
    def failures(self) -> int:
        """How many times in a row the policy has failed."""
        return self._failures

    @property
    def proposed(self) -> ActionChunk | None:
        """What the last step put to the gate, refused or not; ``None`` if it put nothing."""
        return self._proposed

    def step(
        self, observe: Callable[[], Observation], *, last_command: Any, position: Any = None
    ) -> VettedChunk:
        """
        Give the next step, vetted.

        Args:
            observe: Is called if the policy is asked, and in each step if it is a
                `vlmcore.policy.interface.ObservingPolicy` that looks back. What it gives may be the
                frame that was shown last, and none before it.
            last_command: As for `SafetyGate.vet`: what was really sent last.
            position: As for `SafetyGate.vet`: where the things are now that changes and rates move.

        Returns:
            One step. Its ``observed_at_s`` is that of the newest chunk in it.

        Raises:
            PolicyError: If the policy failed, and that is not tolerated or nothing is left.
            UnsafeActionError: If the gate refuses the step.
            ContractError: If *observe* gives no observation of the robot, or one from before the
                last; if the policy answers with something that is not a chunk of the space and of
                the observation; or if *last_command* or *position* does not fit the space.
        """
        require_observer(observe)
        self._proposed = None
        if self._is_due():
            self._replan(self._terms.look(observe()))
        elif self._past.is_wanted:
            self._past.keep(self._terms.look(observe()))
        try:
            self._proposed = proposed = self._plan.next(last_command=last_command)
            return self._gate.vet(proposed, last_command=last_command, position=position)
        except BaseException:  # also when somebody presses Ctrl-C: it was taken, and is not sent
            self._plan.clear()
            raise

    def reset(self) -> None:
        """Forget the episode, and let the policy forget it."""
        self._plan.clear()
        self._failures = 0
        self._terms.forget()
        self._past.take()
        self._observation = self._proposed = None
        self._policy.reset()

    def _is_due(self) -> bool:
        asked_at = self._plan.observed_at_step
        if asked_at is None or self._plan.remaining == 0:
            return True
        return self._plan.step - asked_at >= self._replan_every

    def _replan(self, observation: Observation) -> None:
        self._past.show(self._past.take())
        try:
            chunk = self._terms.read(self._policy.infer(observation), observation)
        except PolicyError:
            self._failures += 1
            if self._failures > self._tolerate_failures or self._plan.remaining == 0:
                raise
            return
        self._plan.offer(chunk, observed_at_step=self._plan.step)
        self._observation = observation
        self._failures = 0
