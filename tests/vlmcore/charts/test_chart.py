"""Tests of `vlmcore.charts.chart`."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest

from vlmcore.charts.chart import Chart
from vlmcore.errors import ContractError

NAN = float("nan")


def chart(**fields: Any) -> Chart:
    return Chart(**{"values": [[0.0, 1.0], [0.5, 2.0]], "names": ("x", "y")} | fields)


def test_a_later_write_does_not_change_a_chart() -> None:
    """
    Arrays are copies in memory that nobody can write to.
    """
    values, marks = np.zeros((2, 2)), np.zeros((2, 2), np.bool_)
    made = chart(values=values, marks=marks)
    values[:], marks[:] = 7.0, True

    assert made.marks is not None
    assert (0.0, False) == (made.values.sum(), bool(made.marks.any()))


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda made: pickle.loads(pickle.dumps(made))])
def test_a_chart_survives_copying(copied: Any) -> None:
    """
    It is built anew, and checked.
    """
    made = copied(chart(low=[-1, -1], high=[1, 3], marks=np.ones((1, 2), np.bool_)))

    assert [[0.0, 1.0], [0.5, 2.0]] == made.values.tolist()
    assert (1, 2, False) == (made.looked_at, made.horizon, made.values.flags.writeable)


def test_what_was_before_stands_one_step_before_the_first() -> None:
    """
    It has no mark: a report is about the chunk.
    """
    made = chart(before=[9.0, 8.0], marks=np.array([[False, True]]))

    assert [-1.0, 0.0, 1.0] == made.steps().tolist()
    assert [8.0, 1.0, 2.0] == made.series(made.values, 1).tolist()
    assert [False, True, False] == made.marked(1).tolist()


BOUNDS = "expected finite low < high"
ONE_TOO_MANY = np.ones((3, 2), np.bool_)
WRONG: list[tuple[dict[str, Any], str]] = [
    ({"values": [[]]}, "values: got 0 dimensions, expected 1 to 2,048"),
    ({"values": [[1.0]]}, "names: got 2 names, expected one a dimension, 1"),
    ({"values": [["1", "2"]]}, "values[0][0]: got '1', expected a number"),
    ({"names": ("x", "x")}, "names: got ['x'] more than once, expected each name once"),
    ({"units": ("m",)}, "units: got ('m',), expected 2 texts"),
    ({"units": ("m", "\b")}, "units[1]: got '\\x08', expected no control characters ('\\x08')"),
    ({"low": [0, 0]}, "high: got None, expected both bounds or neither"),
    ({"low": [0], "high": [1]}, "low: got 1 numbers, expected 2"),
    ({"low": [0, 1], "high": [1, 1]}, f"low[1]: got 1 and a high of 1, {BOUNDS}"),
    ({"low": [NAN] * 2, "high": [1] * 2}, f"low[0]: got nan and a high of 1, {BOUNDS}"),
    ({"before": [1.0]}, "before: got 1 numbers, expected 2"),
    ({"marks": [[1, 0]]}, "marks: got int64 of shape [1, 2], expected bool of axes [U, D]"),
    ({"marks": ONE_TOO_MANY}, "marks: got shape [3, 2], expected 1 to 2 steps of 2"),
    ({"marks": ONE_TOO_MANY[:0]}, "marks: got shape [0, 2], expected 1 to 2 steps of 2"),
    ({"proposed": [[1.0, 2.0]]}, "proposed: got shape [1, 2], expected [2, 2]"),
    ({"rate_hz": 0}, "rate_hz: got 0.0, expected a finite number above 0"),
    ({"rate_hz": True}, "rate_hz: got True, expected a finite number above 0"),
    ({"title": "a\nb"}, "title: got 'a\\nb', expected no control characters ('\\n')"),
]


@pytest.mark.parametrize(("fields", "message"), WRONG)
def test_what_does_not_fit_together_is_refused(fields: dict[str, Any], message: str) -> None:
    """
    One sentence names the field, what came, and what was expected.
    """
    with pytest.raises(ContractError) as error:
        chart(**fields)
    assert message == str(error.value)
