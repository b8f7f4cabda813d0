"""Weights as arrays: mapped, or in memory of their own."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from safetensors.numpy import save_file

from vlmcore.errors import (
    ContractError,
    WeightsBudgetError,
    WeightsCancelledError,
    WeightsChangedError,
    WeightsError,
)
from vlmcore.vlm.generation import CancelToken
from vlmcore.weights import loading
from vlmcore.weights.budget import ReadBudget
from vlmcore.weights.loading import load_weights, read_weights
from vlmcore.weights.opening import open_files
from vlmcore.weights.report import Way

ways = pytest.mark.parametrize("way", list(Way))
caches = pytest.mark.parametrize("is_cached", [True, False], ids=["cached", "not cached"])


@pytest.fixture(scope="module")
def tensors() -> Mapping[str, npt.NDArray[np.generic]]:
    random = np.random.default_rng(0)
    return {
        "large": random.normal(size=(1000, 1100)).astype("f4"),
        "bytes": np.frombuffer(random.bytes(6_000_001), np.uint8),
        "half": random.normal(size=(3, 5)).astype("f2"),
        "scalar": np.array(-3, "i8"),
        "flags": np.array([True, False, True]),
        "nothing": np.zeros((0, 4), "f4"),
        "complex": random.normal(size=(7, 2)).astype("f4").view("c8"),
        "many": random.integers(-9, 9, (40, 3)).astype("i2"),
        **{f"tiny.{i}": random.normal(size=(i,)) for i in range(40)},
    }


@pytest.fixture
def path(tmp_path: Path, tensors: Mapping[str, npt.NDArray[np.generic]]) -> Path:
    save_file(dict(tensors), tmp_path / "some.safetensors")
    return tmp_path / "some.safetensors"


def forget_pages(path: Path) -> None:
    """Have the page cache forget a file."""
    fd = os.open(path, os.O_RDONLY)
    os.fsync(fd)
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(fd)


@ways
@caches
def test_every_tensor_is_what_was_written(
    path: Path, tensors: Mapping[str, npt.NDArray[np.generic]], way: Way, is_cached: bool
) -> None:
    """
    Numbers, dtypes and shapes are those of the file, whether its pages are in memory or not.
    """
    if not is_cached:
        forget_pages(path)
    with load_weights(path, way=way) as weights:
        assert tensors.keys() == weights.keys()
        for name, tensor in tensors.items():
            assert (tensor.dtype, tensor.shape) == (weights[name].dtype, weights[name].shape)
            assert tensor.tobytes() == weights[name].tobytes()


@ways
def test_writing_to_a_weight_does_not_reach_the_file(path: Path, way: Way) -> None:
    """
    Arrays may be changed in place: the change stays in this process, and other loads do not see it.
    """
    before = path.read_bytes()
    with load_weights(path, way=way) as weights, load_weights(path, way=way) as others:
        expected = others["large"].copy()
        weights["large"][...] = 7
        assert (7, 7) == (weights["large"].min(), weights["large"].max())
        assert np.array_equal(expected, others["large"])
    assert before == path.read_bytes()
