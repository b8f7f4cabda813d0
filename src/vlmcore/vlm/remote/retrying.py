"""When a server is asked again, and after how long."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from datetime import datetime, timezone
from email.utils import parsedate_to_datetime

import attrs

from vlmcore._arrays import require_finite_between
from vlmcore.errors import ContractError

__all__ = ["Retries", "retry_after_s"]

_LONGEST_S = 86_400.0
_DIGITS = 12


@attrs.frozen(kw_only=True)
class Retries:
    """
    How often a server is asked again that was busy, and had not begun to answer.

    A server that says when it may be asked again is asked then, and not before, if that is within
    the time of the call; if it is not, the call ends at once.

    Attributes:
        times: How often, 0 to 100.
        first_s: About how long to wait before the first time; twice as long before each other.
        longest_s: How long to wait at most, where the server says nothing.
        jitter: Gives 0 to 1: each wait is half as long, and that part of the other half, so that
            many who wait do not come back together.

    Raises:
        ContractError: If a field is not as described.

    Example:
        >>> Retries(jitter=lambda: 1.0).wait_s(3)
        2.0
    """

    times: int = 4
    first_s: float = 0.5
    longest_s: float = 30.0
    jitter: Callable[[], float] = random.SystemRandom().random

    def __attrs_post_init__(self) -> None:
        if type(self.times) is not int or not 0 <= self.times <= 100:
            raise ContractError("times", f"got {self.times!r:.40}, expected 0 to 100")
        require_finite_between(0.0, 3600.0, first_s=self.first_s, longest_s=self.longest_s)

    def wait_s(self, attempt: int, told_s: float | None = None) -> float:
        """
        Say how long to wait after an attempt.

        Args:
            attempt: Its number, from 1.
            told_s: How long the server says; a little is put on it, as many may have been told.
        """
        share = min(1.0, max(0.0, self.jitter()))
        if told_s is not None:
            return told_s + self.first_s * share
        whole = min(self.longest_s, self.first_s * 2.0 ** (attempt - 1))
        return whole * (0.5 + 0.5 * share)


def retry_after_s(headers: Mapping[str, str], now: datetime | None = None) -> float | None:
    """
    Read when a server may be asked again, in seconds from now; ``None`` if it does not say.

    Args:
        headers: Those of its answer, in lower case.
        now: What time it is, where the answer does not say; a clock that is wrong here or there
            makes no difference where it does.

    Example:
        >>> retry_after_s({"retry-after": "1.5"})
        1.5
        >>> when = {"date": "Mon, 30 Nov 2026 12:00:00 GMT"}
        >>> retry_after_s({**when, "retry-after": "Mon, 30 Nov 2026 12:01:30 GMT"})
        90.0
    """
    milliseconds = _number(headers.get("retry-after-ms", ""))
    if milliseconds is not None:
        return min(milliseconds / 1000, _LONGEST_S)
    text = headers.get("retry-after", "").strip()
    seconds = _number(text)
    if seconds is not None:
        return min(seconds, _LONGEST_S)
    at = _date(text)
    if at is None:
        return None
    since = _date(headers.get("date", "")) or now or datetime.now(timezone.utc)
    return min(max(0.0, (at - since).total_seconds()), _LONGEST_S)


def _number(text: str) -> float | None:
    text = text.strip()
    plain = len(text) <= _DIGITS and text.isascii() and text.replace(".", "", 1).isdigit()
    return float(text) if plain else None


def _date(text: str) -> datetime | None:
    try:
        found = parsedate_to_datetime(text)
    except (TypeError, ValueError, IndexError, OverflowError):
        return None
    return found.replace(tzinfo=timezone.utc) if found.tzinfo is None else found
