"""
The parts of ComfyUI that the door touches, for tests without one.

Each class is as small as what `vlmcore_comfy._comfyui` asks of it, by the names of 0.33.
"""

from __future__ import annotations

import contextvars
import importlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import attrs

_DOOR = ("residency", "diffusion", "host", "running", "extension")


class Interrupted(BaseException):
    """What ends a graph as stopped; a ``BaseException`` as in newer versions."""


class Blocker:
    """What keeps a node from running."""

    def __init__(self, message: str | None) -> None:
        self.message = message


class Patcher:
    """What ComfyUI holds a model by."""

    def __init__(self, model: Any, *, load_device: Any, offload_device: Any, size: int) -> None:
        self.model, self.size = model, size
        self.load_device, self.offload_device = load_device, offload_device


@attrs.define
class StubComfyUI:
    """
    What happened in the stub, and what it is told to do.

    Attributes:
        folder: Where its folders are.
        is_interrupted: Whether the person stopped the graph.
        texts: The texts that nodes showed.
        progress: How far nodes said that they are.
        loaded: The models in its list.
        freed: How much room was wanted, and where.
        diffusion: The diffusion models that were made of weights.
        door: Our modules, imported over the stub.
    """

    folder: Path
    is_interrupted: bool = False
    texts: list[tuple[str, str]] = attrs.field(factory=list)
    progress: list[tuple[float, float]] = attrs.field(factory=list)
    loaded: list[Any] = attrs.field(factory=list)
    freed: list[tuple[int, Any]] = attrs.field(factory=list)
    diffusion: list[Any] = attrs.field(factory=list)
    door: dict[str, ModuleType] = attrs.field(factory=dict)
    node: contextvars.ContextVar[str | None] = attrs.field(
        factory=lambda: contextvars.ContextVar("node", default=None)
    )


@contextmanager
def stubbed(folder: Path) -> Iterator[StubComfyUI]:
    """Import our door over a stub, and take both away at the end."""
    stub = StubComfyUI(folder)
    modules = _modules(stub)
    ours = [f"vlmcore_comfy._comfyui.{name}" for name in _DOOR]
    before = {name: sys.modules.get(name) for name in (*modules, *ours)}
    sys.modules.update(modules)
    for name in ours:
        sys.modules.pop(name, None)
    try:
        stub.door = {
            name: importlib.import_module(f"vlmcore_comfy._comfyui.{name}") for name in _DOOR
        }
        yield stub
    finally:
        for name, module in before.items():
            if module is None:
                sys.modules.pop(name, None)
            else:
                sys.modules[name] = module


def _modules(stub: StubComfyUI) -> dict[str, ModuleType]:
    management = _module(
        "comfy.model_management",
        InterruptProcessingException=Interrupted,
        processing_interrupted=lambda: stub.is_interrupted,
        interrupt_current_processing=lambda value=True: setattr(stub, "is_interrupted", value),
        get_torch_device=lambda: "cpu",
        current_loaded_models=stub.loaded,
        free_memory=lambda needed, device: stub.freed.append((needed, device)),
        load_models_gpu=lambda models: stub.loaded.extend(
            SimpleNamespace(model=model) for model in models
        ),
    )

    class ProgressBar:
        def __init__(self, total: float, node_id: str | None = None) -> None:
            del node_id
            self.total = total

        def update_absolute(self, value: float) -> None:
            stub.progress.append((value, self.total))

    def context() -> Any:
        node = stub.node.get()
        return None if node is None else SimpleNamespace(node_id=node)

    server = SimpleNamespace(
        send_progress_text=lambda text, node_id: stub.texts.append((node_id, text))
    )

    def load_diffusion_model_state_dict(
        tensors: Any, model_options: Any, metadata: Any = None, **more: Any
    ) -> Any:
        if "head.modulation" not in tensors:
            return None
        stub.diffusion.append(
            SimpleNamespace(tensors=tensors, options=model_options, metadata=metadata, more=more)
        )
        return stub.diffusion[-1]

    utils = _module("comfy.utils", ProgressBar=ProgressBar)
    sd = _module("comfy.sd", load_diffusion_model_state_dict=load_diffusion_model_state_dict)
    latest = _module("comfy_api.latest", ComfyExtension=object, io=_io())
    return {
        "comfy": _module("comfy", model_management=management, sd=sd, utils=utils),
        "comfy.model_management": management,
        "comfy.model_patcher": _module("comfy.model_patcher", ModelPatcher=Patcher),
        "comfy.sd": sd,
        "comfy.utils": utils,
        "comfy_api": _module("comfy_api", latest=latest),
        "comfy_api.latest": latest,
        "comfy_execution": _module("comfy_execution"),
        "comfy_execution.graph_utils": _module(
            "comfy_execution.graph_utils", ExecutionBlocker=Blocker
        ),
        "comfy_execution.utils": _module("comfy_execution.utils", get_executing_context=context),
        "folder_paths": _module(
            "folder_paths",
            models_dir=str(stub.folder / "models"),
            get_folder_paths=lambda kind: {"LLM": [str(stub.folder / "models" / "LLM")]}[kind],
            get_input_directory=lambda: str(stub.folder / "input"),
            get_output_directory=lambda: str(stub.folder / "output"),
            get_temp_directory=lambda: str(stub.folder / "temp"),
        ),
        "server": _module("server", PromptServer=SimpleNamespace(instance=server)),
    }


def _io() -> SimpleNamespace:
    def custom(type_name: str) -> SimpleNamespace:
        def declared(*names: str, **said: Any) -> SimpleNamespace:
            return SimpleNamespace(type=type_name, names=names, **said)

        return SimpleNamespace(Input=declared, Output=declared)

    class NodeOutput:
        def __init__(self, *values: Any, ui: Any = None) -> None:
            self.values, self.ui = values, ui

    class ComfyNode:
        pass

    return SimpleNamespace(
        Custom=custom,
        ComfyNode=ComfyNode,
        Hidden=SimpleNamespace(unique_id="UNIQUE_ID"),
        Input=object,
        NodeOutput=NodeOutput,
        Output=object,
        Schema=SimpleNamespace,
    )


def _module(name: str, **names: Any) -> ModuleType:
    module = ModuleType(name)
    vars(module).update(names)
    module.__path__ = []
    return module
