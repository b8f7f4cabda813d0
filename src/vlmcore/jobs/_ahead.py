"""Images that are read ahead, in threads, and taken in the order of the source."""

from __future__ import annotations

import contextlib
import queue
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from vlmcore._closing import Closing
from vlmcore.jobs.reading import Looking, Seen
from vlmcore.jobs.walking import Begun
from vlmcore.limits import JobLimits

__all__ = ["Ahead"]

_READ_AT_ONCE = 2  # images for each thread that reads: the one it has, and the next


class Ahead(Closing):
    """
    Reads images ahead. It belongs to one thread, but for `wake`.

    Args:
        looking: How images are looked at.
        limits: How many threads read, and how much they read ahead.

    Attributes:
        held_bytes: The memory of the pictures that were read; who is done with one subtracts it.
    """

    def __init__(self, looking: Looking, limits: JobLimits) -> None:
        self.held_bytes = 0
        self._looking = looking
        self._limits = limits
        self._threads = ThreadPoolExecutor(limits.max_readers, thread_name_prefix="reader")
        self._waiting: deque[Begun] = deque()
        self._wakes: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._being_read = 0

    def close(self) -> None:
        """End the threads; what nobody has begun to read is not read."""
        self._threads.shutdown(wait=True, cancel_futures=True)

    def __len__(self) -> int:
        return len(self._waiting)

    def has_room(self, others: int) -> bool:
        """Say whether another image may be begun, where *others* were taken and still wait."""
        limits = self._limits
        return (
            self._being_read < _READ_AT_ONCE * limits.max_readers
            and len(self._waiting) + others < limits.max_ahead_images
            and self.held_bytes < limits.max_ahead_bytes
        )

    def add(self, begun: Begun) -> None:
        """Put an image behind the others."""
        self._waiting.append(begun)

    def read(self, begun: Begun, done: bytes | None = None) -> None:
        """Have a thread look at an image, as `Looking.look` says."""

        def take() -> None:
            self._being_read -= 1
            begun.seen = looked.result()
            self.held_bytes += begun.seen.held_bytes

        begun.seen, begun.was_read = None, True
        self._being_read += 1
        looked = self._threads.submit(self._looking.look, begun.item, done)
        looked.add_done_callback(lambda _looked: self._wakes.put(take))

    def next(self) -> tuple[Begun, Seen] | None:
        """Return the first image, and leave it there, if it was seen."""
        first = self._waiting[0] if self._waiting else None
        return None if first is None or first.seen is None else (first, first.seen)

    def drop(self) -> None:
        """Leave out the first image."""
        self._waiting.popleft()

    def wake(self) -> None:
        """Let `wait` end."""
        self._wakes.put(lambda: None)

    def wait(self, most_s: float) -> None:
        """Wait until something was read, or somebody calls `wake`, or for *most_s* seconds."""
        with contextlib.suppress(queue.Empty):
            self._wakes.get(timeout=most_s)()
            while True:
                self._wakes.get_nowait()()
