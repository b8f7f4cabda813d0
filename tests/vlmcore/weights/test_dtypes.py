"""Tests of `vlmcore.weights.dtypes`."""

from __future__ import annotations

import sys
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from vlmcore.errors import ContractError, MissingDependencyError
from vlmcore.weights.dtypes import DType


@pytest.mark.parametrize("dtype", DType, ids=lambda dtype: dtype.value)
def test_a_type_is_found_by_every_name_that_it_has(dtype: DType) -> None:
    """
    Its own, that of torch, that of safetensors, and the type of arrays.
    """
    assert dtype is DType.of(dtype)
    assert dtype is DType.of(dtype.value)
    assert dtype is DType.of(f"torch.{dtype.value}")
    if dtype.safetensors is not None:
        assert dtype is DType.of_safetensors(dtype.safetensors)
    if dtype is not DType.COMPLEX32:
        assert dtype is DType.of(dtype.numpy)
        assert dtype is DType.of(dtype.numpy.type)


@pytest.mark.parametrize("dtype", DType, ids=lambda dtype: dtype.value)
def test_what_holds_the_bytes_of_a_type_is_as_wide(dtype: DType) -> None:
    """
    A type of NumPy alone, little-endian.
    """
    assert dtype.itemsize == dtype.storage.itemsize
    assert dtype.storage.byteorder in "<|="
    assert dtype.storage.kind in "biufc"
    if dtype is not DType.COMPLEX32:
        assert dtype.itemsize == dtype.numpy.itemsize


def test_bfloat16_and_float8_are_the_types_of_ml_dtypes() -> None:
    """
    So that arrays of them can be computed with.
    """
    assert np.dtype(ml_dtypes.bfloat16) == DType.BFLOAT16.numpy
    assert np.dtype(ml_dtypes.float8_e4m3fn) == DType.FLOAT8_E4M3FN.numpy
    assert not DType.BFLOAT16.is_native
    assert DType.FLOAT16.is_native


def test_without_ml_dtypes_the_extra_that_brings_it_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """
    And what NumPy has works without.
    """
    monkeypatch.setitem(sys.modules, "ml_dtypes", None)
    monkeypatch.delitem(sys.modules, "vlmcore.weights._ml_dtypes", raising=False)
    assert np.dtype("<f4") == DType.FLOAT32.numpy
    with pytest.raises(MissingDependencyError, match=r"vlmcore\[weights\]"):
        _ = DType.BFLOAT16.numpy


def test_half_complex_numbers_are_no_array() -> None:
    """
    NumPy has none; their bytes can be had.
    """
    with pytest.raises(ContractError, match="complex32"):
        _ = DType.COMPLEX32.numpy
    assert 4 == DType.COMPLEX32.itemsize


@pytest.mark.parametrize("unknown", ["float3", "", "torch.", "U8", object(), "nn", None, 3, "V8"])
def test_what_is_no_type_is_told_with_those_that_are(unknown: Any) -> None:
    """
    Whatever it is.
    """
    with pytest.raises(ContractError, match="expected one of bool, uint8"):
        DType.of(unknown)


@pytest.mark.parametrize("unknown", ["F4", "F6_E2M3", "f32", "", None, []])
def test_what_safetensors_do_not_have_is_told_with_what_they_have(unknown: Any) -> None:
    """
    Types of 4 and of 6 bits too.
    """
    with pytest.raises(ContractError, match="expected one of BOOL, U8"):
        DType.of_safetensors(unknown)
