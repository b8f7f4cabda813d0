"""Nodes that ask hosted services, and servers of one's own."""

from __future__ import annotations

from typing import Any

from vlmcore_comfy.declaring import (
    Input,
    Node,
    Output,
    boolean,
    choice,
    integer,
    node,
    number,
    socket,
    text,
)
from vlmcore_comfy.hosted_labels import LLM_LABELS, VLM_LABELS
from vlmcore_comfy.hosting import ALONE, Host

__all__ = ["NODES", "hosted_llm", "hosted_vlm"]

_KEYS = ("Provider environment variable", "No key (loopback custom endpoint only)")
_MODES = ("Auto", "Responses", "Chat Completions")
_EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh", "max")
_FORMS = ("Text", "JSON object", "JSON Schema")
_STYLES = (
    "Auto (provider native)",
    "OpenAI JSON Schema",
    "llama.cpp JSON Schema",
    "JSON object + local validation",
)
_ANALYST = "You describe what is in images: exactly, and without guessing."
_KEY = choice(
    "credential_source",
    _KEYS,
    _KEYS[0],
    tooltip="Keys are taken from the environment of ComfyUI, never from a graph",
)


def _name(labels: tuple[str, ...]) -> Input:
    return choice(
        "model_name",
        labels,
        "OpenAI — GPT-5.6 Sol",
        is_open=True,
        tooltip="The service, and its model unless model_override names one",
    )


def _where(timeout_s: float) -> tuple[Input, ...]:
    return (
        text(
            "base_url", is_optional=True, tooltip="A server of your own: http://127.0.0.1:8000/v1"
        ),
        text("model_override", is_optional=True, tooltip="The model, as its server calls it"),
        choice("api_mode", _MODES, "Auto", is_optional=True),
        number("timeout_seconds", timeout_s, 1.0, 1800.0, is_optional=True),
    )


def _form() -> tuple[Input, ...]:
    return (
        choice("output_format", _FORMS, "Text", is_optional=True),
        text("json_schema", multiline=True, is_optional=True),
        choice("schema_api_style", _STYLES, _STYLES[0], is_optional=True),
        boolean("stream_output", default=True, is_optional=True),
        boolean("use_system_proxy", default=False, is_optional=True),
    )


_LONGEST = integer("max_output_tokens", 4096, 1, 131072, is_optional=True)
_EFFORT = choice("reasoning_effort", _EFFORTS, "none", is_optional=True)
_SEARCH = boolean("web_search", default=False, is_optional=True)


@node(
    "PromptGenerateAPI",
    title="Hosted LLM API (Secure)",
    category="API",
    description="Asks a language model behind a service, or a server of your own. The key is taken "
    "from the environment, and is never in the graph.",
    inputs=(
        _name(LLM_LABELS),
        boolean(
            "chat_type",
            default=True,
            tooltip="On: description is the system's text. Off: it stands before the question.",
        ),
        _KEY,
        text("description", multiline=True),
        text("question", multiline=True),
        integer("context_size", 0, 0, 30, 1, tooltip="Earlier questions and answers of this node"),
        integer("seed", 0, 0, 18446744073709551615, 1, tooltip="0 for none"),
        *_where(120.0),
        _EFFORT,
        _LONGEST,
        _SEARCH,
        *_form(),
    ),
    outputs=(Output("STRING", "text"),),
    extras=("remote",),
    is_threaded=True,
    knows_itself=True,
)
def hosted_llm(
    model_name: str,
    chat_type: bool,
    credential_source: str,
    description: str,
    question: str,
    context_size: int,
    seed: int,
    base_url: str = "",
    model_override: str = "",
    api_mode: str = "Auto",
    timeout_seconds: float = 120.0,
    reasoning_effort: str = "none",
    max_output_tokens: int = 4096,
    web_search: bool = False,
    output_format: str = "Text",
    json_schema: str = "",
    schema_api_style: str = _STYLES[0],
    stream_output: bool = True,
    use_system_proxy: bool = False,
    *,
    comfyui: Host = ALONE,
) -> tuple[str]:
    """Ask a language model."""
    from vlmcore_comfy.conversations import Exchange, remember
    from vlmcore_comfy.hosted import HostedModel
    from vlmcore_comfy.hosted_answers import ask_hosted, question_from

    asked, system = question_from(
        comfyui.node_id,
        description=description,
        question=question,
        is_chat=chat_type,
        exchanges=context_size,
    )
    hosted = HostedModel(
        label=model_name,
        model_override=model_override,
        base_url=base_url,
        credential_source=credential_source,
        api_mode=api_mode,
        timeout_s=timeout_seconds,
        reasoning_effort=reasoning_effort,
        web_search=web_search,
        use_system_proxy=use_system_proxy,
        schema=json_schema if output_format == "JSON Schema" else "",
        schema_style=schema_api_style,
    )
    said = ask_hosted(
        hosted,
        asked,
        system,
        max_tokens=max_output_tokens,
        seed=seed,
        output_format=output_format,
        json_schema=json_schema,
        comfyui=comfyui,
        is_shown=stream_output,
    )
    remember(comfyui.node_id, Exchange(question, said))
    return (said,)


@node(
    "HostedVLMAPI",
    title="Hosted VLM API (Secure)",
    category="API",
    description="Asks a model behind a service, or a server of your own, about images. The key is "
    "taken from the environment, and is never in the graph.",
    inputs=(
        _name(VLM_LABELS),
        _KEY,
        text("prompt", "Describe the important visual details.", multiline=True),
        text("system_prompt", _ANALYST, multiline=True),
        integer("max_frames", 8, 1, 32, 1, tooltip="Of more, these are taken evenly"),
        integer("max_image_edge", 1536, 256, 2048, 64),
        integer("jpeg_quality", 88, 45, 95, 1),
        choice("image_detail", ("auto", "low", "high"), "auto", tooltip="low: at most 512 pixels"),
        socket("images", "IMAGE", is_optional=True),
        *_where(180.0),
        _LONGEST,
        _EFFORT,
        _SEARCH,
        *_form(),
    ),
    outputs=(
        Output("STRING", "text"),
        Output("STRING", "model_used"),
        Output("INT", "frames_sent"),
    ),
    extras=("remote",),
    is_threaded=True,
    knows_itself=True,
)
def hosted_vlm(
    model_name: str,
    credential_source: str,
    prompt: str,
    system_prompt: str,
    max_frames: int,
    max_image_edge: int,
    jpeg_quality: int,
    image_detail: str,
    images: Any = None,
    base_url: str = "",
    model_override: str = "",
    api_mode: str = "Auto",
    timeout_seconds: float = 180.0,
    max_output_tokens: int = 4096,
    reasoning_effort: str = "none",
    web_search: bool = False,
    output_format: str = "Text",
    json_schema: str = "",
    schema_api_style: str = _STYLES[0],
    stream_output: bool = True,
    use_system_proxy: bool = False,
    *,
    comfyui: Host = ALONE,
) -> tuple[str, str, int]:
    """Ask a model about images."""
    from vlmcore_comfy.hosted import HostedModel
    from vlmcore_comfy.hosted_answers import ask_hosted, evenly, picture_rules

    frames = evenly(images, max_frames)
    hosted = HostedModel(
        label=model_name,
        model_override=model_override,
        base_url=base_url,
        credential_source=credential_source,
        api_mode=api_mode,
        timeout_s=timeout_seconds,
        reasoning_effort=reasoning_effort,
        web_search=web_search,
        use_system_proxy=use_system_proxy,
        pictures=picture_rules(max_image_edge, jpeg_quality, is_low=image_detail == "low"),
        schema=json_schema if output_format == "JSON Schema" else "",
        schema_style=schema_api_style,
    )
    said = ask_hosted(
        hosted,
        prompt,
        system_prompt,
        frames=frames,
        max_tokens=max_output_tokens,
        output_format=output_format,
        json_schema=json_schema,
        comfyui=comfyui,
        is_shown=stream_output,
    )
    return said, hosted.model, len(frames)


NODES: tuple[Node[..., Any], ...] = (hosted_llm, hosted_vlm)
