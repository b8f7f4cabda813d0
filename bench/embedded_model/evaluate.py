"""
Examine a folder with the model on held-out scenes, by greedy decoding through transformers alone.

Run: ``python -m bench.embedded_model.evaluate --model src/vlmcore/embedded/model``
"""

import argparse
import json
import pathlib
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import torch
from PIL import Image
from transformers import AutoModelForImageTextToText, AutoProcessor

from bench.embedded_model import wordings
from bench.embedded_model.conversations import (
    NO_IMAGE,
    NO_TEXT,
    ONE_ANSWER_TOPICS,
    UNCLEAR,
    caption,
)
from bench.embedded_model.drawing import draw_scene
from bench.embedded_model.examination import Question, concept_recall, examination
from bench.embedded_model.plain import plain_pictures
from bench.embedded_model.scenes import EVALUATION_MIX, HELD_OUT_START, sample_scene

_BATCH = 64
_MAX_NEW_TOKENS = 48


class Examinee:
    """A model folder that answers."""

    def __init__(self, folder: pathlib.Path) -> None:
        self._processor: Any = AutoProcessor.from_pretrained(folder)
        self._model: Any = AutoModelForImageTextToText.from_pretrained(folder).eval()

    def answer(
        self,
        images: Sequence[Sequence[Image.Image]],
        prompts: Sequence[str],
        systems: Sequence[str | None],
    ) -> list[str]:
        """Return the greedy answer to each prompt about its images."""
        said: list[str] = []
        for start in range(0, len(prompts), _BATCH):
            part = slice(start, start + _BATCH)
            said += self._answer_batch(images[part], prompts[part], systems[part])
        return said

    @torch.inference_mode()
    def _answer_batch(
        self,
        images: Sequence[Sequence[Image.Image]],
        prompts: Sequence[str],
        systems: Sequence[str | None],
    ) -> list[str]:
        chats = []
        for pictures, prompt, system in zip(images, prompts, systems, strict=True):
            content = [{"type": "image"} for _ in pictures] + [{"type": "text", "text": prompt}]
            opening = [{"role": "system", "content": system}] if system else []
            chats.append([*opening, {"role": "user", "content": content}])
        texts = [
            self._processor.apply_chat_template(chat, add_generation_prompt=True, tokenize=False)
            for chat in chats
        ]
        shown = [list(pictures) for pictures in images] if any(images) else None
        inputs = self._processor(images=shown, text=texts, padding=True, return_tensors="pt")
        output = self._model.generate(**inputs, do_sample=False, max_new_tokens=_MAX_NEW_TOKENS)
        return self._processor.batch_decode(
            output[:, inputs["input_ids"].shape[1] :], skip_special_tokens=True
        )


def examine(
    folder: pathlib.Path, *, scenes: int, fonts: Sequence[pathlib.Path] = ()
) -> dict[str, Any]:
    """Return every figure of the examination of *folder* on *scenes* held-out scenes."""
    examinee = Examinee(folder)
    figures = _scene_figures(examinee, examination(scenes=scenes), fonts)
    figures["plain"] = _plain_figures(examinee)
    figures["prompts"] = _prompt_figures(examinee)
    figures["odd"] = _odd_figures(examinee)
    return figures


def _scene_figures(
    examinee: Examinee, asked: Sequence[Question], fonts: Sequence[pathlib.Path]
) -> dict[str, Any]:
    drawn = {question.scene.seed: draw_scene(question.scene, fonts=fonts) for question in asked}
    said = examinee.answer(
        [[drawn[question.scene.seed]] for question in asked],
        [question.turn.question for question in asked],
        [question.system for question in asked],
    )
    rights: dict[str, dict[str, list[bool]]] = defaultdict(lambda: defaultdict(list))
    for question, text in zip(asked, said, strict=True):
        is_right = text == question.turn.answer
        for kind in (question.scene.kind, "all"):
            rights[question.turn.topic][kind].append(is_right)
            if question.turn.topic in ONE_ANSWER_TOPICS:
                rights["one-answer"][kind].append(is_right)
    captions = [
        (text, question)
        for question, text in zip(asked, said, strict=True)
        if question.turn.topic == "caption"
    ]
    recall = {
        kind: concept_recall(
            [text for text, question in captions if kind in ("all", question.scene.kind)],
            [
                question.turn.answer
                for _, question in captions
                if kind in ("all", question.scene.kind)
            ],
        )
        for kind in (*EVALUATION_MIX, "all")
    }
    exact = {
        topic: {kind: _share(marks) for kind, marks in sorted(by_kind.items())}
        for topic, by_kind in sorted(rights.items())
    }
    return {
        "scenes": len(captions),
        "questions": len(asked) - len(captions),
        "concept_recall": {kind: round(value, 4) for kind, value in recall.items()},
        "exact": exact,
    }


def _plain_figures(examinee: Examinee) -> dict[str, float]:
    pictures = plain_pictures(variants=4, seed=HELD_OUT_START)
    prompts = [wordings.CAPTION_PROMPTS[number % 4] for number in range(len(pictures))]
    said = examinee.answer(
        [[picture.image] for picture in pictures], prompts, [None] * len(pictures)
    )
    marks: dict[str, list[bool]] = defaultdict(list)
    for picture, text in zip(pictures, said, strict=True):
        words = text.rstrip(".").split()
        marks["shape" if len(picture.words) == 3 else "glyph"].append(
            all(word in words for word in picture.words)
        )
    return {kind: _share(values) for kind, values in marks.items()} | {"pictures": len(pictures)}


def _prompt_figures(examinee: Examinee) -> dict[str, float]:
    """Return how often each set of prompts is answered with the right caption."""
    figures = {}
    scenes = [
        sample_scene(HELD_OUT_START + 50_000 + number, mix={"one": 0.5, "glyph": 0.5})
        for number in range(len(wordings.CAPTION_PROMPTS))
    ]
    for name, prompts, system in (
        ("caption", wordings.CAPTION_PROMPTS, None),
        ("caption with a system prompt", wordings.CAPTION_PROMPTS, wordings.SYSTEM_PROMPTS[0]),
        ("stray", wordings.OTHER_PROMPTS, None),
    ):
        shown = scenes[: len(prompts)]
        said = examinee.answer(
            [[draw_scene(scene)] for scene in shown], prompts, [system] * len(prompts)
        )
        figures[name] = _share(
            [text == caption(scene) for text, scene in zip(said, shown, strict=True)]
        )
    return figures


def _odd_figures(examinee: Examinee) -> dict[str, float]:
    """Return how often blank, unclear, textless, double and missing pictures are told as such."""
    prompts = wordings.CAPTION_PROMPTS[:40]
    none = [None] * len(prompts)
    blank = [
        sample_scene(HELD_OUT_START + 60_000 + number, mix={"empty": 1.0})
        for number in range(len(prompts))
    ]
    said = examinee.answer([[draw_scene(scene)] for scene in blank], prompts, none)
    figures = {
        "blank": _share([text == caption(scene) for text, scene in zip(said, blank, strict=True)])
    }
    unclear = [sample_scene(scene.seed, mix={"unclear": 1.0}) for scene in blank]
    said = examinee.answer([[draw_scene(scene)] for scene in unclear], prompts, none)
    figures["unclear"] = _share([text == UNCLEAR for text in said])
    said = examinee.answer([[] for _ in prompts], prompts, none)
    figures["no picture"] = _share([text == NO_IMAGE for text in said])
    shapes = [sample_scene(scene.seed, mix={"two": 1.0}) for scene in blank]
    said = examinee.answer(
        [[draw_scene(scene)] for scene in shapes], ["Read the text."] * len(shapes), none
    )
    figures["no text"] = _share([text == NO_TEXT for text in said])
    pairs = [
        (sample_scene(scene.seed, mix={"one": 1.0}), sample_scene(scene.seed + 1, mix={"one": 1.0}))
        for scene in blank
    ]
    said = examinee.answer(
        [[draw_scene(first), draw_scene(second)] for first, second in pairs], prompts, none
    )
    figures["two pictures"] = _share(
        [
            text == f"Image 1: {caption(first)} Image 2: {caption(second)}"
            for text, (first, second) in zip(said, pairs, strict=True)
        ]
    )
    return figures


def _share(marks: Sequence[bool]) -> float:
    return round(sum(marks) / max(len(marks), 1), 4)


def main() -> None:
    """Print the figures, and write them where asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", type=pathlib.Path, required=True)
    parser.add_argument("--scenes", type=int, default=1000)
    parser.add_argument("--font", type=pathlib.Path, action="append", default=[])
    parser.add_argument("--write", type=pathlib.Path)
    options = parser.parse_args()
    figures = examine(options.model, scenes=options.scenes, fonts=options.font)
    text = json.dumps(figures, indent=2) + "\n"
    print(text)
    if options.write:
        options.write.write_text(text)


if __name__ == "__main__":
    main()
