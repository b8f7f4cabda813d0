"""Lessons of the embedded model: never about held-out scenes, questions kept apart."""

import random

import pytest
import torch

from bench.embedded_model.cells import KINDS, CellCodes, cell_facts, patch_facts
from bench.embedded_model.conversations import Turn
from bench.embedded_model.folder import IMAGE_TOKENS, WIDTH, build_tokenizer
from bench.embedded_model.lessons import Teacher
from bench.embedded_model.pictures import Pictures
from bench.embedded_model.scenes import HELD_OUT_START, sample_scene


def test_training_refuses_held_out_seeds() -> None:
    """
    No picture of the examination is ever drawn in training.
    """
    with pytest.raises(ValueError, match="expected a seed of training"):
        Pictures(first_seed=HELD_OUT_START, batch_size=1, fonts=())


def test_every_thing_is_in_the_cell_of_its_centre_and_in_the_patches_it_covers() -> None:
    """
    The targets of the vision part say what the scene says.
    """
    for seed in range(200):
        scene = sample_scene(seed, mix={"one": 0.3, "three": 0.5, "glyph": 0.2})
        cells, patches = cell_facts(scene), patch_facts(scene)

        assert len(scene.things) == (cells[:, 0] > 1).sum()
        for thing in scene.things:
            kind = KINDS.index(thing.name)
            assert kind == cells[thing.cell, 0]
            column, row = int(thing.centre_x * 9), int(thing.centre_y * 9)
            assert kind == patches[row * 9 + column, 0]


def test_codes_are_read_back() -> None:
    """
    The facts of a cell are the directions that its code holds most of.
    """
    codes = CellCodes(WIDTH)
    facts = torch.stack([torch.from_numpy(cell_facts(sample_scene(seed))) for seed in range(50)])

    scores = codes.scores(codes.encode(facts))

    assert torch.equal(facts, torch.stack([score.argmax(-1) for score in scores], dim=-1))


def test_questions_of_a_lesson_do_not_see_each_other() -> None:
    """
    Each sees the picture and itself, from the same place on, as if it stood alone.
    """
    teacher = Teacher(build_tokenizer())
    turns = [Turn(topic="count", question="How many objects are there?", answer="Two")] * 2
    lesson = teacher.branching(sample_scene(1), turns, random.Random(1))

    batch = teacher.batch([lesson])

    first, second = (lesson.branches.index(branch) for branch in (1, 2))
    assert lesson.places[first] == lesson.places[second] == first
    assert IMAGE_TOKENS == lesson.tokens.count(teacher.image_token)
    may_look = batch.mask[0, 0, second] == 0
    assert may_look[:first].all()
    assert not may_look[first:second].any()
