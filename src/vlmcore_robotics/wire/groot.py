"""
The messages of Isaac-GR00T at both ends, for its generations N1.5, N1.6 and N1.7.

Ask first what the policy takes and gives (`vlmcore_robotics.wire.groot_calls.ask_modalities`); what
comes back says which generation it is. A codec is then made of that and of a layout, which must fit
to the last key.

Source: the behaviour of GR00T's ``service.py`` (N1.5) and ``server_client.py`` (N1.6, N1.7); the
arrays are those of ``numpy.save`` and of msgpack-numpy 0.4.8, whose bytes the tests keep.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from vlmcore._arguments import require_switch
from vlmcore._arrays import Float64Array, require_member, require_name
from vlmcore._json_values import frozen_object
from vlmcore.contracts.actions import ActionChunk
from vlmcore.contracts.observation import Observation
from vlmcore.contracts.responses import ResponseAxes, chunk_from_response
from vlmcore.errors import ContractError, PolicyProtocolError
from vlmcore.limits import ContractLimits, WireLimits
from vlmcore.secrets import Secret
from vlmcore_robotics.wire._blame import blamed, chunk_without, without
from vlmcore_robotics.wire._blobs import Parts
from vlmcore_robotics.wire._groot_forms import KnownForms
from vlmcore_robotics.wire._groot_requests import (
    actions_from,
    actions_of,
    flattened,
    nested,
    observation_from,
)
from vlmcore_robotics.wire.frames import FrameKind, frame_parts
from vlmcore_robotics.wire.groot_calls import (
    GrootEndpoint,
    call_parts,
    encode_failure,
    read_call,
    read_reply,
)
from vlmcore_robotics.wire.groot_dialects import GrootDialect, modalities_to_answer
from vlmcore_robotics.wire.groot_layout import GrootLayout
from vlmcore_robotics.wire.groot_modalities import PolicyModalities
from vlmcore_robotics.wire.histories import MissingHistory

__all__ = ["GrootCall", "GrootCodec"]

_PONG = {"status": "ok", "message": "Server is running"}  # to the letter


@attrs.frozen(kw_only=True, eq=False)
class GrootCall:
    """
    What a client asks, at the server's end.

    Attributes:
        endpoint: What is asked.
        observation: What the policy is to act on; only for ``GET_ACTION``.
        states: The states of all steps that were sent, shape ``[T, S]``, oldest first; that of the
            observation is the last of them.
        options: What else was sent, for ``GET_ACTION`` and ``RESET``.
    """

    endpoint: GrootEndpoint
    observation: Observation | None = None
    states: Float64Array | None = None
    options: Mapping[str, Any] = attrs.field(factory=dict)


@attrs.frozen(kw_only=True)
class GrootCodec:
    """
    Turns observations and action chunks into the messages of GR00T, and back.

    Arrays are read in every spelling, whatever the dialect. It holds no connection, and of what it
    wrote and read only how it looked; it is safe for threads.

    Attributes:
        policy: What the policy is called in chunks and errors.
        layout: Which modality key holds what; it must fit *modalities*.
        modalities: What the policy says that it takes and gives.
        dialect: Which generation the peer is of.
        flat: Whether keys are flat, as ``video.ego_view``, where servers of N1.6 and N1.7 wrap the
            policy for a simulator; those of N1.5 always do so.
        missing_history: What is done where the policy asks for more of the past than there is.
        token: What lets a client in: sent with each request, and checked at the server's end.
        limits: How large messages are.

    Raises:
        ContractError: If a field is not as described, or the layout does not fit; all differences
            are listed.
    """

    policy: str
    layout: GrootLayout
    modalities: PolicyModalities
    dialect: GrootDialect
    flat: bool = False
    missing_history: MissingHistory = MissingHistory.REFUSE
    token: Secret | None = None
    limits: WireLimits = attrs.field(factory=WireLimits)
    _forms: KnownForms = attrs.field(init=False, factory=KnownForms, eq=False, repr=False)

    def __attrs_post_init__(self) -> None:
        require_name("policy", self.policy, max_characters=ContractLimits().max_name_characters)
        require_member(GrootDialect, dialect=self.dialect)
        require_member(MissingHistory, missing_history=self.missing_history)
        require_switch(flat=self.flat)
        for field, kind in (
            ("layout", GrootLayout),
            ("modalities", PolicyModalities),
            ("token", (Secret, type(None))),
            ("limits", WireLimits),
        ):
            value = getattr(self, field)
            if not isinstance(value, kind):
                # Not what came: a token that is no Secret would be shown.
                raise ContractError(
                    field, f"got {type(value).__name__}, expected {field} as described"
                )
        self.layout.require_fits(self.modalities)

    @property
    def is_flat(self) -> bool:
        """Whether keys are flat."""
        return self.flat or self.dialect is GrootDialect.N1_5

    @property
    def steps_back(self) -> int:
        """How many observations before the newest a client needs to keep."""
        looking = (self.modalities.video, self.modalities.state)
        return max(config.steps_back for config in looking if config is not None)

    def encode_request(
        self,
        observation: Observation,
        *,
        past: Sequence[Observation] = (),
        options: Mapping[str, Any] | None = None,
    ) -> bytes:
        """
        Write the question what to do.

        Args:
            observation: What is seen now.
            past: The observations of the steps before, oldest first, one a step of the policy.
                Without them, the frames of *observation* are the history of the cameras.
            options: What else the policy is told. Servers of N1.5 take none.

        Raises:
            ContractError: If they do not have what the policy asks for.
            LimitExceededError: If the message would be too large.
        """
        return b"".join(self.request_parts(observation, past=past, options=options))

    def request_parts(
        self,
        observation: Observation,
        *,
        past: Sequence[Observation] = (),
        options: Mapping[str, Any] | None = None,
    ) -> Parts:
        """
        Write the question as `encode_request`, in parts: frames are views, and not copied.

        Raises:
            ContractError: If they do not have what the policy asks for.
            LimitExceededError: If the message would be too large.
        """
        request = self.layout.request_from(
            [*past, observation], self.modalities, missing=self.missing_history
        )
        if options is not None:
            return self._question(request, options)
        return self._forms.write(request, self._question, self.limits)

    def encode_reset(self, options: Mapping[str, Any] | None = None) -> bytes:
        """
        Write that an episode ends.

        Raises:
            ContractError: If the server is of N1.5, which keeps no state and knows no reset.
        """
        if not self.dialect.knows_reset:
            raise ContractError(
                "endpoint", "got 'reset', expected another: servers of N1.5 know none"
            )
        return b"".join(self._call(GrootEndpoint.RESET, None, options))

    def decode_answer(self, frame: bytes, *, observed_at_s: float) -> ActionChunk:
        """
        Read what a policy proposes; nothing says that it is safe.

        Args:
            frame: What the server sent.
            observed_at_s: ``captured_at_s`` of the observation that it answers.

        Raises:
            PolicyRefusedError: If the policy failed, or the token is wrong.
            PolicyProtocolError: If it is no answer with the declared streams.
        """
        return blamed(self.policy, self.token, lambda: self._chunk(frame, observed_at_s))

    def decode_reset(self, frame: bytes) -> dict[str, Any]:
        """
        Read what a server says after a reset, mostly nothing.

        Raises:
            PolicyRefusedError: If it could not.
            PolicyProtocolError: If it is no such answer.
        """
        said = read_reply(frame, policy=self.policy, token=self.token, limits=self.limits)
        if not isinstance(said, dict):
            problem = f"reset: got {type(said).__name__}, expected a map"
            raise PolicyProtocolError(self.policy, problem, "theirs")
        info: dict[str, Any] = without(said, self.token)
        return info

    def decode_call(
        self, frame: bytes, *, captured_at_s: float, frame_rate_hz: float = 1.0
    ) -> GrootCall:
        """
        Read what a client asks, at the server's end. Frames are views of *frame*.

        Args:
            frame: What it sent.
            captured_at_s: Reading of the server's monotonic clock when it came; clients send none.
            frame_rate_hz: Rate of the frames; clients do not say it.

        Raises:
            PolicyRefusedError: If it does not know the token; `encode_failure` of the problem is
                the answer.
            ContractError: If it is no such request.
        """
        endpoint, data = read_call(frame, policy=self.policy, token=self.token, limits=self.limits)
        if endpoint in (GrootEndpoint.PING, GrootEndpoint.GET_MODALITY_CONFIG):
            return GrootCall(endpoint=endpoint)
        said = {} if data is None else data
        if endpoint is GrootEndpoint.GET_ACTION and self.dialect is GrootDialect.N1_5:
            said = {"observation": said}
        if not isinstance(said, Mapping) or said.keys() - {"observation", "options"}:
            raise ContractError("request['data']", "got other data, expected what is asked about")
        options = {} if said.get("options") is None else said["options"]
        call = GrootCall(endpoint=endpoint, options=frozen_object(options, field="options"))
        if endpoint is GrootEndpoint.RESET:
            return call
        sent = said.get("observation")
        observation, states = observation_from(
            nested(sent) if self.is_flat else sent,
            self.layout,
            self.modalities,
            captured_at_s=captured_at_s,
            frame_rate_hz=frame_rate_hz,
        )
        return attrs.evolve(call, observation=observation, states=states)

    def encode_answer(self, chunk: ActionChunk, *, info: Mapping[str, Any] | None = None) -> bytes:
        """
        Write what a policy proposes: float32, a batch of one.

        Args:
            chunk: The actions, of the names of the layout.
            info: What is told beside them. Servers of N1.5 tell nothing.

        Raises:
            ContractError: If the chunk has other names, or a number that float32 cannot hold.
        """
        names = self.layout.action_names
        if not isinstance(chunk, ActionChunk):
            raise ContractError("chunk", f"got {type(chunk).__name__}, expected an ActionChunk")
        if chunk.names != names:
            raise ContractError(
                "chunk", f"got the names {chunk.names!r:.200}, expected {names!r:.200}"
            )
        actions = actions_of(chunk.values, self.layout.streams, is_flat=self.is_flat)
        if self.dialect is GrootDialect.N1_5:
            return self._reply(actions)
        return self._reply([actions, dict(info or {})])

    def encode_pong(self, said: Mapping[str, Any] | None = None) -> bytes:
        """Write that somebody is there, and what is *said* beside it, which GR00T passes over."""
        return self._reply({**(said or {}), **_PONG}, FrameKind.METADATA)

    def encode_modalities(self) -> bytes:
        """Write what the policy takes and gives, in the spelling of the dialect."""
        return self._reply(modalities_to_answer(self.modalities, self.dialect), FrameKind.METADATA)

    def encode_reset_done(self, info: Mapping[str, Any] | None = None) -> bytes:
        """Write that a reset is done."""
        return self._reply(dict(info or {}))

    def encode_failure(self, words: str) -> bytes:
        """Write that something failed; *words* are what the client may know."""
        return encode_failure(words, limits=self.limits)

    def _question(
        self, request: Mapping[str, Any], options: Mapping[str, Any] | None = None
    ) -> Parts:
        data = flattened(request) if self.is_flat else request
        return self._call(GrootEndpoint.GET_ACTION, data, options)

    def _call(
        self,
        endpoint: GrootEndpoint,
        observation: Mapping[str, Any] | None,
        options: Mapping[str, Any] | None,
    ) -> Parts:
        said = {} if observation is None else {"observation": observation}
        data: Mapping[str, Any] = {**said, "options": options}
        if self.dialect is GrootDialect.N1_5:
            if options is not None:
                raise ContractError("options", "got some, expected none: servers of N1.5 take none")
            data = observation or {}
        return call_parts(
            endpoint,
            data,
            token=self.token,
            spelling=self.dialect.spelling,
            limits=self.limits,
        )

    def _reply(self, value: Any, kind: FrameKind = FrameKind.RESPONSE) -> bytes:
        return b"".join(self._reply_parts(value, kind))

    def _reply_parts(self, value: Any, kind: FrameKind = FrameKind.RESPONSE) -> Parts:
        return frame_parts(value, kind=kind, spelling=self.dialect.spelling, limits=self.limits)

    def _chunk(self, frame: bytes, observed_at_s: float) -> ActionChunk:
        known = self._forms.read(frame, observed_at_s)
        if known is not None:
            return known
        said = read_reply(frame, policy=self.policy, token=self.token, limits=self.limits)
        pair = [said, {}] if self.dialect is GrootDialect.N1_5 else said
        actions, info = actions_from(pair, is_flat=self.is_flat)
        chunk = chunk_from_response(
            [actions, info],
            names=self.layout.action_names,
            source=self.policy,
            observed_at_s=observed_at_s,
            streams=self.layout.streams,
            axes=ResponseAxes.BATCH,
        )
        chunk = chunk_without(chunk, self.token)
        self._forms.learn(frame, actions, chunk, lambda: self._reply_parts(said))
        return chunk
