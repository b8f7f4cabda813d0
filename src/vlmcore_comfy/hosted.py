"""Models behind hosted services, and servers of one's own, as the widgets of a graph name them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from vlmcore.endpoint import Endpoint
from vlmcore.errors import ContractError, EndpointError
from vlmcore.vlm.outputs import JsonOutput
from vlmcore.vlm.remote.pictures import PictureRules
from vlmcore.vlm.remote.predictors import (
    AnthropicMessagesPredictor,
    OpenAICompatiblePredictor,
    OpenAIResponsesPredictor,
    ServerPredictor,
)
from vlmcore.vlm.remote.providers import Provider, ServerProtocol, find_provider
from vlmcore.vlm.structure_requests import StructureStyle, structure_fields
from vlmcore_comfy.hosted_labels import find_label
from vlmcore_comfy.keeping import Kept
from vlmcore_comfy.widgets import value_in

__all__ = ["KEPT", "HostedModel", "output_from"]

NO_KEY = "No key (loopback custom endpoint only)"
_PROVIDERS = {
    "OpenAI": "openai",
    "Google": "gemini",
    "Google Gemini": "gemini",
    "Gemini": "gemini",
    "Anthropic": "anthropic",
    "xAI": "xai",
    "DeepSeek": "deepseek",
    "Groq": "groq",
    "Mistral": "mistral",
    "Together": "together",
    "Together AI": "together",
    "OpenRouter": "openrouter",
}
_STYLES = {
    "OpenAI JSON Schema": StructureStyle.OPENAI_CHAT,
    "llama.cpp JSON Schema": StructureStyle.LLAMA_CPP,
    "JSON object + local validation": StructureStyle.JSON_OBJECT,
}


@attrs.frozen(kw_only=True)
class HostedModel:
    """
    A model that is asked over the network, as widgets say it.

    Attributes:
        label: One of `vlmcore_comfy.hosted_labels`; of another, as ``"OpenAI — GPT-7 Sol"``, the
            service is asked for the name in lower case with hyphens.
        model_override: What the service calls the model; blank for that of the label.
        base_url: A server of one's own instead of the service; blank for the service.
        credential_source: The label of where the key comes from.
        api_mode: ``"Auto"``, ``"Responses"`` or ``"Chat Completions"``.
        timeout_s: How long a call may take.
        reasoning_effort: How much the model is to think; ``"none"`` leaves it to it.
        web_search: Whether it may look things up; only over the responses of OpenAI.
        use_system_proxy: Whether a proxy of the system is asked, which no client here does.
        pictures: How pictures are sent; ``None`` for as the service wants them.
        schema: A JSON Schema in canonical JSON, with *schema_style*; empty for none.
        schema_style: The label of how a server of chat completions is given the schema.
    """

    label: str
    model_override: str
    base_url: str
    credential_source: str
    api_mode: str
    timeout_s: float
    reasoning_effort: str
    web_search: bool
    use_system_proxy: bool
    pictures: PictureRules | None = None
    schema: str = ""
    schema_style: str = ""

    @property
    def provider(self) -> Provider:
        """
        The service of the label.

        Raises:
            ContractError: If it is not known.
        """
        known = find_label(self.label)
        if known is not None and not known.provider:
            raise ContractError(
                "base_url", "is blank, expected the address of the server of your own"
            )
        name = self.label.partition("—")[0].strip()
        provider = find_provider(_PROVIDERS.get(name, "") if known is None else known.provider)
        if provider is None:
            services = ", ".join(sorted(set(_PROVIDERS)))
            raise ContractError(
                "model_name",
                f"got {self.label!a:.80}, expected a model of {services}; or put the address of a "
                "server into base_url",
            )
        return provider

    @property
    def model(self) -> str:
        """
        What the service is asked for.

        Raises:
            ContractError: If nothing says it.
        """
        known = find_label(self.label)
        named = self.label.partition("—")[2].strip().lower().replace(" ", "-")
        model = self.model_override.strip() or (named if known is None else known.model)
        if not model or (self.base_url.strip() and not self.model_override.strip()):
            raise ContractError(
                "model_override", "is blank, expected the model as its server calls it"
            )
        return model

    def open(self) -> ServerPredictor:
        """
        Make the predictor.

        Raises:
            ContractError: If the widgets contradict each other, or a key is not set.
            EndpointError: If *base_url* may not be dialled.
            MissingDependencyError: If h11 is not installed.
        """
        if self.use_system_proxy:
            raise ContractError(
                "use_system_proxy",
                "is on, and nothing here asks a proxy; a forwarder on this machine can be named "
                "in base_url",
            )
        base_url = self.base_url.strip()
        if self.credential_source == NO_KEY:
            _require_loopback(base_url)
        kind = self._kind(base_url)
        where: dict[str, Any] = (
            {"base_url": base_url} if base_url else {"provider": self._provider_name(kind)}
        )
        effort = None if self.reasoning_effort == "none" else self.reasoning_effort
        return kind(
            model=self.model,
            timeout_s=self.timeout_s,
            reasoning_effort=effort,
            pictures=self.pictures,
            request_fields=self._fields(kind) or None,
            **where,
        )

    def seed(self, seed: int) -> int | None:
        """Give a seed where the service takes one; 0 is none."""
        takes_one = bool(self.base_url.strip()) or self.provider.seed_field is not None
        return seed or None if takes_one and self.api_mode != "Responses" else None

    def _kind(self, base_url: str) -> type[ServerPredictor]:
        # Only there can the model look things up, and graphs that want it leave the mode alone.
        looks_up = self.api_mode == "Auto" and self.web_search and not base_url
        if self.api_mode == "Responses" or (looks_up and self.provider.name == "openai"):
            return OpenAIResponsesPredictor
        is_anthropic = not base_url and self.provider.protocol is ServerProtocol.MESSAGES
        return AnthropicMessagesPredictor if is_anthropic else OpenAICompatiblePredictor

    def _provider_name(self, kind: type[ServerPredictor]) -> str:
        provider = self.provider
        if kind is OpenAIResponsesPredictor:
            if provider.name != "openai":
                raise ContractError(
                    "api_mode", f"got Responses for {provider.name}, which OpenAI alone speaks"
                )
            return "openai-responses"
        return provider.name

    def _fields(self, kind: type[ServerPredictor]) -> Mapping[str, Any]:
        fields: dict[str, Any] = {}
        if self.web_search:
            if kind is not OpenAIResponsesPredictor:
                raise ContractError(
                    "web_search", "is on, and needs api_mode Responses, with OpenAI"
                )
            fields["tools"] = [{"type": "web_search"}]
        style = _STYLES.get(self.schema_style)
        if self.schema and style is not None and kind is OpenAICompatiblePredictor:
            output = JsonOutput(schema=value_in("json_schema", self.schema))
            fields.update(structure_fields(output, style))
        return fields


def output_from(output_format: str, json_schema: str) -> JsonOutput | None:
    """
    Say what the answer is to be; ``None`` for text.

    Raises:
        ContractError: If a schema is wanted, and there is none, or it is none.
        MissingDependencyError: If there is one, and jsonschema is not installed.
    """
    if output_format == "Text":
        return None
    if output_format == "JSON object":
        return JsonOutput()
    schema = value_in("json_schema", json_schema)
    if not isinstance(schema, dict):
        raise ContractError("json_schema", "is blank or no object, expected a JSON Schema")
    return JsonOutput(schema=schema)


def _require_loopback(base_url: str) -> None:
    if not base_url:
        raise ContractError(
            "base_url", "is blank, expected a server on this machine: no key was chosen"
        )
    try:
        Endpoint.parse(base_url, schemes=("http", "https"), default_scheme="http")
    except EndpointError as error:
        raise ContractError(
            "base_url", f"expected a server on this machine, since no key was chosen: {error}"
        ) from None


KEPT: Kept[HostedModel, ServerPredictor] = Kept(most=8)
"""The services that were asked, with their connections."""
