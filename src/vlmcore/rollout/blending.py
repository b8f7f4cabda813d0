"""Going over from the plan that is being executed to a new one, without a jerk."""

from __future__ import annotations

from typing import Any

import numpy as np

from vlmcore._arrays import Float64Array
from vlmcore.contracts.actions import ActionChunk
from vlmcore.contracts.embodiment import ActionSpace
from vlmcore.errors import ContractError
from vlmcore.limits import ContractLimits
from vlmcore.rollout._checks import (
    require_finite_rows,
    require_names_of,
    require_no_offsets,
    require_one_start,
    require_rotations,
    require_space,
    require_steps,
)
from vlmcore.rollout._mixing import cross_fade
from vlmcore.rollout.replan import ReplanReport
from vlmcore.safety.audit import audit
from vlmcore.safety.findings import ViolationKind

__all__ = ["blend_chunks", "smallest_overlap"]

_LIMITS = ContractLimits()


def blend_chunks(
    old: ActionChunk,
    new: ActionChunk,
    *,
    executed: int,
    overlap: int,
    space: ActionSpace | None,
    elapsed: int = 0,
) -> ActionChunk:
    """
    Cross-fade from the rest of *old* into *new*, so that replanning does not jerk.

    Step ``i`` of ``n`` blended ones is ``old * (1 - a) + new * a`` with ``a = (i + 1) / (n + 1)``.
    A blend of two safe plans may still be unsafe, if only because its last step goes to *new*
    alone: vet the result.

    Targets, changes for each step, rates and torques can be blended. Offsets from where a chunk
    begins can be if both chunks answer the same observation: else they are counted from two places.
    Make targets of them first, with `vlmcore.rollout.offsets.to_targets`.

    Args:
        old: The plan being executed, shape ``[T, D]``.
        new: The plan that replaces it, shape ``[U, D]``, the same names in the same order.
        executed: Steps of *old* that were sent, ``0 <= executed <= T``.
        overlap: Steps to blend; as many as both plans still have are blended.
        space: What the dimensions are. Angles go the short way round and are written in bounds;
            rotations in space turn about one axis, at an even speed; discrete dimensions switch in
            the middle. ``None`` says that all are linear: between 3.1 and -3.1 is 0 then.
        elapsed: Steps that were sent since the observation that *new* answers. As many of its first
            steps are past and dropped, ``0 <= elapsed < U``.

    Returns:
        What to do from now on, shape ``[U - elapsed, D]``, with the source, the streams and the
        time of observation of *new*. Metadata is dropped: it was said of other actions.

    Raises:
        ContractError: If the names differ, a number of steps is not one of the plans', a value
            that would be used is not finite, or no rotation where it must be one, or offsets are
            counted from two places.

    Example:
        >>> plan = dict(names=("j",), source="doc", observed_at_s=0.0)
        >>> old, new = ActionChunk(values=[[0]] * 3, **plan), ActionChunk(values=[[3]] * 3, **plan)
        >>> blend_chunks(old, new, executed=1, overlap=2, space=None).values.ravel().tolist()
        [1.0, 2.0, 3.0]
    """
    report = ReplanReport.of(old, new, executed=executed, overlap=overlap, elapsed=elapsed)
    require_names_of("new", new, old.names)
    require_space(space)
    if space is not None:
        require_names_of("new", new, space.names)
    require_one_start("new", new, space, old.observed_at_s)
    rest = old.values[executed : executed + report.transition_steps_applied]
    coming = new.values[elapsed:]
    require_finite_rows("old", rest, old.names, first=executed)
    require_finite_rows("new", coming, new.names, first=elapsed)
    require_rotations("old", rest, space, first=executed)
    require_rotations("new", coming, space, first=elapsed)
    return ActionChunk(
        values=_faded(rest, coming, space),
        names=new.names,
        source=new.source,
        observed_at_s=new.observed_at_s,
        streams=new.streams,
    )


def smallest_overlap(
    old: ActionChunk,
    new: ActionChunk,
    *,
    executed: int,
    space: ActionSpace,
    elapsed: int = 0,
    most: int | None = None,
    last_command: Any = None,
) -> int:
    """
    Find the shortest transition from *old* to *new* that keeps the step bounds of *space*.

    What is looked at are the steps of the transition: from the last command over the blended steps
    to the first one that is of *new* alone. How *new* goes on is not for a transition to mend. One
    length is tried after the other, so that time grows with the square of *most*.

    Args:
        old: As for `blend_chunks`.
        new: As for `blend_chunks`.
        executed: As for `blend_chunks`.
        space: Whose bounds to keep.
        elapsed: As for `blend_chunks`.
        most: The longest transition to try; ``None`` for as long as both plans go on.
        last_command: What was sent last, if a gate changed it: shape ``[D]`` or numbers by name.
            ``None`` for the last executed step of *old*; if there is none, a target may start
            anywhere, and a change starts from zero.

    Returns:
        What to give `blend_chunks` as *overlap*; 0 if none is needed.

    Raises:
        ContractError: As `blend_chunks` does, if no transition keeps the bounds, and if *space* has
            offsets from where a chunk begins, which a transition is not.

    Example:
        >>> from vlmcore.contracts.embodiment import ActionDim
        >>> joint = ActionDim(name="j", low=-1.0, high=1.0, max_step=0.1)
        >>> plan = dict(names=("j",), source="doc", observed_at_s=0.0)
        >>> old = ActionChunk(values=[[0.0]] * 9, **plan)
        >>> new = ActionChunk(values=[[0.35]] * 9, **plan)
        >>> smallest_overlap(old, new, executed=1, space=ActionSpace(dims=(joint,), rate_hz=20))
        3
    """
    require_steps("most", _LIMITS.max_horizon if most is None else most, 0, _LIMITS.max_horizon)
    if not isinstance(space, ActionSpace):
        raise ContractError("space", f"got {type(space).__name__}, expected an ActionSpace")
    require_no_offsets(space, "a transition is in the middle of a chunk")
    longest = blend_chunks(
        old,
        new,
        executed=executed,
        overlap=_LIMITS.max_horizon if most is None else most,
        elapsed=elapsed,
        space=space,
    )
    if last_command is None and executed:
        last_command = old.values[executed - 1]
    rest, coming = old.values[executed:][:most], new.values[elapsed:]
    for overlap in range(min(len(rest), longest.horizon) + 1):
        transition = _faded(rest[:overlap], coming[: overlap + 1], space)
        findings = audit(transition, space, last_command=last_command)
        if ViolationKind.STEP not in findings.kinds:
            return overlap
    broken = findings.masks[ViolationKind.STEP].any(axis=0)
    names = ", ".join(space.names[dim] for dim in np.flatnonzero(broken))
    raise ContractError(
        "new",
        f"got a plan whose transition breaks the step bound of {names:.80} with each overlap from "
        f"0 to {overlap}, expected one that some overlap leads to",
    )


def _faded(rest: Float64Array, coming: Float64Array, space: ActionSpace | None) -> Float64Array:
    """Blend all steps of *rest* into the first ones of *coming*."""
    steps = len(rest)
    share = np.arange(1, steps + 1) / (steps + 1)
    return np.concatenate((cross_fade(rest, coming[:steps], share, space), coming[steps:]))
