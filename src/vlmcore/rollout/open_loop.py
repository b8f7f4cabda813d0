"""
Open-loop evaluation: what a policy would have done, held against what was recorded.

Nothing moves, and nothing that the policy says changes what it is shown next: a small error here is
no promise that the policy drives a robot, and a large one may be another good way to do the task.
"""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable, Iterable
from typing import Any

import attrs
import numpy as np

from vlmcore._arrays import Float64Array, require_count
from vlmcore.contracts.actions import ActionChunk
from vlmcore.contracts.embodiment import ActionSpace, Embodiment
from vlmcore.errors import ContractError, VlmcoreError
from vlmcore.limits import ContractLimits
from vlmcore.policy.interface import Policy
from vlmcore.rollout._checks import require_chunk, require_no_offsets, require_steps
from vlmcore.rollout._open_loop_errors import ErrorSums, Ruler
from vlmcore.rollout.episode_reader import EpisodeReader
from vlmcore.rollout.open_loop_report import GateCounts, Latency, OpenLoopReport, OpenLoopTrace
from vlmcore.rollout.recorded_moments import EpisodeMoments, RecordedEpisode, RecordedMoment
from vlmcore.safety.findings import ViolationKind
from vlmcore.safety.gate import SafetyGate

__all__ = ["evaluate_open_loop"]

_LIMITS = ContractLimits()
_EXAMPLES = 5


def evaluate_open_loop(
    policy: Policy,
    episodes: Iterable[EpisodeReader | RecordedEpisode],
    *,
    space: ActionSpace | Embodiment | None = None,
    every: int = 1,
    horizon: int | None = None,
    gate: SafetyGate | None = None,
    most_failures: int = 10,
    clock: Callable[[], float] = time.perf_counter,
) -> OpenLoopReport:
    """
    Show a policy what was recorded, and compare its chunks with what was sent to the robot then.

    Step ``k`` of a chunk is compared with the action that was sent ``k`` control steps after the
    first one that followed the observation. Where nobody knows how many control steps went by, as
    after a chunk of which nothing was sent, a comparison ends.

    Args:
        policy: Who is asked. It is reset before each episode, and not closed.
        episodes: What was recorded, one after the other, all with the same actions: readers of
            episodes, or of other data sets.
        space: What the actions are; of a robot its actions. ``None`` for what the first episode
            says; without any, all dimensions are plain numbers.
        every: Of how many observations one is shown, from the first of each episode. A policy that
            remembers observations needs all of them, 1.
        horizon: How many steps of a chunk are compared at most; ``None`` for all.
        gate: Is asked about each chunk, with what was sent before it; nothing leaves it.
        most_failures: How many failures in a row are counted; the error of the next one is raised.
        clock: A clock in seconds, for how long the policy takes.

    Returns:
        The errors, the failures, how long answers took, and what the gate said.

    Raises:
        ContractError: If an argument is not as described, or a chunk or an episode has other
            dimensions than the first episode.
        EpisodeError: If an episode cannot be read.
        MediaError: If a frame cannot be decoded.
        VlmcoreError: What the policy raised, if it failed too often in a row. Other errors of a
            policy are bugs, and are raised as they are.

    Example:
        ::

            report = evaluate_open_loop(policy, [EpisodeReader("run.jsonl")], every=5)
            print(report)
    """
    require_count(every=every)
    if horizon is not None:
        require_steps("horizon", horizon, 1, _LIMITS.max_horizon)
    require_steps("most_failures", most_failures, 0)
    if gate is not None and not isinstance(gate, SafetyGate):
        raise ContractError("gate", f"got {type(gate).__name__}, expected a SafetyGate")
    run = _Run(
        policy=policy,
        space=space.actions if isinstance(space, Embodiment) else space,
        every=every,
        horizon=horizon or _LIMITS.max_horizon,
        gate=gate,
        most_failures=most_failures,
        clock=clock,
    )
    for episode in episodes:
        run.episode(EpisodeMoments(episode) if isinstance(episode, EpisodeReader) else episode)
    return run.report()


@attrs.define
class _Comparing:
    """A chunk, and how many of its steps were compared."""

    values: Float64Array
    done: int = 0


@attrs.define(eq=False, kw_only=True)
class _Run:
    """One evaluation under way."""

    policy: Policy
    space: ActionSpace | None
    every: int
    horizon: int
    gate: SafetyGate | None
    most_failures: int
    clock: Callable[[], float]
    episodes: int = 0
    observations: int = 0
    failures: int = 0
    unsafe: int = 0
    in_a_row: int = 0
    examples: list[str] = attrs.field(factory=list)
    violations: Counter[ViolationKind] = attrs.field(factory=Counter)
    took_s: list[float] = attrs.field(factory=list)
    names: tuple[str, ...] = ()
    sums: ErrorSums | None = None
    recorded: list[Float64Array] = attrs.field(factory=list)
    proposed: list[Float64Array] = attrs.field(factory=list)

    def episode(self, episode: RecordedEpisode) -> None:
        """Go through one episode."""
        sums = self._begin(episode)
        comparing: deque[_Comparing] = deque()
        newest: _Comparing | None = None
        for index, moment in enumerate(episode.moments()):
            if index % self.every == 0:
                newest = self._ask(moment)
                if newest is not None:
                    comparing.append(newest)
            self._trace(newest, moment.sent)
            for each in comparing:
                end = min(each.done + len(moment.sent), len(each.values))
                rows = end - each.done
                sums.add(each.values[each.done : end], moment.sent[:rows], first=each.done)
                each.done = end
            if not moment.is_followed:
                comparing.clear()
                newest = None
            while comparing and comparing[0].done == len(comparing[0].values):
                comparing.popleft()

    def _begin(self, episode: RecordedEpisode) -> ErrorSums:
        if not isinstance(episode, RecordedEpisode):
            raise ContractError(
                "episodes", f"got {type(episode).__name__}, expected an EpisodeReader"
            )
        if self.sums is None:
            self.names = episode.action_names
            self.space = self.space or episode.space
            if self.space is not None and self.space.names != self.names:
                raise ContractError(
                    "space",
                    f"got {', '.join(self.space.names)}, expected the actions of {episode.name}, "
                    f"{', '.join(self.names)}",
                )
            require_no_offsets(self.space, "what was recorded is counted from other places")
            self.sums = ErrorSums(Ruler(self.names, self.space))
        elif episode.action_names != self.names:
            raise ContractError(
                "episodes",
                f"got the actions {', '.join(episode.action_names)} in {episode.name}, expected "
                f"those of the first, {', '.join(self.names)}",
            )
        self.policy.reset()
        self.episodes += 1
        return self.sums

    def _ask(self, moment: RecordedMoment) -> _Comparing | None:
        """Ask the policy; ``None`` if it failed."""
        observation = moment.observe()
        self.observations += 1
        started_s = self.clock()
        try:
            chunk = self.policy.infer(observation)
        except VlmcoreError as error:
            self._failed(error)
            return None
        self.took_s.append(self.clock() - started_s)
        self.in_a_row = 0
        require_chunk("chunk", chunk)
        if set(chunk.names) != set(self.names):
            raise ContractError(
                "chunk.names",
                f"got {', '.join(chunk.names)}, expected those that were recorded, "
                f"{', '.join(self.names)}",
            )
        order = [chunk.names.index(name) for name in self.names]
        values = chunk.values[:, order]
        self._check(attrs.evolve(chunk, values=values, names=self.names, streams=()), moment)
        return _Comparing(values[: self.horizon])

    def _failed(self, error: VlmcoreError) -> None:
        self.failures += 1
        self.in_a_row += 1
        if self.in_a_row > self.most_failures:
            raise error
        said = str(error)[: _LIMITS.max_name_characters]
        if said not in self.examples and len(self.examples) < _EXAMPLES:
            self.examples.append(said)

    def _check(self, chunk: ActionChunk, moment: RecordedMoment) -> None:
        """Ask the gate."""
        if self.gate is None:
            return
        needed = self.gate.actions.position_names
        is_known = bool(needed) and set(needed) <= moment.position.keys()
        position = {name: moment.position[name] for name in needed} if is_known else None
        last: Any = moment.last_command
        if last is not None:
            last = dict(zip(self.names, np.asarray(last).tolist(), strict=True))
        report = self.gate.check(chunk, last_command=last, position=position)
        self.unsafe += not report.safe_for_handoff
        self.violations.update({kind: n for kind, n in report.counts.items() if n})

    def _trace(self, newest: _Comparing | None, sent: Float64Array) -> None:
        """Keep the first episode, as far as a chart shows it."""
        if self.episodes > 1:
            return
        kept = sum(map(len, self.recorded))
        rows = sent[: _LIMITS.max_horizon - kept]
        said = np.full(rows.shape, np.nan)
        if newest is not None:
            part = newest.values[newest.done : newest.done + len(rows)]
            said[: len(part)] = part
        if len(rows):
            self.recorded.append(rows)
            self.proposed.append(said)

    def report(self) -> OpenLoopReport:
        """Say what was found."""
        if self.sums is None:
            raise ContractError("episodes", "got none, expected at least one")
        sums = self.sums
        with np.errstate(all="ignore"):
            mae, square = sums.total / sums.count, sums.squares / sums.count
            agreement = np.where(sums.ruler.has_levels, sums.agreeing / sums.count, np.nan)
        gate = None
        if self.gate is not None:
            counts = dict(sorted(self.violations.items(), key=lambda each: each[0].value))
            gate = GateCounts(chunks=len(self.took_s), unsafe=self.unsafe, violations=counts)
        return OpenLoopReport(
            policy=self.policy.info.name,
            episodes=self.episodes,
            observations=self.observations,
            failures=self.failures,
            failure_examples=tuple(self.examples),
            names=sums.ruler.names,
            units=sums.ruler.units,
            has_levels=sums.ruler.has_levels.tolist(),
            count=sums.count,
            mae=mae,
            rmse=np.sqrt(square),
            worst=np.where(sums.count > 0, sums.worst, np.nan),
            agreement=agreement,
            lost=tuple(map(int, sums.lost)),
            unknown=tuple(map(int, sums.unknown)),
            latency=_latency(self.took_s),
            gate=gate,
            trace=self._finished_trace(),
        )

    def _finished_trace(self) -> OpenLoopTrace | None:
        if not self.recorded:
            return None
        return OpenLoopTrace(
            names=self.names,
            recorded=np.concatenate(self.recorded),
            proposed=np.concatenate(self.proposed),
            rate_hz=None if self.space is None else self.space.rate_hz,
        )


def _latency(took_s: list[float]) -> Latency | None:
    if not took_s:
        return None
    took_ms = 1000 * np.array(took_s)
    median, p95, longest = np.percentile(took_ms, [50, 95, 100], method="higher")
    return Latency(median_ms=median, p95_ms=p95, longest_ms=longest)
