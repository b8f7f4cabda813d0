"""What a policy is seldom shown: observations that are odd, and ones that do not fit."""

from __future__ import annotations

from collections.abc import Iterator

import attrs
import numpy as np

from vlmcore.contracts.observation import Observation
from vlmcore.limits import ContractLimits

__all__ = ["odd_observations", "unfit_cameras", "unfit_states"]

_LIMITS = ContractLimits()
_NO_CAMERA = "a camera that no robot has"


def odd_observations(seen: Observation) -> Iterator[tuple[str, Observation]]:
    """Make observations that are valid and seldom, each with what is odd about it."""
    longest = ("pick " * _LIMITS.max_task_characters)[: _LIMITS.max_task_characters - 1]
    for what, text in (
        ("a task of one letter", "?"),
        ("the longest task", f"{longest}."),
        ("a task in other scripts", "Nimm den Würfel\n拿起立方体 \U0001f9ca"),
    ):
        yield what, attrs.evolve(seen, instruction=text)
    for number in (0.0, -0.0, 5e-324, 1e6, -1e6):
        state = np.full_like(seen.state, number)
        yield f"a state of {number!r}", attrs.evolve(seen, state=state)
    for what, level, side in (
        ("black frames", 0, None),
        ("white frames", 255, None),
        ("frames of one pixel", 127, 1),
    ):
        images = {
            name: np.full_like(frames[:, :side, :side], level)
            for name, frames in seen.images.items()
        }
        yield what, attrs.evolve(seen, images=images)
    yield "a clock below zero", attrs.evolve(seen, captured_at_s=-1.5)
    yield "frames that are an hour apart", attrs.evolve(seen, frame_rate_hz=1 / 3600)


def unfit_states(seen: Observation) -> Iterator[tuple[str, Observation]]:
    """Make observations whose state has another length, each with what is wrong with it."""
    state = seen.state
    if len(state) < _LIMITS.max_state:
        longer = np.append(state, 0.0)
        yield "a state with a number too many", attrs.evolve(seen, state=longer)
    if len(state) > 1:
        yield "a state with a number too few", attrs.evolve(seen, state=state[:-1])


def unfit_cameras(seen: Observation) -> tuple[str, Observation]:
    """Make an observation through a camera that nobody expects, and say so."""
    images = {_NO_CAMERA: next(iter(seen.images.values()))}
    return "no camera that it knows", attrs.evolve(seen, images=images)
