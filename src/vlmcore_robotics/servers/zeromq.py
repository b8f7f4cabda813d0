"""Serves a policy as Isaac-GR00T does, over ZeroMQ, so that its clients can ask it."""

from __future__ import annotations

import asyncio
import time
import uuid
from typing import final

import attrs

from vlmcore._arguments import require_kind, require_switch
from vlmcore._arrays import require_count
from vlmcore.contracts.observation import Observation
from vlmcore.errors import ContractError
from vlmcore.limits import WireLimits
from vlmcore.policy.interface import PolicyInfo
from vlmcore.secrets import Secret
from vlmcore_robotics.servers._server import Server
from vlmcore_robotics.servers._terms import (
    Address,
    action_names_of,
    frame_rate_hz_of,
    unless,
    words_for_clients,
)
from vlmcore_robotics.servers._zmq_listener import Listener, Request, Visit
from vlmcore_robotics.servers.runtime import PolicyRuntime, TimedChunk
from vlmcore_robotics.wire.groot import GrootCall, GrootCodec
from vlmcore_robotics.wire.groot_calls import GrootEndpoint
from vlmcore_robotics.wire.groot_dialects import GrootDialect
from vlmcore_robotics.wire.groot_info import modalities_from_info
from vlmcore_robotics.wire.groot_layout import GrootLayout
from vlmcore_robotics.wire.groot_modalities import PolicyModalities
from vlmcore_robotics.wire.policy_info import metadata_from_info
from vlmcore_robotics.wire.ports import GROOT_PORT

__all__ = ["GrootServer"]


@final
class GrootServer(Server):
    """
    Serves the policy of a runtime over ZeroMQ, as GR00T's own server: any REQ socket can ask.

    It answers ``ping``, ``get_modality_config``, ``get_action`` and ``reset``; ``kill``, which ends
    GR00T's server, is refused. Pings are answered while an inference runs. Whatever a peer sends,
    it gets an answer: if something is wrong with it, ``{"error": ...}`` with one line of text. Only
    what is no message of ZeroMQ, too large or too slow is hung up on. A client has one request in
    hand at a time; what it sends meanwhile waits. Each connection is a session of the runtime. The
    runtime is not closed with the server.

    Nothing is encrypted: at another address than that of this machine, listen in a private network
    only, or behind a tunnel.

    Args:
        runtime: Runs the policy, which has to say its ``action_names``.
        layout: Which modality key holds which part of an observation and of an action.
        modalities: What clients are told that the policy takes and gives. Unless given, it is shown
            one frame of each camera and one state, and proposes as many steps as it says.
        dialect: The generation of the clients.
        flat: Whether keys are flat, as ``video.ego_view``; for N1.5 they always are.
        join_states: Whether the policy is shown the states of all steps that *modalities* ask for,
            joined to one, oldest first, instead of the newest. If the policy says its
            ``state_names``, they are those of the joined state; clients are not told them.
        tell_timings: Whether answers tell beside the actions how long the request waited and the
            policy took, as ``{"server_timing": {"queue_ms": 0.1, "infer_ms": 41.5}}``, which stock
            clients pass over. It takes ours a fraction of a millisecond more to read. Those of N1.5
            have no place for it.
        host: The address to listen at, as ``"127.0.0.1"`` or ``"::1"``; ``"localhost"`` is the
            first of them.
        port: 0 to 65535; at 0 one that is free is taken.
        api_token: What has to be in each request as ``api_token``, if anything.
        allow_remote: Whether *host* may be an address that other machines reach.
        max_clients: How many may be connected at once; others are told that it is busy.
        max_requests: How many requests may be in hand at once; others are told that it is busy.
        limits: How large messages may be.

    Raises:
        ContractError: If an argument is not as described, or the layout does not fit.

    Example:
        >>> from vlmcore.contracts.presets import find_embodiment
        >>> from vlmcore.policy.interface import PolicyInfo
        >>> from vlmcore.testing import ScriptedPolicy, example_observation
        >>> from vlmcore_robotics.clients.zeromq import ZmqPolicy
        >>> from vlmcore_robotics.servers.threads import serve_in_thread
        >>> from vlmcore_robotics.wire.groot_layout import ActionStream, StateSlice, VideoKey
        >>> robot = find_embodiment("generic_7dof_joint_gripper")
        >>> layout = GrootLayout(
        ...     video=[VideoKey(key=name, camera=name) for name in robot.camera_names],
        ...     state=[StateSlice(key="arm", start=0, end=len(robot.state_names))],
        ...     action=[ActionStream(key="arm", names=robot.actions.names)],
        ...     language="annotation.human.task_description",
        ... )
        >>> info = PolicyInfo(name="still", action_names=robot.actions.names, horizon=16)
        >>> still = ScriptedPolicy([[[0.0] * 8] * 16], info=info)
        >>> with PolicyRuntime(still) as runtime:
        ...     with serve_in_thread(GrootServer(runtime, layout=layout, port=0)) as url:
        ...         with ZmqPolicy(url, embodiment=robot, layout=layout) as policy:
        ...             policy.infer(example_observation(robot)).values.shape
        (16, 8)
    """

    def __init__(
        self,
        runtime: PolicyRuntime,
        *,
        layout: GrootLayout,
        modalities: PolicyModalities | None = None,
        dialect: GrootDialect = GrootDialect.N1_7,
        flat: bool = False,
        join_states: bool = False,
        tell_timings: bool = False,
        host: str = "127.0.0.1",
        port: int = GROOT_PORT,
        api_token: Secret | None = None,
        allow_remote: bool = False,
        max_clients: int = 64,
        max_requests: int = 64,
        limits: WireLimits | None = None,
    ) -> None:
        require_count(max_clients=max_clients, max_requests=max_requests)
        require_switch(join_states=join_states, tell_timings=tell_timings)
        if api_token is not None:
            require_kind("api_token", api_token, Secret)
        _require_whole(layout, action_names_of(runtime))
        self._runtime = runtime
        super().__init__(Address(host=host, port=port, allow_remote=allow_remote), "tcp")
        self._token = api_token
        self._join_states = join_states
        self._tell_timings = tell_timings
        self._max_clients = max_clients
        self._max_requests = max_requests
        self._codec = GrootCodec(
            policy=runtime.info.name,
            layout=layout,
            modalities=modalities or modalities_from_info(runtime.info, layout),
            dialect=dialect,
            flat=flat,
            token=api_token,
            limits=limits or WireLimits(),
        )
        said = metadata_from_info(_told(runtime.info, self._codec, join_states=join_states))
        self._pong = self._codec.encode_pong(said)
        self._modalities = self._codec.encode_modalities()
        self._listener = Listener(
            visit=self._receive, policy=runtime.info.name, max_clients=max_clients
        )
        self._in_hand: set[asyncio.Task[None]] = set()  # those that serve a client which waits
        self._is_stopping = False

    async def _listen(self, host: str, port: int) -> int:
        most = self._codec.limits.max_request_bytes
        return await self._listener.open(host=host, port=port, max_bytes=most)

    async def _hang_up(self, grace_s: float) -> None:
        self._is_stopping = True
        self._listener.stop_accepting()
        if self._in_hand:
            await asyncio.wait(tuple(self._in_hand), timeout=grace_s)
        await self._listener.close()

    async def _receive(self, visit: Visit) -> None:
        """Serve one client, until it or the server leaves."""
        task = asyncio.current_task()
        assert task is not None
        session = uuid.uuid4().hex
        try:
            while (request := await visit.receive()) is not None:
                busy = self._busy(visit)
                if busy is not None:
                    visit.answer(request, self._codec.encode_failure(busy))
                    continue
                self._in_hand.add(task)
                frame = await self._answer(visit, request, session)
                self._in_hand.discard(task)  # before the client hears of it, who may ask again
                if frame is not None:
                    visit.answer(request, frame)
                if self._is_stopping:
                    return
        finally:
            self._in_hand.discard(task)
            self._runtime.end_session(session)

    def _busy(self, visit: Visit) -> str | None:
        if self._is_stopping:
            return "the server stops"
        if not visit.is_welcome:
            return f"busy: {self._max_clients} clients are connected"
        if len(self._in_hand) >= self._max_requests:
            return f"busy: {len(self._in_hand)} in hand"
        return None

    async def _answer(self, visit: Visit, request: Request, session: str) -> bytes | None:
        try:
            return await self._answer_to(visit, request, session)
        except Exception as error:  # noqa: BLE001 - whatever it is, the client hears of it
            return self._codec.encode_failure(words_for_clients(error, key=self._token))

    async def _answer_to(self, visit: Visit, request: Request, session: str) -> bytes | None:
        """Answer a request; ``None`` if the client left meanwhile, and nobody wants it any more."""
        came_at_s = time.monotonic()
        if request.body is None:
            raise ContractError("request", f"got {request.frames} frames, expected one")
        # Not here: a map of many values takes longer than a ping may wait.
        call = await asyncio.to_thread(
            self._codec.decode_call,
            request.body,
            captured_at_s=came_at_s,
            frame_rate_hz=frame_rate_hz_of(self._runtime),
        )
        match call.endpoint:
            case GrootEndpoint.PING:
                return self._pong
            case GrootEndpoint.GET_MODALITY_CONFIG:
                return self._modalities
            case GrootEndpoint.RESET:
                await asyncio.wrap_future(self._runtime.reset(session=session))
                return self._codec.encode_reset_done()
            case GrootEndpoint.GET_ACTION:
                asked = self._runtime.submit(self._shown(call), session=session)
                timed = await unless(visit.gone, asked)
                if timed is None:
                    return None
                info = _timings(timed) if self._tell_timings else None
                return self._codec.encode_answer(timed.chunk, info=info)

    def _shown(self, call: GrootCall) -> Observation:
        assert call.observation is not None
        if not self._join_states or call.states is None:
            return call.observation
        return attrs.evolve(call.observation, state=call.states.ravel())


def _timings(timed: TimedChunk) -> dict[str, dict[str, float]]:
    queue_ms, infer_ms = 1000 * timed.queued_s, 1000 * timed.inferred_s
    return {"server_timing": {"queue_ms": queue_ms, "infer_ms": infer_ms}}


def _told(info: PolicyInfo, codec: GrootCodec, *, join_states: bool) -> PolicyInfo:
    """Say what clients are told of the policy: their state is that of one step."""
    told = attrs.evolve(info, metadata={})
    if not join_states or info.state_names is None:
        return told
    state, count = codec.modalities.state, codec.layout.state_count
    steps = 1 if state is None else len(state.delta_indices)
    if len(info.state_names) != steps * count:
        raise ContractError(
            "join_states",
            f"got True for {info.name!r} with {len(info.state_names)} state_names, expected "
            f"{steps * count}: {steps} steps of {count} numbers",
        )
    return attrs.evolve(told, state_names=None)


def _require_whole(layout: GrootLayout, names: tuple[str, ...]) -> None:
    require_kind("layout", layout, GrootLayout)
    if not layout.state or layout.language is None:
        raise ContractError(
            "layout", "got one without state or language, expected both: observations have them"
        )
    if names != layout.action_names:
        raise ContractError(
            "layout", f"got the actions {layout.action_names!r:.200}, expected {names!r:.200}"
        )
