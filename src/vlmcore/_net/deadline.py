"""One point in time for all that a call waits for."""

from __future__ import annotations

import time

__all__ = ["Deadline"]


class Deadline:
    """When a call has to be over, whatever it waits for until then."""

    def __init__(self, timeout_s: float) -> None:
        self._ends_at_s = time.monotonic() + timeout_s

    @property
    def rest_s(self) -> float:
        """How long there is left, in seconds, zero at least."""
        return max(0.0, self._ends_at_s - time.monotonic())

    def left_s(self) -> float:
        """
        Say how long there is left, in seconds, more than zero.

        Raises:
            TimeoutError: If there is nothing left.
        """
        rest_s = self.rest_s
        if rest_s == 0.0:
            raise TimeoutError
        return rest_s

    def within(self, longest_s: float | None) -> Deadline:
        """Give the deadline of a part that may take so long at most."""
        return self if longest_s is None else Deadline(min(longest_s, self.rest_s))
