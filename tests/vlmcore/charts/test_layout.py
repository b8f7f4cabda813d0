"""Tests of `vlmcore.charts._layout`: what stands where, whatever comes."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from vlmcore.charts._inks import INK, MARK, OUTSIDE, UNSEEN
from vlmcore.charts._layout import lay_out
from vlmcore.charts._shapes import Anchor, Box, Glyph, Line, Picture, Sign, Text
from vlmcore.charts._styles import COLOURS
from vlmcore.charts.chart import Chart
from vlmcore.testing.contract_strategies import hostile_actions, names

NAN, INF = math.nan, math.inf


def measure(text: str, size: int) -> float:
    return 0.6 * size * len(text)


def picture(
    values: Any, *, width_px: int = 960, height_px: int | None = None, **fields: Any
) -> Picture:
    array = np.array(values, np.float64)
    names = tuple(f"joint_{i}" for i in range(array.shape[1]))
    chart = Chart(**{"values": array, "names": names} | fields)
    return lay_out(chart, width_px=width_px, height_px=height_px, measure=measure)


def signs(made: Picture) -> Counter[Sign]:
    """Count the signs in the panels; those of the key are grey or stand above."""
    return Counter(shape.sign for shape in made.shapes if isinstance(shape, Glyph))


def texts(made: Picture) -> list[str]:
    return [shape.text for shape in made.shapes if isinstance(shape, Text)]


def lines(made: Picture, colour: str) -> list[Line]:
    return [s for s in made.shapes if isinstance(s, Line) and s.colour == colour]


def area(text: Text) -> tuple[float, float, float, float]:
    """Say where a text is: left, top, right, bottom."""
    width = measure(text.text, text.size)
    shares = {Anchor.START: 0.0, Anchor.MIDDLE: 0.5, Anchor.END: 1.0}
    left = text.x - shares[text.anchor] * width
    return left, text.y - 4, left + width, text.y + 4


def overlap(one: tuple[float, ...], other: tuple[float, ...]) -> bool:
    beside = one[2] <= other[0] or other[2] <= one[0]
    return not beside and one[1] < other[3] and other[1] < one[3]


def test_a_legend_names_every_dimension_of_a_panel() -> None:
    """
    Up to 32, each once.
    """
    names = [f"joint_{i}" for i in range(32)]
    assert names == [text for text in texts(picture(np.zeros((5, 32)))) if "joint" in text]


def test_a_legend_stands_below_where_there_is_no_room_beside() -> None:
    """
    Every name is still there.
    """
    made = picture(np.zeros((5, 14)), width_px=360)
    named = [shape for shape in made.shapes if isinstance(shape, Text) and "joint" in shape.text]
    axis = next(s for s in made.shapes if isinstance(s, Text) and s.text == "step")

    assert 14 == len(named)
    assert all(shape.y > axis.y for shape in named)


def test_marks_are_where_the_values_are_and_in_the_key() -> None:
    """
    One in the panel, and one beside the words.
    """
    marks = np.array([[False], [True], [False]])
    made = picture([[0.0], [1.0], [0.0]], marks=marks)
    (line,) = lines(made, COLOURS[0])
    mark = [s for s in made.shapes if isinstance(s, Glyph) and s.sign is Sign.BROKEN][-1]

    assert "1 value breaks a limit" in texts(made)
    assert [mark.x, mark.y] == pytest.approx(line.points[1].tolist())
    assert MARK == mark.colour


def test_nan_leaves_a_gap_and_a_sign_at_the_edge() -> None:
    """
    The line has two parts; nothing is drawn across.
    """
    made = picture([[0.0], [1.0], [NAN], [0.0], [1.0]])
    assert [2, 2] == [len(line.points) for line in lines(made, COLOURS[0])]
    assert "NaN" in texts(made)
    assert 2 == signs(made)[Sign.LOST]


def test_infinities_and_what_is_off_the_scale_point_to_where_they_are() -> None:
    """
    Up at the upper edge, down at the lower.
    """
    made = picture([[INF], [-INF], [0.0], [90.0], [-90.0]], low=[-1.0], high=[1.0])
    placed = [s for s in made.shapes if isinstance(s, Glyph) and s.colour == INK]
    above = [s.y for s in placed if s.sign is Sign.ABOVE]
    below = [s.y for s in placed if s.sign is Sign.BELOW]

    assert (2, 2) == (len(above), len(below))
    assert max(above) < min(below)
    assert "off the scale" in texts(made)


def test_a_value_between_two_that_are_lost_is_a_dot() -> None:
    """
    A line of one point would not be seen.
    """
    assert 1 == signs(picture([[NAN], [1.0], [NAN]]))[Sign.POINT]
    assert 1 == signs(picture([[1.0]]))[Sign.POINT]


def test_the_last_command_is_a_ring_before_the_first_step() -> None:
    """
    The line begins there.
    """
    made = picture([[1.0], [2.0]], before=[0.0])
    (line,) = lines(made, COLOURS[0])
    ring = [s for s in made.shapes if isinstance(s, Glyph) and s.sign is Sign.BEFORE][-1]

    assert [ring.x, ring.y] == pytest.approx(line.points[0].tolist())
    assert 3 == len(line.points)
    assert "-1" not in texts(made)


def test_bounds_and_steps_that_nobody_looked_at_are_shaded() -> None:
    """
    Each with its words in the key.
    """
    marks = np.zeros((2, 1), np.bool_)
    made = picture(np.zeros((4, 1)), low=[-1.0], high=[1.0], marks=marks)
    boxes = Counter(shape.colour for shape in made.shapes if isinstance(shape, Box))

    assert (3, 2) == (boxes[OUTSIDE], boxes[UNSEEN])
    assert {"out of bounds", "not looked at"} <= set(texts(made))


def test_what_was_proposed_stands_behind_and_has_the_marks() -> None:
    """
    What was vetted breaks nothing.
    """
    fields = {"low": [-1.0], "high": [1.0], "marks": np.array([[True]])}
    made = picture([[0.0]], proposed=[[1.5]], **fields)
    ghost, value = [s for s in made.shapes if isinstance(s, Glyph) and s.sign is Sign.POINT]
    mark = [s for s in made.shapes if isinstance(s, Glyph) and s.sign is Sign.BROKEN][-1]

    assert (ghost.y, value.colour) == (mark.y, COLOURS[0])
    assert {"as proposed", "1 value broke a limit"} <= set(texts(made))


def test_values_that_are_marked_together_are_not_said_to_break_a_limit_each() -> None:
    """
    39 rotations that turn too far were "156 values broke a limit".
    """
    fields = {"marks": np.ones((1, 4), np.bool_), "marks_together": True}
    values = np.zeros((1, 4))
    assert "4 values break a limit, alone or together" in texts(picture(values, **fields))
    vetted = picture(values, proposed=values, **fields)
    assert "4 values broke a limit, alone or together" in texts(vetted)


def test_the_rate_gives_each_step_its_time() -> None:
    """
    Steps stay, since reports name them.
    """
    made = texts(picture(np.zeros((21, 1)), rate_hz=20))
    assert {"step", "0", "20", "0 s", "1 s"} <= set(made)


def test_a_name_that_does_not_fit_is_cut_in_the_middle_and_numbered() -> None:
    """
    Two long names that differ in the middle stay two.
    """
    names = tuple(f"left_{'x' * 60}{i}{'y' * 60}_joint" for i in range(2))
    made = picture(np.zeros((3, 2)), names=names)
    first, second = (text for text in texts(made) if "…" in text)

    assert first.startswith("0: left")
    assert second.startswith("1: left")
    assert first.endswith("_joint")


@pytest.mark.parametrize("size", [(200, 160), (320, 240), (1200, 160), (200, 900)])
def test_texts_do_not_lie_on_each_other_in_a_small_picture(size: tuple[int, int]) -> None:
    """
    The key and the legend give way to the line.
    """
    marks = np.ones((20, 14), np.bool_)
    fields: dict[str, Any] = {"low": [-1] * 14, "high": [1] * 14, "marks": marks, "rate_hz": 20}
    made = picture(np.zeros((30, 14)), width_px=size[0], height_px=size[1], title="t", **fields)
    places = [area(shape) for shape in made.shapes if isinstance(shape, Text) and shape.text]
    panel = max((shape for shape in made.shapes if isinstance(shape, Box)), key=lambda box: box.top)

    assert [] == [pair for pair in itertools.combinations(places, 2) if overlap(*pair)]
    assert panel.bottom <= size[1]


def test_what_does_not_fit_is_counted() -> None:
    """
    Never more than 64 panels, whatever the chunk.
    """
    made = picture(np.zeros((2, 2048)))
    assert "… and 1,984 more dimensions" in texts(made)
    small = picture(np.zeros((2, 2048)), height_px=300)
    assert any("more dimensions" in text for text in texts(small))
    assert 300 == small.height_px


def test_a_picture_of_the_largest_chunk_is_made_of_few_shapes() -> None:
    """
    4,096 steps of 2,048 dimensions, all of them marked.
    """
    values = np.random.default_rng(0).normal(size=(4096, 2048))
    made = picture(values, marks=np.ones(values.shape, np.bool_))
    points = sum(len(shape.points) for shape in made.shapes if isinstance(shape, Line))

    assert points < 64 * 4 * 300
    assert len(made.shapes) < 64 * 1000


@st.composite
def charts(draw: st.DrawFn) -> Chart:
    """Draw charts of anything that float64 can hold, with names in any script."""
    steps, dims = draw(st.integers(1, 12)), draw(st.integers(1, 40))
    fields: dict[str, Any] = {}
    if draw(st.booleans()):
        bound = draw(st.sampled_from([5e-324, 1e-3, 1.0, 1e308]))
        fields |= {"low": np.full(dims, -bound), "high": np.full(dims, bound)}
    if draw(st.booleans()):
        fields["marks"] = draw(hnp.arrays("bool", (draw(st.integers(1, steps)), dims)))
    if draw(st.booleans()):
        fields["before"] = draw(hostile_actions(steps=1, dims=dims))[0]
    return Chart(
        values=draw(hostile_actions(steps=steps, dims=dims)),
        names=draw(st.lists(names(), min_size=dims, max_size=dims, unique=True)),
        rate_hz=draw(st.none() | st.floats(5e-324, 10_000)),
        **fields,
    )


@given(charts(), st.integers(200, 1200), st.none() | st.integers(160, 900))
def test_any_chart_is_drawn_within_the_picture(
    chart: Chart, width_px: int, height_px: int | None
) -> None:
    """
    Lines, boxes and signs are inside of it, and every place is a number.
    """
    made = lay_out(chart, width_px=width_px, height_px=height_px, measure=measure)
    for shape in made.shapes:
        match shape:
            case Line():
                places = shape.points
            case Box():
                places = np.array([[shape.left, shape.top], [shape.right, shape.bottom]])
            case _:
                places = np.array([[shape.x, shape.y]])
        assert np.isfinite(places).all()
        assert (places >= 0).all()
        assert (places <= np.array([width_px, made.height_px])).all()
