"""
Playing an episode back: every chunk passes a gate again before a robot moves by it.

A file is outside, and the robot stands elsewhere today. `replay` is for moving; `recheck` moves
nothing and tells what a gate of today would say of what was done.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import attrs

from vlmcore._arrays import Float64Array
from vlmcore.contracts.actions import ActionChunk
from vlmcore.contracts.dimensions import ActionDim
from vlmcore.contracts.embodiment import ActionSpace, Embodiment
from vlmcore.errors import ContractError, UnsafeActionError
from vlmcore.rollout.episode_reader import EpisodeReader
from vlmcore.rollout.episodes import EpisodeStep
from vlmcore.safety.audit import read_last_command
from vlmcore.safety.gate import SafetyGate
from vlmcore.safety.report import SafetyReport, SafetySummary
from vlmcore.safety.vetted import VettedChunk

__all__ = [
    "LimitDifference",
    "Replay",
    "ReplayedStep",
    "ReportDifference",
    "limit_differences",
    "recheck",
    "replay",
]


@attrs.frozen(kw_only=True)
class LimitDifference:
    """
    One thing in which the robot of an episode differs from that of a gate.

    Attributes:
        field: What differs, as ``"actions['elbow'].high"``.
        recorded: What the episode says.
        today: What the gate says.
    """

    field: str
    recorded: Any
    today: Any

    def __str__(self) -> str:
        return f"{self.field}: recorded {self.recorded!r}, today {self.today!r}"


def limit_differences(recorded: Embodiment, gate: SafetyGate) -> tuple[LimitDifference, ...]:
    """
    List in what the robot of an episode differs from that of *gate*.

    The notes are not compared. A gate that was given a space only says nothing of the rest.

    Example:
        >>> from vlmcore.contracts.presets import find_embodiment
        >>> aloha = find_embodiment("ALOHA bimanual template")
        >>> slower = attrs.evolve(aloha.actions, rate_hz=25)
        >>> for difference in limit_differences(aloha, SafetyGate(space=slower)):
        ...     print(difference)
        actions.rate_hz: recorded 50.0, today 25.0
    """
    robot, mine, theirs = gate.embodiment, recorded.actions, gate.actions
    pairs: list[tuple[str, Any, Any]] = []
    if robot is not None:
        pairs += [
            (field.name, getattr(recorded, field.name), getattr(robot, field.name))
            for field in attrs.fields(Embodiment)
            if field.name not in ("actions", "notes")
        ]
    pairs.append(("actions.names", mine.names, theirs.names))
    pairs += [
        (f"actions.{field.name}", getattr(mine, field.name), getattr(theirs, field.name))
        for field in attrs.fields(ActionSpace)
        if field.init and field.name != "dims"
    ]
    dims = {dim.name: dim for dim in theirs.dims}
    pairs += [
        (f"actions[{dim.name!r}].{name}", getattr(dim, name), getattr(dims[dim.name], name))
        for dim in mine.dims
        if dim.name in dims
        for name in (field.name for field in attrs.fields(ActionDim))
    ]
    return tuple(
        LimitDifference(field=field, recorded=was, today=now)
        for field, was, now in pairs
        if was != now
    )


@attrs.frozen(kw_only=True, eq=False)
class ReplayedStep:
    """
    A recorded step, and what the gate of today makes of it.

    Attributes:
        index: Which step of the episode it is, from 0.
        recorded: What was recorded.
        last_command: What it was vetted with now, shape ``[D]``; ``None`` if nobody knows.
        outcome: The vetted chunk, or why there is none.
    """

    index: int
    recorded: EpisodeStep
    last_command: Float64Array | None
    outcome: VettedChunk | UnsafeActionError

    @property
    def vetted(self) -> VettedChunk | None:
        """What may be sent; ``None`` if the gate refused."""
        return self.outcome if isinstance(self.outcome, VettedChunk) else None

    @property
    def refusal(self) -> UnsafeActionError | None:
        """Why the gate refused; ``None`` if it did not."""
        return None if isinstance(self.outcome, VettedChunk) else self.outcome


class Replay:
    """
    An episode that is being played back, step by step; made by `replay`.

    What is vetted next starts from what is taken to have been sent: as many steps as were executed
    when it was recorded. A caller who sends more or fewer says so with `sent`, before the next one.

    Attributes:
        differences: In what the robot of the episode differs from that of the gate.
        last_command: What the next chunk will start from, shape ``[D]``; ``None`` if nobody knows.
    """

    def __init__(
        self,
        episode: EpisodeReader,
        gate: SafetyGate,
        *,
        last_command: Any,
        clock: Callable[[], float] | None = None,
    ) -> None:
        recorded, today = episode.header.embodiment.actions.names, gate.actions.names
        if set(recorded) != set(today):
            raise ContractError(
                "gate",
                f"got the actions {', '.join(today)}, expected those of the episode, "
                f"{', '.join(recorded)}",
            )
        self.differences = limit_differences(episode.header.embodiment, gate)
        self.last_command = read_last_command(last_command, gate.actions)
        self._steps = enumerate(episode)
        self._gate = gate
        self._clock = clock
        self._present: ReplayedStep | None = None

    def __iter__(self) -> Iterator[ReplayedStep]:
        return self

    def __next__(self) -> ReplayedStep:
        index, recorded = next(self._steps)
        chunk = recorded.chunk
        if self._clock is not None:
            chunk = attrs.evolve(chunk, observed_at_s=self._clock())
        start = self.last_command
        outcome = _outcome(chunk, self._gate, start)
        self._present = ReplayedStep(
            index=index, recorded=recorded, last_command=start, outcome=outcome
        )
        if isinstance(outcome, VettedChunk):
            self.sent(min(recorded.executed_steps, outcome.horizon))
        return self._present

    def sent(self, steps: int) -> None:
        """
        Say how many steps of the present chunk were sent, from the first; 0 if none was.

        Raises:
            ContractError: If it has fewer steps, or the gate refused it, or there is none yet.
        """
        present = self._present
        vetted = None if present is None else present.vetted
        most = 0 if vetted is None else vetted.horizon
        if type(steps) is not int or not 0 <= steps <= most:
            raise ContractError("steps", f"got {steps!r:.80}, expected 0 to {most}")
        if vetted is not None and steps > 0:
            self.last_command = vetted.values[steps - 1]
        elif present is not None:
            self.last_command = present.last_command


def replay(
    episode: EpisodeReader,
    gate: SafetyGate,
    *,
    last_command: Any,
    clock: Callable[[], float] | None = None,
) -> Replay:
    """
    Play the proposed chunks of *episode* through *gate* again.

    The steps come one at a time as they are asked for. A refusal is given and not raised: the robot
    is taken to stay where it is, and the next chunk starts from there.

    Args:
        episode: What was recorded.
        gate: The gate of today. Its limits may be others, its actions must be the same ones.
        last_command: Where the robot stands before the first step, as for `SafetyGate.vet`.
        clock: The caller's monotonic clock: each chunk then counts as observed when it is played.
            Without it chunks keep the time of the recording, which `vlmcore.rollout.handoff`
            refuses as old, or as of another clock.

    Raises:
        ContractError: If the episode is of other actions, or *last_command* is not one of them.

    Example:
        ::

            playback = replay(EpisodeReader("run.jsonl"), gate, last_command=robot.state())
            for step in playback:
                if step.vetted is None:
                    break
                playback.sent(send(step.vetted))
    """
    return Replay(episode, gate, last_command=last_command, clock=clock)


@attrs.frozen(kw_only=True)
class ReportDifference:
    """
    A step on which the gate of today says something else than was recorded.

    Attributes:
        index: Which step of the episode it is, from 0.
        recorded: What the gate said then.
        today: What it says now.
    """

    index: int
    recorded: SafetySummary
    today: SafetySummary

    @property
    def fields(self) -> tuple[str, ...]:
        """In what they differ, fields of `vlmcore.safety.report.SafetySummary`."""
        names = [field.name for field in attrs.fields(SafetySummary)]
        return tuple(
            name for name in names if getattr(self.recorded, name) != getattr(self.today, name)
        )

    @property
    def is_newly_refused(self) -> bool:
        """Whether it was safe then, and is not now."""
        return self.recorded.safe_for_handoff and not self.today.safe_for_handoff

    @property
    def is_newly_safe(self) -> bool:
        """Whether it is safe now, and was not then."""
        return self.today.safe_for_handoff and not self.recorded.safe_for_handoff

    def __str__(self) -> str:
        said = (
            f"{name} {_said(self.recorded, name)} -> {_said(self.today, name)}"
            for name in self.fields
        )
        return f"step {self.index}: {', '.join(said)}"


def recheck(episode: EpisodeReader, gate: SafetyGate) -> Iterator[ReportDifference]:
    """
    Tell what *gate* would have said of each recorded chunk, where that is something else.

    A dry run: each chunk is vetted with the last command that it was vetted with then, and nothing
    leaves. It answers what a change of limits would have refused.

    Args:
        episode: What was recorded.
        gate: The gate of today.

    Raises:
        ContractError: If the episode is of other actions than the gate.
    """
    names = episode.header.embodiment.actions.names
    for index, step in enumerate(episode):
        last = step.last_command
        start = None if last is None else dict(zip(names, last.tolist(), strict=True))
        report = _outcome(step.chunk, gate, start).report
        assert isinstance(report, SafetyReport)
        difference = ReportDifference(index=index, recorded=step.report, today=report.summary())
        if difference.fields:
            yield difference


def _outcome(
    chunk: ActionChunk, gate: SafetyGate, last_command: Any
) -> VettedChunk | UnsafeActionError:
    try:
        return gate.vet(chunk, last_command=last_command)
    except UnsafeActionError as error:
        return error


def _said(summary: SafetySummary, name: str) -> Any:
    """Show what a report says shortly: counts by their sum, enums by their value."""
    value = summary.total if name == "counts" else getattr(summary, name)
    return getattr(value, "value", value)
