"""Finding what is wrong with a chunk; nothing is changed here."""

from __future__ import annotations

from typing import Any

import numpy as np

from vlmcore._arrays import BoolArray, Float64Array, readonly_float64
from vlmcore.contracts.embodiment import ActionSpace
from vlmcore.errors import ContractError
from vlmcore.safety._orientations import find_turns
from vlmcore.safety._positions import Positions
from vlmcore.safety._rules import Rules
from vlmcore.safety.findings import KINDS, Findings, ViolationKind
from vlmcore.safety.references import read_last_command, read_position

__all__ = ["audit", "find"]


def audit(values: Any, space: ActionSpace, *, last_command: Any, position: Any = None) -> Findings:
    """
    Find everything in *values* that breaks a limit of *space*.

    Each step is held against the step before it as it came, and the first one against the last
    command. A value that is not finite is counted as that alone; what follows it is held against
    what holding would have sent: the last finite value of a target, zero for a change. Bounds are
    compared exactly. Steps may be longer than their bound by what float32 cannot help:
    ``4 * 2**-23`` of the largest value that the dimension allows, at most a hundredth of the bound.
    The last command may be out of its bounds by as much, since states come as float32.

    A step of a rotation in space is the angle from the last one that is a rotation. Numbers that
    are none, as a quaternion whose norm is off 1 by more than a hundredth, are found as that. What
    is found of a rotation is counted once, at its first dimension.

    Changes, and rates times the time of a step, are added up from *position* where a dimension says
    where that may lead. Nothing may lead out, or further out; from outside, only inwards. Positions
    are forgiven as steps are, with the range for the bound; what is forgiven once is not again. An
    offset from where a chunk begins leads to that position plus itself, and its first step is held
    against zero, whatever was sent last.

    Args:
        values: Actions in the order of the space, shape ``[T, D]``, at least one step.
        space: What may be commanded.
        last_command: What was sent before, shape ``[D]`` in the order of the space, or numbers by
            name; ``None`` if nobody knows. Then every target is found to start from nowhere, and
            changes start from zero.
        position: Where the things are that move, as measured, before the first step: numbers by the
            names of `ActionSpace.position_names`. ``None`` if nobody knows; then each of them that
            is moved at all is found.

    Returns:
        What was found.

    Raises:
        ContractError: If the values or the last command are not arrays of numbers of the space's
            size, or the last command or the position is not finite numbers for its dimensions.

    Example:
        >>> from vlmcore.contracts.embodiment import ActionDim
        >>> slide = ActionDim(name="x", unit="m", low=-1.0, high=1.0, max_step=0.1)
        >>> findings = audit([[0.1], [0.3]], ActionSpace(dims=(slide,), rate_hz=20),
        ...     last_command=[0.0])
        >>> print(findings.violations()[0])
        step 1, 'x': 0.2 too far from the step before (limit 0.1)
    """
    if not isinstance(space, ActionSpace):
        raise ContractError("space", f"got {type(space).__name__}, expected an ActionSpace")
    array = readonly_float64(values, field="values", axes="[T, D]")
    width = len(space.dims)
    if len(array) == 0 or array.shape[1] != width:
        raise ContractError(
            "values", f"got shape {list(array.shape)}, expected steps of {width} dimensions"
        )
    reference = read_last_command(last_command, space)
    rules = Rules.of(space)
    findings = find(array, rules, reference, position=read_position(position, space))
    if findings is None:
        return _findings(array, rules, reference, np.zeros_like(array), {})
    return findings


def find(
    values: Float64Array,
    rules: Rules,
    reference: Float64Array | None,
    *,
    position: Float64Array | None = None,
    slack: float = 0.0,
) -> Findings | None:
    """
    Find what `audit` finds, in arrays that are known to fit; ``None`` if that is nothing.

    Args:
        values: Actions, shape ``[T, D]``.
        rules: The rules of the space.
        reference: The last command, shape ``[D]``, finite; ``None`` if nobody knows.
        position: Where the things are that move, shape ``[P]``, finite; ``None`` if nobody knows.
        slack: How many times the slack of a comparison is added to it once more.
    """
    with np.errstate(all="ignore"):  # NaN and what overflows keeps no limit
        start = _start(values[0], rules) if reference is None else reference
        path = np.concatenate((start[np.newaxis], values))
        within = _within(path, rules)
        came = path
        is_within = _all(within)
        finite = None if is_within else np.isfinite(values)
        if finite is not None and not _all(finite):
            path = _held(path, finite, rules)
        steps = rules.steps(values, path[:-1])
        allowed = rules.allowed_step + slack * rules.slack if slack else rules.allowed_step
        kept = np.abs(steps) <= allowed
        levels = _are_levels(values, rules)
        unsound = find_turns(rules.orientations, came, steps=steps, kept=kept, slack=slack)
        # From here on there is zero where a change is not finite.
        moved = (
            None if rules.positions is None else _moved(path[1:], rules.positions, position, slack)
        )
    is_kept = is_within and _all(kept) and unsound is None and (levels is None or _all(levels))
    unknown = reference is None and bool(rules.is_target.any())
    if is_kept and not unknown and moved is None:
        return None
    masks = {ViolationKind.STEP: ~kept}
    if finite is not None:  # there is something that is out of bounds, or not finite
        masks[ViolationKind.NON_FINITE] = ~finite
        masks[ViolationKind.OUT_OF_BOUNDS] = finite & ~within[1:]
        masks[ViolationKind.STEP] &= finite & np.isfinite(path[:-1])
        if reference is not None:
            masks[ViolationKind.REFERENCE_OUT_OF_BOUNDS] = ~within[:1]
    if levels is not None:
        masks[ViolationKind.NOT_A_LEVEL] = within[1:] & ~levels
    if unsound is not None:
        masks[ViolationKind.NOT_A_ROTATION] = unsound
    if unknown:
        masks[ViolationKind.START_UNKNOWN] = rules.is_target[np.newaxis]
    reached = None
    if moved is not None:
        kind, masks[kind], reached = moved
    return _findings(values, rules, reference, steps, masks, reached=reached)


def _within(path: Float64Array, rules: Rules) -> BoolArray:
    """Say what is in bounds; what comes before the first step may be so in float32 only."""
    within = path >= rules.low
    within &= path <= rules.high
    if not _all(within[0]):
        within[0] = np.isfinite(rules.settled(path[0]))
    return within


def _all(truths: BoolArray) -> bool:
    """Say whether all are true; three times as fast as the method, for what is this small."""
    return bool(np.count_nonzero(truths) == truths.size)


def _findings(
    values: Float64Array,
    rules: Rules,
    reference: Float64Array | None,
    steps: Float64Array,
    masks: dict[ViolationKind, BoolArray],
    *,
    reached: Float64Array | None = None,
) -> Findings:
    """Count what was found, and keep what is not empty."""
    counts = {kind: int(np.count_nonzero(mask)) for kind, mask in masks.items()}
    return Findings(
        space=rules.space,
        values=values,
        reference=reference,
        steps=steps,
        masks={kind: masks[kind] for kind, count in counts.items() if count},
        tally=tuple(counts.get(kind, 0) for kind in KINDS),
        reached=reached,
    )


def _moved(
    values: Float64Array, positions: Positions, start: Float64Array | None, slack: float
) -> tuple[ViolationKind, BoolArray, Float64Array | None] | None:
    """Find what leads out, or from nobody knows where, and where it leads; ``None`` if nothing."""
    columns, steps, width = positions.columns, *values.shape
    if start is None:
        moved = np.zeros((1, width), np.bool_)
        moved[0, columns] = (values[:, columns] != 0).any(axis=0)
        return (ViolationKind.POSITION_UNKNOWN, moved, None) if moved.any() else None
    path = positions.follow(values, start)
    leads_out = positions.leads_out(values, path, slack)
    if leads_out is None:
        return None
    mask, reached = np.zeros((steps, width), np.bool_), np.full((steps, width), np.nan)
    mask[:, columns], reached[:, columns] = leads_out, path[1:]
    return ViolationKind.POSITION, mask, reached


def _start(first: Float64Array, rules: Rules) -> Float64Array:
    """Start from zero; what a target starts from is not known, so that no step is seen."""
    return np.where(rules.is_target, first, 0.0)


def _held(path: Float64Array, finite: BoolArray, rules: Rules) -> Float64Array:
    """Replace what is not finite by what holding sends; NaN stays where nothing came before."""
    there = np.concatenate((np.isfinite(path[:1]), finite))
    last = np.where(there, np.arange(len(path))[:, np.newaxis], 0)
    held = np.take_along_axis(path, np.maximum.accumulate(last), axis=0)
    return np.where(there | ~rules.is_change, held, 0.0)


def _are_levels(values: Float64Array, rules: Rules) -> BoolArray | None:
    """Say which values are levels, or need not be; ``None`` if no dimension has any."""
    if not rules.levels:
        return None
    good = np.ones(values.shape, np.bool_)
    for levels in rules.levels:
        good[:, levels.column] = levels.includes(values[:, levels.column])
    return good
