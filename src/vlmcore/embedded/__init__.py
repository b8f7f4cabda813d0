"""
The embedded model: a small vision-language model that comes with the package.

It names drawn shapes, letters and digits and knows nothing of photographs: a test bed with real
answers, not a product. ``MODEL_CARD.md`` beside this file says what it can do and how well.
"""

import pathlib

__all__ = ["model_directory", "sample_scene_path", "sample_scene_paths"]

_HERE = pathlib.Path(__file__).parent


def model_directory() -> pathlib.Path:
    """Return the folder with the model, which ``from_pretrained`` of transformers opens."""
    return _HERE / "model"


def sample_scene_paths() -> tuple[pathlib.Path, ...]:
    """Return the pictures that come with the model, drawn from scenes it was never trained on."""
    samples = sorted((_HERE / "samples").glob("scene-*.png"))
    return tuple(samples)


def sample_scene_path() -> pathlib.Path:
    """Return the first of the pictures that come with the model."""
    return _HERE / "samples" / "scene-1.png"
