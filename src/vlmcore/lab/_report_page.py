"""The page of a report, by Jinja2."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import jinja2

from vlmcore.lab.report_contents import RunFigures, Swept

__all__ = ["report_page"]

_TEMPLATE = Path(__file__).with_name("report.html.j2")


def report_page(
    runs: Sequence[RunFigures], sweeps: Sequence[Swept], *, title: str, version: str
) -> str:
    """Write the page; whatever the runs hold stays text."""
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    template = environment.from_string(_TEMPLATE.read_text(encoding="utf-8"))
    columns = (
        ("win", "Winners"),
        ("regression", "Regressions"),
        ("open", "Not decided"),
    )
    return template.render(runs=runs, sweeps=sweeps, title=title, version=version, columns=columns)
