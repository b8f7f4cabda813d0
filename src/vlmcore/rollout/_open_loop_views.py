"""The report of an open-loop evaluation as lines of text and in notebooks."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

from vlmcore.charts.drawing import draw_svg
from vlmcore.contracts._markup import card, details, paragraph, table, text
from vlmcore.safety.findings import WORDS

if TYPE_CHECKING:
    from vlmcore.rollout.open_loop_report import OpenLoopReport

__all__ = ["lines_of", "report_html"]

_HEAD = ("dimension", "unit", "mean error", "rmse", "largest", "first step", "last step", "same")
_ROWS = 64  # more than a person reads; documents hold all


def lines_of(report: OpenLoopReport) -> Iterator[str]:
    """Write the report: what was done, then a table of the dimensions."""
    yield from _sentences(report)
    rows = [_HEAD, *_rows(report)]
    widths = [max(len(row[i]) for row in rows) for i in range(len(_HEAD))]
    for row in rows:
        cells = [
            cell.ljust(width) if i < 2 else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        yield "  ".join(cells).rstrip()
    yield from _more(report)


def report_html(report: OpenLoopReport) -> str:
    """Show the report: the same, with a chart of the error by step and one of an episode."""
    said = [paragraph(text(line)) for line in _sentences(report)]
    rows = [(text(name), text(unit), *rest) for name, unit, *rest in _rows(report)]
    charts = []
    if report.horizon:
        charts.append(draw_svg(report.error_chart()))
    if report.trace is not None:
        charts.append(details("The first episode", draw_svg(report.trace.chart())))
    more = [paragraph(text(line), quiet=True) for line in _more(report)]
    return card(
        f"Open loop: {text(report.policy)}", *said, table(_HEAD, rows, texts=2), *more, *charts
    )


def _sentences(report: OpenLoopReport) -> Iterator[str]:
    yield (
        f"{report.policy}: {_count(report.episodes, 'episode')}, "
        f"{_count(report.observations, 'observation')}, {_count(report.failures, 'failure')}"
    )
    for example in report.failure_examples:
        yield f"failed: {example}"
    latency = report.latency
    if latency is not None:
        yield (
            f"an answer takes {latency.median_ms:.3g} ms, 95 of 100 at most {latency.p95_ms:.3g}, "
            f"the longest {latency.longest_ms:.3g}"
        )
    gate = report.gate
    if gate is not None:
        found = ", ".join(f"{count} {WORDS[kind]}" for kind, count in gate.violations.items())
        yield (
            f"the gate would stop {gate.unsafe} of {_count(gate.chunks, 'chunk')} as they came"
            f"{': ' + found if found else ''}"
        )


def _rows(report: OpenLoopReport) -> list[tuple[str, ...]]:
    return [_row(report, i) for i in range(min(len(report.names), _ROWS))]


def _row(report: OpenLoopReport, column: int) -> tuple[str, ...]:
    first = last = math.nan
    if report.horizon:
        first, last = report.mae[0, column], report.mae[-1, column]
    same = report.agreement_of(column)
    numbers = (report.mae_of(column), report.rmse_of(column), report.worst_of(column), first, last)
    return (
        report.names[column],
        report.units[column],
        *map(_number, numbers),
        "" if math.isnan(same) else f"{100 * same:.1f} %",
    )


def _more(report: OpenLoopReport) -> Iterator[str]:
    if len(report.names) > _ROWS:
        yield f"and {len(report.names) - _ROWS} more dimensions"
    lost, unknown = sum(report.lost), sum(report.unknown)
    if lost:
        yield f"{lost} proposed values could not be compared: they are no numbers, or no rotation"
    if unknown:
        yield f"{unknown} recorded values are no numbers, and nothing was compared with them"


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def _number(value: float) -> str:
    return "" if math.isnan(value) else f"{value:.4g}"
