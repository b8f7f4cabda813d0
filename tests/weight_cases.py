"""Checkpoints for tests of weights, and what can happen to their files."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from vlmcore.weights import writing

__all__ = ["Tensors", "forget_pages", "run_child", "some_tensors", "write_safetensors"]

Tensors = Mapping[str, npt.NDArray[Any]]


def some_tensors() -> Tensors:
    """Make tensors of many dtypes and sizes, on and off every kind of boundary."""
    random = np.random.default_rng(0)
    return {
        "large": random.normal(size=(1000, 1100)).astype("f4"),
        "bytes": np.frombuffer(random.bytes(6_000_001), np.uint8),
        "half": random.normal(size=(3, 5)).astype("f2"),
        "scalar": np.array(-3, "i8"),
        "flags": np.array([True, False, True]),
        "nothing": np.zeros((0, 4), "f4"),
        "complex": random.normal(size=(7, 2)).astype("f4").view("c8"),
        "many": random.integers(-9, 9, (40, 3)).astype("i2"),
        **{f"tiny.{i}": random.normal(size=(i,)) for i in range(40)},
    }


def write_safetensors(path: Path, tensors: Tensors) -> Path:
    """Write *tensors* to a file of safetensors, without a manifest."""
    return Path(writing.write_safetensors(tensors, path, manifest=False).path)


def forget_pages(path: Path) -> None:
    """Have the page cache forget a file."""
    fd = os.open(path, os.O_RDONLY)
    os.fsync(fd)
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(fd)


def run_child(script: str, *arguments: object) -> str:
    """
    Run Python in a process of its own, whose end by a signal does not end the tests.

    Returns:
        What it printed; it must end well.
    """
    words = [sys.executable, "-c", script, *map(str, arguments)]
    ended = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
    assert (0, "") == (ended.returncode, ended.stderr), ended.stderr[-800:]
    return ended.stdout.strip()
