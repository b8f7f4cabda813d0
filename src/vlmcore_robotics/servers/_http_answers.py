"""What an HTTP server answers, request by request."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Executor, Future
from types import MappingProxyType
from typing import TYPE_CHECKING, TypeVar

import attrs

from vlmcore.errors import (
    ContractError,
    PolicyStatusError,
    PolicyUnavailableError,
    VlmcoreError,
)
from vlmcore_robotics.servers._admission import Admission
from vlmcore_robotics.servers._terms import unless, words_for_clients
from vlmcore_robotics.servers.runtime import PolicyRuntime
from vlmcore_robotics.wire._http_calls import routed
from vlmcore_robotics.wire.http_frames import WireEncoding
from vlmcore_robotics.wire.http_messages import (
    REQUEST_ID,
    SESSION_ID,
    ContentType,
    HttpEndpoint,
    HttpRequest,
    HttpResponse,
    require_id,
)
from vlmcore_robotics.wire.http_metadata import HttpServerInfo
from vlmcore_robotics.wire.http_v1 import HttpCall, HttpCodec

if TYPE_CHECKING:
    from vlmcore_robotics.servers._asgi import Visit

__all__ = ["HttpAnswers"]

_Result = TypeVar("_Result")
_READ_ONCE = ("content-type", "authorization", REQUEST_ID, SESSION_ID)
_REQUESTS_AT_ONCE = 4  # of the largest size, which are held until they are decoded
_MORE: Mapping[int, Mapping[str, str]] = MappingProxyType(
    {401: {"www-authenticate": "Bearer"}, 408: {"connection": "close"}, 503: {"retry-after": "1"}}
)


class HttpAnswers:
    """
    Answers requests of ``comfyui-vla-http-v1``.

    Args:
        runtime: Runs the policy.
        codec: Reads and writes the messages.
        admission: Says who may ask.
        patience_s: For how long a body may come.
        threads: Where messages are read and written, so that the event loop is free meanwhile.
    """

    def __init__(
        self,
        runtime: PolicyRuntime,
        codec: HttpCodec,
        admission: Admission,
        *,
        patience_s: float,
        threads: Executor,
    ) -> None:
        self._runtime = runtime
        self._codec = codec
        self._admission = admission
        self._patience_s = patience_s
        self._threads = threads
        self._info = HttpServerInfo(
            policy=runtime.info,
            encodings=tuple(WireEncoding),
            content_types=tuple(ContentType),
            has_sessions=True,  # and resets, also where all share one policy
            keeps_sessions_apart=runtime.has_sessions,
        )
        self._held_bytes = 0  # of bodies that are read, or wait to be decoded

    def check(self) -> None:
        """
        Try to say what the policy is.

        Raises:
            ContractError: If it says too much of itself.
        """
        for each in ContentType:
            call = HttpCall(endpoint=HttpEndpoint.METADATA, answer_type=each)
            self._codec.encode_metadata(self._info, call)

    async def answer(self, visit: Visit) -> HttpResponse | None:
        """Answer one request; ``None`` if the client is gone."""
        try:
            return await self._answer(visit)
        except PolicyStatusError as error:
            status, words = error.status, error.problem
        except Exception as error:  # noqa: BLE001 - whatever it is, the client hears of it
            status, words = 500, words_for_clients(error, key=self._admission.key)
        response = self._codec.encode_failure(words, status, request_id=_request_id(visit))
        more = {"allow": _allowed(visit)} if status == 405 else _MORE.get(status, {})
        return attrs.evolve(response, headers={**response.headers, **more})

    async def _answer(self, visit: Visit) -> HttpResponse | None:
        came_at_s = time.monotonic()
        headers = self._let_in(visit)
        request = HttpRequest(method=visit.method, path=visit.path, headers=headers)
        call = routed(request, policy=self._codec.policy, token=self._codec.token)
        match call.endpoint:
            case HttpEndpoint.HEALTH:
                if not self._runtime.health.is_open:
                    raise self._refused("the policy is closed", 503)
                return self._codec.encode_ok(call)
            case HttpEndpoint.METADATA:
                return await self._work(lambda: self._codec.encode_metadata(self._info, call))
            case HttpEndpoint.INFER | HttpEndpoint.RESET:
                read = await self._read(visit, request, came_at_s)
        if read is None:
            return None
        if read.observation is not None:
            return await self._infer(visit, read, came_at_s)
        await self._ask(visit, lambda: self._runtime.reset(session=read.session))
        return self._codec.encode_ok(read)

    async def _infer(self, visit: Visit, call: HttpCall, came_at_s: float) -> HttpResponse | None:
        observation = call.observation
        assert observation is not None
        read_s = time.monotonic() - came_at_s
        timed = await self._ask(
            visit, lambda: self._runtime.submit(observation, session=call.session)
        )
        if timed is None:
            return None
        timing_ms = {
            "preprocess": 1000.0 * read_s,
            "queue": 1000.0 * timed.queued_s,
            "infer": 1000.0 * timed.inferred_s,
        }
        return await self._work(
            lambda: self._codec.encode_answer(
                timed.chunk,
                call,
                timing_ms=timing_ms,
                policy={"name": self._codec.policy},
            )
        )

    def _let_in(self, visit: Visit) -> dict[str, str]:
        """Look at who asks; return the headers that matter, each once."""
        is_health = visit.path.partition("?")[0] == HttpEndpoint.HEALTH.path
        refusal = self._admission.refusal(
            hosts=visit.header("host"),
            origins=visit.header("origin"),
            authorizations=None if is_health else visit.header("authorization"),
        )
        if refusal is not None:
            raise self._refused(refusal.words, refusal.status)
        headers = {"accept": ", ".join(visit.header("accept"))}
        for name in _READ_ONCE:
            values = visit.header(name)
            if len(values) > 1:
                raise self._refused(f"{name}: got it {len(values)} times, expected it once", 400)
            headers.update((name, value) for value in values)
        return headers

    async def _read(self, visit: Visit, request: HttpRequest, came_at_s: float) -> HttpCall | None:
        """Read the body and what it asks; ``None`` if the client left before its end."""
        self._look_at_length(visit)
        pieces: list[bytes] = []
        try:
            await asyncio.wait_for(self._collect(visit, pieces), self._patience_s)
            if visit.has_left:
                return None
            whole = attrs.evolve(request, body=b"".join(pieces))
            return await self._work(
                lambda: self._codec.decode_request(whole, captured_at_s=came_at_s)
            )
        except asyncio.TimeoutError:
            raise self._refused(
                f"body: got a part within {self._patience_s:g} s, expected the whole", 408
            ) from None
        finally:
            self._held_bytes -= sum(map(len, pieces))

    def _look_at_length(self, visit: Visit) -> None:
        most = self._codec.limits.max_request_bytes
        encodings = visit.header("content-encoding")
        if encodings and encodings != ["identity"]:
            raise self._refused("content-encoding: got one, expected none", 415)
        lengths = visit.header("content-length")
        if not lengths and not visit.header("transfer-encoding"):
            raise self._refused("content-length: got none, expected it", 411)
        if lengths and int(lengths[0]) > most:
            raise self._refused(f"max_request_bytes: got {lengths[0]}, limit is {most}", 413)

    async def _collect(self, visit: Visit, pieces: list[bytes]) -> None:
        most, size = self._codec.limits.max_request_bytes, 0
        async for piece in visit.pieces():
            size += len(piece)
            if size > most:
                raise self._refused(f"max_request_bytes: got more, limit is {most}", 413)
            if self._held_bytes + len(piece) > _REQUESTS_AT_ONCE * most:
                raise self._refused("busy: too many large requests are read at once", 503)
            pieces.append(piece)
            self._held_bytes += len(piece)

    async def _ask(self, visit: Visit, ask: Callable[[], Future[_Result]]) -> _Result | None:
        """Ask the policy; ``None`` if the client leaves meanwhile, and nobody wants the answer."""
        gone = asyncio.ensure_future(visit.gone())
        try:
            return await unless(gone, ask())
        except VlmcoreError as error:  # a policy's own status, as of one behind it, is not ours
            words = words_for_clients(error, key=self._admission.key)
            raise self._refused(words, _status_of(error)) from error
        finally:
            gone.cancel()

    async def _work(self, work: Callable[[], _Result]) -> _Result:
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)

    def _refused(self, words: str, status: int) -> PolicyStatusError:
        return PolicyStatusError(self._codec.policy, words, status)


def _status_of(error: VlmcoreError) -> int:
    """Say whose fault it is: the client's, nobody's as the policy is busy, or the policy's."""
    if isinstance(error, ContractError):
        return 422
    return 503 if isinstance(error, PolicyUnavailableError) else 500


def _request_id(visit: Visit) -> str | None:
    """Take the id that a failure repeats, if it is one."""
    ids = visit.header(REQUEST_ID)
    try:
        return require_id(REQUEST_ID, ids[0]) if len(ids) == 1 else None
    except ContractError:
        return None


def _allowed(visit: Visit) -> str:
    path = visit.path.partition("?")[0]
    return ", ".join(each.method for each in HttpEndpoint if each.path == path)
