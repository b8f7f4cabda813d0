"""Which models a server has."""

from __future__ import annotations

import functools
import ssl

from vlmcore.contracts.json_text import read_json
from vlmcore.errors import ContractError
from vlmcore.vlm.remote._fields import items, text
from vlmcore.vlm.remote._getting import get
from vlmcore.vlm.remote._making import make_terms
from vlmcore.vlm.remote._reading import BadAnswerError, RefusedError
from vlmcore.vlm.remote._refusals import refusal_in, refusal_of
from vlmcore.vlm.remote._terms import Terms
from vlmcore.vlm.remote.providers import ServerProtocol, find_provider

__all__ = ["list_models"]

_PATH = "/models"


def list_models(
    base_url: str | None = None,
    *,
    provider: str | None = None,
    timeout_s: float = 30.0,
    allow_private_network: bool = False,
    tls: ssl.SSLContext | None = None,
) -> tuple[str, ...]:
    """
    Ask a server which models it has.

    Args:
        base_url: Where it is, as for `OpenAICompatiblePredictor`.
        provider: The name of a provider instead.
        timeout_s: How long that may take.
        allow_private_network: Whether its name may lead into a private network.
        tls: How an https server of one's own proves who it is.

    Returns:
        Their names, in the server's order.

    Raises:
        ContractError: If an argument is not as described, or a provider's key is not set.
        EndpointError: If *base_url* is no address, or not one that may be dialled.
        ModelServerError: If it does not say.
        MissingDependencyError: If h11 is not installed.

    Example:
        >>> from vlmcore.errors import ModelServerUnavailableError
        >>> try:
        ...     list_models("http://localhost:9")
        ... except ModelServerUnavailableError as error:
        ...     print(error)
        models: http://localhost:9: nothing listens there
    """
    found = None if provider is None else find_provider(provider)
    terms = make_terms(
        ServerProtocol.CHAT_COMPLETIONS if found is None else found.protocol,
        base_url,
        model="models",
        provider=provider,
        timeout_s=timeout_s,
        retries=None,
        streaming=True,
        reasoning_effort=None,
        pictures=None,
        request_fields=None,
        allow_private_network=allow_private_network,
        tls=tls,
        limits=None,
    )
    target = f"{terms.server.base}{_PATH}"
    return get(terms, target, functools.partial(_names, terms), timeout_s=timeout_s)


def _names(terms: Terms, status: int, body: bytes) -> tuple[str, ...]:
    if status >= 300:
        raise RefusedError(refusal_of(status, body, None))
    try:
        document = read_json(body)
    except ContractError as error:
        raise BadAnswerError(f"it sent what is no JSON: {error}") from None
    listed = document if isinstance(document, dict) else {"data": document}
    refusal = refusal_in(listed) if isinstance(document, dict) else None
    if refusal is not None:
        raise RefusedError(refusal)
    names = [text(each, "id", is_name=True) for each in items(listed, "data")]
    if not isinstance(listed.get("data"), list):
        raise BadAnswerError("it sent no list of models, expected one in 'data'")
    most = terms.limits.max_listed_models
    if len(names) > most:
        raise BadAnswerError(f"max_listed_models: got {len(names)}, limit is {most}")
    return tuple(name for name in names if name)
