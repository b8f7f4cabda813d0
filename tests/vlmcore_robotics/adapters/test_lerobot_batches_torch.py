"""Tests of `vlmcore_robotics.adapters._torch_batches`: arrays and tensors."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from vlmcore.errors import ContractError
from vlmcore_robotics.adapters._torch_batches import (
    array_from,
    frame_tensor,
    inferring,
    require_device,
    side_by_side,
    state_tensor,
    unseeded,
)


def test_every_value_of_a_pixel_is_the_nearest_number_to_its_255th() -> None:
    """
    Bit by bit what a division in float32 gives, channels first.
    """
    frame = np.repeat(np.arange(256, dtype=np.uint8).reshape(16, 16, 1), 3, axis=2)
    tensor = frame_tensor(frame)
    assert ((1, 3, 16, 16), torch.float32) == (tuple(tensor.shape), tensor.dtype)
    expected = np.arange(256, dtype=np.float32) / np.float32(255)
    for channel in tensor[0].numpy():
        assert np.array_equal(expected, channel.ravel())


@pytest.mark.parametrize("shape", [(1, 1, 3), (1, 5, 3), (5, 1, 3), (2, 4, 3)])
def test_a_frame_that_nobody_may_write_to_is_copied(shape: tuple[int, int, int]) -> None:
    """
    Torch writes to what it is given, without asking.
    """
    frame = np.zeros(shape, np.uint8)
    frame.flags.writeable = False
    frame_tensor(frame).fill_(1.0)
    assert not frame.any()


def test_a_state_is_one_row_of_float32() -> None:
    """
    Rounded once.
    """
    tensor = state_tensor(np.array([0.1, 2.0]))
    assert [[np.float32(0.1).item(), 2.0]] == tensor.tolist()


def test_a_state_that_float32_cannot_hold_is_refused() -> None:
    """
    It would be infinite.
    """
    with pytest.raises(ContractError, match="state: got a number beyond"):
        state_tensor(np.array([0.0, 1e39]))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_nan_and_infinity_come_out_as_they_are(dtype: torch.dtype) -> None:
    """
    It is a gate that finds them; nothing is hidden from it.
    """
    array = array_from(torch.tensor([float("nan"), float("inf"), -0.5], dtype=dtype))
    assert np.array_equal([np.nan, np.inf, -0.5], array, equal_nan=True)
    assert np.float64 == array.dtype


def test_cameras_stand_before_the_channels() -> None:
    """
    As Diffusion Policy stacks them.
    """
    frames = [torch.zeros(1, 3, 4, 5), torch.ones(1, 3, 4, 5)]
    assert (1, 2, 3, 4, 5) == tuple(side_by_side(frames).shape)


def test_no_gradients_are_recorded() -> None:
    """
    And on the CPU nothing is computed in mixed precision.
    """
    weight = torch.ones(2, 2, requires_grad=True)
    with inferring("cpu", mixed=True):
        product = weight @ weight
    assert (False, torch.float32) == (product.requires_grad, product.dtype)


def test_a_trial_leaves_random_numbers_as_they_were() -> None:
    """
    What comes after it does not depend on it.
    """
    torch.manual_seed(3)
    expected = torch.rand(4)
    torch.manual_seed(3)
    with unseeded("cpu"):
        torch.rand(100)
    assert torch.equal(expected, torch.rand(4))


@pytest.mark.parametrize("device", ["gpu", "cuda:77", "", "cpu:x"])
def test_a_device_that_is_not_here_is_refused(device: str) -> None:
    """
    Before a model is loaded.
    """
    with pytest.raises(ContractError, match="device: got"):
        require_device(device)
