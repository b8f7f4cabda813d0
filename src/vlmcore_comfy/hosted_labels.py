"""
What widgets call hosted models, and what their services call them.

Saved graphs hold labels, which therefore never leave this list. Some are older than it and name a
model that is gone: what they meant last is asked. The order is that of the page.
"""

from __future__ import annotations

import attrs

__all__ = ["LLM_LABELS", "VLM_LABELS", "HostedLabel", "find_label"]


@attrs.frozen
class HostedLabel:
    """
    A label.

    Attributes:
        label: As saved graphs hold it.
        provider: The service, as `vlmcore.vlm.remote.providers` calls it; empty for a server of
            one's own.
        model: What the service calls the model; empty where ``model_override`` has to say it.
        sees: Whether it takes pictures.
    """

    label: str
    provider: str
    model: str
    sees: bool = False


_CURRENT = (
    HostedLabel("OpenAI — GPT-5.6 Terra", "openai", "gpt-5.6-terra", sees=True),
    HostedLabel("OpenAI — GPT-5.6 Sol", "openai", "gpt-5.6-sol", sees=True),
    HostedLabel("OpenAI — GPT-5.6 Luna", "openai", "gpt-5.6-luna", sees=True),
    HostedLabel("Google — Gemini 3.6 Flash", "gemini", "gemini-3.6-flash", sees=True),
    HostedLabel("Google — Gemini 3.5 Flash", "gemini", "gemini-3.5-flash", sees=True),
    HostedLabel("Google — Gemini 3.5 Flash-Lite", "gemini", "gemini-3.5-flash-lite", sees=True),
    HostedLabel("Anthropic — Claude Fable 5", "anthropic", "claude-fable-5", sees=True),
    HostedLabel("Anthropic — Claude Opus 5", "anthropic", "claude-opus-5", sees=True),
    HostedLabel("Anthropic — Claude Sonnet 5", "anthropic", "claude-sonnet-5", sees=True),
    HostedLabel("Anthropic — Claude Haiku 4.5", "anthropic", "claude-haiku-4-5", sees=True),
    HostedLabel("xAI — Grok 4.5", "xai", "grok-4.5", sees=True),
    HostedLabel("DeepSeek — V4 Flash", "deepseek", "deepseek-v4-flash"),
    HostedLabel("DeepSeek — V4 Pro", "deepseek", "deepseek-v4-pro"),
    HostedLabel("Groq — Qwen 3.6 27B (vision)", "groq", "qwen/qwen3.6-27b", sees=True),
    HostedLabel("Groq — GPT-OSS 20B", "groq", "openai/gpt-oss-20b"),
    HostedLabel("Mistral — Mistral Large (latest)", "mistral", "mistral-large-latest", sees=True),
    HostedLabel("Mistral — Mistral Small (latest)", "mistral", "mistral-small-latest", sees=True),
    HostedLabel("Mistral — Ministral 14B (latest)", "mistral", "ministral-14b-latest", sees=True),
    HostedLabel("Together — Kimi K2.5 (vision)", "together", "moonshotai/Kimi-K2.5", sees=True),
    HostedLabel("Together — Qwen 3.5 9B (vision)", "together", "Qwen/Qwen3.5-9B", sees=True),
    HostedLabel("OpenRouter — Custom model", "openrouter", "", sees=True),
    HostedLabel("Custom / Local — OpenAI compatible", "", "", sees=True),
)
_OLD = (
    HostedLabel("GPT-5.6 Terra", "openai", "gpt-5.6-terra"),
    HostedLabel("GPT-5.6 Sol", "openai", "gpt-5.6-sol"),
    HostedLabel("GPT-5.6 Luna", "openai", "gpt-5.6-luna"),
    HostedLabel("DeepSeek", "deepseek", "deepseek-v4-flash"),
    HostedLabel("Custom / OpenAI-compatible", "", ""),
    HostedLabel("ChatGPT-3.5", "openai", "gpt-5.6-luna"),
    HostedLabel("ChatGPT-4", "openai", "gpt-5.6-terra"),
    HostedLabel("gpt-3.5-turbo", "openai", "gpt-3.5-turbo"),
    HostedLabel("gpt-3.5-turbo-0125", "openai", "gpt-3.5-turbo-0125"),
    HostedLabel("gpt-35-turbo", "openai", "gpt-35-turbo"),
    HostedLabel("gpt-3.5-turbo-16k", "openai", "gpt-3.5-turbo-16k"),
    HostedLabel("gpt-3.5-turbo-16k-0613", "openai", "gpt-3.5-turbo-16k-0613"),
    HostedLabel("gpt-4-0613", "openai", "gpt-4-0613"),
    HostedLabel("gpt-4-1106-preview", "openai", "gpt-4-1106-preview"),
    HostedLabel("glm-4", "", ""),
)
_ANY = tuple(
    HostedLabel(f"{name} — (model_override)", provider, "", sees=True)
    for name, provider in (
        ("OpenAI", "openai"),
        ("Google Gemini", "gemini"),
        ("Anthropic", "anthropic"),
        ("xAI", "xai"),
        ("DeepSeek", "deepseek"),
        ("Groq", "groq"),
        ("Mistral", "mistral"),
        ("Together AI", "together"),
        ("OpenRouter", "openrouter"),
    )
)
_ALL = {each.label: each for each in (*_CURRENT, *_OLD, *_ANY)}

LLM_LABELS = tuple(_ALL)
"""What the node for language models offers."""

VLM_LABELS = tuple(each.label for each in _ALL.values() if each.sees)
"""What the node for pictures offers."""


def find_label(label: str) -> HostedLabel | None:
    """Find what a label means; ``None`` if it is none of these."""
    return _ALL.get(label)
