"""What the functions of this floor ask of their arguments."""

from __future__ import annotations

from typing import Any

import numpy as np

from vlmcore._arguments import shown
from vlmcore._arrays import Float64Array
from vlmcore._rotations import is_rotation
from vlmcore.contracts.actions import ActionChunk
from vlmcore.contracts.embodiment import ActionSpace
from vlmcore.errors import ContractError
from vlmcore.limits import ContractLimits, EpisodeLimits

__all__ = [
    "MOST_COUNTED",
    "require_by_column",
    "require_chunk",
    "require_finite_rows",
    "require_names_of",
    "require_no_offsets",
    "require_one_start",
    "require_rotations",
    "require_sink",
    "require_space",
    "require_steps",
]

_LIMITS = ContractLimits()
#: How many values an episode holds at the most, and so how many of anything there may be.
MOST_COUNTED = EpisodeLimits().max_steps * _LIMITS.max_horizon * _LIMITS.max_actions
_PRINTABLE_BITS = 64  # Python refuses to print whole numbers that are huge


def require_steps(field: str, steps: Any, fewest: int, most: int | None = None) -> None:
    """
    Require a number of steps.

    Raises:
        ContractError: If it is not a whole number from *fewest* to *most*.
    """
    is_whole = isinstance(steps, int) and not isinstance(steps, bool)
    if is_whole and fewest <= steps and (most is None or steps <= most):
        return
    if most is None:
        expected = f"a whole number of at least {fewest}"
    else:
        expected = f"{most}" if fewest == most else f"a whole number from {fewest} to {most}"
    is_huge = is_whole and steps.bit_length() > _PRINTABLE_BITS
    came = "a huge number" if is_huge else f"{shown(steps)}"
    raise ContractError(field, f"got {came}, expected {expected}")


def require_by_column(field: str, values: Any, kind: type, width: int) -> None:
    """
    Require a tuple with one value of exactly *kind* for each of *width* columns; numbers count.

    Raises:
        ContractError: If it is anything else.
    """
    is_tuple = isinstance(values, tuple) and len(values) == width
    if not is_tuple or not all(type(each) is kind for each in values):
        raise ContractError(
            field, f"got {shown(values)}, expected {kind.__name__}, one a column, {width}"
        )
    if kind is int:
        for i, count in enumerate(values):
            require_steps(f"{field}[{i}]", count, 0, MOST_COUNTED)


def require_chunk(field: str, chunk: Any) -> None:
    """
    Require an action chunk.

    Raises:
        ContractError: If it is anything else; vetted actions are no proposal.
    """
    if not isinstance(chunk, ActionChunk):
        raise ContractError(field, f"got {type(chunk).__name__}, expected an ActionChunk")


def require_sink(sink: Any) -> None:
    """
    Require what may be handed actions.

    Raises:
        ContractError: If it has no method ``accept``, or is a class.
    """
    if isinstance(sink, type) or not callable(getattr(sink, "accept", None)):
        raise ContractError(
            "sink", f"got {shown(sink)}, expected an ActionSink: an object with a method accept"
        )


def require_space(space: Any) -> None:
    """
    Require an action space, or ``None``.

    Raises:
        ContractError: If it is anything else.
    """
    if space is not None and not isinstance(space, ActionSpace):
        raise ContractError("space", f"got {type(space).__name__}, expected an ActionSpace")


def require_no_offsets(space: ActionSpace | None, why: str) -> None:
    """
    Require a space without offsets from where a chunk begins.

    Raises:
        ContractError: If there are some; *why* says what they would do here.
    """
    if space is not None and space.offsets:
        offsets = ", ".join(space.names[i] for i in space.offsets)
        raise ContractError(
            "space",
            f"got {offsets:.80} counted from where a chunk begins, expected targets: "
            f"{why}; vlmcore.rollout.offsets makes targets of them",
        )


def require_one_start(
    field: str, chunk: ActionChunk, space: ActionSpace | None, observed_at_s: float
) -> None:
    """
    Require a chunk to begin where another one does, if that is what its numbers are counted from.

    Raises:
        ContractError: If it answers another observation than that of *observed_at_s*.
    """
    if chunk.observed_at_s != observed_at_s:
        require_no_offsets(space, f"{field} answers another observation than what it is mixed with")


def require_names_of(field: str, chunk: ActionChunk, names: tuple[str, ...]) -> None:
    """
    Require the dimensions of a chunk to be *names*, in this order.

    Raises:
        ContractError: If they are others, or in another order.
    """
    if chunk.names != names:
        raise ContractError(
            f"{field}.names",
            f"got {', '.join(chunk.names)}, expected {', '.join(names)}, in this order",
        )


def require_finite_rows(
    field: str, rows: Float64Array, names: tuple[str, ...], *, first: int
) -> None:
    """
    Require steps of a chunk to be finite, from step *first* of it on.

    Raises:
        ContractError: If one is not: whatever is computed from it is lost as well.
    """
    finite = np.isfinite(rows)
    if finite.all():
        return
    step, dim = divmod(int(np.argmin(finite)), rows.shape[1])
    raise ContractError(
        f"{field}.values[{first + step}][{dim}]",
        f"got {rows[step, dim]} for {names[dim]!r}, expected finite numbers: "
        "mixing would carry it on",
    )


def require_rotations(
    field: str, rows: Float64Array, space: ActionSpace | None, *, first: int
) -> None:
    """
    Require steps of a chunk to be rotations where *space* says so, from step *first* of it on.

    Raises:
        ContractError: If one is not: there is no way from it, or to it.
    """
    if space is None:
        return
    for group in space.rotations:
        at = group.columns(space.dims)
        sound = is_rotation(rows[:, at], group.form)
        if not sound.all():
            step = int(np.argmin(sound))
            raise ContractError(
                f"{field}.values[{first + step}][{at.start}:{at.stop}]",
                f"got {rows[step, at].tolist()} for {group.name!r}, expected a rotation as "
                f"{group.form} writes it",
            )
