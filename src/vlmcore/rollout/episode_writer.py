"""
Writing an episode as a file of JSON lines, so that a crash loses one line at most.

The first line is the header, each line after it one step of the policy, and nothing is ever changed
once it stands there. A file has its final name from the start, since what was recorded before a
crash is worth keeping: there is no temporary file that somebody would have to know of.
"""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Mapping
from typing import Any

import attrs

from vlmcore._arguments import require_switch
from vlmcore._closing import Closing
from vlmcore.contracts.actions import ActionChunk
from vlmcore.contracts.json_text import write_json
from vlmcore.contracts.observation import Observation, ObservationSummary
from vlmcore.errors import ContractError, EpisodeError
from vlmcore.limits import EpisodeLimits, require_at_most
from vlmcore.rollout._episode_paths import cannot, create_file, path_of, shown, sync_folder
from vlmcore.rollout._outcomes import Outcome
from vlmcore.rollout._steps import step_of
from vlmcore.rollout.episode_calls import EpisodeFailure
from vlmcore.rollout.episode_documents import (
    episode_failure_to_document,
    episode_header_to_document,
    episode_step_to_document,
)
from vlmcore.rollout.episode_frames import EncodedFrame, require_frame_bytes
from vlmcore.rollout.episodes import EpisodeHeader, EpisodeStep

__all__ = ["EpisodeWriter"]


class EpisodeWriter(Closing):
    """
    Writes an episode, a line at once.

    Each line is given to the operating system when it is appended: a crash of the program loses at
    most the line that is being written, and with *sync* so does a power cut. A line that cannot be
    written whole, because the disk is full, is taken back. Threads may share a writer.

    Args:
        path: The file. It must not exist, unless *overwrite* says that it may be lost.
        header: Whose episode it is.
        overwrite: Whether a file that is there is emptied at once.
        sync: Whether each line is forced onto the disk, which takes milliseconds.
        limits: How large lines and the file may be; what is larger is refused.

    Raises:
        EpisodeError: If the file exists, or cannot be written.
        ContractError: If an argument is not as described.
        LimitExceededError: If the header is too large.

    Example:
        >>> import tempfile
        >>> from vlmcore.contracts.presets import find_embodiment
        >>> header = EpisodeHeader(embodiment=find_embodiment("ALOHA bimanual template"))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     with EpisodeWriter(f"{folder}/run.jsonl", header) as writer:
        ...         print(writer.steps)
        0
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        header: EpisodeHeader,
        *,
        overwrite: bool = False,
        sync: bool = False,
        limits: EpisodeLimits | None = None,
    ) -> None:
        self._path = path_of(path)
        require_switch(overwrite=overwrite, sync=sync)
        if not isinstance(header, EpisodeHeader):
            raise ContractError("header", f"got {type(header).__name__}, expected an EpisodeHeader")
        self._name = shown(self._path)
        self._limits = limits or EpisodeLimits()
        self._sync = sync
        self._lock = threading.RLock()  # a signal handler may close what it interrupts
        self._size = self._steps = 0
        self._recorded_at_s = -math.inf
        self.header = header
        line = self._line(episode_header_to_document(header))
        self._file = create_file(self._path, overwrite=overwrite)
        try:
            self._write(line)
            if sync:
                sync_folder(self._path)
        except BaseException:
            self.close()
            raise

    def __repr__(self) -> str:
        return f"<EpisodeWriter of {self._name}, {self._steps} steps>"

    @property
    def steps(self) -> int:
        """How many steps were written."""
        return self._steps

    def record(
        self,
        observation: Observation | ObservationSummary,
        chunk: ActionChunk,
        outcome: Outcome,
        *,
        last_command: Any,
        at_s: float,
        executed_steps: int = 0,
        position: Mapping[str, float] | None = None,
        frames: Mapping[str, tuple[EncodedFrame, ...]] | None = None,
    ) -> EpisodeStep:
        """
        Write what came of one chunk.

        Args:
            observation: What the policy was shown. Its pixels are kept only as *frames*.
            chunk: What was put to the gate: ``VettedChunk.proposed``, or ``ChunkBroker.proposed``.
            outcome: What the gate gave or raised, or a report if it was only asked.
            last_command: What the gate was given, numbers in order or by name.
            at_s: Reading of the caller's monotonic clock, not before that of the record before.
            executed_steps: How many steps were sent to the robot, from the first of *outcome*.
            position: What the gate was given, where changes have positions; a VettedChunk says so
                itself.
            frames: What `vlmcore.rollout.episode_frames.encode_frames` made of the pixels.

        Returns:
            What was written.

        Raises:
            ContractError: If the parts contradict each other, or are not of this robot: *outcome*
                is held against all else, as far as it tells.
            LimitExceededError: If the line or the file would become too large.
            EpisodeError: If it cannot be written.
        """
        step = step_of(
            self.header,
            observation,
            chunk,
            outcome,
            last_command=last_command,
            at_s=at_s,
            executed_steps=executed_steps,
            position=position,
            frames=frames,
        )
        with self._lock:
            if step.at_s < self._recorded_at_s:
                raise ContractError(
                    "at_s",
                    f"got {step.at_s!r}, expected no time before that of what was recorded last, "
                    f"{self._recorded_at_s!r}",
                )
            self.append(step)
            self._recorded_at_s = step.at_s
        return step

    def append(self, event: EpisodeStep | EpisodeFailure) -> None:
        """
        Write a step as it is, as one that was read from another episode, or a call that failed.

        Raises:
            ContractError: If it is neither, or not a step of this robot.
            LimitExceededError: If the line or the file would become too large.
            EpisodeError: If it cannot be written, or the writer is closed.
        """
        if isinstance(event, EpisodeFailure):
            with self._lock:
                self._write(self._line(episode_failure_to_document(event, self._steps)))
            return
        if not isinstance(event, EpisodeStep):
            raise ContractError("step", f"got {type(event).__name__}, expected an EpisodeStep")
        self.header.require_fits(event)
        require_frame_bytes(event.frames, limits=self._limits)
        with self._lock:
            require_at_most("max_steps", self._steps + 1, self._limits.max_steps)
            self._write(self._line(episode_step_to_document(event, self._steps)))
            self._steps += 1

    def close(self) -> None:
        """Close the file; a second time does nothing."""
        with self._lock:
            self._file.close()

    def _line(self, document: Mapping[str, Any]) -> bytes:
        """Write a document as a line that `EpisodeReader` takes with the same limits."""
        limits = attrs.evolve(
            self._limits.of_a_line,
            max_document_bytes=self._limits.max_file_bytes,  # looked at below, by its own name
        )
        text = write_json(document, indent=None, limits=limits)
        line = text.encode() + b"\n"
        require_at_most("max_line_bytes", len(line), self._limits.max_line_bytes)
        require_at_most("max_file_bytes", self._size + len(line), self._limits.max_file_bytes)
        return line

    def _write(self, line: bytes) -> None:
        if self._file.closed:
            raise EpisodeError(self._name, None, "is closed, expected an open writer")
        try:
            left = memoryview(line)
            while left:
                left = left[self._file.write(left) :]
            if self._sync:
                os.fsync(self._file.fileno())
        except BaseException as error:
            self._take_back()
            if isinstance(error, OSError):
                raise cannot("written", self._path, error) from error
            raise
        self._size += len(line)

    def _take_back(self) -> None:
        """Cut off what was written of a line, so that the next one starts on its own."""
        try:
            self._file.truncate(self._size)
            self._file.seek(self._size)
        except (OSError, ValueError):  # the disk is gone, or the file is closed
            self._file.close()  # better no more lines than one in the middle of another
