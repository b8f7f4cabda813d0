"""Tests of `vlmcore.charts._svg`: charts as text."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vlmcore.charts._svg import measure
from vlmcore.charts.chart import Chart
from vlmcore.charts.drawing import draw_svg
from vlmcore.errors import ContractError, LimitExceededError
from vlmcore.testing.contract_strategies import hostile_actions, names


def everything() -> Chart:
    """Make a chart with every sign on it."""
    values = [[0.0, 1.0], [np.nan, np.inf], [1.0, -np.inf], [np.nan, 0.0], [0.5, 0.5]]
    marks = np.array([[False, True], [True, True]])
    return Chart(
        values=values, names=("x", "y"), low=[-2, -2], high=[2, 2], marks=marks, before=[0, 0]
    )


def test_it_is_well_formed_and_refers_to_nothing_outside() -> None:
    """
    Only shapes and text; no script, no style sheet, no link.
    """
    root = ET.fromstring(draw_svg(everything()))
    tags = {element.tag.removeprefix("{http://www.w3.org/2000/svg}") for element in root.iter()}

    assert {"svg", "rect", "polyline", "path", "circle", "text"} == tags
    attributes = {name for element in root.iter() for name in element.attrib}
    assert set() == {name for name in attributes if "href" in name or name.startswith("on")}


@given(hostile_actions(steps=3, dims=2), st.lists(names(), min_size=2, max_size=2, unique=True))
def test_names_in_any_script_are_text(values: Any, dims: list[str]) -> None:
    """
    Also those that look like markup.
    """
    root = ET.fromstring(draw_svg(Chart(values=values, names=tuple(dims))))
    assert root.tag.endswith("svg")


def test_markup_in_a_name_stays_a_name() -> None:
    """
    It is read back as it was given.
    """
    root = ET.fromstring(draw_svg(Chart(values=[[0.0, 1.0]], names=("<script>", '"&x'))))
    texts = [element.text for element in root.iter() if element.tag.endswith("text")]
    assert {"<script>", '"&x'} <= set(texts)


def test_the_largest_chunk_makes_a_small_picture() -> None:
    """
    Below 256 KiB, also for noise.
    """
    noise = np.random.default_rng(0).normal(size=(4096, 32))
    marks = np.ones(noise.shape, np.bool_)
    assert len(draw_svg(Chart(values=noise, names=tuple(map(str, range(32)))))) < 256 * 1024
    assert 512 * 1024 > len(
        draw_svg(Chart(values=noise, names=tuple(map(str, range(32))), marks=marks))
    )


def test_wide_characters_are_counted_as_wide() -> None:
    """
    A legend in Chinese is not cut too late.
    """
    assert 1.5 * measure("ab", 12) < measure("\u5173\u8282", 12)


def test_sizes_have_ends() -> None:
    """
    One clear error each.
    """
    chart = Chart(values=[[0.0]], names=("x",))
    with pytest.raises(ContractError, match="width_px: got 10, expected at least 200"):
        draw_svg(chart, width_px=10)
    with pytest.raises(LimitExceededError, match="max_side_px: got 5000, limit is 4096"):
        draw_svg(chart, most_height_px=5000)
