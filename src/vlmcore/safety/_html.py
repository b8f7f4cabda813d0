"""What reports and vetted actions look like in notebooks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vlmcore.charts.chart import Chart
from vlmcore.contracts._html import LIMITS_WORDS, chart_parts
from vlmcore.contracts._markup import card, details, paragraph, table, text
from vlmcore.safety.findings import WORDS

if TYPE_CHECKING:
    from vlmcore.safety.report import SafetyReport
    from vlmcore.safety.vetted import VettedChunk

__all__ = ["report_html", "vetted_html"]

_LISTED = 10  # violations that are shown one by one
_GOOD, _BAD = "#1a7f37", "#d1001f"


def report_html(report: SafetyReport) -> str:
    """Show a report: the verdict, how many violations of each kind, the first of them."""
    robot = f" for {text(report.embodiment)}" if report.embodiment else ""
    return card(f"Safety report on {text(report.policy_source)}{robot}", *_report_parts(report))


def _report_parts(report: SafetyReport) -> list[str]:
    size = f"{report.execution_horizon:,} of {report.input_horizon:,} steps looked at"
    known = "known" if report.previous_action_provided else "not known"
    said = (
        f"{size}, {report.action_dim:,} dimensions; mode {report.mode.value}; last command {known}"
    )
    counts = [(WORDS[kind], f"{count:,}") for kind, count in report.counts.items() if count]
    violations = report.violations
    listed = "".join(paragraph(text(str(each))) for each in violations[:_LISTED])
    left = sum(report.counts.values()) - min(_LISTED, len(violations))
    more = paragraph(f"… and {left:,} more", quiet=True) if left else ""
    return [
        paragraph(_verdict(report)),
        paragraph(said, quiet=True),
        table(("found in what came", "values"), counts) if counts else "",
        details("First violations", listed + more) if violations else "",
    ]


def _verdict(report: SafetyReport) -> str:
    if report.safe_for_handoff:
        changed = ", after changes" if report.changed else ", unchanged"
        cut = f", {report.cut_steps:,} steps cut off" if report.cut_steps else ""
        return _badge(_GOOD, f"Safe to hand on{changed}{cut}")
    reason = "" if report.reason is None else f": {report.reason.value.replace('_', ' ')}"
    return _badge(_BAD, f"Not safe to hand on{reason}")


def _badge(colour: str, words: str) -> str:
    look = f"background:{colour};color:#ffffff;border-radius:4px;padding:.1em .5em"
    return f'<span style="{look}">{words}</span>'


def vetted_html(vetted: VettedChunk, chart: Chart) -> str:
    """Show vetted actions: the verdict, whose limits they keep, a chart, what was found before."""
    source = vetted.limits_source
    limits = "" if source is None else paragraph(f"<em>{LIMITS_WORDS[source.value]}</em>")
    title, said, *shown = chart_parts(vetted.source, vetted.observed_at_s, chart)
    verdict, *found = _report_parts(vetted.report)
    return card(f"Vetted: {title}", verdict, said, limits, *shown, *found)
