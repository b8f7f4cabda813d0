"""
vlmcore as nodes of ComfyUI.

A folder under ``custom_nodes`` that re-exports `comfy_entrypoint` and `WEB_DIRECTORY` is all that
ComfyUI needs; ``vlmcore comfy install`` writes it. Importing this package imports neither ComfyUI
nor torch, a model or a network client: the nodes can be called, and tested, without any of them.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

__all__ = ["WEB_DIRECTORY", "comfy_entrypoint"]

WEB_DIRECTORY = str(Path(__file__).parent / "web")
"""What ComfyUI serves to its page, absolute, since it lies in the installed package."""


async def comfy_entrypoint() -> Any:
    """Give ComfyUI the extension with all nodes; called once, when it starts."""
    from vlmcore_comfy._comfyui.extension import VlmcoreExtension

    return VlmcoreExtension()
