"""
The journal of a run: every request is on the disk before the next one is paid for.

A journal is a file of JSON lines: what is known before the first request, one line for each request
and one for the end. From it the artifact is made, also after the process was killed.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from io import FileIO
from pathlib import Path
from secrets import token_hex
from typing import Any

import attrs

from vlmcore._arguments import require_kind, require_switch
from vlmcore._closing import Closing
from vlmcore._whole_files import what_failed
from vlmcore.contracts.json_text import write_json
from vlmcore.errors import ArtifactError, ContractError
from vlmcore.lab._journal_locks import is_taken
from vlmcore.lab.artifact_documents import (
    end_document,
    scored_document,
    start_document,
    start_from_document,
)
from vlmcore.lab.artifact_files import artifact_bytes, shown_path, write_artifact
from vlmcore.lab.artifacts import Artifact, Ending, RunStart, ScoredSample
from vlmcore.lab.canonical import digest_of
from vlmcore.lab.events import Phase
from vlmcore.lab.redacting import values_without_secrets
from vlmcore.limits import ArtifactLimits, SampleLimits, require_at_most
from vlmcore.secrets import Secret, redact, without_secrets

__all__ = ["Journal"]


class Journal(Closing):
    """
    Keeps what a run measures, request by request, and makes the artifact of it.

    Opening it checks everything that could fail later: the label, the folder, the room for another
    file. Each line is forced onto the disk, which takes milliseconds: append after a request has
    closed, not while another is being timed on the same thread. Threads may share a journal.

    Args:
        folder: Where the journal and the artifact are written; it must exist.
        start: What is known before the first request.
        planned: How many samples there will be, warm-ups not counted.
        secrets: Tokens in reach of the run; they are taken out of everything that is kept.
        sync: Whether each line is forced onto the disk; without, a power cut may lose some.
        limits: How large lines and the file may be.

    Attributes:
        path: The file of the journal; it is deleted when the artifact is written.
        start: What is known before the first request, without secrets.

    Raises:
        ContractError: If an argument is not as described.
        ArtifactError: If the file cannot be written, or something in *start* cannot be kept.
        MissingDependencyError: If rfc8785 is not installed: nothing is paid for without it.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        start: RunStart,
        *,
        planned: int,
        secrets: tuple[Secret | None, ...] = (),
        sync: bool = True,
        limits: ArtifactLimits | None = None,
    ) -> None:
        require_kind("start", start, RunStart)
        require_switch(sync=sync)
        self._limits, self._sync, self._secrets = limits or ArtifactLimits(), sync, secrets
        self._lock = threading.RLock()  # a signal handler may close what it interrupts
        self._size, self._planned = 0, planned
        self._warm_ups: list[ScoredSample] = []
        self._samples: list[ScoredSample] = []
        self.start = _clean_start(start, secrets)
        nothing = Artifact(start=self.start, samples=(), ended=Ending.KILLED, planned=planned)
        artifact_bytes(nothing, limits=limits)  # what cannot be kept is found before it is paid for
        line = self._line(start_document(self.start, planned))
        self.path = Path(folder) / f"{start.label}-{token_hex(4)}.journal"
        self._file = self._created()
        try:
            self._write(line)
        except BaseException:
            self.close()
            self.path.unlink(missing_ok=True)
            raise

    def __repr__(self) -> str:
        return f"<Journal {shown_path(self.path)}, {len(self._samples)} samples>"

    @property
    def samples(self) -> tuple[ScoredSample, ...]:
        """What was measured so far, warm-ups not among it."""
        return tuple(self._samples)

    def append(self, scored: ScoredSample) -> ScoredSample:
        """
        Keep one request.

        Returns:
            What was kept: the same, without secrets.

        Raises:
            ContractError: If it is of a case or target that the run does not have.
            LimitExceededError: If the line or the file becomes too large; nothing of it is kept.
            ArtifactError: If it cannot be written, or the journal is closed; the next may fit.
        """
        require_kind("scored", scored, ScoredSample)
        self.start.require_fits(scored.sample)
        scored = _clean(scored, self._secrets)
        is_warm_up = scored.sample.phase is Phase.WARM_UP
        with self._lock:
            kept = self._warm_ups if is_warm_up else self._samples
            self._require_phase(scored.sample.phase)
            require_at_most("max_requests", len(kept) + 1, SampleLimits().max_requests)
            self._write(self._line(scored_document(scored)))
            kept.append(scored)
        return scored

    def finish(
        self, ended: Ending = Ending.COMPLETE, *, reason: str = "", wall_ns: int | None = None
    ) -> Path:
        """
        Write the artifact beside the journal, and delete the journal.

        Args:
            ended: How the run ended.
            reason: Why, for people.
            wall_ns: How long it took, in nanoseconds.

        Returns:
            The path of the artifact.

        Raises:
            ContractError: If an argument is not as described.
            ArtifactError: If it cannot be written; the journal is kept.
        """
        with self._lock:
            artifact = Artifact(
                start=self.start,
                warm_ups=tuple(self._warm_ups),
                samples=tuple(self._samples),
                ended=ended,
                reason=redact(reason, *self._secrets),
                planned=self._planned,
                wall_ns=wall_ns,
            )
            self._write(self._line(end_document(artifact)))
            path = write_artifact(artifact, self.path.parent, limits=self._limits)
            self.close()
            self.path.unlink(missing_ok=True)
        return path

    def close(self) -> None:
        """Close the file, and keep it: `vlmcore.lab.recovery.finish_journal` reads it."""
        with self._lock:
            self._file.close()

    def _require_phase(self, phase: Phase) -> None:
        there = {each.sample.phase for each in (*self._warm_ups[:1], *self._samples[:1])} | {phase}
        if len(there - {Phase.WARM_UP}) > 1 or there == {Phase.WARM_UP, Phase.COLD_START}:
            names = sorted(each.value for each in there)
            raise ContractError("phase", f"got {names}, expected no cold starts beside others")

    def _created(self) -> FileIO:
        try:
            file = self.path.open("xb", buffering=0)
        except (OSError, ValueError) as error:
            problem = what_failed(error) if isinstance(error, OSError) else "is no path"
            raise ArtifactError(shown_path(self.path), f"cannot be written: {problem}") from None
        is_taken(file)  # nobody else has a file that was just made
        return file

    def _line(self, document: Mapping[str, Any]) -> bytes:
        line = write_json(document, indent=None, limits=self._limits.of_a_line).encode() + b"\n"
        require_at_most("max_line_bytes", len(line), self._limits.max_line_bytes)
        require_at_most("max_file_bytes", self._size + len(line), self._limits.max_file_bytes)
        return line

    def _write(self, line: bytes) -> None:
        name = shown_path(self.path)
        if self._file.closed:
            raise ArtifactError(name, "is closed, expected an open journal")
        try:
            left = memoryview(line)
            while left:
                left = left[self._file.write(left) :]
            if self._sync:
                os.fsync(self._file.fileno())
        except BaseException as error:
            self._take_back()
            if isinstance(error, OSError):
                problem = f"cannot be written: {what_failed(error)}"
                raise ArtifactError(name, problem) from error
            raise
        self._size += len(line)

    def _take_back(self) -> None:
        """Cut off what was written of a line, so that the next one starts on its own."""
        try:
            self._file.truncate(self._size)
            self._file.seek(self._size)
        except (OSError, ValueError):  # the disk is gone, or the file is closed
            self._file.close()  # better no more lines than one in the middle of another


def _clean_start(start: RunStart, secrets: tuple[Secret | None, ...]) -> RunStart:
    """Take tokens out of all that was given; the digest of the suite is that of what is kept."""
    if not any(secrets):
        return start
    clean = values_without_secrets(start_document(start, 0), *secrets)
    clean["suite_sha256"] = digest_of(clean["suite"])
    return start_from_document(clean)[0]


def _clean(scored: ScoredSample, secrets: tuple[Secret | None, ...]) -> ScoredSample:
    """Take tokens out of a sample: a server may have repeated them in its answer."""
    if not any(secrets):
        return scored
    limits = SampleLimits()

    def clean(text: str, most: int = limits.max_text_characters) -> str:
        return without_secrets(text, *secrets)[:most]  # what stands for a token may be longer

    sample, score = scored.sample, scored.score
    fields: dict[str, Any] = {name: clean(getattr(sample, name)) for name in ("text", "reasoning")}
    if sample.finish_reason is not None:
        fields["finish_reason"] = clean(sample.finish_reason, limits.max_name_characters)
    if sample.failure is not None:
        message = clean(sample.failure.message, limits.max_message_characters)
        fields["failure"] = attrs.evolve(sample.failure, message=message)
    if score is not None:
        score = attrs.evolve(score, reason=clean(score.reason))
    return ScoredSample(sample=attrs.evolve(sample, **fields), score=score)
