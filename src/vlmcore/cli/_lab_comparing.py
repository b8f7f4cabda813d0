"""``vlmcore lab compare``: two targets in one run, or two runs that were measured before."""

from __future__ import annotations

import argparse
import functools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import attrs

from vlmcore.cli._lab_measuring import CODES, code_of, measured_plans
from vlmcore.cli._lab_tables import comparison_lines, figure_lines
from vlmcore.cli._lab_words import TARGET_HELP, add_plan_words, choice_of, plan_of
from vlmcore.cli._loading import LoadPredictor
from vlmcore.cli.commands import ExitCode, Terminal, add_parser
from vlmcore.errors import ContractError, InputMismatchError
from vlmcore.lab.artifact_files import digest_in_name
from vlmcore.lab.artifacts import Artifact
from vlmcore.lab.comparing import Compared, compare_runs, compare_targets, compared_document
from vlmcore.lab.matching import WHAT
from vlmcore.lab.verdicts import Rules, Verdict
from vlmcore.lab.verifying import read_artifact

__all__ = ["add_compare"]

_NAMES = ("baseline", "candidate")
_EPILOG = """
Both are asked every case in turn, as ABBA, so that a machine that gets warm gets warm for both. A
speed-up counts only where no case lost quality and no answer differs that must be the same.

Artifacts are judged again without asking anything: one that holds both targets, or two that hold
one each, under the names by which they were written. Two runs were not measured in turn, so their
answers are judged and their speeds are not. --baseline and --candidate name the targets in them,
where there are others.
"""


def add_compare(inner: Any, load: LoadPredictor) -> None:
    """Add the command; *load* loads models of this machine."""
    compare = add_parser(
        inner,
        "compare",
        work=functools.partial(_compare, load=load),
        summary="ask two targets in turn, and judge whether one may replace the other",
        epilog=_EPILOG,
        codes=CODES,
        words=("SUITE",),
        done="a win, or nothing that is known to be worse",
        incomplete="a model could not be loaded, requests failed, or the run was ended early",
        no_model="a regression, or invalid output",
        interrupted="stopped with Ctrl-C; the artifact holds what was measured",
    )
    compare.add_argument("suite", metavar="SUITE", help="a .json or .toml file, or an artifact")
    compare.add_argument(
        "other", metavar="ARTIFACT", nargs="?", help="of the candidate, if SUITE is an artifact"
    )
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


def _compare(arguments: argparse.Namespace, terminal: Terminal, *, load: LoadPredictor) -> ExitCode:
    try:
        rules = Rules(margin=arguments.margin, exact=tuple(arguments.exact))
    except ContractError as error:
        raise ContractError(f"--{error.field.partition('[')[0]}", error.problem) from None
    paths, artifacts = _evidence(arguments, terminal, load)
    is_apart = len(artifacts) > 1
    targets = _targets(arguments, artifacts, is_kept=is_apart or _is_artifact(arguments.suite))
    judge = compare_runs if is_apart else compare_targets
    try:
        compared = judge(*artifacts, targets=targets, rules=rules, allowing=arguments.allow)
    except InputMismatchError as error:
        terminal.complain(f"vlmcore: {error}")
        return ExitCode.INCOMPLETE
    if arguments.json:
        runs = [
            {"artifact": path, "ended": run.ended.value}
            for path, run in zip(paths, artifacts, strict=True)
        ]
        said = {"artifacts": runs} if is_apart else runs[0]
        terminal.document({**said, **compared_document(compared)})
    else:
        _tell(terminal, compared, artifacts)
    bad = compared.judgement.verdict in {Verdict.REGRESSION, Verdict.INVALID_OUTPUT}
    return code_of(artifacts, ExitCode.GATE if bad else ExitCode.DONE)


def _is_artifact(path: str) -> bool:
    return digest_in_name(Path(path).name) is not None


def _evidence(
    arguments: argparse.Namespace, terminal: Terminal, load: LoadPredictor
) -> tuple[list[str], list[Artifact]]:
    """Measure both targets, or read what was measured before; artifacts are verified."""
    if arguments.other is not None:
        paths = [arguments.suite, arguments.other]
    elif _is_artifact(arguments.suite):
        paths = [arguments.suite]
    else:
        choices = [
            choice_of(getattr(arguments, name), name=name, option=f"--{name}")
            for name in _NAMES
            if getattr(arguments, name)
        ]
        if len(choices) < 2:
            raise ContractError("--candidate", "expected --baseline TARGET and --candidate TARGET")
        plans = [plan_of(arguments)]
        (measured,) = measured_plans(arguments, terminal, choices, plans, load)
        paths = [str(measured.path)]
    return paths, [read_artifact(path) for path in paths]


def _targets(
    arguments: argparse.Namespace, artifacts: Sequence[Artifact], *, is_kept: bool
) -> tuple[str, str]:
    if not is_kept:
        return _NAMES
    there = [[target.name for target in each.start.identity.targets] for each in artifacts]
    if len(there) == 2:  # runs that have one target each, or it is said which one is meant
        usual = [names[0] if len(names) == 1 else "" for names in there]
    else:
        usual = there[0] if len(there[0]) == 2 else ["", ""]
    first, second = arguments.baseline or usual[0], arguments.candidate or usual[1]
    for option, name, names in zip(_NAMES, (first, second), (there[0], there[-1]), strict=True):
        if name not in names:
            got = f"got {name!r:.200}" if name else "got none"
            raise ContractError(f"--{option}", f"{got}, expected one of {', '.join(names)}")
    return first, second


def _tell(terminal: Terminal, compared: Compared, artifacts: Sequence[Artifact]) -> None:
    for artifact in artifacts:
        for line in figure_lines(artifact):
            terminal.line(line)
    if len(artifacts) > 1:
        labels = (artifact.start.label for artifact in artifacts)
        pairs = zip(labels, compared.targets, strict=True)
        before, after = (f"{label} ({name})" for label, name in pairs)
        compared = attrs.evolve(compared, targets=(before, after))
    samples = [each.sample for artifact in artifacts for each in artifact.samples]
    for line in comparison_lines(compared, samples):
        terminal.line(line)
    if len(artifacts) > 1:
        terminal.line("  measured in two runs, not in turn: no speed counts")
