"""Tests of `vlmcore.media.arrays`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from vlmcore.errors import ContractError, MediaError
from vlmcore.media.images import load_image, load_images

RNG = np.random.default_rng(0)
SHAPES = st.tuples(st.integers(5, 9), st.integers(5, 9), st.integers(1, 4))
PIXELS = SHAPES.flatmap(lambda shape: hnp.arrays(np.uint8, shape))


@given(PIXELS)
def test_both_layouts_give_the_same_image(pixels: Any) -> None:
    """
    Axes are told by their length where they can be.
    """
    expected = load_image(pixels, layout="HWC")
    assert np.array_equal(expected, load_image(pixels))
    assert np.array_equal(expected, load_image(pixels.transpose(2, 0, 1)))
    assert np.array_equal(expected, load_image(pixels.transpose(2, 0, 1), layout="CHW"))
    assert np.array_equal(expected, load_image(pixels[np.newaxis]))


@given(PIXELS)
def test_every_type_of_the_same_brightness_gives_the_same_image(pixels: Any) -> None:
    """
    uint8 0..255, uint16 0..65535 and floats 0..1 are three ways to write it.
    """
    expected = load_image(pixels)
    for kind in (np.float16, np.float32, np.float64, np.longdouble):
        assert np.array_equal(expected, load_image((pixels / 255).astype(kind)))
    sixteen = pixels.astype(np.uint16) * 257
    assert np.array_equal(expected, load_image(sixteen))
    assert np.array_equal(expected, load_image(sixteen.astype(">u2")))


@given(hnp.arrays(np.float64, (5, 6, 3), elements=st.floats(-1e308, 1e308)))
def test_floats_outside_0_to_1_are_clipped_one_by_one(values: Any) -> None:
    """
    Each value by itself: no value changes what another becomes.
    """
    assert np.array_equal(np.rint(np.clip(values, 0, 1) * 255), load_image(values))


def test_one_pixel_of_1_0001_does_not_turn_a_frame_black() -> None:
    """
    Resampling overshoots by a little; a range guessed from the maximum blinds a policy.
    """
    frame = np.full((8, 8, 3), 0.5, np.float32)
    for overshoot in (1.0001, -0.0001, 255.0):
        frame[0, 0, 0] = overshoot
        loaded = load_image(frame)
        assert 128 == loaded[4, 4, 0]
        assert (0 if overshoot < 0 else 255) == loaded[0, 0, 0]


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64])
def test_values_that_are_no_numbers_are_refused_and_counted(bad: float, kind: Any) -> None:
    """
    NaN has no brightness: a black pixel would be a guess.
    """
    frame = np.zeros((600, 600, 3), kind)
    frame[0, 0, 0] = frame[-1, -1, -1] = bad
    with pytest.raises(MediaError) as caught:
        load_image(frame)
    assert "array: 2 of 1080000 values are NaN or infinite, expected none" == str(caught.value)


@pytest.mark.parametrize(
    ("array", "expected"),
    [
        (np.zeros((3, 64, 3), np.uint8), "64 x 3 pixels of 3 channels, as CHW 3 x 64 pixels of 3"),
        (np.zeros((1, 64, 3), np.uint8), "64 x 1 pixels of 3 channels, as CHW 3 x 64 pixels of 1"),
        (np.zeros((4, 4, 4), np.uint8), "4 x 4 pixels of 4 channels, as CHW 4 x 4 pixels of 4"),
    ],
)
def test_an_ambiguous_shape_is_refused_and_both_readings_are_named(
    array: Any, expected: str
) -> None:
    """
    The way out is named as well, and works.
    """
    with pytest.raises(MediaError, match="is ambiguous: as HWC it is " + expected) as caught:
        load_image(array)
    assert "layout='HWC' or layout='CHW'" in str(caught.value)
    assert array.shape[:2] == load_image(array, layout="HWC").shape[:2]
    assert array.shape[1:] == load_image(array, layout="CHW").shape[:2]


@pytest.mark.parametrize("shape", [(7,), (2, 3, 4, 5, 6), (9, 9, 5), (5, 9, 9), (64, 64, 64), ()])
def test_a_shape_that_is_no_image_is_refused(shape: tuple[int, ...]) -> None:
    """
    With the shape, and what was expected.
    """
    with pytest.raises(MediaError, match=r"^array: shape .*expected"):
        load_image(np.zeros(shape, np.uint8))


@pytest.mark.parametrize("shape", [(0, 9), (9, 0), (0, 9, 3), (9, 0, 3), (3, 0, 9), (0, 0, 3)])
def test_an_image_without_pixels_is_refused(shape: tuple[int, ...]) -> None:
    """
    An empty crop is an accident.
    """
    with pytest.raises(MediaError, match="has no pixels"):
        load_image(np.zeros(shape, np.uint8))


@pytest.mark.parametrize(
    "kind", ["int8", "int16", "int32", "int64", "uint32", "uint64", "complex64", "O", "S3", "M8[s]"]
)
def test_other_types_are_refused_with_the_way_out(kind: str) -> None:
    """
    Their range is not known: 0..255 and 0..65535 are both common in int64.
    """
    with pytest.raises(MediaError, match=r"expected uint8, uint16, bool, or floats .* \.astype"):
        load_image(np.zeros((5, 6, 3), kind))


def test_bool_is_black_and_white() -> None:
    """
    Masks are looked at too.
    """
    assert [[255] * 3, [0] * 3] == load_image(np.array([[True, False]]))[0].tolist()


def test_grey_and_alpha_are_composited() -> None:
    """
    Two and four channels carry alpha last, in both layouts and every type.
    """
    pixels = np.zeros((5, 6, 2), np.uint8)
    pixels[0, 0] = (100, 255)
    for array in (pixels, pixels.transpose(2, 0, 1), pixels / 255):
        loaded = load_image(array)
        assert [100] * 3 == loaded[0, 0].tolist()
        assert [255] * 3 == loaded[1, 1].tolist()


@given(hnp.arrays(np.uint8, (5, 6, 4)), st.tuples(*[st.integers(0, 255)] * 3))
def test_compositing_is_the_exact_mean_rounded(pixels: Any, background: Any) -> None:
    """
    To half a step, of any background.
    """
    alpha = pixels[..., 3:] / 255
    exact = pixels[..., :3] * alpha + np.array(background) * (1 - alpha)
    assert np.abs(exact - load_image(pixels, background=background)).max() <= 0.5 + 1e-9


@pytest.mark.parametrize("shape", [(2, 300_000, 3), (300_000, 2, 3), (1000, 700, 4)])
def test_large_images_are_converted_in_blocks_without_seams(shape: tuple[int, ...]) -> None:
    """
    Wide, high, and more than one block.
    """
    pixels = RNG.integers(0, 256, shape, dtype=np.uint8)
    pixels[..., 3:] = 255
    assert np.array_equal(pixels[..., :3], load_image(pixels, layout="HWC"))


def test_views_of_all_kinds_are_read_right() -> None:
    """
    Reversed, strided, read-only, Fortran order, from a file.
    """
    base = RNG.integers(0, 256, (20, 30, 3), dtype=np.uint8)
    frozen = base.copy()
    frozen.flags.writeable = False
    for view in (base[::-1], base[::2, ::3], np.asfortranarray(base), frozen, base[:, :, ::-1]):
        assert np.array_equal(view, load_image(view))


@pytest.mark.parametrize("wrong", ["hwc", "NCHW", 3, ""])
def test_a_layout_that_does_not_exist_is_refused(wrong: Any) -> None:
    """
    Before anything is read.
    """
    with pytest.raises(ContractError, match=r"^layout: got"):
        load_image(np.zeros((5, 6, 3), np.uint8), layout=wrong)


def test_a_layout_that_does_not_fit_is_refused() -> None:
    """
    Told CHW, given HWC.
    """
    with pytest.raises(MediaError, match=r"shape \[5, 6, 3\] as CHW: expected 1 to 4 channels"):
        load_image(np.zeros((5, 6, 3), np.uint8), layout="CHW")


def test_a_batch_is_split_along_its_first_axis() -> None:
    """
    In either layout.
    """
    batch = RNG.integers(0, 256, (4, 7, 8, 3), dtype=np.uint8)
    for given_batch in (batch, batch.transpose(0, 3, 1, 2)):
        images = load_images(given_batch)
        assert 4 == len(images)
        assert all(np.array_equal(one, image) for one, image in zip(batch, images, strict=True))


@pytest.mark.parametrize(
    "subclass", [np.ma.masked_greater, lambda array, _: array.view(np.recarray)]
)
def test_a_subclass_of_array_is_read_as_its_values(subclass: Any) -> None:
    """
    A mask hides nothing from a model; a subclass does not change what indexing means.
    """
    pixels = RNG.integers(0, 256, (8, 9, 3), dtype=np.uint8)
    loaded = load_image(subclass(pixels, 100))
    assert np.array_equal(pixels, loaded)
    assert type(loaded) is np.ndarray
