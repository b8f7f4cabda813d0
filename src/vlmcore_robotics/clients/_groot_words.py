"""What clients of GR00T say and understand, for one robot and one layout."""

from __future__ import annotations

import attrs

from vlmcore._arguments import require_kind, require_switch
from vlmcore._arrays import require_count, require_member
from vlmcore.contracts.actions import ActionChunk
from vlmcore.contracts.embodiment import Embodiment
from vlmcore.contracts.observation import Observation
from vlmcore.errors import ContractError
from vlmcore.limits import WireLimits
from vlmcore.policy.interface import PolicyInfo
from vlmcore.secrets import Secret
from vlmcore_robotics.clients._history import History
from vlmcore_robotics.clients._terms import Terms
from vlmcore_robotics.clients._zmq_line import ZmqLine
from vlmcore_robotics.wire._blobs import Parts
from vlmcore_robotics.wire.groot import GrootCodec
from vlmcore_robotics.wire.groot_calls import (
    ask_modalities,
    ask_ping,
    read_modalities,
    read_ping,
)
from vlmcore_robotics.wire.groot_info import info_from_modalities
from vlmcore_robotics.wire.groot_layout import GrootLayout
from vlmcore_robotics.wire.histories import MissingHistory
from vlmcore_robotics.wire.ports import GROOT_PORT

__all__ = ["GrootWords"]

_SCHEME = "tcp"


class GrootWords:
    """
    Requests and answers of GR00T; the arguments are those of `ZmqPolicy`.

    What a server speaks is known once it was asked: until then there is nothing to say to it but
    the two questions.

    Attributes:
        terms: Where the policy is, for which robot, and how long it may take.
        history: What was seen before.
        questions: What is asked when connected, in this order; `learned` takes the answers.

    Raises:
        ContractError: If an argument is not as described there.
        EndpointError: If *endpoint* is no address, or not one that may be dialled.
    """

    def __init__(
        self,
        endpoint: str,
        *,
        embodiment: Embodiment,
        layout: GrootLayout,
        name: str | None,
        api_token: Secret | None,
        timeout_s: float,
        allow_remote: bool,
        allow_readable_token: bool,
        flat: bool,
        missing_history: MissingHistory,
        max_steps_back: int,
        limits: WireLimits | None,
    ) -> None:
        self.terms = Terms.agreed(
            endpoint,
            schemes=(_SCHEME,),
            default_scheme=_SCHEME,
            default_port=GROOT_PORT,
            embodiment=embodiment,
            name=name,
            timeout_s=timeout_s,
            token=api_token,
            token_field="api_token",  # noqa: S106 - the name of it
            allow_remote=allow_remote,
            allow_readable_token=allow_readable_token,
        )
        require_kind("layout", layout, GrootLayout)
        require_switch(flat=flat)
        if limits is not None:
            require_kind("limits", limits, WireLimits)
        require_member(MissingHistory, missing_history=missing_history)
        require_count(max_steps_back=max_steps_back)
        wrong = layout.differences(None, embodiment=embodiment)
        if wrong:
            raise ContractError("layout", f"got tables that do not fit: {'; '.join(wrong)}")
        self.history = History(rate_hz=embodiment.actions.rate_hz, most_steps=max_steps_back)
        questions = (ask_modalities(token=api_token), ask_ping(token=api_token))
        self.questions = tuple(Parts((question,)) for question in questions)
        self._layout = layout
        self._flat = flat
        self._missing_history = missing_history
        self._max_steps_back = max_steps_back
        self._limits = WireLimits() if limits is None else limits
        self._codec: GrootCodec | None = None

    @property
    def reset_request(self) -> Parts | None:
        """What tells the server that an episode ends; ``None`` if it is of N1.5."""
        codec = self._spoken()
        return Parts((codec.encode_reset(),)) if codec.dialect.knows_reset else None

    def new_line(self) -> ZmqLine:
        """Begin a connection; until `learned` has what it asks for, that is all that may come."""
        return ZmqLine(self.terms.policy, max_bytes=self._limits.max_metadata_bytes)

    def request(self, observation: Observation) -> Parts:
        """
        Write a request, with what was seen before where the policy looks back.

        An observation that shows several frames brings its history itself.

        Raises:
            ContractError: If it is not an observation of the robot or of the layout, or there is
                less of the past than the policy looks at.
        """
        past = self.history.before(observation) if observation.history == 1 else []
        return self._spoken().request_parts(observation, past=past)

    def chunk(self, answer: bytes, observation: Observation, info: PolicyInfo) -> ActionChunk:
        """
        Read an answer.

        Raises:
            PolicyRefusedError: If the policy failed.
            PolicyProtocolError: If it is no answer, or not of the horizon that was announced.
        """
        observed_at_s = observation.captured_at_s
        chunk = self._spoken().decode_answer(answer, observed_at_s=observed_at_s)
        return self.terms.kept(chunk, info)

    def read_reset(self, answer: bytes) -> None:
        """
        Read the answer to a reset.

        Raises:
            PolicyRefusedError: If the server refused.
            PolicyProtocolError: If it is no answer to it.
        """
        self._spoken().decode_reset(answer)

    def learned(
        self, line: ZmqLine, answers: tuple[bytes, ...], before: PolicyInfo | None
    ) -> PolicyInfo:
        """
        Read what a server says of itself, and compare it with tables, robot and what it said.

        Actions may come on *line* then.

        Raises:
            PolicyRefusedError: If it answers with an error.
            PolicyProtocolError: If it cannot be read, does not fit the robot or the tables, or
                differs from what was said on the connection before.
        """
        terms, layout, limits = self.terms, self._layout, self._limits
        modalities, dialect = read_modalities(
            answers[0], policy=terms.policy, token=terms.token, limits=limits
        )
        said = read_ping(answers[1], policy=terms.policy, token=terms.token, limits=limits)
        wrong = layout.differences(modalities)
        if wrong:
            raise terms.fault("its modalities are not those of the layout: " + "; ".join(wrong))
        try:
            info = info_from_modalities(modalities, layout, said, name=terms.policy)
            codec = GrootCodec(
                policy=terms.policy,
                layout=layout,
                modalities=modalities,
                dialect=dialect,
                flat=self._flat,
                missing_history=self._missing_history,
                token=terms.token,
                limits=limits,
            )
        except ContractError as error:
            raise terms.fault(str(error)) from None
        if codec.steps_back > self._max_steps_back:
            raise terms.fault(
                f"it looks {codec.steps_back} steps back, expected at most {self._max_steps_back}: "
                "pass max_steps_back"
            )
        if self._codec not in (None, codec):
            raise terms.fault(
                "another policy answers now, make a new client for it: its modalities or its "
                "generation are others"
            )
        info = terms.learned(info, before, cameras=info.cameras or ())
        self.history.look_back(codec.steps_back)
        self._codec = codec
        line.allow(limits.max_response_bytes)
        return attrs.evolve(info, metadata={"dialect": dialect.value})

    def _spoken(self) -> GrootCodec:
        assert self._codec is not None, "nothing is said before the server was asked"
        return self._codec
