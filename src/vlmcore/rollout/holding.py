"""What a robot is told when there is nothing to execute: to stand still."""

from __future__ import annotations

import enum
from typing import Any

from vlmcore.contracts.actions import ActionChunk
from vlmcore.contracts.embodiment import ActionSpace
from vlmcore.errors import ContractError
from vlmcore.safety.gate import SafetyGate
from vlmcore.safety.standing import stand_still
from vlmcore.safety.vetted import VettedChunk

__all__ = ["HELD", "Starvation", "hold_still"]

HELD = "hold"  # the source of a step that stands still


class Starvation(enum.Enum):
    """What a robot does when its plan is at its end and no answer is there."""

    HOLD = "hold"  # targets stay, all else is zero
    ZERO = "zero"  # as HOLD, and refused for spaces with targets: what is sent is zero, for sure
    STOP = "stop"  # raise, and trip the latch if there is one

    def require_fits(self, space: ActionSpace) -> None:
        """
        Require this to be a way to stand still in *space*.

        Raises:
            ContractError: If zero would be a place to go to.
        """
        targets = [dim.name for dim in space.dims if dim.reference.is_target]
        if self is Starvation.ZERO and targets:
            raise ContractError(
                "starvation",
                f"got {self} with the targets {', '.join(targets)}, expected none: zero is a place "
                "to go to for a target",
            )


def hold_still(gate: SafetyGate, *, last_command: Any, now_s: float) -> VettedChunk:
    """
    Make the one step that leaves the robot where it is, and vet it as any other.

    What that is, `vlmcore.safety.standing.stand_still` says. It is safe wherever the things are
    that changes and rates move.

    Args:
        gate: Through which it goes.
        last_command: As for `SafetyGate.vet`.
        now_s: Reading of the clock by which observations are stamped: it is decided now, and on no
            observation.

    Returns:
        One step, its source ``"hold"``.

    Raises:
        UnsafeActionError: If the gate refuses it: nobody knows where the robot is, or it is out of
            its bounds.
        ContractError: If an argument is not as described.

    Example:
        >>> from vlmcore.contracts.embodiment import ActionDim
        >>> slide = ActionDim(name="x", unit="m", low=-1.0, high=1.0, max_step=0.1)
        >>> gate = SafetyGate(space=ActionSpace(dims=(slide,), rate_hz=20))
        >>> held = hold_still(gate, last_command=[0.5], now_s=7.0)
        >>> held.source, held.values.tolist()
        ('hold', [[0.5]])
    """
    if not isinstance(gate, SafetyGate):
        raise ContractError("gate", f"got {type(gate).__name__}, expected a SafetyGate")
    space = gate.actions
    still = stand_still(space, last_command=last_command)
    chunk = ActionChunk(values=[still], names=space.names, source=HELD, observed_at_s=now_s)
    return gate.vet(chunk, last_command=last_command)
