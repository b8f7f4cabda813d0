"""
How long does ``import vlmcore`` take, against NumPy and attrs, which it needs anyway?

Whole fresh processes, taken in turns so that a busy moment hits both sides, after one round of each
that warms the file cache. Prints the median and the spread of each side and of the paired ratio.

    python bench/bench_import_time.py --rounds 30
    python bench/bench_import_time.py --at-most 1.5   # exit code 1 when the median ratio is above
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence

SIDES = {
    "numpy, attrs": "import numpy, attrs",
    "vlmcore": "import vlmcore",
}
BASE, OURS = SIDES


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").strip().splitlines()[0])
    parser.add_argument("--rounds", type=int, default=20, help="processes of each side")
    parser.add_argument("--at-most", type=float, help="fail when the median ratio is above this")
    options = parser.parse_args(arguments)
    if options.rounds < 1:
        parser.error("--rounds: expected at least 1")

    seconds = measure(options.rounds)
    for side, times in seconds.items():
        print(f"import {side:<14} {summary([1000 * value for value in times], 'ms')}")
    ratios = [ours / base for ours, base in zip(seconds[OURS], seconds[BASE], strict=True)]
    ratio = statistics.median(ratios)
    print(f"ratio {'':<15} {summary(ratios, '')}")
    if options.at_most is not None and ratio > options.at_most:
        print(f"the median ratio is above {options.at_most}")
        return 1
    return 0


def measure(rounds: int) -> dict[str, list[float]]:
    """Time each side *rounds* times, in turns; every other round in the other order."""
    for statement in SIDES.values():
        seconds_of(statement)
    seconds: dict[str, list[float]] = {side: [] for side in SIDES}
    for turn in range(rounds):
        for side in (BASE, OURS) if turn % 2 else (OURS, BASE):
            seconds[side].append(seconds_of(SIDES[side]))
    return seconds


def seconds_of(statement: str) -> float:
    """Time one fresh process that runs *statement*."""
    started = time.perf_counter()
    subprocess.run([sys.executable, "-c", statement], check=True)
    return time.perf_counter() - started


def summary(values: Sequence[float], unit: str) -> str:
    """Write the median, and the middle half of the values."""
    middle = statistics.median(values)
    if len(values) < 2:
        return f"{middle:8.2f} {unit}"
    low, _, high = statistics.quantiles(values, n=4, method="inclusive")
    return f"median {middle:8.2f} {unit:<2}  middle half {low:.2f} to {high:.2f}  n={len(values)}"


if __name__ == "__main__":
    sys.exit(main())
