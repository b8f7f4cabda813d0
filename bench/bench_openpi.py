"""
How long does an openpi server take to answer our client, and how long openpi-client?

Both ask the same server of ours, which answers at once, with three cameras of uint8 frames. They
are asked in turns, so that a busy moment hits both, after some rounds that warm up. Prints the
best, the median and the middle half of each, and of the paired ratios. Apart from that, what it
takes to write a request and to read an answer, without a socket. Without openpi-client, ours only.

    python bench/bench_openpi.py --rounds 200
    python bench/bench_openpi.py --at-most 1.0
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import statistics
import sys
import time
from collections.abc import Callable, Sequence

import numpy as np

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
from vlmcore.testing import ScriptedPolicy
from vlmcore_robotics.clients.websocket import WebSocketPolicy
from vlmcore_robotics.servers.runtime import PolicyRuntime
from vlmcore_robotics.servers.threads import serve_in_thread
from vlmcore_robotics.servers.websocket import OpenPIServer
from vlmcore_robotics.wire.observation_layout import CameraKey, ObservationLayout, StateKey
from vlmcore_robotics.wire.openpi import OpenPICodec

NAMES = tuple(f"joint_{i}" for i in range(8))
CAMERAS = ("front", "left", "right")
STEPS = 50
OURS, THEIRS = "vlmcore", "openpi-client"

Sides = dict[str, Callable[[], object]]


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
    info = PolicyInfo(name="bench", action_names=NAMES)
    policy = ScriptedPolicy(lambda _: np.zeros((STEPS, len(NAMES))), info=info)
    with (
        PolicyRuntime(policy) as runtime,
        serve_in_thread(OpenPIServer(runtime, layout=layout(), port=0)) as url,
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
        show(taken)
    if THEIRS not in taken:
        return 1.0
    return statistics.median(a / b for a, b in zip(taken[OURS], taken[THEIRS], strict=True))


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


def measure(sides: Sides, rounds: int) -> dict[str, list[float]]:
    """Time each side in each round, the first one in turns."""
    taken: dict[str, list[float]] = {name: [] for name in sides}
    order = list(sides)
    for i in range(rounds + rounds // 10):
        order.append(order.pop(0))
        for name in order:
            began_at_s = time.perf_counter()
            sides[name]()
            if i >= rounds // 10:
                taken[name].append(time.perf_counter() - began_at_s)
    return taken


def show(taken: dict[str, list[float]]) -> None:
    for name, times in taken.items():
        low, middle, high = (1000 * each for each in statistics.quantiles(times, n=4))
        print(
            f"  {name:<15} best {1000 * min(times):8.3f}  median {middle:8.3f} ms"
            f"  half in {low:.3f} to {high:.3f}"
        )
    if {OURS, THEIRS} <= taken.keys():
        ratios = [a / b for a, b in zip(taken[OURS], taken[THEIRS], strict=True)]
        low, middle, high = statistics.quantiles(ratios, n=4)
        print(f"  {OURS} / {THEIRS}: median {middle:.2f}, half in {low:.2f} to {high:.2f}")


def observation(height: int, width: int) -> Observation:
    pixels = np.random.default_rng(0).integers(0, 256, (len(CAMERAS), height, width, 3), np.uint8)
    return Observation(
        instruction="pick up the cup",
        state=np.zeros(len(NAMES)),
        images=dict(zip(CAMERAS, pixels, strict=True)),
        frame_rate_hz=10.0,
        captured_at_s=0.0,
    )


def layout() -> ObservationLayout:
    return ObservationLayout(
        cameras=[CameraKey(camera=name, key=f"observation/{name}") for name in CAMERAS],
        state=[StateKey(key="observation/state", count=len(NAMES))],
    )


def robot() -> Embodiment:
    dims = [ActionDim(name=name, unit="rad", low=-3, high=3, max_step=0.1) for name in NAMES]
    return Embodiment(
        name="bench",
        state_names=NAMES,
        actions=ActionSpace(dims=dims, rate_hz=20),
        cameras=[CameraSpec(name=name) for name in CAMERAS],
        limits_source=LimitsSource.TEMPLATE,
    )


if __name__ == "__main__":
    sys.exit(main())
