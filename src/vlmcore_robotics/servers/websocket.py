"""Serves a policy as openpi does, over WebSocket, so that openpi-client can ask it."""

from __future__ import annotations

import asyncio
import ssl
import time
import uuid
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, final

import attrs

from vlmcore._arrays import require_count, require_text
from vlmcore._optional import optional_dependency
from vlmcore.contracts.observation import Observation
from vlmcore.errors import ContractError
from vlmcore.limits import WireLimits
from vlmcore.secrets import Secret
from vlmcore_robotics.servers._admission import Admission, Refusal
from vlmcore_robotics.servers._message_threads import message_threads
from vlmcore_robotics.servers._server import Server
from vlmcore_robotics.servers._terms import (
    Address,
    action_names_of,
    frame_rate_hz_of,
    require_tls,
    unless,
    words_for_clients,
)
from vlmcore_robotics.servers.runtime import PolicyRuntime
from vlmcore_robotics.wire.observation_layout import ObservationLayout
from vlmcore_robotics.wire.openpi import OpenPICodec
from vlmcore_robotics.wire.policy_info import metadata_from_info
from vlmcore_robotics.wire.ports import OPENPI_PORT

if TYPE_CHECKING:
    from vlmcore_robotics.servers._websocket_listener import Listener, Visit

__all__ = ["OpenPIServer"]

_HEALTH = "/healthz"
_STOPPING, _FAILED = 1001, 1011  # codes of WebSocket


@attrs.frozen(kw_only=True, eq=False)
class _Client:
    """One connection: whom to talk to, when it is gone, and the session that it is."""

    visit: Visit
    gone: asyncio.Future[None]
    session: str


@final
class OpenPIServer(Server):
    """
    Serves the policy of a runtime over WebSocket. Any path will do; ``GET /healthz`` says ``OK``.

    A client first hears what the policy says about itself, then gets one answer to each request.
    Where that is an error, it is told in one line, without a traceback, and hung up on, as
    openpi-client expects. Connections are served while an inference runs. A page in a browser
    cannot connect. Each connection is a session of the runtime. The runtime is not closed with the
    server.

    Args:
        runtime: Runs the policy, which has to say its ``action_names``.
        layout: Which key of a request holds which part of an observation.
        host: The address to listen at, as ``"127.0.0.1"`` or ``"::1"``; ``"localhost"`` is the
            first of them.
        port: 0 to 65535; at 0 one that is free is taken.
        api_key: What a client has to show as ``Authorization: Api-Key``, if anything.
        allow_remote: Whether *host* may be an address that other machines reach.
        hosts: Other names that clients call this server by, as that of a gateway.
        tls: The certificate, for ``wss``.
        default_prompt: The instruction where a client sends none.
        max_clients: How many may be connected at once.
        limits: How large messages may be.

    Raises:
        ContractError: If an argument is not as described.
        MissingDependencyError: If websockets is not installed.

    Example:
        >>> from vlmcore.contracts.presets import find_embodiment
        >>> from vlmcore.policy.interface import PolicyInfo
        >>> from vlmcore.testing import ScriptedPolicy, example_observation
        >>> from vlmcore_robotics.clients.websocket import WebSocketPolicy
        >>> from vlmcore_robotics.servers.threads import serve_in_thread
        >>> from vlmcore_robotics.wire.layouts import aloha_layout
        >>> robot = find_embodiment("aloha_bimanual_template")
        >>> info = PolicyInfo(name="still", action_names=robot.actions.names)
        >>> still = ScriptedPolicy([[[0.0] * 14] * 50], info=info)
        >>> with PolicyRuntime(still) as runtime:
        ...     server = OpenPIServer(runtime, layout=aloha_layout(), port=0)
        ...     with serve_in_thread(server) as url:
        ...         with WebSocketPolicy(url, embodiment=robot, layout=aloha_layout()) as policy:
        ...             policy.infer(example_observation(robot)).values.shape
        (50, 14)
    """

    def __init__(
        self,
        runtime: PolicyRuntime,
        *,
        layout: ObservationLayout,
        host: str = "127.0.0.1",
        port: int = OPENPI_PORT,
        api_key: Secret | None = None,
        allow_remote: bool = False,
        hosts: Sequence[str] = (),
        tls: ssl.SSLContext | None = None,
        default_prompt: str | None = None,
        max_clients: int = 64,
        limits: WireLimits | None = None,
    ) -> None:
        action_names = action_names_of(runtime)
        require_count(max_clients=max_clients)
        if default_prompt is not None:
            require_text(default_prompt=default_prompt)
        require_tls(tls)
        self._runtime = runtime
        address = Address(host=host, port=port, allow_remote=allow_remote)
        super().__init__(address, "ws" if tls is None else "wss")
        self._tls = tls
        self._default_prompt = default_prompt
        self._max_clients = max_clients
        self._admission = Admission(hosts=hosts, key=api_key, key_scheme="Api-Key")
        self._codec = OpenPICodec(
            policy=runtime.info.name,
            layout=layout,
            action_names=action_names,
            limits=limits or WireLimits(),
        )
        self._metadata = self._codec.encode_metadata(metadata_from_info(runtime.info))
        self._listener = self._make_listener()
        self._threads = message_threads()
        self._visits: dict[asyncio.Task[None], Visit | None] = {}  # None while one is answered
        self._is_stopping = False

    async def _listen(self, host: str, port: int) -> int:
        return await self._listener.open(
            host=host, port=port, tls=self._tls, max_bytes=self._codec.limits.max_request_bytes
        )

    async def _hang_up(self, grace_s: float) -> None:
        self._is_stopping = True
        self._listener.stop_accepting()
        idle = [visit for visit in self._visits.values() if visit is not None]
        await asyncio.gather(*(visit.close(_STOPPING, "the server stops") for visit in idle))
        if self._visits:
            await asyncio.wait(tuple(self._visits), timeout=grace_s)
        await self._listener.close()
        self._threads.shutdown(wait=False)

    def _make_listener(self) -> Listener:
        with optional_dependency("robotics", "websockets"):
            from vlmcore_robotics.servers import _websocket_listener  # noqa: PLC0415 - the door
        return _websocket_listener.Listener(
            visit=self._receive,
            admit=self._refusal,
            answer=lambda path: "OK\n" if path == _HEALTH else None,
        )

    def _refusal(self, path: str, header: Callable[[str], list[str]]) -> Refusal | None:
        is_health = path == _HEALTH
        refusal = self._admission.refusal(
            hosts=header("Host"),
            origins=header("Origin"),
            authorizations=None if is_health else header("Authorization"),
        )
        if refusal is None and not is_health and len(self._visits) >= self._max_clients:
            return Refusal(status=503, words=f"busy: {len(self._visits)} clients are connected")
        return refusal

    async def _receive(self, visit: Visit) -> None:
        """Serve one client, until it or the server leaves, or something fails."""
        task = asyncio.current_task()
        assert task is not None
        gone = asyncio.ensure_future(visit.gone())
        client = _Client(visit=visit, gone=gone, session=uuid.uuid4().hex)
        try:
            self._visits[task] = visit
            if await visit.send(self._metadata):
                await self._converse(client, task)
        finally:
            gone.cancel()
            del self._visits[task]
            self._runtime.end_session(client.session)

    async def _converse(self, client: _Client, task: asyncio.Task[None]) -> None:
        visit = client.visit
        previous_ms: float | None = None
        while not self._is_stopping:
            self._visits[task] = visit
            frame = await visit.receive()
            self._visits[task] = None
            if frame is None:
                return
            came_at_s = time.monotonic()
            try:
                answer = await self._answer(client, frame, came_at_s, previous_ms)
            except Exception as error:  # noqa: BLE001 - whatever it is, the client hears of it
                words = words_for_clients(error, key=self._admission.key)
                await visit.send(self._codec.encode_failure(words))
                await visit.close(_FAILED, "the error is in the frame before")
                return
            if answer is None or not await visit.send(answer):
                return
            previous_ms = _ms_since(came_at_s)
        await visit.close(_STOPPING, "the server stops")

    async def _answer(
        self, client: _Client, frame: bytes | str, came_at_s: float, previous_ms: float | None
    ) -> bytes | None:
        """Answer a request; ``None`` if the client left meanwhile, and nobody wants it any more."""
        if isinstance(frame, str):
            raise ContractError("request", "got text, expected a binary frame")
        # Not here: a map of many values takes longer than a health check may wait.
        observation = await asyncio.get_running_loop().run_in_executor(
            self._threads, lambda: self._read(frame, came_at_s)
        )
        asked = self._runtime.submit(observation, session=client.session)
        timed = await unless(client.gone, asked)
        if timed is None:
            return None
        return self._codec.encode_answer(
            timed.chunk,
            policy_ms=1000.0 * timed.inferred_s,
            server_ms=_ms_since(came_at_s),
            previous_ms=previous_ms,
        )

    def _read(self, frame: bytes, came_at_s: float) -> Observation:
        return self._codec.decode_request(
            frame,
            captured_at_s=came_at_s,
            frame_rate_hz=frame_rate_hz_of(self._runtime),
            default_prompt=self._default_prompt,
        )


def _ms_since(then_s: float) -> float:
    return 1000.0 * (time.monotonic() - then_s)
