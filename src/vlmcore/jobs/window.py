"""How many calls a server is sent at once: more while it keeps up, half as many when it says no."""

from __future__ import annotations

import attrs

__all__ = ["Window"]


@attrs.define
class Window:
    """
    A window of calls in flight that finds out how much a server takes.

    It is full at first. Each time that calls are turned away it is halved, once for all that were
    sent before; for each window of calls that are answered at once it grows by one. (The rule of
    TCP: V. Jacobson, "Congestion avoidance and control", 1988.)

    Args:
        most: The calls in flight at most.

    Attributes:
        in_flight: The calls that were sent and have not come back.

    Example:
        >>> window = Window(8)
        >>> ticket = window.send()
        >>> window.came_back(ticket, was_turned_away=True)
        >>> window.allowed
        4
    """

    most: int
    in_flight: int = attrs.field(default=0, init=False)
    _size: float = attrs.field(init=False)
    _sent: int = attrs.field(default=0, init=False)
    _halved_at: int = attrs.field(default=0, init=False)

    def __attrs_post_init__(self) -> None:
        self._size = float(self.most)

    @property
    def allowed(self) -> int:
        """How many calls may be in flight now, 1 at least."""
        return int(self._size)

    @property
    def has_room(self) -> bool:
        """Whether another call may be sent."""
        return self.in_flight < self.allowed

    def send(self) -> int:
        """Count a call as sent, and return its ticket."""
        self.in_flight += 1
        self._sent += 1
        return self._sent

    def came_back(self, ticket: int, *, was_turned_away: bool) -> None:
        """Count a call as back."""
        self.in_flight -= 1
        if not was_turned_away:
            self._size = min(float(self.most), self._size + 1.0 / self._size)
        elif ticket > self._halved_at:
            self._size = max(1.0, self._size / 2)
            self._halved_at = self._sent
