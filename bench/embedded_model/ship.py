"""
Put a trained model into the package: weights, sample pictures, figures and model card.

Run: ``python -m bench.embedded_model.ship --model RUN_FOLDER/model``
"""

import argparse
import json
import pathlib
import shutil
from typing import Any

from bench.embedded_model.conversations import ONE_ANSWER_TOPICS, TOPICS
from bench.embedded_model.drawing import draw_scene
from bench.embedded_model.evaluate import examine
from bench.embedded_model.scenes import EVALUATION_MIX, HELD_OUT_START, sample_scene
from bench.embedded_model.vocabulary import BACKGROUNDS, COLOURS, GLYPHS, SHAPES

PACKAGE = pathlib.Path("src/vlmcore/embedded")
# Kind and seed of each, the first one first because it is what the README shows.
_SAMPLES = (("three", 6), ("glyph", 2), ("three", 3), ("one", 4), ("two", 5), ("two", 1))
_FIRST_SAMPLE = HELD_OUT_START + 1_000_000


def ship(model: pathlib.Path, package: pathlib.Path, *, scenes: int) -> None:
    """Copy *model* into *package*, draw samples, examine on *scenes* scenes and write the card."""
    folder = package / "model"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(model, folder)
    draw_samples(package / "samples")
    figures = examine(folder, scenes=scenes)
    (package / "evaluation.json").write_text(json.dumps(figures, indent=2) + "\n")
    (package / "MODEL_CARD.md").write_text(model_card(figures))
    for path in package.rglob("*"):
        if path.is_file():
            path.chmod(0o644)


def draw_samples(folder: pathlib.Path) -> None:
    """Draw the sample pictures from held-out seeds; their names tell nothing."""
    folder.mkdir(parents=True, exist_ok=True)
    for number, (kind, seed) in enumerate(_SAMPLES, start=1):
        scene = sample_scene(_FIRST_SAMPLE + seed, mix={kind: 1.0})
        draw_scene(scene).save(folder / f"scene-{number}.png", optimize=True)


def model_card(figures: dict[str, Any]) -> str:
    """Return the model card with *figures* in it."""
    exact, recall = figures["exact"], figures["concept_recall"]
    goals = (
        ("concept recall", recall["all"], "0.97"),
        ("captions exact", exact["caption"]["all"], "0.90"),
        ("one-answer questions exact", exact["one-answer"]["all"], "0.95"),
        ("captions of one object", exact["caption"]["one"], "0.97"),
        ("captions of one glyph", exact["caption"]["glyph"], "0.97"),
        ("plain shapes", figures["plain"]["shape"], "0.97"),
        ("plain glyphs", figures["plain"]["glyph"], "0.97"),
    )
    goal_rows = "\n".join(f"| {name} | {value:.3f} | {goal} |" for name, value, goal in goals)
    others = {
        "blank picture called empty": figures["odd"]["blank"],
        "picture without clear shapes called so": figures["odd"]["unclear"],
        "prompt without a picture told so": figures["odd"]["no picture"],
        "two pictures, both captions": figures["odd"]["two pictures"],
        "caption prompts, each on another picture": figures["prompts"]["caption"],
        "the same with a system prompt": figures["prompts"]["caption with a system prompt"],
        "stray prompts answered with the caption": figures["prompts"]["stray"],
    }
    other_rows = "\n".join(f"| {name} | {value:.3f} |" for name, value in others.items())
    return _CARD.format(
        scenes=figures["scenes"],
        questions=figures["questions"],
        goal_rows=goal_rows,
        exact_table=_exact_table(exact, recall),
        other_rows=other_rows,
        shapes=", ".join(SHAPES),
        colours=", ".join(COLOURS),
        glyphs=" ".join(GLYPHS),
        backgrounds=", ".join(BACKGROUNDS),
    )


def _exact_table(exact: dict[str, dict[str, float]], recall: dict[str, float]) -> str:
    kinds = (*EVALUATION_MIX, "all")
    lines = ["| | " + " | ".join(kinds) + " |", "|---" * (len(kinds) + 1) + "|"]
    rows = {"concept recall": recall} | {
        topic: exact[topic] for topic in ("caption", "one-answer", *TOPICS) if topic in exact
    }
    for name, values in rows.items():
        label = f"{name} ({', '.join(ONE_ANSWER_TOPICS)})" if name == "one-answer" else name
        cells = [f"{values[kind]:.3f}" if kind in values else "-" for kind in kinds]
        lines.append(f"| {label} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


_CARD = """\
# Model card: the embedded model of vlmcore

A vision-language model of 1.9 million parameters that comes with the package, so that everything
can be tried and tested with real answers where no model hub is in reach. It is a test bed, not a
product.

## What it knows, and what it does not

It was trained from nothing on pictures drawn by a program, and on nothing else:

- one to three shapes ({shapes}) in {colours}, large or small, in the cells of a three by three
  grid, or one large shape anywhere;
- one letter or digit of {glyphs};
- on a background of {backgrounds}; blank pictures; pictures without clear shapes (noise, ramps,
  heaps).

**It knows no photographs**, no people, no other letters, no words, no other shapes or colours, no
more than three objects. Of those it says something well-formed and wrong, or "A picture without
clear shapes." It understands English prompts that ask for a caption, for a count, a colour, a
shape, a position, a size, a character, the background, or whether something is there; every other
prompt is answered with the caption. A picture is squeezed to a square of 72 pixels first: what is
smaller than about a seventh of the picture's shorter side is not seen well. Do not use it to
decide anything.

## How good it is

Greedy decoding on {scenes} scenes whose seeds were never trained on, a quarter each of one, two
and three objects and one glyph, and {questions} questions about them; a quarter of the prompts
with a system prompt. An answer is right when it is right word for word. Concept recall is the
share of names and colours that the captions name. Plain shapes are drawn in five lines of Pillow,
large and on white, from 64 to 1024 pixels.

| figure | value | goal |
|---|---|---|
{goal_rows}

{exact_table}

| what else was examined | share right |
|---|---|
{other_rows}

The same figures are in `evaluation.json`; `python -m bench.embedded_model.evaluate` repeats them.

## Files and form

`model/` is a plain transformers folder (Idefics3: a vision transformer of 4 layers on 9 by 9
patches, a linear connector to 9 image tokens, a llama of 4 layers, a byte-level BPE of 1,024
tokens). Weights are stored as 16-bit floats and computed with as 32-bit ones. It opens with
transformers 4.57 and 5, with no code of its own and without torchvision. `samples/` holds
pictures of held-out seeds.

Licence: Apache-2.0, like the package. No data of anybody is in it. How it was trained, and how to
train it again on two CPU cores, is in `bench/embedded_model/` of the repository.
"""


def main() -> None:
    """Ship the model that was asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", type=pathlib.Path, required=True)
    parser.add_argument("--package", type=pathlib.Path, default=PACKAGE)
    parser.add_argument("--scenes", type=int, default=1000)
    options = parser.parse_args()
    ship(options.model, options.package, scenes=options.scenes)


if __name__ == "__main__":
    main()
