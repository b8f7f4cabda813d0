"""Shadow mode: a robot keeps its policy, and another one is asked beside it and only compared."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, TypeAlias

import attrs
import numpy as np

from vlmcore._arguments import shown
from vlmcore._arrays import (
    Float64Array,
    as_tuple,
    readonly_float64,
    require_finite_between,
    require_names,
)
from vlmcore._closing import Closing
from vlmcore._copying import by_value, through_constructor
from vlmcore.contracts.actions import ActionChunk
from vlmcore.contracts.observation import Observation
from vlmcore.errors import ContractError
from vlmcore.limits import ContractLimits
from vlmcore.policy.interface import ObservingPolicy, Policy, PolicyInfo
from vlmcore.rollout._checks import MOST_COUNTED, require_by_column, require_chunk, require_steps
from vlmcore.rollout._open_loop_errors import ErrorSums, Ruler
from vlmcore.rollout._ordering import in_order
from vlmcore.safety.gate import SafetyGate
from vlmcore.secrets import redact

__all__ = ["ShadowPolicy", "ShadowReport"]

_LIMITS = ContractLimits()
_FAREWELL_S = 2.0
_LONGEST_ERROR = 200
_Shown: TypeAlias = tuple[Observation, ActionChunk]


def _by_column(value: Any) -> Float64Array:
    return readonly_float64(value, field="mean, worst or lost", axes="[M]")


@attrs.frozen(kw_only=True)
class ShadowReport:
    """
    What the candidate would have done.

    A rotation in space is one column, in radians; an angle that comes round is compared the short
    way; every other dimension in its own unit.

    Attributes:
        names: What the ``M`` columns are.
        units: The unit of each.
        compared: How many pairs of chunks were compared.
        dropped: How many observations the candidate was not shown, since it was busy.
        failed: How often it raised, or answered what is no chunk of the robot.
        last_failure: What went wrong then; empty if nothing did.
        candidate_refused: How many of its chunks the gate would not let pass as they are.
        policy_refused: The same of the policy in use, of those that were compared.
        mean: The mean difference of both proposals, over the steps that both have, shape ``[M]``;
            NaN where nothing could be compared.
        worst: The largest difference, shape ``[M]``.
        lost: How many values of the candidate could not be compared, as NaN, shape ``[M]``.

    Raises:
        ContractError: If a field is not as described.
    """

    names: tuple[str, ...] = attrs.field(converter=as_tuple)
    units: tuple[str, ...] = attrs.field(converter=as_tuple)
    compared: int
    dropped: int
    failed: int
    last_failure: str
    candidate_refused: int
    policy_refused: int
    mean: Float64Array = attrs.field(converter=_by_column, eq=by_value)
    worst: Float64Array = attrs.field(converter=_by_column, eq=by_value)
    lost: Float64Array = attrs.field(converter=_by_column, eq=by_value)

    def __attrs_post_init__(self) -> None:
        longest = _LIMITS.max_name_characters
        require_names("names", self.names, max_count=_LIMITS.max_actions, max_characters=longest)
        require_by_column("units", self.units, str, len(self.names))
        for field in ("compared", "dropped", "failed"):
            require_steps(field, getattr(self, field), 0, MOST_COUNTED)
        for field in ("candidate_refused", "policy_refused"):
            require_steps(field, getattr(self, field), 0, self.compared)
        if not isinstance(self.last_failure, str):
            raise ContractError("last_failure", f"got {shown(self.last_failure)}, expected text")
        for field in ("mean", "worst", "lost"):
            values = getattr(self, field)
            if len(values) != len(self.names) or (values < 0).any() or np.isinf(values).any():
                raise ContractError(
                    field, f"got {shown(values)}, expected numbers from 0, one a column"
                )

    __reduce__ = through_constructor

    def __str__(self) -> str:
        width = max(map(len, self.names))
        refused = f"{self.candidate_refused} of it, {self.policy_refused} of the policy"
        lines = [
            f"{self.compared} compared, {self.dropped} dropped, {self.failed} failed",
            f"the gate would refuse {refused}",
            f"{'':{width}}  {'mean':>10}  {'largest':>10}",
        ]
        for name, unit, mean, worst in zip(
            self.names, self.units, self.mean, self.worst, strict=True
        ):
            lines.append(f"{name:{width}}  {mean:10.4g}  {worst:10.4g}  {unit}".rstrip())
        return "\n".join(lines)


class ShadowPolicy(Closing):
    """
    A `vlmcore.policy.interface.Policy` that answers with *policy*, and asks *candidate* beside it.

    The candidate is asked on a thread of its own, once the policy has answered. While it is busy,
    observations are dropped and counted, so that it never delays the policy; it shares the
    processor with it all the same. Its proposals are compared and put to a gate that only looks.
    They never leave.

    If the policy is a `vlmcore.policy.interface.ObservingPolicy`, this is one as well. The
    candidate is shown nothing between its questions, so one that looks back sees gaps.

    Both policies are closed with it. One thread calls it; `report` may be used from others.

    Args:
        policy: What the robot is driven by.
        candidate: What might drive it one day. Whatever it does is counted, and harms nobody.
        gate: For which robot, and by which limits.
        last_command: Tells from an observation what was sent to the robot last, as
            `SafetyGate.check` takes it; of a robot whose state is its targets, the state.

    Raises:
        ContractError: If an argument is not as described.

    Example:
        >>> import attrs
        >>> from vlmcore.contracts.presets import find_embodiment
        >>> from vlmcore.rollout.recorded_policies import ConstantPolicy
        >>> from vlmcore.testing import example_observation
        >>> robot = find_embodiment("aloha_bimanual_template")
        >>> chunk = ActionChunk(
        ...     values=[[0.0] * 14], names=robot.actions.names, source="old", observed_at_s=0.0
        ... )
        >>> other = attrs.evolve(chunk, values=chunk.values + 0.25, source="new")
        >>> shadow = ShadowPolicy(
        ...     ConstantPolicy(chunk), ConstantPolicy(other), SafetyGate(embodiment=robot),
        ...     last_command=lambda seen: seen.state,
        ... )
        >>> shadow.infer(example_observation(robot)).source
        'old'
        >>> shadow.wait(10.0)
        True
        >>> print(str(shadow.report()).partition("joint_1")[0])
        1 compared, 0 dropped, 0 failed
        the gate would refuse 1 of it, 0 of the policy
                        mean     largest
        joint_0         0.25        0.25
        <BLANKLINE>
        >>> shadow.close()
    """

    def __init__(
        self,
        policy: Policy,
        candidate: Policy,
        gate: SafetyGate,
        *,
        last_command: Callable[[Observation], Any],
    ) -> None:
        for field, came in (("policy", policy), ("candidate", candidate)):
            if not isinstance(came, Policy) or isinstance(came, type):
                raise ContractError(field, f"got {type(came).__name__}, expected a Policy")
        if not isinstance(gate, SafetyGate):
            raise ContractError("gate", f"got {type(gate).__name__}, expected a SafetyGate")
        if not callable(last_command):
            raise ContractError(
                "last_command",
                f"got {type(last_command).__name__}, expected a function of an observation",
            )
        self._policy, self._candidate, self._gate = policy, candidate, gate
        if isinstance(policy, ObservingPolicy):  # whoever looks for it looks for its names
            self.steps_back, self.observe = policy.steps_back, policy.observe
        self._last_command = last_command
        self._changed = threading.Condition()
        self._shown: _Shown | None = None
        self._is_busy = self._is_reset = self._is_closed = False
        self._dropped = self._failed = 0
        self._last_failure = ""
        self._compared = self._candidate_refused = self._policy_refused = 0
        self._sums = ErrorSums(Ruler(gate.actions.names, gate.actions))
        self._thread = threading.Thread(target=self._work, name="shadow", daemon=True)
        self._thread.start()

    @property
    def info(self) -> PolicyInfo:
        """What the policy in use says about itself."""
        return self._policy.info

    def infer(self, observation: Observation, /) -> ActionChunk:
        """
        Ask the policy, and show the candidate the same.

        Raises:
            BaseException: What the policy raises.
        """
        chunk = self._policy.infer(observation)
        with self._changed:
            if self._is_busy or self._shown is not None:
                self._dropped += 1
            else:
                self._shown = observation, chunk
                self._changed.notify_all()
        return chunk

    def reset(self) -> None:
        """Reset the policy, and the candidate before it is asked again."""
        self._policy.reset()
        with self._changed:
            self._dropped += self._shown is not None
            self._shown, self._is_reset = None, True
            self._changed.notify_all()

    def close(self) -> None:
        """Close both; a candidate that is busy ends by itself. Closing twice is no error."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()
        try:
            self._policy.close()
        finally:
            self._thread.join(_FAREWELL_S)

    def wait(self, timeout_s: float) -> bool:
        """
        Wait until the candidate has nothing to do; return whether that was within *timeout_s*.

        Raises:
            ContractError: If it is not 0 to 600 seconds.
        """
        require_finite_between(0.0, 600.0, timeout_s=timeout_s)
        with self._changed:
            return self._changed.wait_for(self._is_idle, timeout_s)

    def report(self) -> ShadowReport:
        """Tell what was found until now."""
        with self._changed:
            sums = self._sums
            count, total = sums.count.sum(axis=0), sums.total.sum(axis=0)
            mean = np.where(count > 0, total / np.maximum(count, 1), np.nan)
            worst = sums.worst.max(axis=0, initial=0.0)
            return ShadowReport(
                names=sums.ruler.names,
                units=sums.ruler.units,
                compared=self._compared,
                dropped=self._dropped,
                failed=self._failed,
                last_failure=self._last_failure,
                candidate_refused=self._candidate_refused,
                policy_refused=self._policy_refused,
                mean=mean,
                worst=np.where(count > 0, worst, np.nan),
                lost=sums.lost.copy(),
            )

    def _is_idle(self) -> bool:
        return self._shown is None and not self._is_busy and not self._is_reset

    def _work(self) -> None:
        """Do what the candidate is to do, one after the other, until it is closed."""
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._is_closed or not self._is_idle())
                if self._is_closed:
                    break
                shown, self._shown = self._shown, None
                is_reset, self._is_reset = self._is_reset, False
                self._is_busy = True
            self._guarded(lambda: self._ask(shown, is_reset=is_reset))  # noqa: B023 - called now
            with self._changed:
                self._is_busy = False
                self._changed.notify_all()
        self._guarded(self._candidate.close)

    def _guarded(self, action: Callable[[], None]) -> None:
        try:
            action()
        except BaseException as error:  # noqa: BLE001 - the candidate's errors stay its own
            with self._changed:
                self._failed += 1
                self._last_failure = redact(
                    f"{type(error).__name__}: {error}", max_characters=_LONGEST_ERROR
                )

    def _ask(self, shown: _Shown | None, *, is_reset: bool) -> None:
        if is_reset:
            self._candidate.reset()
        if shown is None:
            return
        observation, theirs = shown
        ours = self._candidate.infer(observation)
        require_chunk("candidate", ours)
        names = self._gate.actions.names
        ours, theirs = in_order(ours, names), in_order(theirs, names)
        start = self._last_command(observation)
        is_safe, was_safe = (
            self._gate.check(each, last_command=start).safe_for_handoff for each in (ours, theirs)
        )
        steps = min(ours.horizon, theirs.horizon)
        with self._changed:
            self._compared += 1
            self._candidate_refused += not is_safe
            self._policy_refused += not was_safe
            self._sums.add(ours.values[:steps], theirs.values[:steps], first=0)
