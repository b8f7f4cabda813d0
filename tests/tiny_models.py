"""
Tiny models with random weights, of real architectures, in the files that checkpoints ship.

They answer nonsense, but everything around the weights is real: configuration, tokenizer, image
processor, chat template, safetensors. Each is made from a seed, takes well under a second to load,
and runs on a CPU. The tests of the predictor run on all of `CHAT_KINDS`.

Kinds:
    idefics3: The classes of the embedded model; an image is cut into tiles when it is large.
    llava: A CLIP vision tower before a llama.
    qwen3_vl: Image tokens vary with the size of the image. Its repository declares a video
        processor, which needs torchvision: without it the plain ``AutoProcessor`` fails.
    smolvlm: The same, and its own processor wants ``num2words`` as well.
    gemma3: A SigLIP vision tower, sliding-window attention and token type ids.
    text_only: A llama, with a chat template and no eyes.
    no_chat_template: ``llava`` with its chat template left out.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import transformers
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

__all__ = ["CHAT_KINDS", "KINDS", "make_tiny_model"]

CHAT_KINDS = ("idefics3", "llava", "qwen3_vl", "smolvlm", "gemma3")

_CORPUS = (
    "Describe this image. What is in this picture? What colour is the shape?",
    "A large red circle is on the left of a small blue square. There are three objects.",
    "You are a careful observer. Answer in one word. Yes. No. The quick brown fox, jumps.",
    "Grüße, 안녕하세요, こんにちは, 🙂",
)

_SPECIALS = (
    "<|pad|>",
    "<|im_start|>",
    "<|im_end|>",
    "<image>",
    "<video>",
    "<fake_token_around_image>",
    "<end_of_utterance>",
    "<global-img>",
    "<|vision_start|>",
    "<|vision_end|>",
    "<|image_pad|>",
    "<|video_pad|>",
    "<start_of_image>",
    "<image_soft_token>",
    "<end_of_image>",
    *(f"<row_{row}_col_{column}>" for row in range(1, 7) for column in range(1, 7)),
)

_VOCABULARY = 400

# ChatML; a content is a text, or a list of parts of which images come as one placeholder each.
_TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n"
    "{% if message['content'] is string %}{{ message['content'] }}{% else %}"
    "{% for part in message['content'] %}"
    "{% if part['type'] == 'image' %}IMAGE{% elif part['type'] == 'video' %}VIDEO"
    "{% elif part['type'] == 'text' %}{{ part['text'] }}{% endif %}{% endfor %}{% endif %}"
    "<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)

# Wide enough that the random answers depend on the prompt and on the image, and that the likeliest
# token is likeliest by more than the rounding of another order of summation.
_SPREAD = 0.2


def make_tiny_model(kind: str, folder: Path) -> Path:
    """
    Write a tiny model of *kind* into *folder*, which is made where it is missing.

    The same kind has the same weights each time, and the global random state is left alone.

    Returns:
        The folder.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(20)
        KINDS[kind](folder)
    return folder


def _make_tokenizer(folder: Path, template: str | None, **extra: str) -> Any:
    core = Tokenizer(models.BPE())
    core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    core.decoder = decoders.ByteLevel()
    core.train_from_iterator(
        _CORPUS,
        trainers.BpeTrainer(
            vocab_size=_VOCABULARY,
            special_tokens=list(_SPECIALS),
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
            show_progress=False,
        ),
    )
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=core,
        pad_token="<|pad|>",
        eos_token="<|im_end|>",
        padding_side="left",
        model_max_length=4096,
        model_input_names=["input_ids", "attention_mask"],
        extra_special_tokens=extra,
    )
    tokenizer.save_pretrained(folder)
    if template is not None:
        (folder / "chat_template.jinja").write_text(template, encoding="utf-8")
    return tokenizer


def _template(image: str, video: str = "<video>") -> str:
    return _TEMPLATE.replace("IMAGE", image).replace("VIDEO", video)


def _write_json(folder: Path, **files: dict[str, Any]) -> None:
    for name, content in files.items():
        (folder / f"{name}.json").write_text(json.dumps(content, indent=2), encoding="utf-8")


def _llama(**changes: Any) -> dict[str, Any]:
    return {
        "model_type": "llama",
        "vocab_size": _VOCABULARY,
        "hidden_size": 32,
        "intermediate_size": 64,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 8,
        "max_position_embeddings": 4096,
        "initializer_range": _SPREAD,
        "tie_word_embeddings": False,
        **changes,
    }


def _tower(**changes: Any) -> dict[str, Any]:
    return {
        "hidden_size": 32,
        "intermediate_size": 64,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "initializer_range": _SPREAD,
        **changes,
    }


def _save(model: Any, tokenizer: Any, folder: Path) -> None:
    """Random weights, spread everywhere: some architectures start with zeros in places."""
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if parameter.ndim > 1:
                parameter.normal_(0.0, _SPREAD)
            elif name.endswith("bias"):
                parameter.zero_()
    end, padding = tokenizer.eos_token_id, tokenizer.pad_token_id
    model.generation_config = transformers.GenerationConfig(
        eos_token_id=end,
        pad_token_id=padding,
        # A trained model does not write image tokens; one with random weights would.
        suppress_tokens=[token for token in range(len(_SPECIALS)) if token != end],
    )
    model.save_pretrained(folder)


def _make_idefics3(folder: Path) -> None:
    _make_idefics3_like(folder, "Idefics3")


def _make_smolvlm(folder: Path) -> None:
    _make_idefics3_like(folder, "SmolVLM")
    content = json.loads((folder / "preprocessor_config.json").read_text(encoding="utf-8"))
    video = {"video_processor_type": "SmolVLMVideoProcessor", "size": {"longest_edge": 32}}
    _write_json(folder, video_preprocessor_config={**content, **video})


def _make_idefics3_like(folder: Path, name: str) -> None:
    tokenizer = _make_tokenizer(folder, _template("<image>"))
    config = getattr(transformers, f"{name}Config")(
        vision_config=_tower(image_size=32, patch_size=8),
        text_config=_llama(pad_token_id=tokenizer.pad_token_id),
        image_token_id=tokenizer.convert_tokens_to_ids("<image>"),
        pad_token_id=tokenizer.pad_token_id,
        scale_factor=2,
        tie_word_embeddings=False,
    )
    _save(getattr(transformers, f"{name}ForConditionalGeneration")(config), tokenizer, folder)
    _write_json(
        folder,
        processor_config={"processor_class": f"{name}Processor", "image_seq_len": 4},
        preprocessor_config={
            "processor_class": f"{name}Processor",
            "image_processor_type": f"{name}ImageProcessor",
            "size": {"longest_edge": 64},
            "max_image_size": {"longest_edge": 32},
            "do_image_splitting": True,
        },
    )


def _make_llava(folder: Path) -> None:
    _make_llava_with(folder, _template("<image>"))


def _make_no_chat_template(folder: Path) -> None:
    _make_llava_with(folder, None)


def _make_llava_with(folder: Path, template: str | None) -> None:
    tokenizer = _make_tokenizer(folder, template)
    config = transformers.LlavaConfig(
        vision_config=_tower(model_type="clip_vision_model", image_size=32, patch_size=8),
        text_config=_llama(),
        image_token_index=tokenizer.convert_tokens_to_ids("<image>"),
        vision_feature_select_strategy="default",
        vision_feature_layer=-1,
    )
    _save(transformers.LlavaForConditionalGeneration(config), tokenizer, folder)
    _write_json(
        folder,
        processor_config={
            "processor_class": "LlavaProcessor",
            "patch_size": 8,
            "vision_feature_select_strategy": "default",
            "num_additional_image_tokens": 1,
            "image_token": "<image>",
        },
        preprocessor_config={
            "processor_class": "LlavaProcessor",
            "image_processor_type": "CLIPImageProcessor",
            "size": {"shortest_edge": 32},
            "crop_size": {"height": 32, "width": 32},
        },
    )


def _make_qwen3_vl(folder: Path) -> None:
    parts = "<|vision_start|><|{}_pad|><|vision_end|>"
    tokenizer = _make_tokenizer(folder, _template(parts.format("image"), parts.format("video")))
    token_id = tokenizer.convert_tokens_to_ids
    config = transformers.Qwen3VLConfig(
        text_config=_llama(
            model_type="qwen3_vl_text",
            rope_scaling={
                "rope_type": "default",
                "mrope_interleaved": True,
                "mrope_section": [2, 1, 1],
            },
        ),
        vision_config={
            "depth": 2,
            "hidden_size": 32,
            "intermediate_size": 64,
            "num_heads": 2,
            "patch_size": 8,
            "out_hidden_size": 32,
            "num_position_embeddings": 16,
            "deepstack_visual_indexes": [0],
            "initializer_range": _SPREAD,
        },
        image_token_id=token_id("<|image_pad|>"),
        video_token_id=token_id("<|video_pad|>"),
        vision_start_token_id=token_id("<|vision_start|>"),
        vision_end_token_id=token_id("<|vision_end|>"),
    )
    _save(transformers.Qwen3VLForConditionalGeneration(config), tokenizer, folder)
    preparation = {
        "processor_class": "Qwen3VLProcessor",
        "size": {"shortest_edge": 16 * 16, "longest_edge": 64 * 64},
        "patch_size": 8,
        "temporal_patch_size": 2,
        "merge_size": 2,
    }
    _write_json(
        folder,
        preprocessor_config={**preparation, "image_processor_type": "Qwen2VLImageProcessorFast"},
        video_preprocessor_config={**preparation, "video_processor_type": "Qwen3VLVideoProcessor"},
    )


def _make_gemma3(folder: Path) -> None:
    tokenizer = _make_tokenizer(
        folder,
        _template("<start_of_image>"),
        boi_token="<start_of_image>",
        eoi_token="<end_of_image>",
        image_token="<image_soft_token>",
    )
    token_id = tokenizer.convert_tokens_to_ids
    config = transformers.Gemma3Config(
        text_config=_llama(model_type="gemma3_text", sliding_window=64, query_pre_attn_scalar=8),
        vision_config=_tower(
            model_type="siglip_vision_model",
            image_size=32,
            patch_size=8,
            vision_use_head=False,
        ),
        mm_tokens_per_image=4,
        tie_word_embeddings=False,
        boi_token_index=token_id("<start_of_image>"),
        eoi_token_index=token_id("<end_of_image>"),
        image_token_index=token_id("<image_soft_token>"),
    )
    _save(transformers.Gemma3ForConditionalGeneration(config), tokenizer, folder)
    _write_json(
        folder,
        processor_config={"processor_class": "Gemma3Processor", "image_seq_length": 4},
        preprocessor_config={
            "processor_class": "Gemma3Processor",
            "image_processor_type": "Gemma3ImageProcessor",
            "size": {"height": 32, "width": 32},
        },
    )


def _make_text_only(folder: Path) -> None:
    tokenizer = _make_tokenizer(folder, _template(""))
    config = transformers.LlamaConfig(**_llama())
    _save(transformers.LlamaForCausalLM(config), tokenizer, folder)


KINDS: dict[str, Callable[[Path], None]] = {
    "gemma3": _make_gemma3,
    "idefics3": _make_idefics3,
    "llava": _make_llava,
    "no_chat_template": _make_no_chat_template,
    "qwen3_vl": _make_qwen3_vl,
    "smolvlm": _make_smolvlm,
    "text_only": _make_text_only,
}
