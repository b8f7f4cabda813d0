"""``vlmcore lab``: measure models, and find out whether a faster one may replace today's."""

from __future__ import annotations

import argparse
import functools
from typing import Any

from vlmcore.cli._lab_comparing import add_compare
from vlmcore.cli._lab_measuring import CODES, code_of, measured_plans
from vlmcore.cli._lab_sweeping import add_sweep
from vlmcore.cli._lab_tables import artifact_figures, figure_lines, mean_quality
from vlmcore.cli._lab_words import TARGET_HELP, add_plan_words, choice_of, plan_of
from vlmcore.cli._loading import LoadPredictor
from vlmcore.cli.commands import ExitCode, Terminal, add_parser
from vlmcore.errors import ArtifactTamperedError, ContractError
from vlmcore.lab.recovery import finish_journal
from vlmcore.lab.reporting import write_report
from vlmcore.lab.verifying import read_artifact, verify_artifact

__all__ = ["add_command"]

_RUN = """
A suite is a .json or .toml file of cases: an image or a video, a prompt, and what is expected of
the answer. Every request is kept as it comes, and what was kept of a run that was killed becomes an
artifact with 'vlmcore lab recover'. Nothing in an artifact can be edited without 'vlmcore lab
verify' finding it.
"""


def add_command(commands: Any, *, load: LoadPredictor) -> None:
    """Add the command to *commands*; *load* loads models of this machine."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "lab",
        help="measure models, and judge whether a faster one may replace today's",
        description="Measure models, and judge whether a faster one may replace today's.",
        allow_abbrev=False,
    )
    inner = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    run = add_parser(
        inner,
        "run",
        work=functools.partial(_run, load=load),
        summary="ask one target every case of a suite, and write the evidence",
        epilog=_RUN,
        codes=CODES,
        words=("SUITE",),
        incomplete="the model could not be loaded, requests failed, or the run was ended early",
        no_model="a case is below --min-quality",
        interrupted="stopped with Ctrl-C; the artifact holds what was measured",
    )
    run.add_argument("suite", metavar="SUITE", help="a .json or .toml file")
    run.add_argument("--target", default="embedded", metavar="TARGET", help=TARGET_HELP)
    run.add_argument(
        "--min-quality", type=float, metavar="Q", help="lowest mean score of each case, 0 to 1"
    )
    add_plan_words(run, runs=5)
    add_compare(inner, load)
    add_sweep(inner, load)
    _add_verify(inner)
    report = add_parser(
        inner,
        "report",
        work=_report,
        summary="write one page of HTML about artifacts, which are verified first",
        epilog="",
        incomplete="an artifact was edited or cannot be read, or the page cannot be written",
    )
    report.add_argument("artifacts", nargs="+", metavar="ARTIFACT", help="a .json file")
    report.add_argument("-o", "--output", required=True, metavar="FILE", help="an .html file")
    report.add_argument("--title", default="Speed lab", metavar="TEXT", help="(default: Speed lab)")
    recover = add_parser(
        inner,
        "recover",
        work=_recover,
        summary="write the artifact of a run that was killed, from its journal",
        epilog="",
    )
    recover.add_argument("journal", metavar="JOURNAL", help="a .journal file")


def _add_verify(inner: Any) -> None:
    verify = add_parser(
        inner,
        "verify",
        work=_verify,
        summary="find out whether artifacts are what was written, byte for byte",
        epilog="",
        incomplete="an artifact was edited, or cannot be read",
    )
    verify.add_argument("artifacts", nargs="+", metavar="ARTIFACT", help="a .json file")
    verify.add_argument("--sha256", metavar="HEX", help="the digest that was kept of a single one")
    verify.add_argument("--json", action="store_true", help="as a JSON object a line")


def _run(arguments: argparse.Namespace, terminal: Terminal, *, load: LoadPredictor) -> ExitCode:
    least = arguments.min_quality
    if least is not None and not 0 <= least <= 1:
        raise ContractError("--min-quality", f"got {least:g}, expected 0 to 1")
    choice = choice_of(arguments.target, name="target", option="--target")
    (measured,) = measured_plans(arguments, terminal, [choice], [plan_of(arguments)], load)
    artifact = read_artifact(measured.path)
    below = [
        case
        for case, quality in mean_quality(artifact.samples).items()
        if least is not None and (quality is None or quality < least)
    ]
    if arguments.json:
        terminal.document(
            {
                "artifact": str(measured.path),
                "ended": measured.ended.value,
                "below_min_quality": below,
                "targets": artifact_figures(artifact),
            }
        )
    else:
        for line in figure_lines(artifact):
            terminal.line(line)
    for case in below:
        terminal.complain(f"vlmcore: case {case!r} is below --min-quality {least:g}")
    return code_of([artifact], ExitCode.GATE if below else ExitCode.DONE)


def _verify(arguments: argparse.Namespace, terminal: Terminal) -> ExitCode:
    if arguments.sha256 is not None and len(arguments.artifacts) > 1:
        raise ContractError("--sha256", "is of one artifact, and several were given")
    code = ExitCode.DONE
    for path in arguments.artifacts:
        found = verify_artifact(path, sha256=arguments.sha256)
        if arguments.json:
            terminal.document(
                {
                    "artifact": path,
                    "sha256": found.sha256,
                    "is_sound": found.is_sound,
                    "is_verified": found.is_verified,
                    "edits": [str(edit) for edit in found.edits],
                }
            )
        elif found.is_verified:
            terminal.line(f"{path}: verified, sha256 {found.sha256}")
        elif found.artifact is not None:
            terminal.line(f"{path}: as it was written, sha256 {found.sha256}")
            for place, why in found.artifact.unknown.items():
                terminal.line(f"  unknown: {place}: {why}")
        if not found.is_sound:
            code = ExitCode.INCOMPLETE
            edits = tuple((edit.place, edit.problem) for edit in found.edits)
            terminal.complain(f"vlmcore: {ArtifactTamperedError(path, edits)}")
    return code


def _report(arguments: argparse.Namespace, terminal: Terminal) -> ExitCode:
    write_report(arguments.artifacts, arguments.output, title=arguments.title)
    terminal.note(f"wrote {arguments.output}")
    return ExitCode.DONE


def _recover(arguments: argparse.Namespace, terminal: Terminal) -> ExitCode:
    terminal.line(str(finish_journal(arguments.journal)))
    return ExitCode.DONE
