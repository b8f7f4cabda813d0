"""
How soon does the answer to another question about the same picture begin?

The random model of `bench_decoding`, in float32, is asked eight questions about one picture: by
plain transformers, and by ours, which keeps what it made of the picture and of the prompt. The
sides take turns, question by question, with a new picture each round. Prints the time to the first
token of the first question and of the others on each side, their ratios, paired, and whether the
tokens are the same. Then first questions alone, one token each, tell what ours costs more on them.
Either part is left out where it is given 0.

    python bench/bench_reuse.py --rounds 2 --firsts 8 --threads 2
    python bench/bench_reuse.py --rounds 0 --firsts 10
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import attrs
import numpy as np
import torch
import transformers
from bench_decoding import Clock, build, picture, summary

from vlmcore.limits import ReuseLimits
from vlmcore.vlm.backends._answering import answer_all
from vlmcore.vlm.backends._calls import Call
from vlmcore.vlm.backends._opening import OpenedModel, open_model
from vlmcore.vlm.generation import GenerationOptions
from vlmcore.vlm.placement import Placement
from vlmcore.vlm.prompt import Prompt
from vlmcore.vlm.sources import resolve_model

QUESTIONS = (
    "What is it?", "Which colour is the largest?", "How many objects are there?", "Is it indoors?",
    "What is on the left?", "Describe it in one sentence.", "Is there any text?", "What is it?",
)  # fmt: skip


@attrs.frozen
class Answered:
    """Tokens, seconds to the first of them, and to the last."""

    tokens: list[int]
    first_s: float
    total_s: float


Side = Callable[[np.ndarray, str, int], Answered]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").strip().splitlines()[0])
    parser.add_argument("--rounds", type=int, default=2, help="pictures with eight questions each")
    parser.add_argument("--firsts", type=int, default=8, help="pictures with a first question only")
    parser.add_argument("--tokens", type=int, default=8, help="tokens of each answer")
    parser.add_argument("--threads", type=int, default=2, help="threads of PyTorch")
    options = parser.parse_args(arguments)
    if min(options.rounds, options.firsts) < 0 or min(options.tokens, options.threads) < 1:
        parser.error("expected at least 1 token and 1 thread, and no negative number")
    sys.stdout.reconfigure(line_buffering=True)  # a part that is done is seen, whatever follows
    torch.set_num_threads(options.threads)
    with tempfile.TemporaryDirectory() as folder:
        build(Path(folder))
        opened = open_model(resolve_model(folder), Placement(device="cpu"))
    sides = plain_side(opened), our_side(opened)
    for side in sides:
        side(picture(0), QUESTIONS[0], 1)  # warms up
    same = not options.rounds or repeated(sides, options.rounds, options.tokens)
    same = (not options.firsts or firsts(sides, options.firsts)) and same
    print(f"all tokens the same: {same}")
    return 0 if same else 1


def repeated(sides: tuple[Side, Side], rounds: int, tokens: int) -> bool:
    """Ask eight questions about each picture; return whether both sides wrote the same."""
    pairs = [
        [asked(sides, picture(turn), text, tokens, turn + at) for at, text in enumerate(QUESTIONS)]
        for turn in range(1, 1 + rounds)
    ]
    others = [pair for answers in pairs for pair in answers[1:]]
    all_s = [[sum(pair[side].total_s for pair in answers) for answers in pairs] for side in (0, 1)]
    for name, side in ("plain transformers", 0), ("ours", 1):
        print(f"{name:<20} first token of the first {summary([a[0][side].first_s for a in pairs])}"
              f" s, of others {summary([pair[side].first_s for pair in others])} s, "
              f"all eight {summary(all_s[side])} s")  # fmt: skip
    print(f"first token of others, ratio: {summary([p.first_s / o.first_s for p, o in others])}")
    print(f"all eight, ratio: {summary([p / o for p, o in zip(*all_s, strict=True)])}")
    return all(p.tokens == o.tokens for answers in pairs for p, o in answers)


def firsts(sides: tuple[Side, Side], count: int) -> bool:
    """Ask one question about each of many pictures; return whether both sides wrote the same."""
    pairs = [asked(sides, picture(1000 + at), QUESTIONS[0], 1, at) for at in range(count)]
    more = [100 * (o.total_s / p.total_s - 1) for p, o in pairs]
    print(f"a first question costs {summary(more)} % more")
    return all(p.tokens == o.tokens for p, o in pairs)


def asked(
    sides: tuple[Side, Side], image: np.ndarray, text: str, tokens: int, turn: int
) -> tuple[Answered, Answered]:
    """Ask both sides, the one or the other first."""
    plain, ours = sides
    if turn % 2:
        then = ours(image, text, tokens)
        return plain(image, text, tokens), then
    return plain(image, text, tokens), ours(image, text, tokens)


def plain_side(opened: OpenedModel) -> Side:
    def ask(image: np.ndarray, text: str, tokens: int) -> Answered:
        started_s, clock = time.perf_counter(), Clock()
        content = [{"type": "image"}, {"type": "text", "text": text}]
        asked = opened.processor.apply_chat_template(
            [{"role": "user", "content": content}], add_generation_prompt=True, tokenize=False
        )
        inputs = opened.processor(text=[asked], images=[[image]], return_tensors="pt")
        with torch.inference_mode():
            written = opened.model.generate(
                **inputs, max_new_tokens=tokens, do_sample=False,
                stopping_criteria=transformers.StoppingCriteriaList([clock]),
            )  # fmt: skip
        total_s = time.perf_counter() - started_s
        new = written[0, inputs["input_ids"].shape[1] :].tolist()
        return Answered(new, clock.times_s[0] - started_s, total_s)

    return ask


def our_side(opened: OpenedModel) -> Side:
    """Answer as a predictor does, and note the tokens on their way."""
    written: list[torch.Tensor] = []

    @attrs.define(slots=False)
    class Noting(OpenedModel):
        def generate(self, **arguments: object) -> torch.Tensor:
            written[:] = [super().generate(**arguments)]
            return written[0]

    fields = attrs.asdict(opened, recurse=False)
    noting, limits = Noting(**fields), ReuseLimits()

    def ask(image: np.ndarray, text: str, tokens: int) -> Answered:
        options = GenerationOptions(max_new_tokens=tokens, stop_on_repetition=False)
        call = Call([Prompt(text=text, images=[image])], options, (), lambda _: None)
        answer = answer_all(noting, call, model="random", reuse=limits)[0]
        first_s = answer.timings.first_token_s
        assert first_s is not None, "no token was written"
        return Answered(written[0][0, answer.prompt_tokens :].tolist(), first_s, call.elapsed_s)

    return ask


if __name__ == "__main__":
    sys.exit(main())
