"""What the benchmarks of round trips share: a robot, what it sees, a server, and turns."""

from __future__ import annotations

import multiprocessing
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from typing import Any

import numpy as np

from vlmcore.contracts.embodiment import (
    ActionDim,
    ActionSpace,
    CameraSpec,
    Embodiment,
    LimitsSource,
)
from vlmcore.contracts.observation import Observation

NAMES = tuple(f"joint_{i}" for i in range(8))
CAMERAS = ("front", "left", "right")
STEPS = 50

Sides = dict[str, Callable[[], object]]


@contextmanager
def served(serve: Callable[[Connection], None]) -> Iterator[Any]:
    """Serve in another process; yield what *serve* sends first, as where that is."""
    spawn = multiprocessing.get_context("spawn")
    here, there = spawn.Pipe()
    process = spawn.Process(target=serve, args=(there,), daemon=True)
    process.start()
    try:
        yield here.recv()
    finally:
        process.terminate()
        process.join()


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


def show(taken: dict[str, list[float]], *compared: str) -> None:
    """Print the times of each side, and how many times as long the first of *compared* takes."""
    for name, times in taken.items():
        low, middle, high = (1000 * each for each in statistics.quantiles(times, n=4))
        print(
            f"  {name:<15} best {1000 * min(times):8.3f}  median {middle:8.3f} ms"
            f"  half in {low:.3f} to {high:.3f}"
        )
    for other in compared[1:]:
        if {compared[0], other} <= taken.keys():
            pairs = zip(taken[compared[0]], taken[other], strict=True)
            low, middle, high = statistics.quantiles((a / b for a, b in pairs), n=4)
            print(
                f"  {compared[0]} / {other}: median {middle:.2f}, half in {low:.2f} to {high:.2f}"
            )


def paired(taken: dict[str, list[float]], ours: str, theirs: str) -> float:
    """Take the median of the paired ratios; 1 if the other side was not there."""
    if theirs not in taken:
        return 1.0
    return statistics.median(a / b for a, b in zip(taken[ours], taken[theirs], strict=True))


def observation(height: int, width: int) -> Observation:
    pixels = np.random.default_rng(0).integers(0, 256, (len(CAMERAS), height, width, 3), np.uint8)
    return Observation(
        instruction="pick up the cup",
        state=np.zeros(len(NAMES)),
        images=dict(zip(CAMERAS, pixels, strict=True)),
        frame_rate_hz=10.0,
        captured_at_s=0.0,
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
