"""Tests of `vlmcore.rollout.open_loop_documents` and of what a report shows."""

from __future__ import annotations

import contextlib
import copy
import json
import math
import pickle
from typing import Any

import attrs
import jsonschema
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vlmcore.errors import ContractError, DocumentError
from vlmcore.rollout import OpenLoopReport
from vlmcore.rollout.open_loop_documents import (
    OPEN_LOOP,
    open_loop_report_from_document,
    open_loop_report_from_json,
    open_loop_report_to_document,
    open_loop_report_to_json,
)
from vlmcore.rollout.open_loop_report import GateCounts, Latency, OpenLoopTrace
from vlmcore.safety.findings import ViolationKind
from vlmcore.testing.contract_strategies import hostile_json, names

SCHEMA = jsonschema.Draft202012Validator(OPEN_LOOP.json_schema())
NAN = math.nan
REPORT = OpenLoopReport(
    policy="mine",
    episodes=2,
    observations=9,
    failures=1,
    failure_examples=("mine: silent",),
    names=("x", "gripper"),
    units=("rad", ""),
    has_levels=(False, True),
    count=[[8, 8], [4, 0]],
    mae=[[0.5, 0.25], [1.0, NAN]],
    rmse=[[0.5, 0.5], [1.5, NAN]],
    worst=[[1.0, 1.0], [2.0, NAN]],
    agreement=[[NAN, 0.75], [NAN, NAN]],
    lost=(1, 0),
    unknown=(0, 2),
    latency=Latency(median_ms=3, p95_ms=4.5, longest_ms=20),
    gate=GateCounts(chunks=8, unsafe=1, violations={ViolationKind.STEP: 3}),
)


@st.composite
def reports(draw: st.DrawFn) -> OpenLoopReport:
    """Draw reports that are true."""
    columns = draw(st.lists(names(), min_size=1, max_size=4, unique=True))
    steps, width = draw(st.integers(0, 4)), len(columns)
    has_levels = draw(st.lists(st.booleans(), min_size=width, max_size=width))
    cells = st.lists(st.integers(0, 9), min_size=steps * width, max_size=steps * width)
    count = np.array(draw(cells), np.float64).reshape(steps, width)
    error = np.array(draw(cells), np.float64).reshape(steps, width) / 7
    known = np.where(count > 0, error, NAN)
    return OpenLoopReport(
        policy=draw(names()),
        episodes=1,
        observations=5,
        failures=draw(st.integers(0, 5)),
        names=columns,
        units=[""] * width,
        has_levels=has_levels,
        count=count,
        mae=known,
        rmse=known * 2,
        worst=known * 3,
        agreement=np.where(has_levels, np.minimum(known, 1), NAN),
        lost=[0] * width,
        unknown=[3] * width,
    )


def test_a_report_says_what_was_found_in_words_and_a_table() -> None:
    """
    Failures, lost values and the gate are told before the numbers can be believed.
    """
    assert [
        "mine: 2 episodes, 9 observations, 1 failure",
        "failed: mine: silent",
        "an answer takes 3 ms, 95 of 100 at most 4.5, the longest 20",
        "the gate would stop 1 of 8 chunks as they came: 3 too far from the step before",
        "dimension  unit  mean error    rmse  largest  first step  last step    same",
        "x          rad       0.6667  0.9574        2         0.5          1",
        "gripper                0.25     0.5        1        0.25             75.0 %",
        "1 proposed values could not be compared: they are no numbers, or no rotation",
        "2 recorded values are no numbers, and nothing was compared with them",
    ] == str(REPORT).splitlines()


def test_a_notebook_shows_the_same_with_charts_and_nothing_that_runs() -> None:
    """
    What a policy is called is text.
    """
    trace = OpenLoopTrace(
        names=("x",), recorded=np.zeros((3, 1)), proposed=np.array([[0.0], [NAN], [1.0]])
    )
    shown = attrs.evolve(REPORT, policy="<script>mine", trace=trace)._repr_html_()
    assert 2 == shown.count("<svg")
    assert "<script" not in shown
    assert "75.0 %" in shown


def test_nothing_compared_gives_a_report_without_numbers() -> None:
    """
    A chart of it is refused.
    """
    empty = np.zeros((0, 1))
    tables = dict.fromkeys(("count", "mae", "rmse", "worst", "agreement"), empty)
    none = attrs.evolve(
        REPORT, names=("x",), units=("",), has_levels=(False,), lost=(0,), unknown=(0,), **tables
    )
    assert "x" == str(none).splitlines()[-1]
    assert "<svg" not in none._repr_html_()
    assert none == open_loop_report_from_json(open_loop_report_to_json(none))
    with pytest.raises(ContractError, match="expected at least one"):
        none.error_chart()


def test_charts_hold_the_errors_by_step() -> None:
    """
    With the units of the columns.
    """
    chart = REPORT.error_chart()
    assert (2, ("rad", "")) == (chart.horizon, chart.units)


def test_reports_are_compared_copied_and_pickled_by_value() -> None:
    """
    As all contracts.
    """
    assert REPORT == pickle.loads(pickle.dumps(REPORT)) == copy.deepcopy(REPORT)
    assert attrs.evolve(REPORT, lost=(0, 0)) != REPORT


@given(reports())
def test_a_report_is_read_back_exactly_and_its_schema_knows_it(report: OpenLoopReport) -> None:
    """
    Whatever it says.
    """
    text = open_loop_report_to_json(report)
    assert report == open_loop_report_from_json(text)
    SCHEMA.validate(json.loads(text))


def test_the_full_report_is_read_back_too() -> None:
    """
    With latency and gate.
    """
    assert REPORT == open_loop_report_from_json(open_loop_report_to_json(REPORT))
    SCHEMA.validate(open_loop_report_to_document(REPORT))


def changed(**changes: Any) -> dict[str, Any]:
    return open_loop_report_to_document(REPORT) | changes


FAULTS = [
    (changed(episodes=-1), "$.episodes"),
    (changed(failures=10), "$.failures"),
    (changed(names=["x", "x"], agreement={}), "$.names"),
    (changed(units=["rad"]), "$.units"),
    (changed(mae=[[0.5]]), "$.mae[0]"),
    (changed(mae=[[0.5, 0.5]]), "$.mae"),
    (changed(mae=[[0.5, -0.5], [0, 0]]), "$.mae"),
    (changed(agreement={"y": [1, 1]}), "$.agreement.y"),
    (changed(agreement={"x": [1]}), "$.agreement.x"),
    (changed(agreement={"x": [2, 1]}), "$.agreement.x[0]"),
    (changed(latency={"median_ms": 5, "p95_ms": 4, "longest_ms": 6}), "$.latency"),
    (changed(gate={"chunks": 1, "unsafe": 2, "violations": {}}), "$.gate"),
    (changed(gate={"chunks": 1, "unsafe": 1, "violations": {"odd": 1}}), "$.gate.violations"),
    (changed(more=1), "$.more"),
    (changed(version=2), "$.version"),
]


@pytest.mark.parametrize(("document", "place"), FAULTS)
def test_a_fault_is_told_with_its_place(document: dict[str, Any], place: str) -> None:
    """
    And nothing else is.
    """
    with pytest.raises(DocumentError) as error:
        open_loop_report_from_document(document)
    assert place in [path for path, _ in error.value.faults]


@given(hostile_json())
def test_any_json_gives_a_report_or_its_faults(value: Any) -> None:
    """
    And nothing else.
    """
    with contextlib.suppress(DocumentError):
        open_loop_report_from_document(value)
    for key in OPEN_LOOP.keys:
        with contextlib.suppress(DocumentError):
            open_loop_report_from_document(changed(**{key: value}))


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"policy": ""}, "policy"),
        ({"observations": 1.5}, "observations"),
        ({"lost": (0,)}, "lost"),
        ({"count": [[1.0]]}, "count"),
        ({"worst": [[math.inf, 0], [0, 0]]}, "worst"),
    ],
)
def test_a_report_that_cannot_be_is_refused(changes: dict[str, Any], field: str) -> None:
    """
    With the name of its field.
    """
    with pytest.raises(ContractError) as error:
        attrs.evolve(REPORT, **changes)
    assert field == error.value.field


@pytest.mark.parametrize(
    ("make", "field"),
    [
        (lambda: Latency(median_ms=2, p95_ms=1, longest_ms=3), "p95_ms"),
        (lambda: Latency(median_ms=NAN, p95_ms=1, longest_ms=3), "median_ms"),
        (lambda: GateCounts(chunks=1, unsafe=2), "unsafe"),
        (lambda: GateCounts(chunks=1, unsafe=1, violations={"step": 1}), "violations"),
    ],
)
def test_parts_of_a_report_that_cannot_be_are_refused(make: Any, field: str) -> None:
    """
    With the name of their field.
    """
    with pytest.raises(ContractError) as error:
        make()
    assert field == error.value.field
