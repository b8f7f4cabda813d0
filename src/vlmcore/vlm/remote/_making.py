"""What the public classes have in common: their arguments."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from typing import Any

from vlmcore.errors import ContractError
from vlmcore.limits import ModelServerLimits
from vlmcore.vlm.remote._chat import ChatCodec
from vlmcore.vlm.remote._codecs import Codec
from vlmcore.vlm.remote._messages import MessagesCodec
from vlmcore.vlm.remote._responses import ResponsesCodec
from vlmcore.vlm.remote._terms import Server, ServerOptions, Terms
from vlmcore.vlm.remote.pictures import PictureRules
from vlmcore.vlm.remote.providers import PROVIDERS, Provider, ServerProtocol, find_provider
from vlmcore.vlm.remote.retrying import Retries

__all__ = ["make_terms"]


def make_terms(
    protocol: ServerProtocol,
    base_url: str | None,
    *,
    model: str,
    provider: str | None,
    timeout_s: float,
    retries: Retries | None,
    streaming: bool,
    reasoning_effort: str | None,
    pictures: PictureRules | None,
    request_fields: Mapping[str, Any] | None,
    allow_private_network: bool,
    tls: ssl.SSLContext | None,
    limits: ModelServerLimits | None,
) -> Terms:
    """Make the terms of a predictor; the arguments are those of the public classes."""
    options = ServerOptions(
        timeout_s=timeout_s,
        retries=retries,
        streaming=streaming,
        reasoning_effort=reasoning_effort or "",
        pictures=pictures,
        more=request_fields,
        limits=limits,
    )
    if (base_url is None) is (provider is None):
        raise ContractError("base_url", "expected it or a provider, and not both")
    if provider is None:
        assert base_url is not None
        server = Server.of_address(base_url, allow_private_network=allow_private_network, tls=tls)
        return Terms.agreed(server, model=model, codec=_codec(protocol, None), options=options)
    found = find_provider(provider)
    if found is None or found.protocol is not protocol:
        names = ", ".join(each.name for each in PROVIDERS if each.protocol is protocol)
        raise ContractError("provider", f"got {provider!r:.80}, expected one of {names}")
    if tls is not None or allow_private_network:
        raise ContractError("provider", "expected neither tls nor allow_private_network with one")
    codec = _codec(protocol, found)
    return Terms.agreed(Server.of_provider(found), model=model, codec=codec, options=options)


def _codec(protocol: ServerProtocol, provider: Provider | None) -> Codec:
    match protocol:
        case ServerProtocol.CHAT_COMPLETIONS:
            return _chat_codec(provider)
        case ServerProtocol.RESPONSES:
            return ResponsesCodec()
        case ServerProtocol.MESSAGES:
            return MessagesCodec()


def _chat_codec(provider: Provider | None) -> ChatCodec:
    if provider is None:
        return ChatCodec()
    return ChatCodec(
        length_field=provider.length_field,
        seed_field=provider.seed_field,
        takes_top_k=provider.takes_top_k,
        takes_repetition_penalty=provider.takes_repetition_penalty,
        takes_template=False,
    )
