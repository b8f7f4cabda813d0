"""
A sweep: what one target does under several loads, each of which is a run with an artifact.

Times of unlike cases are never pooled: the median of each case is held against that under the first
load, and the cases count the same.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from types import MappingProxyType

import attrs

from vlmcore.errors import ContractError, InputMismatchError
from vlmcore.lab.artifacts import Artifact, RunStart
from vlmcore.lab.loads import ClosedLoop, Load, load_words
from vlmcore.lab.matching import require_same_inputs
from vlmcore.lab.metrics import Reading
from vlmcore.lab.statistics import Summary
from vlmcore.lab.totals import Goodput, Totals, goodput, objectives_of, summaries, total

__all__ = ["SWEPT", "LoadFigures", "LoadedRun", "group_sweeps", "loaded_run", "sweep_figures"]

#: The names of the formulas whose times are compared between loads.
SWEPT = ("ttft/1", "tpot/1", "e2e/1")
_MIDDLE = 0.5


@attrs.frozen(kw_only=True)
class LoadedRun:
    """
    What is kept of a run for a sweep, which is little.

    Attributes:
        start: What it was made with; it has one target.
        totals: Figures of all its requests together.
        good: The requests that kept all goals of the plan; ``None`` if it has none.
        medians: The median of each case, by the name of a formula of `SWEPT`.
    """

    start: RunStart
    totals: Totals
    good: Goodput | None
    medians: Mapping[str, Mapping[str, Reading]] = attrs.field(hash=False, repr=False)


@attrs.frozen(kw_only=True)
class LoadFigures:
    """
    What a target did under one load.

    Attributes:
        load: The load in words.
        totals: Figures of all requests together.
        good: The requests that kept all goals; ``None`` if there are none.
        times: By the name of each formula of `SWEPT`, the geometric mean over the cases of the
            median under this load over that under the first one.
    """

    load: str
    totals: Totals
    good: Goodput | None
    times: Mapping[str, Reading] = attrs.field(hash=False)


def loaded_run(artifact: Artifact) -> LoadedRun:
    """
    Sum up a run for a sweep.

    Raises:
        ContractError: If it has several targets.
    """
    targets = artifact.start.identity.targets
    if len(targets) != 1:
        raise ContractError("artifact", f"has {len(targets)} targets, expected one for a sweep")
    samples = [each.sample for each in artifact.samples]
    goals = objectives_of(artifact.start.plan.goals)
    return LoadedRun(
        start=artifact.start,
        totals=total(samples),
        good=goodput(samples, goals) if goals else None,
        medians=MappingProxyType(
            {
                metric: {case: _median(case, each) for case, each in found.items()}
                for metric, found in ((metric, summaries(samples, metric)) for metric in SWEPT)
            }
        ),
    )


def sweep_figures(runs: Sequence[LoadedRun]) -> tuple[LoadFigures, ...]:
    """
    Hold runs under several loads against the first of them.

    Args:
        runs: The runs, in the order of their loads; at least one.

    Returns:
        One for each run.

    Raises:
        InputMismatchError: If more than the load differs between them.
        ContractError: If there are none.
    """
    if not runs:
        raise ContractError("runs", "got none, expected at least one")
    first = runs[0]
    for other in runs[1:]:
        _require_a_sweep(first, other)
    return tuple(
        LoadFigures(
            load=load_words(run.start.plan.load),
            totals=run.totals,
            good=run.good,
            times=MappingProxyType(
                {metric: _times(first.medians[metric], run.medians[metric]) for metric in SWEPT}
            ),
        )
        for run in runs
    )


def group_sweeps(runs: Sequence[LoadedRun]) -> list[list[LoadedRun]]:
    """Find runs that differ in nothing but their loads, two or more, from the lightest load on."""
    groups: list[list[LoadedRun]] = []
    for run in runs:
        for group in groups:
            try:
                _require_a_sweep(group[0], run)
            except InputMismatchError:
                continue
            group.append(run)
            break
        else:
            groups.append([run])
    swept = [group for group in groups if len({run.start.plan.load for run in group}) > 1]
    return [sorted(group, key=lambda run: _weight(run.start.plan.load)) for group in swept]


def _weight(load: Load) -> tuple[bool, float]:
    if isinstance(load, ClosedLoop):
        return False, load.clients
    return True, load.rate_per_s


def _require_a_sweep(first: LoadedRun, other: LoadedRun) -> None:
    names = first.start.identity.targets[0].name, other.start.identity.targets[0].name
    require_same_inputs(first.start, other.start, targets=names, allowing=("load",))


def _median(case: str, found: Summary) -> Reading:
    for quantile in found.quantiles:
        if quantile.q == _MIDDLE:
            return Reading(quantile.value, quantile.reason and f"case {case!r}: {quantile.reason}")
    return Reading(None, f"case {case!r}: no median")


def _times(first: Mapping[str, Reading], this: Mapping[str, Reading]) -> Reading:
    cases = [*dict.fromkeys((*first, *this))]
    logs = []
    for case in cases:
        for side in (first, this):
            if case not in side or side[case].value is None:
                reason = side[case].reason if case in side else f"case {case!r}: no requests"
                return Reading(None, reason)
        before, after = first[case].value, this[case].value
        if not before or not after:
            return Reading(None, f"case {case!r}: a time of 0 has no ratio")
        logs.append(math.log(after / before))
    return Reading(math.exp(math.fsum(logs) / len(logs))) if logs else Reading(None, "no requests")
