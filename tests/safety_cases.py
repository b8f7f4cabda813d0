"""Small spaces and chunks for tests of the gate."""

from __future__ import annotations

from typing import Any

import pytest

from vlmcore.contracts.actions import ActionChunk
from vlmcore.contracts.embodiment import ActionDim, ActionSpace, Reference
from vlmcore.errors import UnsafeActionError
from vlmcore.safety import Remedy, SafetyGate

JOINT = ActionDim(name="x", low=-1.0, high=1.0, max_step=0.1)
SLIDE = ActionDim(name="dx", reference=Reference.DELTA, low=-0.05, high=0.05, max_step=0.02)
OFFSET = ActionDim(name="o", reference=Reference.CHUNK_RELATIVE, low=-0.5, high=0.5, max_step=0.1)
TORQUE = ActionDim(name="t", unit="N m", reference=Reference.TORQUE, low=-8, high=8, max_step=2)
WHEEL = ActionDim(name="turn", low=-3.0, high=3.0, period=6.0, max_step=0.5)
GRIPPER = ActionDim(name="gripper", low=0.0, high=1.0, levels=(0.0, 1.0))


def joint(max_step: float = 0.1, name: str = "x", bound: float = 1.0) -> ActionDim:
    """Make a joint that moves between plus and minus *bound*."""
    return ActionDim(name=name, low=-bound, high=bound, max_step=max_step)


def space(*dims: ActionDim) -> ActionSpace:
    """Make a space at 20 Hz."""
    return ActionSpace(dims=dims, rate_hz=20)


def chunk(values: Any, *names: str, **more: Any) -> ActionChunk:
    """Make a chunk; its dimensions are called x if nothing is said."""
    return ActionChunk(
        values=values, names=names or ("x",), source="test", observed_at_s=12.5, **more
    )


def gate(*dims: ActionDim, remedy: Remedy = Remedy.BLOCK, **more: Any) -> SafetyGate:
    """Make a gate for *dims*, or for the joint."""
    return SafetyGate(space=space(*(dims or (JOINT,))), remedy=remedy, **more)


def vetted(values, *, last_command, remedy=Remedy.CLAMP, dims=(JOINT,), **more: Any) -> list:
    """Vet a chunk of one dimension, and list what left."""
    names = [dim.name for dim in dims]
    came = gate(*dims, remedy=remedy, **more).vet(chunk(values, *names), last_command=last_command)
    return came.values.T.tolist() if len(dims) > 1 else came.values.ravel().tolist()


def refused(
    values, *, last_command, remedy=Remedy.BLOCK, dims=(JOINT,), **more: Any
) -> UnsafeActionError:
    """Vet a chunk that is refused, and take the error."""
    with pytest.raises(UnsafeActionError) as error:
        vetted(values, last_command=last_command, remedy=remedy, dims=dims, **more)
    assert not error.value.report.safe_for_handoff
    assert error.value.reason == error.value.report.reason.value
    return error.value
