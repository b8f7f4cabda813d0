"""Nodes that ask models on this machine."""

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
from vlmcore_comfy.hosting import ALONE, Host
from vlmcore_comfy.sockets import VIDEO_SELECTION

__all__ = ["ATTENTION", "MEMORY", "MODELS", "NODES", "describe_each", "legacy_vlm", "modern_vlm"]

MODELS = (
    "Qwen 3.5 0.8B (fastest current)",
    "Qwen 3.5 4B (recommended)",
    "Qwen 3 VL 2B Instruct",
    "Qwen 3 VL 4B Instruct",
    "Qwen 3 VL 8B Instruct",
    "SmolVLM2 500M Video (low VRAM)",
    "SmolVLM2 2.2B Video",
    "LFM2.5 VL 450M (edge)",
    "InternVL 3.5 1B HF",
    "Granite Vision 4.1 4B (structured documents)",
    "Gemma 3 4B IT (license acceptance required)",
    "Custom Hugging Face model",
    "Embedded (offline, tiny)",
)
_LEGACY_MODELS = (
    "Qwen 3.5 2B",
    "Qwen 3.5 9B",
    "Qwen 3.5 27B (4-bit recommended)",
    "Qwen 3.5 35B-A3B (4-bit recommended)",
    "Qwen 3.6 27B (4-bit recommended)",
    "Qwen 3 VL 30B-A3B Instruct (4-bit recommended)",
    "Qwen 2.5 VL 3B Instruct (legacy workflows)",
    "Qwen 2.5 VL 7B Instruct (legacy workflows)",
    "Gemma 3 12B IT (license acceptance required)",
    "Gemma 3 27B IT (4-bit recommended, gated)",
    "SmolVLM2 256M Video (smallest)",
    "LFM2.5 VL 1.6B",
    "InternVL 3.5 2B HF",
    "Granite Vision 3.3 2B (documents/OCR)",
)
MEMORY = ("ComfyUI managed (BF16)", "4-bit NF4 (bitsandbytes)", "8-bit (bitsandbytes)", "CPU")
ATTENTION = ("Auto (SDPA)", "Flash Attention 2", "Eager")
_DYNAMIC = "Dynamic (compatible)"
_STATIC = "Static compiled (fastest repeated shape)"
_STRICT = "Highest (strict)"
_FAST = "High / TF32 (fast on NVIDIA)"
_ANALYST = "You are an expert visual analyst."
_CUSTOM = text(
    "custom_model_id", tooltip="An id of the hub, as org/name, or a folder under models/LLM"
)


def _asking(models: tuple[str, ...], default: str) -> tuple[Input, ...]:
    return (
        text("prompt", "Describe this image precisely and in detail.", multiline=True),
        choice("model", models, default),
        _CUSTOM,
        choice("memory_mode", MEMORY, MEMORY[0]),
        integer("max_new_tokens", 512, 1, 16384),
        number("temperature", 0.1, 0.0, 2.0, 0.05, tooltip="0 takes the likeliest word each time"),
        number("top_p", 0.9, 0.01, 1.0, 0.01),
        socket(
            "image",
            "IMAGE",
            is_optional=True,
            tooltip="A batch is several pictures of one question",
        ),
        text("system_prompt", _ANALYST, multiline=True, is_optional=True),
        socket("video_frames", "IMAGE", is_optional=True, tooltip="Frames, oldest first"),
        socket("video_selection", VIDEO_SELECTION, is_optional=True),
        number("fps", 1.0, 0.1, 60.0, 0.1, is_optional=True, tooltip="Of the frames as given"),
        choice("attention_mode", ATTENTION, ATTENTION[0], is_optional=True),
        boolean("enable_thinking", default=False, is_optional=True),
        boolean("unload_after", default=False, is_optional=True),
        boolean("stream_output", default=True, is_optional=True),
    )


@node(
    "ModernVLM",
    title="Modern VLM (Qwen / SmolVLM2 / LFM / InternVL / Granite / Gemma)",
    category="Modern",
    description="Asks a model on this machine about images or a video. It is downloaded from the "
    "hub when it is not there; the embedded one needs no network.",
    inputs=(
        *_asking(MODELS, "Qwen 3 VL 2B Instruct"),
        choice("generation_cache", (_DYNAMIC, _STATIC), _DYNAMIC, is_optional=True),
        choice("matmul_precision", (_STRICT, _FAST), _STRICT, is_optional=True),
    ),
    outputs=(Output("STRING", "STRING"),),
    extras=("local",),
    is_threaded=True,
    knows_itself=True,
)
def modern_vlm(
    prompt: str,
    model: str,
    custom_model_id: str,
    memory_mode: str,
    max_new_tokens: int,
    temperature: float,
    top_p: float,
    image: Any = None,
    system_prompt: str = _ANALYST,
    video_frames: Any = None,
    video_selection: Any = None,
    fps: float = 1.0,
    attention_mode: str = ATTENTION[0],
    enable_thinking: bool = False,
    unload_after: bool = False,
    stream_output: bool = True,
    generation_cache: str = _DYNAMIC,
    matmul_precision: str = _STRICT,
    *,
    comfyui: Host = ALONE,
) -> tuple[str]:
    """Ask a model."""
    from vlmcore.vlm.generation import GenerationCache, GenerationOptions, MatmulPrecision
    from vlmcore_comfy.answering import answer, prompt_from
    from vlmcore_comfy.models import ModelChoice, opened

    asked = prompt_from(
        prompt,
        system_prompt,
        image=image,
        video_frames=video_frames,
        selection=video_selection,
        fps=fps,
    )
    options = GenerationOptions(
        max_new_tokens=max_new_tokens,
        temperature=temperature,
        top_p=top_p,
        seed=0,  # the same graph gives the same answer
        thinking=enable_thinking or None,
        cache=GenerationCache.STATIC if generation_cache == _STATIC else GenerationCache.DYNAMIC,
        matmul_precision=MatmulPrecision.HIGH
        if matmul_precision == _FAST
        else MatmulPrecision.HIGHEST,
    )
    chosen = ModelChoice(model, custom_model_id, memory_mode, attention_mode)
    with opened(chosen, comfyui, unload=unload_after) as predictor:
        said = answer(predictor, asked, options, comfyui=comfyui, is_shown=stream_output)
    return (said.text,)


@node(
    "LegacyModernVLM",
    title="[Legacy] Modern VLM Compatibility",
    category="Legacy/Model Loaders",
    description="Asks one of the models that workflows of old name; new ones use Modern VLM.",
    inputs=_asking(_LEGACY_MODELS, _LEGACY_MODELS[0]),
    outputs=(Output("STRING", "STRING"),),
    extras=("local",),
    is_threaded=True,
    knows_itself=True,
    is_deprecated=True,
)
def legacy_vlm(
    prompt: str,
    model: str,
    custom_model_id: str,
    memory_mode: str,
    max_new_tokens: int,
    temperature: float,
    top_p: float,
    image: Any = None,
    system_prompt: str = _ANALYST,
    video_frames: Any = None,
    video_selection: Any = None,
    fps: float = 1.0,
    attention_mode: str = ATTENTION[0],
    enable_thinking: bool = False,
    unload_after: bool = False,
    stream_output: bool = True,
    *,
    comfyui: Host = ALONE,
) -> tuple[str]:
    """Ask a model of old."""
    # In graphs of old a model that is named takes the place of the one that is chosen.
    named = MODELS[-2] if custom_model_id.strip() else model
    return modern_vlm(
        prompt,
        named,
        custom_model_id,
        memory_mode,
        max_new_tokens,
        temperature,
        top_p,
        image=image,
        system_prompt=system_prompt,
        video_frames=video_frames,
        video_selection=video_selection,
        fps=fps,
        attention_mode=attention_mode,
        enable_thinking=enable_thinking,
        unload_after=unload_after,
        stream_output=stream_output,
        comfyui=comfyui,
    )


@node(
    "VLMDescribeEachImage",
    title="VLM Describe Each Image",
    category="Modern",
    description="Asks a model on this machine the same about each image of a batch; what follows "
    "runs once for each answer.",
    inputs=(
        socket("images", "IMAGE"),
        text("prompt", "Describe this image precisely and in detail.", multiline=True),
        choice("model", MODELS, "Qwen 3 VL 2B Instruct"),
        _CUSTOM,
        choice("memory_mode", MEMORY, MEMORY[0]),
        integer("max_new_tokens", 512, 1, 16384),
        number("temperature", 0.0, 0.0, 2.0, 0.05, tooltip="0 takes the likeliest word each time"),
        text("system_prompt", _ANALYST, multiline=True, is_optional=True),
        boolean("unload_after", default=False, is_optional=True),
    ),
    outputs=(Output("STRING", "texts", is_list=True), Output("STRING", "texts_json")),
    extras=("local",),
    is_threaded=True,
)
def describe_each(
    images: Any,
    prompt: str,
    model: str,
    custom_model_id: str,
    memory_mode: str,
    max_new_tokens: int,
    temperature: float,
    system_prompt: str = _ANALYST,
    unload_after: bool = False,
    *,
    comfyui: Host = ALONE,
) -> tuple[list[str], str]:
    """Ask a model about each image."""
    from vlmcore.contracts.json_text import write_json
    from vlmcore.vlm.generation import GenerationOptions
    from vlmcore_comfy.answering import answer, prompt_from
    from vlmcore_comfy.images import pictures_of
    from vlmcore_comfy.models import ModelChoice, opened

    pictures = pictures_of("images", images)
    options = GenerationOptions(max_new_tokens=max_new_tokens, temperature=temperature, seed=0)
    texts: list[str] = []
    with opened(
        ModelChoice(model, custom_model_id, memory_mode), comfyui, unload=unload_after
    ) as predictor:
        for picture in pictures:
            asked = prompt_from(prompt, system_prompt, image=picture)
            texts.append(answer(predictor, asked, options, comfyui=comfyui, is_shown=False).text)
            comfyui.show_text("\n\n".join(texts))
            comfyui.progress(len(texts), len(pictures))
    return texts, write_json(texts)


NODES: tuple[Node[..., Any], ...] = (modern_vlm, legacy_vlm, describe_each)
