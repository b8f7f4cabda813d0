"""A run of the lab from the shell: its progress, how it is stopped, and how it ends."""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

from vlmcore._closing import Closing
from vlmcore.cli._interrupts import stopped_by_interrupt
from vlmcore.cli._loading import LoadPredictor
from vlmcore.cli._status_line import StatusLine
from vlmcore.cli.commands import ExitCode, Terminal
from vlmcore.errors import ContractError
from vlmcore.lab.artifacts import Artifact, Ending, ScoredSample
from vlmcore.lab.measuring import Measured, measure_suite
from vlmcore.lab.opening import TargetChoice
from vlmcore.lab.run_plans import RunPlan
from vlmcore.lab.suite_files import read_suite

__all__ = ["CODES", "code_of", "measured_plans"]

CODES = (
    ExitCode.DONE,
    ExitCode.INCOMPLETE,
    ExitCode.USAGE,
    ExitCode.GATE,
    ExitCode.NO_PACKAGE,
    ExitCode.INTERRUPTED,
)


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


def measured_plans(
    arguments: argparse.Namespace,
    terminal: Terminal,
    choices: Sequence[TargetChoice],
    plans: Iterable[RunPlan],
    load: LoadPredictor,
) -> list[Measured]:
    """Do plans one after the other, until all are done or one is cancelled."""
    suite = read_suite(arguments.suite)
    folder = Path(arguments.output)
    if not folder.is_dir():
        raise ContractError("--output", f"got {arguments.output!r:.200}, expected a folder")

    def tell_of_stop() -> None:
        terminal.note("stopping after what is being answered; Ctrl-C again stops at once")

    made: list[Measured] = []
    with stopped_by_interrupt(tell_of_stop) as stop:
        for plan in plans:
            with _Progress(quiet=arguments.quiet) as progress:
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
            made.append(measured)
            if measured.ended is Ending.CANCELLED:
                break
    return made


def _label(name: str) -> str:
    plain = "".join(c if c.isascii() and (c.isalnum() or c in "._-") else "-" for c in name)
    return plain.strip("-._")[:60] or "run"


def code_of(artifacts: Sequence[Artifact], otherwise: ExitCode) -> ExitCode:
    """Give the exit code of runs, *otherwise* if they were done whole and nothing failed."""
    endings = {artifact.ended for artifact in artifacts}
    if Ending.CANCELLED in endings:
        return ExitCode.INTERRUPTED
    failed = any(each.sample.failure is not None for run in artifacts for each in run.samples)
    if otherwise is ExitCode.DONE and (failed or endings != {Ending.COMPLETE}):
        return ExitCode.INCOMPLETE
    return otherwise
