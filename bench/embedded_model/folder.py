"""Build the folder of the model as transformers reads it: tokenizer, processor, weights."""

import json
import pathlib
import random
from collections.abc import Callable
from typing import Any

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import (
    GenerationConfig,
    Idefics3Config,
    Idefics3ForConditionalGeneration,
    Idefics3ImageProcessor,
    Idefics3Processor,
    PreTrainedTokenizerFast,
)

from bench.embedded_model import wordings
from bench.embedded_model.conversations import NO_IMAGE, caption, caption_turn, questions
from bench.embedded_model.scenes import sample_scene

IMAGE_SIDE_PX = 72
PATCH_PX = 8
POSITIONS_A_SIDE = 10
"""
One more than a picture has patches. Transformers finds a patch's position by comparing fractions:
with as many positions as patches they tie, and 4.57 and 5 round ties differently.
"""
IMAGE_TOKENS = 9
VOCABULARY = 1024
WIDTH = 128
"""Width of the language part, and so of an image token."""

PAD, USER, ASSISTANT, SYSTEM = "<|pad|>", "<|user|>", "<|assistant|>", "<|system|>"
END = "<end_of_utterance>"
IMAGE, FAKE, GLOBAL = "<image>", "<fake_token_around_image>", "<global-img>"
SPECIAL_TOKENS = (PAD, USER, ASSISTANT, SYSTEM, END, IMAGE, FAKE, GLOBAL)
IMAGE_BLOCK = FAKE + GLOBAL + IMAGE * IMAGE_TOKENS + FAKE
"""What the processor makes of one image."""

CHAT_TEMPLATE = (
    "{% for message in messages %}"
    "{{ '<|' + message['role'] + '|>' }}"
    "{% if message['content'] is string %}{{ message['content'] }}"
    "{% else %}{% for part in message['content'] %}"
    "{% if part['type'] == 'image' %}{{ '<image>' }}"
    "{% elif part['type'] == 'text' %}{{ part['text'] }}{% endif %}"
    "{% endfor %}{% endif %}"
    "{{ '<end_of_utterance>' }}"
    "{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|assistant|>' }}{% endif %}"
)
_CORPUS_SCENES = 4000


def build_tokenizer() -> PreTrainedTokenizerFast:
    """
    Return a byte-level BPE trained on the scenes' own text.

    Every text encodes, because every byte is a token; the words of questions and answers are one
    token each.
    """
    inner = Tokenizer(models.BPE())
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    inner.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY,
        special_tokens=list(SPECIAL_TOKENS),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    inner.train_from_iterator(_corpus(), trainer)
    return _wrap(inner)


def tokenizer_of(run: pathlib.Path) -> PreTrainedTokenizerFast:
    """
    Return the tokenizer of the run in the folder *run*, built when the run has none yet.

    A later change of the scenes changes what would be built, and must not change a run under way.
    """
    path = run / "tokenizer.json"
    if path.exists():
        return _wrap(Tokenizer.from_file(str(path)))
    tokenizer = build_tokenizer()
    tokenizer.backend_tokenizer.save(str(path))
    return tokenizer


def _wrap(inner: Tokenizer) -> PreTrainedTokenizerFast:
    return PreTrainedTokenizerFast(
        tokenizer_object=inner,
        pad_token=PAD,
        eos_token=END,
        additional_special_tokens=[FAKE, IMAGE, END, GLOBAL, USER, ASSISTANT, SYSTEM],
        clean_up_tokenization_spaces=False,
        model_max_length=2048,
        padding_side="left",
    )


def _corpus() -> list[str]:
    rng = random.Random(0)
    texts = (
        list(wordings.CAPTION_PROMPTS + wordings.SYSTEM_PROMPTS) * 40
        + [NO_IMAGE, "Image 1: Image 2: 3: 4:"] * 40
    )
    texts += wordings.OTHER_PROMPTS * 8
    for seed in range(_CORPUS_SCENES):
        scene = sample_scene(seed)
        texts.append(caption(scene))
        turns = [caption_turn(scene, rng), *questions(scene, rng)]
        texts += [text for turn in turns for text in (turn.question, turn.answer)]
    return texts


def build_processor(tokenizer: PreTrainedTokenizerFast) -> Idefics3Processor:
    """Return the processor: any image squeezed to a square of 72 pixels, nine tokens an image."""
    image_processor = Idefics3ImageProcessor(
        do_resize=False,
        size={"longest_edge": IMAGE_SIDE_PX},
        max_image_size={"longest_edge": IMAGE_SIDE_PX},
        do_image_splitting=False,
        image_mean=[0.5, 0.5, 0.5],
        image_std=[0.5, 0.5, 0.5],
    )
    return Idefics3Processor(
        image_processor, tokenizer, image_seq_len=IMAGE_TOKENS, chat_template=CHAT_TEMPLATE
    )


def build_config(tokenizer: PreTrainedTokenizerFast) -> Idefics3Config:
    """Return the architecture: a small vision transformer, a linear connector and a small llama."""
    pad, end = tokenizer.pad_token_id, tokenizer.eos_token_id
    return Idefics3Config(
        vision_config={
            "hidden_size": 128,
            "intermediate_size": 384,
            "num_hidden_layers": 4,
            "num_attention_heads": 4,
            "image_size": POSITIONS_A_SIDE * PATCH_PX,
            "patch_size": PATCH_PX,
        },
        text_config={
            "model_type": "llama",
            "vocab_size": len(tokenizer),
            "hidden_size": WIDTH,
            "intermediate_size": 352,
            "num_hidden_layers": 4,
            "num_attention_heads": 4,
            "num_key_value_heads": 4,
            "max_position_embeddings": 2048,
            "rms_norm_eps": 1e-5,
            "pad_token_id": pad,
            "bos_token_id": None,
            "eos_token_id": end,
            "tie_word_embeddings": False,
        },
        scale_factor=3,
        image_token_id=tokenizer.convert_tokens_to_ids(IMAGE),
        pad_token_id=pad,
        bos_token_id=None,
        eos_token_id=end,
        tie_word_embeddings=False,
        dtype="float32",
    )


def build_model(config: Idefics3Config, *, seed: int) -> Idefics3ForConditionalGeneration:
    """Return the model with fresh weights drawn from *seed*."""
    torch.manual_seed(seed)
    model = Idefics3ForConditionalGeneration(config)
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if weight.ndim == 2 and "position_embedding" not in name:
                fan_in = weight.shape[1]
                weight.normal_(0.0, 0.1 if "embed_tokens" in name else fan_in**-0.5)
            if name.endswith(
                (".o_proj.weight", ".out_proj.weight", ".down_proj.weight", ".fc2.weight")
            ):
                weight.mul_(0.3)
    return model


def save_folder(
    model: Idefics3ForConditionalGeneration,
    processor: Idefics3Processor,
    folder: pathlib.Path,
    *,
    is_half: bool,
) -> None:
    """
    Write everything that ``from_pretrained`` needs into *folder*.

    With *is_half* the weights are stored as 16-bit floats and computed with as 32-bit ones: the
    configuration says so. Files are readable by all: ``save_pretrained`` does not see to it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    end = processor.tokenizer.eos_token_id
    model.generation_config = GenerationConfig(
        do_sample=False,
        eos_token_id=end,
        pad_token_id=processor.tokenizer.pad_token_id,
        max_new_tokens=64,
    )
    state = {
        name: (weight.half() if is_half else weight.float()).contiguous()
        for name, weight in model.state_dict().items()
    }
    model.save_pretrained(folder, state_dict=state)
    processor.save_pretrained(folder)
    _edit_json(folder / "config.json", _compute_in_32_bits)
    _edit_json(folder / "tokenizer_config.json", _name_old_tokenizer_class)
    image_processor = json.loads((folder / "processor_config.json").read_text())["image_processor"]
    _write_json(
        folder / "preprocessor_config.json",
        image_processor | {"image_processor_type": "Idefics3ImageProcessor"},
    )
    _edit_json(folder / "processor_config.json", _name_pillow_image_processor)
    for path in folder.iterdir():
        path.chmod(0o644)


def _write_json(path: pathlib.Path, value: dict[str, Any]) -> None:
    path.write_text(json.dumps(value, indent=2, sort_keys=True) + "\n")


def _edit_json(path: pathlib.Path, edit: Callable[[dict[str, Any]], None]) -> None:
    value = json.loads(path.read_text())
    edit(value)
    _write_json(path, value)


def _compute_in_32_bits(config: dict[str, Any]) -> None:
    for part in (config, config["text_config"], config["vision_config"]):
        part["dtype"] = "float32"


def _name_old_tokenizer_class(config: dict[str, Any]) -> None:
    """Name class and tokens as transformers 4 does, which 5 understands as well."""
    config.pop("extra_special_tokens", None)
    config.pop("backend", None)
    config["tokenizer_class"] = "PreTrainedTokenizerFast"
    config["model_input_names"] = ["input_ids", "attention_mask"]  # 4 adds token types otherwise
    config["additional_special_tokens"] = [token for token in SPECIAL_TOKENS if token != PAD]


def _name_pillow_image_processor(config: dict[str, Any]) -> None:
    """Let transformers 5 take the Pillow class, not look for torchvision; 4 reads another file."""
    config["image_processor"]["image_processor_type"] = "Idefics3ImageProcessorPil"


def write_fresh_folder(folder: pathlib.Path) -> None:
    """Write a folder with untrained weights into *folder*."""
    tokenizer = build_tokenizer()
    save_folder(
        build_model(build_config(tokenizer), seed=0),
        build_processor(tokenizer),
        folder,
        is_half=True,
    )
