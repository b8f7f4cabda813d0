"""The verdict of the gate, in words that a person can act on."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from vlmcore.contracts.embodiment import ActionSpace, Reference
from vlmcore.safety.findings import WORDS, Findings, Violation, ViolationKind
from vlmcore.safety.remedies import Remedy
from vlmcore.safety.report import RefusalReason, SafetyReport
from vlmcore.safety.vetted import VettedChunk

__all__ = ["verdict_lines"]

_LISTED = 10  # violations
_DIMENSIONS = 6  # that are named with their counts
_WHY = {
    RefusalReason.VIOLATIONS: "it breaks limits, and --mode {mode} changes nothing",
    RefusalReason.FIRST_STEP_UNCHECKED: "its first step cannot be checked: give --previous",
    RefusalReason.NO_REFERENCE: "nobody knows where to stay: give --previous",
    RefusalReason.REFERENCE_OUT_OF_BOUNDS: "what was sent last is out of bounds",
    RefusalReason.POSITION_UNKNOWN: "nobody knows where what it moves is: give --position",
    RefusalReason.NOTHING_LEFT: "a value of its first step is not finite",
    RefusalReason.REMEDY_FAILED: "what --mode {mode} made of it breaks limits, too",
}
_STEPS = {
    Reference.ABSOLUTE: "moves",
    Reference.DELTA: "speeds up",
    Reference.CHUNK_RELATIVE: "moves",
    Reference.VELOCITY: "speeds up",
    Reference.TORQUE: "grows",
}
_UNKNOWN = (ViolationKind.START_UNKNOWN, ViolationKind.POSITION_UNKNOWN)


def verdict_lines(
    report: SafetyReport, space: ActionSpace, vetted: VettedChunk | None
) -> Iterator[str]:
    """Say whether a chunk is safe, what is wrong with it, and what became of it."""
    size = f"{report.execution_horizon} x {report.action_dim} actions of {report.policy_source}"
    findings = report.findings
    if vetted is None:
        yield f"unsafe: {size} for {report.embodiment}"
        yield f"  refused, since {_why(report.reason, report.mode)}"
    elif findings is None or not report.changed:
        yield f"safe: {size} keep every limit of {report.embodiment}"
    else:
        changed = np.count_nonzero(vetted.values != findings.values[: vetted.horizon])
        yield f"made safe by {report.mode.value}: {size} for {report.embodiment}"
        if vetted.horizon < report.execution_horizon:
            left = f"{vetted.horizon} of {report.execution_horizon}"
            yield f"  {left} steps are left: it ends before the first value that is not finite"
        yield f"  {changed} of {vetted.values.size} values are others than those that came"
    if not report.previous_action_provided:
        yield f"  what was sent last is unknown: {_from_nowhere(space)}"
    if findings is not None:
        yield from _found(findings, space)


def _from_nowhere(space: ActionSpace) -> str:
    """Say what follows for targets, and for all else, where there are any."""
    said = ["no target is safe"] if space.is_target.any() else []
    if not space.is_target.all():
        said.append("what is no target was taken to start from zero")
    return ", and ".join(said)


def _why(reason: RefusalReason | None, mode: Remedy) -> str:
    if reason is None:
        return "it is not safe"
    return _WHY.get(reason, reason.value.replace("_", " ")).format(mode=mode.value)


def _found(findings: Findings, space: ActionSpace) -> Iterator[str]:
    counts = [f"{count} {WORDS[kind]}" for kind, count in findings.counts.items() if count]
    yield f"  in what came: {', '.join(counts)}"
    per_dim = findings.marks().sum(axis=0)
    worst = np.argsort(-per_dim, kind="stable")[:_DIMENSIONS].tolist()
    named = [f"{space.names[dim]} {per_dim[dim]}" for dim in worst if per_dim[dim]]
    if named:
        more = ", ..." if np.count_nonzero(per_dim) > len(named) else ""
        yield f"  by dimension: {', '.join(named)}{more}"
    # That nothing is known is said once, and not of every dimension.
    unsaid = sum(findings.counts[kind] for kind in _UNKNOWN)
    listed = findings.violations(_LISTED + unsaid)
    first = [violation for violation in listed if violation.kind not in _UNKNOWN][:_LISTED]
    for violation in first:
        yield f"  {_words(violation, space)}"
    left = sum(findings.counts.values()) - unsaid - len(first)
    if left:
        yield f"  and {left} more"


def _words(violation: Violation, space: ActionSpace) -> str:
    where = "last command" if violation.step is None else f"step {violation.step}"
    name, dim = repr(violation.name), space.dims[violation.dim]
    unit = f" {dim.unit}" if dim.unit else ""
    value, limit = _told_apart(violation.value, violation.limit)
    match violation.kind:
        case ViolationKind.NON_FINITE:
            return f"{where}, {name}: is {value}, expected a finite number"
        case ViolationKind.OUT_OF_BOUNDS | ViolationKind.REFERENCE_OUT_OF_BOUNDS:
            side = "above high" if violation.value > dim.high else "below low"
            return f"{where}, {name}: {value}{unit} is {side}, {limit}{unit}"
        case ViolationKind.STEP:
            change = _STEPS[dim.reference]
            if violation.form is not None:
                change, unit = "turns", " rad"
            return f"{where}, {name}: {change} by {value}{unit}, at most {limit}{unit} is allowed"
        case ViolationKind.POSITION:
            return f"{where}, {name}: leads to {value}, beyond the position {limit}"
        case ViolationKind.NOT_A_LEVEL:
            return f"{where}, {name}: {value}{unit} is no level, the nearest is {limit}{unit}"
        case _:
            return str(violation)


def _told_apart(value: float, limit: float | None) -> tuple[str, str]:
    """Write both with as many digits as it takes to see that they differ."""
    if limit is None:
        return f"{value:g}", ""
    for digits in (6, 9, 12):
        texts = f"{value:.{digits}g}", f"{limit:.{digits}g}"
        if texts[0].lstrip("-") != texts[1].lstrip("-"):
            return texts
    return repr(value), repr(limit)
