"""What a model is that takes up memory, and whoever manages that memory."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from contextlib import AbstractContextManager
from typing import Any, Protocol, runtime_checkable

__all__ = ["Residency", "ResidentModel"]


@runtime_checkable
class ResidentModel(Protocol):
    """A model that takes up memory and can give it back."""

    @property
    def nbytes(self) -> int:
        """How many bytes it holds."""
        ...

    def free(self) -> None:
        """Give its memory back; it cannot be used any more."""
        ...


@runtime_checkable
class Residency(Protocol):
    """
    Whose memory models live in: the process's own, or a host's such as ComfyUI's.

    A key stands for one model in one form. However many hold it, there is one copy.
    """

    def hold(self, key: Hashable, load: Callable[[], ResidentModel], needed_bytes: int, /) -> None:
        """
        Load the model of *key*, unless it is there, and keep it until `release`.

        Others that are not in use leave before it is loaded, where that is needed to fit.

        Args:
            key: Which model.
            load: Loads it; called again if the model had to leave in the meantime.
            needed_bytes: What it will hold, estimated; 0 where unknown.

        Raises:
            ModelMemoryError: If it does not fit.
        """
        ...

    def using(self, key: Hashable, /) -> AbstractContextManager[Any]:
        """
        Give the model of *key*, a `ResidentModel`; it stays while the ``with`` block runs.

        A model that had to leave is loaded again first.

        Raises:
            ContractError: If nobody holds *key*.
            ModelMemoryError: If it had to leave and does not fit any more.
        """
        ...

    def release(self, key: Hashable, /) -> None:
        """
        Take back one `hold`. With the last, the model is freed, once nobody uses it.

        Raises:
            ContractError: If nobody holds *key*.
        """
        ...


for _kind in (ResidentModel, Residency):  # where users import them from
    _kind.__module__ = "vlmcore.vlm.residency"
