"""Artifacts from the journals of runs that ended without one, as when the process was killed."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from vlmcore.contracts.faults import Faults
from vlmcore.contracts.json_text import read_json
from vlmcore.errors import ArtifactError, ContractError
from vlmcore.lab._journal_locks import is_taken
from vlmcore.lab.artifact_documents import read_scored, start_from_document
from vlmcore.lab.artifact_files import read_bytes, shown_path, write_artifact
from vlmcore.lab.artifact_schema import ENDED, JOURNAL_END, JOURNAL_SAMPLE
from vlmcore.lab.artifacts import Artifact, Ending, RunStart, ScoredSample
from vlmcore.lab.events import Phase
from vlmcore.limits import ArtifactLimits

__all__ = ["artifact_of_journal", "finish_journal"]


def finish_journal(path: str | os.PathLike[str], *, limits: ArtifactLimits | None = None) -> Path:
    """
    Write the artifact of a run that was killed beside its journal, and delete the journal.

    Args:
        path: The journal.
        limits: How much is read.

    Returns:
        The path of the artifact.

    Raises:
        ArtifactError: If the run still goes on, a line but the last has faults, or the artifact
            cannot be written; the journal is kept.
        MissingDependencyError: If rfc8785 is not installed.
    """
    artifact = artifact_of_journal(path, limits=limits)
    journal = Path(path)
    with journal.open("rb") as file:
        if is_taken(file):
            raise ArtifactError(shown_path(path), "is still being written")
        made = write_artifact(artifact, journal.parent, limits=limits)
    journal.unlink(missing_ok=True)
    return made


def artifact_of_journal(
    path: str | os.PathLike[str], *, limits: ArtifactLimits | None = None
) -> Artifact:
    """
    Make the artifact of what a journal holds, and leave it as it is.

    Only the last line may be cut: that is what a crash leaves, and it is left away. A run that did
    not say how it ended was killed.

    Args:
        path: The journal.
        limits: How much is read.

    Raises:
        ArtifactError: If there is no such file, it is too large, or a line has faults.
    """
    limits = limits or ArtifactLimits()
    *lines, rest = read_bytes(path, limits=limits).split(b"\n")
    content, number = _Content(limits), 1
    try:
        for line in lines:
            content.take(line)
            number += 1
        if rest:
            content.take_cut(rest)
        return content.artifact()
    except ContractError as error:
        raise ArtifactError(shown_path(path), f"line {number}: {error}") from error


class _Content:
    """What was read of a journal."""

    def __init__(self, limits: ArtifactLimits) -> None:
        self._limits = limits
        self._start: tuple[RunStart, int] | None = None
        self._warm_ups: list[ScoredSample] = []
        self._samples: list[ScoredSample] = []
        self._ended: dict[str, Any] = {
            "ended": Ending.KILLED,
            "reason": "it ended without a word: this was made from its journal",
        }

    def take(self, line: bytes) -> None:
        """Read a line."""
        document = read_json(line, limits=self._limits.of_a_line)
        if self._start is None:
            self._start = start_from_document(document)
        elif isinstance(document, dict) and document.get("schema") == JOURNAL_END.schema_id:
            said = JOURNAL_END.check(document)
            self._ended = {key: said[key] for key in ENDED} | {"ended": Ending(said["ended"])}
        else:
            self._take_sample(document)

    def take_cut(self, line: bytes) -> None:
        """Read the last line, which has no end: if it cannot be read, it was cut."""
        if self._start is None:
            raise ContractError("journal", "is cut in its first line, expected a whole one")
        try:
            self.take(line)
        except ContractError:
            self._ended["reason"] += "; its last line was cut, and is left away"

    def artifact(self) -> Artifact:
        """Make the artifact."""
        if self._start is None:
            raise ContractError("journal", "is empty, expected its first line")
        start, planned = self._start
        said = {"planned": planned} | self._ended
        return Artifact(start=start, warm_ups=self._warm_ups, samples=self._samples, **said)

    def _take_sample(self, document: Any) -> None:
        faults = Faults(JOURNAL_SAMPLE.name)
        said = JOURNAL_SAMPLE.read(document, faults)
        faults.raise_any()
        scored = read_scored(said, "$", faults)
        faults.raise_any()
        if scored is not None:
            is_warm_up = scored.sample.phase is Phase.WARM_UP
            (self._warm_ups if is_warm_up else self._samples).append(scored)
