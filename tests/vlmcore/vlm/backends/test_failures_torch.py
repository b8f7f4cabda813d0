"""Tests of `vlmcore.vlm.backends._failures`: what a model raises while it runs names it."""

from __future__ import annotations

import pytest

from vlmcore.errors import (
    DetectionError,
    GenerationError,
    MediaError,
    ModelError,
    ModelMemoryError,
    WeightsError,
)
from vlmcore.vlm.backends._failures import failures_while


@pytest.mark.parametrize("kind", [GenerationError, DetectionError])
@pytest.mark.parametrize(
    ("error", "message"),
    [
        (ValueError("no such token"), "m: it failed while at it (ValueError: no such token)"),
        (WeightsError("a.safetensors", "is cut"), "its weights cannot be read"),
        (MemoryError("too much"), "m: memory ran out while at it; ask for less at once"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_is_raised_names_the_model_whoever_runs_it(
    kind: type[ModelError], error: Exception, message: str
) -> None:
    """
    Weights that come when they are needed fail late, for whoever needs them.
    """
    expected = ModelMemoryError if isinstance(error, MemoryError) else kind
    with pytest.raises(expected) as caught, failures_while("at it", "m", kind):
        raise error
    assert message in str(caught.value)
    assert caught.value.__cause__ is error


def test_an_error_of_ours_passes_as_it_is() -> None:
    """
    It is clear already.
    """
    error = MediaError("a.png", "is no image")
    with pytest.raises(MediaError) as caught, failures_while("at it", "m", GenerationError):
        raise error
    assert caught.value is error
