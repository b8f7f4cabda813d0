"""
Episodes as recordings of Rerun, to be looked at in its viewer.

Importing this module does not import Rerun.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

import numpy as np

from vlmcore._arguments import require_switch
from vlmcore._arrays import BoolArray, Float64Array
from vlmcore._optional import optional_dependency
from vlmcore.contracts.embodiment import ActionSpace
from vlmcore.errors import ContractError, EpisodeError
from vlmcore.rollout._episode_paths import cannot, path_of, shown
from vlmcore.rollout.episode_frames import FrameEncoding
from vlmcore.rollout.episode_reader import EpisodeReader, require_reader
from vlmcore.rollout.episodes import EpisodeHeader, EpisodeStep
from vlmcore.safety.audit import audit

if TYPE_CHECKING:
    from vlmcore.rollout._rerun import Moment, Recording

__all__ = ["export_to_rerun"]

_GREY, _GREEN, _RED = (150, 150, 150), (60, 190, 90), (230, 50, 50)
_DARK_RED = (150, 60, 60)
_MOST_SECONDS = 2.0**33  # times are 64-bit numbers of nanoseconds there
_MEDIA_TYPES = {FrameEncoding.JPEG: "image/jpeg", FrameEncoding.PNG: "image/png"}


def export_to_rerun(
    episode: EpisodeReader, path: str | os.PathLike[str], *, overwrite: bool = False
) -> int:
    """
    Write *episode* as a recording that the viewer of Rerun opens: ``rerun run.rrd``.

    Everything stands on two timelines. ``step`` counts the actions that were sent, one after the
    other; a chunk of which none was sent takes one. ``time`` is the monotonic clock of the episode,
    and the actions of a chunk follow each other at the rate of the robot.

    ========================================== ====================================================
    ``/episode``                               whose it is
    ``/instruction``                           the task in words, where it changes
    ``/report``                                what the gate found, and whether it refused
    ``/state/<name>``                          what the robot reported
    ``/actions/<name>/proposed``               what the policy proposed for the steps that were sent
    ``/actions/<name>/sent``                   what was sent
    ``/actions/<name>/not_sent``               chunks of which nothing was sent, as points
    ``/actions/<name>/violations``             values that break a limit of the episode's robot
    ``/actions/<name>/low`` and ``.../high``   the bounds
    ``/cameras/<name>``                        the frames that were recorded
    ========================================== ====================================================

    NaN and infinity leave a gap; they are marked where the robot was instead. The file gets its
    name when it is whole.

    Args:
        episode: What was recorded.
        path: The file, by custom with the ending ``.rrd``.
        overwrite: Whether a file that is there may be lost.

    Returns:
        How many steps of the episode were written.

    Raises:
        EpisodeError: If the episode has faults, or the file exists or cannot be written.
        ContractError: If an argument is not as described, or a time is larger than Rerun can hold.
        MissingDependencyError: If ``rerun-sdk`` is not installed; the extra ``rerun`` brings it.
    """
    require_reader(episode)
    require_switch(overwrite=overwrite)
    with optional_dependency("rerun", "rerun"):
        from vlmcore.rollout import _rerun  # noqa: PLC0415 - the door
    wanted = path_of(path)
    if wanted.exists() and not overwrite:
        problem = "exists already, expected a new name; overwrite=True replaces it"
        raise EpisodeError(shown(wanted), None, problem)
    unfinished = wanted.with_name(f".{wanted.name}.{os.getpid()}.part")
    try:
        unfinished.touch()  # Rerun writes in the background, and would not say that it cannot
        with _rerun.Recording(unfinished, name=wanted.stem) as recording:
            export = _Export(recording, _rerun.entity_of, episode.header)
            for step in episode:
                export.add(step)
            export.finish()
        unfinished.replace(wanted)
    except OSError as error:
        raise cannot("written", wanted, error) from error
    finally:
        with suppress(OSError):
            unfinished.unlink(missing_ok=True)
    return export.steps


class _Export:
    """Puts one step after the other into a recording."""

    def __init__(
        self, recording: Recording, entity_of: Callable[..., str], header: EpisodeHeader
    ) -> None:
        robot = header.embodiment
        self.steps = 0
        self._recording = recording
        self._entity_of = entity_of
        self._space = robot.actions
        self._states = [entity_of("state", name) for name in robot.state_names]
        self._actions = [entity_of("actions", name) for name in robot.actions.names]
        self._cameras: dict[str, FrameEncoding] = {}
        self._instruction = ""
        self._at = 0  # on the timeline "step"
        self._last: Moment | None = None
        recording.note("/episode", _about(header))
        self._style(robot.state_names)

    def _style(self, state_names: Sequence[str]) -> None:
        recording = self._recording
        for entity, name in zip(self._states, state_names, strict=True):
            recording.line(entity, name=name)
        for entity in self._actions:
            recording.line(f"{entity}/low", name="low", colour=_DARK_RED, width=1.0)
            recording.line(f"{entity}/high", name="high", colour=_DARK_RED, width=1.0)
            recording.line(f"{entity}/proposed", name="proposed", colour=_GREY)
            recording.line(f"{entity}/sent", name="sent", colour=_GREEN, width=2.0)
            recording.points(
                f"{entity}/not_sent", name="not sent", colour=_GREY, marker="circle", size=1.5
            )
            recording.points(
                f"{entity}/violations", name="violation", colour=_RED, marker="cross", size=4.0
            )

    def add(self, step: EpisodeStep) -> None:
        """Write one step of the policy."""
        rows = step.executed_steps or step.report.execution_horizon
        moments = [(self._at + row, step.at_s + row / self._space.rate_hz) for row in range(rows)]
        for field, time_s in (("at_s", step.at_s), ("timestamp", step.observation.captured_at_s)):
            if abs(time_s) > _MOST_SECONDS:
                raise ContractError(
                    f"steps[{self.steps}].{field}",
                    f"got {time_s:g} s, expected at most {_MOST_SECONDS:g} s, which Rerun can hold",
                )
        self._add_observation(step)
        self._add_actions(step, moments)
        self._last = moments[max(step.executed_steps, 1) - 1]
        level = "INFO" if not step.report.total else "WARN"
        level = level if step.report.safe_for_handoff else "ERROR"
        self._recording.event("/report", moments[0], _verdict(step), level=level)
        self._at += max(step.executed_steps, 1)
        self.steps += 1

    def finish(self) -> None:
        """Draw the bounds to the end, and say how all is shown."""
        if self._last is not None:
            self._add_bounds(self._last)
        names = self._space.names
        plots = [("state", "/state"), *zip(names, self._actions, strict=True)]
        texts = ["/instruction", "/episode"]
        self._recording.layout(cameras=list(self._cameras), plots=plots, texts=texts, log="/report")

    def _add_observation(self, step: EpisodeStep) -> None:
        observation, recording = step.observation, self._recording
        seen = (self._at, observation.captured_at_s)
        for entity, number in zip(self._states, observation.state.tolist(), strict=True):
            recording.values(entity, [seen], [number])
        if observation.instruction != self._instruction:
            self._instruction = observation.instruction
            recording.text("/instruction", seen, observation.instruction)
        for name, frames in step.frames.items():
            entity = self._entity_of("cameras", name)
            newest = observation.cameras[name].frames - 1
            for frame in frames:
                age_s = (newest - frame.frame_index) / observation.frame_rate_hz
                moment = (self._at, observation.captured_at_s - age_s)
                encoding = frame.encoding
                # The viewer takes the images of an entity for a video, of one encoding.
                is_first = self._cameras.setdefault(entity, encoding) is encoding
                at = entity if is_first else f"{entity}/{encoding.name.lower()}"
                recording.image(at, moment, frame.data, media_type=_MEDIA_TYPES[encoding])

    def _add_actions(self, step: EpisodeStep, moments: Sequence[Moment]) -> None:
        proposed = _in_order(step, self._space)[: len(moments)]
        sent, marks = step.sent, _marks(step, self._space)
        is_sent = step.executed_steps > 0
        called = "proposed" if is_sent else "not_sent"
        marked = np.where(np.isfinite(proposed), proposed, _instead(step, len(moments)))
        self._add_bounds(moments[0])
        for dim, entity in enumerate(self._actions):
            self._add_finite(f"{entity}/{called}", moments, proposed[:, dim], gaps=is_sent)
            self._recording.values(f"{entity}/sent", moments[: len(sent)], sent[:, dim].tolist())
            broken = np.where(marks[: len(moments), dim], marked[:, dim], np.nan)
            self._add_finite(f"{entity}/violations", moments, broken, gaps=False)

    def _add_finite(
        self, entity: str, moments: Sequence[Moment], values: Float64Array, *, gaps: bool
    ) -> None:
        """Write what is finite; NaN for all else, if a line is to have a gap there."""
        finite = np.isfinite(values)
        kept = np.flatnonzero(finite | gaps).tolist()
        shown_values = np.where(finite, values, np.nan)[kept].tolist()
        if kept:
            self._recording.values(entity, [moments[i] for i in kept], shown_values)

    def _add_bounds(self, moment: Moment) -> None:
        bounds = zip(
            self._actions, self._space.low.tolist(), self._space.high.tolist(), strict=True
        )
        for entity, low, high in bounds:
            self._recording.values(f"{entity}/low", [moment], [low])
            self._recording.values(f"{entity}/high", [moment], [high])


def _in_order(step: EpisodeStep, space: ActionSpace) -> Float64Array:
    """Put what was proposed into the order of the space; a gate may have been told to."""
    names = step.chunk.names
    if names == space.names:
        return step.chunk.values
    return step.chunk.values[:, [names.index(name) for name in space.names]]


def _marks(step: EpisodeStep, space: ActionSpace) -> BoolArray:
    """Find again which of the values that the gate looked at break a limit."""
    values = _in_order(step, space)[: step.report.execution_horizon]
    is_known = bool(step.position) and step.position.keys() == set(space.position_names)
    position = step.position if is_known else None
    return audit(values, space, last_command=step.last_command, position=position).marks()


def _instead(step: EpisodeStep, rows: int) -> Float64Array:
    """Say where the robot was while NaN was proposed; NaN if nobody knows."""
    if step.executed_steps:
        return step.sent
    known = step.last_command is not None
    row = step.last_command if known else np.full(step.report.action_dim, np.nan)
    return np.broadcast_to(np.asarray(row), (rows, step.report.action_dim))


def _about(header: EpisodeHeader) -> str:
    robot = header.embodiment
    said = {
        "robot": robot.name,
        "limits": robot.limits_source.value,
        "rate": f"{robot.actions.rate_hz:g} Hz",
        "made by": header.made_by,
        "made at": header.made_at,
    }
    return "\n".join(f"- {key}: {value}" for key, value in said.items() if value)


def _verdict(step: EpisodeStep) -> str:
    report = step.report
    found = [f"{count} {kind.value}" for kind, count in report.counts.items() if count]
    passed = "passed" if step.vetted is not None else "only asked"
    said = passed if report.reason is None else f"refused ({report.reason.value})"
    what = ", ".join(found) or "all limits kept"
    changed = ", changed" if report.changed else ""
    return f"{report.policy_source}: {said}{changed}; {what}; {step.executed_steps} sent"
