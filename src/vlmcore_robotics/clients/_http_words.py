"""What clients of the HTTP protocol say and understand, for one robot and one server."""

from __future__ import annotations

import ssl
import uuid

import attrs

from vlmcore._arguments import require_kind
from vlmcore._arrays import require_member
from vlmcore._optional import optional_dependency
from vlmcore.contracts.actions import ActionChunk
from vlmcore.contracts.embodiment import Embodiment
from vlmcore.contracts.observation import Observation
from vlmcore.errors import ContractError, PolicyProtocolError, PolicyStatusError
from vlmcore.limits import HttpLimits
from vlmcore.policy.interface import PolicyInfo
from vlmcore.secrets import Secret
from vlmcore_robotics.clients._http_line import HttpLine
from vlmcore_robotics.clients._terms import Terms
from vlmcore_robotics.wire._pieces import MOST_PIECES
from vlmcore_robotics.wire.http_frames import WireEncoding
from vlmcore_robotics.wire.http_messages import (
    ContentType,
    HttpEndpoint,
    HttpRequest,
    HttpResponse,
    require_id,
)
from vlmcore_robotics.wire.http_metadata import HttpServerInfo
from vlmcore_robotics.wire.http_v1 import HttpCodec
from vlmcore_robotics.wire.policy_contract import contract_differences
from vlmcore_robotics.wire.ports import HTTP_PORT

__all__ = ["HttpQuestion", "HttpWords"]

_SCHEMES = ("http", "https")
_LOSSLESS = (WireEncoding.RAW, WireEncoding.PNG)
_TOO_LARGE = 413


@attrs.frozen(kw_only=True)
class HttpQuestion:
    """
    One observation as it is sent, and what tells its answer.

    Attributes:
        request: What is sent.
        request_id: What the answer repeats, if the server knows ids.
        observed_at_s: When the observation was made.
    """

    request: HttpRequest
    request_id: str
    observed_at_s: float


class HttpWords:
    """
    Requests and answers; the arguments are those of `HttpPolicy`.

    Attributes:
        terms: Where the policy is, for which robot, and how long it may take.

    Raises:
        ContractError: If an argument is not as described there.
        EndpointError: If *endpoint* is no address, or not one that may be dialled.
        MissingDependencyError: If h11 is not installed.
    """

    def __init__(
        self,
        endpoint: str,
        *,
        embodiment: Embodiment,
        name: str | None,
        token: Secret | None,
        timeout_s: float,
        allow_remote: bool,
        tls: ssl.SSLContext | None,
        encoding: WireEncoding | None,
        content_type: ContentType | None,
        session: str | None,
        limits: HttpLimits | None,
    ) -> None:
        self.terms = Terms.agreed(
            endpoint,
            schemes=_SCHEMES,
            default_scheme=_SCHEMES[0],
            default_port=HTTP_PORT,
            embodiment=embodiment,
            name=name,
            timeout_s=timeout_s,
            token=token,
            allow_remote=allow_remote,
            tls=tls,
        )
        if encoding is not None:
            require_member(WireEncoding, encoding=encoding)
        if content_type is not None:
            require_member(ContentType, content_type=content_type)
        if limits is not None:
            require_kind("limits", limits, HttpLimits)
        self._encoding = encoding
        self._content_type = content_type
        self._given_session = None if session is None else require_id("session", session)
        self.begin_session()
        self._prefix = _prefix(self.terms.endpoint.path)
        # Until a server says more, it is spoken to as to those of old.
        self._codec = HttpCodec(
            policy=self.terms.policy,
            action_names=embodiment.actions.names,
            token=token,
            limits=limits or HttpLimits(),
        )
        self._server: HttpServerInfo | None = None
        self._needed: tuple[str, ...] = ()
        with optional_dependency("robotics", "h11"):
            from vlmcore._net import http_exchange  # noqa: PLC0415 - the door
        self._exchange_type = http_exchange.HttpExchange

    def begin_session(self) -> None:
        """Begin a session of one's own, unless one was given."""
        self._session = self._given_session or uuid.uuid4().hex

    def new_line(self) -> HttpLine:
        """Begin a connection."""
        limits = self._codec.limits
        return HttpLine(
            self._exchange_type(max_head_bytes=limits.max_head_bytes, most_pieces=MOST_PIECES),
            self.terms.endpoint,
            prefix=self._prefix,
            policy=self.terms.policy,
            limits=limits,
        )

    def question(self, observation: Observation) -> HttpQuestion:
        """
        Write an observation in the way that was agreed with the server.

        Raises:
            ContractError: If it is not an observation of the robot, or not one that the policy
                can be shown.
            LimitExceededError: If it is too large.
            MissingDependencyError: If Pillow is needed and not installed.
        """
        self.terms.require_fits(observation)
        missing = [name for name in self._needed if name not in observation.images]
        if missing:
            raise ContractError(
                "images", f"got none of {', '.join(missing)}, expected what the policy looks at"
            )
        request_id = uuid.uuid4().hex
        request = self._codec.encode_request(
            observation, request_id=request_id, session=self._own_session
        )
        return HttpQuestion(
            request=request, request_id=request_id, observed_at_s=observation.captured_at_s
        )

    def chunk(self, response: HttpResponse, asked: HttpQuestion, info: PolicyInfo) -> ActionChunk:
        """
        Read an answer.

        Raises:
            PolicyStatusError: If the policy failed, and says so by the status.
            PolicyRefusedError: If it failed, and says so otherwise.
            PolicyProtocolError: If it is no answer, or not of the horizon that was announced.
        """
        try:
            chunk = self._codec.decode_answer(
                response, observed_at_s=asked.observed_at_s, request_id=asked.request_id
            )
        except PolicyStatusError as error:
            if error.status != _TOO_LARGE:
                raise
            sent = f"{error.problem}; the request has {len(asked.request.body)} bytes"
            raise PolicyStatusError(error.policy, sent, error.status) from None
        return self.terms.kept(chunk, info)

    def reset(self) -> HttpRequest | None:
        """Write that an episode ends; nothing, for a server that does not keep clients apart."""
        session = self._own_session
        return None if session is None else self._codec.encode_reset(session=session)

    def check_reset(self, response: HttpResponse) -> None:
        """
        Read the answer to a reset.

        Raises:
            PolicyStatusError: If it was not done.
            PolicyProtocolError: If it is no such answer.
        """
        if not self._codec.decode_reset(response):
            raise self.terms.fault(
                f"it answers a reset with HTTP {response.status}, though it said to know sessions"
            )

    def metadata(self) -> HttpRequest:
        """Write the question what the server is."""
        return self._codec.ask(HttpEndpoint.METADATA)

    def learned(self, response: HttpResponse, before: PolicyInfo | None) -> PolicyInfo:
        """
        Read what a server says, compare it with the robot, and agree on how to speak.

        A server that knows no such question is one of old.

        Raises:
            PolicyStatusError: If it does not say.
            PolicyProtocolError: If it cannot be read, does not fit the robot, or differs from what
                was said on the connection before.
            ContractError: If it does not know what the caller asked for.
        """
        policy, robot = self.terms.policy, self.terms.embodiment
        if response.status in (404, 405, 501):
            server = HttpServerInfo(policy=PolicyInfo(name=policy))
        else:
            server = self._codec.decode_metadata(response)
        wrong = contract_differences(server.policy.metadata, robot)
        if wrong:
            raise self.terms.fault(f"it is not for {robot.name!r}: {'; '.join(wrong)}")
        info = self.terms.learned(server.policy, before, cameras=robot.cameras)
        if self._server is None:
            self._agree(server)
        else:
            self._require_spoken(server)
        self._needed = tuple(camera.name for camera in server.policy.cameras or ())
        return info

    @property
    def _own_session(self) -> str | None:
        is_kept = self._server is not None and self._server.has_sessions
        return self._session if is_kept else None

    def _agree(self, server: HttpServerInfo) -> None:
        """Choose what both know; frames without loss, and small ones over a network."""
        order = _LOSSLESS if self.terms.endpoint.is_loopback else _LOSSLESS[::-1]
        encoding = self._encoding or next(
            (each for each in (*order, WireEncoding.JPEG) if each in server.encodings),
            WireEncoding.JPEG,
        )
        preferred = (ContentType.MESSAGEPACK, ContentType.JSON)
        content_type = self._content_type or next(
            (each for each in preferred if each in server.content_types), ContentType.JSON
        )
        server.require_speaks(encoding=encoding, content_type=content_type)
        self._codec = attrs.evolve(self._codec, encoding=encoding, content_type=content_type)
        self._server = server

    def _require_spoken(self, server: HttpServerInfo) -> None:
        """Refuse a server that knows less than before."""
        codec = self._codec
        assert self._server is not None
        try:
            server.require_speaks(encoding=codec.encoding, content_type=codec.content_type)
        except ContractError as error:
            raise self._changed(str(error)) from None
        if self._server.has_sessions and not server.has_sessions:
            raise self._changed("it keeps no sessions any more")

    def _changed(self, how: str) -> PolicyProtocolError:
        return self.terms.fault(f"another server answers now, make a new client for it: {how}")


def _prefix(path: str) -> str:
    """Take what stands before the paths of the protocol; a client may be given one of them."""
    return path.removesuffix("/").removesuffix(HttpEndpoint.INFER.path).removesuffix("/")
