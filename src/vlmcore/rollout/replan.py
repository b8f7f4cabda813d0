"""What happened when one plan took over from another."""

from __future__ import annotations

import attrs

from vlmcore._arrays import require_name
from vlmcore.contracts.actions import ActionChunk
from vlmcore.errors import ContractError
from vlmcore.limits import ContractLimits
from vlmcore.rollout._checks import require_chunk, require_steps

__all__ = ["ReplanReport"]

_LIMITS = ContractLimits()


@attrs.frozen(kw_only=True)
class ReplanReport:
    """
    What happened when one plan took over from another.

    Attributes:
        previous_source: Which policy proposed the plan that was being executed.
        new_source: Which policy proposed the plan that took over.
        previous_horizon: Steps of the one.
        new_horizon: Steps of the other, as it was proposed.
        executed_steps: Steps of the previous plan that had been sent.
        remaining_previous_steps: Steps of it that had not.
        transition_steps_requested: Steps to blend, as it was asked for.
        transition_steps_applied: Steps that were blended: as many as both plans still had.
        output_horizon: Steps that came out; fewer than *new_horizon* if some were past by then.

    Raises:
        ContractError: If a field is not as described, or the numbers contradict each other.
    """

    previous_source: str
    new_source: str
    previous_horizon: int
    new_horizon: int
    executed_steps: int
    remaining_previous_steps: int
    transition_steps_requested: int
    transition_steps_applied: int
    output_horizon: int

    def __attrs_post_init__(self) -> None:
        longest, most = _LIMITS.max_name_characters, _LIMITS.max_horizon
        require_name("previous_source", self.previous_source, max_characters=longest)
        require_name("new_source", self.new_source, max_characters=longest)
        require_steps("previous_horizon", self.previous_horizon, 1, most)
        require_steps("new_horizon", self.new_horizon, 1, most)
        require_steps("executed_steps", self.executed_steps, 0, self.previous_horizon)
        left = self.previous_horizon - self.executed_steps
        require_steps("remaining_previous_steps", self.remaining_previous_steps, left, left)
        require_steps("transition_steps_requested", self.transition_steps_requested, 0, most)
        require_steps("output_horizon", self.output_horizon, 1, self.new_horizon)
        blended = min(self.transition_steps_requested, left, self.output_horizon)
        require_steps("transition_steps_applied", self.transition_steps_applied, blended, blended)

    @classmethod
    def of(
        cls, old: ActionChunk, new: ActionChunk, *, executed: int, overlap: int, elapsed: int = 0
    ) -> ReplanReport:
        """
        Say what `blend_chunks` does with the same arguments.

        Raises:
            ContractError: If *old* or *new* is no chunk, or a number of steps is not one of theirs.
        """
        require_chunk("old", old)
        require_chunk("new", new)
        require_steps("executed", executed, 0, old.horizon)
        require_steps("overlap", overlap, 0, _LIMITS.max_horizon)
        require_steps("elapsed", elapsed, 0)
        if elapsed >= new.horizon:
            raise ContractError(
                "elapsed", f"got {elapsed}, expected fewer than the {new.horizon} steps of new"
            )
        left, coming = old.horizon - executed, new.horizon - elapsed
        return cls(
            previous_source=old.source,
            new_source=new.source,
            previous_horizon=old.horizon,
            new_horizon=new.horizon,
            executed_steps=executed,
            remaining_previous_steps=left,
            transition_steps_requested=overlap,
            transition_steps_applied=min(overlap, left, coming),
            output_horizon=coming,
        )
