"""Scenes of the embedded model: decided by their seed, told without doubt, held out for good."""

import random
import re

import pytest

pytest.importorskip("PIL")

from bench.embedded_model import wordings
from bench.embedded_model.conversations import TOPICS, UNCLEAR, caption, look, questions
from bench.embedded_model.drawing import draw_scene
from bench.embedded_model.examination import examination
from bench.embedded_model.plain import plain_pictures
from bench.embedded_model.scenes import (
    EVALUATION_MIX,
    HELD_OUT_START,
    TRAINING_MIX,
    Scene,
    Thing,
    sample_scene,
)
from bench.embedded_model.vocabulary import COLOURS, GLYPHS, POSITIONS, SHAPES


def _scenes(count: int) -> list[Scene]:
    return [sample_scene(HELD_OUT_START + number) for number in range(count)]


def _thing(name: str, colour: str, *, x: float, y: float) -> Thing:
    return Thing(name=name, colour=colour, is_large=True, centre_x=x, centre_y=y, extent=0.28)


def _scene(*things: Thing) -> Scene:
    return Scene(
        seed=0,
        kind="two",
        width_px=96,
        height_px=96,
        background="white",
        things=things,
        is_plain=True,
    )


def test_a_seed_decides_a_scene_and_its_picture() -> None:
    """
    The same seed gives the same facts and the same pixels.
    """
    for seed in range(HELD_OUT_START, HELD_OUT_START + 20):
        first, second = sample_scene(seed), sample_scene(seed)

        assert first == second
        assert draw_scene(first).tobytes() == draw_scene(second).tobytes()


def test_a_scene_is_the_same_as_when_the_model_was_made() -> None:
    """
    Figures can only be repeated while the generator draws the same scenes.
    """
    told = [
        caption(sample_scene(HELD_OUT_START + number, mix=EVALUATION_MIX)) for number in range(4)
    ]

    assert [
        "A small purple cross.",
        "A large green triangle.",
        "The digit 7 in yellow.",
        "A large blue cross.",
    ] == told


def test_things_of_a_scene_differ_in_look_and_lie_apart_inside_the_picture() -> None:
    """
    No two things have the same colour and shape, none hides another, none is cut off.
    """
    for scene in _scenes(300):
        assert len({look(thing) for thing in scene.things}) == len(scene.things)
        assert len({thing.cell for thing in scene.things}) == len(scene.things)
        assert scene.background not in {thing.colour for thing in scene.things}
        short_px = min(scene.width_px, scene.height_px)
        for thing in scene.things:
            for centre, side_px in (
                (thing.centre_x, scene.width_px),
                (thing.centre_y, scene.height_px),
            ):
                half = thing.extent * short_px / side_px / 2
                assert -1e-9 <= centre - half
                assert centre + half <= 1 + 1e-9


def test_pictures_keep_their_size_and_their_shape_of_frame() -> None:
    """
    A picture is RGB, as large as its scene says, between 3:4 and 4:3.
    """
    for scene in _scenes(60):
        image = draw_scene(scene)

        assert ("RGB", (scene.width_px, scene.height_px)) == (image.mode, image.size)
        assert 0.74 <= image.width / image.height <= 1.35


def test_a_caption_names_size_colour_and_shape_in_reading_order() -> None:
    """
    One caption is right, so that an answer can be marked word for word.
    """
    scene = _scene(
        _thing("circle", "red", x=0.17, y=0.17),
        _thing("star", "blue", x=0.83, y=0.17),
        _thing("cross", "orange", x=0.5, y=0.83),
    )

    assert "A large red circle, a large blue star and a large orange cross." == caption(scene)


@pytest.mark.parametrize(
    ("kind", "told"),
    [
        ("one", r"A (large|small) [a-z]+ [a-z]+\."),
        ("two", r"A (large|small) [a-z]+ [a-z]+ and a (large|small) [a-z]+ [a-z]+\."),
        ("glyph", r"The (letter [A-Z]|digit \d) in [a-z]+\."),
        ("empty", r"An empty [a-z]+ picture\."),
        ("unclear", re.escape(UNCLEAR)),
    ],
)
def test_every_kind_of_scene_has_its_form_of_caption(kind: str, told: str) -> None:
    """
    Captions follow one form for each kind of scene.
    """
    for number in range(30):
        assert re.fullmatch(told, caption(sample_scene(HELD_OUT_START + number, mix={kind: 1.0})))


def test_the_colour_of_the_circle_is_not_asked_where_there_are_two_circles() -> None:
    """
    A question with two right answers would be marked by chance.
    """
    scene = _scene(
        _thing("circle", "red", x=0.17, y=0.17), _thing("circle", "blue", x=0.83, y=0.83)
    )

    asked = [
        turn.question
        for seed in range(200)
        for turn in questions(scene, random.Random(seed), topics=("colour",))
    ]

    assert asked
    assert not [question for question in asked if "circle" in question]


def test_the_place_of_a_thing_on_a_border_between_cells_is_not_asked() -> None:
    """
    Where a thing between "left" and "centre" lies is a matter of taste.
    """
    scene = _scene(_thing("circle", "red", x=0.34, y=0.5))

    for seed in range(50):
        assert [] == questions(scene, random.Random(seed), topics=("position",))


def test_answers_follow_from_the_scene() -> None:
    """
    Count, colour, shape, position, text and existence are those of the scene's facts.
    """
    for scene in _scenes(300):
        names = {thing.name.capitalize() for thing in scene.things}
        for turn in questions(scene, random.Random(scene.seed), topics=TOPICS):
            match turn.topic:
                case "count":
                    assert ("Zero", "One", "Two", "Three")[len(scene.things)] == turn.answer
                case "colour":
                    assert turn.answer.lower() in {thing.colour for thing in scene.things}
                case "shape":
                    assert turn.answer in names
                case "position":
                    assert turn.answer.lower() in {POSITIONS[thing.cell] for thing in scene.things}
                case "text" if scene.kind == "glyph":
                    assert scene.things[0].name == turn.answer
                case "exists":
                    is_there = any(look(thing) in turn.question for thing in scene.things)
                    assert ("Yes" if is_there else "No") == turn.answer


def test_the_examination_refuses_seeds_that_training_could_have_drawn() -> None:
    """
    Figures on scenes that were trained on would say nothing.
    """
    with pytest.raises(ValueError, match="seed: got 7, expected a held-out one"):
        examination(scenes=1, seed=7)


def test_words_that_look_alike_are_kept_apart() -> None:
    """
    No glyph looks like a shape, and nothing is named twice.
    """
    assert not set("OIXLCDoilxc0+") & set(GLYPHS)
    assert len(set(SHAPES + COLOURS + GLYPHS)) == len(SHAPES + COLOURS + GLYPHS)
    assert len(set(wordings.CAPTION_PROMPTS)) == len(wordings.CAPTION_PROMPTS)
    assert 1 == pytest.approx(sum(TRAINING_MIX.values()))


def test_plain_pictures_show_every_shape_in_every_colour_on_white() -> None:
    """
    The plain pictures of the evaluation are those that people try first.
    """
    pictures = plain_pictures(variants=1, seed=0)

    assert len(SHAPES) * (len(COLOURS) - 1) + len(GLYPHS) == len(pictures)
    assert all(
        64 <= min(picture.image.size) and max(picture.image.size) <= 1400 for picture in pictures
    )
