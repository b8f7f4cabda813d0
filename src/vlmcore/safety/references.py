"""Reading what a chunk starts from: what was sent last, and where the things are that move."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from vlmcore._arguments import shown
from vlmcore._arrays import (
    Float64Array,
    immutable,
    plain_float,
    readonly_float64,
    require_finite,
)
from vlmcore._rotations import bounds_of_measure, is_rotation, measure
from vlmcore.contracts.embodiment import ActionSpace
from vlmcore.errors import ContractError
from vlmcore.safety._slack import STEP_SLACK
from vlmcore.safety.findings import MEASURES

__all__ = ["read_last_command", "read_position"]


def read_last_command(last_command: Any, space: ActionSpace) -> Float64Array | None:
    """
    Read what was sent last.

    Returns:
        What the next step follows, in the order of the space, shape ``[D]``; ``None`` if nobody
        knows. For an offset that is 0, whatever was sent: that was counted from another place.

    Raises:
        ContractError: If names are missing or unknown, if it is not one finite number for each
            dimension, or if it is no rotation where it must be one.
    """
    if last_command is None:
        return None
    names = space.names
    if isinstance(last_command, Mapping):
        if last_command.keys() != set(names):
            missing = [name for name in names if name not in last_command]
            unknown = [name for name in last_command if name not in names]
            raise ContractError(
                "last_command",
                f"got names with missing {missing} and unknown {shown(unknown, 1000)}, "
                f"expected {', '.join(names)}",
            )
        last_command = _numbers_by_name("last_command", last_command, names)
        for name, number in zip(names, last_command, strict=True):
            if not isinstance(plain_float(number), float):
                raise ContractError(
                    f"last_command[{name!r}]", f"got {shown(number)}, expected a number"
                )
    # What nearly every caller gives needs no reading.
    if (
        type(last_command) is np.ndarray
        and last_command.dtype == np.float64
        and last_command.ndim == 1
    ):
        reference = immutable(last_command)
    else:
        reference = readonly_float64(last_command, field="last_command", axes="[D]")
    if len(reference) != len(names):
        raise ContractError(
            "last_command", f"got {len(reference)} numbers, expected {len(names)}, one a dimension"
        )
    finite = np.isfinite(reference)
    if not finite.all():
        dim = int(np.argmin(finite))
        raise ContractError(
            "last_command",
            f"got {reference[dim]} for {names[dim]!r}, expected finite numbers, "
            "or None where nobody knows",
        )
    if space.rotations:
        with np.errstate(all="ignore"):  # what is too large or too small is no rotation
            _check_rotations(reference, space)
    return _from_the_start(reference, space) if space.offsets else reference


def read_position(position: Any, space: ActionSpace) -> Float64Array | None:
    """
    Read where the things are that a space moves.

    Returns:
        The positions of `ActionSpace.position_names`, shape ``[P]``; ``None`` if it is.

    Raises:
        ContractError: If it is not finite numbers by these names.
    """
    if position is None:
        return None
    if not isinstance(position, Mapping):
        raise ContractError(
            "position", f"got {type(position).__name__}, expected numbers by name, or None"
        )
    names = space.position_names
    if position.keys() != set(names):
        missing = [name for name in names if name not in position]
        unknown = [name for name in position if name not in names]
        raise ContractError(
            "position",
            f"got names with missing {missing} and unknown {shown(unknown, 1000)}, expected the "
            "dimensions that declare position_low and position_high: "
            f"{', '.join(names) or 'there are none'}",
        )
    numbers = _numbers_by_name("position", position, names)
    if set(map(type, numbers)) != {float}:  # what nearly every caller gives
        numbers = [plain_float(number) for number in numbers]
    if not all(type(number) is float and math.isfinite(number) for number in numbers):
        for name, number in zip(names, numbers, strict=True):
            require_finite(**{f"position[{name!r}]": number})
    return np.array(numbers, np.float64)


def _from_the_start(reference: Float64Array, space: ActionSpace) -> Float64Array:
    """Put 0 where numbers are offsets from where a chunk begins."""
    start = reference.copy()
    start[list(space.offsets)] = 0.0
    return immutable(start)


def _numbers_by_name(field: str, known: Mapping[str, Any], names: Sequence[str]) -> list[Any]:
    """
    Take what *known* has by *names*, whatever it says that its keys are.

    Raises:
        ContractError: If there is none by a name.
    """
    try:
        return [known[name] for name in names]
    except LookupError as error:
        raise ContractError(
            field, f"got keys without a value ({shown(error)}), expected a number for each"
        ) from error


def _check_rotations(reference: Float64Array, space: ActionSpace) -> None:
    for group in space.rotations:
        numbers = reference[group.columns(space.dims)]
        if not is_rotation(numbers, group.form, STEP_SLACK):
            least, most = bounds_of_measure(group.form)
            zeros = "" if numbers.any() else ": zeros are no rotation"
            raise ContractError(
                "last_command",
                f"got {MEASURES[group.form]} {measure(numbers, group.form):g} of {group.name!r}, "
                f"expected {least:g} to {most:g}, as {group.form} has{zeros}",
            )
