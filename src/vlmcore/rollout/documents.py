"""
The report of a replan as a JSON document, both ways.

Reading is strict: a document is taken as a whole or refused with all its faults, each with its
place. What is written is read back exactly.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from vlmcore.contracts.faults import Faults
from vlmcore.contracts.json_text import read_json, write_json
from vlmcore.contracts.schemas import DocumentKind
from vlmcore.contracts.shapes import Field, Text, Whole
from vlmcore.limits import ContractLimits, DocumentLimits
from vlmcore.rollout.replan import ReplanReport

__all__ = [
    "DOCUMENTS",
    "REPLAN_REPORT",
    "replan_report_from_document",
    "replan_report_from_json",
    "replan_report_to_document",
    "replan_report_to_json",
]

_LIMITS = ContractLimits()
_NAME = Text(longest=_LIMITS.max_name_characters)
_STEPS = Whole(smallest=0, largest=_LIMITS.max_horizon)
_HORIZON = Whole(smallest=1, largest=_LIMITS.max_horizon)

REPLAN_REPORT = DocumentKind(
    name="robot-action-replan",
    title="What happened when one plan took over from another.",
    keys={
        "previous_source": Field(_NAME, "Which policy proposed the plan that was executed."),
        "new_source": Field(_NAME, "Which policy proposed the plan that took over."),
        "previous_horizon": Field(_HORIZON, "Steps of the one."),
        "new_horizon": Field(_HORIZON, "Steps of the other, as it was proposed."),
        "executed_steps": Field(_STEPS, "Steps of the previous plan that had been sent."),
        "remaining_previous_steps": Field(_STEPS, "Steps of it that had not."),
        "transition_steps_requested": Field(_STEPS, "Steps to blend, as it was asked for."),
        "transition_steps_applied": Field(_STEPS, "Steps that were blended."),
        "output_horizon": Field(_HORIZON, "Steps that came out."),
    },
)

#: The documents of this floor by their names.
DOCUMENTS: Mapping[str, DocumentKind] = {REPLAN_REPORT.name: REPLAN_REPORT}


def replan_report_to_document(report: ReplanReport) -> dict[str, Any]:
    """Write *report* as a document, in plain values of JSON."""
    return {**REPLAN_REPORT.header(), **attrs.asdict(report)}


def replan_report_from_document(value: Any) -> ReplanReport:
    """
    Read a report from a document, in plain values of JSON.

    Raises:
        DocumentError: If there are faults; all of them are listed.
    """
    data = REPLAN_REPORT.check(value)
    keys = REPLAN_REPORT.keys
    return Faults(REPLAN_REPORT.name).finish(
        lambda: ReplanReport(**{key: data[key] for key in keys}),
        **{key: f"$.{key}" for key in keys},
    )


def replan_report_from_json(
    text: str | bytes, *, limits: DocumentLimits | None = None
) -> ReplanReport:
    """
    Read a report.

    Raises:
        DocumentError: If the document has faults; all of them are listed.
        ContractError: If *text* is not JSON.
        LimitExceededError: If it is larger than *limits* allow.
    """
    return replan_report_from_document(read_json(text, limits=limits))


def replan_report_to_json(report: ReplanReport) -> str:
    """
    Write a report.

    Example:
        >>> report = ReplanReport(previous_source="a", new_source="b", previous_horizon=8,
        ...     new_horizon=8, executed_steps=2, remaining_previous_steps=6,
        ...     transition_steps_requested=4, transition_steps_applied=4, output_horizon=8)
        >>> replan_report_from_json(replan_report_to_json(report)) == report
        True
    """
    return write_json(replan_report_to_document(report))
