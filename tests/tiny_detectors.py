"""
Tiny detectors with random weights, of the architectures that find what labels name.

They find nonsense, but everything around the weights is real: configuration, tokenizer, what is
said of images, safetensors. Each is made from a seed, in the releases of transformers from 4.57 on.

Kinds:
    grounding-dino: A Swin backbone and a BERT; all labels in one text.
    mm-grounding-dino: The same, trained elsewhere.
    owlv2: A CLIP; a text for each label, images made square.
    omdet-turbo: A Swin backbone and a CLIP text tower; a text for each label, and one for the task.
"""

from __future__ import annotations

import json
import string
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
import transformers
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors, trainers

__all__ = ["DETECTOR_KINDS", "make_tiny_detector"]

DETECTOR_KINDS = ("grounding-dino", "mm-grounding-dino", "owlv2", "omdet-turbo")

_TEXT = "a cup hand red blue green large small circle square person animal vehicle detect"
_WORDS = _TEXT.split()
_SPREAD = 0.2
_MEAN, _DEVIATION = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]


def make_tiny_detector(kind: str, folder: Path) -> Path:
    """
    Write a tiny detector of *kind* into *folder*, which is made where it is missing.

    Returns:
        The folder.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        match kind:
            case "grounding-dino":
                _make_grounding_dino(folder, "GroundingDino")
            case "mm-grounding-dino":
                _make_grounding_dino(folder, "MMGroundingDino")
            case "owlv2":
                _make_owlv2(folder)
            case _:
                _make_omdet_turbo(folder)
    return folder


def _save(model: Any, folder: Path, size: dict[str, int]) -> None:
    """Random weights, spread everywhere but where the model looks: that stays near."""
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if parameter.ndim > 1 and "sampling_offsets" not in name:
                parameter.normal_(0.0, _SPREAD)
    model.save_pretrained(folder)
    said = {"size": size, "image_mean": _MEAN, "image_std": _DEVIATION}
    (folder / "preprocessor_config.json").write_text(json.dumps(said), encoding="utf-8")


def _swin() -> Any:
    return transformers.SwinConfig(
        image_size=64,
        patch_size=4,
        embed_dim=8,
        depths=[1, 1, 1, 1],
        num_heads=[1, 2, 2, 4],
        window_size=4,
        out_features=["stage2", "stage3", "stage4"],
    )


def _bert_tokenizer(folder: Path) -> int:
    """Write a WordPiece tokenizer, and give how many words it knows."""
    letters = string.ascii_lowercase + string.digits
    # The model knows the marks between labels by their numbers in the vocabulary of BERT.
    marks = {0: "[PAD]", 100: "[UNK]", 101: "[CLS]", 102: "[SEP]", 1012: ".", 1029: "?"}
    words = [marks.get(i, f"[unused{i}]") for i in range(1030)]
    words += [*_WORDS, *letters[1:], *(f"##{letter}" for letter in letters)]
    core = Tokenizer(models.WordPiece({word: i for i, word in enumerate(words)}, unk_token="[UNK]"))
    core.normalizer = normalizers.BertNormalizer(lowercase=True)
    core.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    _save_tokenizer(
        core,
        folder,
        around=("[CLS]", "[SEP]"),
        pad_token="[PAD]",
        unk_token="[UNK]",
        cls_token="[CLS]",
        sep_token="[SEP]",
    )
    return len(words)


def _clip_tokenizer(folder: Path) -> dict[str, int]:
    """Write a byte-pair tokenizer, and give its part of the configuration of a text tower."""
    core = Tokenizer(models.BPE(end_of_word_suffix="</w>", unk_token="<|endoftext|>"))
    core.normalizer = normalizers.Lowercase()
    core.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Whitespace(), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    trainer = trainers.BpeTrainer(
        vocab_size=700,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        end_of_word_suffix="</w>",
        show_progress=False,
    )
    core.train_from_iterator([" ".join([*_WORDS, *string.printable])], trainer)
    around = ("<|startoftext|>", "<|endoftext|>")
    core.add_special_tokens(list(around))
    _save_tokenizer(
        core,
        folder,
        around=around,
        pad_token="!",
        unk_token=around[1],
        bos_token=around[0],
        eos_token=around[1],
    )
    start, end = (core.token_to_id(mark) for mark in around)
    return {"vocab_size": core.get_vocab_size(), "bos_token_id": start, "eos_token_id": end}


def _save_tokenizer(core: Tokenizer, folder: Path, around: Sequence[str], **marks: str) -> None:
    core.post_processor = processors.TemplateProcessing(
        single=f"{around[0]} $A {around[1]}",
        special_tokens=[(mark, core.token_to_id(mark)) for mark in around],
    )
    transformers.PreTrainedTokenizerFast(tokenizer_object=core, **marks).save_pretrained(folder)


def _tower(**changes: Any) -> dict[str, Any]:
    return {
        "hidden_size": 32,
        "intermediate_size": 32,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        **changes,
    }


def _make_grounding_dino(folder: Path, name: str) -> None:
    words = _bert_tokenizer(folder)
    config = getattr(transformers, f"{name}Config")(
        backbone_config=_swin(),
        text_config=_tower(model_type="bert", vocab_size=words, max_position_embeddings=64),
        d_model=64,
        encoder_layers=1,
        encoder_ffn_dim=32,
        encoder_attention_heads=4,
        decoder_layers=2,
        decoder_ffn_dim=32,
        decoder_attention_heads=4,
        num_queries=20,
        max_text_len=48,
    )
    model = getattr(transformers, f"{name}ForObjectDetection")(config)
    _save(model, folder, {"shortest_edge": 64, "longest_edge": 100})


def _make_owlv2(folder: Path) -> None:
    config = transformers.Owlv2Config(
        text_config=_tower(max_position_embeddings=16, **_clip_tokenizer(folder)),
        vision_config=_tower(image_size=64, patch_size=16),
        projection_dim=32,
    )
    _save(transformers.Owlv2ForObjectDetection(config), folder, {"height": 64, "width": 64})


def _make_omdet_turbo(folder: Path) -> None:
    text = _tower(hidden_size=48, max_position_embeddings=77, **_clip_tokenizer(folder))
    config = transformers.OmDetTurboConfig(
        text_config={"model_type": "clip_text_model", **text},
        backbone_config=_swin(),
        use_timm_backbone=False,
        backbone=None,
        apply_layernorm_after_vision_backbone=False,
        image_size=64,
        encoder_hidden_dim=32,
        decoder_hidden_dim=32,
        vision_features_channels=[32, 32, 32],
        encoder_in_channels=[16, 32, 64],
        class_embed_dim=48,
        task_encoder_hidden_dim=48,
        text_projection_in_dim=48,
        text_projection_out_dim=48,
        encoder_dim_feedforward=32,
        decoder_dim_feedforward=32,
        decoder_num_layers=2,
        encoder_attention_heads=4,
        decoder_num_heads=4,
        num_queries=20,
        cache_size=4,
    )
    _save(transformers.OmDetTurboForObjectDetection(config), folder, {"height": 64, "width": 64})
