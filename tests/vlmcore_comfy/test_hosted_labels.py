"""Labels of hosted models: what saved graphs hold, and what is asked for it."""

from __future__ import annotations

from typing import Any

import pytest

from vlmcore.errors import ContractError
from vlmcore.vlm.remote.predictors import (
    AnthropicMessagesPredictor,
    OpenAICompatiblePredictor,
    OpenAIResponsesPredictor,
)
from vlmcore.vlm.remote.providers import find_provider
from vlmcore_comfy.hosted import HostedModel
from vlmcore_comfy.hosted_labels import LLM_LABELS, VLM_LABELS, find_label


def model(label: str, **changes: Any) -> HostedModel:
    fields: dict[str, Any] = {
        "label": label,
        "model_override": "",
        "base_url": "",
        "credential_source": "Provider environment variable",
        "api_mode": "Auto",
        "timeout_s": 1.0,
        "reasoning_effort": "none",
        "web_search": False,
        "use_system_proxy": False,
    }
    return HostedModel(**fields | changes)


def test_saved_graphs_find_their_labels_in_their_places() -> None:
    """
    37 of language models and 19 of models that see, before those that came later.
    """
    assert LLM_LABELS[36] == "glm-4"
    assert VLM_LABELS[18] == "Custom / Local — OpenAI compatible"
    assert {label for label in LLM_LABELS[37:] if not label.endswith("(model_override)")} == set()
    assert LLM_LABELS[37:] == VLM_LABELS[19:]


@pytest.mark.parametrize("label", LLM_LABELS)
def test_every_label_has_a_service_that_is_known_or_is_of_a_server_of_ones_own(label: str) -> None:
    found = find_label(label)
    assert found is not None
    assert not found.provider or find_provider(found.provider) is not None
    if found.provider:
        assert model(label).provider.name == found.provider
    if found.model:
        assert model(label).model == found.model


@pytest.mark.parametrize(
    ("label", "asked"),
    [
        ("DeepSeek — V4 Flash", "deepseek-v4-flash"),
        ("Anthropic — Claude Haiku 4.5", "claude-haiku-4-5"),
        ("Groq — Qwen 3.6 27B (vision)", "qwen/qwen3.6-27b"),
        ("ChatGPT-4", "gpt-5.6-terra"),
        ("gpt-4-0613", "gpt-4-0613"),
        ("OpenAI — GPT-7 Sol", "gpt-7-sol"),
    ],
)
def test_a_label_is_asked_for_as_its_service_calls_it(label: str, asked: str) -> None:
    """
    Also one that is newer than the list.
    """
    assert model(label).model == asked
    assert model(label, model_override="another").model == "another"


@pytest.mark.parametrize("label", ["OpenRouter — Custom model", "OpenAI — (model_override)"])
def test_a_label_without_a_model_wants_its_name(label: str) -> None:
    with pytest.raises(ContractError, match="model_override: is blank, expected the model"):
        assert model(label).model


@pytest.mark.parametrize("label", ["Custom / Local — OpenAI compatible", "glm-4"])
def test_a_server_of_ones_own_wants_its_address(label: str) -> None:
    with pytest.raises(ContractError, match="base_url: is blank, expected the address"):
        model(label, model_override="m").open()
    model(label, model_override="m", base_url="http://127.0.0.1:9/v1").open().close()


def test_a_service_is_spoken_to_in_its_own_way(monkeypatch: pytest.MonkeyPatch) -> None:
    """
    A graph that wants OpenAI to look things up need not say how that is asked.
    """
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY"):
        monkeypatch.setenv(name, "sk-none-of-anybody")
    for opened, kind in (
        (model("OpenAI — GPT-5.6 Sol"), OpenAICompatiblePredictor),
        (model("OpenAI — GPT-5.6 Sol", web_search=True), OpenAIResponsesPredictor),
        (model("Anthropic — Claude Opus 5"), AnthropicMessagesPredictor),
    ):
        with opened.open() as predictor:
            assert type(predictor) is kind
    with pytest.raises(ContractError, match="web_search: is on, and needs"):
        model("Anthropic — Claude Opus 5", web_search=True).open()
