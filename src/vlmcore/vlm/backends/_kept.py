"""What is kept within a number of bytes: the least recently used leaves first."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Iterator
from typing import Generic, TypeVar

__all__ = ["KeptBytes"]

_Value = TypeVar("_Value")


class KeptBytes(Generic[_Value]):
    """Values by key, each with its size. Not safe for threads."""

    def __init__(self) -> None:
        self._values: OrderedDict[Hashable, tuple[_Value, int]] = OrderedDict()
        self.nbytes = 0

    def __iter__(self) -> Iterator[tuple[Hashable, _Value]]:
        """Give all that is kept, the most recently used first, and use none of it."""
        return ((key, value) for key, (value, _) in reversed(self._values.items()))

    def get(self, key: Hashable) -> _Value | None:
        """Return what is kept under *key*, which is used by that, or ``None``."""
        if key not in self._values:
            return None
        self._values.move_to_end(key)
        return self._values[key][0]

    def put(self, key: Hashable, value: _Value, nbytes: int, *, limit: int) -> None:
        """Keep *value* of *nbytes*, if it is not larger than *limit* by itself."""
        self.drop(key)
        if nbytes > limit:
            return
        self._values[key] = (value, nbytes)
        self.nbytes += nbytes
        self.trim(limit)

    def trim(self, limit: int) -> None:
        """Keep no more than *limit* bytes."""
        while self.nbytes > limit:
            self.drop(next(iter(self._values)))

    def drop(self, key: Hashable) -> None:
        """Keep what is under *key* no longer."""
        _, nbytes = self._values.pop(key, (None, 0))
        self.nbytes -= nbytes

    def clear(self) -> None:
        """Keep nothing."""
        self._values.clear()
        self.nbytes = 0
