"""What the gate found in a chunk, and what became of it."""

from __future__ import annotations

import enum

import attrs
import numpy as np

from vlmcore._arrays import BoolArray, Float64Array
from vlmcore.contracts.embodiment import ActionSpace
from vlmcore.safety.remedies import Remedy

__all__ = ["KINDS", "Findings", "RefusalReason", "SafetyReport", "Violation", "ViolationKind"]

_LISTED = 100  # violations that a report describes one by one; all of them are counted


class ViolationKind(enum.Enum):
    """What can be wrong with an action."""

    NON_FINITE = "non_finite"  # NaN or infinity; it is not counted as anything else
    OUT_OF_BOUNDS = "out_of_bounds"  # below low or above high
    STEP = "step"  # further from the step before than max_step
    NOT_A_LEVEL = "not_a_level"  # between the levels of a discrete dimension
    START_UNKNOWN = "start_unknown"  # a target without a last command: its first step is unbounded
    REFERENCE_OUT_OF_BOUNDS = "reference_out_of_bounds"  # the last command itself is out of bounds


class RefusalReason(enum.Enum):
    """Why a chunk is not safe to be handed on."""

    VIOLATIONS = "violations"  # it breaks limits, and nothing was allowed to change it
    FIRST_STEP_UNCHECKED = "first_step_unchecked"  # nobody knows where the robot is
    NO_REFERENCE = "no_reference"  # a remedy would have to invent where the robot is
    REFERENCE_OUT_OF_BOUNDS = "reference_out_of_bounds"  # one step does not lead back into bounds
    REMEDY_FAILED = "remedy_failed"  # what the remedy made breaks limits too
    FLOAT32_TOO_COARSE = "float32_too_coarse"  # float32 cannot write values that keep the limits


KINDS = tuple(ViolationKind)  # walking an enum takes as long as an audit of a chunk
_KIND_ORDER = {kind: i for i, kind in enumerate(KINDS)}
_WORDS = {
    ViolationKind.NON_FINITE: "not finite",
    ViolationKind.OUT_OF_BOUNDS: "out of bounds",
    ViolationKind.STEP: "too far from the step before",
    ViolationKind.NOT_A_LEVEL: "not a level",
    ViolationKind.START_UNKNOWN: "without a last command",
    ViolationKind.REFERENCE_OUT_OF_BOUNDS: "with a last command out of bounds",
}


@attrs.frozen(kw_only=True)
class Violation:
    """
    One thing that is wrong with one number.

    Attributes:
        kind: What is wrong.
        step: In which step of the chunk, from 0; ``None`` for the last command.
        dim: In which dimension.
        name: The name of the dimension.
        value: The number. For `ViolationKind.STEP` it is the step that was asked for, signed; for
            a change or a rate, how much faster it got.
        limit: What it breaks: the bound, the step bound, the nearest level; ``None`` where there is
            no number.
    """

    kind: ViolationKind
    step: int | None
    dim: int
    name: str
    value: float
    limit: float | None

    def __str__(self) -> str:
        where = "last command" if self.step is None else f"step {self.step}"
        limit = "" if self.limit is None else f" (limit {self.limit:g})"
        return f"{where}, {self.name!r}: {self.value:g} {_WORDS[self.kind]}{limit}"


@attrs.frozen(kw_only=True, eq=False)
class Findings:
    """
    All that an audit found, as arrays; records are made when they are asked for.

    Attributes:
        space: What was held against.
        values: What was audited, shape ``[T, D]``.
        reference: The last command, shape ``[D]``; ``None`` if there was none.
        steps: Every step as its bound means it, shape ``[T, D]``.
        masks: For each kind that was found where it was found, shape ``[T, D]``; for the kinds that
            concern the last command, shape ``[1, D]``.
        tally: How many there are of each kind, in the order of `ViolationKind`.
    """

    space: ActionSpace
    values: Float64Array
    reference: Float64Array | None
    steps: Float64Array
    masks: dict[ViolationKind, BoolArray]
    tally: tuple[int, ...]

    @property
    def kinds(self) -> frozenset[ViolationKind]:
        """What kinds there are."""
        return frozenset(self.masks)

    @property
    def counts(self) -> dict[ViolationKind, int]:
        """How many there are of every kind."""
        return dict(zip(KINDS, self.tally, strict=True))

    def columns(self) -> BoolArray:
        """Say in which dimensions something was found, shape ``[D]``."""
        found = np.zeros(self.values.shape[1], np.bool_)
        for mask in self.masks.values():
            found |= mask.any(axis=0)
        return found

    def violations(self, most: int = _LISTED) -> tuple[Violation, ...]:
        """Describe the first *most* violations, by step, then by dimension, then by kind."""
        width = self.values.shape[1]
        places = [
            (int(step), int(dim), kind)
            for kind, mask in self.masks.items()
            for step, dim in zip(*np.divmod(np.flatnonzero(mask)[:most], width), strict=True)
        ]
        places.sort(key=lambda place: (*place[:2], _KIND_ORDER[place[2]]))
        return tuple(self._violation(*place) for place in places[:most])

    def _violation(self, step: int, dim: int, kind: ViolationKind) -> Violation:
        value, limit = float(self.values[step, dim]), None
        at: int | None = step
        low, high = float(self.space.low[dim]), float(self.space.high[dim])
        match kind:
            case ViolationKind.NON_FINITE | ViolationKind.START_UNKNOWN:
                pass
            case ViolationKind.OUT_OF_BOUNDS:
                limit = high if value > high else low
            case ViolationKind.STEP:
                value, limit = float(self.steps[step, dim]), float(self.space.max_step[dim])
            case ViolationKind.NOT_A_LEVEL:
                levels = self.space.dims[dim].levels or ()
                limit = min(levels, key=lambda level: abs(level - value))
            case ViolationKind.REFERENCE_OUT_OF_BOUNDS:
                assert self.reference is not None
                at, value = None, float(self.reference[dim])
                limit = high if value > high else low
        name = self.space.names[dim]
        return Violation(kind=kind, step=at, dim=dim, name=name, value=value, limit=limit)


@attrs.frozen(kw_only=True, eq=False)
class SafetyReport:
    """
    What the gate found in a chunk as it came, and whether what leaves is safe.

    Attributes:
        embodiment: The name of the robot; empty if the gate was given a space only.
        action_mode: What the embodiment calls its way of control.
        policy_source: Which policy proposed the chunk.
        input_horizon: How many steps it proposed.
        execution_horizon: How many of them were looked at and are to be executed.
        action_dim: How many dimensions there are.
        mode: What the gate was to do about violations.
        previous_action_provided: Whether the last command was known.
        changed: Whether what leaves differs from what came.
        safe_for_handoff: Whether what leaves keeps every limit, from the last command on.
        reason: Why not; ``None`` if it is safe.
        findings: What was found in what came, as arrays; ``None`` if nothing was.
    """

    embodiment: str
    action_mode: str
    policy_source: str
    input_horizon: int
    execution_horizon: int
    action_dim: int
    mode: Remedy
    previous_action_provided: bool
    changed: bool
    safe_for_handoff: bool
    reason: RefusalReason | None
    findings: Findings | None = attrs.field(repr=False)

    @property
    def counts(self) -> dict[ViolationKind, int]:
        """How many violations of each kind there were in what came; all kinds are there."""
        return dict.fromkeys(KINDS, 0) if self.findings is None else self.findings.counts

    @property
    def total(self) -> int:
        """How many violations there were in all."""
        return sum(self.counts.values())

    @property
    def violations(self) -> tuple[Violation, ...]:
        """The first hundred violations, by step, then by dimension."""
        return () if self.findings is None else self.findings.violations()

    def __str__(self) -> str:
        found = [f"{count} {_WORDS[kind]}" for kind, count in self.counts.items() if count]
        size = f"{self.execution_horizon} x {self.action_dim}"
        first = f"; first: {self.violations[0]}" if found else ""
        return f"{self.policy_source}, {size} values: {', '.join(found) or 'all kept'}{first}"
