"""Tests of `vlmcore.media.arrays` with torch tensors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from vlmcore.errors import MediaError, MediaLimitError
from vlmcore.limits import ImageLimits
from vlmcore.media.images import load_image, load_images

PIXELS = np.random.default_rng(0).integers(0, 256, (6, 9, 3), dtype=np.uint8)
TENSOR = torch.from_numpy(PIXELS)


@pytest.mark.parametrize(
    "tensor",
    [
        TENSOR,
        TENSOR.permute(2, 0, 1),
        TENSOR / 255,
        (TENSOR / 255).double(),
        (TENSOR / 255).half(),
        (TENSOR / 255).requires_grad_(),
        (TENSOR / 255)[None],
        (TENSOR.permute(2, 0, 1) / 255)[None],
        torch.nn.Parameter(TENSOR / 255),
        TENSOR.to(torch.uint16) * 257,
    ],
)
def test_a_tensor_of_any_kind_is_the_image_it_shows(tensor: Any) -> None:
    """
    Layout, type, gradient, a batch of one: the pixels are the same.
    """
    loaded = load_image(tensor)
    assert np.array_equal(PIXELS, loaded)
    assert loaded.flags.owndata


def test_bfloat16_is_read_as_precisely_as_it_is() -> None:
    """
    NumPy has no such type; 8 bits of mantissa are within 1 of 255 steps.
    """
    loaded = load_image((TENSOR / 255).to(torch.bfloat16))
    assert np.abs(loaded.astype(int) - PIXELS).max() <= 1


def test_the_tensor_is_left_alone() -> None:
    """
    Neither memory nor gradient is shared.
    """
    tensor = TENSOR.clone()
    load_image(tensor)[:] = 0
    assert torch.equal(TENSOR, tensor)


def test_a_batch_of_frames_is_a_list_of_images() -> None:
    """
    As ComfyUI passes them, [B, H, W, C] floats.
    """
    batch = torch.stack([TENSOR, TENSOR.flip(0)]) / 255
    first, second = load_images(batch)
    assert np.array_equal(PIXELS, first)
    assert np.array_equal(PIXELS[::-1], second)
    with pytest.raises(MediaError, match=r"^tensor: shape \[2, 6, 9, 3\] is a batch of 2"):
        load_image(batch)


@pytest.mark.parametrize(
    "tensor",
    [
        torch.zeros(5, 6, 3, device="meta"),
        torch.zeros(5, 6, 3).to_sparse(),
    ],
    ids=["meta", "sparse"],
)
def test_a_tensor_without_plain_values_is_our_error(tensor: Any) -> None:
    """
    Named, with torch's own words.
    """
    with pytest.raises(MediaError, match=r"^tensor: has no plain values: "):
        load_image(tensor)


@pytest.mark.parametrize("kind", [torch.int64, torch.int32, torch.complex64])
def test_a_tensor_of_another_type_is_refused(kind: torch.dtype) -> None:
    """
    As for arrays.
    """
    with pytest.raises(
        MediaError, match=r"^tensor: got .*, expected uint8, uint16, bool, or float"
    ):
        load_image(torch.zeros(5, 6, 3).to(kind))


def test_an_ambiguous_tensor_is_refused() -> None:
    """
    As for arrays; torch's habit of CHW is no reason to guess.
    """
    with pytest.raises(MediaError, match=r"^tensor: shape \[3, 64, 3\] is ambiguous"):
        load_image(torch.zeros(3, 64, 3))
    assert (64, 3, 3) == load_image(torch.zeros(3, 64, 3), layout="CHW").shape


def test_a_tensor_that_is_too_large_is_not_brought_over() -> None:
    """
    It may live on a device; a meta tensor shows that it was never touched.
    """
    huge = torch.zeros(100_000, 100_000, 3, device="meta")
    with pytest.raises(MediaLimitError, match="max_pixels: got 10000000000, limit is 16777216"):
        load_image(huge)
    with pytest.raises(MediaLimitError, match="max_pixels: got 10000000000, limit is 16777216"):
        load_image(huge.permute(2, 0, 1))
    with pytest.raises(MediaLimitError, match="max_pixels: got 54, limit is 53"):
        load_image(TENSOR, limits=ImageLimits(max_pixels=53))


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs an accelerator")
def test_a_tensor_of_a_device_is_brought_over() -> None:
    """
    From wherever it lives.
    """
    assert np.array_equal(PIXELS, load_image((TENSOR / 255).cuda()))
