"""A report of runs: one page that needs nothing else, made of evidence that was verified."""

from __future__ import annotations

import os
from collections.abc import Sequence

import vlmcore
from vlmcore._optional import optional_dependency
from vlmcore._whole_files import write_whole
from vlmcore.errors import ContractError
from vlmcore.lab.report_figures import figures_of
from vlmcore.lab.report_sweeps import sweeps_of
from vlmcore.lab.sweeps import loaded_run
from vlmcore.lab.verifying import verify_artifact

__all__ = ["report_html", "write_report"]

_MOST = 100  # runs on one page


def report_html(paths: Sequence[str | os.PathLike[str]], *, title: str = "Speed lab") -> str:
    """
    Make the page: no script, nothing from the network, and whatever models wrote stays text.

    Args:
        paths: The artifacts, 1 to 100.
        title: What stands at its top.

    Raises:
        ArtifactTamperedError: If one is not what was written: there is no report of it.
        ArtifactError: If one cannot be read.
        ContractError: If there are none, or too many.
        MissingDependencyError: If Jinja2 or rfc8785 is not installed.
    """
    if not 1 <= len(paths) <= _MOST:
        raise ContractError("artifacts", f"got {len(paths)}, expected 1 to {_MOST}")
    with optional_dependency("lab", "jinja2"):
        from vlmcore.lab._report_page import report_page  # noqa: PLC0415 - the door
    runs, swept = [], []
    for path in paths:  # one at a time: only its figures are kept
        verified = verify_artifact(path)
        runs.append(figures_of(verified))
        artifact = verified.require_sound()
        if len(artifact.start.identity.targets) == 1:
            swept.append(loaded_run(artifact))
    sweeps = sweeps_of(swept)
    return report_page(runs, sweeps, title=title, version=vlmcore.__version__)


def write_report(
    paths: Sequence[str | os.PathLike[str]],
    output: str | os.PathLike[str],
    *,
    title: str = "Speed lab",
) -> None:
    """
    Write the page to a file, whole or not at all.

    Args:
        paths: The artifacts, 1 to 100.
        output: The file.
        title: What stands at its top.

    Raises:
        VlmcoreError: As `report_html`, or if the file cannot be written.
    """
    write_whole(os.fspath(output), report_html(paths, title=title).encode())
