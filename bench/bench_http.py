"""
How much longer does a policy behind HTTP take to answer than one behind openpi?

Our clients ask one policy that answers at once, behind a server of each protocol in a process of
its own, with three cameras of uint8 frames: as JPEG, as PNG and as plain pixels in MessagePack, as
JPEG in JSON, as servers of old have it, and by openpi. They are asked in turns, so that a busy
moment hits all. Prints the best, the median and the middle half of each, and of the paired ratios.
Apart from that, what it takes to write a request and to read it, without a socket, and how much
memory a call takes at its peak, in times of what is sent.

Pictures are drawn as a camera sees a table: shades, edges, a fine texture, and the noise of a
sensor. ``--noise`` shows noise and nothing else, which is the worst case of JPEG and PNG.

    python bench/bench_http.py --rounds 200
    python bench/bench_http.py --jpeg-at-most 2.5 --memory-at-most 2
    python bench/bench_http.py --noise
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tracemalloc
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from multiprocessing.connection import Connection

import attrs
import numpy as np
from bench_openpi import layout
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

from vlmcore._arrays import UInt8Array
from vlmcore.contracts.observation import Observation
from vlmcore.policy.interface import PolicyInfo
from vlmcore.testing import ScriptedPolicy
from vlmcore_robotics.clients.http import HttpPolicy
from vlmcore_robotics.clients.websocket import WebSocketPolicy
from vlmcore_robotics.servers.http import HttpPolicyServer
from vlmcore_robotics.servers.runtime import PolicyRuntime
from vlmcore_robotics.servers.threads import serve_in_thread
from vlmcore_robotics.servers.websocket import OpenPIServer
from vlmcore_robotics.wire.http_frames import WireEncoding
from vlmcore_robotics.wire.http_messages import ContentType
from vlmcore_robotics.wire.http_v1 import HttpCodec

OPENPI = "openpi"
_SENSOR_SIGMA = 2.0  # of 255, as a camera indoors has it
WAYS = {
    "HTTP raw": (WireEncoding.RAW, ContentType.MESSAGEPACK),
    "HTTP JPEG": (WireEncoding.JPEG, ContentType.MESSAGEPACK),
    "HTTP PNG": (WireEncoding.PNG, ContentType.MESSAGEPACK),
    "HTTP JPEG, JSON": (WireEncoding.JPEG, ContentType.JSON),
}


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").strip().splitlines()[0])
    parser.add_argument("--rounds", type=int, default=100, help="of each size")
    parser.add_argument("--noise", action="store_true", help="show noise, and no picture")
    parser.add_argument("--jpeg-at-most", type=float, help="fail when its median ratio is above")
    parser.add_argument("--memory-at-most", type=float, help="fail when a call takes more")
    options = parser.parse_args(arguments)
    if options.rounds < 2:
        parser.error("--rounds: expected at least 2")

    print(f"load of the machine: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    ratio = held = 0.0
    for height, width in ((224, 224), (480, 640)):
        seen = observation(height, width)
        seen = seen if options.noise else pictured(seen)
        print(f"\n{len(CAMERAS)} cameras of {height} x {width}, round trip")
        ratio, memory = round_trips(seen, options.rounds)
        held = max(held, memory)
        print("without a socket")
        show(measure(parts(seen), options.rounds))
    failed = [
        f"{what}: {got:.2f}, at most {most:g} wanted"
        for what, got, most in (
            ("JPEG to openpi", ratio, options.jpeg_at_most),
            ("memory of a call", held, options.memory_at_most),
        )
        if most is not None and got > most
    ]
    print("\n".join(failed))
    return 1 if failed else 0


def round_trips(seen: Observation, rounds: int) -> tuple[float, float]:
    """Ask in turns; return how much longer JPEG takes than openpi, and the most memory."""
    with ExitStack() as stack:
        http, openpi = stack.enter_context(served(serve))
        asks: dict[str, Callable[[], object]] = {}
        for name, (encoding, content_type) in WAYS.items():
            client = HttpPolicy(
                http, embodiment=robot(), encoding=encoding, content_type=content_type
            )
            asks[name] = asking(stack.enter_context(client), seen)
        theirs = WebSocketPolicy(openpi, embodiment=robot(), layout=layout())
        asks[OPENPI] = asking(stack.enter_context(theirs), seen)
        taken = measure(asks, rounds)
        show(taken)
        for name in WAYS:
            pairs = zip(taken[name], taken[OPENPI], strict=True)
            low, middle, high = statistics.quantiles((a / b for a, b in pairs), n=4)
            bests = min(taken[name]) / min(taken[OPENPI])
            print(
                f"  {name} / {OPENPI}: median {middle:.2f}, half in {low:.2f} to {high:.2f}, "
                f"of the bests {bests:.2f}"
            )
        pixels = sum(frames.nbytes for frames in seen.images.values())
        held = {name: peak(ask) / pixels for name, ask in asks.items()}
    print("  memory, in times of the pixels:", end=" ")
    print(", ".join(f"{name} {times:.2f}" for name, times in held.items()))
    return paired(taken, "HTTP JPEG", OPENPI), max(held.values())


def asking(client: HttpPolicy | WebSocketPolicy, seen: Observation) -> Callable[[], object]:
    return lambda: client.infer(seen)


def peak(ask: Callable[[], object]) -> int:
    """Measure how many bytes are held at the peak of a call."""
    ask()
    tracemalloc.start()
    try:
        ask()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def parts(seen: Observation) -> Sides:
    sides: Sides = {}
    for name, (encoding, content_type) in WAYS.items():
        codec = HttpCodec(
            policy="bench", action_names=NAMES, encoding=encoding, content_type=content_type
        )
        sides |= {
            f"write, {name[5:]}": writing(codec, seen),
            f"read, {name[5:]}": reading(codec, seen),
        }
    return sides


def writing(codec: HttpCodec, seen: Observation) -> Callable[[], object]:
    return lambda: codec.encode_request(seen)


def reading(codec: HttpCodec, seen: Observation) -> Callable[[], object]:
    request = codec.encode_request(seen)
    return lambda: codec.decode_request(request, captured_at_s=0.0)


def pictured(seen: Observation) -> Observation:
    """Show each camera a picture of the same size."""
    chance = np.random.default_rng(0)
    shown = {}
    for name, frames in seen.images.items():
        _, height, width, _ = frames.shape
        shown[name] = picture(height, width, chance)[np.newaxis]
    return attrs.evolve(seen, images=shown)


def picture(height: int, width: int, chance: np.random.Generator) -> UInt8Array:
    """Draw a lit table with a grain, things with sharp edges on it, and the noise of a sensor."""
    rows, columns = np.mgrid[:height, :width] / height
    light = 90 + 80 * rows + 30 * columns
    grain = 6 * np.sin(160 * columns + 12 * np.sin(9 * rows))
    scene = (light + grain)[..., np.newaxis] * (1.0, 0.9, 0.75)
    for _ in range(12):
        top, left = chance.uniform(0, (1, width / height))
        size, colour = chance.uniform(0.03, 0.2), chance.uniform(0, 255, 3)
        if chance.random() < 0.5:
            inside = np.hypot(rows - top, columns - left) < size
        else:
            inside = np.maximum(abs(rows - top), abs(columns - left)) < size
        scene[inside] = colour * (0.7 + 0.3 * rows[inside, np.newaxis])
    noisy = scene + chance.normal(0, _SENSOR_SIGMA, scene.shape)
    return np.clip(np.rint(noisy), 0, 255).astype(np.uint8)


def serve(parent: Connection) -> None:
    info = PolicyInfo(name="bench", action_names=NAMES)
    policy = ScriptedPolicy(lambda _: np.zeros((STEPS, len(NAMES))), info=info)
    with (
        PolicyRuntime(policy) as runtime,
        serve_in_thread(HttpPolicyServer(runtime, port=0)) as http,
        serve_in_thread(OpenPIServer(runtime, layout=layout(), port=0)) as openpi,
    ):
        parent.send((http, openpi))
        parent.poll(None)


if __name__ == "__main__":
    sys.exit(main())
