"""Images as detectors take them: what transformers makes of them, where it can."""

import json

import numpy as np
import pytest
import torch
import transformers
from PIL import Image

from vlmcore.vlm.backends._detector_pixels import read_pixel_rules

MEAN, DEVIATION = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]
SHAPES = [(48, 90), (90, 48), (64, 64), (60, 200), (400, 300), (799, 1333)]


def rules(folder, size, *, is_squared=False):
    said = {"size": size, "image_mean": MEAN, "image_std": DEVIATION}
    (folder / "preprocessor_config.json").write_text(json.dumps(said))
    return read_pixel_rules("model", folder, is_squared=is_squared)


def picture(height, width):
    return np.random.default_rng(0).integers(0, 256, (height, width, 3), dtype=np.uint8)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(
    "size", [{"shortest_edge": 80, "longest_edge": 133}, {"height": 64, "width": 64}]
)
def test_images_are_scaled_as_transformers_scales_them(tmp_path, shape, size) -> None:
    """
    Its processor of Pillow gives the same numbers, but for the rounding of floats.
    """
    name = "GroundingDinoImageProcessor"
    kind = getattr(transformers, f"{name}Pil", None) or getattr(transformers, name)
    theirs = kind(size=size, do_pad=False, image_mean=MEAN, image_std=DEVIATION)
    expected = theirs(images=[Image.fromarray(picture(*shape))], return_tensors="pt")

    ours = rules(tmp_path, size).tensor_of(picture(*shape))

    assert ours.shape == expected["pixel_values"][0].shape
    assert torch.allclose(ours, expected["pixel_values"][0], atol=1e-5)


@pytest.mark.parametrize("shape", [(48, 90), (90, 48), (64, 64), (300, 400)])
def test_images_are_made_square_with_grey_as_the_model_was_trained(tmp_path, shape) -> None:
    """
    As SciPy blurs and scales them, but for the pixels at the edge, which it mirrors.
    """
    ndimage = pytest.importorskip("scipy.ndimage", reason="the peer is SciPy")
    side = max(shape)
    squared = np.full((side, side, 3), 0.5)
    squared[: shape[0], : shape[1]] = picture(*shape) / 255
    deviation = max(0.0, (side / 64 - 1) / 2)
    blurred = ndimage.gaussian_filter(squared, (deviation, deviation, 0), mode="mirror")
    scale = 64 / side
    scaled = ndimage.zoom(blurred, (scale, scale, 1), order=1, mode="mirror", grid_mode=True)
    expected = (scaled - MEAN) / DEVIATION

    made = rules(tmp_path, {"height": 64, "width": 64}, is_squared=True)
    ours = made.tensor_of(picture(*shape)).permute(1, 2, 0).numpy()

    assert (side, side) == made.frame_of(picture(*shape))
    assert np.allclose(ours[1:-1, 1:-1], expected[1:-1, 1:-1], atol=1e-4)


def test_what_is_beside_an_image_is_grey(tmp_path) -> None:
    """
    Half of white, not black: that is what the model has seen beside images.
    """
    made = rules(tmp_path, {"height": 64, "width": 64}, is_squared=True)
    pixels = made.tensor_of(picture(32, 64))

    grey = (0.5 - torch.tensor(MEAN)) / torch.tensor(DEVIATION)
    assert torch.allclose(pixels[:, 40:, :], grey[:, None, None].expand(3, 24, 64), atol=1e-5)
