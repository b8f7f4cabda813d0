"""What contracts look like in notebooks."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING

import attrs

from vlmcore._arrays import Float64Array
from vlmcore.charts.chart import Chart
from vlmcore.charts.drawing import draw_svg
from vlmcore.contracts._markup import card, details, number, paragraph, table, text
from vlmcore.contracts._thumbnails import data_url, shrunk

if TYPE_CHECKING:
    from vlmcore.contracts.actions import ActionChunk
    from vlmcore.contracts.dimensions import ActionDim
    from vlmcore.contracts.embodiment import CameraSpec, Embodiment
    from vlmcore.contracts.observation import Observation
    from vlmcore.contracts.rotations import RotationGroup

__all__ = [
    "LIMITS_WORDS",
    "chart_parts",
    "chunk_html",
    "embodiment_html",
    "observation_html",
]

_ROWS = 48  # rows of a table; the others are counted
_FIRST, _LAST = 3, 2  # steps of a chunk that its table shows
_INSTRUCTION_CHARACTERS = 600
_FEW_CAMERAS = 4

# By the values of `LimitsSource`.
LIMITS_WORDS = {
    "template": "Template limits, certified by nobody.",
    "dataset": "Limits from the statistics of a dataset.",
    "manufacturer": "Limits from the data sheet of the robot or its controller.",
}


def embodiment_html(robot: Embodiment) -> str:
    """Show a robot: its dimensions with their bounds, its cameras, its state."""
    space = robot.actions
    source = LIMITS_WORDS[robot.limits_source.value]
    said = f"{len(space.dims)} dimensions at {number(space.rate_hz)} Hz. <em>{source}</em>"
    head = ("", "name", "unit", "reference", "", "low", "high", "most per step")
    rows = [_dim_row(i, dim, float(space.max_step[i])) for i, dim in enumerate(space.dims[:_ROWS])]
    cameras = ", ".join(_camera(camera) for camera in robot.cameras)
    states = ", ".join(text(name) for name in robot.state_names[:_ROWS])
    mode = f"Mode: {text(robot.action_mode)}" if robot.action_mode else ""
    return card(
        text(robot.name),
        paragraph(said),
        table(head, rows, texts=5),
        _more(len(space.dims), "dimensions"),
        *(paragraph(_rotation(group, space.rate_hz)) for group in space.rotations[:_ROWS]),
        paragraph(f"Cameras: {cameras}"),
        paragraph(mode) if mode else "",
        details(
            f"{len(robot.state_names)} numbers of state",
            paragraph(states) + _more(len(robot.state_names), "numbers"),
        ),
        paragraph(text(robot.notes, _INSTRUCTION_CHARACTERS), quiet=True) if robot.notes else "",
    )


def _dim_row(index: int, dim: ActionDim, max_step: float) -> tuple[str, ...]:
    notes = []
    if dim.period is not None:
        notes.append(f"comes round after {number(dim.period)}")
    if dim.levels is not None:
        levels = ", ".join(map(number, dim.levels[:4]))
        notes.append(f"levels {levels}{', …' if len(dim.levels) > 4 else ''}")
    if dim.position_low is not None and dim.position_high is not None:
        notes.append(f"leads to {number(dim.position_low)} … {number(dim.position_high)}")
    if dim.rotation is not None:
        notes.append(f"part of the rotation {text(dim.rotation)}")
    step = "any" if max_step == float("inf") else number(max_step)
    return (
        str(index),
        text(dim.name),
        text(dim.unit),
        dim.reference.value,
        "; ".join(notes),
        number(dim.low),
        number(dim.high),
        step,
    )


def _rotation(group: RotationGroup, rate_hz: float) -> str:
    form = group.form.value.replace("_", " ")
    return (
        f"Rotation {text(group.name)}: {form}, at most {number(group.step_rad(rate_hz))} rad a step"
    )


def _camera(camera: CameraSpec) -> str:
    if camera.height_px is None:
        return text(camera.name)
    return f"{text(camera.name)} ({camera.height_px} x {camera.width_px})"


def _more(count: int, what: str, shown: int = _ROWS) -> str:
    return paragraph(f"… and {count - shown:,} more {what}", quiet=True) if count > shown else ""


def observation_html(observation: Observation) -> str:
    """Show what a policy is shown: the instruction, the newest frame of each camera, the state."""
    frames = f"{observation.history} frame{'' if observation.history == 1 else 's'}"
    said = (
        f"{frames} at {number(observation.frame_rate_hz)} Hz, the newest captured at "
        f"{number(observation.captured_at_s)} s"
    )
    state = observation.state
    rows = [(str(i), number(value)) for i, value in enumerate(state[:_ROWS].tolist())]
    longest_px = 128 if len(observation.images) <= _FEW_CAMERAS else 72
    look = "display:inline-block;margin:.3em .8em .3em 0;vertical-align:top"
    figures = []
    for name, shown in observation.images.items():
        small = shrunk(shown[-1], longest_px)
        size = f"{shown.shape[1]} x {shown.shape[2]}, {len(shown)} of {observation.history}"
        image = (
            f'<img src="{data_url(small)}" alt="{html.escape(name)}" '
            f'width="{small.shape[1]}" height="{small.shape[0]}">'
        )
        caption = f'<span style="font-size:.85em">{text(name, 40)}<br>{size}</span>'
        figures.append(f'<span style="{look}">{image}<br>{caption}</span>')
    return card(
        text(observation.instruction, _INSTRUCTION_CHARACTERS),
        paragraph(said, quiet=True),
        f"<div>{''.join(figures)}</div>",
        details(
            f"State of {len(state)} numbers",
            table(("", "value"), rows) + _more(len(state), "numbers"),
        ),
    )


def chunk_html(chunk: ActionChunk, chart: Chart) -> str:
    """Show a chunk: a chart, and its first and last steps."""
    return card(*chart_parts(chunk.source, chunk.observed_at_s, chart))


def chart_parts(source: str, observed_at_s: float, chart: Chart) -> tuple[str, ...]:
    """Show actions: who proposes them, a chart, and the first and last steps."""
    steps, width = chart.values.shape
    said = f"{steps:,} x {width:,} (steps x dimensions), observed at {number(observed_at_s)} s"
    return (
        text(source),
        paragraph(said, quiet=True),
        draw_svg(attrs.evolve(chart, title="")),  # it stands above
        details("First and last steps", _steps_table(chart.names, chart.values)),
    )


def _steps_table(names: tuple[str, ...], values: Float64Array) -> str:
    steps = len(values)
    shown = sorted({*range(min(_FIRST, steps)), *range(max(0, steps - _LAST), steps)})
    head = ["", "name", *(f"step {step}" for step in shown)]
    rows = [
        [str(i), text(name), *(number(value) for value in values[shown, i].tolist())]
        for i, name in enumerate(names[:_ROWS])
    ]
    return table(head, rows, texts=2) + _more(len(names), "dimensions")
