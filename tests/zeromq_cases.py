"""Peers to try GR00T's clients and servers with: ours, and scripted ones, all over real sockets."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import attrs
import numpy as np
import zmq

from vlmcore.contracts.actions import ActionChunk
from vlmcore.contracts.embodiment import (
    ActionDim,
    ActionSpace,
    CameraSpec,
    Embodiment,
    LimitsSource,
)
from vlmcore.contracts.observation import Observation
from vlmcore.policy.interface import PolicyInfo
from vlmcore.testing import ScriptedPolicy, example_observation
from vlmcore_robotics.clients.async_zeromq import AsyncZmqPolicy
from vlmcore_robotics.clients.zeromq import ZmqPolicy
from vlmcore_robotics.servers.runtime import PolicyRuntime
from vlmcore_robotics.servers.threads import serve_in_thread
from vlmcore_robotics.servers.zeromq import GrootServer
from vlmcore_robotics.wire.frames import FrameKind, decode_frame, encode_frame
from vlmcore_robotics.wire.groot import GrootCodec
from vlmcore_robotics.wire.groot_dialects import GrootDialect
from vlmcore_robotics.wire.groot_info import modalities_from_info
from vlmcore_robotics.wire.groot_layout import ActionStream, GrootLayout, StateSlice, VideoKey
from vlmcore_robotics.wire.ndarrays import ArraySpelling

NAMES = ("shoulder", "elbow", "jaw")
ROBOT = Embodiment(
    name="small arm",
    state_names=NAMES,
    actions=ActionSpace(
        dims=[ActionDim(name=name, unit="rad", low=-3, high=3, max_step=0.1) for name in NAMES],
        rate_hz=20,
    ),
    cameras=[CameraSpec(name="front", height_px=8, width_px=8)],
    limits_source=LimitsSource.TEMPLATE,
)
LAYOUT = GrootLayout(
    video=[VideoKey(key="ego_view", camera="front")],
    state=[StateSlice(key="single_arm", start=0, end=2), StateSlice(key="gripper", start=2, end=3)],
    action=[
        ActionStream(key="single_arm", names=NAMES[:2]),
        ActionStream(key="gripper", names=NAMES[2:]),
    ],
    language="annotation.human.task_description",
)
INFO = PolicyInfo(
    name="scripted",
    action_names=NAMES,
    action_units=("rad", "rad", "rad"),
    state_names=NAMES,
    cameras=ROBOT.cameras,
    horizon=2,
    rate_hz=20,
)
SEEN = example_observation(ROBOT, captured_at_s=7.5)
PLAN = [[0.25, 0.5, 0.0], [0.5, 0.75, 1.0]]
MODALITIES = modalities_from_info(INFO, LAYOUT)
CODECS = {
    dialect: GrootCodec(policy="scripted", layout=LAYOUT, modalities=MODALITIES, dialect=dialect)
    for dialect in GrootDialect
}
CODEC = CODECS[GrootDialect.N1_7]
STEP_S = 1 / ROBOT.actions.rate_hz

Answer = bytes | Sequence[bytes] | Callable[[], bytes] | None


def chunk(values: Any = PLAN) -> ActionChunk:
    """Make the actions that scripted servers propose."""
    return ActionChunk(values=values, names=NAMES, source="scripted", observed_at_s=0.0)


def seen_at(number: float) -> Observation:
    """Make an observation that an answer can be told by, at step *number*."""
    return attrs.evolve(SEEN, state=[number, 0.0, 0.0], captured_at_s=number * STEP_S)


def echoing(**options: Any) -> ScriptedPolicy:
    """Make a policy that answers with the state that it is shown."""
    return ScriptedPolicy(lambda seen: [seen.state.tolist()] * 2, info=INFO, **options)


@contextmanager
def serving(policy: Any = None, *, max_waiting: int = 8, **options: Any) -> Iterator[str]:
    """Serve *policy*, by default one that echoes; yield where."""
    options = {"layout": LAYOUT, "port": 0, **options}
    with (
        PolicyRuntime(policy or echoing(), max_waiting=max_waiting) as runtime,
        serve_in_thread(GrootServer(runtime, **options)) as url,
    ):
        yield url


def client(url: str, **options: Any) -> ZmqPolicy:
    """Make a client of the arm."""
    return ZmqPolicy(url, **{"embodiment": ROBOT, "layout": LAYOUT, "timeout_s": 5, **options})


def async_client(url: str, **options: Any) -> AsyncZmqPolicy:
    """Make a client of the arm for asyncio."""
    return AsyncZmqPolicy(url, **{"embodiment": ROBOT, "layout": LAYOUT, "timeout_s": 5, **options})


class Remote:
    """A client that is called the same way whether it must be awaited or not."""

    def __init__(self, kind: str, url: str, **options: Any) -> None:
        self.loop = asyncio.new_event_loop()
        self.policy: Any = (client if kind == "sync" else async_client)(url, **options)

    def infer(self, seen: Any = SEEN) -> Any:
        return self._done(self.policy.infer(seen))

    def connect(self) -> None:
        self._done(self.policy.connect())

    def reset(self) -> None:
        self._done(self.policy.reset())

    def close(self) -> None:
        closes = "close" if hasattr(self.policy, "close") else "aclose"
        self._done(getattr(self.policy, closes)())

    def _done(self, value: Any) -> Any:
        return self.loop.run_until_complete(value) if asyncio.iscoroutine(value) else value


class Peer:
    """
    A client of any kind, as the stock ones are: one REQ socket, one frame there and one back.

    It knows MessagePack by our frames only; what the real packages write is in the golden bytes.
    """

    def __init__(self, url: str, kind: int = zmq.REQ) -> None:
        self.context = zmq.Context()
        self.socket = self.context.socket(kind)
        self.socket.setsockopt(zmq.IPV6, 1)
        self.socket.connect(url)

    def ask(self, endpoint: str, data: Any = None, **more: Any) -> Any:
        """Ask as GR00T's client does; return what comes back, errors included."""
        said = {"endpoint": endpoint, **({} if data is None else {"data": data}), **more}
        return self.send(
            encode_frame(said, kind=FrameKind.REQUEST, spelling=ArraySpelling.MSGPACK_NUMPY)
        )

    def send(self, *frames: bytes) -> Any:
        self.socket.send_multipart(frames)
        return self.receive()

    def receive(self, patience_s: float = 10.0) -> Any:
        assert self.socket.poll(int(1000 * patience_s)), "nothing came"
        return decode_frame(self.socket.recv_multipart()[-1], kind=FrameKind.RESPONSE)

    def __enter__(self) -> Peer:
        return self

    def __exit__(self, *_: object) -> None:
        self.context.destroy(linger=0)


class Dies(Exception):  # noqa: N818 - what a server does
    """Is raised by an answer that the server dies of."""


class Scripted:
    """
    A server that says what it is told to, and is a good one where it is told nothing.

    Args:
        answers: What is answered to an endpoint, one after the other, the last one for ever: a
            frame, several frames, nothing, or what a function returns.
        dialect: Which generation it is of.
        port: Where it listens.
    """

    def __init__(
        self,
        answers: Mapping[str, Sequence[Answer]] | None = None,
        *,
        dialect: GrootDialect = GrootDialect.N1_7,
        port: int = 0,
    ) -> None:
        codec = CODECS[dialect]
        self.answers: dict[str, list[Answer]] = {
            "get_modality_config": [codec.encode_modalities()],
            "ping": [codec.encode_pong()],
            "reset": [codec.encode_reset_done()],
            "get_action": [codec.encode_answer(chunk())],
            **{endpoint: list(each) for endpoint, each in (answers or {}).items()},
        }
        self.asked: list[str] = []
        self.requests: list[Any] = []
        self.peers: set[bytes] = set()
        self._context = zmq.Context()
        self._router = self._context.socket(zmq.ROUTER)
        self._router.setsockopt(zmq.LINGER, 100)
        self.port = self._bound(port)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        return f"tcp://127.0.0.1:{self.port}"

    def stop(self) -> None:
        self._stop.set()
        self._thread.join(10)

    def dead(self) -> None:
        """Wait until it died of an answer."""
        self._thread.join(10)
        assert not self._thread.is_alive()

    def __enter__(self) -> Scripted:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _bound(self, port: int) -> int:
        for patience in range(100, -1, -1):
            try:
                self._router.bind(f"tcp://127.0.0.1:{port or '*'}")
                break
            except zmq.ZMQError:  # the one before has not let go of the port yet
                if not patience:
                    raise
                time.sleep(0.05)
        return int(self._router.getsockopt_string(zmq.LAST_ENDPOINT).rpartition(":")[2])

    def _serve(self) -> None:
        try:
            while not self._stop.is_set():
                if self._router.poll(20):
                    self._answer(self._router.recv_multipart())
        except Dies:
            pass
        finally:
            self._router.close()
            self._context.term()

    def _answer(self, parts: list[bytes]) -> None:
        peer, *envelope, frame = parts
        request = decode_frame(frame, kind=FrameKind.REQUEST)
        self.peers.add(peer)
        self.asked.append(request["endpoint"])
        self.requests.append(request)
        left = self.answers[request["endpoint"]]
        answer = left.pop(0) if len(left) > 1 else left[0]
        if callable(answer):
            answer = answer()
        if answer is not None:
            frames = [answer] if isinstance(answer, bytes) else answer
            self._router.send_multipart([peer, *envelope, *frames])


def dies() -> bytes:
    """Answer with dying."""
    raise Dies


def action(values: Any = PLAN, dialect: GrootDialect = GrootDialect.N1_7) -> bytes:
    """Write an answer with *values*, whatever they are."""
    values = np.asarray(values, np.float32)[np.newaxis]
    parts = {"single_arm": values[..., :2], "gripper": values[..., 2:]}
    return encode_frame(
        [parts, {}], kind=FrameKind.RESPONSE, spelling=CODECS[dialect].dialect.spelling
    )
