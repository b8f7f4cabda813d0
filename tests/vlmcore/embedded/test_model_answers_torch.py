"""The embedded model answers: held-out pictures, prompts that people type, and odd input."""

import random
import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import transformers
from PIL import Image, ImageDraw

from bench.embedded_model import wordings
from bench.embedded_model.conversations import ONE_ANSWER_TOPICS, caption
from bench.embedded_model.drawing import draw_scene
from bench.embedded_model.examination import examination
from bench.embedded_model.plain import plain_pictures
from bench.embedded_model.scenes import HELD_OUT_START, sample_scene
from vlmcore.embedded import model_directory, sample_scene_paths

_CAPTION = r"(A (large|small) .*|The (letter|digit) .*|An empty .*|A picture without .*)\."


class Answers:
    """The model, asked with greedy decoding."""

    def __init__(self) -> None:
        self.processor: Any = transformers.AutoProcessor.from_pretrained(model_directory())
        self.model: Any = transformers.AutoModelForImageTextToText.from_pretrained(
            model_directory()
        )

    def __call__(
        self, images: Sequence[Image.Image], prompts: Sequence[str], system: str = ""
    ) -> list[str]:
        opening = [{"role": "system", "content": system}] if system else []
        texts = [
            self.processor.apply_chat_template(
                [
                    *opening,
                    {
                        "role": "user",
                        "content": [{"type": "image"}, {"type": "text", "text": prompt}],
                    },
                ],
                add_generation_prompt=True,
                tokenize=False,
            )
            for prompt in prompts
        ]
        inputs = self.processor(
            images=[[image] for image in images], text=texts, padding=True, return_tensors="pt"
        )
        output = self.model.generate(**inputs, max_new_tokens=48)
        answers: list[str] = self.processor.batch_decode(
            output[:, inputs["input_ids"].shape[1] :], skip_special_tokens=True
        )
        return answers


@pytest.fixture(scope="module")
def answers() -> Answers:
    """Return the model, loaded once."""
    return Answers()


def test_held_out_scenes_are_told_rightly(answers: Answers) -> None:
    """
    Captions and one-answer questions of forty scenes that no training could draw.
    """
    asked = [
        question
        for question in examination(scenes=40)
        if question.turn.topic in ("caption", *ONE_ANSWER_TOPICS)
    ]

    said = answers(
        [draw_scene(question.scene) for question in asked],
        [question.turn.question for question in asked],
    )

    right = [text == question.turn.answer for text, question in zip(said, asked, strict=True)]
    assert sum(right) >= 0.85 * len(right)


def test_a_large_plain_shape_on_white_is_named(answers: Answers) -> None:
    """
    What people try first: one big shape in five lines. A red circle was once read as a letter.
    """
    pictures = plain_pictures(variants=1, seed=3)

    said = answers(
        [picture.image for picture in pictures], ["What is in this picture?"] * len(pictures)
    )

    right = [
        set(picture.words) <= set(text.rstrip(".").split())
        for picture, text in zip(pictures, said, strict=True)
    ]
    assert sum(right) >= 0.97 * len(right)


def test_a_big_red_circle_of_300_pixels_is_a_large_red_circle(answers: Answers) -> None:
    """
    Centred or not, the circle that every introduction draws.
    """
    images = []
    for box in ((75, 75, 225, 225), (20, 20, 280, 280), (100, 60, 280, 240)):
        image = Image.new("RGB", (300, 300), "white")
        ImageDraw.Draw(image).ellipse(box, fill="red")
        images.append(image)

    assert ["A large red circle."] * 3 == answers(
        images, ["Describe this image in one sentence."] * 3
    )


@pytest.mark.parametrize("system", ["", "You are an expert visual analyst."])
def test_prompts_that_people_type_are_answered_with_the_caption(
    answers: Answers, system: str
) -> None:
    """
    Every wording of the list gets the caption of the picture.
    """
    scene = sample_scene(HELD_OUT_START + 5, mix={"one": 1.0})
    prompts = wordings.CAPTION_PROMPTS

    said = answers([draw_scene(scene)] * len(prompts), prompts, system)

    assert sum(text == caption(scene) for text in said) >= 0.97 * len(prompts)


def test_any_prompt_and_any_picture_gives_a_well_formed_answer(answers: Answers) -> None:
    """
    Noise, a blank page, one pixel, a strip, a stray question: a short answer to each.
    """
    noise = np.random.default_rng(0).integers(0, 256, (90, 120, 3), dtype=np.uint8)
    images = [
        Image.fromarray(noise),
        Image.new("RGB", (1, 1)),
        Image.new("RGB", (3000, 10), "red"),
        Image.new("RGB", (10, 900), "grey"),
        Image.new("RGB", (200, 200), "white"),
    ]
    rng = random.Random(0)
    prompts = [rng.choice(wordings.OTHER_PROMPTS) for _ in images]

    for text in answers(images, prompts):
        assert text.endswith(".") or text.istitle()
        assert len(text) < 120


def test_a_blank_page_is_called_an_empty_picture(answers: Answers) -> None:
    """
    Nothing is seen where nothing is.
    """
    images = [Image.new("RGB", (200, 150), colour) for colour in ("white", "black")]

    assert ["An empty white picture.", "An empty black picture."] == answers(
        images, ["Describe this image."] * 2
    )


def test_the_samples_are_described(answers: Answers) -> None:
    """
    The pictures in the package show something the model can name.
    """
    images = [Image.open(path) for path in sample_scene_paths()]

    for text in answers(images, ["Describe this image."] * len(images)):
        assert re.fullmatch(_CAPTION, text)


def test_a_batch_gives_the_answers_of_single_runs(answers: Answers) -> None:
    """
    Padding on the left changes no answer.
    """
    scenes = [sample_scene(HELD_OUT_START + number) for number in range(6)]
    images = [draw_scene(scene) for scene in scenes]
    prompts = ["Describe this image.", "How many objects are there?", "What do you see?"] * 2

    assert [
        answers([image], [prompt])[0] for image, prompt in zip(images, prompts, strict=True)
    ] == answers(images, prompts)


def test_a_prompt_without_a_picture_is_answered(answers: Answers) -> None:
    """
    The model says that there is no image instead of making one up.
    """
    text = answers.processor.apply_chat_template(
        [{"role": "user", "content": "Describe this image."}],
        add_generation_prompt=True,
        tokenize=False,
    )
    inputs = answers.processor(text=[text], return_tensors="pt")

    output = answers.model.generate(**inputs, max_new_tokens=24)

    said = answers.processor.batch_decode(
        output[:, inputs["input_ids"].shape[1] :], skip_special_tokens=True
    )
    assert ["There is no image."] == said
