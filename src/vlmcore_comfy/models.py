"""The models that nodes have opened: one for all nodes that ask for the same, kept for the next."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import attrs

from vlmcore.errors import ContractError, ModelMemoryError
from vlmcore.vlm.catalog import match_model
from vlmcore.vlm.loading import load_predictor
from vlmcore.vlm.placement import Attention, MemoryMode
from vlmcore.vlm.predictor import Predictor
from vlmcore.vlm.sources import EMBEDDED
from vlmcore_comfy.hosting import Host
from vlmcore_comfy.keeping import Kept

__all__ = ["CUSTOM", "EMBEDDED_LABEL", "KEPT", "ModelChoice", "model_folder", "opened"]

CUSTOM = "Custom Hugging Face model"
EMBEDDED_LABEL = "Embedded (offline, tiny)"
FOLDERS = ("LLM", "VLM", "llm", "vlm")
"""Kinds of folders under ComfyUI's ``models`` in which models like these are put."""

_MEMORY = {
    "ComfyUI managed (BF16)": MemoryMode.MANAGED,
    "4-bit NF4 (bitsandbytes)": MemoryMode.NF4,
    "8-bit (bitsandbytes)": MemoryMode.INT8,
    "CPU": MemoryMode.CPU,
}
_ATTENTION = {
    "Auto (SDPA)": Attention.AUTO,
    "Flash Attention 2": Attention.FLASH_2,
    "Eager": Attention.EAGER,
}


@attrs.frozen
class ModelChoice:
    """
    Which model, and how it is held, as widgets say it.

    Attributes:
        label: The label of the catalog, `CUSTOM` or `EMBEDDED_LABEL`.
        custom: For `CUSTOM`: a folder under one of ComfyUI's model folders, another folder, an id
            of the hub, or ``embedded``.
        memory: The label of how the weights are kept.
        attention: The label of the attention.
    """

    label: str
    custom: str = ""
    memory: str = "ComfyUI managed (BF16)"
    attention: str = "Auto (SDPA)"

    def name(self, comfyui: Host) -> str:
        """
        Say what is loaded: what lies in a model folder comes before the hub.

        Raises:
            ContractError: If a custom model is wanted, and none is named.
        """
        if self.label == EMBEDDED_LABEL:
            return EMBEDDED
        wanted = self.custom.strip()
        if self.label == CUSTOM:
            if not wanted:
                raise ContractError(
                    "custom_model_id",
                    "is blank, expected an id of the hub, as org/name, or a folder under "
                    "models/LLM",
                )
        else:
            spec = match_model(self.label)
            assert spec is not None
            assert spec.repo_id is not None
            wanted = spec.repo_id
        folder = model_folder(wanted, FOLDERS, comfyui)
        return wanted if folder is None else str(folder)


KEPT: Kept[ModelChoice, Predictor] = Kept(most=4)
"""The models that are open; their weights leave when ComfyUI wants the memory."""


@contextmanager
def opened(choice: ModelChoice, comfyui: Host, *, unload: bool) -> Iterator[Predictor]:
    """
    Give the model of *choice*, opened if it is not.

    Args:
        choice: Which model.
        comfyui: Whose memory it lives in.
        unload: Whether it is closed at the end of the block, and its memory given back.

    Raises:
        VlmcoreError: If it cannot be loaded.
    """
    try:
        yield KEPT.get(choice, lambda: _load(choice, comfyui))
    except ModelMemoryError:
        KEPT.drop(choice)  # what it holds is what is missing
        raise
    finally:
        if unload:
            KEPT.drop(choice)


def _load(choice: ModelChoice, comfyui: Host) -> Predictor:
    memory = _MEMORY[choice.memory]
    return load_predictor(
        choice.name(comfyui),
        device="cpu" if memory is MemoryMode.CPU else comfyui.device,
        memory=memory,
        attention=_ATTENTION[choice.attention],
        residency=comfyui.residency,
    )


def model_folder(name: str, kinds: tuple[str, ...], comfyui: Host) -> Path | None:
    """
    Find a model that was put into a folder of ComfyUI: by its whole id, or the last part of it.

    Args:
        name: The id, or the name of the folder.
        kinds: Which folders are looked into, as ``"LLM"``.
        comfyui: Who knows where they are.
    """
    if Path(name).is_absolute() or ".." in Path(name).parts:
        return None
    for kind in kinds:
        for root in comfyui.model_folders(kind):
            for path in (root / name, root / name.rpartition("/")[2]):
                if (path / "config.json").is_file():
                    return path
    return None
