"""A flight recorder of a policy that forks: each fork is an episode of its own."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from vlmcore.contracts.embodiment import Embodiment
from vlmcore.errors import ContractError
from vlmcore.policy.interface import ForkingPolicy, Policy
from vlmcore.rollout.episode_calls import EpisodeFailure
from vlmcore.rollout.episode_writer import EpisodeWriter
from vlmcore.rollout.episodes import EpisodeStep
from vlmcore.rollout.flight_recorder import FlightRecorder

__all__ = ["ForkingFlightRecorder"]


class _LazyRecorder(FlightRecorder):
    """Takes its writer when there is something to write; *on_loss* is told of what is not."""

    def __init__(
        self,
        policy: Policy,
        embodiment: Embodiment,
        *,
        new_writer: Callable[[], EpisodeWriter],
        on_loss: Callable[[str], None] | None = None,
        **options: Any,
    ) -> None:
        super().__init__(policy, embodiment, **options)
        self._new_writer, self._on_loss = new_writer, on_loss

    def _keep(self, event: EpisodeStep | EpisodeFailure) -> None:
        if self._writer is None:
            self._writer = self._new_writer()
        super()._keep(event)

    @contextlib.contextmanager
    def _recording(self) -> Iterator[None]:
        before = self._lost
        with super()._recording():
            yield
        if self._on_loss is not None and self._lost > before:
            self._on_loss(self._problem)


class ForkingFlightRecorder(_LazyRecorder):
    """
    A `FlightRecorder` of a `vlmcore.policy.interface.ForkingPolicy`, that forks with it.

    So a server keeps its sessions apart, and each fork is recorded to an episode of its own: what
    two robots were told in turn could not be played again. What the forks lost counts in `lost`;
    `recent` and `dump` know the calls of this one only. All of them are called on one thread.

    Args:
        policy: What is asked, and forked.
        embodiment: The robot whose episodes they are.
        new_writer: Makes the writer of the next episode. It is called at the first call of this
            one, or of a fork.
        options: As for `FlightRecorder`, other than its writer.

    Raises:
        ContractError: If an argument is not as described, or *policy* does not fork.
        MissingDependencyError: If frames are to be kept, and Pillow is not installed.
    """

    def __init__(
        self,
        policy: ForkingPolicy,
        embodiment: Embodiment,
        *,
        new_writer: Callable[[], EpisodeWriter],
        **options: Any,
    ) -> None:
        if not isinstance(policy, ForkingPolicy) or isinstance(policy, type):
            raise ContractError("policy", f"got {type(policy).__name__}, expected a ForkingPolicy")
        made: Any = new_writer
        if not callable(made):
            raise ContractError("new_writer", f"got {type(made).__name__}, expected a function")
        if options.get("writer") is not None:
            raise ContractError("writer", "got one, expected none: new_writer makes them")
        super().__init__(policy, embodiment, new_writer=new_writer, **options)
        self._fork, self._embodiment, self._options = policy.fork, embodiment, options

    def fork(self) -> FlightRecorder:
        """Fork the policy, and record what the fork does by itself."""
        return _LazyRecorder(
            self._fork(),
            self._embodiment,
            new_writer=self._new_writer,
            on_loss=self._note_loss,
            **self._options,
        )

    def _note_loss(self, problem: str) -> None:
        self._lost += 1
        self._problem = problem
