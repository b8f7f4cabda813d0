"""Charts as pictures and as figures."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vlmcore._arrays import UInt8Array, require_count
from vlmcore._optional import optional_dependency
from vlmcore.charts import _svg
from vlmcore.charts._layout import lay_out
from vlmcore.charts.chart import Chart
from vlmcore.errors import ContractError
from vlmcore.limits import ChartLimits, require_at_most

if TYPE_CHECKING:
    import matplotlib.figure

__all__ = ["draw", "draw_svg", "figure"]

_LIMITS = ChartLimits()


def draw(chart: Chart, *, width_px: int = 960, height_px: int | None = None) -> UInt8Array:
    r"""
    Draw a chart with Pillow.

    Up to 32 dimensions share a panel with a legend where their units and bounds agree; more, or
    others, have a small panel each. What does not fit is counted below, and dimensions with marks
    come first. Characters that Pillow's own font lacks are written by their numbers, as
    ``\u95a2``; `draw_svg` and `figure` leave the font to the browser and to matplotlib.

    Args:
        chart: What to draw.
        width_px: Width of the picture, 200 to 4,096.
        height_px: Height of the picture, 160 to 4,096; ``None`` for as much as is needed.

    Returns:
        RGB, uint8, shape ``[height_px, width_px, 3]``, read-only.

    Raises:
        ContractError: If a size is too small.
        LimitExceededError: If a size is too large.
        MissingDependencyError: If Pillow is not installed.
    """
    _check_side("width_px", width_px, _LIMITS.min_width_px)
    if height_px is not None:
        _check_side("height_px", height_px, _LIMITS.min_height_px)
    with optional_dependency("plot", "PIL"):
        from vlmcore.charts import _pillow  # noqa: PLC0415 - the door
    picture = lay_out(chart, width_px=width_px, height_px=height_px, measure=_pillow.measure)
    # Three times as large looks no better to most, and takes twice as long.
    times = 2 if picture.width_px * picture.height_px * 4 <= _LIMITS.max_drawn_pixels else 1
    return _pillow.paint(picture, supersampling=times)


def draw_svg(chart: Chart, *, width_px: int = 720, most_height_px: int = 480) -> str:
    """
    Draw a chart as SVG, which needs no package; less finely than `draw`, to keep it short.

    Args:
        chart: What to draw.
        width_px: Width of the picture, 200 to 4,096.
        most_height_px: Height of the picture at most, 160 to 4,096.

    Returns:
        One ``svg`` element. Names are escaped, and it refers to nothing outside.

    Raises:
        ContractError: If a size is too small.
        LimitExceededError: If a size is too large.

    Example:
        >>> draw_svg(Chart(values=[[0.0], [0.5]], names=("x",)))[:4]
        '<svg'
    """
    _check_side("width_px", width_px, _LIMITS.min_width_px)
    _check_side("most_height_px", most_height_px, _LIMITS.min_height_px)
    picture = lay_out(
        chart,
        width_px=width_px,
        height_px=None,
        measure=_svg.measure,
        most_height_px=most_height_px,
        grain_px=4.0,
    )
    return _svg.write(picture)


def figure(chart: Chart) -> matplotlib.figure.Figure:
    """
    Draw a chart with matplotlib, as a figure that nothing else knows of.

    It is made without pyplot: no backend is chosen, nothing global is changed, and nothing has to
    be closed. Notebooks show it; ``figure.savefig(path)`` writes it.

    Args:
        chart: What to draw.

    Raises:
        MissingDependencyError: If matplotlib is not installed.
    """
    with optional_dependency("plot", "matplotlib"):
        from vlmcore.charts import _matplotlib  # noqa: PLC0415 - the door
    return _matplotlib.figure_of(chart)


def _check_side(field: str, side: int, least: int) -> None:
    require_count(**{field: side})
    if side < least:
        raise ContractError(field, f"got {side}, expected at least {least}")
    require_at_most("max_side_px", side, _LIMITS.max_side_px)
