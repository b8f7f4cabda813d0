"""The promises of `vlmcore.policy.interface.Policy`, each with the code that holds one to it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import attrs
import numpy as np

from vlmcore.contracts.embodiment import Embodiment
from vlmcore.contracts.observation import Observation
from vlmcore.errors import ContractError, PolicyError, VlmcoreError
from vlmcore.policy.fitting import differences_between
from vlmcore.policy.interface import PolicyInfo
from vlmcore.testing._policy_under_test import PolicyUnderTest
from vlmcore.testing._promises import BrokenPromiseError, require, said
from vlmcore.testing._unusual_observations import odd_observations, unfit_cameras, unfit_states

__all__ = ["PROMISES", "PROPERTY", "Promise", "Trial"]

PROPERTY = "any observation of the robot is answered or refused"
"""The promise that is tried with random observations, in `vlmcore.testing.policy_properties`."""


@attrs.frozen(kw_only=True)
class Trial:
    """
    What a promise is tried with.

    Attributes:
        policy: A fresh policy.
        observation: One that it must be able to answer.
        embodiment: The robot that it is for, if that is known.
        deterministic: Whether the same must give the same.
    """

    policy: PolicyUnderTest
    observation: Observation
    embodiment: Embodiment | None
    deterministic: bool

    @property
    def later(self) -> Observation:
        """The same view, a second later."""
        now_s = self.observation.captured_at_s
        return attrs.evolve(self.observation, captured_at_s=now_s + 1.0)


@attrs.frozen(kw_only=True)
class Promise:
    """
    One promise.

    Attributes:
        words: It, as a sentence.
        check: Finds whether it is kept.
        needs_embodiment: Whether it is about a robot.
    """

    words: str
    check: Callable[[Trial], None]
    needs_embodiment: bool = False


def _has_the_methods(trial: Trial) -> None:
    trial.policy.check_methods(trial.observation)


def _reports_itself(trial: Trial) -> None:
    require(trial.policy.info.name, "info.name is empty")


def _reports_the_same(trial: Trial) -> None:
    before = trial.policy.info
    for happened, cause in (
        ("at once", lambda: None),
        ("after infer", lambda: trial.policy.answer(trial.observation)),
        ("after reset", trial.policy.reset),
    ):
        cause()
        now = trial.policy.info
        require(now == before, f"{happened} info is {_difference(now, before)}")


def _fits_the_robot(trial: Trial) -> None:
    robot = trial.embodiment
    assert robot is not None
    found = differences_between(trial.policy.info, robot)
    require(not found, "; ".join(f"info.{difference}" for difference in found))


def _answers(trial: Trial) -> None:
    trial.policy.answer(trial.observation)


def _names_its_actions(trial: Trial) -> None:
    names = trial.policy.answer(trial.observation).names
    reported = trial.policy.info.action_names
    require(reported in (None, names), f"the names are {names}, expected those of info, {reported}")
    if trial.embodiment is not None:
        wanted, robot = trial.embodiment.actions.names, trial.embodiment.name
        require(names == wanted, f"the names are {names}, expected those of {robot!r}, {wanted}")


def _keeps_its_horizon(trial: Trial) -> None:
    for observation in (trial.observation, trial.later):
        steps = trial.policy.answer(observation).horizon
        wanted = trial.policy.info.horizon
        require(wanted in (None, steps), f"{steps} steps came, expected those of info, {wanted}")


def _names_itself(trial: Trial) -> None:
    source, name = trial.policy.answer(trial.observation).source, trial.policy.info.name
    require(source == name, f"source is {source!r}, expected the name in info, {name!r}")


def _says_when(trial: Trial) -> None:
    for observation in (trial.observation, trial.later):
        said_s, seen_s = trial.policy.answer(observation).observed_at_s, observation.captured_at_s
        require(
            said_s == seen_s,
            f"observed_at_s is {said_s!r}, expected captured_at_s of the observation, {seen_s!r}",
        )


def _leaves_what_it_sees(trial: Trial) -> None:
    before = attrs.evolve(trial.observation)
    trial.policy.answer(trial.observation)
    require(trial.observation == before, "infer changed the observation")


def _leaves_what_it_said(trial: Trial) -> None:
    first = trial.policy.answer(trial.observation)
    before = attrs.evolve(first)
    trial.policy.answer(trial.later)
    require(first == before, "the first chunk changed when a second one was asked for")
    trial.policy.reset()
    require(first == before, "the first chunk changed when the policy was reset")


def _resets_unused(trial: Trial) -> None:
    trial.policy.reset()
    trial.policy.reset()
    trial.policy.answer(trial.observation)


def _starts_over(trial: Trial) -> None:
    first = trial.policy.answer(trial.observation)
    trial.policy.answer(trial.later)
    trial.policy.reset()
    again = trial.policy.answer(trial.observation)
    require(
        again.values.shape == first.values.shape,
        f"after reset the same observation gives shape {list(again.values.shape)}, "
        f"expected that of the first answer, {list(first.values.shape)}",
    )
    if trial.deterministic:
        same = np.array_equal(again.values, first.values, equal_nan=True)
        require(same, "after reset the same observation gives other values")


def _takes_a_history(trial: Trial) -> None:
    images = {
        name: np.repeat(frames[-1:], 3, axis=0) for name, frames in trial.observation.images.items()
    }
    trial.policy.outcome(attrs.evolve(trial.observation, images=images))
    first = next(iter(images))
    images[first] = images[first][-1:]
    trial.policy.outcome(attrs.evolve(trial.observation, images=images))


def _takes_what_is_odd(trial: Trial) -> None:
    for what, observation in odd_observations(trial.observation):
        with _about(what):
            trial.policy.outcome(observation)


def _refuses_states(trial: Trial) -> None:
    names = trial.policy.info.state_names
    for what, observation in unfit_states(trial.observation):
        _refuses(trial, what, observation, declared=names is not None)


def _refuses_cameras(trial: Trial) -> None:
    cameras = trial.policy.info.cameras
    _refuses(trial, *unfit_cameras(trial.observation), declared=cameras is not None)


def _outlives_a_refusal(trial: Trial) -> None:
    trial.policy.answer(trial.observation)
    for what, observation in (
        *unfit_states(trial.observation),
        unfit_cameras(trial.observation),
    ):
        with suppress(BrokenPromiseError):  # that is for the checks of what is refused
            trial.policy.outcome(observation)
        with _about(f"after {what}"):
            trial.policy.answer(trial.observation)


def _refuses(trial: Trial, what: str, observation: Observation, *, declared: bool) -> None:
    """Require a refusal of what was declared not to fit, and no foreign error of what was not."""
    with _about(what):
        outcome = trial.policy.outcome(observation)
    if isinstance(outcome, VlmcoreError):
        _require_kind(what, outcome, ContractError, PolicyError)
    else:
        require(not declared, f"{what} is answered, expected a ContractError or a PolicyError")


def _closes_twice(trial: Trial) -> None:
    trial.policy.close()
    trial.policy.close()


def _refuses_once_closed(trial: Trial) -> None:
    trial.policy.close()
    outcome = trial.policy.outcome(trial.observation)
    if not isinstance(outcome, VlmcoreError):
        raise BrokenPromiseError("infer answers after close, expected a PolicyError")
    _require_kind("infer after close", outcome, PolicyError)


def _require_kind(what: str, error: VlmcoreError, *kinds: type[VlmcoreError]) -> None:
    expected = " or ".join(kind.__name__ for kind in kinds)
    if not isinstance(error, kinds):
        raise BrokenPromiseError(f"{what}: {said(error)}, expected {expected}") from error


@contextmanager
def _about(what: str) -> Iterator[None]:
    """Say in what is found here what it is about."""
    try:
        yield
    except BrokenPromiseError as error:
        raise BrokenPromiseError(f"{what}: {error}") from error.__cause__


def _difference(now: PolicyInfo, before: PolicyInfo) -> str:
    """Say in which fields two reports differ."""
    fields = [field.name for field in attrs.fields(PolicyInfo)]
    return "; ".join(
        f"{name} {getattr(now, name)!r:.80}, before {getattr(before, name)!r:.80}"
        for name in fields
        if getattr(now, name) != getattr(before, name)
    )


PROMISES: tuple[Promise, ...] = (
    Promise(words="it has the methods of a policy", check=_has_the_methods),
    Promise(words="it reports what it is", check=_reports_itself),
    Promise(words="what it reports does not change", check=_reports_the_same),
    Promise(words="what it reports fits the robot", check=_fits_the_robot, needs_embodiment=True),
    Promise(words="an observation is answered with a chunk", check=_answers),
    Promise(words="a chunk has the names that are expected", check=_names_its_actions),
    Promise(words="a chunk has the horizon that is reported", check=_keeps_its_horizon),
    Promise(words="a chunk names the policy as its source", check=_names_itself),
    Promise(words="a chunk says when its observation was captured", check=_says_when),
    Promise(words="an observation is left as it is", check=_leaves_what_it_sees),
    Promise(words="a chunk is left as it is", check=_leaves_what_it_said),
    Promise(words="a reset before the first observation is no error", check=_resets_unused),
    Promise(words="a reset starts the episode over", check=_starts_over),
    Promise(words="a history of frames is answered or refused", check=_takes_a_history),
    Promise(words="odd observations are answered or refused", check=_takes_what_is_odd),
    Promise(words="a state that does not fit is refused", check=_refuses_states),
    Promise(words="cameras that do not fit are refused", check=_refuses_cameras),
    Promise(words="a refusal leaves it usable", check=_outlives_a_refusal),
    Promise(words="closing twice is no error", check=_closes_twice),
    Promise(words="once closed it refuses work", check=_refuses_once_closed),
)
