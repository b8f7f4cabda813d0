"""Models that are named with their server: ``http://127.0.0.1:8000/v1#model``, ``openai:model``."""

from __future__ import annotations

from vlmcore.errors import ModelAccessError
from vlmcore.vlm.remote._addresses import split_model
from vlmcore.vlm.remote.listing import list_models
from vlmcore.vlm.remote.predictors import (
    AnthropicMessagesPredictor,
    OpenAICompatiblePredictor,
    OpenAIResponsesPredictor,
    ServerPredictor,
)
from vlmcore.vlm.remote.providers import Provider, ServerProtocol, named_provider

__all__ = ["open_served_model"]

_SHOWN = 10


def open_served_model(name: str) -> ServerPredictor:
    """
    Make the predictor of a name; where it names no model, the server has to have just one.

    Raises:
        ModelAccessError: If no model is named, and the server has another number of them than one.
        ModelServerError: If it does not say which it has.
        ContractError: If a provider's key is not set.
        EndpointError: If it is no address, or not one that may be dialled.
        MissingDependencyError: If h11 is not installed.
    """
    provider = named_provider(name)
    if provider is not None:
        return _of_provider(provider, name.partition(":")[2])
    base_url, model = split_model(name)
    return OpenAICompatiblePredictor(base_url, model=model or _only_model(base_url))


def _of_provider(provider: Provider, model: str) -> ServerPredictor:
    match provider.protocol:
        case ServerProtocol.CHAT_COMPLETIONS:
            return OpenAICompatiblePredictor(model=model, provider=provider.name)
        case ServerProtocol.RESPONSES:
            return OpenAIResponsesPredictor(model=model, provider=provider.name)
        case ServerProtocol.MESSAGES:
            return AnthropicMessagesPredictor(model=model, provider=provider.name)


def _only_model(base_url: str) -> str:
    names = list_models(base_url)
    if len(names) == 1:
        return names[0]
    shown = ", ".join(names[:_SHOWN]) + (" ..." if len(names) > _SHOWN else "")
    raise ModelAccessError(
        base_url,
        f"it has {len(names)} models, name one as {base_url}#model: {shown}"
        if names
        else "it has no model",
    )
