"""
What is said about a scene: its caption, and questions that have exactly one right answer.

A question is only asked where the picture leaves no doubt: the colour of "the circle" when there is
one circle, the place of an object when its centre is well inside a cell.
"""

import dataclasses
import random
import string
from collections.abc import Callable, Sequence

from bench.embedded_model import wordings
from bench.embedded_model.scenes import Scene, Thing
from bench.embedded_model.vocabulary import COLOURS, NUMBERS, POSITIONS, SHAPES, glyph_kind

NO_IMAGE = "There is no image."
UNCLEAR = "A picture without clear shapes."
NO_TEXT = "There is no text."
ONE_ANSWER_TOPICS: tuple[str, ...] = ("count", "colour", "shape", "position", "text")
"""Topics whose answers are evaluated together as one-answer questions."""
TOPICS: tuple[str, ...] = (*ONE_ANSWER_TOPICS, "exists", "size", "background", "absent")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Turn:
    """A question and the one right answer to it."""

    topic: str
    question: str
    answer: str


def caption(scene: Scene) -> str:
    """Return the one caption of *scene*; things are named in reading order."""
    if scene.kind == "unclear":
        return UNCLEAR
    if not scene.things:
        return f"An empty {scene.background} picture."
    if scene.things[0].is_glyph:
        glyph = scene.things[0]
        return f"The {glyph_kind(glyph.name)} {glyph.name} in {glyph.colour}."
    names = [_size(thing) + " " + look(thing) for thing in scene.things]
    listed = " and ".join(filter(None, (", a ".join(names[:-1]), f"a {names[-1]}")))
    return "A " + listed.removeprefix("a ") + "."


def look(thing: Thing) -> str:
    """Return how a thing is called without its size, as in ``red circle``."""
    return (
        f"{thing.colour} {glyph_kind(thing.name)}"
        if thing.is_glyph
        else f"{thing.colour} {thing.name}"
    )


def caption_turn(scene: Scene, rng: random.Random) -> Turn:
    """Return a prompt, mostly one for a caption and sometimes a stray one, with the caption."""
    draw = rng.random()
    if draw < 0.82:
        question = rng.choice(wordings.CAPTION_PROMPTS)
    elif draw < 0.91:
        question = rng.choice(wordings.OTHER_PROMPTS)
    else:
        question = _stray_text(rng)
    return Turn(topic="caption", question=question, answer=caption(scene))


def questions(scene: Scene, rng: random.Random, *, topics: Sequence[str] = TOPICS) -> list[Turn]:
    """
    Return one question for each topic of *topics* that has one right answer in *scene*.
    """
    asked = []
    for topic in topics:
        turn = _ASK[topic](scene, rng)
        if turn is not None:
            asked.append(turn)
    return asked


def _size(thing: Thing) -> str:
    return "large" if thing.is_large else "small"


def _capital(text: str) -> str:
    return text[0].upper() + text[1:]


def _stray_text(rng: random.Random) -> str:
    """Return words out of order, or characters at random."""
    if rng.random() < 0.7:
        words = (
            rng.choice(wordings.CAPTION_PROMPTS) + " " + rng.choice(wordings.OTHER_PROMPTS)
        ).split()
        return " ".join(rng.choices(words, k=rng.randint(1, 8)))
    return "".join(rng.choices(string.printable[:95], k=rng.randint(1, 16)))


def _ask_count(scene: Scene, rng: random.Random) -> Turn | None:
    if scene.kind == "unclear":
        return None
    return Turn(
        topic="count",
        question=rng.choice(wordings.COUNT_QUESTIONS),
        answer=_capital(NUMBERS[len(scene.things)]),
    )


def _ask_colour(scene: Scene, rng: random.Random) -> Turn | None:
    if not scene.things:
        return None
    thing = rng.choice(scene.things)
    if (
        rng.random() < 0.3
        and thing.is_plainly_placed
        and not thing.is_glyph
        and len(scene.things) > 1
    ):
        wording = rng.choice(wordings.COLOUR_AT_QUESTIONS).format(position=POSITIONS[thing.cell])
    elif len(scene.things) == 1 and rng.random() < 0.4:
        wording = rng.choice(wordings.COLOUR_QUESTIONS).format(
            name="character" if thing.is_glyph else "object"
        )
    else:
        name = glyph_kind(thing.name) if thing.is_glyph else thing.name
        if [other.name for other in scene.things].count(thing.name) > 1:
            return None
        wording = rng.choice(wordings.COLOUR_QUESTIONS).format(name=name)
    return Turn(topic="colour", question=wording, answer=_capital(thing.colour))


def _ask_shape(scene: Scene, rng: random.Random) -> Turn | None:
    if not scene.things or scene.things[0].is_glyph:
        return None
    thing = rng.choice(scene.things)
    if rng.random() < 0.3 and thing.is_plainly_placed and len(scene.things) > 1:
        wording = rng.choice(wordings.SHAPE_AT_QUESTIONS).format(position=POSITIONS[thing.cell])
    elif len(scene.things) == 1 and rng.random() < 0.4:
        wording = rng.choice(
            ("What shape is it?", "What shape is this?", "Which shape do you see?")
        )
    else:
        if [other.colour for other in scene.things].count(thing.colour) > 1:
            return None
        wording = rng.choice(wordings.SHAPE_QUESTIONS).format(colour=thing.colour)
    return Turn(topic="shape", question=wording, answer=_capital(thing.name))


def _named(thing: Thing, scene: Scene, rng: random.Random) -> str:
    """Return a name that fits *thing* alone: its shape, with its colour where that is needed."""
    shared = [other.name for other in scene.things].count(thing.name) > 1
    return look(thing) if shared or rng.random() < 0.7 else thing.name


def _ask_position(scene: Scene, rng: random.Random) -> Turn | None:
    placed = [thing for thing in scene.things if thing.is_plainly_placed and not thing.is_glyph]
    if not placed:
        return None
    thing = rng.choice(placed)
    wording = rng.choice(wordings.POSITION_QUESTIONS).format(look=_named(thing, scene, rng))
    return Turn(topic="position", question=wording, answer=_capital(POSITIONS[thing.cell]))


def _ask_size(scene: Scene, rng: random.Random) -> Turn | None:
    if not scene.things or scene.things[0].is_glyph:
        return None
    thing = rng.choice(scene.things)
    wording = rng.choice(wordings.SIZE_QUESTIONS).format(look=_named(thing, scene, rng))
    return Turn(topic="size", question=wording, answer=_capital(_size(thing)))


def _ask_exists(scene: Scene, rng: random.Random) -> Turn | None:
    if scene.kind == "unclear" or any(thing.is_glyph for thing in scene.things):
        return None
    looks = {look(thing) for thing in scene.things}
    if looks and rng.random() < 0.5:
        asked = rng.choice(sorted(looks))
    else:
        colour, shape = rng.choice(COLOURS), rng.choice(SHAPES)
        if scene.things and rng.random() < 0.7:
            thing = rng.choice(scene.things)
            colour, shape = rng.choice(((thing.colour, shape), (colour, thing.name)))
        asked = f"{colour} {shape}"
    article = "an" if asked[0] == "o" else "a"
    wording = rng.choice(wordings.EXISTS_QUESTIONS).replace("a {look}", f"{article} {asked}")
    return Turn(topic="exists", question=wording, answer="Yes" if asked in looks else "No")


def _ask_absent(scene: Scene, rng: random.Random) -> Turn:
    """Ask about a thing that is not there."""
    while True:
        colour, shape = rng.choice(COLOURS), rng.choice(SHAPES)
        if (colour, shape) not in {(thing.colour, thing.name) for thing in scene.things}:
            break
    wording = rng.choice(wordings.POSITION_QUESTIONS + wordings.SIZE_QUESTIONS)
    question = wording.format(look=f"{colour} {shape}")
    return Turn(topic="absent", question=question, answer=f"There is no {colour} {shape}.")


def _ask_background(scene: Scene, rng: random.Random) -> Turn | None:
    if scene.kind == "unclear":
        return None
    question = rng.choice(wordings.BACKGROUND_QUESTIONS)
    return Turn(topic="background", question=question, answer=_capital(scene.background))


def _ask_text(scene: Scene, rng: random.Random) -> Turn | None:
    if scene.kind == "unclear":
        return None
    is_glyph = bool(scene.things) and scene.things[0].is_glyph
    if not is_glyph and rng.random() < 0.7:
        return None
    question = rng.choice(wordings.TEXT_QUESTIONS)
    return Turn(
        topic="text", question=question, answer=scene.things[0].name if is_glyph else NO_TEXT
    )


_ASK: dict[str, Callable[[Scene, random.Random], Turn | None]] = {
    "count": _ask_count,
    "colour": _ask_colour,
    "shape": _ask_shape,
    "position": _ask_position,
    "text": _ask_text,
    "exists": _ask_exists,
    "size": _ask_size,
    "background": _ask_background,
    "absent": _ask_absent,
}
