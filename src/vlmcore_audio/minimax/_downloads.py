"""Files whose address the service names: they are paid for, and to fetch one again is free."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from vlmcore._net.http_parts import BrokenHttpError, Head
from vlmcore._net.public_urls import PublicUrl
from vlmcore._net.steps import Dial, Send, Wait
from vlmcore.errors import EndpointError, MusicProtocolError
from vlmcore_audio.minimax._exchanges import MusicSteps, read_answer
from vlmcore_audio.minimax._service import SERVICE
from vlmcore_audio.music import MusicProgress

if TYPE_CHECKING:
    from vlmcore_audio.minimax._terms import Terms

__all__ = ["DownloadReader", "NoFileError", "downloaded"]

_HOPS = 3  # redirects that are followed to the audio

_Result = TypeVar("_Result")


class NoFileError(Exception):
    """What lies at an address is not the file; it may be the next time."""


class DownloadReader:
    """
    Reads a file, or where else it lies.

    Args:
        most_bytes: How large it may be.
    """

    def __init__(self, most_bytes: int) -> None:
        self.data = bytearray()
        self.location: str | None = None
        self.is_over = False
        self.events = 0
        self._most_bytes = most_bytes

    @property
    def received_bytes(self) -> int:
        """How much of the file there is."""
        return len(self.data)

    def take(self, part: Head | bytes) -> None:
        """
        Take a part.

        Raises:
            NoFileError: If there is no file.
            MusicProtocolError: If it is too large.
        """
        if isinstance(part, bytes):
            self._require(len(self.data) + len(part))
            self.data += part
            return
        if part.status in (301, 302, 303, 307, 308) and "location" in part.headers:
            self.location = part.headers["location"]
            self.is_over = True
        elif part.status != 200:
            raise NoFileError(f"where it lies, the answer is HTTP {part.status}")
        length = part.headers.get("content-length", "")
        self._require(int(length) if length.isdecimal() and len(length) < 20 else 0)

    def finish(self) -> None:
        """Take the end of the file; there is nothing to do."""

    def _require(self, size: int) -> None:
        if size > self._most_bytes:
            raise MusicProtocolError(
                SERVICE, f"the audio is larger than max_audio_bytes, {self._most_bytes:,}"
            )


def downloaded(
    terms: Terms, url: str, checked: Callable[[bytearray], _Result], *, size: int | None
) -> MusicSteps[_Result]:
    """
    Fetch a file, and once more where that may help, until it is what *checked* takes.

    Raises:
        EndpointError: If its address is none that may be fetched; so nobody is given it either.
        MusicDownloadError: If it cannot be had for another reason.
    """
    attempt = 0
    try:
        while True:
            attempt += 1
            try:
                return checked((yield from _fetched(terms, url, attempt, size)))
            except (OSError, BrokenHttpError, NoFileError):
                if attempt > terms.retries.times:
                    raise
            yield MusicProgress(phase="waiting", attempt=attempt)
            yield Wait(terms.retries.wait_s(attempt))
    except EndpointError:
        raise
    except Exception as error:  # noqa: BLE001 - all of them: the music is paid for
        raise terms.undelivered(error, url) from None


def _fetched(terms: Terms, text: str, attempt: int, size: int | None) -> MusicSteps[bytearray]:
    """Fetch a file, of *size* if that is told, by the rules for addresses of somebody else."""
    most = terms.limits.max_url_characters
    url = PublicUrl.parse(text, most_characters=most)
    for _ in range(_HOPS + 1):
        terms.require_host(url.endpoint.host)
        reader = DownloadReader(terms.limits.max_audio_bytes)
        exchange = terms.new_exchange()
        yield Dial(endpoint=url.endpoint, only_public=True, needs_end=True)
        yield Send(
            exchange.request(
                host=url.endpoint.host_header,
                method="GET",
                target=url.target,
                headers=[("connection", "close")],
            )
        )
        try:
            yield from read_answer(exchange, reader, "downloading", attempt)
        except (OSError, BrokenHttpError):
            if len(reader.data) != size:  # it is whole though the answer is not
                raise
        if reader.location is None:
            return reader.data
        url = url.redirected(reader.location, most_characters=most)
    raise MusicProtocolError(SERVICE, f"the audio is behind more than {_HOPS} redirects")
