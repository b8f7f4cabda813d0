"""Opening a model of transformers: everything is checked before its weights are read."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable, Container
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import attrs
import torch
import transformers

from vlmcore.errors import ModelError, UnsupportedModelError
from vlmcore.vlm.backends import _hub
from vlmcore.vlm.backends._failures import failures_named
from vlmcore.vlm.backends._placing import (
    check_requirements,
    choose_device,
    choose_dtype,
    free_bytes,
    needed_bytes,
    require_copies,
    require_room,
)
from vlmcore.vlm.backends._processors import open_processor
from vlmcore.vlm.backends._quietly import quietly
from vlmcore.vlm.backends._reuse import KeptWork
from vlmcore.vlm.backends._steps import StepCopies
from vlmcore.vlm.backends._weights import IncompleteError, load_by_ourselves, require_loadable
from vlmcore.vlm.backends._writing import Copies
from vlmcore.vlm.checkpoint import (
    PACK,
    Checkpoint,
    check_config,
    read_checkpoint,
    read_config,
    read_pack,
)
from vlmcore.vlm.placement import Attention, Decoding, MemoryMode, Placement, WeightLoading
from vlmcore.vlm.sources import ModelSource
from vlmcore.weights.lazy import LazyWeights

__all__ = ["CHAT", "ModelKind", "OpenedModel", "estimate_bytes", "open_model"]

_library: Any = transformers  # its annotations are partial
# While transformers builds a model, it changes defaults of PyTorch for the whole process.
_one_at_a_time = threading.Lock()


@attrs.frozen(kw_only=True, eq=False)
class ModelKind:
    """
    What a model is opened as.

    Attributes:
        does: What such a model does.
        configurations: The configurations of such models.
        loader: The class of transformers that loads one.
        open_processor: Opens what makes its inputs, given the name of the model, its folder, its
            configuration, and a chat template.
    """

    does: str
    configurations: Container[Any]
    loader: Any
    open_processor: Callable[[str, Path, Any, str | None], Any]


CHAT = ModelKind(
    does="takes images and writes text",
    configurations=transformers.MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING,
    loader=_library.AutoModelForImageTextToText,
    open_processor=lambda name, folder, _config, template: open_processor(name, folder, template),
)


@attrs.define(eq=False, kw_only=True)
class OpenedModel:
    """
    A model that is loaded, with its processor: a `vlmcore.vlm.residency.ResidentModel`.

    Attributes:
        model: Ready to generate, on its device; no gradients.
        processor: With a chat template; its tokenizer pads on the left.
        device: Where the model is.
        dtype: The number format of its weights, or of its arithmetic if they are quantized.
        dtype_reason: Why that was chosen.
        attention: The attention implementation that is in use.
        supports_video: Whether the processor takes the frames of a video as such.
        lazy: Its weights, where they come and go.
        copies: Copies of its weights that steps of one token read.
        kept: What it keeps for answers to come.
        turn: Held while the model generates: it answers one call after the other.
    """

    model: Any
    processor: Any
    device: torch.device
    dtype: torch.dtype
    dtype_reason: str
    attention: str
    supports_video: bool
    lazy: LazyWeights | None = None
    copies: Copies | None = None
    kept: KeptWork = attrs.field(factory=KeptWork)
    turn: threading.Lock = attrs.field(factory=threading.Lock)

    @property
    def nbytes(self) -> int:
        """What its weights hold; those that share memory count once."""
        if self.model is None:
            return 0
        if self.lazy is not None:
            return self.lazy.pool.budget_bytes
        tensors = (*self.model.parameters(), *self.model.buffers())
        storages = {tensor.untyped_storage().data_ptr(): tensor for tensor in tensors}
        held: int = sum(tensor.untyped_storage().nbytes() for tensor in storages.values())
        return held + (0 if self.copies is None else self.copies.nbytes)

    def generate(self, **arguments: Any) -> Any:
        """Write, by the ``generate`` that the model has now, and with its arguments."""
        return self.model.generate(**arguments)

    def free(self) -> None:
        """
        Give the memory back, also where something else still holds the model.

        Finalisers of anything may run here, and wait for other threads: not to be called while a
        lock is held that those may want.
        """
        model, self.model, self.processor = self.model, None, None
        self.kept.clear()
        if model is None:
            return
        if self.copies is not None:
            self.copies.drop()
        if self.lazy is not None:
            self.lazy.close()
        else:
            with suppress(ValueError, RuntimeError, NotImplementedError):  # quantized ones stay
                model.to("meta")
        del model
        gc.collect()
        if self.device.type in ("cuda", "xpu", "mps"):
            getattr(torch, self.device.type).empty_cache()


def estimate_bytes(source: ModelSource, placement: Placement) -> int:
    """
    Estimate what a model will hold, from what is on this machine; 0 where nothing is known.

    Raises:
        ContractError: If the device is not here.
        ModelError: If the model cannot be placed so, or its files are damaged.
        MissingDependencyError: If a package that the placement needs is not installed.
    """
    device = choose_device(placement)
    check_requirements(source.name, placement, device)
    folder = Path(source.location) if source.is_local else _hub.cached_folder(source)
    with suppress(ModelError):  # part of it may be in the cache: then the rest is fetched first
        if folder is not None:
            checkpoint = _checkpoint(source.name, folder, placement)
            dtype, _ = _dtype(device, placement, checkpoint)
            return _needed(checkpoint, dtype, placement)
    if source.spec is None:
        return 0
    assumed = Checkpoint(files=(), elements={"BF16": source.spec.bf16_bytes // 2})
    dtype, _ = _dtype(device, placement, assumed)
    return _needed(assumed, dtype, placement)


def open_model(
    source: ModelSource,
    placement: Placement,
    *,
    chat_template: str | None = None,
    kind: ModelKind = CHAT,
) -> OpenedModel:
    """
    Open a model.

    The order is that of cost: what the placement needs is checked before anything is downloaded,
    the architecture and the chat template before the weights are, and memory before they are read.

    Raises:
        ModelAccessError: If the model is not found, gated, or out of reach.
        UnsupportedModelError: If it is not of a kind that can be run, or not placed so.
        ModelMemoryError: If it does not fit.
        ModelError: If its files are damaged.
        MissingDependencyError: If a package that the placement needs is not installed.
        ContractError: If the device is not here, or *chat_template* does not work.
    """
    name = source.name
    device = choose_device(placement)
    check_requirements(name, placement, device)
    folder = Path(source.location) if source.is_local else _hub.fetch_description(source)
    with quietly():
        config = _open_config(name, folder, kind)
        processor = kind.open_processor(name, folder, config, chat_template)
    if not source.is_local:
        _hub.fetch_weights(source, folder)
    require_loadable(name, config.to_dict(), placement, device)
    checkpoint = _checkpoint(name, folder, placement)
    dtype, reason = _dtype(device, placement, checkpoint)
    require_copies(name, placement, dtype)
    needed = _needed(checkpoint, dtype, placement)
    require_room(name, needed, device)
    with _one_at_a_time, quietly(), failures_named(name, needed, device):
        model, lazy = _load(folder, config, placement, device, dtype=dtype, kind=kind)
        copies = _copies(model, name, placement.decoding)
    return OpenedModel(
        model=model,
        processor=processor,
        device=device,
        dtype=dtype,
        dtype_reason=reason,
        attention=str(model.config._attn_implementation),  # noqa: SLF001  # there is no other
        supports_video=getattr(processor, "video_processor", None) is not None,
        lazy=lazy,
        copies=copies,
    )


def _copies(model: Any, name: str, decoding: Decoding) -> Copies | None:
    match decoding:
        case Decoding.AS_LOADED:
            return None
        case Decoding.FLOAT16:
            return StepCopies(model)
        case Decoding.COMPILED | Decoding.COMPILED_FLOAT16:
            from vlmcore.vlm.backends._compiled import CompiledSteps  # noqa: PLC0415 - loads much

            rounds = decoding is Decoding.COMPILED_FLOAT16
            return CompiledSteps(model, name=name, rounds=rounds)


def _checkpoint(name: str, folder: Path, placement: Placement) -> Checkpoint:
    if placement.weights is not WeightLoading.TRANSFORMERS and (folder / PACK).exists():
        return read_pack(name, folder)
    return read_checkpoint(name, folder)


def _needed(checkpoint: Checkpoint, dtype: torch.dtype, placement: Placement) -> int:
    needed = needed_bytes(checkpoint, dtype, placement.memory)
    if placement.decoding.copies:
        needed += needed_bytes(checkpoint, torch.float16, placement.memory)
    return min(needed, placement.weights_budget_bytes or needed)


def _dtype(
    device: torch.device, placement: Placement, checkpoint: Checkpoint
) -> tuple[torch.dtype, str]:
    def fits(dtype: torch.dtype) -> bool:
        free = free_bytes(device)
        return free is None or _needed(checkpoint, dtype, placement) <= free

    return choose_dtype(device, placement.dtype, checkpoint.stored_dtype, fits=fits)


def _open_config(name: str, folder: Path, task: ModelKind) -> Any:
    """Open the configuration, and require that it is of a model that does the task."""
    content = read_config(name, folder / "config.json")
    check_config(name, content)
    kind = content["model_type"]
    if kind not in transformers.CONFIG_MAPPING:
        if content.get("auto_map"):
            problem = "needs code from its repository (auto_map), and such code is never run"
        else:
            problem = f"transformers {transformers.__version__} has no architecture {kind!r}"
        raise UnsupportedModelError(name, problem)
    try:
        config = transformers.AutoConfig.from_pretrained(
            folder, local_files_only=True, trust_remote_code=False
        )
    except Exception as error:
        problem = f"its config.json is not one of {kind!r} ({type(error).__name__}: {error})"
        raise UnsupportedModelError(name, problem) from error
    if type(config) not in task.configurations:
        problem = f"is no model that {task.does} (its architecture is {kind!r})"
        raise UnsupportedModelError(name, problem)
    return config


def _load(
    folder: Path,
    config: Any,
    placement: Placement,
    device: torch.device,
    *,
    dtype: torch.dtype,
    kind: ModelKind,
) -> tuple[Any, LazyWeights | None]:
    lazy = None
    options: dict[str, Any] = {"dtype": dtype, "local_files_only": True}
    if placement.attention is not Attention.AUTO:
        options["attn_implementation"] = placement.attention.value
    if placement.weights is WeightLoading.TRANSFORMERS:
        model = _load_by_transformers(kind.loader, folder, config, placement, device, **options)
    else:
        model, lazy = load_by_ourselves(folder, config, placement, device, **options)
    return model.eval().requires_grad_(requires_grad=False), lazy


def _load_by_transformers(
    loader: Any,
    folder: Path,
    config: Any,
    placement: Placement,
    device: torch.device,
    **given: Any,
) -> Any:
    options: dict[str, Any] = {
        **given,
        "config": config,
        "trust_remote_code": False,
        "use_safetensors": True,
        "output_loading_info": True,
    }
    if placement.memory in (MemoryMode.NF4, MemoryMode.INT8):
        options["quantization_config"] = _quantization(placement.memory, given["dtype"])
    if device.type != "cpu" and find_spec("accelerate") is not None:
        options["device_map"] = {"": device}  # not by way of the host's memory
    model, report = loader.from_pretrained(folder, **options)
    missing = sorted(report["missing_keys"])
    if missing:
        # transformers fills them with random numbers and goes on.
        raise IncompleteError(missing)
    if "device_map" not in options:
        model.to(device)
    return model


def _quantization(memory: MemoryMode, dtype: torch.dtype) -> Any:
    if memory is MemoryMode.INT8:
        return _library.BitsAndBytesConfig(load_in_8bit=True)
    return _library.BitsAndBytesConfig(
        load_in_4bit=True, bnb_4bit_quant_type="nf4", bnb_4bit_compute_dtype=dtype
    )
