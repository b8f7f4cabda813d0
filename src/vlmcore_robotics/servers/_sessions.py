"""The policies of sessions: one each, where the policy can be had more than once."""

from __future__ import annotations

import logging
from typing import Any

import attrs

from vlmcore.errors import PolicyRefusedError
from vlmcore.policy.interface import ForkingPolicy, Policy

__all__ = ["Sessions"]

_log = logging.getLogger(__name__)


@attrs.define(kw_only=True)
class _Held:
    policy: Policy
    used_at_s: float


class Sessions:
    """
    Knows the policy of each session. Only the thread of the policy calls it.

    Args:
        policy: The policy of those without a session; of all, if it is no `ForkingPolicy`.
        most: How many sessions there may be; the one that was not used for longest gives way.
        idle_s: For how long an unused one is kept.
    """

    def __init__(self, policy: Policy, *, most: int, idle_s: float) -> None:
        self._policy = policy
        self._most = most
        self._idle_s = idle_s
        self._held: dict[str, _Held] = {}  # the one that was used last is the last one

    def policy_of(self, session: str | None, *, now_s: float) -> Policy:
        """Give the policy of *session*, made if it is a new one."""
        if session is None or not isinstance(self._policy, ForkingPolicy):
            return self._policy
        held = self._held.pop(session, None)
        if held is None:
            while len(self._held) >= self._most:
                self.end(next(iter(self._held)))
            held = _Held(policy=_forked(self._policy), used_at_s=now_s)
        held.used_at_s = now_s
        self._held[session] = held
        return held.policy

    def end(self, session: str) -> None:
        """Close the policy of *session*, if it has one of its own."""
        held = self._held.pop(session, None)
        if held is None:
            return
        try:
            held.policy.close()
        except BaseException:  # noqa: BLE001 - it is gone for us, and others wait
            _log.exception("a session of the policy could not be closed")

    def end_idle(self, *, now_s: float) -> None:
        """Close the policies that nobody used for too long."""
        for session, held in tuple(self._held.items()):
            if now_s - held.used_at_s >= self._idle_s:
                self.end(session)

    def idle_at_s(self) -> float | None:
        """Say when the next of them will have been unused for too long."""
        return next((held.used_at_s + self._idle_s for held in self._held.values()), None)

    def close(self) -> None:
        """Close the policies of all sessions."""
        for session in tuple(self._held):
            self.end(session)


def _forked(policy: ForkingPolicy) -> Policy:
    forked: Any = policy.fork()
    if not isinstance(forked, Policy):
        came = type(forked).__name__
        raise PolicyRefusedError(policy.info.name, f"its fork is {came}, expected a Policy")
    return forked
