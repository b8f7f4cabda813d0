"""The interface of every policy, local or behind a server."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, runtime_checkable

import attrs

from vlmcore._arguments import shown
from vlmcore._arrays import (
    as_tuple,
    plain_float,
    require_count,
    require_name,
    require_names,
    require_positive,
)
from vlmcore._copying import through_constructor
from vlmcore._json_values import frozen_object
from vlmcore.contracts.actions import ActionChunk
from vlmcore.contracts.embodiment import CameraSpec
from vlmcore.contracts.observation import Observation
from vlmcore.errors import ContractError
from vlmcore.limits import ContractLimits, require_at_most

__all__ = [
    "AsyncPolicy",
    "ForkingPolicy",
    "ObservingPolicy",
    "OffloadingPolicy",
    "Policy",
    "PolicyInfo",
]

_LIMITS = ContractLimits()


def _metadata(value: Any) -> Mapping[str, Any]:
    return frozen_object(value, field="metadata")


@attrs.frozen(kw_only=True)
class PolicyInfo:
    """
    What a policy says about itself; ``None`` where it does not say.

    Attributes:
        name: What it is called in chunks and reports.
        action_names: What the numbers of its actions are, in the order in which it sends them.
        action_units: The unit of each of them, empty where there is none.
        state_names: What it expects the numbers of a state to be, in their order.
        cameras: What it expects to see through.
        horizon: How many steps it proposes at once.
        rate_hz: For how many control steps a second its actions are meant.
        metadata: What else it said, as JSON values; read-only.

    Raises:
        ContractError: If a field is not as described.
    """

    name: str
    action_names: tuple[str, ...] | None = attrs.field(default=None, converter=as_tuple)
    action_units: tuple[str, ...] | None = attrs.field(default=None, converter=as_tuple)
    state_names: tuple[str, ...] | None = attrs.field(default=None, converter=as_tuple)
    cameras: tuple[CameraSpec, ...] | None = attrs.field(default=None, converter=as_tuple)
    horizon: int | None = None
    rate_hz: float | None = attrs.field(default=None, converter=plain_float)
    metadata: Mapping[str, Any] = attrs.field(factory=dict, converter=_metadata, hash=False)

    def __attrs_post_init__(self) -> None:
        longest = _LIMITS.max_name_characters
        require_name("name", self.name, max_characters=longest)
        for field, names, most in (
            ("action_names", self.action_names, _LIMITS.max_actions),
            ("state_names", self.state_names, _LIMITS.max_state),
        ):
            if names is not None:
                require_names(field, names, max_count=most, max_characters=longest)
        self._check_units()
        self._check_cameras()
        if self.horizon is not None:
            require_count(horizon=self.horizon)
            require_at_most("max_horizon", self.horizon, _LIMITS.max_horizon)
        if self.rate_hz is not None:
            require_positive(rate_hz=self.rate_hz)
            if self.rate_hz > _LIMITS.max_rate_hz:
                raise ContractError(
                    "rate_hz", f"got {self.rate_hz:g}, expected at most {_LIMITS.max_rate_hz}"
                )

    __reduce__ = through_constructor

    def _check_units(self) -> None:
        units, names = self.action_units, self.action_names
        if units is None:
            return
        if not isinstance(units, tuple) or not all(isinstance(unit, str) for unit in units):
            raise ContractError("action_units", f"got {shown(units)}, expected a tuple of texts")
        for i, unit in enumerate(units):
            if unit:
                longest = _LIMITS.max_name_characters
                require_name(f"action_units[{i}]", unit, max_characters=longest)
        if names is None or len(units) != len(names):
            count = "no names" if names is None else f"{len(names)} names"
            raise ContractError(
                "action_units", f"got {len(units)} units, expected one a name: there are {count}"
            )

    def _check_cameras(self) -> None:
        cameras = self.cameras
        if cameras is None:
            return
        if not isinstance(cameras, tuple) or not all(isinstance(c, CameraSpec) for c in cameras):
            raise ContractError("cameras", f"got {shown(cameras)}, expected a tuple of CameraSpec")
        require_names(
            "cameras",
            tuple(camera.name for camera in cameras),
            max_count=_LIMITS.max_cameras,
            max_characters=_LIMITS.max_name_characters,
        )


@runtime_checkable
class Policy(Protocol):
    """
    Maps one observation to one action chunk. Not safe for threads unless it says so.

    `vlmcore.testing.check_policy` checks one against all that is promised here.
    """

    @property
    def info(self) -> PolicyInfo:
        """What it is and what it expects."""
        ...

    def infer(self, observation: Observation, /) -> ActionChunk:
        """
        Propose the next actions.

        ``observed_at_s`` of the chunk is ``captured_at_s`` of the observation; its ``source`` is
        the name in `info`.

        Raises:
            PolicyError: If the policy cannot answer; the next call may.
            ContractError: If the observation is not one that it understands.
        """
        ...

    def reset(self) -> None:
        """Forget the episode, as before its first observation."""
        ...

    def close(self) -> None:
        """Give back what it holds; further calls are refused. Closing twice is no error."""
        ...


@runtime_checkable
class ForkingPolicy(Policy, Protocol):
    """A `Policy` that keeps something between its calls, and can be had again for others."""

    def fork(self) -> Policy:
        """
        Make another policy with the same weights and a state of its own, as before an episode.

        What is asked of one changes nothing for the others. Closing one leaves the others usable.
        """
        ...


@runtime_checkable
class ObservingPolicy(Policy, Protocol):
    """
    A `Policy` that looks back, and wants to be shown what is seen between its calls, too.

    The brokers of `vlmcore.rollout` show it what is seen in each step, oldest first, before they
    ask it. Somebody who only asks it leaves gaps in what it looks back to.
    """

    def steps_back(self) -> int:
        """Say how many control steps before an observation it looks; 0 where it does not."""
        ...

    def observe(self, observation: Observation, /) -> None:
        """
        Look at what is seen in a step in which nothing is asked.

        Raises:
            PolicyError: If the policy is closed.
            ContractError: If the observation is not one that it understands.
        """
        ...


@runtime_checkable
class OffloadingPolicy(Policy, Protocol):
    """A `Policy` that can do without its accelerator while nobody asks."""

    def offload(self) -> None:
        """
        Give back the memory of the accelerator, that of its forks too.

        The next ``infer``, of this one or of a fork, takes it again by itself, and what is kept of
        an episode is not forgotten.
        """
        ...


@runtime_checkable
class AsyncPolicy(Protocol):
    """A `Policy` for ``asyncio``: the same promises, awaited."""

    @property
    def info(self) -> PolicyInfo:
        """What it is and what it expects."""
        ...

    async def infer(self, observation: Observation, /) -> ActionChunk:
        """Propose the next actions, as `Policy.infer`."""
        ...

    async def reset(self) -> None:
        """Forget the episode, as before its first observation."""
        ...

    async def aclose(self) -> None:
        """Give back what it holds; further calls are refused. Closing twice is no error."""
        ...
