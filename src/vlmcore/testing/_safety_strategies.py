"""Hypothesis strategies for what gates say of chunks, and for what they let pass."""

from __future__ import annotations

from typing import Any

from vlmcore._optional import optional_dependency
from vlmcore.contracts.actions import ActionChunk
from vlmcore.contracts.embodiment import Embodiment
from vlmcore.errors import UnsafeActionError
from vlmcore.limits import ContractLimits
from vlmcore.safety.findings import ViolationKind
from vlmcore.safety.gate import SafetyGate
from vlmcore.safety.remedies import Remedy
from vlmcore.safety.report import RefusalReason, SafetySummary
from vlmcore.safety.vetted import VettedChunk
from vlmcore.testing._plain_strategies import names

with optional_dependency("testing", "hypothesis"):
    from hypothesis import strategies as st

__all__ = ["outcomes", "safety_summaries"]

_LIMITS = ContractLimits()


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
    is_safe, is_changed = draw(st.booleans()), draw(st.booleans())
    looked_at = draw(st.integers(1, steps))
    return SafetySummary(
        embodiment=draw(names() | st.just("")),
        action_mode=draw(names() | st.just("")),
        policy_source=draw(names()),
        input_horizon=steps,
        execution_horizon=looked_at,
        action_dim=draw(st.integers(1, _LIMITS.max_actions)),
        mode=draw(st.sampled_from(Remedy)),
        previous_action_provided=draw(st.booleans()),
        counts=draw(st.dictionaries(kinds, st.integers(0, 1000))),
        changed=is_changed,
        safe_for_handoff=is_safe,
        reason=None if is_safe else draw(st.none() | st.sampled_from(RefusalReason)),
        cut_steps=draw(st.integers(0, looked_at - 1)) if is_changed else 0,
    )


@st.composite
def outcomes(
    draw: st.DrawFn, robot: Embodiment, chunk: ActionChunk
) -> tuple[VettedChunk | UnsafeActionError, dict[str, Any]]:
    """
    What a gate of *robot* makes of *chunk*, under any remedy, and what it was told of the robot.

    Args:
        draw: Given by hypothesis.
        robot: The robot.
        chunk: What is proposed, with the names of its actions.

    Returns:
        The outcome, and ``last_command`` and ``position``, as `SafetyGate.vet` was given them.
    """
    space = robot.actions
    gate = SafetyGate(embodiment=robot, remedy=draw(st.sampled_from(Remedy)))
    middle = (space.low / 2 + space.high / 2).tolist()
    knows = not space.rotations and draw(st.booleans())  # the middle of all rotations is none
    told = {
        "last_command": middle if knows else None,
        "position": dict.fromkeys(space.position_names, 0.0),
    }
    try:
        return gate.vet(chunk, **told), told
    except UnsafeActionError as refusal:
        return refusal, told
