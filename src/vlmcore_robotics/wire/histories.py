"""
What a policy is shown of the past, by delta indices: two frames that are 20 steps apart, say.

A client keeps the observations of the steps before and gives them along; what a policy asks for and
nobody kept is not invented.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence

import numpy as np

from vlmcore._arrays import Float64Array, UInt8Array
from vlmcore.contracts.observation import Observation
from vlmcore.errors import ContractError

__all__ = ["MissingHistory", "frames_at", "require_steps", "states_at"]

_NOW = (0,)  # the deltas of most policies


class MissingHistory(enum.Enum):
    """What is done where a policy asks for more of the past than there is."""

    REFUSE = "refuse"
    REPEAT_OLDEST = "repeat the oldest"  # as if the robot had stood still before


def require_steps(steps: Sequence[Observation]) -> None:
    """
    Require observations, at least one.

    Raises:
        ContractError: If there is none, or something else among them.
    """
    if not steps:
        raise ContractError("steps", "got none, expected the observation of now at least")
    for i, step in enumerate(steps):
        if not isinstance(step, Observation):
            raise ContractError(f"steps[{i}]", f"got {type(step).__name__}, expected Observation")


def frames_at(
    camera: str,
    steps: Sequence[Observation],
    deltas: tuple[int, ...],
    missing: MissingHistory = MissingHistory.REFUSE,
) -> UInt8Array:
    """
    Take the frames of *camera* at *deltas*, counted from the last of *steps*.

    Args:
        camera: Its name.
        steps: Observations, oldest first, one a step; of each but a single one the newest frame is
            taken. The frames of a single one are themselves the history, one a step.
        deltas: Steps from now, ascending, none above 0.
        missing: What is done where there is not so much of the past.

    Returns:
        uint8, shape ``[T, H, W, 3]``. Frames that follow each other in one observation are a view.

    Raises:
        ContractError: If a frame is not there, or frames differ in size.
    """
    require_steps(steps)
    newest = steps[-1].images.get(camera)
    if deltas == _NOW and newest is not None:
        return newest[-1:]
    for observation in steps:
        if camera not in observation.images:
            raise ContractError(
                "images", f"got {', '.join(observation.images)}, expected {camera!r} among them"
            )
    if len(steps) == 1:
        shown = steps[0].frames(camera)
        at = _places(f"images[{camera!r}]", len(shown), deltas, missing)
        if at == list(range(at[0], at[0] + len(at))):
            return shown[at[0] : at[0] + len(at)]
        return shown[at]
    at = _places(f"images[{camera!r}]", len(steps), deltas, missing)
    frames = [steps[place].images[camera][-1] for place in at]
    sizes = {frame.shape[:2] for frame in frames}
    if len(sizes) > 1:
        raise ContractError(
            f"images[{camera!r}]",
            f"got frames of {sorted(sizes)} pixels (height, width), expected one size",
        )
    return frames[0][np.newaxis] if len(frames) == 1 else np.stack(frames)


def states_at(
    steps: Sequence[Observation],
    deltas: tuple[int, ...],
    missing: MissingHistory = MissingHistory.REFUSE,
) -> Float64Array:
    """
    Take the states at *deltas*, counted from the last of *steps*, shape ``[T, S]``.

    Raises:
        ContractError: If a state is not there, or states differ in length.
    """
    require_steps(steps)
    if deltas == _NOW:
        return steps[-1].state[np.newaxis]
    states = [steps[place].state for place in _places("state", len(steps), deltas, missing)]
    counts = {len(state) for state in states}
    if len(counts) > 1:
        raise ContractError("state", f"got states of {sorted(counts)} numbers, expected one length")
    return states[0][np.newaxis] if len(states) == 1 else np.stack(states)


def _places(field: str, count: int, deltas: tuple[int, ...], missing: MissingHistory) -> list[int]:
    """Say where in *count* steps, oldest first, the steps at *deltas* stand."""
    if not deltas or deltas[-1] > 0:
        raise ContractError("deltas", f"got {deltas!r:.80}, expected steps of the past, or now")
    oldest = deltas[0]
    if oldest <= -count and missing is MissingHistory.REFUSE:
        raise ContractError(
            field,
            f"got {count} of {1 - oldest} steps, expected those {', '.join(map(str, deltas))} "
            "steps from now: give the observations before, or ask for the oldest to be repeated",
        )
    return [max(0, count - 1 + delta) for delta in deltas]
