"""What a policy that looks back is shown of the steps in which it is not asked."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from contextlib import suppress
from typing import Any

from vlmcore.contracts.observation import Observation
from vlmcore.errors import PolicyError
from vlmcore.policy.interface import ObservingPolicy

__all__ = ["LookingBack"]


class LookingBack:
    """
    Keeps what is seen between the calls of a policy, as far as it looks back; of others, nothing.

    Args:
        policy: Who may look back.
    """

    def __init__(self, policy: Any) -> None:
        self._policy = policy if isinstance(policy, ObservingPolicy) else None
        self._seen: deque[Observation] = deque()

    @property
    def is_wanted(self) -> bool:
        """Whether the robot has to be looked at in every step."""
        return self._policy is not None and self._policy.steps_back() > 0

    def keep(self, observation: Observation) -> None:
        """Keep what is seen in a step in which nothing is asked."""
        self._seen.append(observation)
        while self._policy is not None and len(self._seen) > self._policy.steps_back():
            self._seen.popleft()

    def take(self) -> tuple[Observation, ...]:
        """Give what was kept, oldest first, and keep it no longer."""
        seen = tuple(self._seen)
        self._seen.clear()
        return seen

    def show(self, seen: Iterable[Observation]) -> None:
        """Show it to the policy, where that is called; one that cannot look says so when asked."""
        for each in seen:
            with suppress(PolicyError):
                if self._policy is not None:
                    self._policy.observe(each)
