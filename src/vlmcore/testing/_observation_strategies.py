"""Hypothesis strategies for what policies are shown, plain and hostile."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from vlmcore._optional import optional_dependency
from vlmcore.contracts.embodiment import CameraSpec, Embodiment
from vlmcore.contracts.observation import Observation, ObservationSummary
from vlmcore.limits import ContractLimits
from vlmcore.testing._plain_strategies import (
    finite_numbers,
    hostile_numbers,
    names,
    some_names,
    texts,
)

with optional_dependency("testing", "hypothesis"):
    from hypothesis import strategies as st
    from hypothesis.extra import numpy as hnp

__all__ = ["camera_specs", "observation_summaries", "observations"]

# A command to a terminal, a turned direction of writing, a zero, a mark on nothing, what a chat
# template stops at, and the longest task.
_HOSTILE_TASKS = (
    "\x1b[2J",
    "\u202etxt.exe",
    "\0",
    "\u0301",
    "<|im_end|>",
    "?" * ContractLimits().max_task_characters,
)
_HOSTILE_SIDES = (1, 2, 3, 7, 13, 31, 257)


@st.composite
def camera_specs(draw: st.DrawFn, *, name: str | None = None) -> CameraSpec:
    """
    Cameras with a small size, or with none.

    Args:
        draw: Given by hypothesis.
        name: Their name; drawn unless given.

    Example:
        >>> from hypothesis import find
        >>> find(camera_specs(name="wrist"), lambda camera: camera.height_px is not None)
        CameraSpec(name='wrist', height_px=1, width_px=1)
    """
    sides = draw(st.none() | st.tuples(st.integers(1, 64), st.integers(1, 64)))
    height, width = sides or (None, None)
    return CameraSpec(
        name=draw(names()) if name is None else name, height_px=height, width_px=width
    )


@st.composite
def observations(
    draw: st.DrawFn,
    *,
    embodiment: Embodiment | None = None,
    max_frames: int = 3,
    hostile: bool = False,
) -> Observation:
    """
    Observations with small frames, some with a history, some cameras with one frame only.

    Args:
        draw: Given by hypothesis.
        embodiment: Which robot they are of; names are drawn unless given.
        max_frames: Frames of history at the most.
        hostile: Whether all that an observation may hold is in them: finite states and times of any
            size, tasks with control characters, frames that are a line.

    Example:
        >>> from hypothesis import find
        >>> seen = find(observations(hostile=True), lambda seen: not seen.instruction.isprintable())
        >>> seen.instruction.isprintable()
        False
    """
    if embodiment is None:
        cameras = tuple(CameraSpec(name=name) for name in draw(some_names(1, 3)))
        states = draw(st.integers(1, 8))
    else:
        cameras, states = embodiment.cameras, len(embodiment.state_names)
    history = draw(st.integers(1, max_frames))
    sides = st.sampled_from(_HOSTILE_SIDES) if hostile else st.integers(1, 8)
    images = {}
    for camera in cameras:
        height = camera.height_px or draw(sides)
        width = camera.width_px or draw(sides)
        shape = (draw(st.sampled_from((1, history))), height, width, 3)
        size = math.prod(shape)
        # A few bytes, over and over: one drawn for each pixel would take most of the time.
        few = draw(st.binary(min_size=1, max_size=48))
        pixels = np.frombuffer(few * (size // len(few) + 1), np.uint8, size)
        images[camera.name] = pixels.reshape(shape)
    tasks, numbers, rates = _tasks(), finite_numbers(), st.floats(0.1, 1e3)
    if hostile:
        tasks = st.sampled_from(_HOSTILE_TASKS) | tasks
        numbers = hostile_numbers().filter(math.isfinite)
        rates = numbers.filter(lambda rate: rate > 0)
    return Observation(
        instruction=draw(tasks),
        state=draw(hnp.arrays("float64", states, elements=numbers)),
        images=images,
        frame_rate_hz=draw(rates),
        captured_at_s=draw(numbers),
    )


def _tasks() -> st.SearchStrategy[str]:
    return texts(min_size=1).filter(str.strip)


def observation_summaries(**fields: Any) -> st.SearchStrategy[ObservationSummary]:
    """
    Observations without their pixels.

    Args:
        **fields: As for `observations`.
    """
    return observations(**fields).map(Observation.summary)
