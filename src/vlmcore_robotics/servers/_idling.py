"""What is done while nobody asks: unused sessions end, and a policy gives its memory back."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

from vlmcore.errors import ContractError
from vlmcore.policy.interface import OffloadingPolicy, Policy
from vlmcore_robotics.servers._sessions import Sessions

__all__ = ["Idling"]

_log = logging.getLogger(__name__)


class Idling:
    """
    Finds out when something is due, and does it. Only the thread of the policy calls it.

    A timer waits for what is due next, and no other one is made meanwhile: a request costs none.

    Args:
        policy: What is told to offload.
        sessions: Those of its sessions.
        offload_s: After how long without an inference; ``None`` for never.
        later: Has the thread of the policy call a function, after what waits there.

    Raises:
        ContractError: If the policy cannot offload and should.
    """

    def __init__(
        self,
        policy: Policy,
        sessions: Sessions,
        *,
        offload_s: float | None,
        later: Callable[[Callable[[], None]], object],
    ) -> None:
        self._offload: Callable[[], None] | None = None
        if offload_s is not None:
            if not isinstance(policy, OffloadingPolicy):
                name = policy.info.name
                raise ContractError(
                    "idle_offload_s", f"got {name!r}, which has no offload, expected one that has"
                )
            self._offload = policy.offload
        self._offload_s = offload_s or 0.0
        self._sessions = sessions
        self._later = later
        self._used_at_s = time.monotonic()
        self._is_offloaded = False
        self._is_stopped = False
        self._timer: threading.Timer | None = None

    def used(self) -> None:
        """Note that an inference has ended now."""
        self._used_at_s = time.monotonic()
        self._is_offloaded = False
        self.wait()

    def wait(self) -> None:
        """Come back when something is due, if anything ever is."""
        due_s = [self._sessions.idle_at_s()]
        if self._offload is not None and not self._is_offloaded:
            due_s.append(self._used_at_s + self._offload_s)
        next_s = min((each for each in due_s if each is not None), default=None)
        if next_s is None or self._timer is not None or self._is_stopped:
            return
        self._timer = threading.Timer(max(0.0, next_s - time.monotonic()), self._ring)
        self._timer.daemon = True
        self._timer.start()

    def stop(self) -> None:
        """Do nothing more."""
        self._is_stopped = True
        if self._timer is not None:
            self._timer.cancel()

    def _ring(self) -> None:
        """Hand over to the thread of the policy; this one is the timer's."""
        try:
            self._later(self._do_what_is_due)
        except RuntimeError:  # that thread takes nothing more
            return

    def _do_what_is_due(self) -> None:
        self._timer = None
        if self._is_stopped:
            return
        now_s = time.monotonic()
        self._sessions.end_idle(now_s=now_s)
        is_due = now_s - self._used_at_s >= self._offload_s
        if self._offload is not None and not self._is_offloaded and is_due:
            self._is_offloaded = True
            try:
                self._offload()
            except BaseException:  # noqa: BLE001 - it keeps its memory, and can be asked
                _log.exception("the policy could not be offloaded")
        self.wait()
