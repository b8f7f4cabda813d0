"""
How fast is an answer written: plainly, over copies in float16, by compiled steps, and guessed?

A random model of the size of SmolVLM-256M is built from a configuration and a seed, in float32.
Each side writes the same number of tokens after the same picture and question, in turns, after one
answer that warms up. Prints the median and the spread of tokens a second between the first token
and the last, the ratio of each side to plain transformers, paired by turn, and whether the tokens
are the same. What guessing from what was said before (prompt lookup) saves depends on how much an
answer repeats: a random model repeats itself. Then a batch of eight prompts against eight prompts
one by one.

    python bench/bench_decoding.py --rounds 3 --tokens 64 --threads 2
    python bench/bench_decoding.py --no-batch
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import attrs
import numpy as np
import torch
import transformers

from vlmcore.vlm.backends._lookup import Lookup
from vlmcore.vlm.backends._opening import OpenedModel, open_model
from vlmcore.vlm.generation import GenerationOptions
from vlmcore.vlm.loading import load_predictor
from vlmcore.vlm.placement import Decoding, Placement
from vlmcore.vlm.predictor import Predictor
from vlmcore.vlm.prompt import Prompt
from vlmcore.vlm.sources import EMBEDDED, resolve_model

PLAIN, OURS, COPIES = "plain transformers", "ours", "ours, float16"
COMPILED = "ours, compiled, float16"
LOOKUP = "ours, prompt lookup"
SIDE_PX = 512
BATCH = 8


@attrs.frozen
class Written:
    """Tokens, and tokens a second between the first and the last."""

    tokens: list[int]
    rate_hz: float


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").strip().splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3, help="turns of each side")
    parser.add_argument("--tokens", type=int, default=64, help="tokens of each answer")
    parser.add_argument("--threads", type=int, default=2, help="threads of PyTorch")
    parser.add_argument("--no-batch", action="store_true", help="leave the batch out")
    options = parser.parse_args(arguments)
    if min(options.rounds, options.threads) < 1 or options.tokens < 2:
        parser.error("expected at least 1 round, 1 thread and 2 tokens")
    torch.set_num_threads(options.threads)
    sys.stdout.reconfigure(line_buffering=True)  # a part that is done is seen, whatever follows
    with tempfile.TemporaryDirectory() as folder:
        build(Path(folder))
        same = steps(Path(folder), options.rounds, options.tokens)
        if not options.no_batch:
            same = batch(Path(folder), options.rounds) and same
    return 0 if same else 1


def build(folder: Path) -> None:
    """Write a random model of the size of SmolVLM-256M that speaks with the embedded tokenizer."""
    opened = open_model(resolve_model(EMBEDDED), Placement(device="cpu"))
    config = transformers.Idefics3Config(
        text_config={
            "model_type": "llama", "hidden_size": 576, "intermediate_size": 1536,
            "num_hidden_layers": 30, "num_attention_heads": 9, "num_key_value_heads": 3,
            "vocab_size": 49_280, "max_position_embeddings": 8_192, "pad_token_id": 0,
            "tie_word_embeddings": True,
        },
        vision_config={
            "hidden_size": 768, "intermediate_size": 3_072, "num_hidden_layers": 12,
            "num_attention_heads": 12, "image_size": SIDE_PX, "patch_size": 16,
        },
        image_token_id=opened.model.config.image_token_id, scale_factor=4,
        tie_word_embeddings=True, pad_token_id=0,
    )  # fmt: skip
    transformers.set_seed(0)
    model = transformers.Idefics3ForConditionalGeneration(config)
    model.generation_config.eos_token_id = None
    model.save_pretrained(folder)
    processor = opened.processor
    processor.image_processor.size = {"longest_edge": SIDE_PX}
    processor.image_processor.max_image_size = {"longest_edge": SIDE_PX}
    processor.image_processor.do_image_splitting = False
    processor.image_seq_len = (SIDE_PX // 16) ** 2 // 16
    processor.save_pretrained(folder)


def steps(folder: Path, rounds: int, tokens: int) -> bool:
    """Compare the sides; return whether all wrote the same tokens."""
    source, plain = resolve_model(folder), Placement(device="cpu")
    copies = attrs.evolve(plain, decoding=Decoding.FLOAT16)
    compiled = attrs.evolve(plain, decoding=Decoding.COMPILED_FLOAT16)
    guessed = {"custom_generate": Lookup()}
    opened = {OURS: open_model(source, plain), COPIES: open_model(source, copies)}
    began_s = time.perf_counter()
    opened[COMPILED] = open_model(source, compiled)
    print(f"to load and compile took {time.perf_counter() - began_s:.1f} s")
    compiled_copies = opened[COMPILED].copies
    assert compiled_copies is not None
    by_steps = {"custom_generate": compiled_copies.write}
    sides: dict[str, Callable[[], Written]] = {
        PLAIN: lambda: write(opened[OURS], opened[OURS].model.generate, tokens),
        OURS: lambda: write(opened[OURS], opened[OURS].generate, tokens),
        COPIES: lambda: write(opened[COPIES], opened[COPIES].generate, tokens),
        COMPILED: lambda: write(
            opened[COMPILED], partial(opened[COMPILED].generate, **by_steps), tokens
        ),
        LOOKUP: lambda: write(opened[OURS], partial(opened[OURS].generate, **guessed), tokens),
    }
    first = {side: written().tokens for side, written in sides.items()}
    rates: dict[str, list[float]] = {side: [] for side in sides}
    for turn in range(rounds):
        for side in list(sides)[:: -1 if turn % 2 else 1]:
            rates[side].append(sides[side]().rate_hz)
    for side, measured in rates.items():
        ratios = [ours / base for ours, base in zip(measured, rates[PLAIN], strict=True)]
        agreed = agreeing(first[side], first[PLAIN])
        print(f"{side:<23} {summary(measured)} tok/s   ratio {summary(ratios)}   "
              f"{agreed} of {tokens} tokens as plain")  # fmt: skip
    print(f"prompt lookup: {guessed['custom_generate'].report}")
    return all(written == first[PLAIN] for written in first.values())


class Clock(transformers.StoppingCriteria):
    """Notes when each token was there."""

    def __init__(self) -> None:
        self.times_s: list[float] = []

    def __call__(self, input_ids: torch.Tensor, _scores: Any, **_: Any) -> torch.Tensor:
        self.times_s.append(time.perf_counter())
        return torch.zeros(len(input_ids), dtype=torch.bool)


def write(opened: OpenedModel, generate: Callable[..., Any], tokens: int) -> Written:
    text = opened.processor.apply_chat_template(
        [{"role": "user", "content": [{"type": "image"}, {"type": "text", "text": "What is it?"}]}],
        add_generation_prompt=True, tokenize=False,
    )  # fmt: skip
    inputs = opened.processor(text=[text], images=[[picture(0)]], return_tensors="pt")
    clock = Clock()
    written = generate(
        **inputs, max_new_tokens=tokens, do_sample=False,
        stopping_criteria=transformers.StoppingCriteriaList([clock]),
    )  # fmt: skip
    rate_hz = (len(clock.times_s) - 1) / (clock.times_s[-1] - clock.times_s[0])
    return Written(written[0, inputs["input_ids"].shape[1] :].tolist(), rate_hz)


def batch(folder: Path, rounds: int) -> bool:
    """Compare eight prompts at once with eight one by one; return whether the answers agree."""
    asked = ["What is it? " * (1 + seed) for seed in range(BATCH)]
    prompts = [Prompt(text=text, images=[picture(at)]) for at, text in enumerate(asked)]
    short = GenerationOptions(max_new_tokens=16, stop_on_repetition=False)
    with load_predictor(folder, device="cpu") as predictor:
        ratios, same = [], True
        for _ in range(rounds):
            alone_s, alone = timed(predictor, prompts, short, 1)
            at_once_s, at_once = timed(predictor, prompts, short, BATCH)
            ratios.append(alone_s / at_once_s)
            same = same and alone == at_once
    print(f"batch of {BATCH}: ratio to one by one {summary(ratios)}, same answers: {same}")
    return same


def timed(
    predictor: Predictor, prompts: Sequence[Prompt], options: GenerationOptions, size: int
) -> tuple[float, list[str]]:
    started_s = time.perf_counter()
    answers = predictor.generate_many(prompts, options, batch_size=size)
    return time.perf_counter() - started_s, [answer.text for answer in answers]


def picture(seed: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, (SIDE_PX, SIDE_PX, 3), dtype=np.uint8)


def agreeing(tokens: Sequence[int], base: Sequence[int]) -> int:
    """Count the tokens before the first that differs."""
    pairs = zip(tokens, base, strict=True)
    return next((at for at, (one, other) in enumerate(pairs) if one != other), len(base))


def summary(values: Sequence[float]) -> str:
    return f"{statistics.median(values):6.2f} ({min(values):.2f} to {max(values):.2f})"


if __name__ == "__main__":
    sys.exit(main())
