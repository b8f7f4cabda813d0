"""What came of a chunk at a gate, held against what somebody says of it."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

from vlmcore._arrays import Float64Array
from vlmcore.contracts.actions import ActionChunk
from vlmcore.contracts.embodiment import Embodiment
from vlmcore.errors import ContractError, UnsafeActionError
from vlmcore.rollout.episodes import EpisodeStep
from vlmcore.safety.findings import ViolationKind
from vlmcore.safety.report import RefusalReason, SafetyReport
from vlmcore.safety.vetted import VettedChunk

__all__ = ["Outcome", "report_of", "require_belongs"]

#: What the gate gave or raised, or a report if it was only asked.
Outcome: TypeAlias = VettedChunk | UnsafeActionError | SafetyReport

# What these reports tell is of the chunk that tripped the latch, or of rounded values.
_OF_OTHER_VALUES = (RefusalReason.TRIPPED, RefusalReason.FLOAT32_TOO_COARSE)


def report_of(outcome: Outcome) -> SafetyReport:
    """
    Take the report of an outcome.

    Raises:
        ContractError: If it is no outcome.
    """
    if isinstance(outcome, SafetyReport):
        return outcome
    if isinstance(outcome, (VettedChunk, UnsafeActionError)) and isinstance(
        outcome.report, SafetyReport
    ):
        return outcome.report
    raise ContractError(
        "outcome",
        f"got {type(outcome).__name__}, expected a VettedChunk, an UnsafeActionError or a "
        "SafetyReport",
    )


def require_belongs(outcome: Outcome, step: EpisodeStep, robot: Embodiment) -> None:
    """
    Require *step* to say of *outcome* what it says itself; a refusal tells less than a chunk.

    Raises:
        ContractError: If it is the outcome of another chunk, of another last command or position,
            or of a gate of another robot.
    """
    report = report_of(outcome)
    if report.embodiment and report.embodiment != robot.name:
        _refuse_gate(f"a gate of {report.embodiment!r}", robot)
    if isinstance(outcome, VettedChunk):
        _check_vetted(outcome, step, robot)
    elif report.reason not in _OF_OTHER_VALUES:
        _check_report(report, step, robot)


def _check_vetted(vetted: VettedChunk, step: EpisodeStep, robot: Embodiment) -> None:
    if vetted.space_digest != robot.actions.digest():
        _refuse_gate("a gate of another action space", robot)
    if not _is_same_chunk(step.chunk, vetted.proposed):
        _refuse_chunk()
    _check_last_command(step.last_command, vetted.last_command)
    said, true = _bound_position(step, robot), dict(vetted.position or {})
    if said != true:
        raise ContractError("position", f"got {said}, expected what the gate was given, {true}")


def _check_report(report: SafetyReport, step: EpisodeStep, robot: Embodiment) -> None:
    if report.previous_action_provided is (step.last_command is None):
        said, true = ("None", "one") if step.last_command is None else ("one", "None")
        raise ContractError("last_command", f"got {said}, expected {true}, as the gate was given")
    if report.counts[ViolationKind.POSITION_UNKNOWN] and _bound_position(step, robot):
        raise ContractError("position", "got one, expected none, as the gate was given")
    findings = report.findings
    if findings is None:
        return
    if findings.space != robot.actions:
        _refuse_gate("a gate of another action space", robot)
    order = [step.chunk.names.index(name) for name in robot.actions.names]
    values = step.chunk.values[: report.execution_horizon, order]
    if not np.array_equal(values, findings.values, equal_nan=True):
        _refuse_chunk()
    _check_last_command(step.last_command, findings.reference)


def _is_same_chunk(said: ActionChunk, true: ActionChunk) -> bool:
    if said is true:
        return True
    is_of_one = (said.names, said.source, said.observed_at_s) == (
        true.names,
        true.source,
        true.observed_at_s,
    )
    return is_of_one and np.array_equal(said.values, true.values, equal_nan=True)


def _check_last_command(said: Float64Array | None, true: Float64Array | None) -> None:
    is_same = said is true if said is None or true is None else np.array_equal(said, true)
    if not is_same:
        came, was = (None if each is None else each.tolist() for each in (said, true))
        raise ContractError(
            "last_command", f"got {came!s:.80}, expected what the gate was given, {was!s:.80}"
        )


def _bound_position(step: EpisodeStep, robot: Embodiment) -> dict[str, float]:
    """Take what a gate asks for of the positions that are said."""
    names = robot.actions.position_names
    return {name: step.position[name] for name in names if name in step.position}


def _refuse_chunk() -> None:
    raise ContractError("chunk", "got another one than the outcome is of, expected that one")


def _refuse_gate(came: str, robot: Embodiment) -> None:
    raise ContractError(
        "outcome", f"got that of {came}, expected one of the header's robot, {robot.name!r}"
    )
