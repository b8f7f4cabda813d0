"""Graphs that are run in a ComfyUI."""

from __future__ import annotations

import attrs

from vlmcore.limits._base import MIB, Bounds

__all__ = ["GraphLimits"]


@attrs.frozen(kw_only=True)
class GraphLimits(Bounds):
    """
    What is read of graphs, and of what a ComfyUI says of them.

    Attributes:
        max_graph_bytes: Size of a graph's document.
        max_message_bytes: Size of one message about a run; pictures of what is being made are among
            them.
        max_file_bytes: Size of a file that a node made, or of another answer.
    """

    max_graph_bytes: int = 16 * MIB
    max_message_bytes: int = 64 * MIB
    max_file_bytes: int = 256 * MIB
