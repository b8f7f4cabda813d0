"""
Vision-language models as a plain Python library: typed, bounded, and usable offline.

::

    import vlmcore

    with vlmcore.load_predictor("embedded") as predictor:
        prompt = vlmcore.Prompt.of("What is in this picture?", "scene.png")
        print(predictor.generate(prompt).text)

Importing this package loads NumPy and attrs, and no framework: torch, transformers and Pillow are
loaded when a model or an image file is opened.
"""

from typing import TYPE_CHECKING, Any

from vlmcore.errors import (
    ContractError,
    GenerationError,
    LimitExceededError,
    MediaError,
    MissingDependencyError,
    ModelAccessError,
    ModelError,
    ModelMemoryError,
    UnsupportedModelError,
    VlmcoreError,
)
from vlmcore.limits import ImageLimits
from vlmcore.media.images import load_image
from vlmcore.vlm.generation import CancelToken, Generation, GenerationOptions, StopReason
from vlmcore.vlm.predictor import Predictor
from vlmcore.vlm.prompt import Prompt

if TYPE_CHECKING:
    from vlmcore.vlm.loading import load_predictor

__all__ = [
    "CancelToken",
    "ContractError",
    "Generation",
    "GenerationError",
    "GenerationOptions",
    "ImageLimits",
    "LimitExceededError",
    "MediaError",
    "MissingDependencyError",
    "ModelAccessError",
    "ModelError",
    "ModelMemoryError",
    "Predictor",
    "Prompt",
    "StopReason",
    "UnsupportedModelError",
    "VlmcoreError",
    "load_image",
    "load_predictor",
]

__version__ = "0.1.0.dev0"


def __getattr__(name: str) -> Any:
    # The catalog and the residency behind this name are a fifth of the time that importing takes,
    # and a program that reads images or answers needs neither.
    if name == "load_predictor":
        from vlmcore.vlm.loading import load_predictor  # noqa: PLC0415

        return load_predictor
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
