"""Tests of the contracts and the gate with whole numbers that Python refuses to write out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from vlmcore.contracts.actions import ActionChunk
from vlmcore.contracts.embodiment import ActionDim, ActionSpace, CameraSpec
from vlmcore.contracts.observation import Observation
from vlmcore.contracts.presets import find_embodiment
from vlmcore.errors import ContractError, LimitExceededError
from vlmcore.safety import SafetyGate

HUGE: Any = 10**5000
ROBOT = find_embodiment("aloha_bimanual_template")
FRAME = np.zeros((1, 4, 4, 3), np.uint8)


def chunk(**changes: Any) -> ActionChunk:
    """Make a chunk of which something is huge."""
    fields = {"values": [[0.0] * 14], "names": ROBOT.actions.names, "source": "s"}
    return ActionChunk(**{**fields, "observed_at_s": 0.0, **changes})


def gate(**changes: Any) -> SafetyGate:
    """Make a gate of which something is huge."""
    return SafetyGate(embodiment=ROBOT, **changes)


def seen(**changes: Any) -> Observation:
    """Make an observation of which something is huge."""
    fields = {"instruction": "x", "state": [0.0], "images": {"top": FRAME}, "frame_rate_hz": 1.0}
    return Observation(**{**fields, "captured_at_s": 0.0, **changes})


MADE: dict[str, Callable[[], object]] = {
    "values of a chunk": lambda: chunk(values=[[HUGE] * 14]),
    "names of a chunk": lambda: chunk(names=(HUGE,) * 14),
    "source": lambda: chunk(source=HUGE),
    "time": lambda: chunk(observed_at_s=HUGE),
    "metadata": lambda: chunk(metadata={"a": HUGE}),
    "key of metadata": lambda: chunk(metadata={HUGE: 1}),
    "last command by name": lambda: gate().vet(chunk(), last_command={HUGE: 1}),
    "last command": lambda: gate().vet(chunk(), last_command=[HUGE] * 14),
    "position": lambda: gate().vet(chunk(), last_command=[0.0] * 14, position={HUGE: 1}),
    "remedy": lambda: gate(remedy=HUGE),
    "reorder": lambda: gate(reorder=HUGE),
    "name of a camera": lambda: seen(images={HUGE: FRAME}),
    "images": lambda: seen(images=HUGE),
    "state": lambda: seen(state=[HUGE]),
    "bound": lambda: ActionDim(name="x", low=0.0, high=HUGE, max_step=1.0),
    "levels": lambda: ActionDim(name="x", low=0.0, high=1.0, levels=(0.0, HUGE)),
    "no levels": lambda: ActionDim(name="x", low=0.0, high=1.0, levels=HUGE),
    "dims": lambda: ActionSpace(dims=HUGE, rate_hz=1.0),
    "rate": lambda: ActionSpace(dims=ROBOT.actions.dims, rate_hz=HUGE),
    "size of a camera": lambda: CameraSpec(name="c", height_px=HUGE, width_px=HUGE),
    "preset": lambda: find_embodiment(HUGE),
}


@pytest.mark.parametrize("make", MADE.values(), ids=MADE)
def test_a_huge_number_is_refused_in_words_of_ours(make: Callable[[], object]) -> None:
    """
    Python raises when it is to show one of more than 4,300 digits, also inside of other values.
    """
    with pytest.raises(ContractError, match="got ") as refused:
        make()
    assert len(str(refused.value)) < 2000


def test_a_huge_size_is_told_without_its_digits() -> None:
    """
    The number itself is in the error.
    """
    error = LimitExceededError("max_x", HUGE, 7)
    assert ("max_x: got a huge number, limit is 7", HUGE) == (str(error), error.actual)
