"""What a node may ask of whom it runs in: ComfyUI, or a program that calls it by itself."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from vlmcore.errors import ContractError

if TYPE_CHECKING:
    from vlmcore.vlm.residency import Residency

__all__ = ["ALONE", "DIFFUSION_DTYPES", "AloneHost", "DiffusionWeights", "Host", "NodeStoppedError"]

DIFFUSION_DTYPES = ("default", "fp8_e4m3fn", "fp8_e4m3fn_fast", "fp8_e5m2")
"""How ComfyUI may keep the weights of a diffusion model, in the words of its own loader."""


class DiffusionWeights(NamedTuple):
    """
    The weights of a model, and what its file says beside.

    Attributes:
        tensors: Tensors of torch by name.
        metadata: Texts by name, as of safetensors.
    """

    tensors: dict[str, Any]
    metadata: dict[str, str]


class NodeStoppedError(Exception):
    """The person stopped the graph while the node ran; ComfyUI is told in its own words."""


class Host(Protocol):
    """Whom a node runs in. Every method may be called from any thread."""

    @property
    def node_id(self) -> str | None:
        """The id of the node in its graph."""
        ...

    @property
    def is_stopped(self) -> bool:
        """Whether the person stopped the graph."""
        ...

    @property
    def residency(self) -> Residency:
        """Whose memory models live in."""
        ...

    @property
    def device(self) -> str:
        """Where models run, as ``"cuda:0"``; ``"auto"`` where nobody says."""
        ...

    def when_stopped(self, call: Callable[[], None], /) -> AbstractContextManager[None]:
        """
        Have *call* called, from another thread, if the person stops the graph within the block.

        It has to be quick, and to wait for nothing.
        """
        ...

    def raise_if_stopped(self) -> None:
        """
        End the node where the person stopped the graph.

        Raises:
            NodeStoppedError: If they did.
        """
        ...

    def progress(self, done: float, total: float, /) -> None:
        """Show how far the node is."""
        ...

    def show_text(self, text: str, /) -> None:
        """Show the text that is there so far on the node's face; the newest replaces the last."""
        ...

    def model_folders(self, kind: str, /) -> Sequence[Path]:
        """Name the folders in which models of *kind* lie, such as ``"LLM"``."""
        ...

    def diffusion_model(
        self, read: Callable[[], DiffusionWeights], /, *, name: str, kept_as: str
    ) -> Any:
        """
        Make a model of ComfyUI of weights.

        Args:
            read: Gives the weights; ComfyUI may want them again, for another device.
            name: What the model is called in errors.
            kept_as: How the weights are kept in memory; one of `DIFFUSION_DTYPES`.

        Raises:
            ContractError: If they are of no model that it knows, or this is no ComfyUI.
        """
        ...

    @property
    def missing_nodes(self) -> Sequence[str]:
        """What nodes are not there, and why, where a theme cannot be read."""
        ...

    @property
    def input_folder(self) -> Path:
        """Where what graphs read lies."""
        ...

    @property
    def output_folder(self) -> Path:
        """Where what is kept is written."""
        ...

    @property
    def temporary_folder(self) -> Path:
        """Where what is shown once is written."""
        ...


class AloneHost:
    """No ComfyUI: nothing is shown, nothing stops, and models live in the process's memory."""

    node_id: str | None = None
    missing_nodes: Sequence[str] = ()
    is_stopped: bool = False
    device: str = "auto"

    def when_stopped(self, call: Callable[[], None], /) -> AbstractContextManager[None]:
        """Never call it."""
        del call
        return nullcontext()

    @property
    def residency(self) -> Residency:
        """The process's own memory, in which models live."""
        from vlmcore.vlm.residency import PROCESS

        return PROCESS

    def raise_if_stopped(self) -> None:
        """Never end a node."""

    def progress(self, done: float, total: float, /) -> None:
        """Show nothing."""

    def show_text(self, text: str, /) -> None:
        """Show nothing."""

    def model_folders(self, kind: str, /) -> Sequence[Path]:
        """Know no folder of models."""
        del kind
        return ()

    def diffusion_model(
        self, read: Callable[[], DiffusionWeights], /, *, name: str, kept_as: str
    ) -> Any:
        """
        Make no model: that is ComfyUI's own.

        Raises:
            ContractError: Always.
        """
        del read, kept_as
        raise ContractError(name, "becomes a model within ComfyUI only, and this is a program")

    @property
    def input_folder(self) -> Path:
        """The folder ``input`` in the current one, where what graphs read lies."""
        return Path("input").absolute()

    @property
    def output_folder(self) -> Path:
        """The folder ``output`` in the current one, where what is kept is written."""
        return Path("output").absolute()

    @property
    def temporary_folder(self) -> Path:
        """The system's folder for what is shown once."""
        return Path(tempfile.gettempdir())


ALONE: Host = AloneHost()
"""The host of a node that a program calls by itself."""
