"""What a report shows of runs that differ in nothing but their loads: one table."""

from __future__ import annotations

from collections.abc import Sequence

from vlmcore.lab.metrics import Reading
from vlmcore.lab.report_contents import Swept
from vlmcore.lab.sweeps import SWEPT, LoadedRun, LoadFigures, group_sweeps, sweep_figures

__all__ = ["sweeps_of"]


def sweeps_of(runs: Sequence[LoadedRun]) -> tuple[Swept, ...]:
    """Make a table of each sweep among runs; those that are of none are left out."""
    return tuple(
        Swept(
            title=f"{group[0].start.suite['name']}: {group[0].start.identity.targets[0].name}",
            metrics=SWEPT,
            rows=tuple(_row(figures) for figures in sweep_figures(group)),
        )
        for group in group_sweeps(runs)
    )


def _row(figures: LoadFigures) -> tuple[str, ...]:
    totals, good = figures.totals, figures.good
    return (
        figures.load,
        str(totals.requests),
        str(sum(totals.failures.values())),
        _words(totals.request_rate, ".2f"),
        _words(totals.token_rate, ".1f"),
        "no goals" if good is None else f"{good.good} of {good.requests}",
        *(_times(each) for each in figures.times.values()),
    )


def _words(reading: Reading, form: str) -> str:
    return reading.reason if reading.value is None else format(reading.value, form)


def _times(reading: Reading) -> str:
    return reading.reason if reading.value is None else f"x {reading.value:.3f}"
