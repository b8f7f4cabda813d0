"""What servers have in common: where they listen, what they serve, what they tell of errors."""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import ssl
from concurrent.futures import Future
from typing import Any, TypeVar

import attrs

from vlmcore._arguments import require_kind, require_switch
from vlmcore._copying import through_constructor
from vlmcore.errors import (
    ContractError,
    PolicyError,
    PolicyProtocolError,
    PolicyTimeoutError,
    PolicyUnavailableError,
    VlmcoreError,
)
from vlmcore.secrets import Secret, redact
from vlmcore_robotics.servers.runtime import PolicyRuntime

__all__ = [
    "Address",
    "action_names_of",
    "frame_rate_hz_of",
    "require_tls",
    "unless",
    "words_for_clients",
]

_log = logging.getLogger(__name__)
_Result = TypeVar("_Result")


@attrs.frozen(kw_only=True)
class Address:
    """
    Where a server listens.

    Attributes:
        host: As ``"127.0.0.1"`` or ``"::1"``; ``"localhost"`` is the first of them.
        port: 0 to 65535; at 0 one that is free is taken.
        allow_remote: Whether *host* may be an address that other machines reach.

    Raises:
        ContractError: If a field is not as described.
    """

    host: str
    port: int
    allow_remote: bool = False

    def __attrs_post_init__(self) -> None:
        require_switch(allow_remote=self.allow_remote)
        port: Any = self.port
        if isinstance(port, bool) or not isinstance(port, int) or not 0 <= port <= 0xFFFF:
            raise ContractError("port", f"got {port!r:.20}, expected 0 to 65535")
        try:
            address = ipaddress.ip_address(self.numeric)
        except ValueError:
            raise ContractError(
                "host", f"got {self.host!r:.80}, expected an address of this machine"
            ) from None
        if not address.is_loopback and not self.allow_remote:
            raise ContractError(
                "host",
                f"got {address}, which other machines reach, expected 127.0.0.1 or ::1: "
                "pass allow_remote=True",
            )

    __reduce__ = through_constructor

    @property
    def numeric(self) -> str:
        """The host, in numbers."""
        return "127.0.0.1" if self.host == "localhost" else self.host

    def url(self, scheme: str) -> str:
        """Say where a client on this machine reaches it."""
        address = ipaddress.ip_address(self.numeric)
        if address.is_unspecified:
            address = ipaddress.ip_address("127.0.0.1" if address.version == 4 else "::1")
        host = f"[{address}]" if address.version == 6 else str(address)
        return f"{scheme}://{host}:{self.port}"


def action_names_of(runtime: PolicyRuntime) -> tuple[str, ...]:
    """
    Take the names of the actions of what is served.

    Raises:
        ContractError: If it is no runtime, or the policy does not say them.
    """
    require_kind("runtime", runtime, PolicyRuntime)
    if runtime.info.action_names is None:
        raise ContractError(
            "runtime", f"got {runtime.info.name!r} without action_names, expected them"
        )
    return runtime.info.action_names


def frame_rate_hz_of(runtime: PolicyRuntime) -> float:
    """Say how many frames a second a camera has, which no request says: one for each step."""
    return runtime.info.rate_hz or 1.0


def require_tls(tls: Any) -> None:
    """
    Require a context of TLS, or none.

    Raises:
        ContractError: If it is something else.
    """
    if tls is not None:
        require_kind("tls", tls, ssl.SSLContext)


def words_for_clients(error: BaseException, *, key: Secret | None) -> str:
    """Say what failed: errors of vlmcore in their words, others by their class, and logged."""
    if not isinstance(error, VlmcoreError):
        _log.error("a request failed", exc_info=error)
        return f"the server failed with {type(error).__name__}; its log says more"
    words = error.problem if isinstance(error, PolicyError) else str(error)
    return redact(words, key)


async def unless(gone: asyncio.Future[Any], future: Future[_Result]) -> _Result | None:
    """
    Await what the policy says; ``None`` if the client is *gone* first: it is dropped then.

    Where the policy is behind another server, what is wrong on the way there is told as such: the
    words alone would be taken for words on this one.
    """
    asked = asyncio.wrap_future(future)
    await asyncio.wait((asked, gone), return_when=asyncio.FIRST_COMPLETED)
    if not asked.done():
        asked.cancel()
        return None
    try:
        return asked.result()
    except PolicyUnavailableError as error:
        raise PolicyUnavailableError(error.policy, _behind(error)) from error
    except (PolicyTimeoutError, PolicyProtocolError) as error:
        raise PolicyError(error.policy, _behind(error)) from error


def _behind(error: PolicyError) -> str:
    return f"behind this server, {error.policy}: {error.problem}"
