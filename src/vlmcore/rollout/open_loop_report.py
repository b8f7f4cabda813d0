"""How far a policy is from what was recorded: by dimension, and by step of its chunks."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import attrs
import numpy as np

from vlmcore._arguments import shown
from vlmcore._arrays import (
    Float64Array,
    as_tuple,
    plain_float,
    readonly_float64,
    require_finite,
    require_name,
    require_names,
)
from vlmcore._copying import by_value, through_constructor
from vlmcore.charts.chart import Chart
from vlmcore.errors import ContractError
from vlmcore.limits import ContractLimits
from vlmcore.rollout._checks import MOST_COUNTED, require_by_column, require_steps
from vlmcore.rollout._open_loop_views import lines_of, report_html
from vlmcore.safety.findings import ViolationKind

__all__ = ["GateCounts", "Latency", "OpenLoopReport", "OpenLoopTrace"]

_LIMITS = ContractLimits()


@attrs.frozen(kw_only=True)
class Latency:
    """
    How long a policy took to answer, in milliseconds.

    Attributes:
        median_ms: Half of the answers took no longer.
        p95_ms: 95 of 100 took no longer.
        longest_ms: The longest.

    Raises:
        ContractError: If they are not numbers from 0, each at least the one before.
    """

    median_ms: float = attrs.field(converter=plain_float)
    p95_ms: float = attrs.field(converter=plain_float)
    longest_ms: float = attrs.field(converter=plain_float)

    def __attrs_post_init__(self) -> None:
        require_finite(**attrs.asdict(self))
        if not 0 <= self.median_ms <= self.p95_ms <= self.longest_ms:
            raise ContractError(
                "p95_ms",
                f"got {self.median_ms}, {self.p95_ms} and {self.longest_ms}, expected numbers from "
                "0, each at least the one before",
            )


def _counts(value: Any) -> Any:
    return MappingProxyType(dict(value)) if isinstance(value, Mapping) else value


@attrs.frozen(kw_only=True)
class GateCounts:
    """
    What a gate said of the chunks; nothing left it.

    Attributes:
        chunks: How many it was asked about.
        unsafe: How many of them it would not have let pass as they came.
        violations: How many violations there were of each kind that there was.

    Raises:
        ContractError: If a field is not as described.
    """

    chunks: int
    unsafe: int
    violations: Mapping[ViolationKind, int] = attrs.field(
        factory=dict, converter=_counts, hash=False
    )

    def __attrs_post_init__(self) -> None:
        require_steps("chunks", self.chunks, 0, MOST_COUNTED)
        require_steps("unsafe", self.unsafe, 0, self.chunks)
        if not isinstance(self.violations, Mapping):
            raise ContractError("violations", f"got {shown(self.violations)}, expected a mapping")
        for kind, count in self.violations.items():
            if not isinstance(kind, ViolationKind):
                raise ContractError("violations", f"got {shown(kind)}, expected a ViolationKind")
            require_steps(f"violations[{kind.value}]", count, 0, MOST_COUNTED)

    __reduce__ = through_constructor


@attrs.frozen(kw_only=True, eq=False)
class OpenLoopTrace:
    """
    One episode as it was, and as the chunks of the policy laid end to end would have had it.

    Attributes:
        names: What the numbers of an action are.
        recorded: What was sent, one action a control step, shape ``[N, D]``.
        proposed: What the newest chunk said of the same step, shape ``[N, D]``; NaN where there is
            none, or where it had ended.
        rate_hz: Control steps a second; ``None`` if nobody knows.
    """

    names: tuple[str, ...]
    recorded: Float64Array
    proposed: Float64Array
    rate_hz: float | None = None

    def chart(self) -> Chart:
        """Make a chart of both: what was recorded, and behind it what the policy proposes."""
        return Chart(
            values=self.recorded,
            proposed=self.proposed,
            names=self.names,
            rate_hz=self.rate_hz,
            title="what was recorded, and behind it what the policy proposes",
        )


def _by_step(value: Any) -> Float64Array:
    return readonly_float64(value, field="errors", axes="[T, M]")


@attrs.frozen(kw_only=True)
class OpenLoopReport:
    """
    How far a policy is from what was recorded, by step of its chunks and by dimension.

    The columns are the dimensions of an action; the numbers of a rotation in space are one column,
    the angle between the two in radians. An angle that comes round is measured the short way.

    Attributes:
        policy: The name of the policy.
        episodes: How many episodes there were.
        observations: How many observations it was shown.
        failures: How many of them it could not answer.
        failure_examples: What it said then; the first few, each once.
        names: What the columns are.
        units: The unit of each, empty where there is none.
        count: How many values were compared, shape ``[T, M]``; step 0 is the first of a chunk.
        mae: The mean of their errors, NaN where nothing was compared, and so with those below.
        rmse: The root of the mean of their squares.
        worst: The largest.
        has_levels: Which columns know only some levels.
        agreement: How often both were nearest to the same level, from 0 to 1; NaN for a column
            without levels.
        lost: How many proposed values could not be compared, since they are no numbers or no
            rotation, of each column.
        unknown: How many values that were not recorded as numbers, of each column.
        latency: How long its answers took; ``None`` if there were none.
        gate: What a gate said of the chunks; ``None`` if there was none.
        trace: The first episode; ``None`` if nothing is known of it. It is not compared, and not
            in documents.

    Raises:
        ContractError: If a field is not as described.
    """

    policy: str
    episodes: int
    observations: int
    failures: int
    failure_examples: tuple[str, ...] = attrs.field(default=(), converter=as_tuple)
    names: tuple[str, ...] = attrs.field(converter=as_tuple)
    units: tuple[str, ...] = attrs.field(converter=as_tuple)
    has_levels: tuple[bool, ...] = attrs.field(converter=as_tuple)
    count: Float64Array = attrs.field(converter=_by_step, eq=by_value, repr=False)
    mae: Float64Array = attrs.field(converter=_by_step, eq=by_value, repr=False)
    rmse: Float64Array = attrs.field(converter=_by_step, eq=by_value, repr=False)
    worst: Float64Array = attrs.field(converter=_by_step, eq=by_value, repr=False)
    agreement: Float64Array = attrs.field(converter=_by_step, eq=by_value, repr=False)
    lost: tuple[int, ...] = attrs.field(converter=as_tuple)
    unknown: tuple[int, ...] = attrs.field(converter=as_tuple)
    latency: Latency | None = None
    gate: GateCounts | None = None
    trace: OpenLoopTrace | None = attrs.field(default=None, eq=False, repr=False)

    def __attrs_post_init__(self) -> None:
        longest = _LIMITS.max_name_characters
        require_name("policy", self.policy, max_characters=longest)
        require_names("names", self.names, max_count=_LIMITS.max_actions, max_characters=longest)
        require_steps("episodes", self.episodes, 0, MOST_COUNTED)
        require_steps("observations", self.observations, 0, MOST_COUNTED)
        require_steps("failures", self.failures, 0, self.observations)
        width = len(self.names)
        for field, kind in (("units", str), ("has_levels", bool), ("lost", int), ("unknown", int)):
            require_by_column(field, getattr(self, field), kind, width)
        self._check_parts()
        shape = (len(self.count), width)
        for field in ("count", "mae", "rmse", "worst", "agreement"):
            values = getattr(self, field)
            if values.shape != shape:
                raise ContractError(
                    field, f"got shape {list(values.shape)}, expected {list(shape)}"
                )
            if (values < 0).any() or np.isinf(values).any():
                raise ContractError(field, "got negative or infinite numbers, expected neither")
        if not (np.isfinite(self.count) & (self.count == np.floor(self.count))).all():
            raise ContractError("count", "got what is no whole number, expected how many")

    def _check_parts(self) -> None:
        said = self.failure_examples
        if not isinstance(said, tuple) or not all(isinstance(each, str) for each in said):
            raise ContractError("failure_examples", f"got {shown(said)}, expected a tuple of text")
        for field, kind in (("latency", Latency), ("gate", GateCounts), ("trace", OpenLoopTrace)):
            part = getattr(self, field)
            if not (part is None or isinstance(part, kind)):
                raise ContractError(
                    field, f"got {type(part).__name__}, expected {kind.__name__} or None"
                )

    __reduce__ = through_constructor

    @property
    def horizon(self) -> int:
        """How many steps of a chunk were compared at most, ``T``."""
        return len(self.count)

    def mae_of(self, column: int) -> float:
        """Take the mean error of a column over all steps; NaN if nothing was compared."""
        return _mean(self.mae[:, column], self.count[:, column])

    def rmse_of(self, column: int) -> float:
        """Take the root of its mean square."""
        return float(np.sqrt(_mean(self.rmse[:, column] ** 2, self.count[:, column])))

    def worst_of(self, column: int) -> float:
        """Take its largest error."""
        values = self.worst[:, column][self.count[:, column] > 0]
        return float(values.max()) if len(values) else float("nan")

    def agreement_of(self, column: int) -> float:
        """Say how often both were nearest to the same level; NaN without levels."""
        return _mean(self.agreement[:, column], self.count[:, column])

    def error_chart(self) -> Chart:
        """
        Make a chart of the mean error by step of the chunk.

        Raises:
            ContractError: If nothing was compared.
        """
        if not self.horizon:
            raise ContractError("count", "got no step that was compared, expected at least one")
        return Chart(
            values=self.mae,
            names=self.names,
            units=self.units if any(self.units) else (),
            title=f"{self.policy}: mean error by step of its chunks",
        )

    def _repr_html_(self) -> str:
        return report_html(self)

    def __str__(self) -> str:
        return "\n".join(lines_of(self))


def _mean(values: Float64Array, weights: Float64Array) -> float:
    there = (weights > 0) & np.isfinite(values)
    if not there.any():
        return float("nan")
    return float(np.average(values[there], weights=weights[there]))
