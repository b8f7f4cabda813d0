"""``vlmcore lab``: measure models, and find out whether a faster one may replace today's."""

from __future__ import annotations

import argparse
import functools
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from vlmcore._closing import Closing
from vlmcore.cli._interrupts import stopped_by_interrupt
from vlmcore.cli._lab_tables import (
    artifact_figures,
    comparison_lines,
    figure_lines,
    mean_quality,
)
from vlmcore.cli._lab_words import TARGET_HELP, add_plan_words, choice_of, plan_of
from vlmcore.cli._loading import LoadPredictor
from vlmcore.cli._status_line import StatusLine
from vlmcore.cli.commands import ExitCode, Terminal, add_parser
from vlmcore.errors import ArtifactTamperedError, ContractError, InputMismatchError
from vlmcore.lab.artifacts import Artifact, Ending, ScoredSample
from vlmcore.lab.comparing import compare_targets, compared_document
from vlmcore.lab.matching import WHAT
from vlmcore.lab.measuring import Measured, measure_suite
from vlmcore.lab.opening import TargetChoice
from vlmcore.lab.recovery import finish_journal
from vlmcore.lab.reporting import write_report
from vlmcore.lab.suite_files import read_suite
from vlmcore.lab.verdicts import Rules, Verdict
from vlmcore.lab.verifying import read_artifact, verify_artifact

__all__ = ["add_command"]

_BASELINE, _CANDIDATE = "baseline", "candidate"
_CODES = (
    ExitCode.DONE,
    ExitCode.INCOMPLETE,
    ExitCode.USAGE,
    ExitCode.GATE,
    ExitCode.NO_PACKAGE,
    ExitCode.INTERRUPTED,
)
_RUN = """
A suite is a .json or .toml file of cases: an image or a video, a prompt, and what is expected of
the answer. Every request is kept as it comes, and what was kept of a run that was killed becomes an
artifact with 'vlmcore lab recover'. Nothing in an artifact can be edited without 'vlmcore lab
verify' finding it.
"""
_COMPARE = """
Both are asked every case in turn, as ABBA, so that a machine that gets warm gets warm for both. A
speed-up counts only where no case lost quality and no answer differs that must be the same.
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
        codes=_CODES,
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
    _add_compare(inner, load)
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


def _add_compare(inner: Any, load: LoadPredictor) -> None:
    compare = add_parser(
        inner,
        "compare",
        work=functools.partial(_compare, load=load),
        summary="ask two targets in turn, and judge whether one may replace the other",
        epilog=_COMPARE,
        codes=_CODES,
        words=("SUITE",),
        done="a win, or nothing that is known to be worse",
        incomplete="a model could not be loaded, requests failed, or the run was ended early",
        no_model="a regression, or invalid output",
        interrupted="stopped with Ctrl-C; the artifact holds what was measured",
    )
    compare.add_argument("suite", metavar="SUITE", help="a .json or .toml file, or an artifact")
    compare.add_argument("--baseline", default="", metavar="TARGET", help=f"today's: {TARGET_HELP}")
    compare.add_argument("--candidate", default="", metavar="TARGET", help="what may replace it")
    compare.add_argument(
        "--exact", action="append", default=[], metavar="CASE", help="its answers must be the same"
    )
    compare.add_argument(
        "--margin",
        type=float,
        default=Rules().margin,
        metavar="SHARE",
        help="how much faster or slower counts (default: %(default)s)",
    )
    compare.add_argument(
        "--allow",
        action="append",
        default=[],
        choices=WHAT,
        metavar="WHAT",
        help=f"what was changed on purpose: {', '.join(WHAT)}",
    )
    add_plan_words(compare, runs=10)


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


class _Progress(Closing):
    """Tells of a run while it is made."""

    def __init__(self, *, quiet: bool) -> None:
        self._line = StatusLine(quiet=quiet)
        self._began_s = time.monotonic()
        self._failed = 0

    def __call__(self, scored: ScoredSample, /, *, done: int, planned: int) -> None:
        self._failed += scored.sample.failure is not None
        left_s = (time.monotonic() - self._began_s) / done * (planned - done)
        failed = f", {self._failed} failed" if self._failed else ""
        self._line.write(f"measuring: {done} of {planned}, {left_s:.0f} s left{failed}")

    def close(self) -> None:
        self._line.close()


def _run(arguments: argparse.Namespace, terminal: Terminal, *, load: LoadPredictor) -> ExitCode:
    least = arguments.min_quality
    if least is not None and not 0 <= least <= 1:
        raise ContractError("--min-quality", f"got {least:g}, expected 0 to 1")
    choice = choice_of(arguments.target, name="target", option="--target")
    measured = _measured(arguments, terminal, [choice], load)
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
    return _code(measured, artifact, ExitCode.GATE if below else ExitCode.DONE)


def _compare(arguments: argparse.Namespace, terminal: Terminal, *, load: LoadPredictor) -> ExitCode:
    try:
        rules = Rules(margin=arguments.margin, exact=tuple(arguments.exact))
    except ContractError as error:
        raise ContractError(f"--{error.field.partition('[')[0]}", error.problem) from None
    choices = [
        choice_of(getattr(arguments, name), name=name, option=f"--{name}")
        for name in (_BASELINE, _CANDIDATE)
        if getattr(arguments, name)
    ]
    if len(choices) < 2:
        raise ContractError("--candidate", "expected --baseline TARGET and --candidate TARGET")
    measured = _measured(arguments, terminal, choices, load)
    artifact = read_artifact(measured.path)
    try:
        compared = compare_targets(
            artifact, targets=(_BASELINE, _CANDIDATE), rules=rules, allowing=arguments.allow
        )
    except InputMismatchError as error:
        terminal.complain(f"vlmcore: {error}")
        return ExitCode.INCOMPLETE
    if arguments.json:
        said = {"artifact": str(measured.path), "ended": measured.ended.value}
        terminal.document({**said, **compared_document(compared)})
    else:
        for line in (
            *figure_lines(artifact),
            *comparison_lines(compared, [each.sample for each in artifact.samples]),
        ):
            terminal.line(line)
    bad = compared.judgement.verdict in {Verdict.REGRESSION, Verdict.INVALID_OUTPUT}
    return _code(measured, artifact, ExitCode.GATE if bad else ExitCode.DONE)


def _measured(
    arguments: argparse.Namespace,
    terminal: Terminal,
    choices: Sequence[TargetChoice],
    load: LoadPredictor,
) -> Measured:
    plan, suite = plan_of(arguments), read_suite(arguments.suite)
    folder = Path(arguments.output)
    if not folder.is_dir():
        raise ContractError("--output", f"got {arguments.output!r:.200}, expected a folder")

    def tell_of_stop() -> None:
        terminal.note("stopping after what is being answered; Ctrl-C again stops at once")

    with (
        _Progress(quiet=arguments.quiet) as progress,
        stopped_by_interrupt(tell_of_stop) as stop,
    ):
        measured = measure_suite(
            suite,
            choices,
            plan,
            folder=folder,
            label=arguments.label or _label(suite.name),
            progress=progress,
            stop=stop,
            load=load,
        )
    terminal.note(f"wrote {measured.path}")
    return measured


def _label(name: str) -> str:
    plain = "".join(c if c.isascii() and (c.isalnum() or c in "._-") else "-" for c in name)
    return plain.strip("-._")[:60] or "run"


def _code(measured: Measured, artifact: Artifact, otherwise: ExitCode) -> ExitCode:
    if measured.ended is Ending.CANCELLED:
        return ExitCode.INTERRUPTED
    failed = any(each.sample.failure is not None for each in artifact.samples)
    if otherwise is ExitCode.DONE and (failed or measured.ended is not Ending.COMPLETE):
        return ExitCode.INCOMPLETE
    return otherwise


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
