"""Tests of `vlmcore.charts.drawing`: the doors, and the sizes of pictures."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest

from vlmcore.charts.chart import Chart
from vlmcore.charts.drawing import draw, draw_svg, figure
from vlmcore.errors import ContractError, LimitExceededError, MissingDependencyError

CHART = Chart(values=[[0.0, 1.0], [1.0, 0.0]], names=("x", "y"))


class _Without:
    """Finds no package of one name, as where it is not installed."""

    def __init__(self, package: str) -> None:
        self.package = package

    def find_spec(self, name: str, *_: object) -> None:
        if name == self.package:
            raise ModuleNotFoundError(name, name=name)


def test_a_picture_has_the_size_that_was_asked_for() -> None:
    """
    RGB, uint8, in memory that nobody can write to.
    """
    image = draw(CHART, width_px=500, height_px=300)
    assert ((300, 500, 3), np.uint8, False) == (image.shape, image.dtype, image.flags.writeable)


def test_a_picture_without_a_height_is_as_high_as_it_needs() -> None:
    """
    More panels need more, up to the limit.
    """
    many = Chart(values=np.zeros((2, 60)), names=tuple(map(str, range(60))))
    assert draw(CHART).shape[0] < draw(many).shape[0] <= 4096
    assert 4096 == draw(many, width_px=200).shape[0]


def test_the_same_chart_gives_the_same_picture() -> None:
    """
    Pixel by pixel.
    """
    assert np.array_equal(draw(CHART), draw(CHART))


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ({"width_px": 199}, "width_px: got 199, expected at least 200"),
        ({"height_px": 0}, "height_px: got 0, expected a whole number of at least 1"),
        ({"height_px": 159}, "height_px: got 159, expected at least 160"),
        ({"width_px": 640.0}, "width_px: got 640.0, expected a whole number of at least 1"),
        ({"width_px": True}, "width_px: got True, expected a whole number of at least 1"),
    ],
)
def test_a_picture_that_is_too_small_is_refused(sizes: dict[str, Any], message: str) -> None:
    """
    Nothing would be legible.
    """
    with pytest.raises(ContractError) as error:
        draw(CHART, **sizes)
    assert message == str(error.value)


def test_a_picture_that_is_too_large_is_refused() -> None:
    """
    Before memory is spent on it.
    """
    with pytest.raises(LimitExceededError, match="max_side_px: got 4097, limit is 4096"):
        draw(CHART, height_px=4097)


@pytest.mark.parametrize(
    ("package", "door", "drawn"),
    [("PIL", "_pillow", draw), ("matplotlib", "_matplotlib", figure)],
)
def test_a_missing_package_is_named_with_the_extra_that_brings_it(
    package: str, door: str, drawn: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    SVG needs neither.
    """
    monkeypatch.delitem(sys.modules, f"vlmcore.charts.{door}", raising=False)
    monkeypatch.delattr(f"vlmcore.charts.{door}", raising=False)
    for module in [name for name in sys.modules if name.partition(".")[0] == package]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setattr(sys, "meta_path", [_Without(package), *sys.meta_path])
    with pytest.raises(MissingDependencyError) as error:
        drawn(CHART)

    assert (package, "plot") == (error.value.package, error.value.extra)
    assert 'pip install "vlmcore[plot]"' in str(error.value)
    assert draw_svg(CHART)
