"""Runs a graph in a ComfyUI that is there: queues it, follows it, and brings what it made."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import attrs

from vlmcore._optional import optional_dependency
from vlmcore.contracts.json_text import write_json
from vlmcore.endpoint import Endpoint
from vlmcore.errors import GraphFailedError, GraphRefusedError, GraphServerError, GraphStoppedError
from vlmcore_comfy._asking import ask, ask_json
from vlmcore_comfy.graphs import Graph

__all__ = [
    "ComfyServer",
    "GraphEvent",
    "MadeFile",
    "NodeMade",
    "NodeProgress",
    "NodeRuns",
    "NodeText",
    "NodesCached",
    "Queued",
]


@attrs.frozen
class Queued:
    """ComfyUI took the graph; it calls this run *prompt_id*."""

    prompt_id: str


@attrs.frozen
class NodesCached:
    """These nodes are not run again: nothing changed before them."""

    nodes: tuple[str, ...]


@attrs.frozen
class NodeRuns:
    """A node begins."""

    node: str


@attrs.frozen
class NodeProgress:
    """A node is so far."""

    node: str
    done: float
    total: float


@attrs.frozen
class NodeText:
    """The text that is there so far at a node."""

    node: str
    text: str


@attrs.frozen
class MadeFile:
    """
    A file that a node made.

    Attributes:
        name: What it is called.
        folder: The folder in that of its kind.
        kind: ``"output"``, ``"temp"`` or ``"input"``.
    """

    name: str
    folder: str
    kind: str


@attrs.frozen
class NodeMade:
    """
    What a node shows when it has run.

    Attributes:
        node: Its id.
        shown: What ComfyUI tells its page, by name: ``{"text": ["..."]}``.
    """

    node: str
    shown: dict[str, Any]

    @property
    def texts(self) -> tuple[str, ...]:
        """The texts among it."""
        return tuple(text for text in _listed(self.shown.get("text")) if isinstance(text, str))

    @property
    def files(self) -> tuple[MadeFile, ...]:
        """The files among it, as pictures, audio and video."""
        return tuple(
            MadeFile(each["filename"], str(each.get("subfolder", "")), str(each.get("type", "")))
            for value in self.shown.values()
            for each in _listed(value)
            if isinstance(each, dict) and isinstance(each.get("filename"), str)
        )


GraphEvent = Queued | NodesCached | NodeRuns | NodeProgress | NodeText | NodeMade


class ComfyServer:
    """
    A ComfyUI that listens somewhere.

    Args:
        address: As ``"http://127.0.0.1:8188"``, which is where it listens unless told otherwise.
        allow_remote: Whether it may be another machine; then over HTTPS.
        timeout_s: How long it may take to answer. How long a graph runs has no limit.

    Raises:
        EndpointError: If the address may not be dialled.
    """

    def __init__(
        self,
        address: str = "http://127.0.0.1:8188",
        *,
        allow_remote: bool = False,
        timeout_s: float = 30.0,
    ) -> None:
        self._endpoint = Endpoint.parse(
            address, schemes=("http", "https"), default_scheme="http", allow_remote=allow_remote
        )
        self._timeout_s = timeout_s

    def run(self, graph: Graph) -> Iterator[GraphEvent]:
        """
        Queue *graph* and tell what happens, until it has run to its end.

        Closing the iterator before does not stop the graph; `stop` does.

        Raises:
            GraphRefusedError: If ComfyUI does not take it.
            GraphFailedError: If a node fails; or is blocked, when all the others have run.
            GraphStoppedError: If somebody stops it.
            GraphServerError: If ComfyUI is not there, or goes away.
            MissingDependencyError: If websockets is not installed.
        """
        with optional_dependency("comfy", "websockets"):
            from vlmcore_comfy._listening import Listener  # noqa: PLC0415 - the door
        client_id = uuid4().hex
        with Listener(self._endpoint, client_id, timeout_s=self._timeout_s) as listener:
            run = _Run(graph, self._queue(graph, client_id))
            yield Queued(run.prompt_id)
            for message in listener.messages():
                event = run.text(message) if isinstance(message, bytes) else run.event(message)
                if event is not None:
                    yield event
                if run.is_done:
                    if run.blocked is not None:
                        raise run.blocked
                    return

    def stop(self, prompt_id: str) -> None:
        """
        Stop a run, whether it has begun or waits; one that ended stays as it is.

        Raises:
            GraphServerError: If ComfyUI is not there.
        """
        self._ask("/queue", {"delete": [prompt_id]})
        self._ask("/interrupt", {"prompt_id": prompt_id})

    def file(self, made: MadeFile) -> bytes:
        """
        Fetch a file that a node made, of 256 MiB at most.

        Raises:
            GraphServerError: If it is not there.
        """
        query = {"filename": made.name, "subfolder": made.folder, "type": made.kind}
        status, body = ask(self._endpoint, "/view", query=query, timeout_s=self._timeout_s)
        if status != 200:
            raise GraphServerError(self._endpoint.url, f"does not give {made.name!a:.200}")
        return body

    def _queue(self, graph: Graph, client_id: str) -> str:
        status, answer = self._ask("/prompt", {"prompt": graph, "client_id": client_id})
        if status == 200 and isinstance(answer.get("prompt_id"), str):
            return str(answer["prompt_id"])
        raise refusal(self._endpoint.url, graph, answer)

    def _ask(self, path: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        text = write_json(body).encode()
        return ask_json(self._endpoint, path, body=text, timeout_s=self._timeout_s)


class _Run:
    """One run of a graph: what the messages about it mean."""

    def __init__(self, graph: Graph, prompt_id: str) -> None:
        self._graph = graph
        self.prompt_id = prompt_id
        self.is_done = False
        self.blocked: GraphFailedError | None = None
        self._has_begun = False

    def text(self, message: bytes) -> NodeText | None:
        """Read a message in bytes: ``>I`` 3 is text, then the length of the id, id and text."""
        if len(message) < 8 or struct.unpack_from(">I", message)[0] != 3:
            return None
        length = struct.unpack_from(">I", message, 4)[0]
        node = message[8 : 8 + length].decode("utf-8", "replace")
        if not self._has_begun or node not in self._graph:
            return None
        return NodeText(node, message[8 + length :].decode("utf-8", "replace"))

    def event(self, message: dict[str, Any]) -> GraphEvent | None:
        """Say what a message tells of this run; what it tells of others is nothing."""
        data = message.get("data")
        if not isinstance(data, dict) or data.get("prompt_id") != self.prompt_id:
            return None
        node = str(data.get("display_node") or data.get("node") or data.get("node_id"))
        match message.get("type"):
            case "execution_start":
                self._has_begun = True
            case "execution_cached":
                return NodesCached(tuple(map(str, _listed(data.get("nodes")))))
            case "executing" if data.get("node") is not None:
                return NodeRuns(node)
            case "progress":
                return NodeProgress(node, _number(data.get("value")), _number(data.get("max")))
            case "executed" if isinstance(data.get("output"), dict):
                return NodeMade(node, data["output"])
            case "execution_success" | "executing":
                self.is_done = True
            case "execution_interrupted":
                raise GraphStoppedError(self._place(node), "was stopped there")
            case "execution_error":
                self._fail(node, data)
            case _:
                pass
        return None

    def _fail(self, node: str, data: dict[str, Any]) -> None:
        said = str(data.get("exception_message") or "does not say why").strip()
        failed = GraphFailedError(self._place(node), said)
        if data.get("exception_type") != "ExecutionBlocked":
            raise failed
        self.blocked = self.blocked or failed  # what does not hang on it runs on

    def _place(self, node: str) -> str:
        kind = self._graph.get(node, {}).get("class_type", "a node inside it")
        return f"node {node} ({kind})"


def refusal(address: str, graph: Graph, answer: dict[str, Any]) -> GraphRefusedError:
    """Say what ComfyUI has against a graph."""
    error = answer.get("error")
    said = error if isinstance(error, str) else _said(error if isinstance(error, dict) else {})
    nodes = answer.get("node_errors")
    return GraphRefusedError(
        address,
        f"does not take the graph: {said or 'it does not say why'}",
        {
            f"{node} ({graph.get(node, {}).get('class_type', '?')})": "; ".join(
                _said(each) for each in _listed(told.get("errors")) if isinstance(each, dict)
            )
            for node, told in (nodes.items() if isinstance(nodes, dict) else ())
            if isinstance(told, dict)
        },
    )


def _said(error: dict[str, Any]) -> str:
    parts = (str(error.get(key) or "").strip() for key in ("message", "details"))
    return ": ".join(part for part in parts if part)


def _listed(value: Any) -> list[Any] | tuple[Any, ...]:
    return value if isinstance(value, (list, tuple)) else ()


def _number(value: Any) -> float:
    return float(value) if isinstance(value, (int, float)) else 0.0
