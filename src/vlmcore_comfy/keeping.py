"""What nodes open, kept open for the next graph; the one that was used longest ago is closed."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, Protocol, TypeVar

__all__ = ["Kept"]


class _Closable(Protocol):
    def close(self) -> None: ...


_Key = TypeVar("_Key", bound=Hashable)
_Opened = TypeVar("_Opened", bound=_Closable)


class Kept(Generic[_Key, _Opened]):
    """
    Things that are open, by what they were asked for. Safe for threads.

    Args:
        most: How many stay open.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._open: OrderedDict[_Key, _Opened] = OrderedDict()

    def get(self, key: _Key, make: Callable[[], _Opened]) -> _Opened:
        """Give the one of *key*; two nodes that ask at once wait for one to be made."""
        with self._lock:
            opened = self._open.pop(key, None)
            if opened is None:
                opened = make()
            self._open[key] = opened
            left = [self._open.popitem(last=False)[1] for _ in range(len(self._open) - self._most)]
        for each in left:
            each.close()
        return opened

    def drop(self, key: _Key) -> None:
        """Close the one of *key*, if there is one."""
        with self._lock:
            opened = self._open.pop(key, None)
        if opened is not None:
            opened.close()

    def clear(self) -> None:
        """Close all."""
        for key in tuple(self._open):
            self.drop(key)
