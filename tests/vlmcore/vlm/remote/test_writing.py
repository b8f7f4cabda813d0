"""What is written to a server: in three protocols, with keys that stay where they belong."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from vlmcore.errors import ContractError, EndpointError
from vlmcore.vlm.generation import GenerationOptions
from vlmcore.vlm.outputs import JsonOutput
from vlmcore.vlm.prompt import Prompt
from vlmcore.vlm.remote._codecs import Codec, Question
from vlmcore.vlm.remote._making import make_terms
from vlmcore.vlm.remote._messages import MessagesCodec
from vlmcore.vlm.remote._responses import ResponsesCodec
from vlmcore.vlm.remote._terms import Terms
from vlmcore.vlm.remote.pictures import PictureRules, pictures_of
from vlmcore.vlm.remote.predictors import AnthropicMessagesPredictor, OpenAICompatiblePredictor
from vlmcore.vlm.remote.providers import PROVIDERS, Provider, ServerProtocol, find_provider

PICTURE = np.zeros((4, 4, 3), np.uint8)
PROMPT = Prompt(text="What is this?", system="Be brief.", images=(PICTURE,))


def written(codec: Codec, options: GenerationOptions, **kwargs: Any) -> dict[str, Any]:
    fields: dict[str, Any] = {"effort": "", "more": {}, "left_out": frozenset(), **kwargs}
    pictures = tuple(pictures_of(PROMPT, PictureRules()))
    question = Question(
        model="m", prompt=PROMPT, options=options, pictures=pictures, streams=True, **fields
    )
    return codec.request(question)


def test_a_message_for_anthropic() -> None:
    """
    Pictures first, the system text apart, and stop texts as sequences.
    """
    options = GenerationOptions(max_new_tokens=99, stop=("###", " "), top_k=3)
    sent = written(MessagesCodec(), options, effort="low")
    (message,) = sent.pop("messages")
    assert ["image", "text"] == [part["type"] for part in message["content"]]
    assert "image/jpeg" == message["content"][0]["source"]["media_type"]
    assert {
        "model": "m",
        "max_tokens": 99,
        "system": "Be brief.",
        "temperature": 0.0,
        "top_k": 3,
        "stop_sequences": ["###"],
        "stream": True,
        "output_config": {"effort": "low"},
    } == sent


def test_a_message_for_anthropic_that_asks_to_think() -> None:
    """
    Half of the tokens at most are for thoughts, and the temperature is the server's.
    """
    sent = written(MessagesCodec(), GenerationOptions(max_new_tokens=4096, thinking=True))
    assert {"type": "enabled", "budget_tokens": 2048} == sent["thinking"]
    assert "temperature" not in sent
    with pytest.raises(ContractError, match="max_new_tokens"):
        MessagesCodec().check(GenerationOptions(max_new_tokens=100, thinking=True), "")


def test_a_request_for_a_response() -> None:
    """
    Nothing of it is kept there.
    """
    options = GenerationOptions(output=JsonOutput())
    sent = written(ResponsesCodec(), options, effort="high")
    (message,) = sent.pop("input")
    assert ["input_image", "input_text"] == [part["type"] for part in message["content"]]
    assert message["content"][0]["image_url"].startswith("data:image/jpeg;base64,")
    assert "JSON" in message["content"][1]["text"]
    assert {
        "model": "m",
        "max_output_tokens": 512,
        "instructions": "Be brief.",
        "temperature": 0.0,
        "stream": True,
        "store": False,
        "reasoning": {"effort": "high"},
        "text": {"format": {"type": "json_object"}},
    } == sent


@pytest.mark.parametrize(
    ("codec", "options", "field"),
    [
        (MessagesCodec(), GenerationOptions(seed=1), "seed"),
        (MessagesCodec(), GenerationOptions(repetition_penalty=1.2), "repetition_penalty"),
        (MessagesCodec(), GenerationOptions(temperature=1.5), "temperature"),
        (ResponsesCodec(), GenerationOptions(seed=1), "seed"),
        (ResponsesCodec(), GenerationOptions(top_k=1), "top_k"),
        (ResponsesCodec(), GenerationOptions(thinking=True), "thinking"),
    ],
)
def test_what_a_protocol_has_no_field_for_is_refused(
    codec: Codec, options: GenerationOptions, field: str
) -> None:
    """
    And not left out in silence.
    """
    with pytest.raises(ContractError, match=f"^{field}: "):
        codec.check(options, "")


# --- keys and hosts

HOSTS = {
    "openai": ("https://api.openai.com/v1", "OPENAI_API_KEY"),
    "openai-responses": ("https://api.openai.com/v1", "OPENAI_API_KEY"),
    "gemini": ("https://generativelanguage.googleapis.com/v1beta/openai/", "GEMINI_API_KEY"),
    "anthropic": ("https://api.anthropic.com/v1/", "ANTHROPIC_API_KEY"),
    "xai": ("https://api.x.ai/v1", "XAI_API_KEY"),
    "deepseek": ("https://api.deepseek.com/v1", "DEEPSEEK_API_KEY"),
    "groq": ("https://api.groq.com/openai/v1", "GROQ_API_KEY"),
    "mistral": ("https://api.mistral.ai/v1", "MISTRAL_API_KEY"),
    "together": ("https://api.together.ai/v1", "TOGETHER_API_KEY"),
    "openrouter": ("https://openrouter.ai/api/v1", "OPENROUTER_API_KEY"),
}


def terms(base_url: str | None = None, provider: str | None = None, **kwargs: Any) -> Terms:
    found = None if provider is None else find_provider(provider)
    protocol = ServerProtocol.CHAT_COMPLETIONS if found is None else found.protocol
    arguments: dict[str, Any] = {
        "model": "m",
        "provider": provider,
        "timeout_s": 1.0,
        "retries": None,
        "streaming": True,
        "reasoning_effort": None,
        "pictures": None,
        "request_fields": None,
        "allow_private_network": False,
        "tls": None,
        "limits": None,
    }
    return make_terms(protocol, base_url, **{**arguments, **kwargs})


def test_every_provider_is_where_it_says() -> None:
    """
    The table, value by value.
    """
    assert HOSTS == {each.name: (each.base_url, each.key_variable) for each in PROVIDERS}


@pytest.mark.parametrize("provider", PROVIDERS, ids=lambda provider: provider.name)
def test_the_key_of_a_provider_goes_to_its_own_host_over_tls(
    provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    As a bearer, and to Anthropic as x-api-key; to nobody else.
    """
    for variable in {each.key_variable for each in PROVIDERS} | {"CUSTOM_API_KEY"}:
        monkeypatch.setenv(variable, f"sk-of-{variable}")
    agreed = terms(provider=provider.name)
    key = f"sk-of-{provider.key_variable}"
    expected = (
        ("x-api-key", key) if provider.name == "anthropic" else ("authorization", f"Bearer {key}")
    )
    assert expected in agreed.headers()
    assert 1 == str(agreed.headers()).count("sk-of-")
    endpoint = agreed.server.endpoint
    assert ("https", 443, True) == (endpoint.scheme, endpoint.port, agreed.server.only_public)
    assert provider.base_url.split("/")[2] == endpoint.host
    assert agreed.server.tls is not None


def test_a_key_of_a_provider_has_no_other_address() -> None:
    """
    Neither by an override nor by a context of TLS.
    """
    with pytest.raises(ContractError, match="base_url"):
        OpenAICompatiblePredictor("http://localhost:1", model="m", provider="openai")
    with pytest.raises(ContractError, match="provider"):
        OpenAICompatiblePredictor(model="m", provider="anthropic")
    with pytest.raises(ContractError, match="base_url"):
        OpenAICompatiblePredictor(model="m")


def test_without_its_key_a_provider_is_refused_by_the_name_of_the_variable(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """
    Before anything is sent.
    """
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    with pytest.raises(ContractError, match="ANTHROPIC_API_KEY: is not set"):
        AnthropicMessagesPredictor(model="m")


@pytest.mark.parametrize(
    ("url", "hosts", "is_sent"),
    [
        ("http://127.0.0.1:8000", "", True),
        ("http://localhost:8000", "", True),
        ("https://models.example", "", False),
        ("https://models.example", "other.example", False),
        ("https://models.example", "Models.Example, other.example", True),
        ("https://a.models.example", "models.example", False),
        ("http://localhost.evil.example", "models.example", None),
    ],
)
def test_which_hosts_see_the_key_for_servers_of_ones_own_is_a_matter_of_the_machine(
    url: str, hosts: str, is_sent: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    An address alone, as a workflow may name it, takes no key out of the machine.
    """
    monkeypatch.setenv("CUSTOM_API_KEY", "sk-custom-123456")
    monkeypatch.setenv("CUSTOM_API_HOSTS", hosts)
    if is_sent is None:
        with pytest.raises(EndpointError, match="expected https"):
            terms(url)
        return
    assert is_sent is ("sk-custom-123456" in str(terms(url).headers()))


@pytest.mark.parametrize(
    ("written_as", "path"),
    [
        ("http://localhost:1", "/v1"),
        ("http://localhost:1/", "/v1"),
        ("http://localhost:1/v1", "/v1"),
        ("http://localhost:1/v1/", "/v1"),
        ("http://localhost:1/v1/chat/completions", "/v1"),
        ("http://localhost:1/llm", "/llm/v1"),
        ("http://localhost:1/llm/v1/", "/llm/v1"),
        ("http://localhost:1/v1beta/openai/", "/v1beta/openai"),
        ("http://localhost:1/api/v3", "/api/v3"),
    ],
)
def test_a_base_address_is_joined_once(written_as: str, path: str) -> None:
    """
    With or without /v1 and a slash at its end.
    """
    assert path == terms(written_as).server.base


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("timeout_s", 0.0),
        ("timeout_s", float("nan")),
        ("retries", 3),
        ("streaming", "yes"),
        ("reasoning_effort", "much"),
        ("pictures", 3),
        ("request_fields", {"x": float("nan")}),
        ("limits", 3),
        ("model", " "),
        ("allow_private_network", 1),
        ("tls", object()),
    ],
)
def test_an_argument_that_is_none_is_named(field: str, value: object) -> None:
    """
    When the predictor is made, and not when it is used.
    """
    with pytest.raises(ContractError, match=field):
        terms("https://localhost:1", **{field: value})
