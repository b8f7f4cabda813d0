"""
What a node is: its sockets and widgets, by the names that saved workflows hold, and a function.

Workflows bind widgets by their place and graphs bind them by name, so a declaration is a file
format of its own: it is written out by hand, never derived from a contract. It names no part of
ComfyUI; `vlmcore_comfy._comfyui` turns it into the class that ComfyUI wants.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, Generic, ParamSpec, TypeVar

import attrs

from vlmcore_comfy.fitting import fitting

__all__ = [
    "Blocked",
    "Input",
    "Node",
    "NodeResult",
    "Output",
    "boolean",
    "choice",
    "integer",
    "model_file",
    "node",
    "number",
    "socket",
    "text",
]

_P = ParamSpec("_P")
_R = TypeVar("_R")


@attrs.frozen
class Input:
    """
    One input of a node.

    Attributes:
        name: Its name in graphs, also the name of the function's parameter.
        type: What ComfyUI calls its type: ``"INT"``, ``"IMAGE"``, ``"VLA_ACTIONS"``.
        options: What the type needs beside: default, bounds, labels, in ComfyUI's words.
        is_optional: Whether a graph may leave it out.
        tooltip: One sentence for the person who looks at it.
        is_open: Whether a choice takes what is not among its options.
        model_kind: Of what kind the models are whose files a choice offers, looked up in ComfyUI's
            folders whenever its page asks; empty for other inputs.
    """

    name: str
    type: str
    options: Mapping[str, Any] = attrs.field(factory=dict)
    is_optional: bool = False
    tooltip: str | None = None
    is_open: bool = False
    model_kind: str = ""


@attrs.frozen
class Output:
    """
    One output of a node.

    Attributes:
        type: What ComfyUI calls its type.
        name: What is written beside it.
        is_list: Whether what follows is run for each of its values.
        tooltip: One sentence for the person who looks at it.
    """

    type: str
    name: str
    is_list: bool = False
    tooltip: str | None = None


@attrs.frozen
class Blocked:
    """
    What an output gives instead of a value where nothing may follow.

    Attributes:
        reason: What the person is told at the node that would have followed.
    """

    reason: str


@attrs.frozen
class NodeResult:
    """
    The values of a node, and what its face shows.

    Attributes:
        values: One for each output, in order.
        shown: What the page is told when the node has run, by the names that the page knows:
            ``{"text": ["..."]}``.
    """

    values: tuple[Any, ...]
    shown: Mapping[str, Any] = attrs.field(factory=dict)


@attrs.frozen(kw_only=True)
class Node(Generic[_P, _R]):
    """
    A node: called, it is its function.

    Attributes:
        id: The ``class_type`` of graphs.
        title: What is written on it.
        category: Where it stands in the menu, parts divided by ``/``.
        description: What it does, for the person who looks for it.
        inputs: Its inputs, in the order in which workflows hold their widgets.
        outputs: Its outputs, in order.
        run: What it does: gives a tuple of values or a `NodeResult`. A parameter ``comfyui`` is
            given the `vlmcore_comfy.hosting.Host`. A coroutine function runs on the loop that the
            pack keeps for its connections.
        extras: The extras of vlmcore that it needs beside ``comfy``.
        is_output: Whether it runs for its own sake.
        is_threaded: Whether it takes long enough to leave other nodes waiting. It must ask
            ``comfyui.raise_if_stopped()`` at each step.
        knows_itself: Whether ComfyUI tells it its id in the graph; its answers are then not shared
            with nodes that were asked the same.
        is_experimental: Whether its interface may change.
        is_deprecated: Whether it is there for saved workflows only.
        changes: Given the widgets (linked inputs are ``None``), a value that differs whenever it is
            to run again although nothing before it did; ``None`` where it never is.
    """

    id: str
    title: str
    category: str
    description: str
    inputs: tuple[Input, ...]
    outputs: tuple[Output, ...]
    run: Callable[_P, _R]
    extras: tuple[str, ...] = ()
    is_output: bool = False
    is_threaded: bool = False
    knows_itself: bool = False
    is_experimental: bool = False
    is_deprecated: bool = False
    changes: Callable[..., Any] | None = None

    def __call__(self, *args: _P.args, **kwargs: _P.kwargs) -> _R:
        """
        Do what the node does.

        Raises:
            ContractError: If a text, a number, a switch or a choice does not fit its declaration.
        """
        given = dict(zip((each.name for each in self.inputs), args, strict=False), **kwargs)
        run: Callable[..., _R] = self.run
        return run(**fitting(self.inputs, given))

    @property
    def is_coroutine(self) -> bool:
        """Whether it is awaited."""
        return inspect.iscoroutinefunction(self.run)

    @property
    def wants_host(self) -> bool:
        """Whether its function takes the host."""
        return "comfyui" in inspect.signature(self.run).parameters


def node(
    node_id: str,
    *,
    title: str,
    category: str,
    description: str,
    inputs: tuple[Input, ...],
    outputs: tuple[Output, ...],
    **more: Any,
) -> Callable[[Callable[_P, _R]], Node[_P, _R]]:
    """
    Make a node of the function below.

    *category* is what follows ``VLM Nodes/``; *more* are the other attributes of `Node`.
    """

    def declared(run: Callable[_P, _R]) -> Node[_P, _R]:
        return Node(
            id=node_id,
            title=title,
            category=f"VLM Nodes/{category}",
            description=description,
            inputs=inputs,
            outputs=outputs,
            run=run,
            **more,
        )

    return declared


def text(
    name: str,
    default: str | None = "",
    *,
    multiline: bool = False,
    is_optional: bool = False,
    tooltip: str | None = None,
) -> Input:
    """Declare a field for text; with *default* ``None`` it starts empty and says nothing of it."""
    options = {} if default is None else {"default": default}
    return Input(name, "STRING", {**options, "multiline": multiline}, is_optional, tooltip)


def boolean(
    name: str,
    default: bool,  # noqa: FBT001 - the other declarations give theirs in the same place
    *,
    is_optional: bool = False,
    tooltip: str | None = None,
) -> Input:
    """Declare a switch."""
    return Input(name, "BOOLEAN", {"default": default}, is_optional, tooltip)


def integer(
    name: str,
    default: int,
    lowest: int,
    highest: int,
    step: int | None = None,
    *,
    is_optional: bool = False,
    tooltip: str | None = None,
) -> Input:
    """Declare a whole number from *lowest* to *highest*; the page moves it by *step*."""
    return Input(name, "INT", _bounded(default, lowest, highest, step), is_optional, tooltip)


def number(
    name: str,
    default: float,
    lowest: float,
    highest: float,
    step: float | None = None,
    *,
    is_optional: bool = False,
    tooltip: str | None = None,
) -> Input:
    """Declare a number from *lowest* to *highest*; the page moves it by *step*."""
    return Input(name, "FLOAT", _bounded(default, lowest, highest, step), is_optional, tooltip)


def choice(
    name: str,
    options: tuple[str, ...] | tuple[int, ...],
    default: str | int | None = None,
    *,
    is_optional: bool = False,
    is_open: bool = False,
    tooltip: str | None = None,
) -> Input:
    """
    Declare a choice of one of *options*; without *default* it starts at the first.

    One that *is_open* takes what saved graphs hold beside, too; the node then looks at it.
    """
    chosen = {} if default is None else {"default": default}
    given = {"options": list(options), **chosen}
    return Input(name, "COMBO", given, is_optional, tooltip, is_open)


def model_file(name: str, kind: str, *, tooltip: str | None = None) -> Input:
    """Declare a choice of the files of weights in ComfyUI's folders for models of *kind*."""
    return Input(name, "COMBO", {"options": []}, tooltip=tooltip, is_open=True, model_kind=kind)


def socket(
    name: str, type_name: str, *, is_optional: bool = False, tooltip: str | None = None
) -> Input:
    """Declare an input that only another node can give."""
    return Input(name, type_name, {}, is_optional, tooltip)


def _bounded(default: float, lowest: float, highest: float, step: float | None) -> dict[str, Any]:
    options = {"default": default, "min": lowest, "max": highest}
    return options if step is None else {**options, "step": step}
