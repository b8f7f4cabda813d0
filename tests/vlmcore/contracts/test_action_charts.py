"""Tests of `ActionChunk.plot` and `ActionChunk.preview`: what a chunk, a space and a report say."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from safety_cases import JOINT, OFFSET, chunk, gate, joint, space
from vlmcore.contracts._charts import chart_of
from vlmcore.contracts.presets import PRESETS
from vlmcore.errors import ContractError
from vlmcore.safety import Remedy


def test_a_preview_marks_what_a_report_found() -> None:
    """
    A picture with a report has red in it, one without has none.
    """
    made = chunk([[0.05], [0.5]])
    report = gate().check(made, last_command=[0.0])
    images = [made.preview(space=space(JOINT), report=each) for each in (None, report)]
    red = [int((image == (0xD1, 0x00, 0x1F)).all(axis=2).sum()) for image in images]

    assert 0 == red[0] < red[1]


def test_a_robot_stands_for_its_actions() -> None:
    """
    Whoever has an embodiment need not know that a space is in it.
    """
    robot = PRESETS["ALOHA bimanual template"]
    made = chunk([[0.0] * 14], *robot.actions.names)
    drawn = [made.preview(space=each, width_px=400) for each in (robot, robot.actions)]
    np.testing.assert_array_equal(*drawn)


def test_a_plot_is_a_figure_with_the_values() -> None:
    """
    The last command is one step before them.
    """
    made = chunk([[0.1], [0.2]]).plot(space=space(JOINT), last_command={"x": 0.05})
    line = next(line for line in made.axes[0].lines if len(line.get_xdata()) == 3)
    assert ([-1, 0, 1], [0.05, 0.1, 0.2]) == (list(line.get_xdata()), list(line.get_ydata()))


def test_an_offset_is_drawn_from_zero_whatever_was_sent_before_it() -> None:
    """
    The last one was counted from where another chunk began.
    """
    made = chunk([[0.1, 0.1]], "o", "x")
    fields: dict[str, Any] = {"title": "", "report": None, "last_command": [0.4, 0.4]}
    known = chart_of(made.values, made.names, space=space(OFFSET, JOINT), **fields)
    plain = chart_of(made.values, made.names, space=None, **fields)
    assert ([0.0, 0.4], [0.4, 0.4]) == (known.before.tolist(), plain.before.tolist())


def test_steps_after_the_execution_horizon_were_not_looked_at() -> None:
    """
    A report may be shorter than its chunk.
    """
    made = chunk([[0.1], [0.9], [0.2]])
    report = gate(execution_horizon=2).check(made, last_command=[0.0])
    fields: dict[str, Any] = {"title": "", "space": None, "last_command": None}
    chart = chart_of(made.values, made.names, report=report, **fields)

    assert (2, 3) == (chart.looked_at, chart.horizon)
    assert [False, True, False] == chart.marked(0).tolist()


class Marks:
    """Anything with marks will do."""

    def __init__(self, marks: Any) -> None:
        self._marks = marks

    def marks(self) -> Any:
        return self._marks


OTHER = space(joint(name="y"), joint(name="z"))
STEPS = "expected 1 to 2 steps of 2 dimensions: a report on this chunk"
NUMBERS = "expected an array or lists of numbers, axes [D]"
MISSING = "got names with missing ['y'] and unknown [], expected x, y"
WRONG: list[tuple[dict[str, Any], str]] = [
    (
        {"space": OTHER},
        "space: got dimensions without ['x'] and with ['z'], expected those of the chunk, x, y",
    ),
    (
        {"space": space(joint(name="y"), joint(name="x"))},
        "space: got dimensions in another order, expected those of the chunk, x, y",
    ),
    ({"space": OTHER.dims}, "space: got tuple, expected an ActionSpace or an Embodiment"),
    ({"report": 7}, "report: got int, expected something with marks()"),
    ({"report": Marks(None)}, "report: got marks None, expected bool of axes [U, D]"),
    (
        {"report": Marks(np.ones((2, 2)))},
        "marks: got float64 of shape [2, 2], expected bool of axes [U, D]",
    ),
    (
        {"report": Marks(np.ones((9, 2), np.bool_))},
        f"report: got marks of shape [9, 2], {STEPS}",
    ),
    ({"last_command": [0.0]}, "last_command: got 1 numbers, expected 2, one a dimension"),
    ({"last_command": {"x": 0.0}}, f"last_command: {MISSING}"),
    ({"last_command": "ab"}, f"last_command: got str, {NUMBERS}"),
]


@pytest.mark.parametrize(("fields", "message"), WRONG)
@pytest.mark.parametrize("drawn", ["plot", "preview"])
def test_what_does_not_fit_the_chunk_is_refused(
    fields: dict[str, Any], message: str, drawn: str
) -> None:
    """
    One sentence names the argument, what came, and what was expected.
    """
    with pytest.raises(ContractError) as error:
        getattr(chunk([[0.0, 0.0], [0.1, 0.1]], "x", "y"), drawn)(**fields)
    assert message == str(error.value)


def test_a_vetted_chunk_is_drawn_over_what_was_proposed() -> None:
    """
    The marks are on what came; what left keeps every limit.
    """
    vetted = gate(remedy=Remedy.CLAMP).vet(chunk([[0.05], [0.5]]), last_command=[0.0])
    chart = vetted._chart()

    assert [0.05, 0.5] == chart.marked_values.ravel().tolist()
    assert ([-1.0], [1.0], [0.0]) == (
        chart.low.tolist(),
        chart.high.tolist(),
        chart.before.tolist(),
    )
    assert [0.05, 0.15] == pytest.approx(chart.values.ravel().tolist())
    assert vetted.preview(width_px=300, height_px=200).shape == (200, 300, 3)
    assert 960 == vetted.preview().shape[1]
    assert vetted.plot().axes


def test_a_chunk_that_was_safe_has_nothing_behind_it() -> None:
    """
    Nothing was changed.
    """
    vetted = gate().vet(chunk([[0.05]]), last_command=[0.0])
    assert vetted._chart().proposed is None
