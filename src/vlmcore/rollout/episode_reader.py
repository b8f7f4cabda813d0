"""Reading an episode from a file of JSON lines, a step at a time and within limits."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO, TypeVar

from vlmcore.contracts.json_text import read_json
from vlmcore.errors import ContractError, EpisodeError, LimitExceededError
from vlmcore.limits import EpisodeLimits, require_at_most
from vlmcore.rollout._episode_paths import cannot, open_file, path_of, shown
from vlmcore.rollout.episode_calls import EpisodeFailure
from vlmcore.rollout.episode_documents import (
    episode_failure_from_document,
    episode_header_from_document,
    episode_step_from_document,
)
from vlmcore.rollout.episode_schemas import EPISODE_FAILURE
from vlmcore.rollout.episodes import EpisodeStep

__all__ = ["EpisodeReader", "require_reader"]

_Made = TypeVar("_Made")


class EpisodeReader:
    """
    Reads an episode, a step at a time; every loop opens the file anew and closes it again.

    A fault ends the loop with the number of its line. The last line alone may be cut off, since
    that is what a crash leaves: the steps before it are given, and *truncated* says so.

    Args:
        path: The file, not compressed.
        limits: How much is read; each size is checked before memory is spent on it.

    Attributes:
        header: Whose episode it is.
        truncated: Whether the last line is cut off; known once a loop has come to it.

    Raises:
        EpisodeError: If there is no such file, or its header has faults.
        ContractError: If *path* is not a path.

    Example:
        >>> EpisodeReader("no such file.jsonl")
        Traceback (most recent call last):
        ...
        vlmcore.errors.EpisodeError: no such file.jsonl: does not exist
    """

    def __init__(
        self, path: str | os.PathLike[str], *, limits: EpisodeLimits | None = None
    ) -> None:
        self._path = path_of(path)
        self._name = shown(self._path)
        self._limits = limits = limits or EpisodeLimits()
        self._json_limits = limits.of_a_line
        self.truncated = False
        with open_file(self._path, limits=limits) as file:
            line = self._next_line(file, 1)
        if not line:
            raise EpisodeError(self._name, 1, "is empty, expected the header of an episode")
        self.header = self._read(line, 1, episode_header_from_document)
        self._start = len(line)

    def __repr__(self) -> str:
        return f"<EpisodeReader of {self._name}>"

    def __iter__(self) -> Iterator[EpisodeStep]:
        """
        Give the steps; calls that failed are passed over.

        Raises:
            EpisodeError: If a line has faults, or the file cannot be read.
        """
        return (each for each in self.events() if isinstance(each, EpisodeStep))

    def events(self) -> Iterator[EpisodeStep | EpisodeFailure]:
        """
        Give the steps and the calls that failed, in the order in which they came.

        Raises:
            EpisodeError: If a line has faults, or the file cannot be read.
        """
        self.truncated = False
        with open_file(self._path, limits=self._limits) as file:
            file.seek(self._start)
            number, steps = 2, 0
            while line := self._next_line(file, number):
                if self._is_cut(line):
                    self.truncated = True
                    return
                event = self._read(line, number, self._event_reader(steps))
                yield event
                number += 1
                steps += isinstance(event, EpisodeStep)

    def _event_reader(self, steps: int) -> Callable[[Any], EpisodeStep | EpisodeFailure]:
        """Read what stands after so many steps."""

        def read(document: Any) -> EpisodeStep | EpisodeFailure:
            if isinstance(document, dict) and document.get("schema") == EPISODE_FAILURE.schema_id:
                return episode_failure_from_document(document, steps)
            require_at_most("max_steps", steps + 1, self._limits.max_steps)
            step = episode_step_from_document(document, steps, limits=self._limits)
            self.header.require_fits(step)
            return step

        return read

    def _next_line(self, file: BinaryIO, number: int) -> bytes:
        """Take the next line, with its end if it has one; empty at the end of the file."""
        most = self._limits.max_line_bytes
        try:
            line = file.readline(most + 1)
        except OSError as error:
            raise cannot("read", self._path, error) from error
        if len(line) > most:
            problem = f"max_line_bytes: got more than {most}, limit is {most}"
            raise EpisodeError(self._name, number, problem)
        return line

    def _read(self, line: bytes, number: int, read: Callable[[Any], _Made]) -> _Made:
        try:
            return read(read_json(line.rstrip(b"\r\n"), limits=self._json_limits))
        except ContractError as error:
            problem = str(error).replace(" at line 1, column ", " at column ")
            raise EpisodeError(self._name, number, problem) from error

    def _is_cut(self, line: bytes) -> bool:
        """Say whether a line ends before it is whole; only the last one can."""
        if line.endswith(b"\n"):
            return False
        try:
            read_json(line, limits=self._json_limits)
        except LimitExceededError:
            return False  # it is refused
        except ContractError:
            return True
        return False


def require_reader(episode: object) -> None:
    """
    Require an episode that can be read; its path is not one.

    Raises:
        ContractError: If it is something else.
    """
    if not isinstance(episode, EpisodeReader):
        raise ContractError(
            "episode", f"got {type(episode).__name__}, expected an EpisodeReader of the file"
        )
