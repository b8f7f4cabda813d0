"""Servers to try openpi clients with: ours, and ones that misbehave, all over real sockets."""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import attrs
import numpy as np
from websockets.utils import accept_key

from client_cases import exactly, hear_request, skip
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
from vlmcore_robotics.clients import AsyncWebSocketPolicy, WebSocketPolicy
from vlmcore_robotics.servers.runtime import PolicyRuntime
from vlmcore_robotics.servers.threads import serve_in_thread
from vlmcore_robotics.servers.websocket import OpenPIServer
from vlmcore_robotics.wire.frames import FrameKind, encode_frame
from vlmcore_robotics.wire.observation_layout import CameraKey, ObservationLayout, StateKey

NAMES = ("shoulder", "elbow")
ROBOT = Embodiment(
    name="two-joint arm",
    state_names=NAMES,
    actions=ActionSpace(
        dims=[ActionDim(name=name, unit="rad", low=-3, high=3, max_step=0.1) for name in NAMES],
        rate_hz=20,
    ),
    cameras=[CameraSpec(name="front", height_px=8, width_px=8)],
    limits_source=LimitsSource.TEMPLATE,
)
LAYOUT = ObservationLayout(
    cameras=[CameraKey(camera="front", key="observation/image")],
    state=[StateKey(key="observation/state", count=2)],
)
INFO = PolicyInfo(
    name="scripted",
    action_names=NAMES,
    state_names=NAMES,
    cameras=ROBOT.cameras,
    horizon=2,
    rate_hz=20,
)
SEEN = example_observation(ROBOT, captured_at_s=7.5)
PLAN = [[0.1, 0.2], [0.3, 0.4]]
METADATA = encode_frame({}, kind=FrameKind.METADATA)
ANSWER = encode_frame({"actions": np.array(PLAN)}, kind=FrameKind.RESPONSE)
BINARY, TEXT, CLOSE = 2, 1, 8


def with_eyes(count: int, *, height_px: int, width_px: int) -> tuple[Embodiment, Observation]:
    """Give the arm other cameras, and something to see."""
    front = ROBOT.cameras[0]
    cameras = [
        attrs.evolve(front, name=f"eye{i}", height_px=height_px, width_px=width_px)
        for i in range(count)
    ]
    frames = np.zeros((height_px, width_px, 3), np.uint8)
    seen = attrs.evolve(SEEN, images={camera.name: frames for camera in cameras})
    return attrs.evolve(ROBOT, cameras=cameras), seen


def seen_at(state: float) -> Observation:
    """Make an observation that an answer can be told by."""
    return Observation(
        instruction="pick up the cup",
        state=[state, 0.0],
        images=SEEN.images,
        frame_rate_hz=10.0,
        captured_at_s=state,
    )


def echoing(**options: Any) -> ScriptedPolicy:
    """Make a policy that answers with the state that it is shown."""
    return ScriptedPolicy(lambda seen: [seen.state.tolist()] * 2, info=INFO, **options)


@contextmanager
def serving(policy: Any = None, *, max_waiting: int = 8, **options: Any) -> Iterator[str]:
    """Serve *policy*, by default one that echoes; yield where."""
    options = {"layout": LAYOUT, "port": 0, **options}
    with (
        PolicyRuntime(policy or echoing(), max_waiting=max_waiting) as runtime,
        serve_in_thread(OpenPIServer(runtime, **options)) as url,
    ):
        yield url


def client(url: str, **options: Any) -> WebSocketPolicy:
    """Make a client of the arm."""
    return WebSocketPolicy(
        url, **{"embodiment": ROBOT, "layout": LAYOUT, "timeout_s": 5, **options}
    )


def async_client(url: str, **options: Any) -> AsyncWebSocketPolicy:
    """Make a client of the arm for asyncio."""
    return AsyncWebSocketPolicy(
        url, **{"embodiment": ROBOT, "layout": LAYOUT, "timeout_s": 5, **options}
    )


def shake_hands(connection: socket.socket) -> bytes:
    """Do the handshake of WebSocket, and return what was asked."""
    heard = hear_request(connection)
    key = next(
        line.split(b": ")[1]
        for line in heard.split(b"\r\n")
        if line.lower().startswith(b"sec-websocket-key")
    )
    connection.sendall(
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        b"Sec-WebSocket-Accept: " + accept_key(key.decode()).encode() + b"\r\n\r\n"
    )
    return heard


def framed(payload: bytes, opcode: int = BINARY) -> bytes:
    """Write one frame of WebSocket, as a server does."""
    size = len(payload)
    if size < 126:
        length = bytes((size,))
    elif size < 0x10000:
        length = b"\x7e" + struct.pack(">H", size)
    else:
        length = b"\x7f" + struct.pack(">Q", size)
    return bytes((0x80 | opcode,)) + length + payload


def greet(connection: socket.socket) -> None:
    """Do all until a request is awaited."""
    shake_hands(connection)
    connection.sendall(framed(METADATA))


def read_frame(connection: socket.socket) -> bytes:
    """Read one frame of a client, its head and mask included."""
    head = exactly(connection, 2)
    size = head[1] & 0x7F
    if size == 126:
        more = exactly(connection, 2)
        size = int.from_bytes(more, "big")
    elif size == 127:
        more = exactly(connection, 8)
        size = int.from_bytes(more, "big")
    return head + exactly(connection, 4 + size)


def skip_message(connection: socket.socket) -> None:
    """Read one message of a client, of one frame or more, and keep nothing of it."""
    is_last = False
    while not is_last:
        head = exactly(connection, 2)
        is_last = bool(head[0] & 0x80)
        size = head[1] & 0x7F
        if size > 125:
            size = int.from_bytes(exactly(connection, 2 if size == 126 else 8), "big")
        skip(connection, 4 + size)


def answering(connection: socket.socket) -> None:
    """Be a good server, for ever."""
    greet(connection)
    while True:
        read_frame(connection)
        connection.sendall(framed(ANSWER))
