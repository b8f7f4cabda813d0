"""The examination: held-out scenes and the questions about them, and how answers are marked."""

import dataclasses
import random
import re
from collections import Counter
from collections.abc import Sequence

from bench.embedded_model import wordings
from bench.embedded_model.conversations import TOPICS, Turn, caption, questions
from bench.embedded_model.scenes import EVALUATION_MIX, HELD_OUT_START, Scene, sample_scene
from bench.embedded_model.vocabulary import COLOURS, GLYPHS, SHAPES


@dataclasses.dataclass(frozen=True, kw_only=True)
class Question:
    """A question of the examination about a scene, with the right answer and a system prompt."""

    scene: Scene
    turn: Turn
    system: str | None


def examination(*, scenes: int, seed: int = HELD_OUT_START) -> list[Question]:
    """
    Return a caption prompt and a question of each topic that fits, for *scenes* held-out scenes.

    Raises:
        ValueError: If *seed* is one of training.
    """
    if seed < HELD_OUT_START:
        raise ValueError(f"seed: got {seed}, expected a held-out one, at least {HELD_OUT_START}")
    asked = []
    for number in range(seed, seed + scenes):
        scene = sample_scene(number, mix=EVALUATION_MIX)
        rng = random.Random(number ^ 0xE7A)
        prompt = rng.choice(wordings.CAPTION_PROMPTS)
        turns = [
            Turn(topic="caption", question=prompt, answer=caption(scene)),
            *questions(scene, rng, topics=TOPICS),
        ]
        for turn in turns:
            system = rng.choice(wordings.SYSTEM_PROMPTS) if rng.random() < 0.25 else None
            asked.append(Question(scene=scene, turn=turn, system=system))
    return asked


def concepts(text: str) -> Counter[str]:
    """Return the names of things and colours that *text* says, each as often as it says it."""
    words = re.findall(r"[A-Za-z0-9]+", text)
    return Counter(
        word
        for word in words
        if word in SHAPES or word in COLOURS or (word in GLYPHS and word != "A")
    )


def concept_recall(said: Sequence[str], right: Sequence[str]) -> float:
    """Return the share of concepts of the *right* captions that the captions *said* name."""
    wanted = named = 0
    for text, truth in zip(said, right, strict=True):
        expected = concepts(truth)
        wanted += expected.total()
        named += (expected & concepts(text)).total()
    return named / max(wanted, 1)
