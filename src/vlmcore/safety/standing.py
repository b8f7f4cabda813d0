"""The action that leaves a robot where it is."""

from __future__ import annotations

from typing import Any

from vlmcore._arrays import Float64Array
from vlmcore.contracts.embodiment import ActionSpace
from vlmcore.errors import ContractError
from vlmcore.safety._rules import Rules
from vlmcore.safety.references import read_last_command
from vlmcore.safety.remedies import hold

__all__ = ["stand_still"]


def stand_still(space: ActionSpace, *, last_command: Any) -> Float64Array:
    """
    Give the action that ``Remedy.HOLD`` sends; it is not vetted.

    Targets stay at the last command, changes, rates, offsets and torques are zero, and what has
    levels is at the nearest. A torque of zero lets go, and what nothing else holds up falls. One
    that is declared as a target stays, and goes on pushing.

    Args:
        space: What may be commanded.
        last_command: As for `SafetyGate.vet`. If it is ``None``, targets are zero, which no gate
            lets pass then.

    Returns:
        Shape ``[D]``; NaN for a target whose last command is out of its bounds.

    Raises:
        ContractError: If an argument is not as described.

    Example:
        >>> from vlmcore.contracts.embodiment import ActionDim, Reference
        >>> slide = ActionDim(name="x", unit="m", low=-1.0, high=1.0, max_step=0.1)
        >>> turn = ActionDim(
        ...     name="w", unit="rad/s", reference=Reference.VELOCITY, low=-1, high=1, max_step=0.1
        ... )
        >>> space = ActionSpace(dims=(slide, turn), rate_hz=20)
        >>> stand_still(space, last_command=[0.5, 0.3]).tolist()
        [0.5, 0.0]
    """
    if not isinstance(space, ActionSpace):
        raise ContractError("space", f"got {type(space).__name__}, expected an ActionSpace")
    still = hold(Rules.of(space), read_last_command(last_command, space), 1)
    return still.ravel()
