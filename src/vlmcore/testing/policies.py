"""Policies without a model: they answer from a script, at once or as slowly as a test needs."""

from __future__ import annotations

import asyncio
import enum
import time
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias, final

import attrs

from vlmcore._arrays import require_finite_between, require_member
from vlmcore._closing import Closing
from vlmcore.contracts.actions import ActionChunk
from vlmcore.contracts.observation import Observation
from vlmcore.errors import ContractError, PolicyError
from vlmcore.policy.fitting import require_expected
from vlmcore.policy.interface import PolicyInfo

__all__ = ["AsyncScriptedPolicy", "Script", "ScriptEnding", "ScriptedPolicy"]

Script: TypeAlias = Sequence[Any] | Callable[[Observation], Any]
"""
What a scripted policy answers: a list of answers, or a function from observations to answers.

An answer is an `ActionChunk`; an array or lists of numbers, shape ``[T, D]``, whose dimensions have
the names in `PolicyInfo.action_names`; or an exception, which is raised.
"""

_INFO = PolicyInfo(name="scripted")


class ScriptEnding(enum.Enum):
    """What a scripted policy does once every answer of its script was given."""

    REPEAT = "repeat"  # give the last one again
    CYCLE = "cycle"  # begin again with the first one
    RAISE = "raise"  # raise PolicyError: the loop asked more often than it was meant to


@attrs.define
class _Notes:
    """What a scripted policy and its forks have seen."""

    shown: list[Observation] = attrs.field(factory=list)
    resets: int = 0


class _ScriptedPolicy:
    """What both kinds of scripted policies are made of."""

    def __init__(
        self,
        script: Script,
        *,
        info: PolicyInfo = _INFO,
        ending: ScriptEnding = ScriptEnding.REPEAT,
        delay_s: float = 0.0,
    ) -> None:
        if not isinstance(info, PolicyInfo):
            raise ContractError("info", f"got {type(info).__name__}, expected a PolicyInfo")
        require_member(ScriptEnding, ending=ending)
        require_finite_between(0.0, 3600.0, delay_s=delay_s)
        self._info = info
        self._ending = ending
        self._delay_s = delay_s
        self._script = script if callable(script) else _read_script(script, info)
        self._position = 0
        self._notes = _Notes()
        self._closed = False

    @property
    def info(self) -> PolicyInfo:
        """What it is and what it expects."""
        return self._info

    @property
    def shown(self) -> tuple[Observation, ...]:
        """Every observation that it took, the oldest first; a reset forgets none of them."""
        return tuple(self._notes.shown)

    @property
    def resets(self) -> int:
        """How often it was reset."""
        return self._notes.resets

    @property
    def closed(self) -> bool:
        """Whether it was closed."""
        return self._closed

    def _take(self, observation: Observation) -> ActionChunk | Exception:
        """Note what is shown, and find the answer to it."""
        self._require_open()
        require_expected(observation, self._info)
        self._notes.shown.append(observation)
        if callable(self._script):
            answer = _answer(self._script(observation), "script", self._info)
        else:
            answer = self._next(self._script)
        if isinstance(answer, Exception):
            return answer.with_traceback(None)  # it may be raised many times
        observed_at_s = observation.captured_at_s
        return attrs.evolve(answer, source=self._info.name, observed_at_s=observed_at_s)

    def _next(self, answers: Sequence[ActionChunk | Exception]) -> ActionChunk | Exception:
        position, count = self._position, len(answers)
        self._position += 1
        match self._ending:
            case ScriptEnding.REPEAT:
                return answers[min(position, count - 1)]
            case ScriptEnding.CYCLE:
                return answers[position % count]
            case ScriptEnding.RAISE if position < count:
                return answers[position]
            case ScriptEnding.RAISE:
                return PolicyError(self._info.name, f"its script of {count} answers is at its end")

    def _start_over(self) -> None:
        self._require_open()
        self._position = 0
        self._notes.resets += 1

    def _require_open(self) -> None:
        if self._closed:
            raise PolicyError(self._info.name, "this policy is closed: make it again")


@final
class ScriptedPolicy(_ScriptedPolicy, Closing):
    """
    A `vlmcore.policy.interface.Policy` that answers from a script, for tests of code that uses one.

    It keeps every promise of the protocol: `vlmcore.testing.check_policy` passes. The time of each
    chunk is that of the observation, its source the name in *info*; what the observation must hold
    is what *info* says. A script is played as it is, also where a chunk breaks what *info* says:
    so is a loop tested against policies that lie. `reset` starts a list over; a function is
    not told. `fork` gives a policy with the same script, at its start.

    Attributes:
        info: What it is and what it expects.
        shown: Every observation that it and its forks took.
        resets: How often they were reset.
        closed: Whether it was closed.

    Args:
        script: A list of answers, or a function from observations to answers. An answer is an
            `ActionChunk`, an array or lists of numbers of shape ``[T, D]`` whose names are in
            *info*, or an exception, which is raised.
        info: What it says about itself.
        ending: What it does once every answer of a list was given.
        delay_s: How long each answer takes, in seconds, 0 to 3600.

    Raises:
        ContractError: If an argument is not as described, with the place in the script.

    Example:
        >>> import numpy as np
        >>> from vlmcore.contracts.observation import Observation
        >>> from vlmcore.errors import PolicyError
        >>> from vlmcore.policy.interface import PolicyInfo
        >>> info = PolicyInfo(name="nod", action_names=("neck",))
        >>> policy = ScriptedPolicy([[[0.1], [0.2]], PolicyError("nod", "I am tired")], info=info)
        >>> frame = np.zeros((2, 2, 3), np.uint8)
        >>> seen = Observation(instruction="Nod.", state=[0.0], images={"front": frame},
        ...     frame_rate_hz=10, captured_at_s=7.5)
        >>> chunk = policy.infer(seen)
        >>> chunk.values.ravel().tolist(), chunk.source, chunk.observed_at_s
        ([0.1, 0.2], 'nod', 7.5)
        >>> policy.infer(seen)
        Traceback (most recent call last):
        vlmcore.errors.PolicyError: nod: I am tired
    """

    def infer(self, observation: Observation, /) -> ActionChunk:
        """
        Give the next answer of the script.

        Raises:
            PolicyError: If it is closed, or the script is at its end and is to raise then.
            ContractError: If the observation is not what *info* says, or the function of the script
                answers with what is no answer.
            Exception: What the script says.
        """
        answer = self._take(observation)
        if self._delay_s:
            time.sleep(self._delay_s)
        return _given(answer)

    def reset(self) -> None:
        """
        Start the script over.

        Raises:
            PolicyError: If it is closed.
        """
        self._start_over()

    def fork(self) -> ScriptedPolicy:
        """
        Make another policy, with the same script at its start.

        Raises:
            PolicyError: If it is closed.
        """
        self._require_open()
        forked = ScriptedPolicy(
            self._script, info=self._info, ending=self._ending, delay_s=self._delay_s
        )
        forked._notes = self._notes
        return forked

    def close(self) -> None:
        """Refuse further calls. Closing twice is no error."""
        self._closed = True


@final
class AsyncScriptedPolicy(_ScriptedPolicy):
    """
    A `ScriptedPolicy` for ``asyncio``, with the same arguments and attributes.

    It gives way to other tasks in each call. What it was shown is noted before it waits, so that a
    call that is cancelled has taken its answer from the script.

    Example:
        >>> import asyncio
        >>> from vlmcore.contracts.presets import find_embodiment
        >>> from vlmcore.testing.example_observations import example_observation
        >>> policy = AsyncScriptedPolicy(
        ...     [[[0.1], [0.2]]], info=PolicyInfo(name="nod", action_names=("neck",))
        ... )
        >>> seen = example_observation(find_embodiment("aloha_bimanual_template"))
        >>> asyncio.run(policy.infer(seen)).values.ravel().tolist()
        [0.1, 0.2]
    """

    async def infer(self, observation: Observation, /) -> ActionChunk:
        """
        Give the next answer of the script, as `ScriptedPolicy.infer`.

        Raises:
            PolicyError: If it is closed, or the script is at its end and is to raise then.
            ContractError: If the observation is not what *info* says, or the function of the script
                answers with what is no answer.
            Exception: What the script says.
        """
        answer = self._take(observation)
        await asyncio.sleep(self._delay_s)
        return _given(answer)

    async def reset(self) -> None:
        """
        Start the script over.

        Raises:
            PolicyError: If it is closed.
        """
        self._start_over()

    async def aclose(self) -> None:
        """Refuse further calls. Closing twice is no error."""
        self._closed = True


def _given(answer: ActionChunk | Exception) -> ActionChunk:
    if isinstance(answer, Exception):
        raise answer
    return answer


def _read_script(script: Any, info: PolicyInfo) -> tuple[ActionChunk | Exception, ...]:
    if not isinstance(script, (list, tuple)):
        raise ContractError(
            "script",
            f"got {type(script).__name__}, expected a list or a tuple of answers, or a function",
        )
    if not script:
        raise ContractError("script", "got no answers, expected at least one")
    return tuple(_answer(answer, f"script[{i}]", info) for i, answer in enumerate(script))


def _answer(answer: Any, field: str, info: PolicyInfo) -> ActionChunk | Exception:
    if isinstance(answer, (ActionChunk, Exception)):
        return answer
    if isinstance(answer, type):
        raise ContractError(field, f"got the class {answer.__name__}, expected one of its objects")
    if info.action_names is None:
        raise ContractError(
            field,
            f"got {type(answer).__name__}, expected an ActionChunk or an exception: "
            "info has no action_names for an array",
        )
    try:
        return ActionChunk(
            values=answer, names=info.action_names, source=info.name, observed_at_s=0.0
        )
    except ContractError as error:
        raise ContractError(f"{field}.{error.field}", error.problem) from None
