"""Offsets from where a chunk begins, made into targets, which can be blended and sent alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs
import numpy as np

from vlmcore._arguments import shown
from vlmcore._arrays import plain_float, require_finite
from vlmcore.contracts.actions import ActionChunk
from vlmcore.contracts.embodiment import ActionDim, ActionSpace, Reference
from vlmcore.errors import ContractError
from vlmcore.rollout._checks import require_chunk, require_names_of

__all__ = ["space_of_targets", "to_targets"]


def space_of_targets(space: ActionSpace) -> ActionSpace:
    """
    Declare the targets that the offsets of *space* lead to.

    Their bounds are those of the position, and their steps are those of the offsets. All other
    dimensions stay as they are.

    Args:
        space: What the policy proposes; each offset says where it may lead.

    Raises:
        ContractError: If an offset does not say so, or *space* is no space.

    Example:
        >>> reach = ActionDim(name="x", unit="m", reference=Reference.CHUNK_RELATIVE, low=-0.3,
        ...     high=0.3, max_step=0.02, position_low=0.0, position_high=0.8)
        >>> (target,) = space_of_targets(ActionSpace(dims=(reach,), rate_hz=20)).dims
        >>> target.reference, target.low, target.high, target.max_step
        (<Reference.ABSOLUTE: 'absolute'>, 0.0, 0.8, 0.02)
    """
    if not isinstance(space, ActionSpace):
        raise ContractError("space", f"got {type(space).__name__}, expected an ActionSpace")
    dims = [_target(dim) if _is_offset(dim) else dim for dim in space.dims]
    return attrs.evolve(space, dims=dims)


def to_targets(chunk: ActionChunk, space: ActionSpace, *, start: Mapping[str, Any]) -> ActionChunk:
    """
    Add to each offset of *chunk* the place that it is counted from.

    Args:
        chunk: What a policy proposes, with the names of *space*.
        space: What its numbers are.
        start: Where the robot was in the observation that the chunk answers: numbers by the names
            of the offsets, and no others.

    Returns:
        The same actions, as `space_of_targets` declares them.

    Raises:
        ContractError: If an argument is not as described.

    Example:
        >>> reach = ActionDim(
        ...     name="x", reference=Reference.CHUNK_RELATIVE, low=-1, high=1, max_step=0.5
        ... )
        >>> chunk = ActionChunk(
        ...     values=[[0.25], [0.5]], names=("x",), source="doc", observed_at_s=0.0
        ... )
        >>> space = ActionSpace(dims=(reach,), rate_hz=20)
        >>> to_targets(chunk, space, start={"x": 2.0}).values.ravel().tolist()
        [2.25, 2.5]
    """
    require_chunk("chunk", chunk)
    if not isinstance(space, ActionSpace):
        raise ContractError("space", f"got {type(space).__name__}, expected an ActionSpace")
    require_names_of("chunk", chunk, space.names)
    names = [dim.name for dim in space.dims if _is_offset(dim)]
    if not isinstance(start, Mapping) or start.keys() != set(names):
        wanted = ", ".join(names) or "none"
        raise ContractError("start", f"got {shown(start)}, expected numbers by name for {wanted}")
    begins = np.zeros(len(space.dims))
    for name in names:
        at = plain_float(start[name])
        require_finite(**{f"start[{name!r}]": at})
        begins[space.index(name)] = at
    with np.errstate(over="ignore", invalid="ignore"):  # what overflows is no place, and infinite
        return attrs.evolve(chunk, values=chunk.values + begins)


def _is_offset(dim: ActionDim) -> bool:
    return dim.reference is Reference.CHUNK_RELATIVE


def _target(dim: ActionDim) -> ActionDim:
    if dim.position_low is None or dim.position_high is None:
        raise ContractError(
            "position_low",
            f"got None for {dim.name!r}, expected where it may lead: the bounds of a target",
        )
    return attrs.evolve(
        dim,
        reference=Reference.ABSOLUTE,
        low=dim.position_low,
        high=dim.position_high,
        position_low=None,
        position_high=None,
    )
