"""
The protocol ``comfyui-vla-http-v1`` at both ends, without a connection.

A client posts an observation and gets actions back. What came after the first version changes
nothing for peers of old: ids of requests and sessions are headers, ``/v1/reset`` is a path of its
own, and other encodings and MessagePack are for servers whose metadata names them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from vlmcore._arrays import (
    as_tuple,
    require_finite_between,
    require_member,
    require_name,
    require_names,
)
from vlmcore.contracts.actions import ActionChunk
from vlmcore.contracts.documents import action_chunk_to_document
from vlmcore.contracts.observation import Observation
from vlmcore.contracts.responses import NEVER_STREAMS, ResponseAxes, chunk_from_response
from vlmcore.errors import ContractError, LimitExceededError, PolicyStatusError
from vlmcore.limits import ContractLimits, HttpLimits
from vlmcore.secrets import Secret
from vlmcore_robotics.wire._blame import blamed, chunk_without, words_of
from vlmcore_robotics.wire._http_answers import Terms, opened, require_ok
from vlmcore_robotics.wire._http_calls import HttpCall, routed
from vlmcore_robotics.wire.frames import FrameKind
from vlmcore_robotics.wire.http_documents import (
    observation_from_document,
    observation_to_document,
    require_object,
)
from vlmcore_robotics.wire.http_frames import WireEncoding
from vlmcore_robotics.wire.http_messages import (
    REQUEST_ID,
    SESSION_ID,
    ContentType,
    HttpEndpoint,
    HttpRequest,
    HttpResponse,
    read_body,
    require_id,
    write_body,
)
from vlmcore_robotics.wire.http_metadata import HttpServerInfo, metadata_document, server_info_from

__all__ = ["HttpCall", "HttpCodec"]

_LIMITS = ContractLimits()
_KNOWN = NEVER_STREAMS | {"actions", "action", "action_names", "error", "schema", "policy"}
_LONGEST_MS = 86_400_000.0  # a day


@attrs.frozen(kw_only=True)
class HttpCodec:
    """
    Turns observations and action chunks into messages of HTTP, and back.

    It holds no connection and no state, and is safe for threads. As it is made, it speaks the first
    version of the protocol.

    Attributes:
        policy: What the policy is called in chunks and errors.
        action_names: What the numbers of an action are, in the order in which the policy sends
            them. An answer of another width is refused: nothing is filled up or cut.
        encoding: How frames are sent.
        content_type: How bodies are written.
        quality: Of JPEG, 1 to 95.
        token: What lets a client in: sent with each request, and checked at the server's end.
        limits: How large messages are.

    Raises:
        ContractError: If a field is not as described.

    Example:
        >>> codec = HttpCodec(policy="act", action_names=("x", "gripper"))
        >>> answer = HttpResponse(status=200, headers={}, body=b'{"actions": [[0.5, 1]]}')
        >>> codec.decode_answer(answer, observed_at_s=7.5).values.tolist()
        [[0.5, 1.0]]
    """

    policy: str
    action_names: tuple[str, ...] = attrs.field(converter=as_tuple)
    encoding: WireEncoding = WireEncoding.JPEG
    content_type: ContentType = ContentType.JSON
    quality: int = 92
    token: Secret | None = None
    limits: HttpLimits = attrs.field(factory=HttpLimits)

    def __attrs_post_init__(self) -> None:
        longest = _LIMITS.max_name_characters
        require_name("policy", self.policy, max_characters=longest)
        names, most = self.action_names, _LIMITS.max_actions
        require_names("action_names", names, max_count=most, max_characters=longest)
        require_member(WireEncoding, encoding=self.encoding)
        require_member(ContentType, content_type=self.content_type)
        if type(self.quality) is not int or not 1 <= self.quality <= 95:
            raise ContractError("quality", f"got {self.quality!r:.80}, expected 1 to 95")
        if not isinstance(self.token, (Secret, type(None))):  # and not shown
            raise ContractError("token", f"got {type(self.token).__name__}, expected a Secret")
        if not isinstance(self.limits, HttpLimits):
            raise ContractError("limits", f"got {self.limits!r:.80}, expected HttpLimits")

    def encode_request(
        self,
        observation: Observation,
        *,
        request_id: str | None = None,
        session: str | None = None,
    ) -> HttpRequest:
        """
        Write the question what to do, with all frames of the observation.

        Args:
            observation: What is seen.
            request_id: An id that the answer repeats, if the server knows ids.
            session: Which session it belongs to, if the server knows sessions.

        Raises:
            ContractError: If an id is none.
            LimitExceededError: If the frames or the message would be too large.
            MissingDependencyError: If Pillow is needed and not installed.
        """
        document = observation_to_document(
            observation,
            self.encoding,
            self.content_type,
            quality=self.quality,
            limits=self.limits,
        )
        return self._request(HttpEndpoint.INFER, document, request_id, session)

    def encode_reset(self, *, session: str | None = None) -> HttpRequest:
        """Write that an episode ends."""
        return self._request(HttpEndpoint.RESET, {}, None, session)

    def ask(self, endpoint: HttpEndpoint) -> HttpRequest:
        """
        Write the question for ``METADATA`` or ``HEALTH``.

        Raises:
            ContractError: If *endpoint* needs more than that.
        """
        if endpoint.method != "GET":
            raise ContractError("endpoint", f"got {endpoint}, expected METADATA or HEALTH")
        return self._request(endpoint, None, None, None)

    def decode_answer(
        self, response: HttpResponse, *, observed_at_s: float, request_id: str | None = None
    ) -> ActionChunk:
        """
        Read what a policy proposes; nothing says that it is safe.

        Actions are ``[H, D]``; other numbers beside them are not looked at, and the rest is kept
        as metadata.

        Args:
            response: What the server answered.
            observed_at_s: ``captured_at_s`` of the observation that it answers.
            request_id: The id that was sent; a server that repeats one must repeat this one.

        Raises:
            PolicyStatusError: If the status says that it failed.
            PolicyRefusedError: If there is an error in it nevertheless.
            PolicyProtocolError: If it is no answer with such actions, or to another request.
        """
        said = opened(response, FrameKind.RESPONSE, self._terms, request_id=request_id)
        chunk = blamed(self.policy, self.token, lambda: self._chunk(said, observed_at_s))
        return chunk_without(chunk, self.token)

    def decode_reset(self, response: HttpResponse) -> bool:
        """
        Read the answer to a reset: whether the server knows resets, which those of old do not.

        Raises:
            PolicyStatusError: If it knows them, and failed.
            PolicyProtocolError: If it is no such answer.
        """
        if response.status in (404, 405):  # there is no such path
            return False
        require_ok(opened(response, FrameKind.METADATA, self._terms), policy=self.policy)
        return True

    def decode_health(self, response: HttpResponse) -> None:
        """
        Read the answer to the question whether all is well.

        Raises:
            PolicyStatusError: If it is not.
            PolicyProtocolError: If somebody else answers there.
        """
        require_ok(opened(response, FrameKind.METADATA, self._terms), policy=self.policy)

    def decode_metadata(self, response: HttpResponse) -> HttpServerInfo:
        """
        Read what a server says about itself and about the policy.

        Raises:
            PolicyStatusError: If it does not say.
            PolicyProtocolError: If it is no such answer.
        """
        said = opened(response, FrameKind.METADATA, self._terms)
        return blamed(self.policy, self.token, lambda: server_info_from(said, policy=self.policy))

    def decode_request(self, request: HttpRequest, *, captured_at_s: float) -> HttpCall:
        """
        Read what a client asks, at the server's end.

        Args:
            request: What it sent; the path is below the address of the server.
            captured_at_s: Reading of the server's monotonic clock when it came.

        Raises:
            PolicyStatusError: If it is no request that there is an answer to; `encode_failure` of
                its problem and its status is the answer.
            MissingDependencyError: If Pillow is needed and not installed.
        """
        call = routed(request, policy=self.policy, token=self.token)
        if call.endpoint.method == "GET":
            return call
        try:
            said = read_body(
                request.body, call.content_type, kind=FrameKind.REQUEST, limits=self.limits
            )
        except ContractError as error:
            raise self._refused(error, 400) from error
        try:
            if call.endpoint is HttpEndpoint.RESET:
                require_object("reset", said)
                return call
            observation = observation_from_document(
                said, call.content_type, captured_at_s=captured_at_s, limits=self.limits
            )
        except ContractError as error:
            raise self._refused(error, 422) from error
        return attrs.evolve(call, observation=observation)

    def encode_answer(
        self,
        chunk: ActionChunk,
        call: HttpCall,
        *,
        timing_ms: Mapping[str, float] | None = None,
        policy: Mapping[str, Any] | None = None,
    ) -> HttpResponse:
        """
        Write what a policy proposes.

        Args:
            chunk: The actions, of the names of this codec.
            call: What it answers.
            timing_ms: How long parts of the work took, as ``{"infer": 41.5}``.
            policy: What is told of the policy beside it.

        Raises:
            ContractError: If the chunk has other names, is not finite where JSON is asked for, or
                a time is not one.
        """
        if not isinstance(chunk, ActionChunk) or chunk.names != self.action_names:
            came = getattr(chunk, "names", type(chunk).__name__)
            raise ContractError(
                "chunk", f"got the names {came!r:.200}, expected {self.action_names!r:.200}"
            )
        answer: dict[str, Any] = {"action_names": list(chunk.names), "actions": chunk.values}
        if call.answer_type is ContentType.JSON:
            answer["actions"] = action_chunk_to_document(chunk)["actions"]
        for part, value in (timing_ms or {}).items():
            require_finite_between(0.0, _LONGEST_MS, **{f"timing_ms[{part!r}]": value})
            answer.setdefault("server_timing", {})[f"{part}_ms"] = float(value)
        if policy is not None:
            answer["policy"] = dict(policy)
        return self._response(answer, FrameKind.RESPONSE, call)

    def encode_ok(self, call: HttpCall) -> HttpResponse:
        """Write that all is well, or done."""
        return self._response({"status": "ok"}, FrameKind.METADATA, call)

    def encode_metadata(self, server: HttpServerInfo, call: HttpCall) -> HttpResponse:
        """Write what a server says about itself and about the policy."""
        return self._response(metadata_document(server), FrameKind.METADATA, call)

    def encode_failure(
        self, words: str, status: int, *, request_id: str | None = None
    ) -> HttpResponse:
        """
        Write that something failed.

        Args:
            words: What the client may know; they are cut, and the token is taken out of them.
            status: As 422.
            request_id: The id of the request, if it had one.
        """
        call = HttpCall(endpoint=HttpEndpoint.INFER, request_id=request_id)
        answer = {"error": words_of(words, self.token)}
        response = self._response(answer, FrameKind.METADATA, call)
        return attrs.evolve(response, status=status)

    @property
    def _terms(self) -> Terms:
        return Terms(policy=self.policy, token=self.token, limits=self.limits)

    def _chunk(self, said: Any, observed_at_s: float) -> ActionChunk:
        return chunk_from_response(
            said,
            names=self.action_names,
            source=self.policy,
            observed_at_s=observed_at_s,
            axes=ResponseAxes.CHUNK,
            ignored=said.keys() - _KNOWN if isinstance(said, Mapping) else (),
        )

    def _request(
        self,
        endpoint: HttpEndpoint,
        document: Mapping[str, Any] | None,
        request_id: str | None,
        session: str | None,
    ) -> HttpRequest:
        headers = {"accept": self.content_type.value}
        if self.token is not None:
            headers["authorization"] = f"Bearer {self.token.reveal()}"
        for name, text in ((REQUEST_ID, request_id), (SESSION_ID, session)):
            if text is not None:
                headers[name] = require_id(name, text)
        body = b""
        if document is not None:
            headers["content-type"] = self.content_type.value
            body = write_body(
                document, self.content_type, kind=FrameKind.REQUEST, limits=self.limits
            )
        return HttpRequest(method=endpoint.method, path=endpoint.path, headers=headers, body=body)

    def _response(self, answer: Any, kind: FrameKind, call: HttpCall) -> HttpResponse:
        headers = {"content-type": call.answer_type.value}
        if call.request_id is not None:
            headers[REQUEST_ID] = call.request_id
        body = write_body(answer, call.answer_type, kind=kind, limits=self.limits)
        return HttpResponse(status=200, headers=headers, body=body)

    def _refused(self, error: ContractError, status: int) -> PolicyStatusError:
        status = 413 if isinstance(error, LimitExceededError) else status
        return PolicyStatusError(self.policy, str(error), status)
