"""A model that somebody holds in a residency until it is closed."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from contextlib import AbstractContextManager

from vlmcore.errors import ModelError
from vlmcore.vlm.backends._opening import OpenedModel
from vlmcore.vlm.generation import CancelToken
from vlmcore.vlm.residency import Residency

__all__ = ["HeldModel"]


class HeldModel:
    """
    One hold on a model that others may hold as well. Threads may share it.

    Args:
        name: The model's name, for errors.
        role: What it is to those who hold it, as ``"predictor"``.
        key: Which model in which form; equal keys share one copy.
        load: Opens it, if nobody has.
        needed_bytes: What it is expected to take.
        residency: Whose memory it lives in.

    Raises:
        ModelError: If it cannot be loaded.
    """

    def __init__(
        self,
        *,
        name: str,
        role: str,
        key: Hashable,
        load: Callable[[], OpenedModel],
        needed_bytes: int,
        residency: Residency,
    ) -> None:
        self._name = name
        self._role = role
        self._key = key
        self._residency = residency
        self._state = threading.Lock()
        self._is_closed = False
        self.closing = CancelToken()  # stops what is running when it is closed
        residency.hold(key, load, needed_bytes)

    @property
    def is_closed(self) -> bool:
        """Whether it was given back."""
        return self._is_closed

    def using(self) -> AbstractContextManager[OpenedModel]:
        """
        Have the model loaded while a ``with`` block lasts.

        Raises:
            ContractError: If it was given back.
            ModelError: If it has to be loaded anew, and cannot be.
        """
        return self._residency.using(self._key)

    def require_open(self) -> None:
        """
        Require that it was not given back.

        Raises:
            ModelError: If it was.
        """
        if self._is_closed:
            raise ModelError(self._name, f"this {self._role} is closed: load the model again")

    def close(self) -> None:
        """Stop what is running and give the memory back. Closing twice is no error."""
        self.closing.cancel()
        with self._state:
            if self._is_closed:
                return
            self._is_closed = True
        self._residency.release(self._key)
