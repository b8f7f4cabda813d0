"""Handing vetted actions to what moves the robot."""

from __future__ import annotations

from typing import Any, NoReturn, Protocol, runtime_checkable

import attrs

from vlmcore._arguments import require_switch
from vlmcore._arrays import plain_float, require_finite, require_positive
from vlmcore.contracts.embodiment import LimitsSource
from vlmcore.errors import ContractError, UnsafeActionError
from vlmcore.rollout._checks import require_sink
from vlmcore.safety.report import RefusalReason
from vlmcore.safety.vetted import VettedChunk

__all__ = ["ActionSink", "hand_off"]


@runtime_checkable
class ActionSink(Protocol):
    """Where vetted actions go: the bridge to a controller, a simulator, a recorder."""

    def accept(self, vetted: VettedChunk, /) -> None:
        """Take the actions. What it raises reaches the caller of `hand_off` as it is."""
        ...


def hand_off(
    vetted: VettedChunk,
    sink: ActionSink,
    *,
    now_s: float,
    max_age_s: float,
    allow_template: bool = False,
) -> None:
    """
    Hand vetted actions to *sink*, unless they are old.

    Args:
        vetted: What the gate let pass.
        sink: What moves the robot.
        now_s: Reading of the clock that the observation was stamped by, in seconds.
        max_age_s: How long ago the observation may have been made that the policy acts on.
        allow_template: Whether actions may be handed on that were vetted against the limits of a
            template, or of a gate that does not say whose they are. Nobody promises them for the
            robot.

    Raises:
        UnsafeActionError: If the actions are older than that, were observed after *now_s*, keep
            the limits of a template only, or of nobody knows what, or are not what was vetted any
            more. The sink is not called. The report says so, and not that they are safe.
        ContractError: If *vetted* was not made by a gate, or another argument is not as described.

    Example:
        >>> from vlmcore.contracts.actions import ActionChunk
        >>> from vlmcore.contracts.embodiment import ActionDim, ActionSpace, LimitsSource
        >>> from vlmcore.safety.gate import SafetyGate
        >>> class Printer:
        ...     def accept(self, vetted):
        ...         print(vetted.values.tolist())
        >>> slide = ActionDim(name="x", unit="m", low=-1.0, high=1.0, max_step=0.1)
        >>> chunk = ActionChunk(values=[[0.05]], names=("x",), source="doc", observed_at_s=7.0)
        >>> space = ActionSpace(dims=(slide,), rate_hz=20)
        >>> gate = SafetyGate(space=space, limits_source=LimitsSource.MANUFACTURER)
        >>> vetted = gate.vet(chunk, last_command=[0.0])
        >>> hand_off(vetted, Printer(), now_s=7.2, max_age_s=0.5)
        [[0.05]]
    """
    if type(vetted) is not VettedChunk:
        raise ContractError(
            "vetted",
            f"got {type(vetted).__name__}, expected a VettedChunk: SafetyGate.vet() makes one",
        )
    if not all(hasattr(vetted, field) for field in VettedChunk.__slots__):
        raise ContractError("vetted", "got a VettedChunk that no gate made, expected one of vet()")
    if not vetted.is_intact:
        _refuse(
            vetted,
            RefusalReason.ALTERED,
            "values: got others than those that were vetted, expected nobody to write to them: "
            "torch does, give it a copy",
        )
    require_sink(sink)
    now_s, max_age_s = plain_float(now_s), plain_float(max_age_s)
    require_finite(now_s=now_s)
    require_positive(max_age_s=max_age_s)
    require_switch(allow_template=allow_template)
    _check_age(vetted, now_s - vetted.observed_at_s, max_age_s)
    if not allow_template:
        _check_limits(vetted)
    sink.accept(vetted)


def _check_age(vetted: VettedChunk, age_s: float, max_age_s: float) -> None:
    if age_s < 0:
        _refuse(
            vetted,
            RefusalReason.OBSERVED_IN_FUTURE,
            f"observed_at_s: got {-age_s:g} s after now_s, expected the same clock and before it",
        )
    if age_s > max_age_s:
        _refuse(
            vetted,
            RefusalReason.STALE,
            f"observed_at_s: got {age_s:g} s before now_s, expected at most {max_age_s:g} s",
        )


def _check_limits(vetted: VettedChunk) -> None:
    if vetted.limits_source is None:
        _refuse(
            vetted,
            RefusalReason.LIMITS_UNKNOWN,
            "limits_source: got a gate of a space alone, expected SafetyGate(limits_source=...) or "
            "one of an embodiment, or allow_template=True",
        )
    if vetted.limits_source is LimitsSource.TEMPLATE:
        _refuse(
            vetted,
            RefusalReason.TEMPLATE_LIMITS,
            "limits_source: got a template, expected limits of the robot, or allow_template=True",
        )


def _refuse(vetted: VettedChunk, reason: RefusalReason, problem: str) -> NoReturn:
    report: Any = attrs.evolve(vetted.report, safe_for_handoff=False, reason=reason)
    raise UnsafeActionError(report, reason.value, problem)
