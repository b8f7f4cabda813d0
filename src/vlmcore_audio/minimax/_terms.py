"""What a client is told when it is made, and what its errors may say."""

from __future__ import annotations

import asyncio
import random
import re
import socket
import ssl
from collections.abc import Callable
from typing import TYPE_CHECKING

import attrs

from vlmcore._arguments import require_kind, require_switch
from vlmcore._arrays import as_tuple, require_finite_between, require_member
from vlmcore._optional import optional_dependency
from vlmcore.endpoint import Endpoint
from vlmcore.errors import (
    ContractError,
    EndpointError,
    MusicCancelledError,
    MusicDownloadError,
    MusicError,
    MusicProtocolError,
    MusicTimeoutError,
    MusicUnavailableError,
    VlmcoreError,
)
from vlmcore.limits import MusicLimits
from vlmcore.secrets import Secret, redact
from vlmcore_audio.minimax._service import SERVICE
from vlmcore_audio.minimax.regions import Region
from vlmcore_audio.minimax.wire import Delivery

if TYPE_CHECKING:
    from vlmcore._net.http_exchange import HttpExchange

__all__ = ["KEY_VARIABLE", "Retries", "Terms"]

KEY_VARIABLE = "MINIMAX_API_KEY"

_TIMEOUT_S = (1.0, 1800.0)
_WORDS = 400  # characters of a foreign text that are shown
_LONGEST = 1000  # of what an error of ours says, with such a text in it
_EXPIRES = re.compile(r"[?&]expires=([0-9]{9,11})(?![^&#])", re.IGNORECASE)


@attrs.frozen(kw_only=True)
class Retries:
    """
    How often a call is made again where that is free: the service was busy, and sent no audio.

    As often is music fetched again that lies at an address.

    Attributes:
        times: How often, 0 to 10.
        first_s: About how long to wait before the first time; twice as long before each other.
        longest_s: How long to wait at most.
        jitter: Gives 0 to 1: each wait is half as long, and that part of the other half, so that
            many who wait do not come back together.

    Raises:
        ContractError: If a field is not as described.
    """

    times: int = 3
    first_s: float = 2.0
    longest_s: float = 30.0
    jitter: Callable[[], float] = random.SystemRandom().random

    def __attrs_post_init__(self) -> None:
        if type(self.times) is not int or not 0 <= self.times <= 10:
            raise ContractError("times", f"got {self.times!r:.40}, expected 0 to 10")
        require_finite_between(0.0, 3600.0, first_s=self.first_s, longest_s=self.longest_s)

    def wait_s(self, attempt: int) -> float:
        """Say how long to wait after the attempt of this number, from 1."""
        whole = min(self.longest_s, self.first_s * 2.0 ** (attempt - 1))
        return whole * (0.5 + 0.5 * min(1.0, max(0.0, self.jitter())))


@attrs.frozen(kw_only=True, repr=False)
class Terms:
    """
    Who asks, where, and how long that may take.

    Attributes:
        key: What the service is shown.
        region: Where it is.
        delivery: How audio comes.
        timeout_s: How long a call may take.
        retries: How often it is asked again.
        download_hosts: Where audio may lie; anywhere on the internet if ``None``.
        aigc_watermark: Whether an inaudible mark is put into the music.
        limits: How much is read.
        tls: How servers prove who they are.
        exchange_type: What speaks HTTP.
    """

    key: Secret
    region: Region
    delivery: Delivery
    timeout_s: float
    retries: Retries
    download_hosts: tuple[str, ...] | None
    aigc_watermark: bool
    limits: MusicLimits
    tls: ssl.SSLContext
    exchange_type: type[HttpExchange]

    @classmethod
    def agreed(
        cls,
        *,
        region: Region,
        delivery: Delivery,
        timeout_s: float,
        retries: Retries | None,
        download_hosts: tuple[str, ...] | None,
        aigc_watermark: bool,
        limits: MusicLimits | None,
    ) -> Terms:
        """
        Check what a client is made with, and take the key from the environment.

        Raises:
            ContractError: If something is not as described, or there is no key.
        """
        require_member(Region, region=region)
        require_member(Delivery, delivery=delivery)
        require_finite_between(*_TIMEOUT_S, timeout_s=timeout_s)
        require_switch(aigc_watermark=aigc_watermark)
        if aigc_watermark and region is not Region.CN_ZH:
            raise ContractError("aigc_watermark", f"got True in {region.value}, expected cn_zh")
        retries = Retries() if retries is None else retries
        limits = MusicLimits() if limits is None else limits
        require_kind("retries", retries, Retries)
        require_kind("limits", limits, MusicLimits)
        hosts = as_tuple(download_hosts)
        if hosts is not None:
            hosts = tuple(_host(name) for name in _texts(hosts))
        with optional_dependency("audio", "h11"):
            from vlmcore._net import http_exchange  # noqa: PLC0415 - the door
        key = Secret.from_env(KEY_VARIABLE)
        if key is None:
            raise ContractError(KEY_VARIABLE, "is not set in the environment, expected the key")
        return cls(
            key=key,
            region=region,
            delivery=delivery,
            timeout_s=float(timeout_s),
            retries=retries,
            download_hosts=hosts,
            aigc_watermark=aigc_watermark,
            limits=limits,
            tls=_tls(),
            exchange_type=http_exchange.HttpExchange,
        )

    @property
    def is_url(self) -> bool:
        """Whether the audio may lie elsewhere."""
        return self.delivery is Delivery.URL

    def new_exchange(self) -> HttpExchange:
        """Begin a request and its answer."""
        return self.exchange_type(max_head_bytes=self.limits.max_head_bytes)

    def require_host(self, host: str) -> None:
        """
        Require that audio may lie on a host.

        Raises:
            EndpointError: If it may not.
        """
        allowed = self.download_hosts
        if allowed is not None and not any(
            host == name or host.endswith(f".{name}") for name in allowed
        ):
            raise EndpointError(f"https://{host}", "got a host that is none of download_hosts")

    def redacted(self, text: str, *, max_characters: int = _WORDS) -> str:
        """Make words of somebody else's fit to be shown."""
        return redact(text, self.key, max_characters=max_characters)

    def translated(self, error: Exception, *, is_asked: bool, is_cancelled: bool) -> VlmcoreError:
        """
        Say in an error of ours what *error* means, with nothing behind it that may hold the key.

        Args:
            error: What was raised.
            is_asked: Whether the service may have seen the request.
            is_cancelled: Whether the caller ended the call.
        """
        problem = self._meaning(error, is_asked=is_asked, is_cancelled=is_cancelled)
        problem.__cause__ = problem.__context__ = None
        return problem.with_traceback(None)

    def undelivered(self, error: Exception, url: str) -> MusicDownloadError:
        """Say why music that was made did not come from the address that the service named."""
        problem = self._meaning(error, is_asked=isinstance(error, TimeoutError), is_cancelled=False)
        words = problem.problem if isinstance(problem, MusicError) else str(problem)
        said = _EXPIRES.search(url)
        return MusicDownloadError(
            SERVICE,
            f"the music is made, and cannot be fetched: {words}",
            url=url,
            expires_at_s=None if said is None else int(said[1]),
        )

    def _meaning(self, error: Exception, *, is_asked: bool, is_cancelled: bool) -> VlmcoreError:
        if is_cancelled:
            return MusicCancelledError(SERVICE, "the call was ended by its caller")
        match error:
            case VlmcoreError() if not isinstance(error, EndpointError):
                return self._without_key(error)
            case TimeoutError() | asyncio.TimeoutError():  # two classes before Python 3.11
                wait = "answer" if is_asked else "connection"
                return MusicTimeoutError(SERVICE, wait, self.timeout_s)
            case OSError() if not is_asked:
                return MusicUnavailableError(SERVICE, self.redacted(_why_unreachable(error)))
            case OSError():
                why = f"it hung up before the answer was whole ({type(error).__name__})"
            case EndpointError():
                why = f"it names an address that may not be fetched: {error}"
            case _:
                why = str(error) or type(error).__name__
        return MusicProtocolError(SERVICE, self.redacted(why))

    def _without_key(self, error: VlmcoreError) -> VlmcoreError:
        """Make all words of an error of ours fit to be shown: some are the service's."""
        error.args = tuple(map(self._fit, error.args))
        for name, value in tuple(vars(error).items()):
            if name != "url":  # no text shows it, and a changed one leads nowhere
                setattr(error, name, self._fit(value))
        return error

    def _fit(self, value: object) -> object:
        return self.redacted(value, max_characters=_LONGEST) if isinstance(value, str) else value


def _tls() -> ssl.SSLContext:
    """Trust whom the system trusts, and tell a connection that was cut from one that ended."""
    tls = ssl.create_default_context()
    tls.options &= ~getattr(ssl, "OP_IGNORE_UNEXPECTED_EOF", 0)  # of OpenSSL 3
    return tls


def _why_unreachable(error: OSError) -> str:
    match error:
        case ssl.SSLCertVerificationError():
            # Its words are there if TLS itself raised it.
            return f"its certificate is not trusted: {getattr(error, 'verify_message', error)}"
        case ssl.SSLEOFError():
            return "it hung up without a word of TLS"
        case socket.gaierror():
            return "its name is not known to the resolver"
        case _:
            return f"no connection ({type(error).__name__}: {error})"


def _texts(hosts: object) -> tuple[str, ...]:
    if not isinstance(hosts, tuple) or not all(isinstance(name, str) for name in hosts):
        raise ContractError("download_hosts", "expected names of hosts")
    return hosts


def _host(name: str) -> str:
    return Endpoint(scheme="https", host=name.lower(), port=443).host
