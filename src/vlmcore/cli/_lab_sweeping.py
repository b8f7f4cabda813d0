"""``vlmcore lab sweep``: one target under several loads."""

from __future__ import annotations

import argparse
import functools
from collections.abc import Iterator, Sequence
from typing import Any

from vlmcore.cli._lab_measuring import CODES, code_of, measured_plans
from vlmcore.cli._lab_tables import goodput_figures
from vlmcore.cli._lab_words import TARGET_HELP, add_plan_words, choice_of, plans_of
from vlmcore.cli._loading import LoadPredictor
from vlmcore.cli.commands import ExitCode, Terminal, add_parser
from vlmcore.lab.metrics import Reading
from vlmcore.lab.reporting import write_report
from vlmcore.lab.sweeps import LoadFigures, loaded_run, sweep_figures
from vlmcore.lab.totals import goodput_words, objectives_of
from vlmcore.lab.verifying import read_artifact

__all__ = ["add_sweep"]

_EPILOG = """
Each load is a run with an artifact of its own; the target is opened anew for each, and each warms
up. Times are told against the first load: the geometric mean, over the cases, of their medians,
which need five requests of each case.
"""


def add_sweep(inner: Any, load: LoadPredictor) -> None:
    """Add the command; *load* loads models of this machine."""
    sweep = add_parser(
        inner,
        "sweep",
        work=functools.partial(_sweep, load=load),
        summary="ask one target under several loads, and show them in one table",
        epilog=_EPILOG,
        codes=tuple(code for code in CODES if code is not ExitCode.GATE),
        words=("SUITE",),
        incomplete="the model could not be loaded, requests failed, or a run was ended early",
        interrupted="stopped with Ctrl-C; the artifacts hold what was measured",
    )
    sweep.add_argument("suite", metavar="SUITE", help="a .json or .toml file")
    sweep.add_argument("--target", default="embedded", metavar="TARGET", help=TARGET_HELP)
    sweep.add_argument("--report", metavar="FILE", help="write a page of HTML about all of it, too")
    add_plan_words(sweep, runs=5, is_sweep=True)


def _sweep(arguments: argparse.Namespace, terminal: Terminal, *, load: LoadPredictor) -> ExitCode:
    choice = choice_of(arguments.target, name="target", option="--target")
    plans = plans_of(arguments)
    made = measured_plans(arguments, terminal, [choice], plans, load)
    artifacts = [read_artifact(each.path) for each in made]
    figures = sweep_figures([loaded_run(artifact) for artifact in artifacts])
    goals = plans[0].goals
    if arguments.json:
        loads = [
            {"artifact": str(each.path), "ended": each.ended.value, **_document(row, goals)}
            for each, row in zip(made, figures, strict=True)
        ]
        terminal.document({"loads": loads})
    else:
        for line in _lines(figures, goals):
            terminal.line(line)
    if arguments.report is not None:
        write_report([each.path for each in made], arguments.report)
        terminal.note(f"wrote {arguments.report}")
    return code_of(artifacts, ExitCode.DONE)


def _document(row: LoadFigures, goals: Any) -> dict[str, Any]:
    totals = row.totals
    return {
        "load": row.load,
        "requests": totals.requests,
        "failures": {kind.value: count for kind, count in totals.failures.items()},
        "requests_per_s": totals.request_rate.value,
        "tokens_per_s": totals.token_rate.value,
        "goodput": goodput_figures(row.good, objectives_of(goals)),
        "times": {
            metric: {"ratio": each.value, "reason": each.reason}
            for metric, each in row.times.items()
        },
    }


def _lines(figures: Sequence[LoadFigures], goals: Any) -> Iterator[str]:
    for row in figures:
        failed = sum(row.totals.failures.values())
        yield f"{row.load}: {row.totals.requests} requests, {failed} failed"
        rates = (
            (row.totals.request_rate, "requests a second"),
            (row.totals.token_rate, "tokens a second"),
        )
        yield "  " + ", ".join(f"{_words(rate, '.2f')} {unit}" for rate, unit in rates)
        times = (
            f"{metric.partition('/')[0]} x {_words(each, '.3f')}"
            for metric, each in row.times.items()
        )
        yield f"  against the first load: {', '.join(times)}"
        if row.good is not None:
            yield f"  {goodput_words(row.good, objectives_of(goals))}"


def _words(reading: Reading, form: str) -> str:
    return "unknown" if reading.value is None else format(reading.value, form)
