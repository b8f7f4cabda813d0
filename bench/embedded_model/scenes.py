"""
Scenes as facts: what is in a picture, before anything is drawn.

A scene is decided by its seed alone. Seeds of training lie below :data:`HELD_OUT_START`, seeds of
evaluation from there on, so that no evaluated scene was ever trained on.
"""

import dataclasses
import random
from collections.abc import Mapping

from bench.embedded_model.vocabulary import BACKGROUNDS, COLOURS, GLYPHS, SHAPES

HELD_OUT_START = 1 << 40
"""First seed of the held-out scenes."""

TRAINING_MIX: Mapping[str, float] = {
    "one": 0.30,
    "two": 0.16,
    "three": 0.26,
    "glyph": 0.20,
    "empty": 0.04,
    "unclear": 0.04,
}
"""How often each kind of scene is drawn in training."""

EVALUATION_MIX: Mapping[str, float] = {"one": 0.25, "two": 0.25, "three": 0.25, "glyph": 0.25}
"""How often each kind of scene is drawn in the evaluation."""

_FILLS_PICTURE = 0.5
"""Extent from which on a thing is no longer in one cell rather than another."""
_IN_ONE_CELL = 0.315
"""Extent up to which a thing lies in its cell whole."""
_OBJECTS = {"one": 1, "two": 2, "three": 3}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Thing:
    """
    A shape or a glyph of a scene.

    *centre_x* and *centre_y* are fractions of the picture, *extent* is one of its shorter side, and
    *cell* is the cell of the three by three grid that the centre lies in.
    """

    name: str
    colour: str
    is_large: bool
    centre_x: float
    centre_y: float
    extent: float

    @property
    def cell(self) -> int:
        """The cell of the centre, 0 to 8 in reading order; what fills the picture is in cell 4."""
        if self.extent > _FILLS_PICTURE:
            return 4
        return min(int(self.centre_y * 3), 2) * 3 + min(int(self.centre_x * 3), 2)

    @property
    def is_glyph(self) -> bool:
        """Whether the thing is a letter or digit."""
        return self.name in GLYPHS

    @property
    def is_plainly_placed(self) -> bool:
        """Whether the centre is so far inside its cell that its place is no matter of taste."""
        if self.extent > _FILLS_PICTURE:
            return max(abs(self.centre_x - 0.5), abs(self.centre_y - 0.5)) < 1 / 12
        inner_x, inner_y = self.centre_x * 3 % 1, self.centre_y * 3 % 1
        return 0.25 <= inner_x <= 0.75 and 0.25 <= inner_y <= 0.75

    @property
    def is_between_cells(self) -> bool:
        """Whether a large shape could as well be said to lie in another cell."""
        is_in_the_middle = max(abs(self.centre_x - 0.5), abs(self.centre_y - 0.5)) < 1 / 12
        if self.is_glyph or self.extent < _IN_ONE_CELL or is_in_the_middle:
            return False
        if abs(self.extent - _FILLS_PICTURE) < 0.08:
            return True
        return self.extent < _FILLS_PICTURE and not self.is_plainly_placed


@dataclasses.dataclass(frozen=True, kw_only=True)
class Scene:
    """
    What is in a picture: its kind, size in pixels, background and things in reading order.
    """

    seed: int
    kind: str
    width_px: int
    height_px: int
    background: str
    things: tuple[Thing, ...]
    is_plain: bool


def sample_scene(seed: int, *, mix: Mapping[str, float] = TRAINING_MIX) -> Scene:
    """
    Return the scene of *seed*: the same one on every machine and in every process.

    Args:
        seed: Below :data:`HELD_OUT_START` for training, from there on for evaluation.
        mix: Weight of each kind of scene.
    """
    rng = random.Random(seed)
    kind = rng.choices(tuple(mix), tuple(mix.values()))[0]
    width_px, height_px = _sample_size(rng)
    ratio_x, ratio_y = (min(width_px, height_px) / side for side in (width_px, height_px))
    background = rng.choices(BACKGROUNDS, (0.55, 0.25, 0.20))[0]
    things: tuple[Thing, ...] = ()
    match kind:
        case "glyph":
            things = (_sample_glyph(rng, background, ratio_x, ratio_y),)
        case "empty":
            background = rng.choices((*COLOURS, "grey"), (1, 1, 1, 1, 1, 1, 2, 4, 2))[0]
        case "unclear":
            pass
        case "one" if rng.random() < 0.5:
            things = (_sample_single(rng, background, ratio_x, ratio_y),)
        case _:
            things = _sample_objects(rng, background, _OBJECTS[kind], ratio_x, ratio_y)
    return Scene(
        seed=seed,
        kind=kind,
        width_px=width_px,
        height_px=height_px,
        background=background,
        things=things,
        is_plain=rng.random() < 0.45,
    )


def _sample_size(rng: random.Random) -> tuple[int, int]:
    short_px = rng.randint(64, 144) if rng.random() < 0.93 else rng.randint(144, 480)
    if rng.random() < 0.3:
        return short_px, short_px
    ratio = rng.uniform(1.0, 1.34)
    long_px = round(short_px * ratio)
    return (short_px, long_px) if rng.random() < 0.5 else (long_px, short_px)


def _sample_colour(rng: random.Random, background: str) -> str:
    return rng.choice([colour for colour in COLOURS if colour != background])


def _sample_objects(
    rng: random.Random, background: str, count: int, ratio_x: float, ratio_y: float
) -> tuple[Thing, ...]:
    """Place *count* objects that differ in shape or colour into cells of their own."""
    looks: list[tuple[str, str]] = []
    while len(looks) < count:
        look = (rng.choice(SHAPES), _sample_colour(rng, background))
        if look not in looks:
            looks.append(look)
    things = []
    for cell, (shape, colour) in zip(sorted(rng.sample(range(9), count)), looks, strict=True):
        is_large = rng.random() < 0.5
        extent = (rng.uniform(0.80, 0.93) if is_large else rng.uniform(0.46, 0.56)) / 3
        slack_x, slack_y = (0.96 / 3 - extent * ratio_x) / 2, (0.96 / 3 - extent * ratio_y) / 2
        slack_x, slack_y = min(slack_x, 0.075), min(slack_y, 0.075)
        things.append(
            Thing(
                name=shape,
                colour=colour,
                is_large=is_large,
                centre_x=(cell % 3 + 0.5) / 3 + rng.uniform(-slack_x, slack_x),
                centre_y=(cell // 3 + 0.5) / 3 + rng.uniform(-slack_y, slack_y),
                extent=extent,
            )
        )
    return tuple(things)


def _sample_single(rng: random.Random, background: str, ratio_x: float, ratio_y: float) -> Thing:
    """Place one large shape anywhere, of a third of the picture up to nearly all of it."""
    extent = rng.uniform(0.32, 0.97)
    margin_x, margin_y = 0.5 - extent * ratio_x / 2, 0.5 - extent * ratio_y / 2
    if rng.random() < 0.4:
        margin_x = margin_y = 0.0
    name, colour = rng.choice(SHAPES), _sample_colour(rng, background)
    while True:
        thing = Thing(
            name=name,
            colour=colour,
            is_large=True,
            centre_x=0.5 + rng.uniform(-margin_x, margin_x),
            centre_y=0.5 + rng.uniform(-margin_y, margin_y),
            extent=extent,
        )
        # Between cells the targets of training jump: such places are drawn, but seldom.
        if thing.is_plainly_placed or extent > _FILLS_PICTURE or rng.random() < 0.1:
            return thing


def _sample_glyph(rng: random.Random, background: str, ratio_x: float, ratio_y: float) -> Thing:
    """Place one glyph about the centre, half as high as the picture or higher."""
    extent = rng.uniform(0.50, 0.92)
    margin_x, margin_y = (min(0.5 - extent * ratio / 2, 0.1) for ratio in (ratio_x, ratio_y))
    return Thing(
        name=rng.choice(GLYPHS),
        colour=_sample_colour(rng, background),
        is_large=True,
        centre_x=0.5 + rng.uniform(-margin_x, margin_x),
        centre_y=0.5 + rng.uniform(-margin_y, margin_y),
        extent=extent,
    )
