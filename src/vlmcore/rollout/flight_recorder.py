"""A flight recorder: what a policy was shown and answered, kept in memory and in an episode."""

from __future__ import annotations

import contextlib
import enum
import logging
import os
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import attrs

from vlmcore._arguments import require_switch
from vlmcore._arrays import require_count, require_member
from vlmcore._closing import Closing
from vlmcore.contracts.actions import ActionChunk
from vlmcore.contracts.embodiment import Embodiment
from vlmcore.contracts.observation import Observation
from vlmcore.errors import ContractError
from vlmcore.limits import DocumentLimits, EpisodeLimits, require_at_most
from vlmcore.policy.interface import ObservingPolicy, OffloadingPolicy, Policy, PolicyInfo
from vlmcore.rollout._outcomes import Outcome
from vlmcore.rollout._steps import step_of
from vlmcore.rollout.episode_calls import EpisodeFailure, PolicyCall, digest_of
from vlmcore.rollout.episode_frames import EncodedFrame, FrameEncoding, encode_frames
from vlmcore.rollout.episode_writer import EpisodeWriter
from vlmcore.rollout.episodes import EpisodeHeader, EpisodeStep
from vlmcore.safety.gate import SafetyGate
from vlmcore.safety.remedies import Remedy
from vlmcore.secrets import redact

__all__ = ["FlightRecorder", "FramesKept"]

_log = logging.getLogger(__name__)
_THUMBNAIL_PX = 96
_LONGEST_ERROR = DocumentLimits().max_error_characters
_MOST_FRAME_BYTES = EpisodeLimits().max_frames_bytes


class FramesKept(enum.Enum):
    """What a recorder keeps of the newest frame of each camera."""

    NONE = "none"
    THUMBNAIL = "thumbnail"  # JPEG, its longest side at most 96 pixels
    JPEG = "jpeg"
    PNG = "png"  # every pixel can be had back


@attrs.frozen(kw_only=True)
class _Call:
    """A call that was answered, and waits for the word of the gate."""

    observation: Observation
    chunk: ActionChunk
    call: PolicyCall
    frames: Mapping[str, tuple[EncodedFrame, ...]]


class FlightRecorder(Closing):
    """
    A `vlmcore.policy.interface.Policy` around another one, that records every call of it.

    A digest of what was shown, the answer or the error, and how long it took go into a ring of the
    last calls, for `dump`, and with *writer* at once to disk, as steps of an episode: what
    `vlmcore.rollout` does with episodes works, `vlmcore.rollout.recorded_policies.EpisodePolicy`
    plays them as a policy.

    Recording never stops a robot: what cannot be recorded is counted and logged, and the answer is
    given all the same.

    Without *is_vetted* each answer is written as it comes, with what a gate says of it that only
    looks. With it an answer waits for `note`, which tells what the gate made of it; if none comes
    before the next call, `reset` or `close`, it is written as without.

    One thread calls it, as the policy itself; the attributes and `dump` may be used from others.
    What the policy can beside that, `offload` or `observe`, it can as well.
    It does not fork: sessions of a server would share a policy that could have been forked for
    each of them. `vlmcore.rollout.forking_recorder.ForkingFlightRecorder` does.

    Args:
        policy: What is asked. It is closed with the recorder.
        embodiment: The robot whose episode it is.
        clock: The caller's monotonic clock, in seconds.
        writer: Where each call is written to at once; it is closed with the recorder.
        is_vetted: Whether `note` is called after each answer.
        last_command: Tells from an observation what was sent to the robot last, for the gate that
            looks; of a robot whose state is its targets, the state. Unless given nobody knows.
        frames: What is kept of the pixels.
        keep: How many calls the ring holds; fewer, where their frames are larger than
            `EpisodeLimits.max_frames_bytes` together.

    Raises:
        ContractError: If an argument is not as described, or *writer* is of another robot.
        MissingDependencyError: If frames are to be kept, and Pillow is not installed.

    Example:
        >>> from vlmcore.contracts.presets import find_embodiment
        >>> from vlmcore.testing import ScriptedPolicy, example_observation
        >>> robot = find_embodiment("aloha_bimanual_template")
        >>> info = PolicyInfo(name="still", action_names=robot.actions.names)
        >>> still = ScriptedPolicy([[[0.0] * 14]], info=info)
        >>> ticks = iter((1.0, 1.25, 1.25))
        >>> recorder = FlightRecorder(still, robot, clock=lambda: next(ticks))
        >>> chunk = recorder.infer(example_observation(robot))
        >>> recorder.recent[0].call.took_s
        0.25
    """

    def __init__(
        self,
        policy: Policy,
        embodiment: Embodiment,
        *,
        clock: Callable[[], float],
        writer: EpisodeWriter | None = None,
        is_vetted: bool = False,
        last_command: Callable[[Observation], Any] | None = None,
        frames: FramesKept = FramesKept.NONE,
        keep: int = 64,
    ) -> None:
        if not isinstance(policy, Policy) or isinstance(policy, type):
            raise ContractError("policy", f"got {type(policy).__name__}, expected a Policy")
        for field, called in (("clock", clock), ("last_command", last_command or clock)):
            if not callable(called):
                raise ContractError(field, f"got {type(called).__name__}, expected a function")
        require_switch(is_vetted=is_vetted)
        require_member(FramesKept, frames=frames)
        require_count(keep=keep)
        require_at_most("max_steps", keep, EpisodeLimits().max_steps)
        self._header = EpisodeHeader(embodiment=embodiment)
        _require_writer(writer, embodiment)
        self._gate = SafetyGate(embodiment=embodiment, remedy=Remedy.REPORT, reorder=True)
        self._policy, self._clock, self._writer = policy, clock, writer
        if isinstance(policy, OffloadingPolicy):  # whoever asks for it looks for its name
            self.offload = policy.offload
        if isinstance(policy, ObservingPolicy):
            self.steps_back, self.observe = policy.steps_back, policy.observe
        self._is_vetted, self._frames, self._last_command = is_vetted, frames, last_command
        self._ring: deque[EpisodeStep | EpisodeFailure] = deque(maxlen=keep)
        self._lock = threading.Lock()  # of the ring
        self._waiting: _Call | None = None
        self._is_noted = True
        self._lost = 0
        self._problem = ""

    @property
    def info(self) -> PolicyInfo:
        """What the policy says about itself."""
        return self._policy.info

    @property
    def recent(self) -> tuple[EpisodeStep | EpisodeFailure, ...]:
        """The last calls, the oldest first; without one that waits for `note`."""
        with self._lock:
            return tuple(self._ring)

    @property
    def lost(self) -> int:
        """How many calls could not be recorded."""
        return self._lost

    @property
    def problem(self) -> str:
        """Why the last of them could not be; empty if none was lost."""
        return self._problem

    def infer(self, observation: Observation, /) -> ActionChunk:
        """
        Ask the policy, and record what comes of it.

        Raises:
            BaseException: What the policy raises, which is recorded as well.
        """
        self._settle()
        began_s = self._clock()
        try:
            chunk = self._policy.infer(observation)
        except BaseException as error:
            took_s = self._clock() - began_s
            with self._recording():
                self._keep(self._failure(observation, error, took_s))
            raise
        took_s = self._clock() - began_s
        with self._recording():
            self._waiting = _Call(
                observation=observation,
                chunk=chunk,
                call=PolicyCall(digest=digest_of(observation), took_s=took_s),
                frames=_encoded(observation, self._frames),
            )
        self._is_noted = not self._is_vetted
        if not self._is_vetted:
            self._settle()
        return chunk

    def note(
        self,
        outcome: Outcome,
        *,
        last_command: Any,
        position: Mapping[str, float] | None = None,
        executed_steps: int = 0,
    ) -> None:
        """
        Tell what the gate made of the last answer; it is recorded with it.

        Args:
            outcome: What the gate gave or raised.
            last_command: What the gate was given.
            position: What the gate was given, if anything; a VettedChunk says so itself.
            executed_steps: How many steps were sent to the robot, from the first of *outcome*.

        Raises:
            ContractError: If no answer waits for it: none was given, or *is_vetted* is False.
        """
        if self._is_noted:
            raise ContractError(
                "outcome", "got one, expected none: no answer waits for what a gate says of it"
            )
        self._is_noted = True
        waiting, self._waiting = self._waiting, None
        if waiting is None:  # it could not be recorded, which was told
            return
        with self._recording():
            self._keep(
                self._step(
                    waiting,
                    outcome,
                    last_command=last_command,
                    position=position,
                    executed_steps=executed_steps,
                )
            )

    def dump(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> int:
        """
        Write the last calls as an episode of their own, as after something went wrong.

        Returns:
            How many there are.

        Raises:
            EpisodeError: If the file exists, or cannot be written.
        """
        recent = self.recent
        with EpisodeWriter(path, self._header, overwrite=overwrite) as writer:
            for event in recent:
                writer.append(event)
        return len(recent)

    def reset(self) -> None:
        """Reset the policy."""
        self._settle()
        self._policy.reset()

    def close(self) -> None:
        """Write what waits, and close the writer and the policy. Closing twice is no error."""
        self._settle()
        try:
            if self._writer is not None:
                self._writer.close()
        finally:
            self._policy.close()

    def _settle(self) -> None:
        """Write an answer that waits, without the word of a gate that decided."""
        self._is_noted = True
        waiting, self._waiting = self._waiting, None
        if waiting is not None:
            with self._recording():
                told = self._last_command
                start = None if told is None else told(waiting.observation)
                report = self._gate.check(waiting.chunk, last_command=start)
                self._keep(self._step(waiting, report, last_command=start))

    def _step(self, waiting: _Call, outcome: Outcome, **said: Any) -> EpisodeStep:
        fields = attrs.asdict(waiting, recurse=False)
        return step_of(self._header, outcome=outcome, at_s=self._clock(), **fields, **said)

    def _failure(
        self, observation: Observation, error: BaseException, took_s: float
    ) -> EpisodeFailure:
        name = type(error).__name__
        words = redact(f"{name}: {error}" if str(error) else name, max_characters=_LONGEST_ERROR)
        call = PolicyCall(digest=digest_of(observation), took_s=took_s)
        summary = observation.summary()
        return EpisodeFailure(at_s=self._clock(), observation=summary, error=words, call=call)

    def _keep(self, event: EpisodeStep | EpisodeFailure) -> None:
        with self._lock:
            self._ring.append(event)
            while len(self._ring) > 1 and _frame_bytes(self._ring) > _MOST_FRAME_BYTES:
                self._ring.popleft()
        if self._writer is not None:
            self._writer.append(event)

    @contextlib.contextmanager
    def _recording(self) -> Iterator[None]:
        """Count what cannot be recorded, and go on."""
        try:
            yield
        except Exception as error:  # noqa: BLE001 - whatever it is, the robot goes on
            self._lost += 1
            self._problem = str(error)
            _log.warning("a call of %s is not recorded: %s", type(self._policy).__name__, error)


def _frame_bytes(events: deque[EpisodeStep | EpisodeFailure]) -> int:
    return sum(
        len(frame.data)
        for event in events
        if isinstance(event, EpisodeStep)
        for frames in event.frames.values()
        for frame in frames
    )


def _require_writer(writer: Any, embodiment: Embodiment) -> None:
    if writer is None:
        return
    if not isinstance(writer, EpisodeWriter):
        raise ContractError("writer", f"got {type(writer).__name__}, expected an EpisodeWriter")
    if writer.header.embodiment != embodiment:
        raise ContractError(
            "writer",
            f"got one of {writer.header.embodiment.name!r}, expected one of this robot, "
            f"{embodiment.name!r}",
        )


def _encoded(observation: Observation, kept: FramesKept) -> Mapping[str, tuple[EncodedFrame, ...]]:
    match kept:
        case FramesKept.NONE:
            return {}
        case FramesKept.THUMBNAIL:
            return encode_frames(observation, longest_px=_THUMBNAIL_PX)
        case FramesKept.JPEG:
            return encode_frames(observation)
        case FramesKept.PNG:
            return encode_frames(observation, FrameEncoding.PNG)
