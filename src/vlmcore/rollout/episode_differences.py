"""
What has changed since an episode was recorded: the robot's limits, and what a gate says by them.

Nothing moves here: it answers what a change of limits would have refused.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import attrs

from vlmcore.contracts.dimensions import ActionDim
from vlmcore.contracts.embodiment import ActionSpace, Embodiment
from vlmcore.errors import ContractError, UnsafeActionError
from vlmcore.rollout.episode_reader import EpisodeReader, require_reader
from vlmcore.rollout.episodes import EpisodeStep
from vlmcore.safety.gate import SafetyGate
from vlmcore.safety.report import SafetyReport, SafetySummary

__all__ = ["LimitDifference", "ReportDifference", "limit_differences", "recheck"]


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
    _require_gate(gate)
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
        return f"step {self.index}: {', '.join(self._changes())}"

    def _changes(self) -> Iterator[str]:
        for name in self.fields:
            was, now = getattr(self.recorded, name), getattr(self.today, name)
            if name != "counts":
                yield f"{name} {getattr(was, 'value', was)} -> {getattr(now, 'value', now)}"
                continue
            for kind, count in was.items():
                if count != now[kind]:
                    yield f"counts[{kind.value}] {count} -> {now[kind]}"


def recheck(episode: EpisodeReader, gate: SafetyGate) -> Iterator[ReportDifference]:
    """
    Tell what *gate* would have said of each recorded chunk, where that is something else.

    A dry run: each chunk is vetted with the last command and the position that it was vetted with
    then, and nothing leaves.

    Args:
        episode: What was recorded.
        gate: The gate of today.

    Raises:
        ContractError: If the episode is of other actions than the gate, or is no reader.
    """
    require_reader(episode)
    _require_gate(gate)
    names = episode.header.embodiment.actions.names
    for index, step in enumerate(episode):
        today = _report_today(step, gate, names)
        difference = ReportDifference(index=index, recorded=step.report, today=today)
        if difference.fields:
            yield difference


def _require_gate(gate: object) -> None:
    if not isinstance(gate, SafetyGate):
        raise ContractError("gate", f"got {type(gate).__name__}, expected a SafetyGate")


def _report_today(step: EpisodeStep, gate: SafetyGate, names: tuple[str, ...]) -> SafetySummary:
    """Vet with what was known then."""
    last, needed = step.last_command, gate.actions.position_names
    start = None if last is None else dict(zip(names, last.tolist(), strict=True))
    is_known = bool(needed) and set(needed) <= step.position.keys()
    position = {name: step.position[name] for name in needed} if is_known else None
    report: object
    try:
        report = gate.vet(step.chunk, last_command=start, position=position).report
    except UnsafeActionError as error:
        report = error.report
    assert isinstance(report, SafetyReport)
    return report.summary()
