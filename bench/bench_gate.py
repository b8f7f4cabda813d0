"""
What does vetting a chunk cost, against the same arithmetic without a gate, and against torch?

The sides are taken in turns, so that a busy moment hits all of them, after some rounds that warm
up. A turn is some calls in a row: a side does not pay for caches that another one has filled.
Prints the best, the median and the middle half of each, and of the paired ratios. ``numpy`` is a
clip to the bounds and the largest difference, without a report and without looking at the first
step; ``torch`` is the gate as people write it, a loop over the steps of tensors. At last, what it
costs to add up changes: ``free`` is the same space without bounds of positions.

    python bench/bench_gate.py --rounds 500
    python bench/bench_gate.py --clean-at-most-us 40 --clamped-at-most-us 250
"""

from __future__ import annotations

import argparse
import functools
import importlib.util
import statistics
import sys
import time
from collections.abc import Callable, Sequence

import numpy as np

from vlmcore.contracts.actions import ActionChunk
from vlmcore.contracts.embodiment import ActionDim, ActionSpace, Reference
from vlmcore.safety import Remedy, SafetyGate

Sides = dict[str, Callable[[], object]]
CALLS = 20  # in a turn
OURS = "vlmcore"
STEP, BOUND = 0.12, 3.0


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").strip().splitlines()[0])
    parser.add_argument("--rounds", type=int, default=200, help="of the small chunks")
    parser.add_argument("--clean-at-most-us", type=float, help="fail when the median is above")
    parser.add_argument("--clamped-at-most-us", type=float, help="fail when the median is above")
    options = parser.parse_args(arguments)
    if options.rounds < 2:
        parser.error("--rounds: expected at least 2")

    few = 2
    medians, bests = {}, {}
    for title, steps, dims, rounds in (
        ("50 x 14", 50, 14, options.rounds),
        ("512 x 64", 512, 64, few),
        ("4,096 x 64", 4096, 64, few),
    ):
        for kind, values in (("clean", calm(steps, dims)), ("clamped", wild(steps, dims))):
            print(f"\n{title}, {kind}")
            taken = measure(sides(values), rounds)
            show(taken)
            medians[title, kind] = 1e6 * statistics.median(taken[OURS])
            bests[title, kind] = 1e9 * min(taken[OURS]) / values.size
    print("\n50 x 14, changes that are added up")
    show(measure(moving_sides(np.diff(calm(51, 14), axis=0)), options.rounds))
    print("\nat best, a value takes")
    for (title, kind), nanoseconds in bests.items():
        print(f"  {title + ', ' + kind:<22}{nanoseconds:8.1f} ns")
    bounds = {"clean": options.clean_at_most_us, "clamped": options.clamped_at_most_us}
    over = [kind for kind, most in bounds.items() if most and medians["50 x 14", kind] > most]
    for kind in over:
        print(f"{kind}: the median is above {bounds[kind]} us")
    return 1 if over else 0


def calm(steps: int, dims: int) -> np.ndarray:
    """Draw a chunk that keeps every limit."""
    walk = np.cumsum(np.random.default_rng(0).uniform(-STEP, STEP, (steps, dims)), axis=0)
    return np.abs((walk + BOUND) % (4 * BOUND) - 2 * BOUND) - BOUND


def wild(steps: int, dims: int) -> np.ndarray:
    """Draw a chunk of which every number must be clamped."""
    return np.where(np.arange(steps)[:, np.newaxis] % 2, -BOUND, BOUND) * np.ones(dims)


def sides(values: np.ndarray) -> Sides:
    """Prepare each way to look at *values*."""
    names = tuple(f"joint_{i}" for i in range(values.shape[1]))
    dims = tuple(ActionDim(name=name, low=-BOUND, high=BOUND, max_step=STEP) for name in names)
    gate = SafetyGate(space=ActionSpace(dims=dims, rate_hz=50), remedy=Remedy.CLAMP)
    chunk = ActionChunk(values=values, names=names, source="bench", observed_at_s=0)
    start = np.clip(values[0], -STEP, STEP) if values[0, 0] == BOUND else values[0].copy()
    made: Sides = {OURS: functools.partial(gate.vet, chunk, last_command=start)}
    made["numpy"] = functools.partial(clip_and_difference, values, gate.actions)
    if importlib.util.find_spec("torch"):
        import torch  # noqa: PLC0415

        torch.set_num_threads(1)
        tensors = [torch.tensor(each) for each in (values, start, gate.actions.max_step)]
        made["torch"] = functools.partial(torch_loop, torch, *tensors)
    return made


def moving_sides(values: np.ndarray) -> Sides:
    """Prepare to look at changes, with and without adding them up."""
    names = tuple(f"slide_{i}" for i in range(values.shape[1]))
    chunk = ActionChunk(values=values, names=names, source="bench", observed_at_s=0)
    last_command = np.zeros(len(names))
    made: Sides = {}
    for side, where in ((OURS, {"position_low": -99.0, "position_high": 99.0}), ("free", {})):
        dims = tuple(
            ActionDim(
                name=name,
                reference=Reference.DELTA,
                low=-BOUND,
                high=BOUND,
                max_step=BOUND,
                **where,
            )
            for name in names
        )
        gate = SafetyGate(space=ActionSpace(dims=dims, rate_hz=50))
        position = dict.fromkeys(gate.actions.position_names, 0.0)
        made[side] = functools.partial(
            gate.vet, chunk, last_command=last_command, position=position
        )
    return made


def clip_and_difference(values: np.ndarray, space: ActionSpace) -> tuple[np.ndarray, float]:
    """Do the least: clip, and find the largest step."""
    clipped = np.clip(values, space.low, space.high)
    return clipped, float(np.abs(np.diff(clipped, axis=0)).max())


def torch_loop(torch, values, start, max_step):  # noqa: ANN001, ANN201
    """Clamp and count as a loop over tensors."""
    out, before, count = [], start, 0
    for row in values:
        held = torch.where(torch.isfinite(row), row, before)
        bounded = torch.clamp(held, -BOUND, BOUND)
        safe = torch.maximum(torch.minimum(bounded, before + max_step), before - max_step)
        count += int((safe != row).sum())
        out.append(safe)
        before = safe
    return torch.stack(out), count


def measure(made: Sides, rounds: int) -> dict[str, list[float]]:
    """Time each side in *rounds* turns of some calls; every other round in the other order."""
    seconds: dict[str, list[float]] = {side: [] for side in made}
    warm_up = min(rounds // 4 + 1, 50)
    for turn in range(-warm_up, rounds):
        for side in list(made)[:: -1 if turn % 2 else 1]:
            took = []
            for _ in range(CALLS):
                started = time.perf_counter()
                made[side]()
                took.append(time.perf_counter() - started)
            if turn >= 0:
                seconds[side] += took
    return seconds


def show(seconds: dict[str, list[float]]) -> None:
    """Print what was measured."""
    for side, times in seconds.items():
        best = f"best {1e6 * min(times):10.2f} us  "
        print(f"  {side:<18}{best}{summary([1e6 * each for each in times], 'us')}")
    for side in list(seconds)[1:]:
        pairs = zip(seconds[OURS], seconds[side], strict=True)
        best = f"best {min(seconds[OURS]) / min(seconds[side]):10.2f}     "
        ratios = summary([ours / other for ours, other in pairs], "")
        print(f"  {OURS + ' / ' + side:<18}{best}{ratios}")


def summary(values: Sequence[float], unit: str) -> str:
    """Write the median, and the middle half of the values."""
    low, middle, high = statistics.quantiles(values, n=4, method="inclusive")
    return f"median {middle:10.2f} {unit:<2}  middle half {low:.2f} to {high:.2f}  n={len(values)}"


if __name__ == "__main__":
    sys.exit(main())
