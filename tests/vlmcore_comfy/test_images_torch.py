"""Pictures cross between ComfyUI and the core as they are, or with one sentence not at all."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from vlmcore.errors import ContractError
from vlmcore.limits import ImageLimits
from vlmcore_comfy.images import image_of, mask_of, pictures_of

torch = pytest.importorskip("torch")

PICTURES = hnp.arrays(
    np.uint8, st.tuples(st.integers(1, 3), st.integers(1, 5), st.integers(1, 5), st.just(3))
)


@given(pictures=PICTURES)
def test_a_picture_comes_back_as_it_went(pictures: Any) -> None:
    """
    uint8 to float and back changes no value, of any size, 1 x 1 too.
    """
    tensor = image_of(list(pictures))
    assert tensor.dtype == torch.float32
    assert tuple(tensor.shape) == pictures.shape
    assert 0 <= float(tensor.min())
    assert float(tensor.max()) <= 1
    assert all(map(np.array_equal, pictures, pictures_of("image", tensor)))


def test_values_outside_are_clipped_one_by_one() -> None:
    """
    Nothing wraps around, and no scale is guessed from the largest.
    """
    tensor = torch.tensor([[[[-0.5, 0.5, 1.5]]]])
    assert [[[0, 128, 255]]] == pictures_of("image", tensor)[0].tolist()


def test_what_is_transparent_lies_on_white() -> None:
    """
    An IMAGE may have four channels.
    """
    tensor = torch.tensor([[[[1.0, 0.0, 0.0, 0.0], [1.0, 0.0, 0.0, 1.0]]]])
    assert [[[255, 255, 255], [255, 0, 0]]] == pictures_of("image", tensor)[0].tolist()


def test_one_picture_may_come_without_its_batch() -> None:
    """
    Some packs take it off.
    """
    assert (4, 6, 3) == pictures_of("image", torch.zeros(4, 6, 3))[0].shape


@pytest.mark.parametrize(
    ("given_", "said"),
    [
        (torch.zeros(0, 4, 4, 3), r"image: got the shape \[0, 4, 4, 3\], expected at least one"),
        (torch.zeros(1, 0, 4, 3), r"image: got the shape \[1, 0, 4, 3\], expected at least one"),
        (torch.zeros(2, 4, 5), r"image: got the shape \[2, 4, 5\], .*Convert Mask to Image"),
        (torch.zeros(1, 4, 4, 7), r"image: got the shape \[1, 4, 4, 7\], expected an IMAGE"),
        (torch.full((1, 2, 2, 3), float("nan")), "image: 12 of 12 values are NaN or infinite"),
        (torch.full((2, 2, 2, 3), float("inf")), r"image\[0\]: 12 of 12 values are NaN"),
        (torch.zeros(1, 2, 2, 3, dtype=torch.int64), "image: got int64, expected uint8"),
        ({"samples": 1}, "image: got .*, expected an IMAGE"),
        (None, "image: got None, expected an IMAGE"),
        ("image.png", "image: got 'image.png', expected an IMAGE"),
    ],
)
def test_what_is_no_image_is_refused_by_the_name_of_its_input(given_: Any, said: str) -> None:
    """
    A latent, a mask, an empty batch and what is no number each get one sentence.
    """
    with pytest.raises(ContractError, match=said):
        pictures_of("image", given_)


def test_a_picture_that_is_too_large_is_refused_before_it_is_converted() -> None:
    """
    A tensor that repeats one number takes no memory; its copy would.
    """
    huge = torch.zeros(1, 1, 1, 1).expand(1, 100_000, 100_000, 3)
    with pytest.raises(ContractError, match="max_pixels"):
        pictures_of("image", huge, limits=ImageLimits())


def test_pictures_of_several_sizes_make_no_batch() -> None:
    """
    A batch has one size; none is stretched in silence.
    """
    with pytest.raises(ContractError, match="got 2 sizes"):
        image_of([np.zeros((2, 2, 3), np.uint8), np.zeros((2, 3, 3), np.uint8)])
    with pytest.raises(ContractError, match="got 0 sizes"):
        image_of([])


def test_masks_are_zeros_and_ones() -> None:
    """
    ComfyUI's MASK is float32 of shape [B, H, W].
    """
    mask = mask_of([np.array([[True, False]])])
    assert mask.tolist() == [[[1.0, 0.0]]]
    assert mask.dtype == torch.float32
    with pytest.raises(ContractError, match="got 0 sizes"):
        mask_of([])
