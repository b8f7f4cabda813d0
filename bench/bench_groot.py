"""
How long does a GR00T server take to answer our client, and how long GR00T's own?

Both ask the same server of ours, in a process of its own, which answers at once, with three cameras
of uint8 frames; a plain ZeroMQ socket sends and gets as many bytes, which is the limit. They are
asked in turns, so that a busy moment hits all, after some rounds that warm up. Prints the best, the
median and the middle half of each, and of the paired ratios. Apart from that, what it takes to
write a request and to read an answer, without a socket.

GR00T's client is not on PyPI: say where its class is. Without it, the other side is the least that
speaks the same, a REQ socket with msgpack and msgpack-numpy; without those, there is none.

    python bench/bench_groot.py --rounds 200
    python bench/bench_groot.py --path Isaac-GR00T --client gr00t.policy.server_client:PolicyClient
    python bench/bench_groot.py --at-most 1.0
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from multiprocessing.connection import Connection
from typing import Any

import numpy as np
import zmq
from round_trips import (
    CAMERAS,
    NAMES,
    STEPS,
    Sides,
    measure,
    observation,
    paired,
    robot,
    served,
    show,
)

from vlmcore.contracts.actions import ActionChunk
from vlmcore.contracts.observation import Observation
from vlmcore.policy.interface import PolicyInfo
from vlmcore.testing import ScriptedPolicy
from vlmcore_robotics.clients.zeromq import ZmqPolicy
from vlmcore_robotics.servers.runtime import PolicyRuntime
from vlmcore_robotics.servers.threads import serve_in_thread
from vlmcore_robotics.servers.zeromq import GrootServer
from vlmcore_robotics.wire.groot import GrootCodec
from vlmcore_robotics.wire.groot_dialects import GrootDialect
from vlmcore_robotics.wire.groot_info import modalities_from_info
from vlmcore_robotics.wire.groot_layout import ActionStream, GrootLayout, StateSlice, VideoKey

OURS, THEIRS, LIMIT = "vlmcore", "GR00T client", "plain ZeroMQ"
INFO = PolicyInfo(name="bench", action_names=NAMES, horizon=STEPS)
LAYOUT = GrootLayout(
    video=[VideoKey(key=name, camera=name) for name in CAMERAS],
    state=[StateSlice(key="arm", start=0, end=len(NAMES))],
    action=[ActionStream(key="arm", names=NAMES)],
    language="annotation.human.task_description",
)
MODALITIES = modalities_from_info(INFO, LAYOUT)
CODEC = GrootCodec(policy="bench", layout=LAYOUT, modalities=MODALITIES, dialect=GrootDialect.N1_7)
CHUNK = ActionChunk(
    values=np.zeros((STEPS, len(NAMES))), names=NAMES, source="bench", observed_at_s=0.0
)

Ask = Callable[[Any], object]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").strip().splitlines()[0])
    parser.add_argument("--rounds", type=int, default=200, help="of each size")
    parser.add_argument("--client", help="GR00T's client, as module:class")
    parser.add_argument("--path", help="the folder that its module is in")
    parser.add_argument("--at-most", type=float, help="fail when the median ratio is above")
    options = parser.parse_args(arguments)
    if options.rounds < 2:
        parser.error("--rounds: expected at least 2")
    if options.path:
        sys.path.append(options.path)

    print(f"load of the machine: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    ratios = []
    for height, width in ((224, 224), (480, 640)):
        seen = observation(height, width)
        print(f"\n{len(CAMERAS)} cameras of {height} x {width}, round trip")
        ratios.append(round_trips(seen, options.rounds, options.client))
        print("without a socket")
        show(measure(parts(seen), options.rounds))
    worst = max(ratios)
    if options.at_most is not None and worst > options.at_most:
        print(f"\ntoo slow: {worst:.2f} times the {THEIRS}, at most {options.at_most:g} wanted")
        return 1
    return 0


def round_trips(seen: Observation, rounds: int, client: str | None) -> float:
    """Ask in turns; return how much longer we take, by the median of the paired ratios."""
    request = LAYOUT.request_from([seen], MODALITIES)
    frame = CODEC.encode_request(seen)
    with ExitStack() as stack:
        port, echo = stack.enter_context(served(serve))
        ours = stack.enter_context(
            ZmqPolicy(f"localhost:{port}", embodiment=robot(), layout=LAYOUT)
        )
        plain = stack.enter_context(asking(echo))
        sides: Sides = {OURS: lambda: ours.infer(seen), LIMIT: lambda: plain(frame)}
        theirs = peer(port, client, stack)
        if theirs is not None:
            sides[THEIRS] = lambda: theirs(request)
        taken = measure(sides, rounds)
    show(taken, OURS, THEIRS, LIMIT)
    return paired(taken, OURS, THEIRS)


def peer(port: int, client: str | None, stack: ExitStack) -> Ask | None:
    """Make the other side: GR00T's client if it is there, else the least that speaks the same."""
    if client is not None:
        module, _, name = client.partition(":")
        theirs = getattr(importlib.import_module(module), name)(host="127.0.0.1", port=port)
        return theirs.get_action
    if not all(map(importlib.util.find_spec, ("msgpack", "msgpack_numpy"))):
        return None
    import msgpack  # noqa: PLC0415 - may be missing
    import msgpack_numpy  # noqa: PLC0415 - may be missing

    ask = stack.enter_context(asking(port))

    def least(request: Any) -> object:
        said = {"endpoint": "get_action", "data": {"observation": request, "options": None}}
        answer = ask(msgpack.packb(said, default=msgpack_numpy.encode))
        return msgpack.unpackb(answer, object_hook=msgpack_numpy.decode)

    return least


@contextmanager
def asking(port: int) -> Iterator[Callable[[bytes], bytes]]:
    """Connect a plain REQ socket."""
    with zmq.Context() as context, context.socket(zmq.REQ) as socket:
        socket.connect(f"tcp://127.0.0.1:{port}")

        def ask(frame: bytes) -> bytes:
            socket.send(frame)  # as GR00T's client does: what is sent is copied
            return bytes(socket.recv())

        yield ask


def serve(parent: Connection) -> None:
    policy = ScriptedPolicy(lambda _: CHUNK.values, info=INFO)
    with (
        PolicyRuntime(policy) as runtime,
        serve_in_thread(GrootServer(runtime, layout=LAYOUT, port=0)) as url,
        zmq.Context() as context,
        context.socket(zmq.REP) as plain,
    ):
        answer = CODEC.encode_answer(CHUNK)
        parent.send((int(url.rpartition(":")[2]), plain.bind_to_random_port("tcp://127.0.0.1")))
        while True:
            plain.recv()
            plain.send(answer)


def parts(seen: Observation) -> Sides:
    request, answer = CODEC.encode_request(seen), CODEC.encode_answer(CHUNK)
    return {
        "encode request": lambda: CODEC.encode_request(seen),
        "decode request": lambda: CODEC.decode_call(request, captured_at_s=0.0),
        "encode answer": lambda: CODEC.encode_answer(CHUNK),
        "decode answer": lambda: CODEC.decode_answer(answer, observed_at_s=0.0),
    }


if __name__ == "__main__":
    sys.exit(main())
