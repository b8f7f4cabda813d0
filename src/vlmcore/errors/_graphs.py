"""Graphs that cannot be run in a ComfyUI."""

from __future__ import annotations

from collections.abc import Mapping

from vlmcore.errors._base import VlmcoreError

__all__ = [
    "GraphError",
    "GraphFailedError",
    "GraphRefusedError",
    "GraphServerError",
    "GraphStoppedError",
]


class GraphError(VlmcoreError):
    """
    A graph was not run to its end in a ComfyUI.

    Attributes:
        where: The graph, the node or the address that it is about.
        problem: What is wrong with it, and what to do.
    """

    def __init__(self, where: str, problem: str) -> None:
        super().__init__(where, problem)
        self.where = where
        self.problem = problem

    def __str__(self) -> str:
        return f"{self.where}: {self.problem}"


class GraphServerError(GraphError, ConnectionError):
    """ComfyUI cannot be reached, hung up, or answered what it never does."""


class GraphRefusedError(GraphError, ValueError):
    """
    ComfyUI does not take the graph; nothing was run.

    Attributes:
        nodes: What it says of each node, by its id in the graph.
    """

    def __init__(self, where: str, problem: str, nodes: Mapping[str, str] | None = None) -> None:
        super().__init__(where, problem)
        self.nodes = dict(nodes or {})
        self.args = (where, problem, self.nodes)

    def __str__(self) -> str:
        return "\n".join(
            [f"{self.where}: {self.problem}"]
            + [f"  node {node}: {said}" for node, said in self.nodes.items()]
        )


class GraphFailedError(GraphError):
    """A node of the graph failed; those before it were run."""


class GraphStoppedError(GraphError):
    """Somebody stopped the graph."""
