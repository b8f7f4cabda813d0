"""The order in which parts of a model are needed, learnt from how they were needed before."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Generic, TypeVar

__all__ = ["SeenOrder"]

_Part = TypeVar("_Part")


class SeenOrder(Generic[_Part]):
    """
    What is needed next, where things are needed in rounds, as the layers of a model are.

    What came after the same part in the round before comes next, in the order of that round; then
    what this round had already. A part that is needed several times in a round counts as of its
    last time. After a part that was never needed before, nothing is known.

    Example:
        >>> order = SeenOrder()
        >>> for part in "abcda":
        ...     order.note(part)
        >>> list(order.following())
        ['b', 'c', 'd', 'a']
    """

    def __init__(self) -> None:
        self._clock = 0
        self._last: dict[_Part, int] = {}  # when each was needed last, longest ago first
        self._round = 0  # when this round began
        self._reached = 0  # how far in the round before it has come
        self._knows = False
        self._latest: _Part | None = None

    def note(self, part: _Part) -> None:
        """Remember that *part* is needed now."""
        if part == self._latest:
            return
        self._latest = part
        self._clock += 1
        before = self._last.pop(part, 0)
        if before:
            if before < self._round:
                self._reached = before
            elif not self._is_more_to_come():
                self._round, self._reached = self._clock, before
        self._knows = bool(before)
        self._last[part] = self._clock

    def forget(self, part: _Part) -> None:
        """Forget *part*, which will not be needed any more."""
        self._last.pop(part, None)

    def following(self) -> Iterator[_Part]:
        """Go through what is needed next, as far as that is known."""
        if not self._knows:
            return
        yield from [p for p, at in self._last.items() if self._reached < at < self._round]
        yield from [p for p, at in self._last.items() if at >= self._round]

    def longest_ago(self) -> Iterator[_Part]:
        """Go through all that was needed, what was needed longest ago first."""
        yield from list(self._last)

    def _is_more_to_come(self) -> bool:
        return any(self._reached < at < self._round for at in self._last.values())
