"""
Vision-language models as a plain Python library: typed, bounded, and usable offline.

::

    import vlmcore

    with vlmcore.load_predictor("embedded") as predictor:
        image = vlmcore.load_image("scene.png")
        print(predictor.generate(vlmcore.Prompt(text="What is in this picture?", images=(image,))))

Importing this package loads NumPy and attrs, and no framework: torch, transformers and Pillow are
loaded when a model or an image is asked for.
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

__all__ = [
    "ContractError",
    "GenerationError",
    "ImageLimits",
    "LimitExceededError",
    "MediaError",
    "MissingDependencyError",
    "ModelAccessError",
    "ModelError",
    "ModelMemoryError",
    "UnsupportedModelError",
    "VlmcoreError",
]

__version__ = "0.1.0.dev0"
