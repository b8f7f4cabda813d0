"""
The report of an open-loop evaluation as a JSON document, both ways.

Reading is strict: a document is taken as a whole or refused with all its faults, each with its
place. What is written is read back exactly, but for the trace of an episode, which is not written.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import attrs
import numpy as np

from vlmcore._arguments import shown
from vlmcore._arrays import Float64Array
from vlmcore.contracts.faults import Faults
from vlmcore.contracts.json_text import read_json, write_json
from vlmcore.contracts.schemas import DocumentKind
from vlmcore.contracts.shapes import Field, ListOf, MapOf, Number, Record, Text, Whole, path_of
from vlmcore.limits import ContractLimits, DocumentLimits
from vlmcore.rollout._checks import MOST_COUNTED
from vlmcore.rollout.open_loop_report import GateCounts, Latency, OpenLoopReport
from vlmcore.safety.findings import ViolationKind

__all__ = [
    "DOCUMENTS",
    "OPEN_LOOP",
    "open_loop_report_from_document",
    "open_loop_report_from_json",
    "open_loop_report_to_document",
    "open_loop_report_to_json",
]

_LIMITS = ContractLimits()
_NAME = Text(longest=_LIMITS.max_name_characters)
_COUNT = Whole(smallest=0, largest=MOST_COUNTED)
_ERRORS = ("mae", "rmse", "worst")


def _columns(item: Any) -> ListOf:
    return ListOf(item=item, fewest=1, most=_LIMITS.max_actions)


def _steps(item: Any) -> ListOf:
    return ListOf(item=_columns(item), fewest=0, most=_LIMITS.max_horizon)


_LATENCY = Record(
    fields={
        "median_ms": Field(Number(), "Half of the answers took no longer."),
        "p95_ms": Field(Number(), "95 of 100 took no longer."),
        "longest_ms": Field(Number(), "The longest."),
    }
)
_GATE = Record(
    fields={
        "chunks": Field(_COUNT, "How many it was asked about."),
        "unsafe": Field(_COUNT, "How many it would not have let pass as they came."),
        "violations": Field(
            MapOf(item=_COUNT, most=len(ViolationKind)), "How many of each kind that there was."
        ),
    }
)

OPEN_LOOP = DocumentKind(
    name="robot-open-loop",
    title="How far a policy is from what was recorded, by step of its chunks and by dimension.",
    keys={
        "policy": Field(_NAME, "The name of the policy."),
        "episodes": Field(_COUNT, "How many episodes there were."),
        "observations": Field(_COUNT, "How many observations it was shown."),
        "failures": Field(_COUNT, "How many of them it could not answer."),
        "failure_examples": Field(
            ListOf(item=Text(), fewest=0, most=_LIMITS.max_levels), "What it said then."
        ),
        "names": Field(_columns(_NAME), "What the columns are."),
        "units": Field(_columns(Text(blank=True)), "The unit of each, empty where there is none."),
        "count": Field(_steps(_COUNT), "How many values were compared, by step and column."),
        "mae": Field(_steps(Number()), "The mean of their errors; 0 where nothing was compared."),
        "rmse": Field(_steps(Number()), "The root of the mean of their squares; 0 as well."),
        "worst": Field(_steps(Number()), "The largest error; 0 as well."),
        "agreement": Field(
            MapOf(
                item=ListOf(item=Number(largest=1), fewest=0, most=_LIMITS.max_horizon),
                most=_LIMITS.max_actions,
            ),
            "How often the level was the same, by step, of each column that has levels.",
        ),
        "lost": Field(_columns(_COUNT), "Proposed values that could not be compared, by column."),
        "unknown": Field(_columns(_COUNT), "Recorded values that are no numbers, by column."),
        "latency": Field(_LATENCY, "How long its answers took.", optional=True),
        "gate": Field(_GATE, "What a gate said of the chunks.", optional=True),
    },
)

#: The documents of open-loop evaluation by their names.
DOCUMENTS: Mapping[str, DocumentKind] = {OPEN_LOOP.name: OPEN_LOOP}


def open_loop_report_to_document(report: OpenLoopReport) -> dict[str, Any]:
    """Write *report* as a document, in plain values of JSON."""
    said: dict[str, Any] = {
        **OPEN_LOOP.header(),
        **{key: getattr(report, key) for key in ("policy", "episodes", "observations", "failures")},
        **{key: list(getattr(report, key)) for key in ("failure_examples", "names", "units")},
        "count": [[int(count) for count in row] for row in report.count],
        **{key: np.nan_to_num(getattr(report, key)).tolist() for key in _ERRORS},
        "agreement": {
            name: np.nan_to_num(report.agreement[:, i]).tolist()
            for i, name in enumerate(report.names)
            if report.has_levels[i]
        },
        "lost": list(report.lost),
        "unknown": list(report.unknown),
    }
    if report.latency is not None:
        said["latency"] = attrs.asdict(report.latency)
    if report.gate is not None:
        violations = {kind.value: count for kind, count in report.gate.violations.items()}
        said["gate"] = {
            "chunks": report.gate.chunks,
            "unsafe": report.gate.unsafe,
            "violations": violations,
        }
    return said


def open_loop_report_from_document(value: Any) -> OpenLoopReport:
    """
    Read a report from a document, in plain values of JSON.

    Raises:
        DocumentError: If there are faults; all of them are listed.
    """
    faults = Faults(OPEN_LOOP.name)
    data = OPEN_LOOP.read(value, faults)
    made = _tables(data, faults)
    if "latency" in data:
        with faults.at("$.latency"):
            made["latency"] = Latency(**data["latency"])
    if "gate" in data:
        with faults.at("$.gate"):
            made["gate"] = _gate(data["gate"], faults)
    said = ("policy", "episodes", "observations", "failures", "failure_examples", "names", "units")
    return faults.finish(
        lambda: OpenLoopReport(**{key: data[key] for key in (*said, "lost", "unknown")}, **made),
        **{key: f"$.{key}" for key in OPEN_LOOP.keys},
    )


def _tables(data: Mapping[str, Any], faults: Faults) -> dict[str, Any]:
    """Read the numbers by step and column; where nothing was compared there is none."""
    names = data.get("names", [])
    count = _table("count", data.get("count", []), len(names), faults)
    said = {key: _table(key, data.get(key, []), len(names), faults) for key in _ERRORS}
    agreement, has_levels = np.full(count.shape, math.nan), [False] * len(names)
    for name, values in data.get("agreement", {}).items():
        if name not in names or len(values) != len(count):
            expected = f"expected {len(count)} numbers of one of the columns"
            path = path_of("$.agreement", name)
            faults.add(path, f"got {len(values)} numbers for {shown(name)}, {expected}")
            continue
        agreement[:, names.index(name)] = values
        has_levels[names.index(name)] = True
    tables = {**said, "agreement": agreement}
    for key, values in tables.items():
        if values.shape == count.shape:  # the report says so, if not
            tables[key] = np.where(count > 0, values, math.nan)
    return {"count": count, **tables, "has_levels": has_levels}


def _table(key: str, rows: list[list[Any]], width: int, faults: Faults) -> Float64Array:
    for i, row in enumerate(rows):
        if len(row) != width:
            faults.add(f"$.{key}[{i}]", f"got {len(row)} items, expected one a column, {width}")
            return np.empty((0, width))
    return np.array(rows, np.float64).reshape(len(rows), width)


def _gate(said: Mapping[str, Any], faults: Faults) -> GateCounts:
    kinds = {kind.value: kind for kind in ViolationKind}
    violations = {}
    for name, count in said["violations"].items():
        if name in kinds:
            violations[kinds[name]] = count
        else:
            known = ", ".join(kinds)
            faults.add("$.gate.violations", f"got {shown(name)}, expected some of {known}")
    return GateCounts(chunks=said["chunks"], unsafe=said["unsafe"], violations=violations)


def open_loop_report_from_json(
    text: str | bytes, *, limits: DocumentLimits | None = None
) -> OpenLoopReport:
    """
    Read a report.

    Raises:
        DocumentError: If the document has faults; all of them are listed.
        ContractError: If *text* is not JSON.
        LimitExceededError: If it is larger than *limits* allow.
    """
    return open_loop_report_from_document(read_json(text, limits=limits))


def open_loop_report_to_json(report: OpenLoopReport) -> str:
    """
    Write a report.

    Raises:
        LimitExceededError: If it is larger than a document may be.
    """
    return write_json(open_loop_report_to_document(report))
