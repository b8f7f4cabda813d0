"""Models behind servers: vLLM, SGLang, llama.cpp, Ollama, LM Studio, and hosted providers."""

from __future__ import annotations

from vlmcore.vlm.remote.async_predictors import (
    AsyncAnthropicMessagesPredictor,
    AsyncGenerationStream,
    AsyncOpenAICompatiblePredictor,
    AsyncOpenAIResponsesPredictor,
)
from vlmcore.vlm.remote.pictures import PictureRules
from vlmcore.vlm.remote.predictors import (
    AnthropicMessagesPredictor,
    OpenAICompatiblePredictor,
    OpenAIResponsesPredictor,
)
from vlmcore.vlm.remote.providers import PROVIDERS, Provider
from vlmcore.vlm.remote.retrying import Retries

__all__ = [
    "PROVIDERS",
    "AnthropicMessagesPredictor",
    "AsyncAnthropicMessagesPredictor",
    "AsyncGenerationStream",
    "AsyncOpenAICompatiblePredictor",
    "AsyncOpenAIResponsesPredictor",
    "OpenAICompatiblePredictor",
    "OpenAIResponsesPredictor",
    "PictureRules",
    "Provider",
    "Retries",
]
