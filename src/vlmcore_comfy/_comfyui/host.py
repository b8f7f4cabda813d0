"""The services of ComfyUI, as a `vlmcore_comfy.hosting.Host`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import attrs
import comfy.model_management
import comfy.utils
import folder_paths
from comfy_execution.utils import get_executing_context
from server import PromptServer

from vlmcore.vlm.residency import Residency
from vlmcore_comfy._comfyui.diffusion import diffusion_model
from vlmcore_comfy._comfyui.residency import ComfyResidency
from vlmcore_comfy.hosting import DiffusionWeights, NodeStoppedError

__all__ = [
    "RESIDENCY",
    "ComfyHost",
    "interrupt_error",
    "is_interrupted",
    "missing_nodes",
    "model_folders",
]


#: What nodes are not there, and why; the extension writes it down when ComfyUI starts.
missing_nodes: list[str] = []


#: One for all nodes.
RESIDENCY = ComfyResidency()


def is_interrupted() -> bool:
    """Whether the person stopped the graph that is running."""
    return bool(comfy.model_management.processing_interrupted())


def interrupt_error() -> BaseException:
    """
    Take back the wish to stop, and make the exception that ends a graph as stopped.

    It is an ``Exception`` in older versions and a ``BaseException`` in newer ones.
    """
    comfy.model_management.interrupt_current_processing(False)  # noqa: FBT003 - its own signature
    error: BaseException = comfy.model_management.InterruptProcessingException()
    return error


def model_folders(kind: str) -> Sequence[Path]:
    """Name the folders of ComfyUI in which models of *kind* lie, its own and added ones."""
    try:
        return tuple(Path(folder) for folder in folder_paths.get_folder_paths(kind))
    except KeyError:
        return (Path(folder_paths.models_dir) / kind,)


def current_node_id() -> str | None:
    """Return the id of the node that runs here, as its graph holds it."""
    context = get_executing_context()
    return None if context is None else str(context.node_id)


@attrs.define
class ComfyHost:
    """
    One run of one node in ComfyUI.

    Attributes:
        node_id: The id of the node in its graph.
        is_stopped: Whether the person stopped the graph, or ComfyUI gave it up.
    """

    node_id: str | None = attrs.field(factory=current_node_id)
    is_stopped: bool = False
    _calls: list[Callable[[], None]] = attrs.field(factory=list, init=False)

    def stop(self) -> None:
        """Tell the node that nobody waits for it any more."""
        self.is_stopped = True
        for call in tuple(self._calls):
            call()

    @contextmanager
    def when_stopped(self, call: Callable[[], None], /) -> Iterator[None]:
        """Have *call* called if the person stops the graph within the block."""
        self._calls.append(call)
        try:
            if self.is_stopped:
                call()
            yield
        finally:
            self._calls.remove(call)

    @property
    def device(self) -> str:
        """Where ComfyUI runs its models."""
        return str(comfy.model_management.get_torch_device())

    @property
    def residency(self) -> Residency:
        """ComfyUI's own memory, in which models live."""
        return RESIDENCY

    def raise_if_stopped(self) -> None:
        """
        End the node where the person stopped the graph.

        Raises:
            NodeStoppedError: If they did.
        """
        if self.is_stopped or is_interrupted():
            self.is_stopped = True
            raise NodeStoppedError

    def progress(self, done: float, total: float, /) -> None:
        """Show how far the node is; ends it where the person stopped the graph."""
        self.raise_if_stopped()
        comfy.utils.ProgressBar(total, node_id=self.node_id).update_absolute(done)

    def show_text(self, text: str, /) -> None:
        """Show the text that is there so far on the node's face."""
        if self.node_id is not None and PromptServer.instance is not None:
            PromptServer.instance.send_progress_text(text, self.node_id)

    def model_folders(self, kind: str, /) -> Sequence[Path]:
        """Name the folders of ComfyUI in which models of *kind* lie, its own and added ones."""
        return model_folders(kind)

    def diffusion_model(
        self, read: Callable[[], DiffusionWeights], /, *, name: str, kept_as: str
    ) -> Any:
        """Make a model of ComfyUI of weights, as `vlmcore_comfy.hosting.Host` says."""
        return diffusion_model(read, name=name, kept_as=kept_as)

    @property
    def missing_nodes(self) -> Sequence[str]:
        """What nodes are not there, and why."""
        return tuple(missing_nodes)

    @property
    def input_folder(self) -> Path:
        """Where what graphs read lies."""
        return Path(folder_paths.get_input_directory())

    @property
    def output_folder(self) -> Path:
        """Where what is kept is written."""
        return Path(folder_paths.get_output_directory())

    @property
    def temporary_folder(self) -> Path:
        """Where what is shown once is written."""
        return Path(folder_paths.get_temp_directory())
