"""Our nodes as the classes that ComfyUI wants."""

from __future__ import annotations

import inspect
import logging
from functools import cache
from typing import Any

from comfy_api.latest import ComfyExtension, io
from comfy_execution.graph_utils import ExecutionBlocker

from vlmcore._extras import look_at
from vlmcore_comfy._comfyui.host import missing_nodes, model_folders
from vlmcore_comfy._comfyui.running import run_node
from vlmcore_comfy.catalog import load_catalog
from vlmcore_comfy.declaring import Blocked, Input, Node, NodeResult, Output
from vlmcore_comfy.weight_files import weight_names

__all__ = ["VlmcoreExtension", "comfy_class"]

_log = logging.getLogger("vlmcore")


class VlmcoreExtension(ComfyExtension):  # type: ignore[misc] # it has no types
    """All nodes of this installation."""

    async def get_node_list(self) -> list[type[io.ComfyNode]]:
        """Give the class of every node; what cannot be read is written to the log."""
        catalog = load_catalog()
        missing_nodes[:] = [f"{theme.theme}: {theme.reason}" for theme in catalog.broken]
        for missing in missing_nodes:
            _log.warning("vlmcore: the nodes for %s", missing)
        return [comfy_class(node) for node in catalog.nodes.values()]


def comfy_class(node: Node[..., Any]) -> type[io.ComfyNode]:
    """Make the class of *node*."""
    kept: list[io.Schema] = []  # ComfyUI asks several times for each run of each node

    class Declared(io.ComfyNode):  # type: ignore[misc] # it has no types
        @classmethod
        def define_schema(cls) -> io.Schema:
            if kept and not any(each.model_kind for each in node.inputs):
                return kept[0]
            kept[:] = [_schema(node)]
            return kept[0]

        @classmethod
        async def execute(cls, **inputs: Any) -> io.NodeOutput:
            return _output(await run_node(node, inputs))

    if any(each.is_open for each in node.inputs):
        Declared.validate_inputs = classmethod(_validation(node))
    if node.changes is not None:
        Declared.fingerprint_inputs = classmethod(_fingerprint(node.changes))
    Declared.__name__ = Declared.__qualname__ = node.id
    return Declared


def _fingerprint(changes: Any) -> Any:
    def fingerprint_inputs(cls: type[io.ComfyNode], **inputs: Any) -> Any:
        del cls
        return changes(**inputs)

    return fingerprint_inputs


def _validation(node: Node[..., Any]) -> Any:
    """Keep ComfyUI from looking at open choices: what such a function names is left to it."""
    names = [each.name for each in node.inputs if each.is_open]

    def validate_inputs(cls: type[io.ComfyNode], **inputs: Any) -> bool:
        del cls, inputs
        return True

    parameters = [
        inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD) for name in ("cls", *names)
    ]
    validate_inputs.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return validate_inputs


def _schema(node: Node[..., Any]) -> io.Schema:
    return io.Schema(
        node_id=node.id,
        display_name=node.title,
        category=node.category,
        description=f"{node.description}{_what_is_missing(node.extras)}",
        inputs=[_input(each) for each in node.inputs],
        outputs=[_declared_output(each) for each in node.outputs],
        hidden=[io.Hidden.unique_id] if node.knows_itself else [],
        is_output_node=node.is_output,
        is_experimental=node.is_experimental,
        is_deprecated=node.is_deprecated,
    )


@cache
def _what_is_missing(extras: tuple[str, ...]) -> str:
    """Say which command brings what a node needs; nothing where all of it is there."""
    missing = [name for name in extras if not look_at(name).is_complete]
    return "".join(f'\n\nNeeds: pip install "vlmcore[{name}]"' for name in missing)


@cache
def _type(name: str) -> Any:
    return io.Custom(name)  # which is a new class each time, and takes long to make


def _input(declared: Input) -> io.Input:
    options = dict(declared.options)
    if declared.model_kind:
        options["options"] = weight_names(model_folders(declared.model_kind))
    return _type(declared.type).Input(
        declared.name, optional=declared.is_optional, tooltip=declared.tooltip, extra_dict=options
    )


def _declared_output(declared: Output) -> io.Output:
    # No id of its own: an output may be called as an input is.
    return _type(declared.type).Output(
        display_name=declared.name, tooltip=declared.tooltip, is_output_list=declared.is_list
    )


def _output(result: NodeResult) -> io.NodeOutput:
    values = [
        ExecutionBlocker(value.reason) if isinstance(value, Blocked) else value
        for value in result.values
    ]
    return io.NodeOutput(*values, ui=dict(result.shown) or None)
