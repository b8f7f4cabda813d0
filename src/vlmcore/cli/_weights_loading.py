"""The work of ``vlmcore weights load`` and ``tune``: weights are read, and it is told how fast."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from vlmcore.cli._bytes_progress import BytesProgress, in_bytes
from vlmcore.cli._exit_codes import ExitCode
from vlmcore.cli._terminal import Terminal
from vlmcore.limits import WeightLimits
from vlmcore.weights.budget import ReadBudget
from vlmcore.weights.loading import read_weights
from vlmcore.weights.opening import WeightFiles, open_files
from vlmcore.weights.report import LoadReport, Way
from vlmcore.weights.tuning import Tuning, autotune, remembered
from vlmcore.weights.verifying import Verification

__all__ = ["load", "tune"]


def load(
    terminal: Terminal,
    path: str,
    *,
    way: Way,
    verification: Verification,
    wishes: dict[str, Any],
    limits: WeightLimits,
    as_json: bool,
    quiet: bool,
) -> ExitCode:
    """
    Load weights, tell how that went, and let go of them.

    Raises:
        ContractError: If a wish makes no budget.
        WeightsError: If they cannot be loaded.
    """
    with (
        open_files(path, limits=limits) as files,
        BytesProgress("loading", quiet=quiet) as progress,
    ):
        weights = read_weights(
            files,
            way=way,
            verification=verification,
            budget=_budget(files, wishes),
            progress=progress,
        )
        report = weights.report
        weights.close()
    if as_json:
        terminal.document(report.to_dict())
    else:
        for line in _lines(report):
            terminal.line(line)
    return ExitCode.DONE


def tune(
    terminal: Terminal,
    path: str,
    *,
    memory: str | None,
    again: bool,
    limits: WeightLimits,
    as_json: bool,
) -> ExitCode:
    """
    Measure how weights are read fastest, or remember it, and tell.

    Raises:
        ContractError: If it cannot be remembered.
        WeightsError: If they cannot be read.
    """
    tuning = autotune(path, memory=memory, again=again, limits=limits)
    if as_json:
        terminal.document(tuning.to_dict())
    else:
        for line in _tuning_lines(tuning):
            terminal.line(line)
    return ExitCode.DONE


def _budget(files: WeightFiles, wishes: dict[str, Any]) -> ReadBudget | None:
    """Take what was asked for, else what was found to be fastest, else what is usual."""
    return ReadBudget.for_host(**wishes) if wishes else remembered(files)


def _lines(report: LoadReport) -> Iterator[str]:
    yield (
        f"{report.path}: {report.tensors} tensors, {in_bytes(report.payload_bytes)} "
        f"in {report.total_s:.3f} s, {report.gb_per_s:.2f} GB/s ({report.way.value})"
    )
    yield "  " + ", ".join(f"{name} {seconds:.3f} s" for name, seconds in report.phases_s.items())
    for what, count in (
        ("mapped", report.mapped_bytes),
        ("read past the page cache", report.direct_bytes),
        ("read through the page cache", report.plain_bytes),
        ("of staging memory", report.staging_bytes),
        ("compared with the manifest", report.verified_bytes),
    ):
        if count:
            yield f"  {in_bytes(count)} {what}"
    for step in report.steps_down:
        yield f"  {step}"


def _tuning_lines(tuning: Tuning) -> Iterator[str]:
    for trial in tuning.trials:
        path = "past the page cache" if trial.direct else "through the page cache"
        chunk = in_bytes(trial.chunk_bytes)
        yield (
            f"  {trial.gb_per_s:6.2f} GB/s from {trial.where}: {trial.readers} readers, "
            f"parts of {chunk}, {path}"
        )
    budget = tuning.budget
    how = "as it was measured before" if tuning.is_remembered else "measured now, and remembered"
    through = "through the page cache"
    direct = "past the page cache where it is not there" if budget.direct is None else through
    yield (
        f"{budget.readers} readers, parts of {in_bytes(budget.chunk_bytes)}, {direct}, "
        f"{budget.cached_readers} for what is in memory: {how}"
    )
