"""
The messages of openpi, at both ends: MessagePack over WebSocket.

A server first sends one binary frame that says what it is, then answers each binary frame with one.
An error is one *text* frame, the traceback of the server, after which it hangs up. There are no
request ids and no reset; `vlmcore_robotics.wire.session` knows whose turn it is.

Source: the behaviour of openpi's server and of openpi-client 0.1.2, whose bytes the tests keep.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import attrs

from vlmcore._arrays import as_tuple, require_finite_between, require_name, require_names
from vlmcore.contracts.actions import ActionChunk
from vlmcore.contracts.observation import Observation
from vlmcore.contracts.responses import NEVER_STREAMS, ResponseAxes, chunk_from_response
from vlmcore.errors import ContractError, PolicyProtocolError, PolicyRefusedError
from vlmcore.limits import ContractLimits, WireLimits, require_at_most
from vlmcore_robotics.wire._blame import words_of
from vlmcore_robotics.wire.frames import FrameKind, decode_frame, encode_frame
from vlmcore_robotics.wire.observation_layout import ObservationLayout

__all__ = ["OpenPICodec"]

_LIMITS = ContractLimits()
_KNOWN = NEVER_STREAMS | {"actions", "action", "action_names", "error"}
_LONGEST_MS = 86_400_000.0  # a day


@attrs.frozen(kw_only=True)
class OpenPICodec:
    """
    Turns observations and action chunks into the frames of openpi, and back.

    All spellings of arrays that call themselves openpi are read; the one of openpi-client is
    written. It holds no connection and no state, and is safe for threads.

    Attributes:
        policy: What the policy is called in chunks and errors.
        layout: Which key of a request holds which part of an observation.
        action_names: What the numbers of an action are, in the order in which the policy sends
            them. An answer of another width is refused: nothing is filled up or cut.
        limits: How large messages are.

    Raises:
        ContractError: If a field is not as described.

    Example:
        >>> import numpy as np
        >>> from vlmcore_robotics.wire.layouts import libero_layout
        >>> codec = OpenPICodec(
        ...     policy="pi05_libero", layout=libero_layout(), action_names=("x", "y", "gripper")
        ... )
        >>> plan = np.zeros((10, 3))
        >>> sent = codec.encode_answer(
        ...     ActionChunk(
        ...         values=plan, names=codec.action_names, source="doc", observed_at_s=0.0
        ...     ),
        ...     policy_ms=41.5,
        ... )
        >>> chunk = codec.decode_answer(sent, observed_at_s=7.5)
        >>> chunk.horizon, chunk.source, chunk.metadata["policy_timing"]["infer_ms"]
        (10, 'pi05_libero', 41.5)
    """

    policy: str
    layout: ObservationLayout
    action_names: tuple[str, ...] = attrs.field(converter=as_tuple)
    limits: WireLimits = attrs.field(factory=WireLimits)

    def __attrs_post_init__(self) -> None:
        longest = _LIMITS.max_name_characters
        require_name("policy", self.policy, max_characters=longest)
        require_names(
            "action_names",
            self.action_names,
            max_count=_LIMITS.max_actions,
            max_characters=longest,
        )
        for field, kind in (("layout", ObservationLayout), ("limits", WireLimits)):
            value = getattr(self, field)
            if not isinstance(value, kind):
                raise ContractError(field, f"got {value!r:.80}, expected {kind.__name__}")

    def encode_metadata(self, metadata: Mapping[str, Any]) -> bytes:
        """
        Write what a server says about itself, the first frame of every connection.

        Raises:
            ContractError: If there is something in it that cannot be sent.
        """
        if not isinstance(metadata, Mapping):
            raise ContractError("metadata", f"got {type(metadata).__name__}, expected a map")
        return encode_frame(metadata, kind=FrameKind.METADATA, limits=self.limits)

    def decode_metadata(self, frame: bytes | str) -> dict[str, Any]:
        """
        Read what a server says about itself: often nothing, or the pose to start from.

        Raises:
            PolicyRefusedError: If it is the text of an error.
            PolicyProtocolError: If it is not such a frame.
        """
        with self._blaming_the_peer():
            return self._map(frame, FrameKind.METADATA)

    def encode_request(self, observation: Observation) -> bytes:
        """
        Write an observation, with the newest frame of each camera.

        Raises:
            ContractError: If it is not one that the layout can hold.
        """
        request = self.layout.request_from(observation)
        return encode_frame(request, kind=FrameKind.REQUEST, limits=self.limits)

    def decode_request(
        self,
        frame: bytes,
        *,
        captured_at_s: float,
        frame_rate_hz: float = 1.0,
        default_prompt: str | None = None,
    ) -> Observation:
        """
        Read an observation. Its frames are views of *frame*, unless channels come first.

        Args:
            frame: What a client sent.
            captured_at_s: Reading of the server's monotonic clock when it came; clients send none.
            frame_rate_hz: Rate of the cameras; clients do not say it.
            default_prompt: The instruction where the client sends none.

        Raises:
            ContractError: If it is not an observation of the layout.
        """
        request = decode_frame(frame, kind=FrameKind.REQUEST, limits=self.limits)
        return self.layout.observation_from(
            request,
            captured_at_s=captured_at_s,
            frame_rate_hz=frame_rate_hz,
            default_prompt=default_prompt,
        )

    def encode_answer(
        self,
        chunk: ActionChunk,
        *,
        policy_ms: float | None = None,
        server_ms: float | None = None,
        previous_ms: float | None = None,
    ) -> bytes:
        """
        Write what a policy proposes.

        Args:
            chunk: The actions, of the names of this codec.
            policy_ms: How long the model took.
            server_ms: How long the policy took, what it does around the model included.
            previous_ms: How long the request before this one took from its arrival on.

        Raises:
            ContractError: If the chunk has other names, or a time is not one.
        """
        if chunk.names != self.action_names:
            raise ContractError(
                "chunk", f"got the names {chunk.names!r:.200}, expected {self.action_names!r:.200}"
            )
        answer: dict[str, Any] = {"actions": chunk.values}
        for group, key, value in (
            ("policy_timing", "infer_ms", policy_ms),
            ("server_timing", "infer_ms", server_ms),
            ("server_timing", "prev_total_ms", previous_ms),
        ):
            if value is not None:
                require_finite_between(0.0, _LONGEST_MS, **{f"{group}.{key}": value})
                answer.setdefault(group, {})[key] = float(value)
        return encode_frame(answer, kind=FrameKind.RESPONSE, limits=self.limits)

    def decode_answer(self, frame: bytes | str, *, observed_at_s: float) -> ActionChunk:
        """
        Read what a policy proposes; nothing says that it is safe.

        Actions are ``[H, D]``; other arrays beside them, as the state, are not looked at, and the
        rest is kept as metadata.

        Args:
            frame: What the server sent: a binary frame, or the text of an error.
            observed_at_s: ``captured_at_s`` of the observation that it answers.

        Raises:
            PolicyRefusedError: If the policy failed. The problem is the last words of its
                traceback, without the places in its files.
            PolicyProtocolError: If it is no answer with such actions.
        """
        with self._blaming_the_peer():
            answer = self._map(frame, FrameKind.RESPONSE)
            return self._chunk(answer, observed_at_s)

    def encode_failure(self, words: str) -> str:
        """
        Write that the policy failed: a text frame, after which a server hangs up.

        Args:
            words: What the client may know; of a traceback its last words are sent only.
        """
        return words_of(words, None)

    def _map(self, frame: bytes | str, kind: FrameKind) -> dict[str, Any]:
        if isinstance(frame, str):
            require_at_most("max_text_bytes", len(frame), self.limits.max_text_bytes)
            raise PolicyRefusedError(self.policy, words_of(frame, None))
        value = decode_frame(frame, kind=kind, limits=self.limits)
        if not isinstance(value, dict):
            raise ContractError(kind.value, f"got {type(value).__name__}, expected a map")
        return value

    def _chunk(self, answer: dict[str, Any], observed_at_s: float) -> ActionChunk:
        return chunk_from_response(
            answer,
            names=self.action_names,
            source=self.policy,
            observed_at_s=observed_at_s,
            axes=ResponseAxes.CHUNK,
            ignored=answer.keys() - _KNOWN,
        )

    @contextmanager
    def _blaming_the_peer(self) -> Iterator[None]:
        """Turn what is wrong with a frame into whose fault it is."""
        try:
            yield
        except ContractError as error:
            raise PolicyProtocolError(self.policy, str(error), "theirs") from error
