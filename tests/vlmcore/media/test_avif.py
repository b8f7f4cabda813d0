"""Tests of `vlmcore.media._avif` and the boxes below it."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest
from PIL import Image, ImageOps, features

from hostile.make_images import avif, single_picture, video
from vlmcore.errors import MediaError, MediaLimitError
from vlmcore.limits import ImageLimits
from vlmcore.media import _pillow
from vlmcore.media._avif import avif_header
from vlmcore.media.images import image_info, load_image
from vlmcore.media.sources import Encoded

LIMITS = ImageLimits()
GRADIENT = Image.linear_gradient("L").resize((40, 24)).convert("RGB")
needs_avif = pytest.mark.skipif(not features.check("avif"), reason="this Pillow reads no AVIF")


def encoded(image: Image.Image, **options: Any) -> bytes:
    """Encode as AVIF, without loss as far as it goes."""
    file = io.BytesIO()
    image.save(file, "AVIF", quality=100, subsampling="4:4:4", speed=10, **options)
    return file.getvalue()


@needs_avif
@pytest.mark.parametrize("orientation", range(1, 9))
def test_every_orientation_is_applied(orientation: int) -> None:
    """
    AVIF says it by turns and mirrors of its own; the EXIF beside them is not asked.
    """
    exif = Image.Exif()
    exif[0x0112] = orientation
    file = encoded(GRADIENT, exif=exif.tobytes())
    upright = GRADIENT.copy()
    upright.getexif()[0x0112] = orientation

    expected = np.asarray(ImageOps.exif_transpose(upright)).astype(int)
    loaded = load_image(file)

    assert expected.shape == loaded.shape
    assert np.abs(expected - loaded).max() <= 3
    info = image_info(file)
    assert loaded.shape[:2] == (info.height_px, info.width_px)


@needs_avif
def test_transparency_and_grey_are_read() -> None:
    """
    Alpha is a second picture in the file.
    """
    clear = load_image(encoded(Image.new("RGBA", (16, 16), (0, 0, 0, 0))))
    assert [255, 255, 255] == clear[4, 4].tolist()
    grey = load_image(encoded(Image.new("L", (16, 16), 77)))
    assert np.abs(grey.astype(int) - 77).max() <= 1


@needs_avif
def test_a_truncated_file_is_one_clear_error() -> None:
    """
    Cut anywhere.
    """
    file = encoded(GRADIENT)
    for end in (20, len(file) // 2, len(file) - 20):
        with pytest.raises(MediaError, match=r"^bytes: is a.* AVIF image"):
            load_image(file[:end])


@needs_avif
def test_an_animation_is_refused_by_name() -> None:
    """
    Its pictures are coded as a film, which this door does not open.
    """
    file = encoded(GRADIENT, save_all=True, append_images=[ImageOps.flip(GRADIENT)])
    with pytest.raises(MediaError, match=r"^bytes: is an animated AVIF image"):
        load_image(file)


@pytest.mark.parametrize(
    ("stream", "pixels"),
    [
        (single_picture(100, 50), 5000),
        (video(7, 6), 1 << 13),
        (video(7, 6, timing=True), 1 << 13),
        (video(7, 6) + single_picture(200, 100), 20_000),
        (b"\x10\x00" + single_picture(100, 50)[2:], 0),
    ],
)
def test_the_coded_size_is_read_from_the_stream(stream: bytes, pixels: int) -> None:
    """
    Of a single picture exactly, of a film the most that a frame may name; the largest counts.
    """
    file = Encoded("file", avif(stream))
    if pixels:
        with pytest.raises(MediaLimitError) as caught:
            avif_header(file, limits=ImageLimits(max_pixels=256))
        assert pixels == caught.value.actual
    enough = ImageLimits(max_pixels=max(256, pixels // 4 + 1))
    header = avif_header(file, limits=enough)
    assert (16, 16) == (header.width_px, header.height_px)


def test_an_older_pillow_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """
    AVIF came with Pillow 11.3.
    """
    monkeypatch.setattr(_pillow, "find_spec", lambda _: None)
    with pytest.raises(MediaError, match=r"cannot be decoded: Pillow 11\.3 or newer is needed"):
        load_image(avif(single_picture(16, 16)))
