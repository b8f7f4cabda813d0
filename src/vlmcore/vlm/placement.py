"""Where a local model runs, and in what form its weights are kept."""

from __future__ import annotations

import enum
import re

import attrs

from vlmcore._arrays import require_count
from vlmcore.errors import ContractError

__all__ = ["Attention", "Decoding", "Dtype", "MemoryMode", "Placement", "WeightLoading"]

_DEVICE = re.compile(r"(auto|cpu|mps|(cuda|xpu)(:[0-9]{1,3})?)")


class MemoryMode(enum.Enum):
    """In what form the weights are kept while the model is loaded."""

    MANAGED = "managed"  # as `Dtype` says, on the device, held by the residency
    NF4 = "nf4"  # 4-bit NormalFloat, by bitsandbytes
    INT8 = "int8"  # 8-bit, by bitsandbytes
    CPU = "cpu"  # in the host's memory, whatever other device there is


class Attention(enum.Enum):
    """Which attention implementation the model is given."""

    AUTO = "auto"  # PyTorch's scaled-dot-product attention where the model has it
    FLASH_2 = "flash_attention_2"  # the flash-attn package, on CUDA devices
    EAGER = "eager"  # plain matrix products


class Dtype(enum.Enum):
    """The number format of the weights."""

    AUTO = "auto"  # chosen for the device; the reason is in `PredictorInfo.dtype`
    BFLOAT16 = "bfloat16"
    FLOAT16 = "float16"
    FLOAT32 = "float32"


class WeightLoading(enum.Enum):
    """How the weights get from their files into memory; the numbers are the same."""

    TRANSFORMERS = "transformers"  # as transformers does it
    MAPPED = "mapped"  # as pages of the files, on the CPU; what is converted is copied
    COPIED = "copied"  # into memory of their own, by way of bounded staging memory
    LAZY = "lazy"  # when a module needs them, within a budget


class Decoding(enum.Enum):
    """What the steps of one token read; an answer is such steps, after its prompt was read."""

    AS_LOADED = "as_loaded"  # the weights as they were loaded
    FLOAT16 = "float16"  # copies of the language weights in float16, on the CPU
    COMPILED = "compiled"  # by compiled layers; copies in 16 bits of what 16 bits hold exactly
    COMPILED_FLOAT16 = "compiled_float16"  # the same, and the others are rounded to float16

    @property
    def copies(self) -> bool:
        """Whether there may be copies of weights beside the weights."""
        return self is not Decoding.AS_LOADED


@attrs.frozen(kw_only=True)
class Placement:
    """
    Where a model runs, and in what form its weights are kept.

    Attributes:
        device: ``"auto"`` takes the first of cuda, xpu, mps and cpu that is there; or one of
            them by name, as ``"cuda:1"``.
        dtype: The number format of the weights.
        memory: In what form the weights are kept.
        attention: The attention implementation.
        weights: How the weights are loaded.
        weights_budget_bytes: What weights that are loaded lazily may take at once.
        decoding: What the steps of one token read.
    """

    device: str = "auto"
    dtype: Dtype = Dtype.AUTO
    memory: MemoryMode = MemoryMode.MANAGED
    attention: Attention = Attention.AUTO
    weights: WeightLoading = WeightLoading.TRANSFORMERS
    weights_budget_bytes: int | None = None
    decoding: Decoding = Decoding.AS_LOADED

    def __attrs_post_init__(self) -> None:
        if not isinstance(self.device, str) or not _DEVICE.fullmatch(self.device):
            raise ContractError(
                "device",
                f"got {self.device!r}, expected 'auto', 'cpu', 'mps', 'cuda' or 'xpu', "
                "the last two with a number if there are several, as 'cuda:1'",
            )
        for field, kind in _CHOICES.items():
            value = getattr(self, field)
            if not isinstance(value, kind):
                names = ", ".join(str(member) for member in kind)
                raise ContractError(field, f"got {value!r}, expected one of {names}")
        self._require_loadable()

    def _require_loadable(self) -> None:
        is_quantized = self.memory in (MemoryMode.NF4, MemoryMode.INT8)
        if is_quantized and self.weights is not WeightLoading.TRANSFORMERS:
            raise ContractError(
                "weights",
                f"got {self.weights.value!r} together with memory={self.memory.value!r}, expected "
                "'transformers': weights are quantized while it loads them",
            )
        if (self.weights_budget_bytes is None) is (self.weights is WeightLoading.LAZY):
            raise ContractError(
                "weights_budget_bytes",
                f"got {self.weights_budget_bytes} for weights={self.weights.value!r}, expected a "
                "number of bytes for 'lazy', and none for others",
            )
        if self.weights_budget_bytes is not None:
            require_count(weights_budget_bytes=self.weights_budget_bytes)
        if self.decoding.copies and self.weights is WeightLoading.LAZY:
            raise ContractError(
                "decoding",
                f"got {self.decoding.value!r} together with weights='lazy', expected one or the "
                "other: copies of weights that come and go would not go",
            )


_CHOICES = {
    "dtype": Dtype,
    "memory": MemoryMode,
    "attention": Attention,
    "weights": WeightLoading,
    "decoding": Decoding,
}
