"""What loads a model: the library's own door, or that of a program that runs the command."""

from __future__ import annotations

from typing import Protocol

from vlmcore.vlm.placement import Attention, Dtype, MemoryMode
from vlmcore.vlm.predictor import Predictor

__all__ = ["LoadPredictor", "load_predictor"]


class LoadPredictor(Protocol):
    """Loads a model, as `vlmcore.vlm.loading.load_predictor` does."""

    def __call__(
        self,
        model: str,
        /,
        *,
        device: str,
        dtype: Dtype,
        memory: MemoryMode,
        attention: Attention,
    ) -> Predictor:
        """Load *model* and place it."""
        ...


def load_predictor(
    model: str, /, *, device: str, dtype: Dtype, memory: MemoryMode, attention: Attention
) -> Predictor:
    """Load a model through the library's door, which is opened only now."""
    from vlmcore.vlm import loading

    return loading.load_predictor(
        model, device=device, dtype=dtype, memory=memory, attention=attention
    )
