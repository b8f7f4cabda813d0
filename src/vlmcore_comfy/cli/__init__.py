"""``vlmcore comfy``: put the nodes into a ComfyUI, and run graphs there."""

from vlmcore_comfy.cli._comfy import add_command

__all__ = ["add_command"]
