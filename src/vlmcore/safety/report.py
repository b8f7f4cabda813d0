"""What the gate found in a chunk, and what became of it."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import attrs
import numpy as np

from vlmcore._arguments import shown
from vlmcore._arrays import BoolArray, require_count, require_member, require_name
from vlmcore._copying import through_constructor
from vlmcore.errors import ContractError
from vlmcore.limits import ContractLimits
from vlmcore.safety._html import report_html
from vlmcore.safety.findings import KINDS, WORDS, Findings, Violation, ViolationKind
from vlmcore.safety.remedies import Remedy

__all__ = ["RefusalReason", "SafetyReport", "SafetySummary"]

_LIMITS = ContractLimits()


class RefusalReason(enum.Enum):
    """Why a chunk is not safe to be handed on."""

    VIOLATIONS = "violations"  # it breaks limits, and nothing was allowed to change it
    FIRST_STEP_UNCHECKED = "first_step_unchecked"  # nobody knows where the robot is
    NO_REFERENCE = "no_reference"  # a remedy would have to invent where the robot is
    REFERENCE_OUT_OF_BOUNDS = "reference_out_of_bounds"  # one step does not lead back into bounds
    POSITION_UNKNOWN = "position_unknown"  # nobody knows where what moves and is bound is
    REMEDY_FAILED = "remedy_failed"  # what the remedy made breaks limits too
    TRIPPED = "tripped"  # too many chunks in a row were unsafe: a person must rearm the latch
    FLOAT32_TOO_COARSE = "float32_too_coarse"  # float32 cannot write values that keep the limits
    STALE = "stale"  # what the policy saw is older than the caller allows
    OBSERVED_IN_FUTURE = "observed_in_future"  # it was seen by another clock
    TEMPLATE_LIMITS = "template_limits"  # the limits that it keeps are a template's
    LIMITS_UNKNOWN = "limits_unknown"  # nobody says whose limits it keeps
    NOTHING_LEFT = "nothing_left"  # the first step is not finite, and the chunk is cut off there
    ALTERED = "altered"  # somebody wrote to the values after they were vetted


def _all_counts(value: Any) -> Any:
    """Name every kind, in their order."""
    if not isinstance(value, Mapping):
        return value
    return MappingProxyType(dict.fromkeys(KINDS, 0) | dict(value))


def _total(counts: Mapping[ViolationKind, int]) -> int:
    return sum(count for kind, count in counts.items() if kind.is_of_values)


@attrs.frozen(kw_only=True)
class SafetySummary:
    """
    A `SafetyReport` without its arrays, for logs and documents.

    Attributes:
        embodiment: As in the report, and so are all that follow.
        action_mode: May be empty.
        policy_source: Which policy proposed the chunk.
        input_horizon: At least 1.
        execution_horizon: From 1 to *input_horizon*.
        action_dim: At least 1.
        mode: What the gate was to do.
        previous_action_provided: Whether the last command was known.
        counts: How many violations there were of each kind; a kind that is not given has none.
        changed: Whether what left differed from what came.
        safe_for_handoff: Whether what left was safe.
        reason: Why it was not; ``None`` if it was, or if an older document does not say.
        cut_steps: Fewer than *execution_horizon*, and 0 unless *changed*.

    Raises:
        ContractError: If a field is not as described.
    """

    embodiment: str
    action_mode: str
    policy_source: str
    input_horizon: int
    execution_horizon: int
    action_dim: int
    mode: Remedy
    previous_action_provided: bool
    counts: Mapping[ViolationKind, int] = attrs.field(converter=_all_counts, hash=False)
    changed: bool
    safe_for_handoff: bool
    reason: RefusalReason | None
    cut_steps: int = 0

    def __attrs_post_init__(self) -> None:
        for field in ("embodiment", "action_mode", "policy_source"):
            require_name(
                field,
                getattr(self, field),
                max_characters=_LIMITS.max_name_characters,
                may_be_empty=field != "policy_source",
            )
        for field, most in (
            ("input_horizon", _LIMITS.max_horizon),
            ("execution_horizon", self.input_horizon),
            ("action_dim", _LIMITS.max_actions),
        ):
            count = getattr(self, field)
            require_count(**{field: count})
            if count > most:
                raise ContractError(field, f"got {shown(count)}, expected at most {shown(most)}")
        require_member(Remedy, mode=self.mode)
        for field in ("previous_action_provided", "changed", "safe_for_handoff"):
            said = getattr(self, field)
            if not isinstance(said, bool):
                raise ContractError(field, f"got {shown(said)}, expected True or False")
        if self.reason is not None:
            require_member(RefusalReason, reason=self.reason)
            if self.safe_for_handoff:
                raise ContractError("reason", f"got {self.reason} for what is safe, expected None")
        self._check_cut()
        self._check_counts()

    __reduce__ = through_constructor

    def _check_cut(self) -> None:
        most = self.execution_horizon - 1 if self.changed else 0
        if type(self.cut_steps) is not int or not 0 <= self.cut_steps <= most:
            raise ContractError(
                "cut_steps", f"got {shown(self.cut_steps)}, expected a whole number up to {most}"
            )

    def _check_counts(self) -> None:
        if not isinstance(self.counts, Mapping):
            raise ContractError("counts", f"got {shown(self.counts)}, expected numbers by kind")
        for kind, count in self.counts.items():
            if not isinstance(kind, ViolationKind):
                raise ContractError("counts", f"got {shown(kind)}, expected a ViolationKind")
            if type(count) is not int or count < 0:
                field = f"counts[{kind.value}]"
                raise ContractError(field, f"got {shown(count)}, expected a whole number from 0")

    @property
    def total(self) -> int:
        """How many violations there are in the values of the chunk, as `SafetyReport.total`."""
        return _total(self.counts)


@attrs.frozen(kw_only=True, eq=False)
class SafetyReport:
    """
    What the gate found in a chunk as it came, and whether what leaves is safe.

    Attributes:
        embodiment: The name of the robot; empty if the gate was given a space only.
        action_mode: What the embodiment calls its way of control.
        policy_source: Which policy proposed the chunk.
        input_horizon: How many steps it proposed.
        execution_horizon: How many of them were looked at. As many leave, less *cut_steps*:
            ``VettedChunk.horizon`` says how many there are to execute.
        action_dim: How many dimensions there are.
        mode: What the gate was to do about violations.
        previous_action_provided: Whether the last command was known.
        changed: Whether what leaves differs from what came, or is a part of it.
        safe_for_handoff: Whether what leaves keeps every limit, from the last command on.
        reason: Why not; ``None`` if it is safe.
        findings: What was found in what came, as arrays; ``None`` if nothing was.
        cut_steps: How many steps were cut off at the end, from the first one with a value that is
            not finite on; 0 if none was, or if nothing leaves.
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
    cut_steps: int = 0

    @property
    def counts(self) -> dict[ViolationKind, int]:
        """How many violations of each kind there were in what came; all kinds are there."""
        return dict.fromkeys(KINDS, 0) if self.findings is None else self.findings.counts

    @property
    def total(self) -> int:
        """
        How many violations there were in the values of the chunk.

        A value that breaks two limits counts twice, and a rotation in space once for all its
        numbers, which `marks` marks. What is wrong with the last command, or that nobody knows it,
        is in *counts* and not in here.
        """
        return _total(self.counts)

    @property
    def violations(self) -> tuple[Violation, ...]:
        """The first hundred violations, by step, then by dimension."""
        return () if self.findings is None else self.findings.violations()

    def marks(self) -> BoolArray:
        """
        Say which values break anything, shape ``[execution_horizon, D]``; to draw them.

        There may be more of them than *total*: of a rotation in space all numbers are marked.
        """
        if self.findings is None:
            return np.zeros((self.execution_horizon, self.action_dim), np.bool_)
        return self.findings.marks()

    def summary(self) -> SafetySummary:
        """Give what can be written down: everything but the arrays."""
        fields = attrs.fields(SafetySummary)
        return SafetySummary(**{field.name: getattr(self, field.name) for field in fields})

    def _repr_html_(self) -> str:
        return report_html(self)

    def __str__(self) -> str:
        found = [f"{count} {WORDS[kind]}" for kind, count in self.counts.items() if count]
        size = f"{self.execution_horizon} x {self.action_dim}"
        first = f"; first: {self.violations[0]}" if found else ""
        cut = f"; {self.cut_steps} steps cut off" if self.cut_steps else ""
        return f"{self.policy_source}, {size} values: {', '.join(found) or 'all kept'}{first}{cut}"
