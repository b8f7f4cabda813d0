"""Hypothesis strategies for the contracts of robots, true ones and deliberately hostile ones."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

from vlmcore._arrays import Float64Array
from vlmcore._optional import optional_dependency
from vlmcore.contracts.actions import ActionChunk, ActionStep, Stream
from vlmcore.contracts.embodiment import (
    ActionDim,
    ActionSpace,
    Embodiment,
    LimitsSource,
    Reference,
)
from vlmcore.limits import ContractLimits
from vlmcore.policy.interface import PolicyInfo
from vlmcore.testing._hostile_fields import hostile_fields
from vlmcore.testing._json_strategies import hostile_json, json_objects
from vlmcore.testing._observation_strategies import (
    camera_specs,
    observation_summaries,
    observations,
)
from vlmcore.testing._plain_strategies import (
    finite_numbers,
    hostile_numbers,
    names,
    some_names,
)
from vlmcore.testing._rotation_strategies import rotation_groups, some_rotations
from vlmcore.testing._safety_strategies import safety_summaries

with optional_dependency("testing", "hypothesis"):
    from hypothesis import strategies as st
    from hypothesis.extra import numpy as hnp

__all__ = [
    "action_chunks",
    "action_dims",
    "action_spaces",
    "action_steps",
    "camera_specs",
    "embodiments",
    "hostile_actions",
    "hostile_fields",
    "hostile_json",
    "hostile_numbers",
    "json_objects",
    "names",
    "observation_summaries",
    "observations",
    "policy_infos",
    "rotation_groups",
    "safety_summaries",
]

_LIMITS = ContractLimits()
_FROM_ZERO = tuple(reference for reference in Reference if not reference.is_target)


@st.composite
def action_dims(
    draw: st.DrawFn, *, name: str | None = None, rate_hz: float = _LIMITS.max_rate_hz
) -> ActionDim:
    """
    Dimensions of every `Reference`, some of them periodic, and some with levels.

    Some of those that lead somewhere bound the position that they lead to.

    Args:
        draw: Given by hypothesis.
        name: Their name; drawn unless given.
        rate_hz: The largest rate of a space that they are for.

    Example:
        >>> from hypothesis import find
        >>> find(action_dims(), lambda dim: dim.period is not None).reference
        <Reference.ABSOLUTE: 'absolute'>
    """
    kind = draw(st.sampled_from(("range", "from zero", "periodic", "levels")))
    fields: dict[str, Any] = {"name": draw(names()) if name is None else name}
    fields["unit"] = draw(st.sampled_from(("", "rad", "m", "m/s")))
    step = draw(st.floats(1e-5, 1e3))
    fields["max_rate" if draw(st.booleans()) else "max_step"] = step
    if kind == "from zero":
        fields["reference"] = draw(st.sampled_from(_FROM_ZERO))
        low, high = -draw(st.floats(0.0, 1e3)), draw(st.floats(1e-3, 1e3))
        if fields["reference"].leads_somewhere and draw(st.booleans()):
            fields["position_low"] = draw(finite_numbers(1e3))
            fields["position_high"] = fields["position_low"] + draw(st.floats(1e-3, 1e3))
    elif kind == "periodic":
        fields["period"] = draw(st.sampled_from((2 * math.pi, 360.0, 1.0)))
        low = draw(st.sampled_from((0.0, -0.5))) * fields["period"]
        high = low + fields["period"]
    else:
        low = draw(finite_numbers(1e3))
        high = low + draw(st.floats(1e-3, 1e3))
    if kind == "levels":
        low, high = draw(_levels(fields, low, high, rate_hz=rate_hz))
    return ActionDim(low=low, high=high, **fields)


@st.composite
def _levels(
    draw: st.DrawFn, fields: dict[str, Any], low: float, high: float, *, rate_hz: float
) -> tuple[float, float]:
    """Put levels into *fields*, so that another one can be reached, and give their range."""
    levels = {low, high, *draw(st.lists(st.floats(low, high), max_size=3))}
    if draw(st.booleans()):
        fields["reference"] = draw(st.sampled_from(_FROM_ZERO))
        levels.add(0.0)
    if fields.get("reference", Reference.ABSOLUTE).is_change:
        nearest = min(abs(level) for level in levels if level)
    else:
        nearest = min(after - before for before, after in pairwise(sorted(levels)))
    fields["levels"] = tuple(sorted(levels))
    if draw(st.booleans()):
        fields.pop("max_step", None)
        fields.pop("max_rate", None)
    for field, least in (("max_step", nearest), ("max_rate", nearest * rate_hz)):
        if field in fields:
            fields[field] = max(fields[field], least)
    return min(levels), max(levels)


@st.composite
def action_spaces(draw: st.DrawFn, *, max_dims: int = 6) -> ActionSpace:
    """
    Spaces of one to *max_dims* dimensions of every kind, some of them with rotations.

    Args:
        draw: Given by hypothesis.
        max_dims: Dimensions at the most.

    Example:
        >>> from hypothesis import find
        >>> int(find(action_spaces(), lambda space: space.is_change.all()).rate_hz)
        20
    """
    called = draw(some_names(1, max_dims))
    rate_hz = draw(st.sampled_from((20.0, 0.5, 50.0, 10_000.0)) | st.floats(0.1, 1e3))
    rotations, turned = draw(some_rotations(called, rate_hz))
    dims = tuple(
        turned.get(name) or draw(action_dims(name=name, rate_hz=rate_hz)) for name in called
    )
    return ActionSpace(dims=dims, rate_hz=rate_hz, rotations=rotations)


@st.composite
def embodiments(draw: st.DrawFn, *, max_dims: int = 6) -> Embodiment:
    """
    Embodiments with names in any script, and with everything that a document can say.

    Args:
        draw: Given by hypothesis.
        max_dims: Dimensions of the actions at the most.
    """
    cameras = [draw(camera_specs(name=name)) for name in draw(some_names(1, 3))]
    modes = st.sampled_from(
        ("absolute joint position", "delta pose", "not delta", "Joint VELOCITY", "torque", "")
    )
    return Embodiment(
        name=draw(names()),
        state_names=tuple(draw(some_names(1, 6))),
        actions=draw(action_spaces(max_dims=max_dims)),
        cameras=tuple(cameras),
        limits_source=draw(st.sampled_from(LimitsSource)),
        action_mode=draw(modes | names()),
        notes=draw(st.text(st.characters(codec="utf-8"), max_size=40)),
    )


def hostile_actions(*, steps: int, dims: int) -> st.SearchStrategy[Float64Array]:
    """
    Arrays of shape ``[steps, dims]`` with anything in them that float64 can hold.

    Args:
        steps: How many steps.
        dims: How many dimensions.
    """
    return hnp.arrays("float64", (steps, dims), elements=hostile_numbers())


@st.composite
def action_chunks(
    draw: st.DrawFn,
    *,
    space: ActionSpace | None = None,
    max_steps: int = 6,
    hostile: bool = False,
) -> ActionChunk:
    """
    Chunks with and without streams and metadata.

    Args:
        draw: Given by hypothesis.
        space: Whose dimensions they have; names are drawn unless given.
        max_steps: Steps at the most.
        hostile: Whether NaN, infinity and numbers of any size may be in them; else they are finite.

    Example:
        >>> from hypothesis import find
        >>> find(action_chunks(hostile=True), lambda chunk: not chunk.is_finite).is_finite
        False
    """
    called = tuple(draw(some_names(1, 6))) if space is None else space.names
    steps = draw(st.integers(1, max_steps))
    elements = hostile_numbers() if hostile else st.floats(allow_nan=False, allow_infinity=False)
    cuts = draw(st.sets(st.integers(1, len(called)), max_size=3)) | {len(called)}
    ends = sorted(cuts) if draw(st.booleans()) else []
    parts = draw(some_names(len(ends), len(ends))) if ends else []
    starts = [0, *ends]
    return ActionChunk(
        values=draw(hnp.arrays("float64", (steps, len(called)), elements=elements)),
        names=called,
        source=draw(names()),
        observed_at_s=draw(finite_numbers()),
        streams=tuple(
            Stream(name=part, start=start, end=end)
            for part, start, end in zip(parts, starts, ends, strict=False)
        ),
        metadata=draw(json_objects()),
    )


@st.composite
def action_steps(draw: st.DrawFn, *, space: ActionSpace | None = None) -> ActionStep:
    """
    Single steps of chunks, their numbers by name.

    Args:
        draw: Given by hypothesis.
        space: As for `action_chunks`.
    """
    chunk = draw(action_chunks(space=space))
    return chunk.step(draw(st.integers(0, chunk.horizon - 1)))


@st.composite
def policy_infos(draw: st.DrawFn) -> PolicyInfo:
    """
    What policies say of themselves: little, or all of it.

    Args:
        draw: Given by hypothesis.

    Example:
        >>> from hypothesis import find
        >>> find(policy_infos(), lambda info: info.cameras is not None).action_names
    """
    called = draw(st.none() | some_names(1, 6))
    units = st.sampled_from(("", "rad", "m"))
    width = len(called or ())
    return PolicyInfo(
        name=draw(names()),
        action_names=called,
        action_units=draw(st.none() | st.lists(units, min_size=width, max_size=width))
        if called
        else None,
        state_names=draw(st.none() | some_names(1, 6)),
        cameras=draw(
            st.none()
            | st.lists(camera_specs(), min_size=1, max_size=3, unique_by=lambda each: each.name)
        ),
        horizon=draw(st.none() | st.integers(1, _LIMITS.max_horizon)),
        rate_hz=draw(st.none() | st.floats(0.1, 1e3)),
        metadata=draw(json_objects()),
    )
