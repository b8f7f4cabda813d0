"""
How long does an openpi server take to answer our client, and how long openpi-client?

Both ask the same server of ours, which runs in a process of its own and answers at once, with three
cameras of uint8 frames. They are asked in turns, so that a busy moment hits both, after some rounds
that warm up. Prints the best, the median and the middle half of each, and of the paired ratios.
Apart from that, what it takes to write a request and to read an answer, without a socket. Without
openpi-client, ours only.

    python bench/bench_openpi.py --rounds 200
    python bench/bench_openpi.py --at-most 1.0
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import sys
from collections.abc import Sequence
from multiprocessing.connection import Connection

import numpy as np
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
from vlmcore_robotics.clients.websocket import WebSocketPolicy
from vlmcore_robotics.servers.runtime import PolicyRuntime
from vlmcore_robotics.servers.threads import serve_in_thread
from vlmcore_robotics.servers.websocket import OpenPIServer
from vlmcore_robotics.wire.observation_layout import CameraKey, ObservationLayout, StateKey
from vlmcore_robotics.wire.openpi import OpenPICodec

OURS, THEIRS = "vlmcore", "openpi-client"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").strip().splitlines()[0])
    parser.add_argument("--rounds", type=int, default=200, help="of each size")
    parser.add_argument("--at-most", type=float, help="fail when the median ratio is above")
    options = parser.parse_args(arguments)
    if options.rounds < 2:
        parser.error("--rounds: expected at least 2")

    print(f"load of the machine: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    ratios = []
    for height, width in ((224, 224), (480, 640)):
        seen = observation(height, width)
        print(f"\n{len(CAMERAS)} cameras of {height} x {width}, round trip")
        ratios.append(round_trips(seen, options.rounds))
        print("without a socket")
        show(measure(parts(seen), options.rounds))
    worst = max(ratios)
    if options.at_most is not None and worst > options.at_most:
        print(f"\ntoo slow: {worst:.2f} times {THEIRS}, at most {options.at_most:g} wanted")
        return 1
    return 0


def round_trips(seen: Observation, rounds: int) -> float:
    """Ask in turns; return how much longer we take, by the median of the paired ratios."""
    with (
        served(serve) as url,
        WebSocketPolicy(url, embodiment=robot(), layout=layout()) as ours,
    ):
        sides: Sides = {OURS: lambda: ours.infer(seen)}
        if importlib.util.find_spec("openpi_client") is not None:
            from openpi_client.websocket_client_policy import (  # noqa: PLC0415 - may be missing
                WebsocketClientPolicy,
            )

            theirs = WebsocketClientPolicy(url)
            request = layout().request_from(seen)
            sides[THEIRS] = lambda: theirs.infer(request)
        taken = measure(sides, rounds)
        show(taken, OURS, THEIRS)
    return paired(taken, OURS, THEIRS)


def serve(parent: Connection) -> None:
    info = PolicyInfo(name="bench", action_names=NAMES)
    policy = ScriptedPolicy(lambda _: np.zeros((STEPS, len(NAMES))), info=info)
    with (
        PolicyRuntime(policy) as runtime,
        serve_in_thread(OpenPIServer(runtime, layout=layout(), port=0)) as url,
    ):
        parent.send(url)
        parent.poll(None)


def parts(seen: Observation) -> Sides:
    codec = OpenPICodec(policy="bench", layout=layout(), action_names=NAMES)
    request = codec.encode_request(seen)
    chunk = ActionChunk(
        values=np.zeros((STEPS, len(NAMES))), names=NAMES, source="bench", observed_at_s=0.0
    )
    answer = codec.encode_answer(chunk, policy_ms=1.0, server_ms=1.0, previous_ms=1.0)
    return {
        "encode request": lambda: codec.encode_request(seen),
        "decode request": lambda: codec.decode_request(request, captured_at_s=0.0),
        "encode answer": lambda: codec.encode_answer(chunk, policy_ms=1.0),
        "decode answer": lambda: codec.decode_answer(answer, observed_at_s=0.0),
    }


def layout() -> ObservationLayout:
    return ObservationLayout(
        cameras=[CameraKey(camera=name, key=f"observation/{name}") for name in CAMERAS],
        state=[StateKey(key="observation/state", count=len(NAMES))],
    )


if __name__ == "__main__":
    sys.exit(main())
