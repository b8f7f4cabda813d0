"""Hypothesis strategies for what is told of policies that were only compared."""

from __future__ import annotations

from typing import Any

import numpy as np

from vlmcore._arrays import BoolArray, Float64Array
from vlmcore._optional import optional_dependency
from vlmcore.rollout.open_loop_report import GateCounts, Latency, OpenLoopReport
from vlmcore.rollout.shadow import ShadowReport
from vlmcore.safety.findings import ViolationKind
from vlmcore.testing._plain_strategies import names, some_names, texts

with optional_dependency("testing", "hypothesis"):
    from hypothesis import strategies as st
    from hypothesis.extra import numpy as hnp

__all__ = ["open_loop_reports", "shadow_reports"]

_COUNTS = st.integers(0, 1000)
_ERRORS = st.floats(0.0, 1e6)
_UNITS = st.sampled_from(("", "rad", "m"))


@st.composite
def open_loop_reports(draw: st.DrawFn) -> OpenLoopReport:
    """
    How far policies may be from what was recorded; some of none that ever answered.

    Args:
        draw: Given by hypothesis.

    Example:
        >>> from hypothesis import Phase, find, settings
        >>> any_will_do = settings(phases=[Phase.generate])  # the simplest takes long to find
        >>> two_steps = lambda report: report.horizon == 2
        >>> len(find(open_loop_reports(), two_steps, settings=any_will_do).count)
        2
    """
    columns = draw(some_names(1, 4))
    shape = (draw(st.integers(0, 3)), len(columns))
    has_levels = draw(_each(st.booleans(), columns))
    count = draw(hnp.arrays("float64", shape, elements=st.sampled_from((0.0, 1.0, 40.0))))
    observations = draw(_COUNTS)
    took_ms = sorted(draw(st.tuples(_ERRORS, _ERRORS, _ERRORS)))
    latency = Latency(median_ms=took_ms[0], p95_ms=took_ms[1], longest_ms=took_ms[2])
    chunks = draw(_COUNTS)
    gate = GateCounts(
        chunks=chunks,
        unsafe=draw(st.integers(0, chunks)),
        violations=draw(st.dictionaries(st.sampled_from(ViolationKind), _COUNTS)),
    )
    return OpenLoopReport(
        policy=draw(names()),
        episodes=draw(_COUNTS),
        observations=observations,
        failures=draw(st.integers(0, observations)),
        failure_examples=draw(st.lists(texts(min_size=1).filter(str.strip), max_size=2)),
        names=columns,
        units=draw(_each(_UNITS, columns)),
        has_levels=has_levels,
        count=count,
        mae=_where(count > 0, draw(hnp.arrays("float64", shape, elements=_ERRORS))),
        rmse=_where(count > 0, draw(hnp.arrays("float64", shape, elements=_ERRORS))),
        worst=_where(count > 0, draw(hnp.arrays("float64", shape, elements=_ERRORS))),
        agreement=_where(
            (count > 0) & has_levels,
            draw(hnp.arrays("float64", shape, elements=st.floats(0.0, 1.0))),
        ),
        lost=draw(_each(_COUNTS, columns)),
        unknown=draw(_each(_COUNTS, columns)),
        latency=draw(st.sampled_from((None, latency))),
        gate=draw(st.sampled_from((None, gate))),
    )


@st.composite
def shadow_reports(draw: st.DrawFn) -> ShadowReport:
    """
    What candidates would have done; some of none that was ever compared.

    Args:
        draw: Given by hypothesis.

    Example:
        >>> from hypothesis import find
        >>> find(shadow_reports(), lambda report: report.candidate_refused == 2).compared
        2
    """
    columns, compared = draw(some_names(1, 4)), draw(_COUNTS)
    refused = st.integers(0, compared)
    known = np.array(draw(_each(st.booleans(), columns))) & (compared > 0)
    by_column = hnp.arrays("float64", len(columns), elements=_ERRORS)
    return ShadowReport(
        names=columns,
        units=draw(_each(_UNITS, columns)),
        compared=compared,
        dropped=draw(_COUNTS),
        failed=draw(_COUNTS),
        last_failure=draw(texts()),
        candidate_refused=draw(refused),
        policy_refused=draw(refused),
        mean=_where(known, draw(by_column)),
        worst=_where(known, draw(by_column)),
        lost=draw(hnp.arrays("float64", len(columns), elements=st.sampled_from((0.0, 3.0)))),
    )


def _each(values: st.SearchStrategy[Any], columns: list[str]) -> st.SearchStrategy[tuple[Any, ...]]:
    """Draw one value a column."""
    return st.tuples(*(values for _ in columns))


def _where(known: BoolArray, values: Float64Array) -> Float64Array:
    """Put NaN where nothing was compared."""
    return np.where(known, values, np.nan)
