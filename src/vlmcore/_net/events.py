"""Server-sent events, as the HTML standard says they are read."""

from __future__ import annotations

from collections.abc import Iterator

from vlmcore.limits import require_at_most

__all__ = ["EventReader"]

_BOM = b"\xef\xbb\xbf"


class EventReader:
    """
    Reads the data of events: comments, names, numbers and waits of them are skipped.

    Args:
        max_bytes: How long one event may be.
    """

    def __init__(self, *, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._line = bytearray()  # what is there of one
        self._data: list[bytes] = []
        self._size = 0
        self._after_return = False
        self._is_first = True

    def feed(self, text: bytes) -> Iterator[bytes]:
        """
        Give the data of each event that is whole now.

        Raises:
            LimitExceededError: If one is too long.
        """
        if not text:
            return
        if self._after_return and text.startswith(b"\n"):
            text = text[1:]
            self._after_return = False
        if text:
            self._after_return = text.endswith(b"\r")
        *lines, rest = text.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
        for line in lines:
            self._line += line
            whole = bytes(self._line)
            self._line.clear()
            if not whole:
                yield from self._dispatched()
            else:
                self._take(whole)
        self._line += rest
        self._require(self._size + len(self._line))

    def finish(self) -> Iterator[bytes]:
        """Give the data of the last event, which the end of the answer ends."""
        if self._line:
            self._take(bytes(self._line))
            self._line.clear()
        yield from self._dispatched()

    def _take(self, line: bytes) -> None:
        if self._is_first:
            self._is_first = False
            line = line.removeprefix(_BOM)
        name, _, value = line.partition(b":")
        if name == b"data":
            self._data.append(value.removeprefix(b" "))
            self._size += len(value)
        self._require(self._size)

    def _dispatched(self) -> Iterator[bytes]:
        data, self._data, self._size = self._data, [], 0
        if data:
            yield b"\n".join(data)

    def _require(self, size: int) -> None:
        require_at_most("max_event_bytes", size, self._max_bytes)
