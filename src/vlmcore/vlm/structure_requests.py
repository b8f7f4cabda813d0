"""How each kind of server is asked for JSON: fields of the request, and words in the prompt."""

from __future__ import annotations

import enum
from typing import Any

from vlmcore._arrays import require_member
from vlmcore.vlm.outputs import JsonOutput
from vlmcore.vlm.structure import instruction

__all__ = ["StructureStyle", "structure_fields", "structure_words"]

_NAME = "answer"
_PLAIN = {"response_format": {"type": "json_object"}}


class StructureStyle(enum.Enum):
    """
    The ways in which servers take a schema.

    Source:
        The public references of OpenAI (chat completions, which vLLM, SGLang, Ollama, LM Studio,
        Gemini, Mistral, Groq and OpenRouter follow; responses), of Anthropic (messages), of the
        servers of llama.cpp and of TensorRT-LLM.
    """

    OPENAI_CHAT = "openai-chat"
    OPENAI_RESPONSES = "openai-responses"
    ANTHROPIC = "anthropic"
    LLAMA_CPP = "llama.cpp"
    TENSORRT_LLM = "tensorrt-llm"
    JSON_OBJECT = "json-object"  # any object; the schema is said in words
    WORDS = "words"  # nothing but words


def structure_fields(output: JsonOutput | None, style: StructureStyle) -> dict[str, Any]:
    """
    Say in fields of a request what the answer is to be.

    Args:
        output: What is wanted; ``None`` for text.
        style: How the server is asked.

    Returns:
        Fields for the top of the request, plain values of JSON; none where words must do.

    Example:
        >>> structure_fields(JsonOutput(), StructureStyle.OPENAI_CHAT)
        {'response_format': {'type': 'json_object'}}
    """
    require_member(StructureStyle, style=style)
    if output is None or style is StructureStyle.WORDS:
        return {}
    schema = output.plain_schema()
    if schema is None:
        return _any_object(style)
    return _schema_fields(schema, style)


def _schema_fields(schema: dict[str, Any], style: StructureStyle) -> dict[str, Any]:
    named = {"name": _NAME, "schema": schema, "strict": _is_strict(schema)}
    plain = {"type": "json_schema", "schema": schema}
    fields = {
        StructureStyle.OPENAI_CHAT: (
            "response_format",
            {"type": "json_schema", "json_schema": named},
        ),
        StructureStyle.OPENAI_RESPONSES: ("text", {"format": {"type": "json_schema", **named}}),
        StructureStyle.ANTHROPIC: ("output_config", {"format": plain}),
        StructureStyle.LLAMA_CPP: ("response_format", {"type": "json_object", "schema": schema}),
        StructureStyle.TENSORRT_LLM: ("response_format", {"type": "json", "schema": schema}),
        StructureStyle.JSON_OBJECT: ("response_format", {"type": "json_object"}),
    }
    name, value = fields[style]
    return {name: value}


def structure_words(output: JsonOutput | None, style: StructureStyle) -> str:
    """
    Say in words what the answer is to be, where fields do not say it, or not all of it.

    Servers that take ``json_object`` refuse a prompt that does not speak of JSON.

    Returns:
        A sentence to put behind the prompt; empty where nothing needs to be said.

    Example:
        >>> structure_words(JsonOutput(), StructureStyle.OPENAI_CHAT)
        'Answer with one JSON object, and nothing else.'
    """
    require_member(StructureStyle, style=style)
    if output is None:
        return ""
    says_itself = output.schema is not None and style not in (
        StructureStyle.JSON_OBJECT,
        StructureStyle.WORDS,
    )
    return "" if says_itself else instruction(output)


def _any_object(style: StructureStyle) -> dict[str, Any]:
    if style is StructureStyle.ANTHROPIC:
        return {}  # it takes closed schemas only: words must do
    if style is StructureStyle.OPENAI_RESPONSES:
        return {"text": {"format": {"type": "json_object"}}}
    return dict(_PLAIN)


def _is_strict(schema: Any) -> bool:
    """Say whether a schema is closed all through, as OpenAI's strict mode wants it."""
    if isinstance(schema, list):
        return all(map(_is_strict, schema))
    if not isinstance(schema, dict):
        return True
    if schema.get("type") == "object" or "properties" in schema:
        properties = schema.get("properties", {})
        if schema.get("additionalProperties") is not False:
            return False
        if set(schema.get("required", ())) != set(properties):
            return False
    return all(map(_is_strict, schema.values()))
