"""The node that tells what this installation can do."""

from __future__ import annotations

from typing import Any

from vlmcore_comfy.declaring import Node, NodeResult, Output, node
from vlmcore_comfy.hosting import ALONE, Host

__all__ = ["NODES", "runtime_diagnostics"]


@node(
    "VLMRuntimeDiagnostics",
    title="VLM Runtime Diagnostics",
    category="Diagnostics",
    description="Tells versions, devices, and which extras are there, with the command that brings "
    "each that is not. It holds no secrets, and no names of folders.",
    inputs=(),
    outputs=(Output("STRING", "runtime_report"),),
    is_output=True,
    changes=lambda: float("nan"),  # what is installed may have changed
)
def runtime_diagnostics(*, comfyui: Host = ALONE) -> NodeResult:
    """Look at this installation."""
    from vlmcore.contracts.json_text import write_json
    from vlmcore_comfy.diagnosing import resident_models, runtime_report

    said = {
        **runtime_report(),
        "missing_nodes": list(comfyui.missing_nodes),
        "resident_models": resident_models(comfyui.residency),
    }
    report = write_json(said, indent=2)
    return NodeResult((report,), {"text": [report]})


NODES: tuple[Node[..., Any], ...] = (runtime_diagnostics,)
