"""What a predictor is told when it is made: where the server is, who asks, and for how long."""

from __future__ import annotations

import asyncio
import socket
import ssl
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import attrs

from vlmcore._arguments import require_kind, require_switch
from vlmcore._arrays import require_finite_between, require_text
from vlmcore._copying import thawed
from vlmcore._json_values import frozen_object
from vlmcore._net.http_parts import BrokenHttpError, HungUpError
from vlmcore._optional import optional_dependency
from vlmcore.endpoint import Endpoint
from vlmcore.errors import (
    ContractError,
    ModelServerProtocolError,
    ModelServerTimeoutError,
    ModelServerUnavailableError,
    VlmcoreError,
)
from vlmcore.limits import ModelServerLimits
from vlmcore.secrets import REDACTED, Secret, hosts_from_env, redact
from vlmcore.vlm.remote._addresses import base_path, parse_base
from vlmcore.vlm.remote._codecs import Codec
from vlmcore.vlm.remote._reading import BadAnswerError, RefusedError
from vlmcore.vlm.remote.pictures import PictureRules
from vlmcore.vlm.remote.providers import CUSTOM_KEY_VARIABLE, Provider
from vlmcore.vlm.remote.retrying import Retries

if TYPE_CHECKING:
    from vlmcore._net.http_exchange import HttpExchange

__all__ = ["Server", "ServerOptions", "Terms"]

_TIMEOUT_S = (0.1, 86_400.0)
_WORDS = 400  # characters of a foreign text that are shown
_EFFORTS = ("", "none", "minimal", "low", "medium", "high", "xhigh", "max")
_HOSTS_VARIABLE = "CUSTOM_API_HOSTS"
_OURS = ("model", "messages", "input", "stream")


@attrs.frozen(kw_only=True, repr=False)
class Server:
    """
    Where a server is, and who asks it.

    Attributes:
        endpoint: Host and port.
        base: What stands before the paths of requests.
        key: What it is shown; ``None`` for nothing.
        key_note: Why no key is sent, for whoever is refused for it; empty if one is.
        only_public: Whether its name must lead to the internet.
        tls: How it proves who it is; ``None`` where nothing is encrypted.
        max_request_bytes: Size of a request, as the provider says.
        pictures: Which pictures it takes, unless the caller says.
    """

    endpoint: Endpoint
    base: str
    key: Secret | None
    key_note: str
    only_public: bool
    tls: ssl.SSLContext | None
    max_request_bytes: int | None = None
    pictures: PictureRules = attrs.field(factory=PictureRules)

    @classmethod
    def of_provider(cls, provider: Provider) -> Server:
        """
        Take a provider's own host, and the key that is named for it.

        Raises:
            ContractError: If the key is not set, or is none.
        """
        key = Secret.from_env(provider.key_variable)
        if key is None:
            raise ContractError(
                provider.key_variable, "is not set in the environment, expected the key"
            )
        endpoint = parse_base(provider.base_url)
        return cls(
            endpoint=endpoint,
            base=base_path(endpoint),
            key=key,
            key_note="",
            only_public=True,
            tls=ssl.create_default_context(),
            max_request_bytes=provider.max_request_bytes,
            pictures=provider.pictures,
        )

    @classmethod
    def of_address(
        cls, base_url: str, *, allow_private_network: bool, tls: ssl.SSLContext | None
    ) -> Server:
        """
        Take a server of one's own, and the key for such, if the machine lets it go there.

        Raises:
            EndpointError: If *base_url* is no such address.
            ContractError: If another argument is none.
        """
        require_switch(allow_private_network=allow_private_network)
        if tls is not None:
            require_kind("tls", tls, ssl.SSLContext)
        endpoint = parse_base(base_url)
        is_encrypted = endpoint.scheme == "https"
        if tls is not None and not is_encrypted:
            raise ContractError("tls", "got one, expected none with http")
        key, note = Secret.from_env(CUSTOM_KEY_VARIABLE), ""
        if key is None:
            note = f"no key was sent: {CUSTOM_KEY_VARIABLE} is not set"
        elif not endpoint.is_loopback and endpoint.host not in hosts_from_env(_HOSTS_VARIABLE):
            key, note = None, f"no key was sent: {_HOSTS_VARIABLE} does not list this host"
        return cls(
            endpoint=endpoint,
            base=base_path(endpoint),
            key=key,
            key_note=note,
            only_public=not (endpoint.is_loopback or allow_private_network),
            tls=(tls or ssl.create_default_context()) if is_encrypted else None,
        )


@attrs.frozen(kw_only=True)
class ServerOptions:
    """How a server is asked, whatever it speaks; the fields are arguments of the predictors."""

    timeout_s: float
    retries: Retries | None
    streaming: bool
    reasoning_effort: str
    pictures: PictureRules | None
    more: Mapping[str, Any] | None
    limits: ModelServerLimits | None


@attrs.frozen(kw_only=True, repr=False, eq=False)
class Terms:
    """
    Who is asked, for which model, how, and for how long.

    Attributes:
        server: Where it is.
        model: As the server calls it.
        codec: What it speaks.
        options: How it is asked.
        retries: How often it is asked again.
        pictures: Which pictures it takes.
        limits: How much is sent and read.
        more: Fields that the caller puts into each request.
        left_out: Fields that the server refused so far.
        exchange_type: What speaks HTTP.
        clock: Gives the time, in seconds.
    """

    server: Server
    model: str
    codec: Codec
    options: ServerOptions
    retries: Retries
    pictures: PictureRules
    limits: ModelServerLimits
    more: Mapping[str, Any]
    exchange_type: type[HttpExchange]
    left_out: set[str] = attrs.field(factory=set)
    clock: Callable[[], float] = time.monotonic

    @classmethod
    def agreed(cls, server: Server, *, model: str, codec: Codec, options: ServerOptions) -> Terms:
        """
        Check what a predictor is made with.

        Raises:
            ContractError: If something is not as described there.
            MissingDependencyError: If h11 is not installed.
        """
        require_text(model=model)
        require_finite_between(*_TIMEOUT_S, timeout_s=options.timeout_s)
        require_switch(streaming=options.streaming)
        for field, value, kind in (
            ("retries", options.retries, Retries),
            ("pictures", options.pictures, PictureRules),
            ("limits", options.limits, ModelServerLimits),
        ):
            if value is not None:
                require_kind(field, value, kind)
        effort = options.reasoning_effort
        if effort not in _EFFORTS:
            raise ContractError(
                "reasoning_effort", f"got {effort!r:.80}, expected one of {', '.join(_EFFORTS[1:])}"
            )
        more = frozen_object(options.more or {}, field="request_fields")
        for field in _OURS:
            if field in more:
                raise ContractError("request_fields", f"got {field!r}, expected other fields")
        with optional_dependency("remote", "h11"):
            from vlmcore._net import http_exchange  # noqa: PLC0415 - the door
        return cls(
            server=server,
            model=model,
            codec=codec,
            options=options,
            retries=options.retries or Retries(),
            pictures=options.pictures or server.pictures,
            limits=options.limits or ModelServerLimits(),
            more=thawed(more),
            exchange_type=http_exchange.HttpExchange,
        )

    @property
    def max_request_bytes(self) -> int:
        """How large a request may be."""
        told = self.server.max_request_bytes
        return (
            self.limits.max_request_bytes
            if told is None
            else min(told, self.limits.max_request_bytes)
        )

    def new_exchange(self) -> HttpExchange:
        """Begin a connection."""
        return self.exchange_type(max_head_bytes=self.limits.max_head_bytes)

    def headers(self) -> list[tuple[str, str]]:
        """Say who asks, and what is sent."""
        return [
            *self.codec.headers(self.server.key),
            ("content-type", "application/json"),
            ("accept", "text/event-stream, application/json"),
        ]

    def redacted(self, text: str) -> str:
        """Make words of somebody else's fit to be shown."""
        return redact(text, self.server.key, max_characters=_WORDS)

    def translated(self, error: Exception, *, is_asked: bool, text: str = "") -> VlmcoreError:
        """
        Say in an error of ours what *error* means, with nothing behind it that may hold the key.

        Args:
            error: What was raised.
            is_asked: Whether the server may have seen the request.
            text: What came of the answer.
        """
        problem = self._meaning(error, is_asked=is_asked, text=self._without_key(text))
        problem.__cause__ = problem.__context__ = None
        return problem.with_traceback(None)

    def _without_key(self, text: str) -> str:
        """Take the key out of an answer that repeats it, and leave all else as it came."""
        key = self.server.key
        return text if key is None else text.replace(key.reveal(), REDACTED)

    def _meaning(self, error: Exception, *, is_asked: bool, text: str) -> VlmcoreError:
        model, origin = self.model, self.server.endpoint.origin
        match error:
            case RefusedError():
                return self._refused(error, text)
            case VlmcoreError():
                return error
            case TimeoutError() | asyncio.TimeoutError():  # two classes before Python 3.11
                wait = "answer" if is_asked else "connection"
                return ModelServerTimeoutError(model, wait, self.options.timeout_s, text)
            case OSError() if not is_asked:
                why = self.redacted(_why_unreachable(error))
                return ModelServerUnavailableError(model, f"{origin}: {why}", text)
            case HungUpError() | OSError():
                why = "it hung up before the answer was whole"
            case BrokenHttpError() | BadAnswerError():
                why = str(error)
            case _:
                why = f"it broke the protocol: {type(error).__name__}: {error}"
        return ModelServerProtocolError(model, self.redacted(f"{origin}: {why}"), text)

    def _refused(self, error: RefusedError, text: str) -> VlmcoreError:
        refusal = error.refusal
        if refusal.status in (401, 403) and self.server.key_note:
            words = f"{refusal.words} ({self.server.key_note})"
            refusal = attrs.evolve(refusal, words=words)
        return refusal.error(self.model, text=text, redacted=self.redacted)


def _why_unreachable(error: OSError) -> str:
    match error:
        case ssl.SSLCertVerificationError():
            # Its words are there if TLS itself raised it.
            return f"its certificate is not trusted: {getattr(error, 'verify_message', error)}"
        case ssl.SSLError():
            return "it does not speak TLS as expected"
        case socket.gaierror():
            return "its name is not known to the resolver"
        case ConnectionRefusedError():
            return "nothing listens there"
        case _:
            return f"no connection ({type(error).__name__}: {error})"
