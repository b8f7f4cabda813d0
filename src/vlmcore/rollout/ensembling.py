"""The mean of all that was predicted for a step, instead of the newest prediction alone."""

from __future__ import annotations

from typing import Any

import attrs
import numpy as np

from vlmcore._arrays import Float64Array, immutable, plain_float, require_finite
from vlmcore.contracts.actions import ActionChunk
from vlmcore.contracts.embodiment import ActionSpace
from vlmcore.errors import ContractError
from vlmcore.rollout._checks import (
    require_chunk,
    require_finite_rows,
    require_names_of,
    require_one_start,
    require_rotations,
    require_space,
    require_steps,
)
from vlmcore.rollout._mixing import weighted_mean
from vlmcore.safety.references import read_last_command

__all__ = ["TemporalEnsemble"]


@attrs.frozen
class _Prediction:
    """The rows of one chunk, and the step that the first of them is for."""

    starts_at_step: int
    rows: Float64Array

    @property
    def ends_before_step(self) -> int:
        return self.starts_at_step + len(self.rows)


class TemporalEnsemble:
    """
    The exponentially weighted mean of all that was predicted for a step.

    Of ``n`` predictions of one step the ``i``-th, counted from the oldest, weighs ``exp(-m * i)``.
    A positive *m* trusts the oldest most, a negative one the newest, and 0 all alike.

    Targets, changes, rates and torques are averaged. An angle is the oldest prediction, moved by
    the mean of the short ways from there to the others. A rotation in space is the one from which
    the squared distances to the predictions add up to least. A discrete dimension takes the level
    with most weight; of two with the same, the one that was predicted last. A prediction counts for
    another level than the present one only if it is beyond 60 % of the way there, as at the gate:
    noise does not make a gripper chatter. A mean of safe predictions may be unsafe: vet it.

    Offsets from where a chunk begins are averaged if all predictions answer the same observation.

    Steps are asked for in their order; what cannot cover a step any more is forgotten. Not safe for
    threads.

    Args:
        space: What the dimensions are. ``None`` says that all are linear and averaged: the mean of
            3.1 and -3.1 is 0 then.
        m: How fast the weight falls from the oldest prediction to the newest, finite.

    Raises:
        ContractError: If an argument is not as described.

    Source:
        Zhao et al. 2023 (arXiv:2304.13705), with ``m = 0.01``.

    Example:
        >>> ensemble = TemporalEnsemble(space=None, m=0.0)
        >>> plan = dict(names=("j",), source="doc", observed_at_s=0.0)
        >>> ensemble.add(ActionChunk(values=[[0.0], [0.0]], **plan), starts_at_step=0)
        >>> ensemble.add(ActionChunk(values=[[1.0], [1.0]], **plan), starts_at_step=1)
        >>> [ensemble.action(step).item() for step in range(3)]
        [0.0, 0.5, 1.0]
    """

    def __init__(self, *, space: ActionSpace | None, m: float = 0.01) -> None:
        m = plain_float(m)
        require_finite(m=m)
        require_space(space)
        self._m = m
        self._space = space
        self.clear()

    def clear(self) -> None:
        """Forget everything, as at the start of an episode; steps are counted from 0 again."""
        self._names = None if self._space is None else self._space.names
        self._predictions: list[_Prediction] = []  # the oldest first
        self._newest_start = 0
        self._observed_at_s: float | None = None
        self._step = 0
        self._before: Float64Array | None = None  # what was given for the steps before
        self._given: Float64Array | None = None  # and for this one

    def add(self, chunk: ActionChunk, *, starts_at_step: int) -> None:
        """
        Take in a prediction.

        Args:
            chunk: What was predicted, shape ``[T, D]``, finite, the same names each time. It counts
                as newer than all that were taken in before.
            starts_at_step: The control step that its first step is for; not before that of the
                chunk taken in before.

        Raises:
            ContractError: If an argument is not as described, or it has offsets that are counted
                from another place than those before.
        """
        require_chunk("chunk", chunk)
        require_steps("starts_at_step", starts_at_step, self._newest_start)
        if self._names is not None:
            require_names_of("chunk", chunk, self._names)
        require_finite_rows("chunk", chunk.values, chunk.names, first=0)
        require_rotations("chunk", chunk.values, self._space, first=0)
        if self._observed_at_s is not None:
            require_one_start("chunk", chunk, self._space, self._observed_at_s)
        self._names, self._newest_start = chunk.names, starts_at_step
        self._observed_at_s = chunk.observed_at_s
        self._predictions.append(_Prediction(starts_at_step, chunk.values))

    def action(self, step: int, *, last_command: Any = None) -> Float64Array:
        """
        Give the mean for *step*, shape ``[D]``, read-only.

        Args:
            step: Which one, not before one that was asked for.
            last_command: What was sent last, shape ``[D]`` or numbers by name, from whose levels
                discrete dimensions switch. ``None`` for what was given for the step before; if that
                is nothing, a prediction counts for the level that is nearest to it.

        Raises:
            ContractError: If the step is before one that was asked for, or nothing covers it, or
                *last_command* is not finite numbers for the space.
        """
        require_steps("step", step, self._step)
        covering = [
            prediction.rows[step - prediction.starts_at_step]
            for prediction in self._predictions
            if prediction.starts_at_step <= step < prediction.ends_before_step
        ]
        if not covering:
            raise ContractError("step", f"got {step}, expected one that a prediction covers")
        before = self._before if step == self._step else self._given
        if last_command is not None and self._space is not None:
            before = read_last_command(last_command, self._space)
        weights = _weights(len(covering), self._m)
        given = immutable(weighted_mean(np.array(covering), weights, self._space, before=before))
        self._step, self._before, self._given = step, before, given
        self._predictions = [each for each in self._predictions if step < each.ends_before_step]
        return given

    @property
    def ends_before_step(self) -> int:
        """The step after the last one that a prediction covers; 0 if there is none."""
        return max((each.ends_before_step for each in self._predictions), default=0)


def _weights(count: int, m: float) -> Float64Array:
    """Weigh predictions from the oldest to the newest; the largest weight is 1."""
    with np.errstate(over="ignore"):  # what overflows weighs nothing
        falling: Float64Array = np.exp(-abs(m) * np.arange(count))
    return falling[::-1] if m < 0 else falling
