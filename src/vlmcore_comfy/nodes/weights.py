"""The node that opens the weights of a diffusion model with the bounded, checked loader."""

from __future__ import annotations

from typing import Any

from vlmcore_comfy.declaring import Node, NodeResult, Output, choice, model_file, node
from vlmcore_comfy.hosting import ALONE, DIFFUSION_DTYPES, Host

__all__ = ["NODES", "load_diffusion_model"]

_FOLDER = "diffusion_models"
_CHECKS = {
    "Do not check": "off",
    "Check a sample against the manifest": "sampled",
    "Check all of it against the manifest": "whole",
}


@node(
    "VLMFlashPackLoader",
    title="Load Diffusion Model (FlashPack)",
    category="Weights",
    description="Opens a diffusion model from a pack, or from safetensors, as fast as the disk "
    "gives it; nothing of a file that is broken, or hostile, gets further than its head. "
    "`vlmcore weights pack` makes packs.",
    inputs=(
        model_file(
            "model_file", _FOLDER, tooltip=f"A .flashpack or .safetensors file in models/{_FOLDER}"
        ),
        choice("weight_dtype", DIFFUSION_DTYPES, "default"),
        choice(
            "checksums",
            tuple(_CHECKS),
            "Do not check",
            tooltip="Whether the weights are those that the manifest beside them was written for",
        ),
    ),
    outputs=(Output("MODEL", "model"), Output("STRING", "report_json")),
    extras=("weights",),
    is_threaded=True,
)
def load_diffusion_model(
    model_file: str, weight_dtype: str, checksums: str, *, comfyui: Host = ALONE
) -> NodeResult:
    """Open a model."""
    from vlmcore.contracts.json_text import write_json
    from vlmcore.weights.verifying import Verification
    from vlmcore_comfy.opening_weights import open_diffusion_model
    from vlmcore_comfy.weight_files import weight_file

    path = weight_file(comfyui.model_folders(_FOLDER), model_file, field="model_file")
    model, report = open_diffusion_model(
        path,
        name=model_file,
        kept_as=weight_dtype,
        verification=Verification(_CHECKS[checksums]),
        comfyui=comfyui,
    )
    return NodeResult((model, write_json(report, indent=2)))


NODES: tuple[Node[..., Any], ...] = (load_diffusion_model,)
