"""Process-wide numeric settings of PyTorch, set for one generation and put back after it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

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
        self._put_back: Callable[[], None] = lambda: None

    @contextmanager
    def held(self, precision: MatmulPrecision) -> Iterator[None]:
        with self._turn:
            self._turn.wait_for(lambda: self._current in (None, precision))
            if self._holders == 0:
                self._put_back = _set_precision(precision)
                self._current = precision
            self._holders += 1
        try:
            yield
        finally:
            with self._turn:
                self._holders -= 1
                if self._holders == 0:
                    self._put_back()
                    self._current = None
                    self._turn.notify_all()


def _set_precision(precision: MatmulPrecision) -> Callable[[], None]:
    """
    Set the precision, and return what puts back exactly what was there.

    PyTorch has two interfaces to it: one word for the process, and, since 2.9, one for each
    backend. Once a program has used the newer one, reading the older one may raise.
    """
    backends: Any = torch.backends  # not typed
    matmuls: list[Any] = [
        getattr(backends.cuda, "matmul", 0),
        getattr(backends.mkldnn, "matmul", 0),
    ]
    newer = [(m, m.fp32_precision) for m in matmuls if hasattr(m, "fp32_precision")]
    try:
        older = torch.get_float32_matmul_precision()
    except RuntimeError:
        older = ""
        for matmul, _ in newer:
            matmul.fp32_precision = _NEWER_NAMES[precision]
    else:
        torch.set_float32_matmul_precision(precision.value)

    def put_back() -> None:
        if older:
            torch.set_float32_matmul_precision(older)
        for matmul, before in newer:
            matmul.fp32_precision = before

    return put_back


_NEWER_NAMES = {MatmulPrecision.HIGHEST: "ieee", MatmulPrecision.HIGH: "tf32"}
_precision = _SharedPrecision()
# The generators are the process's too. One generation samples at a time, also without a seed: it
# would draw from the middle of what a seed has to repeat.
_sampling = threading.Lock()


@contextmanager
def _drawing(seed: int | None, device: torch.device) -> Iterator[None]:
    with _sampling:
        if seed is None:
            yield
            return
        devices = [] if device.type == "cpu" else [device]
        with torch.random.fork_rng(devices=devices, device_type=_rng_type(device)):
            torch.manual_seed(seed)
            yield


def _rng_type(device: torch.device) -> str:
    return "cuda" if device.type == "cpu" else device.type  # with no devices the type is not used


@contextmanager
def numerics(options: GenerationOptions, device: torch.device) -> Iterator[None]:
    """Hold the matmul precision, and the seed if one is given, for the body; then put both back."""
    drawing = _drawing(options.seed, device) if options.samples else nullcontext()
    with _precision.held(options.matmul_precision), drawing:
        yield
