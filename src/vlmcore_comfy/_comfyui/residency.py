"""Models in the memory that ComfyUI manages: they leave when it wants them to."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from typing import Any

import comfy.model_management as management
import torch
from comfy.model_patcher import ModelPatcher

from vlmcore.vlm.residency import ProcessResidency, ResidentModel

__all__ = ["ComfyResidency"]


class ComfyResidency:
    """
    A `vlmcore.vlm.residency.Residency` over ComfyUI's own model manager.

    One copy a key, as in `ProcessResidency`. Before a model is loaded, ComfyUI makes room for it;
    while it is there, ComfyUI knows its size and may have it leave, as it does with its own: for
    another model, or when the person unloads all. A model that is writing an answer leaves when
    that is done. It is loaded again when a node uses it next.
    """

    def __init__(self) -> None:
        self._seats = ProcessResidency()
        self._entries: dict[Hashable, _Entry] = {}
        self._wanted: set[Hashable] = set()  # what ComfyUI wanted to leave while it was in use
        self._lock = threading.Lock()

    @property
    def resident_keys(self) -> tuple[Hashable, ...]:
        """The keys of the models that are there, least recently used first."""
        return self._seats.resident_keys

    def hold(self, key: Hashable, load: Callable[[], ResidentModel], needed_bytes: int, /) -> None:
        """
        Load the model of *key*, unless it is there, and keep it until `release`.

        Raises:
            ModelMemoryError: If it does not fit.
        """

        def load_in_its_place() -> ResidentModel:
            management.free_memory(needed_bytes, management.get_torch_device())
            model = load()
            self._enter(key, model.nbytes)
            return model

        self._seats.hold(key, load_in_its_place, needed_bytes)

    @contextmanager
    def using(self, key: Hashable, /) -> Iterator[Any]:
        """
        Give the model of *key*; it stays while the ``with`` block runs.

        Raises:
            ContractError: If nobody holds *key*.
            ModelMemoryError: If it had to leave and does not fit any more.
        """
        try:
            with self._seats.using(key) as model:
                yield model
        finally:
            with self._lock:
                is_wanted = key in self._wanted
            if is_wanted and self._seats.leave(key):
                self._wanted.discard(key)

    def release(self, key: Hashable, /) -> None:
        """
        Take back one `hold`; with the last, the model is freed, once nobody uses it.

        Raises:
            ContractError: If nobody holds *key*.
        """
        self._seats.release(key)
        if key not in self._seats.resident_keys:
            self._forget(key)

    def leave(self, key: Hashable) -> None:
        """
        Let the model of *key* go: at once, or when nobody uses it any more.

        Its entry stays: ComfyUI is walking its list, which it cleans of whatever is dropped.
        """
        with self._lock:
            self._wanted.add(key)
        if self._seats.leave(key):
            self._wanted.discard(key)

    def _enter(self, key: Hashable, nbytes: int) -> None:
        self._forget(key)
        entry = _Entry(self, key, nbytes)
        with self._lock:
            self._entries[key] = entry  # ComfyUI's own reference is weak
            self._wanted.discard(key)
        management.load_models_gpu([entry])

    def _forget(self, key: Hashable) -> None:
        """Take a model out of ComfyUI's list."""
        with self._lock:
            entry = self._entries.pop(key, None)
        if entry is not None:
            loaded = management.current_loaded_models
            loaded[:] = [each for each in loaded if each.model is not entry]


class _Entry(ModelPatcher):  # type: ignore[misc] # ComfyUI has no types of its own
    """A model of ours in the list of ComfyUI: it has a size, and can leave."""

    def __init__(self, residency: ComfyResidency, key: Hashable, nbytes: int) -> None:
        device = management.get_torch_device()
        super().__init__(_NoWeights(), load_device=device, offload_device=device, size=nbytes)
        self._residency = residency
        self._key = key

    def loaded_size(self) -> int:
        """All of it is loaded, or it is not in the list."""
        return int(self.size)

    def partially_load(self, *_: Any, **__: Any) -> int:
        """Load nothing: it is there already."""
        return 0

    def partially_unload(self, *_: Any, **__: Any) -> int:
        """Free nothing: it leaves as a whole."""
        return 0

    def detach(self, unpatch_all: bool = True) -> Any:  # noqa: FBT001, FBT002 - its own signature
        """Leave."""
        del unpatch_all
        self._residency.leave(self._key)
        return self.model


class _NoWeights(torch.nn.Module):
    """What ComfyUI is shown: the weights are where their predictor put them."""
