"""``vlmcore caption``: captions for many images, in a job that goes on where it ended."""

from __future__ import annotations

import argparse
import functools
from pathlib import Path
from typing import Any

from vlmcore.cli._asking import placement_of
from vlmcore.cli._caption_engines import cluster_of
from vlmcore.cli._caption_progress import CaptionProgress, report_document, summary
from vlmcore.cli._caption_words import add_words, option_of, plan_of
from vlmcore.cli._interrupts import stopped_by_interrupt
from vlmcore.cli._loading import LoadPredictor
from vlmcore.cli.commands import ExitCode, Terminal, add_parser
from vlmcore.errors import ContractError, JobSourceError, ModelError
from vlmcore.jobs.captioning import caption_images, journal_of
from vlmcore.jobs.exporting import JobStatus, export_table, status_of
from vlmcore.jobs.journal import Journal, Outcome
from vlmcore.jobs.models import NamedModel
from vlmcore.jobs.reports import Failure, JobReport
from vlmcore.jobs.sinks.tables import TableKind

__all__ = ["add_command", "with_run"]

_SHOWN = 10
_INNER = ("run", "status", "export")
_CODES = tuple(code for code in ExitCode if code is not ExitCode.UNSAFE)
_TARGET = "the folder of the caption files, or the table, that the job writes"
_EPILOG = """
'vlmcore caption SOURCE' is short for this. Run it again, and it goes on: what was done is not asked
again, unless an image, a question or the model is another. 'vlmcore caption status FOLDER' says
how far it is, 'vlmcore caption export FOLDER -o FILE' writes a table of it, also while it runs.

The journal is in a folder .vlmcore beside the captions. Images are never written to. What fails
is told at the end, and left until --retry-failed. Ctrl-C ends it after what is being answered; a
second one at once.
"""


def with_run(words: list[str]) -> list[str]:
    """Write out ``vlmcore caption FOLDER``, which is short for ``vlmcore caption run FOLDER``."""
    if words[:1] == ["caption"] and words[1:2] and words[1] not in _INNER:
        return ["caption", "run", *words[1:]]
    return words


def add_command(commands: Any, *, load: LoadPredictor) -> None:
    """Add the command to *commands*; *load* loads its model."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "caption",
        help="caption a folder of images, in a job that can be stopped and goes on",
        description="Caption many images, in a job that can be stopped and goes on.",
        allow_abbrev=False,
    )
    inner = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    run = add_parser(
        inner,
        "run",
        work=functools.partial(_run, load=load),
        summary="caption the images of SOURCE; 'run' may be left out",
        epilog=_EPILOG,
        codes=_CODES,
        done="every image has a caption, or one that it had before",
        incomplete="some images have none; the others were done",
        interrupted="stopped with Ctrl-C; the same command goes on",
    )
    add_words(run)
    status = add_parser(
        inner, "status", work=_status, summary="say how far a job is, and what failed", epilog=""
    )
    status.add_argument("target", metavar="TARGET", help=_TARGET)
    status.add_argument("--failures", type=int, default=_SHOWN, metavar="N", help="list so many")
    status.add_argument("--json", action="store_true", help="as a JSON object")
    export = add_parser(
        inner, "export", work=_export, summary="write a table of what a job has done", epilog=""
    )
    export.add_argument("target", metavar="TARGET", help=_TARGET)
    export.add_argument(
        "-o", "--output", required=True, metavar="FILE", help="a .jsonl or .parquet file"
    )


def _run(arguments: argparse.Namespace, terminal: Terminal, *, load: LoadPredictor) -> ExitCode:
    try:
        plan = plan_of(arguments)
        cluster = cluster_of(arguments)
        placement = placement_of(arguments)
    except JobSourceError as error:
        raise ContractError("SOURCE", str(error)) from None
    except ContractError as error:
        raise ContractError(option_of(error.field), error.problem) from None
    model = NamedModel(arguments.model, functools.partial(load, **placement))

    def tell_of_stop() -> None:
        terminal.note("stopping after what is being answered; Ctrl-C again stops at once")

    try:
        with (
            CaptionProgress(terminal, quiet=arguments.quiet) as progress,
            stopped_by_interrupt(tell_of_stop) as stop,
        ):
            report = caption_images(plan, model, progress=progress, stop=stop, cluster=cluster)
    except ModelError as error:
        terminal.complain(f"vlmcore: {error}")
        return ExitCode.NO_MODEL
    _tell(report, terminal, as_json=arguments.json)
    if report.was_stopped:
        return ExitCode.INTERRUPTED
    return ExitCode.INCOMPLETE if report.failed else ExitCode.DONE


def _tell(report: JobReport, terminal: Terminal, *, as_json: bool) -> None:
    _complain_of(report.failures, report.failed, terminal)
    if as_json:
        terminal.document(report_document(report))
    terminal.note(summary(report))


def _complain_of(failures: tuple[Failure, ...], count: int, terminal: Terminal) -> None:
    for failure in failures[:_SHOWN]:
        terminal.complain(f"vlmcore: {failure.key}: {failure.problem}")
    if count > _SHOWN:
        terminal.complain(f"vlmcore: and {count - _SHOWN:,} more, see 'vlmcore caption status'")


def _status(arguments: argparse.Namespace, terminal: Terminal) -> ExitCode:
    with Journal(journal_of(Path(arguments.target)), read_only=True) as journal:
        status = status_of(journal, most_failures=max(0, arguments.failures))
    if arguments.json:
        terminal.document(_status_document(status))
        return ExitCode.DONE
    counts = status.counts
    done = sum(counts[each] for each in Outcome if each is not Outcome.WAITING)
    terminal.line(f"{status.source}, asked of {status.model}")
    terminal.line(f"{done:,} of {sum(counts.values()):,} images are done with:")
    for outcome, count in counts.items():
        if count:
            terminal.line(f"  {count:,} {outcome.value}")
    for failure in status.failures:
        terminal.line(f"{failure.key}: {failure.problem}")
    return ExitCode.DONE


def _status_document(status: JobStatus) -> dict[str, Any]:
    return {
        "source": status.source,
        "model": status.model,
        "runs": status.runs,
        **{outcome.value: count for outcome, count in status.counts.items()},
        "failures": [{"key": each.key, "problem": each.problem} for each in status.failures],
    }


def _export(arguments: argparse.Namespace, terminal: Terminal) -> ExitCode:
    try:
        kind = TableKind.of(arguments.output)
    except ContractError as error:
        raise ContractError("--output", error.problem) from None
    with Journal(journal_of(Path(arguments.target)), read_only=True) as journal:
        rows = export_table(journal, Path(arguments.output), kind)
    terminal.note(f"{arguments.output}: {rows:,} rows")
    return ExitCode.DONE
