"""What loads a model for the command: the library's own door, or one of the caller's."""

from __future__ import annotations

from typing import Protocol

from vlmcore.vlm.placement import Attention, Dtype, MemoryMode
from vlmcore.vlm.predictor import Predictor

__all__ = ["LoadPredictor"]


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
