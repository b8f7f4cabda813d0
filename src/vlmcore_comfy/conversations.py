"""What a node and a model said to each other before, node by node, as long as ComfyUI runs."""

from __future__ import annotations

import threading
from collections import OrderedDict, deque

import attrs

__all__ = ["Exchange", "recall", "remember"]

_MOST_NODES = 64
_MOST_EXCHANGES = 30  # what the widget allows

_lock = threading.Lock()
_said: OrderedDict[str, deque[Exchange]] = OrderedDict()


@attrs.frozen
class Exchange:
    """A question, and what was answered."""

    question: str
    answer: str


def recall(node: str | None, exchanges: int) -> list[Exchange]:
    """Give the last *exchanges* of a node, the oldest first."""
    with _lock:
        said = _said.get(node or "", deque())
        return list(said)[-exchanges:] if exchanges else []


def remember(node: str | None, exchange: Exchange) -> None:
    """Keep what was said."""
    with _lock:
        said = _said.setdefault(node or "", deque(maxlen=_MOST_EXCHANGES))
        said.append(exchange)
        _said.move_to_end(node or "")
        while len(_said) > _MOST_NODES:
            _said.popitem(last=False)
