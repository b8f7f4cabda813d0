"""Process-wide numeric settings of PyTorch, set for one generation and put back after it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext

import torch

from vlmcore.vlm.generation import GenerationOptions, MatmulPrecision

__all__ = ["numerics"]


class _SharedPrecision:
    """
    Lets generations of equal precision run side by side, and makes others wait for their turn.

    PyTorch keeps one float32 matmul precision for the whole process. If each generation set it
    and put back what it found, two that overlap could leave the wrong one behind; so the first
    one in sets it, and the last one out puts back what was there before the first.
    """

    def __init__(self) -> None:
        self._turn = threading.Condition()
        self._holders = 0
        self._current: MatmulPrecision | None = None
        self._before = ""

    @contextmanager
    def held(self, precision: MatmulPrecision) -> Iterator[None]:
        with self._turn:
            self._turn.wait_for(lambda: self._current in (None, precision))
            if self._holders == 0:
                self._before = torch.get_float32_matmul_precision()
                self._current = precision
                torch.set_float32_matmul_precision(precision.value)
            self._holders += 1
        try:
            yield
        finally:
            with self._turn:
                self._holders -= 1
                if self._holders == 0:
                    torch.set_float32_matmul_precision(self._before)
                    self._current = None
                    self._turn.notify_all()


_precision = _SharedPrecision()
_seeded = threading.Lock()  # the generators are the process's too: one seeded sampling at a time


@contextmanager
def _seed(seed: int, device: torch.device) -> Iterator[None]:
    devices = [] if device.type == "cpu" else [device]
    with _seeded, torch.random.fork_rng(devices=devices, device_type=_rng_type(device)):
        torch.manual_seed(seed)
        yield


def _rng_type(device: torch.device) -> str:
    return "cuda" if device.type == "cpu" else device.type  # with no devices the type is not used


@contextmanager
def numerics(options: GenerationOptions, device: torch.device) -> Iterator[None]:
    """Hold the matmul precision, and the seed if one is given, for the body; then put both back."""
    seeded = options.samples and options.seed is not None
    seed = _seed(options.seed or 0, device) if seeded else nullcontext()
    with _precision.held(options.matmul_precision), seed:
        yield
