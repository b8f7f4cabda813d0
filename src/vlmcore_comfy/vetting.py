"""What the gate node does: it lets old graphs run as they did, and tells when that was not safe."""

from __future__ import annotations

from typing import Any

import attrs
import numpy as np

from vlmcore._arguments import shown
from vlmcore.contracts.actions import ActionChunk
from vlmcore.contracts.embodiment import Embodiment, LimitsSource
from vlmcore.contracts.json_text import write_json
from vlmcore.errors import ContractError, UnsafeActionError
from vlmcore.safety.documents import safety_report_to_document
from vlmcore.safety.gate import SafetyGate
from vlmcore.safety.remedies import Remedy
from vlmcore.safety.report import RefusalReason, SafetyReport
from vlmcore.safety.vetted import VettedChunk
from vlmcore_comfy.chunk_texts import first_steps, named_as
from vlmcore_comfy.widgets import value_in

__all__ = ["REMEDIES", "Vetting", "last_command_from_text", "require_vetted", "vet"]

#: What the labels of the node mean.
REMEDIES = {
    "Block unsafe": Remedy.BLOCK,
    "Clamp safely": Remedy.CLAMP,
    "Hold position on unsafe": Remedy.HOLD,
    "Report only": Remedy.REPORT,
}
_NO_START = (
    "previous_action_json is blank, so that nobody knows where the robot is: the first step is "
    "not checked against it, and nothing is vetted."
)
_TEMPLATE = (
    "The limits are those of a template, certified by nobody: safe_for_handoff says that they are "
    "kept, not that a robot is safe."
)


@attrs.frozen
class Vetting:
    """
    What came of a chunk.

    Attributes:
        actions: What goes on, vetted or not.
        report: The report, as JSON.
        is_safe: Whether it keeps every limit, from the last command on.
        vetted: What the gate let through; ``None`` where it let nothing.
        reason: Why not.
    """

    actions: ActionChunk
    report: str
    is_safe: bool
    vetted: VettedChunk | None
    reason: str


def vet(
    chunk: ActionChunk, robot: Embodiment, remedy: Remedy, *, horizon: int, last_command: Any
) -> Vetting:
    """
    Put *chunk* to the gate.

    Saved graphs that never said where the robot is still get their actions in the modes that block
    and clamp, marked as unsafe and without a vetted chunk; clamped then means within bounds, and
    from step to step.

    Raises:
        UnsafeActionError: If the mode lets nothing through.
        ContractError: If the chunk is not one of the robot, or *last_command* not one of its.
    """
    chunk = named_as(chunk, robot.actions.names)
    gate = SafetyGate(embodiment=robot, remedy=remedy, execution_horizon=horizon, reorder=True)
    executed = first_steps(chunk, horizon)
    if remedy is Remedy.REPORT:
        report = gate.check(chunk, last_command=last_command)
        is_safe = report.safe_for_handoff
        return Vetting(executed, _told(report, robot), is_safe, None, "Report only vets nothing.")
    try:
        vetted = gate.vet(chunk, last_command=last_command)
    except UnsafeActionError as error:
        found = error.report
        assert isinstance(found, SafetyReport)
        unchecked = _unchecked(executed, gate, found, last_command)
        if unchecked is None:
            raise
        changed = unchecked is not executed
        told = _told(attrs.evolve(found, changed=changed), robot, _NO_START)
        return Vetting(unchecked, told, is_safe=False, vetted=None, reason=_NO_START)
    return Vetting(
        attrs.evolve(vetted.as_chunk(), metadata=chunk.metadata),
        _told(vetted.report, robot),
        is_safe=True,
        vetted=vetted,
        reason="",
    )


def last_command_from_text(name: str, text: str) -> Any:
    """
    Read what was sent last: numbers, numbers by name, or the document of a step; ``None`` if blank.

    Raises:
        ContractError: If it is no JSON of these.
    """
    value = value_in(name, text)
    if isinstance(value, dict) and isinstance(value.get("action"), dict):
        value = value["action"]
    if value is not None and not isinstance(value, (list, dict)):
        raise ContractError(name, "expected a JSON list of numbers, or numbers by name")
    return value


def require_vetted(name: str, vetted: Any) -> VettedChunk:
    """
    Take what came through a socket of vetted actions.

    Raises:
        ContractError: If no gate let it through.
    """
    if not isinstance(vetted, VettedChunk):
        raise ContractError(name, f"got {shown(vetted)}, expected what the safety gate let through")
    return vetted


def _unchecked(
    chunk: ActionChunk, gate: SafetyGate, report: SafetyReport, last_command: Any
) -> ActionChunk | None:
    """Give what old graphs get where nobody knows the start; ``None`` where they get nothing."""
    if last_command is not None:
        return None
    if gate.remedy is Remedy.BLOCK and report.reason is RefusalReason.FIRST_STEP_UNCHECKED:
        return chunk
    if gate.remedy is not Remedy.CLAMP:
        return None
    start = np.clip(chunk.values[0], gate.actions.low, gate.actions.high)
    if not np.isfinite(start).all():
        return None
    try:
        return gate.vet(chunk, last_command=start).as_chunk()
    except UnsafeActionError:
        return None


def _told(report: SafetyReport, robot: Embodiment, warning: str = "") -> str:
    document = safety_report_to_document(report)
    warnings = [warning] if warning else []
    if robot.limits_source is LimitsSource.TEMPLATE:
        warnings.append(_TEMPLATE)
    if warnings:
        document["warning"] = " ".join(warnings)
    return write_json(document)
