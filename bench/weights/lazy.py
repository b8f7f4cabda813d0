"""
What does it cost to run a model in a part of its memory?

A chain of linear layers, run in rounds as a language model is, with budgets of parts of its size:
seconds of a round once the order is known, what is read in it, and the peak of the memory of the
process, beside a full load. The file is in the page cache, as it is after the first round where
there is room; a cold disk is slower by what it is slower.

    python bench/weights/lazy.py --layers 48 --width 2048
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch import nn

from vlmcore.weights.lazy import load_lazily
from vlmcore.weights.modules import load_into
from vlmcore.weights.pool import WeightPool
from vlmcore.weights.report import Way


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").strip().splitlines()[0])
    parser.add_argument("--layers", type=int, default=48)
    parser.add_argument("--width", type=int, default=2048)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args(arguments)
    x = torch.ones(1, options.width, dtype=torch.bfloat16)
    with tempfile.TemporaryDirectory() as folder, torch.inference_mode():
        path = Path(folder) / "m.safetensors"
        full = chain(options.layers, options.width, device="cpu")
        save_file(full.state_dict(), path)
        load_into(full, path, way=Way.COPY)
        size = path.stat().st_size
        show("full load", 0, 0.0, [timed(full, x) for _ in range(options.rounds)])
        for share in (1.0, 0.5, 1 / 3, 0.1):
            for reads_ahead in (True, False):
                pool = WeightPool(int(size * share) + (1 << 20), reads_ahead=reads_ahead)
                model = chain(options.layers, options.width, device="meta")
                with load_lazily(model, path, pool=pool):
                    assert all(torch.equal(full(x), model(x)) for _ in range(2))
                    before = pool.loaded_bytes
                    seconds = [timed(model, x) for _ in range(options.rounds)]
                    read = (pool.loaded_bytes - before) / options.rounds / size
                words = "read ahead" if reads_ahead else "not read ahead"
                show(f"{share:.2f} of it, {words}", pool.peak_bytes, read, seconds)
    return 0


def chain(layers: int, width: int, device: str) -> nn.Module:
    make = {"bias": False, "dtype": torch.bfloat16, "device": device}
    return nn.Sequential(*(nn.Linear(width, width, **make) for _ in range(layers)))


def timed(model: nn.Module, x: torch.Tensor) -> float:
    started = time.perf_counter()
    model(x)
    return time.perf_counter() - started


def show(name: str, peak: int, read: float, seconds: Sequence[float]) -> None:
    spread = f"{min(seconds):.3f} to {max(seconds):.3f}"
    print(
        f"{name:28} {statistics.median(seconds):.3f} s a round ({spread}), "
        f"{read:.2f} of the file read, {peak / 1e6:.0f} MB of weights at most"
    )


if __name__ == "__main__":
    sys.exit(main())
