"""Hypothesis strategies for the contracts of robots, true ones and deliberately hostile ones."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from vlmcore._arrays import Float64Array
from vlmcore._optional import optional_dependency
from vlmcore.contracts.actions import ActionChunk, Stream
from vlmcore.contracts.embodiment import (
    ActionDim,
    ActionSpace,
    CameraSpec,
    Embodiment,
    LimitsSource,
    Reference,
)
from vlmcore.contracts.observation import Observation
from vlmcore.limits import ContractLimits
from vlmcore.safety.findings import ViolationKind
from vlmcore.safety.remedies import Remedy
from vlmcore.safety.report import RefusalReason, SafetySummary
from vlmcore.testing._json_strategies import hostile_json, json_objects
from vlmcore.testing._rotation_strategies import some_rotations

with optional_dependency("testing", "hypothesis"):
    from hypothesis import strategies as st
    from hypothesis.extra import numpy as hnp

__all__ = [
    "action_chunks",
    "action_dims",
    "action_spaces",
    "embodiments",
    "hostile_actions",
    "hostile_json",
    "hostile_numbers",
    "json_objects",
    "names",
    "observations",
    "safety_summaries",
]

_LIMITS = ContractLimits()
_HOSTILE = (
    math.nan,
    math.inf,
    -math.inf,
    5e-324,  # the smallest subnormal
    -0.0,
    1.7976931348623157e308,  # the largest
    3.4028235677973366e38,  # just over the largest float32
    9007199254740993.0,
    0.1 + 0.2,
    math.nextafter(math.pi, 4.0),
)


def names(*, max_size: int = 12) -> st.SearchStrategy[str]:
    """
    Names in any script, of what names may hold.

    Args:
        max_size: Characters at the most.
    """
    characters = st.characters(codec="utf-8", exclude_categories=("Cc", "Cs", "Zl", "Zp", "Cf"))
    return st.text(characters, min_size=1, max_size=max_size).filter(str.strip)


def _some_names(smallest: int, largest: int) -> st.SearchStrategy[list[str]]:
    return st.lists(names(), min_size=smallest, max_size=largest, unique=True)


def _finite(largest: float = 1e6) -> st.SearchStrategy[float]:
    return st.floats(-largest, largest, allow_nan=False)


@st.composite
def action_dims(draw: st.DrawFn, *, name: str | None = None) -> ActionDim:
    """
    Dimensions of every kind: targets, changes and rates, periodic ones, and ones with levels.

    Some changes and rates bound the position that they lead to.

    Args:
        draw: Given by hypothesis.
        name: Their name; drawn unless given.

    Example:
        >>> from hypothesis import find
        >>> find(action_dims(), lambda dim: dim.period is not None).reference
        <Reference.ABSOLUTE: 'absolute'>
    """
    kind = draw(st.sampled_from(("range", "change", "periodic", "levels")))
    fields: dict[str, Any] = {"name": draw(names()) if name is None else name}
    fields["unit"] = draw(st.sampled_from(("", "rad", "m", "m/s")))
    step = draw(st.floats(1e-5, 1e3))
    fields["max_rate" if draw(st.booleans()) else "max_step"] = step
    if kind == "change":
        fields["reference"] = draw(st.sampled_from((Reference.DELTA, Reference.VELOCITY)))
        low, high = -draw(st.floats(0.0, 1e3)), draw(st.floats(1e-3, 1e3))
        if draw(st.booleans()):
            fields["position_low"] = draw(_finite(1e3))
            fields["position_high"] = fields["position_low"] + draw(st.floats(1e-3, 1e3))
    elif kind == "periodic":
        fields["period"] = draw(st.sampled_from((2 * math.pi, 360.0, 1.0)))
        low = draw(st.sampled_from((0.0, -0.5))) * fields["period"]
        high = low + fields["period"]
    else:
        low = draw(_finite(1e3))
        high = low + draw(st.floats(1e-3, 1e3))
    if kind == "levels":
        middle = draw(st.lists(st.floats(low, high), max_size=3))
        fields["levels"] = tuple(sorted({low, high, *middle}))
        if draw(st.booleans()):
            fields.pop("max_step", None)
            fields.pop("max_rate", None)
    return ActionDim(low=low, high=high, **fields)


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
    called = draw(_some_names(1, max_dims))
    rate_hz = draw(st.sampled_from((20.0, 0.5, 50.0, 10_000.0)) | st.floats(0.1, 1e3))
    rotations, turned = draw(some_rotations(called, rate_hz))
    dims = tuple(turned.get(name) or draw(action_dims(name=name)) for name in called)
    return ActionSpace(dims=dims, rate_hz=rate_hz, rotations=rotations)


@st.composite
def embodiments(draw: st.DrawFn, *, max_dims: int = 6) -> Embodiment:
    """
    Embodiments with names in any script, and with everything that a document can say.

    Args:
        draw: Given by hypothesis.
        max_dims: Dimensions of the actions at the most.
    """
    cameras = []
    for name in draw(_some_names(1, 3)):
        sides = draw(st.none() | st.tuples(st.integers(1, 64), st.integers(1, 64)))
        height, width = sides or (None, None)
        cameras.append(CameraSpec(name=name, height_px=height, width_px=width))
    modes = st.sampled_from(
        ("absolute joint position", "delta pose", "not delta", "Joint VELOCITY", "")
    )
    return Embodiment(
        name=draw(names()),
        state_names=tuple(draw(_some_names(1, 6))),
        actions=draw(action_spaces(max_dims=max_dims)),
        cameras=tuple(cameras),
        limits_source=draw(st.sampled_from(LimitsSource)),
        action_mode=draw(modes | names()),
        notes=draw(st.text(st.characters(codec="utf-8"), max_size=40)),
    )


def hostile_numbers() -> st.SearchStrategy[float]:
    """
    Any float64, more often the ones that break things: NaN, infinity, subnormals, -0.0.

    Example:
        >>> from hypothesis import find
        >>> find(hostile_numbers(), lambda number: number != number)
        nan
    """
    return st.sampled_from(_HOSTILE) | st.floats() | _finite(10.0)


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
    called = tuple(draw(_some_names(1, 6))) if space is None else space.names
    steps = draw(st.integers(1, max_steps))
    elements = hostile_numbers() if hostile else st.floats(allow_nan=False, allow_infinity=False)
    cuts = draw(st.sets(st.integers(1, len(called)), max_size=3)) | {len(called)}
    ends = sorted(cuts) if draw(st.booleans()) else []
    parts = draw(_some_names(len(ends), len(ends))) if ends else []
    starts = [0, *ends]
    return ActionChunk(
        values=draw(hnp.arrays("float64", (steps, len(called)), elements=elements)),
        names=called,
        source=draw(names()),
        observed_at_s=draw(_finite()),
        streams=tuple(
            Stream(name=part, start=start, end=end)
            for part, start, end in zip(parts, starts, ends, strict=False)
        ),
        metadata=draw(json_objects()),
    )


@st.composite
def observations(
    draw: st.DrawFn, *, embodiment: Embodiment | None = None, max_frames: int = 3
) -> Observation:
    """
    Observations with small frames, some with a history, some cameras with one frame only.

    Args:
        draw: Given by hypothesis.
        embodiment: Which robot they are of; names are drawn unless given.
        max_frames: Frames of history at the most.
    """
    if embodiment is None:
        cameras = tuple(CameraSpec(name=name) for name in draw(_some_names(1, 3)))
        states = draw(st.integers(1, 8))
    else:
        cameras, states = embodiment.cameras, len(embodiment.state_names)
    history = draw(st.integers(1, max_frames))
    images = {}
    for camera in cameras:
        height = camera.height_px or draw(st.integers(1, 8))
        width = camera.width_px or draw(st.integers(1, 8))
        shape = (draw(st.sampled_from((1, history))), height, width, 3)
        size = math.prod(shape)
        # A few bytes, over and over: one drawn for each pixel would take most of the time.
        few = draw(st.binary(min_size=1, max_size=48))
        pixels = np.frombuffer(few * (size // len(few) + 1), np.uint8, size)
        images[camera.name] = pixels.reshape(shape)
    return Observation(
        instruction=draw(st.text(st.characters(codec="utf-8"), min_size=1).filter(str.strip)),
        state=draw(hnp.arrays("float64", states, elements=_finite())),
        images=images,
        frame_rate_hz=draw(st.floats(0.1, 1e3)),
        captured_at_s=draw(_finite()),
    )


@st.composite
def safety_summaries(draw: st.DrawFn) -> SafetySummary:
    """
    What a gate may have said of a chunk, with counts of every kind.

    Args:
        draw: Given by hypothesis.

    Example:
        >>> from hypothesis import find
        >>> find(safety_summaries(), lambda summary: summary.total > 2).total
        3
    """
    steps = draw(st.integers(1, _LIMITS.max_horizon))
    kinds = st.sampled_from(ViolationKind)
    is_safe = draw(st.booleans())
    return SafetySummary(
        embodiment=draw(names() | st.just("")),
        action_mode=draw(names() | st.just("")),
        policy_source=draw(names()),
        input_horizon=steps,
        execution_horizon=draw(st.integers(1, steps)),
        action_dim=draw(st.integers(1, _LIMITS.max_actions)),
        mode=draw(st.sampled_from(Remedy)),
        previous_action_provided=draw(st.booleans()),
        counts=draw(st.dictionaries(kinds, st.integers(0, 1000))),
        changed=draw(st.booleans()),
        safe_for_handoff=is_safe,
        reason=None if is_safe else draw(st.none() | st.sampled_from(RefusalReason)),
    )
