"""What is to be sent next: a plan that knows its step, and takes in new chunks on the way."""

from __future__ import annotations

from typing import Any, TypeAlias

import attrs
import numpy as np

from vlmcore._arguments import shown
from vlmcore._arrays import Float64Array, plain_float, require_count, require_finite
from vlmcore.contracts.actions import ActionChunk
from vlmcore.contracts.embodiment import ActionSpace
from vlmcore.errors import ContractError
from vlmcore.limits import ContractLimits
from vlmcore.rollout._checks import (
    require_chunk,
    require_finite_rows,
    require_names_of,
    require_no_offsets,
    require_rotations,
    require_space,
    require_steps,
)
from vlmcore.rollout.blending import blend_chunks
from vlmcore.rollout.ensembling import TemporalEnsemble

__all__ = ["ActionPlan", "Blend", "EnsembleBlend", "LinearBlend"]

_LIMITS = ContractLimits()


@attrs.frozen(kw_only=True)
class LinearBlend:
    """
    Go over to a new chunk within some steps, by `blend_chunks`.

    Attributes:
        overlap: How many steps, 1 to 4,096; as many as both chunks still have are blended.

    Raises:
        ContractError: If it is not as described.
    """

    overlap: int

    def __attrs_post_init__(self) -> None:
        require_steps("overlap", self.overlap, 1, _LIMITS.max_horizon)


@attrs.frozen(kw_only=True)
class EnsembleBlend:
    """
    Send the mean of all that was predicted for a step, by `TemporalEnsemble`.

    Attributes:
        m: How fast the weight falls from the oldest prediction to the newest, finite.

    Raises:
        ContractError: If it is not as described.
    """

    m: float = attrs.field(default=0.01, converter=plain_float)

    def __attrs_post_init__(self) -> None:
        require_finite(m=self.m)


#: How a new chunk takes over.
Blend: TypeAlias = LinearBlend | EnsembleBlend


class ActionPlan:
    """
    What is to be sent next, step by step, while new chunks come in at any time.

    Steps are counted from 0 as they are taken; no clock is read and no policy is asked. A chunk
    comes with the step at which its observation was made; what was taken since is past, and as many
    of its first rows are dropped. Until a new chunk is there the old one goes on, and so it does
    when a new one is refused. A new one replaces it to its end, also where it was longer; in an
    ensemble, what was longer goes on.

    What leaves is a proposal: vet it from the last command that was really sent. If it was not
    sent, `clear` the plan: what follows in it starts from where the robot is not.

    Not safe for threads: one thread takes and offers, however many infer.

    Args:
        space: What the dimensions are, for angles, rotations and discrete ones to be blended as
            such. ``None`` says that all are linear. It has no offsets from where a chunk begins:
            each step is taken for itself, and a new chunk begins elsewhere.
        blend: How a new chunk takes over; ``None`` for at once.
        execution_horizon: How many steps after its observation a chunk may be taken; ``None`` for
            all that it has. What is beyond is blended with, and never sent for itself.

    Raises:
        ContractError: If an argument is not as described.

    Example:
        >>> plan = ActionPlan(space=None, blend=LinearBlend(overlap=1))
        >>> said = dict(names=("j",), source="doc", observed_at_s=0.0)
        >>> plan.offer(ActionChunk(values=[[0.0]] * 4, **said), observed_at_step=0)
        >>> plan.next(2).values.ravel().tolist()
        [0.0, 0.0]
        >>> plan.offer(ActionChunk(values=[[7.0], [8.0], [9.0]], **said), observed_at_step=1)
        >>> plan.next(plan.remaining).values.ravel().tolist()
        [4.0, 9.0]
    """

    def __init__(
        self,
        *,
        space: ActionSpace | None,
        blend: Blend | None = None,
        execution_horizon: int | None = None,
    ) -> None:
        if not (blend is None or isinstance(blend, (LinearBlend, EnsembleBlend))):
            raise ContractError(
                "blend", f"got {shown(blend)}, expected a LinearBlend, an EnsembleBlend or None"
            )
        require_space(space)
        require_no_offsets(space, "each step is sent and vetted for itself")
        if execution_horizon is not None:
            require_count(execution_horizon=execution_horizon)
        self._space = space
        self._horizon = execution_horizon
        self._rows: _Fading | _Averaging
        if isinstance(blend, EnsembleBlend):
            self._rows = _Averaging(TemporalEnsemble(space=space, m=blend.m))
        else:
            self._rows = _Fading(0 if blend is None else blend.overlap, space)
        self._step = 0
        self._newest: ActionChunk | None = None
        self._observed_at_step: int | None = None
        self._names = None if space is None else space.names

    @property
    def step(self) -> int:
        """The control step that is taken next, from 0; how many were taken."""
        return self._step

    @property
    def observed_at_step(self) -> int | None:
        """The step of the newest observation that a chunk was taken in for; ``None`` if none is."""
        return self._observed_at_step

    @property
    def remaining(self) -> int:
        """How many steps can be taken before a new chunk must come."""
        if self._observed_at_step is None:
            return 0
        end = self._rows.ends_before_step
        if self._horizon is not None:
            end = min(end, self._observed_at_step + self._horizon)
        return max(end - self._step, 0)

    def offer(self, chunk: ActionChunk, *, observed_at_step: int) -> None:
        """
        Take in a chunk, from the present step on.

        Args:
            chunk: What a policy proposes, with the names of those before it.
            observed_at_step: What `step` was when the observation was made that it answers; later
                than that of the chunk before.

        Raises:
            ContractError: If an argument is not as described, the chunk is past as a whole, or a
                value of its rest is not finite, or no rotation where it must be one. The plan stays
                as it was.
        """
        require_chunk("chunk", chunk)
        if self._names is not None:
            require_names_of("chunk", chunk, self._names)
        require_steps("observed_at_step", observed_at_step, 0, self._step)
        newest, elapsed = self._observed_at_step, self._step - observed_at_step
        if newest is not None and observed_at_step <= newest:
            raise ContractError(
                "observed_at_step",
                f"got {observed_at_step}, expected a later one than that of the chunk before, "
                f"{newest}",
            )
        horizon = min(chunk.horizon, self._horizon or chunk.horizon)
        if elapsed >= horizon:
            raise ContractError(
                "chunk",
                f"got {horizon} steps from step {observed_at_step} on at step {self._step}, "
                "expected some that are not past",
            )
        require_finite_rows("chunk", chunk.values[elapsed:], chunk.names, first=elapsed)
        require_rotations("chunk", chunk.values[elapsed:], self._space, first=elapsed)
        self._rows.add(chunk, elapsed=elapsed, step=self._step)
        self._names, self._newest, self._observed_at_step = chunk.names, chunk, observed_at_step

    def next(self, count: int = 1, *, last_command: Any = None) -> ActionChunk:
        """
        Take the next *count* steps.

        Args:
            count: How many.
            last_command: What was sent last, as for `TemporalEnsemble.action`, whose levels start
                from it; nothing else is blended from it.

        Returns:
            Shape ``[count, D]``, with source, streams and time of observation of the newest chunk.

        Raises:
            ContractError: If there are fewer than *count* steps, or *count* is below 1, or
                *last_command* is not finite numbers for the space.
        """
        require_count(count=count)
        newest, left = self._newest, self.remaining
        if newest is None or not left:
            problem = "there is no chunk" if newest is None else "no step of the chunk is left"
            raise ContractError("count", f"got {count}, but {problem}: offer a new one first")
        if count > left:
            raise ContractError("count", f"got {count}, expected at most the {left} that are left")
        values = self._rows.take(self._step, count, last_command)
        self._step += count
        return ActionChunk(
            values=values,
            names=newest.names,
            source=newest.source,
            observed_at_s=newest.observed_at_s,
            streams=newest.streams,
        )

    def clear(self) -> None:
        """Forget all chunks, and go on counting: what comes next starts without a transition."""
        self._rows.clear()
        self._newest = self._observed_at_step = None
        self._names = None if self._space is None else self._space.names


class _Fading:
    """The rows of one chunk, which a new one is faded into."""

    def __init__(self, overlap: int, space: ActionSpace | None) -> None:
        self._overlap, self._space = overlap, space
        self.clear()

    def clear(self) -> None:
        self._chunk: ActionChunk | None = None
        self._starts_at_step = 0

    @property
    def ends_before_step(self) -> int:
        return self._starts_at_step + (0 if self._chunk is None else self._chunk.horizon)

    def add(self, chunk: ActionChunk, *, elapsed: int, step: int) -> None:
        old = self._chunk
        if old is None:
            self._chunk = attrs.evolve(chunk, values=chunk.values[elapsed:])
        else:
            executed = step - self._starts_at_step
            self._chunk = blend_chunks(
                old,
                chunk,
                executed=executed,
                overlap=self._overlap,
                elapsed=elapsed,
                space=self._space,
            )
        self._starts_at_step = step

    def take(self, step: int, count: int, _: Any) -> Float64Array:
        assert self._chunk is not None
        first = step - self._starts_at_step
        return self._chunk.values[first : first + count]


class _Averaging:
    """All that was predicted, of which the mean is taken."""

    def __init__(self, ensemble: TemporalEnsemble) -> None:
        self._ensemble = ensemble

    def clear(self) -> None:
        self._ensemble.clear()

    @property
    def ends_before_step(self) -> int:
        return self._ensemble.ends_before_step

    def add(self, chunk: ActionChunk, *, elapsed: int, step: int) -> None:
        rest = attrs.evolve(chunk, values=chunk.values[elapsed:])
        self._ensemble.add(rest, starts_at_step=step)

    def take(self, step: int, count: int, last_command: Any) -> Float64Array:
        first = self._ensemble.action(step, last_command=last_command)
        rest = [self._ensemble.action(at) for at in range(step + 1, step + count)]
        return np.array([first, *rest])
