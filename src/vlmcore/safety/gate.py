"""The gate between what a policy proposes and what a controller executes."""

from __future__ import annotations

from typing import Any

import attrs
import numpy as np

from vlmcore._arguments import shown
from vlmcore._arrays import Float64Array, require_count, require_member
from vlmcore._copying import through_constructor
from vlmcore.contracts.actions import ActionChunk
from vlmcore.contracts.embodiment import ActionSpace, Embodiment, LimitsSource
from vlmcore.errors import ContractError, UnsafeActionError
from vlmcore.safety._rules import Rules
from vlmcore.safety.audit import find
from vlmcore.safety.findings import Findings, ViolationKind
from vlmcore.safety.references import read_last_command, read_position
from vlmcore.safety.remedies import NonFinite, Remedy, can_return, can_stay, clamp, hold
from vlmcore.safety.report import RefusalReason, SafetyReport
from vlmcore.safety.vetted import VettedChunk, _issue

__all__ = ["SafetyGate", "VettedChunk"]

_ABOUT_REFERENCE = frozenset((ViolationKind.REFERENCE_OUT_OF_BOUNDS,))


@attrs.frozen(kw_only=True, eq=False, repr=False)
class SafetyGate:
    """
    The gate between what a policy proposes and what a controller executes.

    Exactly one of *space* and *embodiment* is given. A gate keeps nothing from one chunk to the
    next, so threads may share it; the caller knows what was sent last, and says so.

    Attributes:
        space: What may be commanded.
        embodiment: The robot, whose `Embodiment.actions` are the space.
        limits_source: Where the limits of *space* come from; ``None`` if nobody says, and then
            nothing is handed on. An embodiment says it itself, and this stays ``None``.
        remedy: What to do about a chunk that breaks a limit.
        non_finite: What `Remedy.CLAMP` does about values that are not finite; ``None`` for
            `NonFinite.TRUNCATE`: what leaves has fewer steps than were looked at, and nothing
            leaves if the first one is lost. `Remedy.HOLD` fills a whole chunk anyway, and the
            others let no part of one pass, so they take ``None`` or `NonFinite.HOLD`.
        execution_horizon: How many steps of a chunk will be executed, from the first; ``None`` for
            all. Only these are looked at, and only these leave.
        reorder: Whether a chunk with the names of the space in another order is put in order; if
            not, it is refused.
        actions: The space, whichever way it was given.

    Raises:
        ContractError: If a field is not as described.

    Example:
        >>> from vlmcore.contracts.embodiment import ActionDim
        >>> slide = ActionDim(name="x", unit="m", low=-1.0, high=1.0, max_step=0.1)
        >>> space = ActionSpace(dims=(slide,), rate_hz=20)
        >>> gate = SafetyGate(space=space, remedy=Remedy.CLAMP)
        >>> chunk = ActionChunk(
        ...     values=[[0.05], [0.5]], names=("x",), source="doc", observed_at_s=0.0
        ... )
        >>> gate.vet(chunk, last_command=[0.0]).values.ravel().round(3).tolist()
        [0.05, 0.15]
    """

    space: ActionSpace | None = None
    embodiment: Embodiment | None = None
    limits_source: LimitsSource | None = None
    remedy: Remedy = Remedy.BLOCK
    non_finite: NonFinite | None = None
    execution_horizon: int | None = None
    reorder: bool = False
    actions: ActionSpace = attrs.field(init=False)
    _rules: Rules = attrs.field(init=False)
    _digest: str = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        space, robot = self.space, self.embodiment
        if (space is None) is (robot is None):
            came = "neither space nor" if space is None else "both space and"
            raise ContractError("space", f"got {came} embodiment, expected one of them")
        if robot is not None and not isinstance(robot, Embodiment):
            raise ContractError("embodiment", f"got {type(robot).__name__}, expected an Embodiment")
        actions = space if robot is None else robot.actions
        if not isinstance(actions, ActionSpace):
            raise ContractError("space", f"got {type(actions).__name__}, expected an ActionSpace")
        if self.limits_source is not None:
            require_member(LimitsSource, limits_source=self.limits_source)
            if robot is not None:
                raise ContractError(
                    "limits_source",
                    f"got {self.limits_source} with an embodiment, expected None: the embodiment "
                    "says where its limits come from",
                )
        require_member(Remedy, remedy=self.remedy)
        if self.non_finite is not None:
            require_member(NonFinite, non_finite=self.non_finite)
        if self.non_finite is NonFinite.TRUNCATE and self.remedy is not Remedy.CLAMP:
            raise ContractError(
                "non_finite",
                f"got {self.non_finite} with {self.remedy}, expected None: only {Remedy.CLAMP} "
                "lets a part of a chunk pass",
            )
        if self.execution_horizon is not None:
            require_count(execution_horizon=self.execution_horizon)
        if not isinstance(self.reorder, bool):
            raise ContractError("reorder", f"got {shown(self.reorder)}, expected True or False")
        keep = object.__setattr__  # the class is frozen, and these are made once
        keep(self, "actions", actions)
        keep(self, "_rules", Rules.of(actions))
        keep(self, "_digest", actions.digest())

    __reduce__ = through_constructor

    def __repr__(self) -> str:
        name = "a space" if self.embodiment is None else repr(self.embodiment.name)
        width, rate_hz = len(self.actions.dims), self.actions.rate_hz
        size = f"{width} dimension{'s' if width > 1 else ''} at {rate_hz:g} Hz"
        horizon = self.execution_horizon
        steps = "" if horizon is None else f", {horizon} steps"
        is_filling = self.remedy is Remedy.CLAMP and not self._truncates()
        filled = ", NaN held" if is_filling else ""
        return f"<SafetyGate of {name}: {size}, {self.remedy.value}{filled}{steps}>"

    def vet(self, chunk: ActionChunk, *, last_command: Any, position: Any = None) -> VettedChunk:
        """
        Let *chunk* pass if it is safe, or what the remedy makes of it if that is.

        A chunk that keeps every limit passes unchanged, whatever the remedy. What a remedy made is
        audited again before it leaves.

        Args:
            chunk: What a policy proposes, with the names of the space.
            last_command: What was sent to the robot last, shape ``[D]`` or numbers by name; its
                state, if nothing was sent yet. Its order is that of the space, also where the
                chunk has another. ``None`` if nobody knows: then no target is safe, however near it
                is, and changes start from zero. What it says of an offset is not looked at: a chunk
                begins at 0.
            position: Where the things are that changes, rates and offsets move, as measured, before
                the first step: numbers by the names of `ActionSpace.position_names`. ``None`` if
                nobody knows: then nothing of theirs is safe but zero.

        Raises:
            UnsafeActionError: If nothing safe can leave; the report is in it.
            ContractError: If the chunk is not one of this space, or *last_command* or *position* is
                not finite numbers for its dimensions.
        """
        values, robot = self._executed(chunk), self.embodiment
        reference = read_last_command(last_command, self.actions)
        at = read_position(position, self.actions)
        findings = find(values, self._rules, reference, position=at)
        safe, reason = values, None
        if findings is not None:
            safe, reason = self._remedied(values, findings, at)
        changed = reason is None and safe is not values and not np.array_equal(safe, values)
        report = self._report(
            chunk,
            values,
            findings,
            mode=self.remedy,
            reason=reason,
            changed=changed,
            cut_steps=len(values) - len(safe) if reason is None else 0,
            start_is_known=reference is not None,
        )
        if reason is not None:
            raise UnsafeActionError(report, reason.value)
        return _issue(
            chunk,
            safe,
            report=report,
            rules=self._rules,
            last_command=reference,
            position=at,
            limits_source=self.limits_source if robot is None else robot.limits_source,
            space_digest=self._digest,
        )

    def check(self, chunk: ActionChunk, *, last_command: Any, position: Any = None) -> SafetyReport:
        """
        Say what is wrong with *chunk*, and let nothing pass.

        Args:
            chunk: As for `vet`.
            last_command: As for `vet`.
            position: As for `vet`.

        Raises:
            ContractError: As for `vet`.
        """
        values = self._executed(chunk)
        reference = read_last_command(last_command, self.actions)
        at = read_position(position, self.actions)
        findings = find(values, self._rules, reference, position=at)
        reason = None if findings is None else _why_unsafe(findings)
        return self._report(
            chunk,
            values,
            findings,
            mode=Remedy.REPORT,
            reason=reason,
            start_is_known=reference is not None,
        )

    def _truncates(self) -> bool:
        """Whether a chunk ends where a value is not finite."""
        return self.remedy is Remedy.CLAMP and self.non_finite is not NonFinite.HOLD

    def _executed(self, chunk: ActionChunk) -> Float64Array:
        """Take the steps that will be executed, in the order of the space."""
        if not isinstance(chunk, ActionChunk):
            raise ContractError("chunk", f"got {type(chunk).__name__}, expected an ActionChunk")
        values, names = chunk.values, self.actions.names
        if chunk.names != names:
            if not (self.reorder and set(chunk.names) == set(names)):
                way_out = (
                    "in this order; SafetyGate(reorder=True) puts them in it"
                    if set(chunk.names) == set(names)
                    else "in this order"
                )
                raise ContractError(
                    "chunk.names",
                    f"got {', '.join(chunk.names)}, expected {', '.join(names)}, {way_out}",
                )
            values = values[:, [chunk.names.index(name) for name in names]]
        return values[: self.execution_horizon]

    def _remedied(
        self, values: Float64Array, findings: Findings, position: Float64Array | None
    ) -> tuple[Float64Array, RefusalReason | None]:
        """Make *values* safe; where that cannot be, give them as they are, and say why."""
        rules, reference = self._rules, findings.reference
        if self._truncates() and ViolationKind.NON_FINITE in findings.kinds:
            lost = findings.masks[ViolationKind.NON_FINITE].any(axis=1)
            values = values[: int(np.argmax(lost))]
            if not len(values):
                is_unknown = ViolationKind.START_UNKNOWN in findings.kinds
                return values, _why_unknown(findings) if is_unknown else RefusalReason.NOTHING_LEFT
            rest = find(values, rules, reference, position=position)
            if rest is None:
                return values, None
            findings = rest
        with np.errstate(all="ignore"):  # what overflows is out of reach, and refused
            if (why := _why_no_remedy(self.remedy, findings, rules)) is not None:
                return values, why
            if self.remedy is Remedy.CLAMP and findings.kinds == _ABOUT_REFERENCE:
                safe = values  # no step breaks anything, and none is rounded anew
            elif self.remedy is Remedy.CLAMP:
                safe = clamp(values, rules, reference, findings.columns(), position=position)
            else:
                safe = hold(rules, reference, len(values))
        left = find(safe, rules, reference, position=position)
        # That the last command is out of bounds stays true; what matters is that no step is.
        if left is not None and left.kinds - _ABOUT_REFERENCE:
            # From outside the bounds even the nearest level can be more than a step away.
            is_outside = ViolationKind.REFERENCE_OUT_OF_BOUNDS in findings.kinds
            reasons = RefusalReason
            return values, reasons.REFERENCE_OUT_OF_BOUNDS if is_outside else reasons.REMEDY_FAILED
        return safe, None

    def _report(
        self,
        chunk: ActionChunk,
        values: Float64Array,
        findings: Findings | None,
        *,
        mode: Remedy,
        reason: RefusalReason | None,
        start_is_known: bool,
        changed: bool = False,
        cut_steps: int = 0,
    ) -> SafetyReport:
        robot = self.embodiment
        return SafetyReport(
            embodiment="" if robot is None else robot.name,
            action_mode="" if robot is None else robot.action_mode,
            policy_source=chunk.source,
            input_horizon=chunk.horizon,
            execution_horizon=len(values),
            action_dim=values.shape[1],
            mode=mode,
            previous_action_provided=start_is_known,
            changed=changed,
            cut_steps=cut_steps,
            safe_for_handoff=reason is None,
            reason=reason,
            findings=findings,
        )


def _why_no_remedy(remedy: Remedy, findings: Findings, rules: Rules) -> RefusalReason | None:
    """Say why *remedy* cannot be tried on what was found; ``None`` if it can."""
    kinds, reference = findings.kinds, findings.reference
    match remedy:
        case Remedy.BLOCK | Remedy.REPORT:
            return _why_unsafe(findings)
        case Remedy.CLAMP:
            if ViolationKind.START_UNKNOWN in kinds:
                return _why_unknown(findings)
            if ViolationKind.POSITION_UNKNOWN in kinds:
                return RefusalReason.POSITION_UNKNOWN
            goes_on = can_return
        case Remedy.HOLD:
            if ViolationKind.START_UNKNOWN in kinds:
                return RefusalReason.NO_REFERENCE
            goes_on = can_stay
    if ViolationKind.REFERENCE_OUT_OF_BOUNDS not in kinds:
        return None
    assert reference is not None
    return None if goes_on(reference, rules) else RefusalReason.REFERENCE_OUT_OF_BOUNDS


def _why_unsafe(findings: Findings) -> RefusalReason:
    """Say why actions that nobody may change are not safe."""
    if findings.kinds == {ViolationKind.POSITION_UNKNOWN}:
        return RefusalReason.POSITION_UNKNOWN
    if findings.kinds <= {ViolationKind.START_UNKNOWN, ViolationKind.POSITION_UNKNOWN}:
        return RefusalReason.FIRST_STEP_UNCHECKED
    if findings.kinds == _ABOUT_REFERENCE:
        return RefusalReason.REFERENCE_OUT_OF_BOUNDS
    return RefusalReason.VIOLATIONS


def _why_unknown(findings: Findings) -> RefusalReason:
    """Say why nothing can be clamped from a start that is unknown."""
    for kind in (ViolationKind.NON_FINITE, ViolationKind.NOT_A_ROTATION):
        lost = findings.masks.get(kind)
        if lost is not None and (lost[0] & findings.masks[ViolationKind.START_UNKNOWN][0]).any():
            return RefusalReason.NO_REFERENCE
    return RefusalReason.FIRST_STEP_UNCHECKED
