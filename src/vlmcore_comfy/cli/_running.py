"""``vlmcore comfy run``: queue a graph on a ComfyUI that is running, and tell what comes of it."""

from __future__ import annotations

import argparse
import contextlib
import re
from pathlib import Path
from typing import Any

import attrs

from vlmcore.cli.commands import (
    CODES,
    ExitCode,
    StatusLine,
    Terminal,
    add_parser,
    read_bytes,
    write_bytes,
)
from vlmcore.contracts.json_text import read_json
from vlmcore.errors import ContractError, GraphError, VlmcoreError
from vlmcore.limits import GraphLimits
from vlmcore_comfy.graphs import Graph, graph_from_json, with_inputs
from vlmcore_comfy.queueing import (
    ComfyServer,
    GraphEvent,
    MadeFile,
    NodeMade,
    NodeProgress,
    NodeRuns,
    NodesCached,
    NodeText,
    Queued,
)

__all__ = ["add_command"]

_EPILOG = """\
GRAPH is a graph for ComfyUI's API: in its menu, Workflow, Export (API). What its nodes show is
printed, node by node; files that they make stay with ComfyUI, unless --save fetches them.

  vlmcore comfy run graph.json --set ModernVLM.prompt='What is on the table?'

A value of --set is JSON where it can be read as that (4, true, "4"), and text otherwise. Ctrl-C
stops the graph in ComfyUI too.
"""


def add_command(commands: Any) -> None:
    """Add the command to *commands*."""
    parser = add_parser(
        commands,
        "run",
        work=_run,
        summary="queue a graph on a running ComfyUI, and print what it makes",
        epilog=_EPILOG,
        codes=CODES,
        words=("GRAPH", "URL"),
        done="the graph ran to its end",
        incomplete="ComfyUI did not take the graph, a node failed, or it was stopped",
    )
    parser.add_argument("graph", metavar="GRAPH", help="the file of the graph, - for stdin")
    parser.add_argument(
        "--url",
        default="http://127.0.0.1:8188",
        help="where ComfyUI listens (default: %(default)s)",
    )
    parser.add_argument(
        "--allow-remote", action="store_true", help="let it be another machine, over HTTPS"
    )
    parser.add_argument(
        "--timeout",
        type=float,
        default=30.0,
        metavar="S",
        help="how long ComfyUI may take to answer; not how long the graph runs (default: 30)",
    )
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="NODE.INPUT=VALUE",
        help="put another value into an input; NODE is an id, or a class that is there once",
    )
    parser.add_argument("--save", metavar="FOLDER", help="fetch the files that nodes make")
    parser.add_argument("--json", action="store_true", help="print one JSON object at the end")
    parser.add_argument("--quiet", "-q", action="store_true", help="no progress, only complaints")


def _run(arguments: argparse.Namespace, terminal: Terminal) -> ExitCode:
    try:
        return _done(arguments, terminal)
    except GraphError as error:
        for text in f"vlmcore: {error}".splitlines():
            terminal.complain(text)
    return ExitCode.INCOMPLETE


def _done(arguments: argparse.Namespace, terminal: Terminal) -> ExitCode:
    graph = _graph(arguments, terminal)
    if not arguments.timeout > 0:
        raise ContractError("--timeout", f"got {arguments.timeout:g}, expected seconds above 0")
    save = _folder(arguments.save)
    try:
        server = ComfyServer(
            arguments.url, allow_remote=arguments.allow_remote, timeout_s=arguments.timeout
        )
    except VlmcoreError as error:
        raise ContractError("--url", str(error)) from None
    run = _Telling(graph=graph, terminal=terminal, is_json=arguments.json)
    with StatusLine(quiet=arguments.quiet) as line:
        try:
            for event in server.run(graph):
                run.tell(event, line)
        except KeyboardInterrupt:
            line.close()
            _stop(server, run.prompt_id, terminal)
            raise
    files = _saved(server, run.files, save, terminal)
    if arguments.json:
        terminal.document(
            {
                "prompt_id": run.prompt_id,
                "outputs": {each.node: each.shown for each in run.made},
                "cached": list(run.cached),
                "files": files,
            },
            indent=2,
        )
    return ExitCode.DONE


def _graph(arguments: argparse.Namespace, terminal: Terminal) -> Graph:
    name = arguments.graph
    graph = graph_from_json(read_bytes(name, most=GraphLimits().max_graph_bytes), name=name)
    changes = {}
    for each in arguments.set:
        place, equals, text = each.partition("=")
        if not equals:
            raise ContractError("--set", f"got {each!a:.80}, expected NODE.INPUT=VALUE")
        try:
            changes[place] = read_json(text)
        except ContractError:
            changes[place] = text
    try:
        changed = with_inputs(graph, changes, name=name)
    except GraphError as error:
        raise ContractError("--set", str(error)) from None
    for node_id, node in changed.items():
        for field in node["inputs"].keys() - graph[node_id]["inputs"].keys():
            terminal.note(
                f"vlmcore: --set: {node_id}.{field} is new to the graph; ComfyUI passes over an "
                "input that a node does not have"
            )
    return changed


def _folder(name: str | None) -> Path | None:
    if name is None:
        return None
    folder = Path(name)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ContractError("--save", f"{name}: {error.strerror}") from None
    return folder


def _stop(server: ComfyServer, prompt_id: str | None, terminal: Terminal) -> None:
    if prompt_id is None:
        return
    try:
        server.stop(prompt_id)
    except VlmcoreError as error:
        terminal.complain(f"vlmcore: the graph may still run: {error}")


def _saved(
    server: ComfyServer, files: list[MadeFile], folder: Path | None, terminal: Terminal
) -> list[str]:
    if folder is None:
        return []
    places = []
    for file in files:
        # It is a name that a server gave: it must not lead anywhere else.
        name = re.sub(r"[^\w.() -]", "_", file.name).lstrip(".") or "file"
        place = folder / name
        write_bytes(str(place), server.file(file))
        terminal.note(f"{place}: saved")
        places.append(str(place))
    return places


@attrs.define(kw_only=True)
class _Telling:
    """What was told so far, and how."""

    graph: Graph
    terminal: Terminal
    is_json: bool
    prompt_id: str | None = None
    made: list[NodeMade] = attrs.field(factory=list)
    cached: tuple[str, ...] = ()
    begun: set[str] = attrs.field(factory=set)

    @property
    def files(self) -> list[MadeFile]:
        """The files that were made, each once."""
        return list(dict.fromkeys(file for each in self.made for file in each.files))

    def tell(self, event: GraphEvent, line: StatusLine) -> None:
        """Tell what happened."""
        match event:
            case Queued():
                self.prompt_id = event.prompt_id
                line.write("queued")
            case NodesCached():
                self.cached = event.nodes
                self.begun.update(event.nodes)
            case NodeRuns():
                self.begun.add(event.node)
                line.write(self._at(event.node))
            case NodeProgress():
                line.write(f"{self._at(event.node)}: {event.done:g} of {event.total:g}")
            case NodeText():
                last = event.text.rstrip().rpartition("\n")[2]
                line.write(f"{self._at(event.node)}: {last}")
            case NodeMade():
                self.made.append(event)
                line.close()
                if not self.is_json:
                    self._show(event)

    def _at(self, node: str) -> str:
        return f"[{len(self.begun)}/{len(self.graph)}] {self._name(node)}"

    def _name(self, node: str) -> str:
        return f"{node} {self.graph.get(node, {}).get('class_type', '')}".strip()

    def _show(self, made: NodeMade) -> None:
        if not made.texts and not made.files:
            return
        self.terminal.heading(self._name(made.node))
        for text in made.texts:
            self.terminal.line(text)
        for file in made.files:
            with contextlib.suppress(ValueError):
                self.terminal.line("/".join(filter(None, (file.kind, file.folder, file.name))))
