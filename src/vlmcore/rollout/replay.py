"""
Playing an episode back: every chunk passes a gate again before a robot moves by it.

A file is outside, and the robot stands elsewhere today.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import attrs

from vlmcore._arguments import shown
from vlmcore._arrays import Float64Array
from vlmcore.contracts.embodiment import Reference
from vlmcore.errors import ContractError, UnsafeActionError
from vlmcore.rollout.episode_differences import limit_differences
from vlmcore.rollout.episode_reader import EpisodeReader, require_reader
from vlmcore.rollout.episodes import EpisodeStep
from vlmcore.safety.gate import SafetyGate
from vlmcore.safety.latch import SafetyLatch
from vlmcore.safety.references import read_last_command
from vlmcore.safety.vetted import VettedChunk

__all__ = ["Replay", "ReplayedStep", "replay"]


@attrs.frozen(kw_only=True, eq=False)
class ReplayedStep:
    """
    A recorded step, and what the gate of today makes of it.

    Attributes:
        index: Which step of the episode it is, from 0.
        recorded: What was recorded.
        last_command: What it was vetted with now, shape ``[D]``; ``None`` if nobody knows.
        position: The positions that it was vetted with now, by name; ``None`` if there were none.
        outcome: The vetted chunk, or why there is none.
    """

    index: int
    recorded: EpisodeStep
    last_command: Float64Array | None
    position: Mapping[str, float] | None
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
        position: Where the things will be that changes and rates move, by name; ``None`` if nobody
            knows, or nothing is said of any.
    """

    def __init__(
        self,
        episode: EpisodeReader,
        gate: SafetyGate | SafetyLatch,
        *,
        last_command: Any,
        position: Mapping[str, float] | None = None,
        clock: Callable[[], float] | None = None,
    ) -> None:
        require_reader(episode)
        plain = gate.gate if isinstance(gate, SafetyLatch) else gate
        self.differences = limit_differences(episode.header.embodiment, plain)
        recorded, today = episode.header.embodiment.actions.names, plain.actions.names
        if set(recorded) != set(today):
            raise ContractError(
                "gate",
                f"got the actions {', '.join(today)}, expected those of the episode, "
                f"{', '.join(recorded)}",
            )
        self.last_command = read_last_command(last_command, plain.actions)
        self.position: Mapping[str, float] | None = _copy_of(position)
        self._steps = enumerate(episode)
        self._gate = gate
        self._actions = plain.actions
        self._clock = clock
        self._present: ReplayedStep | None = None

    def __iter__(self) -> Iterator[ReplayedStep]:
        return self

    def __next__(self) -> ReplayedStep:
        index, recorded = next(self._steps)
        chunk = recorded.chunk
        if self._clock is not None:
            chunk = attrs.evolve(chunk, observed_at_s=self._clock())
        outcome: VettedChunk | UnsafeActionError
        try:
            outcome = self._gate.vet(chunk, last_command=self.last_command, position=self.position)
        except UnsafeActionError as error:
            outcome = error
        self._present = ReplayedStep(
            index=index,
            recorded=recorded,
            last_command=self.last_command,
            position=self.position,
            outcome=outcome,
        )
        if isinstance(outcome, VettedChunk):
            self.sent(min(recorded.executed_steps, outcome.horizon))
        return self._present

    def sent(self, steps: int, *, position: Mapping[str, float] | None = None) -> None:
        """
        Say how many steps of the present chunk were sent, from the first; 0 if none was.

        Args:
            steps: How many.
            position: Where the things are now that changes and rates move, as measured. If it is
                not given, what was sent is added up.

        Raises:
            ContractError: If it has fewer steps, or the gate refused it, or there is none yet.
        """
        present = self._present
        vetted = None if present is None else present.vetted
        most = 0 if vetted is None else vetted.horizon
        if type(steps) is not int or not 0 <= steps <= most:
            raise ContractError("steps", f"got {shown(steps)}, expected 0 to {most}")
        if present is None:
            return
        values = vetted.values[:steps] if vetted is not None else None
        self.last_command, self.position = present.last_command, present.position
        if values is not None and steps:
            self.last_command = values[-1]
            self.position = self._moved(values)
        if position is not None:
            self.position = _copy_of(position)

    def _moved(self, values: Float64Array) -> dict[str, float] | None:
        """Add up what was sent, from where the things were."""
        if self.position is None:
            return None
        moved = {}
        for name, dim, column in zip(
            self._actions.names, self._actions.dims, values.T, strict=True
        ):
            if name in self.position:
                moved[name] = self.position[name] + self._way(dim.reference, column)
        return moved

    def _way(self, reference: Reference, column: Float64Array) -> float:
        """Say how far the numbers of one dimension lead; what leads nowhere has no position."""
        match reference:
            case Reference.DELTA:
                return float(column.sum())
            case Reference.VELOCITY:
                return float(column.sum()) / self._actions.rate_hz
            case Reference.CHUNK_RELATIVE:
                return float(column[-1])
            case Reference.ABSOLUTE | Reference.TORQUE:
                return 0.0


def _copy_of(position: Any) -> dict[str, float] | None:
    if position is not None and not isinstance(position, Mapping):
        raise ContractError(
            "position", f"got {type(position).__name__}, expected numbers by name, or None"
        )
    return None if position is None else dict(position)


def replay(
    episode: EpisodeReader,
    gate: SafetyGate | SafetyLatch,
    *,
    last_command: Any,
    position: Mapping[str, float] | None = None,
    clock: Callable[[], float] | None = None,
) -> Replay:
    """
    Play the proposed chunks of *episode* through *gate* again.

    The steps come one at a time as they are asked for. A refusal is given and not raised: the robot
    is taken to stay where it is, and the next chunk starts from there.

    Args:
        episode: What was recorded.
        gate: The gate of today, or a latch around it. Its limits may be others, its actions must
            be the same ones.
        last_command: Where the robot stands before the first step, as for `SafetyGate.vet`.
        position: Where the things are that changes and rates move, as for `SafetyGate.vet`.
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
    return Replay(episode, gate, last_command=last_command, position=position, clock=clock)
