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
]

__version__ = "0.1.0.dev0"
