"""
The report of the gate as a JSON document, both ways.

Reading is strict: a document is taken as a whole or refused with all its faults, each with its
place. What is written is read back exactly, as a `SafetySummary`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from vlmcore.contracts.faults import Faults
from vlmcore.contracts.json_text import read_json, write_json
from vlmcore.contracts.schemas import DocumentKind
from vlmcore.contracts.shapes import Field, Flag, Record, Text, Whole
from vlmcore.limits import ContractLimits, DocumentLimits
from vlmcore.safety.findings import ViolationKind
from vlmcore.safety.remedies import Remedy
from vlmcore.safety.report import RefusalReason, SafetyReport, SafetySummary

__all__ = [
    "DOCUMENTS",
    "SAFETY_REPORT",
    "safety_report_from_document",
    "safety_report_from_json",
    "safety_report_to_document",
    "safety_report_to_json",
]

_LIMITS = ContractLimits()
_OLD_MODES = {  # what older writers say
    "Block unsafe": Remedy.BLOCK,
    "Clamp safely": Remedy.CLAMP,
    "Hold position on unsafe": Remedy.HOLD,
    "Report only": Remedy.REPORT,
}
# Where each kind is counted. The first three are always there, the others if there are any.
_COUNTS = {
    ViolationKind.NON_FINITE: ("non_finite_values", "NaN or infinity."),
    ViolationKind.OUT_OF_BOUNDS: ("out_of_bounds_values", "Below the smallest, above the largest."),
    ViolationKind.STEP: ("per_step_delta_values", "Too far from the step before."),
    ViolationKind.NOT_A_LEVEL: ("not_a_level_values", "Between levels; none if missing."),
    ViolationKind.NOT_A_ROTATION: (
        "not_a_rotation_values",
        "Numbers that are no rotation together, counted once for each; none if missing.",
    ),
    ViolationKind.POSITION: (
        "position_values",
        "Changes and rates that lead out of the positions that are allowed; none if missing.",
    ),
    ViolationKind.START_UNKNOWN: (
        "start_unknown",
        "Targets without a last command, beside the total; none if missing.",
    ),
    ViolationKind.REFERENCE_OUT_OF_BOUNDS: (
        "reference_out_of_bounds",
        "Numbers of the last command that are out of bounds, beside the total; none if missing.",
    ),
    ViolationKind.POSITION_UNKNOWN: (
        "position_unknown",
        "Dimensions without a measured position, beside the total; none if missing.",
    ),
}
_OLD_COUNTS = (ViolationKind.NON_FINITE, ViolationKind.OUT_OF_BOUNDS, ViolationKind.STEP)
_MOST = _LIMITS.max_horizon * _LIMITS.max_actions
_NAME = Text(blank=True, longest=_LIMITS.max_name_characters)
_STEPS = Whole(smallest=1, largest=_LIMITS.max_horizon)

_VIOLATIONS = Record(
    fields={
        **{
            key: Field(Whole(smallest=0, largest=_MOST), meaning, optional=kind not in _OLD_COUNTS)
            for kind, (key, meaning) in _COUNTS.items()
        },
        "total": Field(
            Whole(smallest=0, largest=_MOST * len(_COUNTS)),
            "The sum of all counts whose key ends in _values.",
        ),
    }
)

SAFETY_REPORT = DocumentKind(
    name="robot-action-safety",
    title="What the gate found in a chunk as it came, and whether what left is safe.",
    keys={
        "embodiment": Field(_NAME, "The name of the robot, if the gate was told."),
        "action_mode": Field(_NAME, "What its documents call the way of control."),
        "policy_source": Field(
            Text(longest=_LIMITS.max_name_characters), "Which policy proposed the chunk."
        ),
        "input_horizon": Field(_STEPS, "How many steps it proposed."),
        "execution_horizon": Field(_STEPS, "How many of them were looked at."),
        "action_dim": Field(Whole(smallest=1, largest=_LIMITS.max_actions), "Numbers of a step."),
        "mode": Field(
            Text(one_of=(*(remedy.value for remedy in Remedy), *_OLD_MODES)),
            "What the gate was to do; those with capitals are of older writers.",
        ),
        "previous_action_provided": Field(Flag(), "Whether the last command was known."),
        "violations": Field(_VIOLATIONS, "How many there were of each kind, in what came."),
        "changed": Field(Flag(), "Whether what left differs from what came."),
        "safe_for_handoff": Field(Flag(), "Whether what left keeps every limit."),
        "reason": Field(
            Text(one_of=tuple(reason.value for reason in RefusalReason)),
            "Why it is not safe.",
            optional=True,
        ),
        "cut_steps": Field(
            Whole(smallest=0, largest=_LIMITS.max_horizon),
            "How many steps were cut off at the end, where a value was not finite; none if "
            "missing.",
            optional=True,
        ),
        "warning": Field(
            Text(blank=True, longest=_LIMITS.max_notes_characters),
            "A word of caution by older writers; it is not kept.",
            optional=True,
        ),
    },
)

#: The documents of the gate by their names.
DOCUMENTS: Mapping[str, DocumentKind] = {SAFETY_REPORT.name: SAFETY_REPORT}


def safety_report_to_document(report: SafetyReport | SafetySummary) -> dict[str, Any]:
    """
    Write *report* as a document, in plain values of JSON.

    ``reason``, ``cut_steps`` and the counts that are not of old are there only if they say
    something.
    """
    counts = report.counts
    said: dict[str, Any] = {
        **SAFETY_REPORT.header(),
        "embodiment": report.embodiment,
        "action_mode": report.action_mode,
        "policy_source": report.policy_source,
        "input_horizon": report.input_horizon,
        "execution_horizon": report.execution_horizon,
        "action_dim": report.action_dim,
        "mode": report.mode.value,
        "previous_action_provided": report.previous_action_provided,
        "violations": {
            **{_COUNTS[kind][0]: counts[kind] for kind in _OLD_COUNTS},
            "total": report.total,
            **{
                key: counts[kind]
                for kind, (key, _) in _COUNTS.items()
                if kind not in _OLD_COUNTS and counts[kind]
            },
        },
        "changed": report.changed,
        "safe_for_handoff": report.safe_for_handoff,
    }
    if report.reason is not None:
        said["reason"] = report.reason.value
    if report.cut_steps:
        said["cut_steps"] = report.cut_steps
    return said


def safety_report_from_document(value: Any) -> SafetySummary:
    """
    Read a report from a document, in plain values of JSON.

    Raises:
        DocumentError: If there are faults; all of them are listed.
    """
    faults = Faults(SAFETY_REPORT.name)
    data = SAFETY_REPORT.read(value, faults)
    said = data.get("violations", {})
    counts = {kind: said.get(key, 0) for kind, (key, _) in _COUNTS.items()}
    total = sum(count for kind, count in counts.items() if kind.is_of_values)
    if "total" in said and said["total"] != total:
        problem = f"got {said['total']}, expected {total}, the sum of the counts of values"
        faults.add("$.violations.total", problem)

    def summary() -> SafetySummary:
        mode, reason = data["mode"], data.get("reason")
        same = (SAFETY_REPORT.keys.keys() & data.keys()) - {
            "mode",
            "violations",
            "reason",
            "warning",
        }
        return SafetySummary(
            mode=_OLD_MODES[mode] if mode in _OLD_MODES else Remedy(mode),
            counts=counts,
            reason=None if reason is None else RefusalReason(reason),
            **{key: data[key] for key in same},
        )

    return faults.finish(summary, **{key: f"$.{key}" for key in SAFETY_REPORT.keys})


def safety_report_from_json(
    text: str | bytes, *, limits: DocumentLimits | None = None
) -> SafetySummary:
    """
    Read a report.

    Raises:
        DocumentError: If the document has faults; all of them are listed.
        ContractError: If *text* is not JSON.
        LimitExceededError: If it is larger than *limits* allow.
    """
    return safety_report_from_document(read_json(text, limits=limits))


def safety_report_to_json(report: SafetyReport | SafetySummary) -> str:
    """
    Write a report.

    Example:
        >>> summary = SafetySummary(embodiment="arm", action_mode="", policy_source="doc",
        ...     input_horizon=8, execution_horizon=4, action_dim=7, mode=Remedy.CLAMP,
        ...     previous_action_provided=True, counts={ViolationKind.STEP: 2}, changed=True,
        ...     safe_for_handoff=True, reason=None)
        >>> safety_report_from_json(safety_report_to_json(summary)) == summary
        True
    """
    return write_json(safety_report_to_document(report))
