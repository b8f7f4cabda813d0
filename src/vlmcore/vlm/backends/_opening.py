"""Opening a model of transformers: everything is checked before its weights are read."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import attrs
import torch
import transformers

from vlmcore.errors import ModelError, ModelMemoryError, UnsupportedModelError, VlmcoreError
from vlmcore.vlm.backends import _hub
from vlmcore.vlm.backends._placing import (
    check_requirements,
    choose_device,
    choose_dtype,
    free_bytes,
    needed_bytes,
    require_room,
)
from vlmcore.vlm.backends._processors import open_processor
from vlmcore.vlm.backends._quietly import quietly
from vlmcore.vlm.checkpoint import Checkpoint, check_config, read_checkpoint, read_config
from vlmcore.vlm.placement import Attention, MemoryMode, Placement
from vlmcore.vlm.sources import ModelSource

__all__ = ["OpenedModel", "estimate_bytes", "open_model"]

_library: Any = transformers  # its annotations are partial
# While transformers builds a model, it changes defaults of PyTorch for the whole process.
_one_at_a_time = threading.Lock()


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
        turn: Held while the model generates: it answers one call after the other.
    """

    model: Any
    processor: Any
    device: torch.device
    dtype: torch.dtype
    dtype_reason: str
    attention: str
    supports_video: bool
    turn: threading.Lock = attrs.field(factory=threading.Lock)

    @property
    def nbytes(self) -> int:
        """What its weights hold; those that share memory count once."""
        if self.model is None:
            return 0
        tensors = (*self.model.parameters(), *self.model.buffers())
        storages = {tensor.untyped_storage().data_ptr(): tensor for tensor in tensors}
        return sum(tensor.untyped_storage().nbytes() for tensor in storages.values())

    def free(self) -> None:
        """
        Give the memory back, also where something else still holds the model.

        Finalisers of anything may run here, and wait for other threads: not to be called while a
        lock is held that those may want.
        """
        model, self.model, self.processor = self.model, None, None
        if model is None:
            return
        with suppress(ValueError, RuntimeError, NotImplementedError):  # quantized ones cannot move
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
            checkpoint = read_checkpoint(source.name, folder)
            dtype, _ = _dtype(device, placement, checkpoint)
            return needed_bytes(checkpoint, dtype, placement.memory)
    if source.spec is None:
        return 0
    assumed = Checkpoint(files=(), elements={"BF16": source.spec.bf16_bytes // 2})
    dtype, _ = _dtype(device, placement, assumed)
    return needed_bytes(assumed, dtype, placement.memory)


def open_model(
    source: ModelSource, placement: Placement, *, chat_template: str | None = None
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
        config = _open_config(name, folder)
        processor = open_processor(name, folder, chat_template)
    if not source.is_local:
        _hub.fetch_weights(source, folder)
    checkpoint = read_checkpoint(name, folder)
    dtype, reason = _dtype(device, placement, checkpoint)
    needed = needed_bytes(checkpoint, dtype, placement.memory)
    require_room(name, needed, device)
    with _one_at_a_time, quietly(), _failures_named(name, needed, device):
        model = _load(folder, config, placement, device, dtype)
    return OpenedModel(
        model=model,
        processor=processor,
        device=device,
        dtype=dtype,
        dtype_reason=reason,
        attention=str(model.config._attn_implementation),  # noqa: SLF001  # there is no other
        supports_video=getattr(processor, "video_processor", None) is not None,
    )


def _dtype(
    device: torch.device, placement: Placement, checkpoint: Checkpoint
) -> tuple[torch.dtype, str]:
    def fits(dtype: torch.dtype) -> bool:
        free = free_bytes(device)
        return free is None or needed_bytes(checkpoint, dtype, placement.memory) <= free

    return choose_dtype(device, placement.dtype, checkpoint.stored_dtype, fits=fits)


def _open_config(name: str, folder: Path) -> Any:
    """Open the configuration, and require that it is of a model that sees and writes."""
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
    if type(config) not in transformers.MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING:
        problem = f"is no model that takes images and writes text (its architecture is {kind!r})"
        raise UnsupportedModelError(name, problem)
    return config


def _load(
    folder: Path, config: Any, placement: Placement, device: torch.device, dtype: torch.dtype
) -> Any:
    options: dict[str, Any] = {
        "config": config,
        "dtype": dtype,
        "local_files_only": True,
        "trust_remote_code": False,
        "use_safetensors": True,
        "output_loading_info": True,
    }
    if placement.attention is not Attention.AUTO:
        options["attn_implementation"] = placement.attention.value
    if placement.memory in (MemoryMode.NF4, MemoryMode.INT8):
        options["quantization_config"] = _quantization(placement.memory, dtype)
    if device.type != "cpu" and find_spec("accelerate") is not None:
        options["device_map"] = {"": device}  # not by way of the host's memory
    model, report = _library.AutoModelForImageTextToText.from_pretrained(folder, **options)
    missing = sorted(report["missing_keys"])
    if missing:
        # transformers fills them with random numbers and goes on.
        raise _IncompleteError(f"its files lack {len(missing)} of its weights, as {missing[0]!r}")
    if "device_map" not in options:
        model.to(device)
    return model.eval().requires_grad_(requires_grad=False)


class _IncompleteError(Exception):
    """Weights that the architecture has are not in the files."""


def _quantization(memory: MemoryMode, dtype: torch.dtype) -> Any:
    if memory is MemoryMode.INT8:
        return _library.BitsAndBytesConfig(load_in_8bit=True)
    return _library.BitsAndBytesConfig(
        load_in_4bit=True, bnb_4bit_quant_type="nf4", bnb_4bit_compute_dtype=dtype
    )


@contextmanager
def _failures_named(name: str, needed: int, device: torch.device) -> Iterator[None]:
    """Name the model in whatever transformers and PyTorch raise while loading."""
    try:
        yield
    except VlmcoreError:
        raise
    except _IncompleteError as error:
        raise ModelError(name, str(error)) from error
    except Exception as error:
        line = str(error).strip().partition("\n")[0]
        if _is_out_of_memory(error):
            problem = f"memory ran out on {device} while loading ({line})"
            raise ModelMemoryError(name, problem, needed, free_bytes(device)) from error
        version = transformers.__version__
        problem = f"transformers {version} cannot load it ({type(error).__name__}: {line})"
        raise ModelError(name, problem) from error


def _is_out_of_memory(error: Exception) -> bool:
    if isinstance(error, (torch.OutOfMemoryError, MemoryError)):
        return True
    # The allocator of the host has no error class of its own.
    return isinstance(error, RuntimeError) and "can't allocate memory" in str(error)
