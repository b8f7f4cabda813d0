"""Properties of policies: what holds for any observation of a robot, tried with many."""

from __future__ import annotations

from vlmcore._arrays import require_count
from vlmcore._optional import optional_dependency
from vlmcore.contracts.embodiment import Embodiment
from vlmcore.contracts.observation import Observation
from vlmcore.errors import ContractError, VlmcoreError
from vlmcore.testing._policy_promises import PROPERTY
from vlmcore.testing._policy_under_test import PolicyUnderTest, opened
from vlmcore.testing._promises import BrokenPromiseError, keep_within, require
from vlmcore.testing.contract_strategies import observations
from vlmcore.testing.policy_checks import MakePolicy, PolicyCheckError

with optional_dependency("testing", "hypothesis"):
    from hypothesis import HealthCheck, given, settings

__all__ = ["check_policy_properties"]


def check_policy_properties(
    make_policy: MakePolicy,
    embodiment: Embodiment,
    *,
    max_examples: int = 100,
    patience_s: float = 600.0,
) -> None:
    """
    Show a policy random observations of a robot, and hold it to what it must do with any of them.

    It answers with a chunk that has the names of the robot's actions and the time of the
    observation, or it raises an error of vlmcore; nothing else. One policy is shown all of them,
    and reset before each. What fails is made as small as it gets, and is shown.

    Args:
        make_policy: As for `vlmcore.testing.check_policy`; it is called once.
        embodiment: The robot.
        max_examples: How many observations are tried.
        patience_s: The longest that all of it may take, in seconds.

    Raises:
        PolicyCheckError: If an observation has another outcome.
        ContractError: If an argument is not as described.

    Example:
        >>> from vlmcore.contracts.presets import find_embodiment
        >>> from vlmcore.policy.interface import PolicyInfo
        >>> from vlmcore.testing import ScriptedPolicy
        >>> robot = find_embodiment("aloha_bimanual_template")
        >>> info = PolicyInfo(name="still", action_names=robot.actions.names)
        >>> make_policy = lambda: ScriptedPolicy([[[0.0] * 14]], info=info)
        >>> check_policy_properties(make_policy, robot, max_examples=10)
    """
    if not isinstance(embodiment, Embodiment):
        raise ContractError(
            "embodiment", f"got {type(embodiment).__name__}, expected an Embodiment"
        )
    require_count(max_examples=max_examples)
    rules = settings(
        max_examples=max_examples,
        deadline=None,
        report_multiple_bugs=False,
        suppress_health_check=list(HealthCheck),
    )

    def check() -> None:
        with opened(make_policy) as policy:

            @rules
            @given(observations(embodiment=embodiment))
            def any_observation(observation: Observation) -> None:
                _hold(policy, observation, embodiment)

            any_observation()

    try:
        keep_within(patience_s, check)
    except BrokenPromiseError as error:
        raise PolicyCheckError(((PROPERTY, str(error)),)) from error.__cause__


def _hold(policy: PolicyUnderTest, observation: Observation, embodiment: Embodiment) -> None:
    policy.reset()
    try:
        outcome = policy.outcome(observation)
        if isinstance(outcome, VlmcoreError):
            return
        names, wanted = outcome.names, embodiment.actions.names
        require(names == wanted, f"the names are {names}, expected {wanted}")
        said_s, seen_s = outcome.observed_at_s, observation.captured_at_s
        require(said_s == seen_s, f"observed_at_s is {said_s!r}, expected {seen_s!r}")
    except BrokenPromiseError as error:
        problem = f"{error}; it was shown {_shown(observation)}"
        raise BrokenPromiseError(problem) from error.__cause__


def _shown(observation: Observation) -> str:
    """Say what an observation holds, without its pixels."""
    sizes = {name: frames.shape for name, frames in observation.images.items()}
    frames = ", ".join(f"{name} {' x '.join(map(str, shape))}" for name, shape in sizes.items())
    return (
        f"instruction {observation.instruction!r:.80}, state {observation.state.tolist()!s:.200}, "
        f"frames {frames:.200}, frame_rate_hz {observation.frame_rate_hz:g}, "
        f"captured_at_s {observation.captured_at_s!r}"
    )
