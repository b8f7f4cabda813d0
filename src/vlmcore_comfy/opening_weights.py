"""A file of weights as a model of ComfyUI, read with the core's loader."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from vlmcore.errors import WeightsCancelledError
from vlmcore.vlm.generation import CancelToken
from vlmcore.weights.modules import load_tensors
from vlmcore.weights.opening import open_files
from vlmcore.weights.verifying import Verification
from vlmcore_comfy.hosting import DiffusionWeights, Host

__all__ = ["open_diffusion_model"]


def open_diffusion_model(
    path: Path, *, name: str, kept_as: str, verification: Verification, comfyui: Host
) -> tuple[Any, dict[str, Any]]:
    """
    Make a diffusion model of a file, and say what the load did.

    Its tensors are mapped: what ComfyUI never moves to a device costs no memory twice.

    Args:
        path: The file.
        name: What the graph calls it.
        kept_as: How ComfyUI keeps the weights; one of `vlmcore_comfy.hosting.DIFFUSION_DTYPES`.
        verification: How much is compared with the manifest beside it.
        comfyui: Who makes the model.

    Raises:
        WeightsError: If the file is broken, or is not what its manifest says.
        ContractError: If it is of no model that ComfyUI knows.
        NodeStoppedError: If the person stopped the graph.
    """
    reports = []

    def read() -> DiffusionWeights:
        with open_files(path) as files:
            metadata = dict(files.index.metadata)
        cancel = CancelToken()
        try:
            with comfyui.when_stopped(cancel.cancel):
                tensors = load_tensors(
                    path, verification=verification, progress=comfyui.progress, cancel=cancel
                )
        except WeightsCancelledError:
            comfyui.raise_if_stopped()
            raise
        reports.append(tensors.report.to_dict())
        return DiffusionWeights(dict(tensors), metadata)

    model = comfyui.diffusion_model(read, name=name, kept_as=kept_as)
    return model, {**reports[0], "path": name}
