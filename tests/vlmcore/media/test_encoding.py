"""Tests of `vlmcore.media.encoding`."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from PIL import Image

from vlmcore.errors import ContractError, MediaError, MediaLimitError
from vlmcore.media.encoding import data_url, encode_jpeg, encode_png
from vlmcore.media.images import load_image

NOISE = np.random.default_rng(0).integers(0, 256, (64, 64, 3), dtype=np.uint8)
IMAGES = st.tuples(st.integers(1, 9), st.integers(1, 9), st.just(3)).flatmap(
    lambda shape: hnp.arrays(np.uint8, shape)
)


@given(IMAGES)
def test_png_keeps_every_pixel(image: Any) -> None:
    """
    Encoded and loaded again, also by way of a data URL.
    """
    assert np.array_equal(image, load_image(encode_png(image)))
    assert np.array_equal(image, load_image(data_url(encode_png(image))))


def test_jpeg_is_close() -> None:
    """
    A smooth picture at the default quality.
    """
    smooth = np.asarray(Image.linear_gradient("L").resize((64, 64)).convert("RGB"))
    assert np.abs(load_image(encode_jpeg(smooth)).astype(int) - smooth).max() < 8


def test_a_bound_on_bytes_is_kept_by_lower_quality() -> None:
    """
    The first that fits; the caller's quality where it does.
    """
    whole = encode_jpeg(NOISE)
    assert whole == encode_jpeg(NOISE, max_bytes=len(whole))
    fitted = encode_jpeg(NOISE, max_bytes=len(whole) - 1)
    assert len(fitted) < len(whole)
    assert (64, 64, 3) == load_image(fitted).shape


def test_what_cannot_fit_is_refused_with_the_numbers() -> None:
    """
    Rather than sent as mud.
    """
    with pytest.raises(MediaLimitError, match=r"^image: max_bytes: got \d+, limit is 100$"):
        encode_jpeg(NOISE, max_bytes=100)
    with pytest.raises(MediaLimitError, match=r"^image: max_bytes: got \d+, limit is 100$"):
        encode_png(NOISE, max_bytes=100)
    with pytest.raises(MediaLimitError):
        encode_jpeg(NOISE, quality=10, max_bytes=100)


def test_png_is_without_loss_however_much_it_is_compressed() -> None:
    """
    Less of it is quicker, and larger.
    """
    picture = np.broadcast_to(np.arange(200, dtype=np.uint8)[:, np.newaxis], (100, 200, 3)).copy()
    files = [encode_png(picture, compression=each) for each in (1, 9)]
    assert all(np.array_equal(picture, load_image(each)) for each in files)
    assert len(files[0]) > len(files[1])


@pytest.mark.parametrize("compression", [0, 10, True, 1.0])
def test_compression_is_one_to_nine(compression: object) -> None:
    """
    0 would write the pixels as they are.
    """
    with pytest.raises(ContractError, match=r"^compression: got"):
        encode_png(NOISE, compression=compression)


@pytest.mark.parametrize("encode", [encode_jpeg, encode_png])
def test_nothing_but_pixels_is_written(encode: Any) -> None:
    """
    No EXIF, no text, no profile, no comment.
    """
    info = Image.open(io.BytesIO(encode(NOISE))).info
    assert {} == {key: value for key, value in info.items() if not str(key).startswith("jfif")}


@pytest.mark.parametrize("encode", [encode_jpeg, encode_png])
@pytest.mark.parametrize("wrong", [np.zeros((5, 7)), np.zeros((5, 7, 4), np.uint8), b"", None])
def test_only_rgb_images_are_encoded(encode: Any, wrong: Any) -> None:
    """
    Loading comes first.
    """
    with pytest.raises(ContractError, match=r"^image: got"):
        encode(wrong)


def test_options_out_of_range_are_refused() -> None:
    """
    Named in the error.
    """
    for quality in (0, 96, 1.5):
        with pytest.raises(ContractError, match=r"^quality: got"):
            encode_jpeg(NOISE, quality=quality)  # type: ignore[arg-type]
    for encode in (encode_jpeg, encode_png):
        with pytest.raises(ContractError, match=r"^max_bytes: got"):
            encode(NOISE, max_bytes=0)


def test_an_edge_that_jpeg_cannot_hold_is_our_error() -> None:
    """
    65,535 pixels is the most.
    """
    with pytest.raises(MediaError, match=r"^image: cannot be encoded as JPEG: "):
        encode_jpeg(np.zeros((1, 70_000, 3), np.uint8))


def test_a_data_url_says_the_type_of_its_content() -> None:
    """
    Told from the bytes.
    """
    assert data_url(encode_png(NOISE)).startswith("data:image/png;base64,iVBOR")
    assert data_url(encode_jpeg(NOISE)).startswith("data:image/jpeg;base64,/9j/")
    with pytest.raises(MediaError, match=r"^bytes: is text"):
        data_url(b"hello")


def test_read_only_and_strided_images_are_encoded() -> None:
    """
    Prompts hold read-only views.
    """
    view = NOISE[::-1, ::2]
    view.flags.writeable = False
    assert np.array_equal(view, load_image(encode_png(view)))
