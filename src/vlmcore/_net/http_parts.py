"""What comes of an answer in HTTP, and what is no answer."""

from __future__ import annotations

import attrs

__all__ = ["BrokenHttpError", "Head", "HttpStart", "HungUpError", "NotHttpError"]

_START = b"HTTP/1."


class BrokenHttpError(Exception):
    """What came is no answer in HTTP."""


class HungUpError(BrokenHttpError):
    """The peer sends no more, and the answer is not whole."""


class NotHttpError(BrokenHttpError):
    """The peer speaks another protocol."""


@attrs.frozen(kw_only=True)
class Head:
    """
    The head of an answer.

    Attributes:
        status: The status.
        headers: By their names in lower case; the first of each name.
        contradicted: Names that came again with another value.
    """

    status: int
    headers: dict[str, str]
    contradicted: frozenset[str] = frozenset()


class HttpStart:
    """The first bytes of a peer that has to speak HTTP: others may never send the end of a line."""

    def __init__(self) -> None:
        self._start = b""

    def feed(self, data: bytes) -> None:
        """
        Look at what came.

        Raises:
            NotHttpError: If it is not HTTP.
        """
        self._start += data[: len(_START) - len(self._start)]
        if not _START.startswith(self._start):
            raise NotHttpError(f"it sends {self._start!r}, expected HTTP")
