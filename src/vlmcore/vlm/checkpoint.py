"""
What the files of a model say about it, read without any framework and within bounds.

Only safetensors are ever loaded: reading pickled weights runs code. Their headers tell what a model
will hold before a byte of its weights is read, and that a file was cut short.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import attrs

from vlmcore.errors import (
    LimitExceededError,
    ModelAccessError,
    ModelError,
    UnsupportedModelError,
    WeightsError,
)
from vlmcore.limits import ModelLimits, require_at_most
from vlmcore.weights.opening import open_files

__all__ = [
    "Checkpoint",
    "check_config",
    "check_file_names",
    "read_checkpoint",
    "read_config",
    "read_pack",
    "weight_files",
    "weights_path",
]

WEIGHTS = "model.safetensors"
WEIGHTS_INDEX = "model.safetensors.index.json"
PACK = "model.flashpack"

_PICKLES = (".bin", ".pt", ".pth", ".ckpt", ".pkl")
_ONLY = "only safetensors are loaded"
_LIMITS = ModelLimits()

_BITS = {
    "BOOL": 8, "U8": 8, "I8": 8, "U16": 16, "I16": 16, "U32": 32, "I32": 32, "U64": 64, "I64": 64,
    "F8_E4M3": 8, "F8_E5M2": 8, "F8_E8M0": 8, "F16": 16, "BF16": 16, "F32": 32, "F64": 64,
    "C64": 64, "F4": 4, "F6_E2M3": 6, "F6_E3M2": 6,
}  # fmt: skip
_FLOATS = {"F16": "float16", "BF16": "bfloat16", "F32": "float32", "F64": "float64"}


@attrs.frozen(kw_only=True)
class Checkpoint:
    """
    The weights of a model, as their headers declare them.

    Attributes:
        files: The files that hold them.
        elements: How many numbers there are of each number format, by its name in safetensors.
    """

    files: tuple[Path, ...]
    elements: Mapping[str, int]

    @property
    def stored_dtype(self) -> str | None:
        """The format of most of its floating-point numbers; ``None`` if there are none."""
        floats = {name: count for name, count in self.elements.items() if name in _FLOATS}
        return _FLOATS[max(floats, key=floats.__getitem__)] if floats else None

    @property
    def nbytes(self) -> int:
        """How much the weights hold as they are stored."""
        return sum(count * _BITS[name] // 8 for name, count in self.elements.items())

    def nbytes_as(self, bytes_each: float) -> int:
        """How much they hold once each floating-point number takes *bytes_each*."""
        floats = sum(count for name, count in self.elements.items() if name in _FLOATS)
        others = (c * _BITS[n] // 8 for n, c in self.elements.items() if n not in _FLOATS)
        return math.ceil(floats * bytes_each) + sum(others)


def check_file_names(model: str, names: Collection[str]) -> None:
    """
    Tell from the names of its files whether a folder or repository is a model that can be loaded.

    Args:
        model: The model as the caller named it.
        names: The names of the files at the top.

    Raises:
        ModelAccessError: If it is no model, or has no weights.
        UnsupportedModelError: If it is another kind of model, or has no safetensors.
    """
    if "model_index.json" in names:
        raise UnsupportedModelError(
            model, "is a diffusers pipeline (it has a model_index.json), which makes images"
        )
    if "adapter_config.json" in names:
        raise UnsupportedModelError(
            model, "is a LoRA adapter (it has an adapter_config.json): merge it into its base model"
        )
    gguf = [name for name in names if name.endswith(".gguf")]
    if "config.json" not in names:
        if gguf:
            raise UnsupportedModelError(model, f"holds GGUF weights ({gguf[0]}); {_ONLY}")
        raise ModelAccessError(model, "is not the folder of a model: it has no config.json")
    if {WEIGHTS, WEIGHTS_INDEX, PACK} & set(names):
        return
    pickles = sorted(name for name in names if name.endswith(_PICKLES))
    if pickles:
        problem = f"has pickled weights ({pickles[0]}), and reading those runs code; {_ONLY}"
        raise UnsupportedModelError(model, problem)
    if gguf:
        raise UnsupportedModelError(model, f"holds GGUF weights ({gguf[0]}); {_ONLY}")
    raise ModelAccessError(model, f"has no weights: neither {WEIGHTS} nor {WEIGHTS_INDEX} is there")


def read_config(model: str, path: Path) -> dict[str, Any]:
    """
    Read a configuration file: a JSON object, of bounded size.

    Raises:
        ModelError: If it is not, with the name of the file.
    """
    return _read_object(model, path, "max_config_bytes", _LIMITS.max_config_bytes)


def check_config(model: str, config: Mapping[str, Any]) -> None:
    """
    Require that a ``config.json`` names the architecture of the model.

    Raises:
        UnsupportedModelError: If it does not.
    """
    if not isinstance(config.get("model_type"), str):
        problem = (
            f"its config.json names no architecture (model_type: {config.get('model_type')!r})"
        )
        raise UnsupportedModelError(model, problem)


def weight_files(model: str, folder: Path) -> tuple[str, ...]:
    """
    Name the files that hold the weights, as the index says where there is one.

    Raises:
        ModelError: If the index cannot be read, or names files outside the folder.
    """
    if (folder / WEIGHTS).exists() or not (folder / WEIGHTS_INDEX).exists():
        return (WEIGHTS,)
    path = folder / WEIGHTS_INDEX
    index = _read_object(model, path, "max_index_bytes", _LIMITS.max_index_bytes)
    shards = index.get("weight_map")
    if not isinstance(shards, dict) or not shards:
        raise ModelError(model, f"{WEIGHTS_INDEX} has no weight_map")
    names = sorted({str(name) for name in shards.values()})
    for name in names:
        if Path(name).name != name or not name.endswith(".safetensors"):
            raise ModelError(model, f"{WEIGHTS_INDEX} names {name!r}, expected a file beside it")
    return tuple(names)


def weights_path(folder: Path) -> Path:
    """Return where the weights of *folder* are, for `vlmcore.weights`: a pack goes first."""
    paths = [folder / name for name in (PACK, WEIGHTS, WEIGHTS_INDEX)]
    return next((path for path in paths if path.exists()), paths[1])


def read_pack(model: str, folder: Path) -> Checkpoint:
    """
    Read what the pack of *folder* holds, as `read_checkpoint` does of files of safetensors.

    Raises:
        ModelError: If it is damaged, or cannot be read.
    """
    try:
        with open_files(folder / PACK) as files:
            elements: Counter[str] = Counter()
            for entry in files.index.values():
                spelling = entry.dtype.safetensors
                if spelling not in _BITS:
                    spelling = f"U{8 * entry.dtype.itemsize}"  # as large, and no float to convert
                elements[spelling] += math.prod(entry.shape)
            return Checkpoint(files=files.paths, elements=dict(elements))
    except WeightsError as error:
        raise ModelError(model, str(error)) from error


def read_checkpoint(model: str, folder: Path) -> Checkpoint:
    """
    Read the headers of all weight files of *folder*, and that each file is as long as it says.

    Raises:
        ModelAccessError: If a file is missing.
        UnsupportedModelError: If there is a pack in the place of files of safetensors.
        ModelError: If a file is damaged, with its name.
    """
    if (folder / PACK).exists() and not any(
        (folder / n).exists() for n in (WEIGHTS, WEIGHTS_INDEX)
    ):
        problem = f"its weights are a pack ({PACK}), which transformers does not read"
        raise UnsupportedModelError(model, f"{problem}; weights='mapped' does")
    files = tuple(folder / name for name in weight_files(model, folder))
    elements: Counter[str] = Counter()
    for path in files:
        elements.update(_elements(model, path))
    return Checkpoint(files=files, elements=dict(elements))


def _elements(model: str, path: Path) -> Counter[str]:
    try:
        header, room = _header(path)
        return _counted(header, room)
    except FileNotFoundError as error:
        problem = f"the weight file {path.name} is missing: was the download cut short?"
        raise ModelAccessError(model, problem) from error
    except OSError as error:
        raise ModelAccessError(model, f"{path.name} cannot be read ({error})") from error
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        problem = f"the weight file {path.name} is damaged ({error})"
        raise ModelError(model, problem) from error


def _header(path: Path) -> tuple[dict[str, Any], int]:
    """Read the header of a safetensors file, and how many bytes come after it."""
    size = path.stat().st_size
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        if length > size - 8:
            raise ValueError(f"it has {size} bytes, and its header claims {length}")
        require_at_most("max_header_bytes", length, _LIMITS.max_header_bytes)
        header = json.loads(file.read(length))
    return header, size - 8 - length


def _counted(header: dict[str, Any], room: int) -> Counter[str]:
    elements: Counter[str] = Counter()
    end = 0
    for name, tensor in header.items():
        if name == "__metadata__":
            continue
        dtype, shape, offsets = tensor["dtype"], tensor["shape"], tensor["data_offsets"]
        if dtype not in _BITS:
            raise ValueError(f"{name!r} has the unknown number format {dtype!r}")
        if not all(type(n) is int and n >= 0 for n in (*shape, *offsets)) or len(offsets) != 2:
            raise ValueError(f"{name!r} has no proper shape and place")
        if offsets[1] - offsets[0] != math.prod(shape) * _BITS[dtype] // 8:
            raise ValueError(f"{name!r} does not fill its place")
        elements[dtype] += math.prod(shape)
        end = max(end, offsets[1])
    if end != room:
        raise ValueError(f"{end} bytes of weights are declared, and {room} are there")
    return elements


def _read_object(model: str, path: Path, limit: str, allowed: int) -> dict[str, Any]:
    try:
        with path.open("rb") as file:
            raw = file.read(allowed + 1)
        require_at_most(limit, len(raw), allowed)
        value = json.loads(raw)
    except LimitExceededError as error:
        raise ModelError(model, f"{path.name} is too large ({error})") from error
    except OSError as error:
        raise ModelAccessError(model, f"{path.name} cannot be read ({error})") from error
    except (ValueError, RecursionError) as error:
        raise ModelError(model, f"{path.name} is not JSON ({error})") from error
    if not isinstance(value, dict):
        problem = f"{path.name} holds {type(value).__name__}, expected a JSON object"
        raise ModelError(model, problem)
    return value
