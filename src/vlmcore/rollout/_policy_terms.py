"""What a broker asks of its policy: that it is for the robot, and that its answers are answers."""

from __future__ import annotations

import inspect
import math
from typing import Any

import attrs
import numpy as np

from vlmcore._arguments import shown
from vlmcore.contracts.actions import ActionChunk
from vlmcore.contracts.observation import Observation, check_fits
from vlmcore.errors import ContractError, PolicyError
from vlmcore.policy.fitting import differences_between
from vlmcore.policy.interface import Policy, PolicyInfo
from vlmcore.rollout._checks import require_chunk
from vlmcore.safety.gate import SafetyGate
from vlmcore.safety.latch import SafetyLatch

__all__ = ["PolicyTerms", "require_observer"]


def require_observer(observe: Any) -> None:
    """
    Require a function that observes.

    Raises:
        ContractError: If it cannot be called.
    """
    if not callable(observe):
        raise ContractError(
            "observe", f"got {type(observe).__name__}, expected a function that observes"
        )


class PolicyTerms:
    """
    What is shown to a policy, and what is taken of it, in the order of their times.

    Args:
        policy: Who proposes.
        gate: For which robot.

    Attributes:
        rules: The gate, without the latch around it.
        name: What the policy calls itself.

    Raises:
        ContractError: If one of them is none, or the policy says of itself that it is for another
            robot than the gate; all differences are listed.
    """

    def __init__(self, policy: Policy, gate: SafetyGate | SafetyLatch) -> None:
        _require_policy(policy)
        self.rules = rules = gate.gate if isinstance(gate, SafetyLatch) else gate
        if not isinstance(rules, SafetyGate):
            raise ContractError("gate", f"got {type(gate).__name__}, expected a SafetyGate")
        info = getattr(policy, "info", None)
        _require_fits(info, rules)
        self.name = "policy" if info is None else info.name
        self._names, self._reorder = rules.actions.names, rules.reorder
        self._robot = rules.embodiment
        self._shows_all = info is None or info.cameras is None
        self.forget()

    def forget(self) -> None:
        """Forget the episode."""
        self._captured_at_s = -math.inf  # a simulator may count its time anew

    def look(self, observation: Any) -> Observation:
        """
        Take what was observed.

        Raises:
            ContractError: If it is no observation of the robot, or from before the one before.
        """
        if not isinstance(observation, Observation):
            raise ContractError(
                "observation",
                f"got {type(observation).__name__} from observe, expected an Observation",
            )
        if self._robot is not None:
            check_fits(observation, self._robot, all_cameras=self._shows_all)
        # The same time is no mistake: a camera may be slower than the loop.
        if observation.captured_at_s < self._captured_at_s:
            raise ContractError(
                "observation.captured_at_s",
                f"got {observation.captured_at_s!r} s, expected no time before that of the "
                f"observation before, {self._captured_at_s!r} s: reset() starts anew",
            )
        self._captured_at_s = observation.captured_at_s
        return observation

    def read(self, chunk: Any, observation: Observation) -> ActionChunk:
        """
        Take what the policy answered, in the order of the space if the gate would put it so.

        Raises:
            PolicyError: If there is NaN or infinity in it, which cannot be blended.
            ContractError: If it is no chunk, or not of *observation*.
        """
        require_chunk("chunk", chunk)
        if chunk.observed_at_s != observation.captured_at_s:
            # Of which observation is it then, and how many of its rows are past?
            raise ContractError(
                "chunk.observed_at_s",
                f"got {chunk.observed_at_s!r}, expected captured_at_s of the observation that the "
                f"policy was shown, {observation.captured_at_s!r}",
            )
        names = self._names
        if self._reorder and chunk.names != names and set(chunk.names) == set(names):
            order = [chunk.names.index(name) for name in names]
            chunk = attrs.evolve(chunk, values=chunk.values[:, order], names=names, streams=())
        if not chunk.is_finite:
            step, dim = map(int, np.argwhere(~np.isfinite(chunk.values))[0])
            raise PolicyError(
                chunk.source,
                f"answered with {chunk.values[step, dim]} for {chunk.names[dim]!r} in step {step}",
            )
        taken: ActionChunk = chunk
        return taken


def _require_policy(policy: Any) -> None:
    came = f"got {shown(policy)}"
    if isinstance(policy, (SafetyGate, SafetyLatch)):
        raise ContractError(
            "policy", f"got {type(policy).__name__}, expected a Policy: the gate comes after it"
        )
    if isinstance(policy, type):
        raise ContractError("policy", f"{came}, expected a Policy, not its class")
    methods = [getattr(policy, name, None) for name in ("infer", "reset")]
    if not all(map(callable, methods)):
        raise ContractError(
            "policy", f"{came}, expected a Policy: an object with infer and reset, and info"
        )
    if any(map(inspect.iscoroutinefunction, methods)):
        raise ContractError("policy", f"{came}, expected a Policy, not an asynchronous one")


def _require_fits(info: Any, gate: SafetyGate) -> None:
    """Require what a policy says of itself to be what the gate says; one that is silent fits."""
    if info is None:
        return
    if not isinstance(info, PolicyInfo):
        raise ContractError("policy.info", f"got {type(info).__name__}, expected a PolicyInfo")
    found = differences_between(info, gate.embodiment or gate.actions, reorder=gate.reorder)
    if found:
        raise ContractError("policy.info", "; ".join(found))
