"""The compliance kit for policies: what every one must do, wherever it runs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, TypeAlias

import attrs

from vlmcore._arguments import require_switch
from vlmcore.contracts.embodiment import Embodiment
from vlmcore.contracts.observation import Observation, check_fits
from vlmcore.errors import ContractError
from vlmcore.policy.interface import AsyncPolicy, Policy
from vlmcore.safety.gate import SafetyGate
from vlmcore.safety.report import SafetyReport
from vlmcore.testing._policy_promises import PROMISES, Promise, Trial
from vlmcore.testing._policy_under_test import opened
from vlmcore.testing._promises import BrokenPromiseError, keep_within

__all__ = [
    "POLICY_CHECKS",
    "MakePolicy",
    "PolicyCheck",
    "PolicyCheckError",
    "PolicyCheckReport",
    "check_policy",
    "vet_proposal",
]

MakePolicy: TypeAlias = Callable[[], Policy | AsyncPolicy | Awaitable[Policy | AsyncPolicy]]
"""What makes a policy: a class, a function, or an ``async`` function."""

_VETTING = "a chunk can be vetted"


class PolicyCheckError(AssertionError):
    """
    A policy breaks promises; an `AssertionError`, so that test runners call it a failure.

    The error that a policy raised where it should not have is the cause of this one.

    Attributes:
        failures: The name of each check that failed, and what the policy did and was expected to.
    """

    def __init__(self, failures: tuple[tuple[str, str], ...]) -> None:
        super().__init__(failures)
        self.failures = failures

    def __str__(self) -> str:
        named: dict[str, list[str]] = {}
        for name, problem in self.failures:
            named.setdefault(problem, []).append(name)
        lines = []
        for problem, (first, *others) in named.items():
            lines.append(f"{first}: {problem}")
            if others:
                lines.append(f"  and for the same reason: {', '.join(others)}")
        if len(self.failures) == 1:
            return lines[0]
        return "\n  ".join([f"{len(self.failures)} promises are broken", *lines])


@attrs.frozen(kw_only=True)
class PolicyCheckReport:
    """
    What was found in a policy that keeps its promises.

    Attributes:
        passed: The names of the checks.
        safety: What the gate of the embodiment finds in the first chunk, where one was given. That
            a chunk breaks limits, or holds NaN, is no broken promise: a policy only proposes.
    """

    passed: tuple[str, ...]
    safety: SafetyReport | None

    def __str__(self) -> str:
        kept = f"{len(self.passed)} promises are kept"
        return kept if self.safety is None else f"{kept}; the gate finds: {self.safety}"


@attrs.frozen
class PolicyCheck:
    """
    One promise of `vlmcore.policy.interface.Policy`, with the code that holds a policy to it.

    Attributes:
        name: The promise, as a sentence.
        needs_embodiment: Whether it is about a robot.
    """

    name: str
    needs_embodiment: bool
    _promise: Promise = attrs.field(repr=False)

    def __call__(
        self,
        make_policy: MakePolicy,
        observation: Observation,
        *,
        embodiment: Embodiment | None = None,
        deterministic: bool = False,
        patience_s: float = 120.0,
    ) -> None:
        """
        Hold a fresh policy to the promise; the arguments are those of `check_policy`.

        It is made, asked and closed in one thread, which is not the caller's, so that a policy that
        waits for ever fails the check and does not hang the tests.

        Raises:
            PolicyCheckError: If the promise is not kept within *patience_s*.
            ContractError: If an argument is not as described.
        """
        _require_fits(observation, embodiment)
        if self.needs_embodiment and embodiment is None:
            raise ContractError("embodiment", f"got None, expected one: {self.name!r} is about it")

        def check() -> None:
            with opened(make_policy) as policy:
                trial = Trial(
                    policy=policy,
                    observation=attrs.evolve(observation),  # a policy may change it
                    embodiment=embodiment,
                    deterministic=deterministic,
                )
                self._promise.check(trial)

        _keep(self.name, check, patience_s)


def check_policy(
    make_policy: MakePolicy,
    observation: Observation,
    *,
    embodiment: Embodiment | None = None,
    deterministic: bool = False,
    patience_s: float = 120.0,
) -> PolicyCheckReport:
    """
    Hold a policy to every promise of `vlmcore.policy.interface.Policy`, or of `AsyncPolicy`.

    Args:
        make_policy: Makes an open policy, which may have to be awaited. It is called once for each
            check, in a thread of the check; each policy is closed at the end. An ``AsyncPolicy`` is
            awaited in a loop of that thread.
        observation: One that the policy can answer, as from `example_observation`.
        embodiment: The robot that the policy is for. Then the names of its actions, and what the
            policy reports about state, cameras, units and rate, must be those of the robot.
        deterministic: Whether the same observation after a reset must give the same numbers.
        patience_s: The longest that one check may take, in seconds.

    Returns:
        The names of the checks, all of which passed, and what the gate finds.

    Raises:
        PolicyCheckError: If promises are not kept; all of them are listed, each with its reason.
        ContractError: If the observation is not one of the embodiment, or *deterministic* is
            neither True nor False.

    Example:
        >>> from vlmcore.contracts.presets import find_embodiment
        >>> from vlmcore.policy.interface import PolicyInfo
        >>> from vlmcore.testing import ScriptedPolicy, example_observation
        >>> robot = find_embodiment("generic_7dof_joint_gripper")
        >>> info = PolicyInfo(
        ...     name="still", action_names=robot.actions.names,
        ...     state_names=robot.state_names, cameras=robot.cameras,
        ... )
        >>> report = check_policy(
        ...     lambda: ScriptedPolicy([[[0.0] * 8]], info=info),
        ...     example_observation(robot), embodiment=robot,
        ... )
        >>> print(report)
        20 promises are kept; the gate finds: still, 1 x 8 values: 1 too far from the step before; \
first: step 0, 'gripper': -0.5 too far from the step before (limit 0.15)
    """
    require_switch(deterministic=deterministic)
    _require_fits(observation, embodiment)
    checks = [
        check for check in POLICY_CHECKS if embodiment is not None or not check.needs_embodiment
    ]
    ask = partial(
        _failure,
        make_policy=make_policy,
        observation=observation,
        embodiment=embodiment,
        deterministic=deterministic,
        patience_s=patience_s,
    )
    errors = [error for error in map(ask, checks) if error is not None]
    if errors:
        failures = tuple(failure for error in errors for failure in error.failures)
        causes = (error.__cause__ for error in errors if error.__cause__ is not None)
        raise PolicyCheckError(failures) from next(causes, None)
    safety = None
    if embodiment is not None:
        safety = vet_proposal(make_policy, observation, embodiment, patience_s=patience_s)
    return PolicyCheckReport(passed=tuple(check.name for check in checks), safety=safety)


def vet_proposal(
    make_policy: MakePolicy,
    observation: Observation,
    embodiment: Embodiment,
    *,
    patience_s: float = 120.0,
) -> SafetyReport:
    """
    Ask a fresh policy once, and see what the gate of *embodiment* finds in what it proposes.

    The state stands for the last command where it has the targets by their names; else nobody knows
    the last command, and each target is found to start from nowhere.

    Args:
        make_policy: As for `check_policy`.
        observation: What it is shown.
        embodiment: The robot whose limits the chunk is held against.
        patience_s: The longest that this may take, in seconds.

    Raises:
        PolicyCheckError: If it does not answer, or answers with a chunk for another robot.
        ContractError: If the observation is not one of the embodiment.
    """
    _require_fits(observation, embodiment)
    gate = SafetyGate(embodiment=embodiment)
    reports: list[SafetyReport] = []

    def check() -> None:
        with opened(make_policy) as policy:
            chunk = policy.answer(attrs.evolve(observation))
        reports.append(gate.check(chunk, last_command=_last_command(observation, embodiment)))

    _keep(_VETTING, check, patience_s)
    return reports[0]


def _failure(check: PolicyCheck, **arguments: Any) -> PolicyCheckError | None:
    try:
        check(**arguments)
    except PolicyCheckError as error:
        return error
    return None


def _last_command(observation: Observation, embodiment: Embodiment) -> dict[str, float] | None:
    state = dict(zip(embodiment.state_names, observation.state.tolist(), strict=True))
    dims = embodiment.actions.dims
    if any(dim.name not in state for dim in dims if dim.reference.is_target):
        return None
    return {dim.name: state[dim.name] if dim.reference.is_target else 0.0 for dim in dims}


def _require_fits(observation: Observation, embodiment: Embodiment | None) -> None:
    if not isinstance(observation, Observation):
        raise ContractError(
            "observation", f"got {type(observation).__name__}, expected an Observation"
        )
    if embodiment is None:
        return
    if not isinstance(embodiment, Embodiment):
        raise ContractError(
            "embodiment", f"got {type(embodiment).__name__}, expected an Embodiment"
        )
    check_fits(observation, embodiment, all_cameras=False)


def _keep(name: str, check: Callable[[], None], patience_s: float) -> None:
    try:
        keep_within(patience_s, check)
    except BrokenPromiseError as error:
        raise PolicyCheckError(((name, str(error)),)) from error.__cause__


POLICY_CHECKS: tuple[PolicyCheck, ...] = tuple(
    PolicyCheck(promise.words, promise.needs_embodiment, promise) for promise in PROMISES
)
"""Every check, in the order in which they make sense: the first failure explains the later ones."""
