"""Graphs as ComfyUI queues them: nodes by id, each a ``class_type`` and its inputs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from vlmcore._arguments import shown
from vlmcore.contracts.json_text import read_json
from vlmcore.errors import ContractError, GraphError
from vlmcore.limits import DocumentLimits, GraphLimits

__all__ = ["Graph", "graph_from_json", "with_inputs"]

#: Nodes by their ids, as ``{"1": {"class_type": "ViewText", "inputs": {"text": "yes"}}}``.
Graph: TypeAlias = dict[str, dict[str, Any]]

_MOST = DocumentLimits(max_document_bytes=GraphLimits().max_graph_bytes)


def graph_from_json(text: str | bytes, *, name: str = "graph") -> Graph:
    """
    Read a graph, as ComfyUI exports it for its API; also where it is the ``prompt`` of a request.

    Args:
        text: The document, at most 16 MiB.
        name: What it is called in errors.

    Raises:
        GraphError: If it is none, such as a workflow that the page saved.

    Example:
        >>> graph_from_json('{"1": {"class_type": "ViewText", "inputs": {"text": "yes"}}}')
        {'1': {'class_type': 'ViewText', 'inputs': {'text': 'yes'}}}
    """
    try:
        value = read_json(text, limits=_MOST)
    except ContractError as error:
        raise GraphError(name, f"is no JSON that can be read: {error}") from None
    if isinstance(value, dict) and isinstance(value.get("nodes"), list):
        raise GraphError(
            name,
            "is a workflow with its layout; export it for the API from ComfyUI's menu "
            "(Workflow, Export (API))",
        )
    if isinstance(value, dict) and isinstance(value.get("prompt"), dict):
        value = value["prompt"]
    if not isinstance(value, dict) or not value:
        raise GraphError(name, f"got {shown(value)}, expected an object of nodes by their ids")
    for node_id, node in value.items():
        _check_node(name, node_id, node)
    return value


def _check_node(name: str, node_id: str, node: Any) -> None:
    is_one = isinstance(node, dict) and isinstance(node.get("class_type"), str)
    if not is_one or not isinstance(node.setdefault("inputs", {}), dict):
        raise GraphError(
            name,
            f"node {node_id!a:.80}: got {shown(node)}, expected a class_type and its inputs",
        )


def with_inputs(graph: Graph, changes: Mapping[str, Any], *, name: str = "graph") -> Graph:
    """
    Give a graph with other values in some inputs; *graph* stays as it is.

    Args:
        graph: The graph.
        changes: Values by node and input, as ``{"3.endpoint": "http://127.0.0.1:9000"}``. A node is
            named by its id, or by its class where only one node is of it.
        name: What the graph is called in errors.

    Raises:
        GraphError: If a node is not in the graph.

    Example:
        >>> graph = {"1": {"class_type": "ViewText", "inputs": {"text": "yes"}}}
        >>> with_inputs(graph, {"ViewText.text": "no"})
        {'1': {'class_type': 'ViewText', 'inputs': {'text': 'no'}}}
    """
    changed = {node_id: {**node, "inputs": dict(node["inputs"])} for node_id, node in graph.items()}
    for place, value in changes.items():
        node, _, field = place.rpartition(".")
        if not node or not field:
            raise GraphError(name, f"got {place!a:.80}, expected a node and its input: 3.endpoint")
        changed[_node_id(graph, node, name)]["inputs"][field] = value
    return changed


def _node_id(graph: Graph, node: str, name: str) -> str:
    if node in graph:
        return node
    ids = [node_id for node_id, each in graph.items() if each["class_type"] == node]
    if len(ids) == 1:
        return ids[0]
    if ids:
        raise GraphError(name, f"{len(ids)} nodes are of {node!a:.80}: {', '.join(ids)}; name one")
    known = ", ".join(f"{node_id} ({each['class_type']})" for node_id, each in graph.items())
    raise GraphError(name, f"has no node {node!a:.80}; it has {known:.500}")
