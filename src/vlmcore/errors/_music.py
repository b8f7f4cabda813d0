"""Music that a service did not make."""

from __future__ import annotations

from datetime import datetime, timezone

from vlmcore.errors._base import VlmcoreError

__all__ = [
    "MusicBalanceError",
    "MusicBlockedError",
    "MusicBusyError",
    "MusicCancelledError",
    "MusicDownloadError",
    "MusicError",
    "MusicIncompleteError",
    "MusicKeyError",
    "MusicParametersError",
    "MusicProtocolError",
    "MusicRateLimitError",
    "MusicRefusedError",
    "MusicTimeoutError",
    "MusicUnavailableError",
]


class MusicError(VlmcoreError):
    """
    A service made no music.

    Attributes:
        service: The service, as ``"MiniMax"``.
        problem: What is wrong and what to do.
    """

    def __init__(self, service: str, problem: str) -> None:
        super().__init__(service, problem)
        self.service = service
        self.problem = problem

    def __str__(self) -> str:
        return f"{self.service}: {self.problem}"


class MusicUnavailableError(MusicError, ConnectionError):
    """A service cannot be reached; nothing was asked yet, so nothing is charged."""

    errno = strerror = None  # OSError takes two arguments for these


class MusicTimeoutError(MusicError, TimeoutError):
    """
    A service did not end in time. It may have made the music all the same, and charged for it.

    Attributes:
        wait: What was waited for, as ``"answer"``.
        waited_s: How long the whole call took.
    """

    errno = strerror = None

    def __init__(self, service: str, wait: str, waited_s: float) -> None:
        super().__init__(service, f"no {wait} within {waited_s:.3g} s")
        self.args = (service, wait, waited_s)
        self.wait = wait
        self.waited_s = waited_s


class MusicCancelledError(MusicError):
    """The caller ended the call."""


class MusicProtocolError(MusicError):
    """A service answered what its protocol does not allow."""


class MusicIncompleteError(MusicError):
    """
    The music ended before it was whole; nothing of it is kept.

    Attributes:
        received_bytes: How much of the audio came.
    """

    def __init__(self, service: str, problem: str, received_bytes: int) -> None:
        super().__init__(service, problem)
        self.args = (service, problem, received_bytes)
        self.received_bytes = received_bytes

    def __str__(self) -> str:
        return f"{self.service}: {self.problem} ({self.received_bytes:,} bytes came)"


class MusicDownloadError(MusicError):
    """
    The music is made, and did not come from where it lies. To make it again costs again.

    Attributes:
        url: The address. Whoever has it can fetch the music, so no text shows it.
        expires_at_s: Until when it can be fetched, in seconds since 1970; ``None`` if not told.
    """

    def __init__(
        self, service: str, problem: str, *, url: str = "", expires_at_s: int | None = None
    ) -> None:
        super().__init__(service, problem)
        self.url = url
        self.expires_at_s = expires_at_s

    def __str__(self) -> str:
        if self.expires_at_s is None:
            return super().__str__()
        end = datetime.fromtimestamp(self.expires_at_s, timezone.utc)
        return f"{super().__str__()} (its address is good until {end:%Y-%m-%d %H:%M} UTC)"


class MusicRefusedError(MusicError):
    """
    A service answered with an error of its own; the problem is its words, cut.

    Attributes:
        code: The code of the service; ``None`` if it named none.
        status: The status of HTTP.
        trace_id: What the service calls the request; its support asks for it. May be empty.
    """

    def __init__(
        self,
        service: str,
        problem: str,
        code: int | None = None,
        status: int = 200,
        trace_id: str = "",
    ) -> None:
        super().__init__(service, problem)
        self.args = (service, problem, code, status, trace_id)
        self.code = code
        self.status = status
        self.trace_id = trace_id

    def __str__(self) -> str:
        known = [
            f"code {self.code}" if self.code is not None else "",
            f"HTTP {self.status}" if self.status != 200 else "",
            f"trace {self.trace_id}" if self.trace_id else "",
        ]
        told = ", ".join(part for part in known if part)
        return f"{self.service}: {self.problem}{f' ({told})' if told else ''}"


class MusicRateLimitError(MusicRefusedError):
    """Too much was asked of a service in a short time."""


class MusicBusyError(MusicRefusedError):
    """A service failed on its side, and may not the next time."""


class MusicKeyError(MusicRefusedError):
    """A service does not take the key."""


class MusicBalanceError(MusicRefusedError):
    """The account has too little money."""


class MusicBlockedError(MusicRefusedError):
    """A service does not make music of such content."""


class MusicParametersError(MusicRefusedError):
    """A service does not take the parameters."""
