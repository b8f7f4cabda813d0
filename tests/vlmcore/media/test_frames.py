"""Tests of `vlmcore.media.frames`."""

from __future__ import annotations

import io
import itertools
import struct
import zlib
from typing import Any

import numpy as np
import pytest
from PIL import Image

from hostile.make_images import gif, png
from vlmcore.errors import ContractError, MediaError, MediaLimitError
from vlmcore.limits import ImageLimits
from vlmcore.media.frames import load_frames
from vlmcore.media.images import image_info, load_image


def animation(kind: str, *, size: tuple[int, int] = (12, 8), **options: Any) -> bytes:
    """Build an animation of three pictures: dark, middle, bright; 0.1 s, 0.2 s, 0.3 s."""
    pictures = [Image.new("RGB", size, (value, value, value)) for value in (0, 100, 200)]
    file = io.BytesIO()
    if kind == "WEBP":
        options["lossless"] = True
    options = {"duration": [100, 200, 300]} | options
    pictures[0].save(file, kind, save_all=True, append_images=pictures[1:], **options)
    return file.getvalue()


@pytest.mark.parametrize("kind", ["GIF", "WEBP", "PNG"])
def test_an_animation_is_video_when_asked(kind: str) -> None:
    """
    Every picture, when it appears and how long it stays.
    """
    frames = load_frames(animation(kind))

    assert ((3, 8, 12, 3), "uint8") == (frames.pixels.shape, frames.pixels.dtype.name)
    assert [0, 100, 200] == frames.pixels[:, 4, 4, 1].tolist()
    assert np.allclose([0, 0.1, 0.3], frames.timestamps_s)
    assert np.allclose([0.1, 0.2, 0.3], frames.durations_s)
    assert np.isclose(5, frames.rate_hz)


@pytest.mark.parametrize("kind", ["GIF", "PNG"])
def test_a_picture_that_declares_no_duration_is_given_a_tenth_of_a_second(kind: str) -> None:
    """
    As browsers do: a rate is never infinite.
    """
    frames = load_frames(animation(kind, duration=[0, 0, 0]))
    assert np.allclose(0.1, frames.durations_s)
    assert np.isclose(10, frames.rate_hz)


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "BMP", "TIFF", "GIF", "WEBP", "PPM"])
def test_a_still_image_is_a_video_of_one_picture(kind: str) -> None:
    """
    So that a caller need not ask first.
    """
    file = io.BytesIO()
    Image.new("L", (12, 8), 77).save(file, kind)
    frames = load_frames(file.getvalue())
    assert np.array_equal(load_image(file.getvalue()), frames.pixels[0])
    assert ([0.0], [0.1]) == (frames.timestamps_s.tolist(), frames.durations_s.tolist())


def test_the_pages_of_a_tiff_are_not_an_animation() -> None:
    """
    The first page is the image; nothing pretends that pages have a rate.
    """
    file = animation("TIFF", duration=1)
    assert 1 == len(load_frames(file).pixels)
    assert 1 == image_info(file).frames


@pytest.mark.parametrize("kind", ["GIF", "WEBP", "PNG"])
def test_frames_and_their_pixels_are_bounded_from_the_header(kind: str) -> None:
    """
    Counted before the first is decoded.
    """
    file = animation(kind)
    assert 3 == len(load_frames(file, limits=ImageLimits(max_frames=3)).pixels)
    with pytest.raises(MediaLimitError, match=r"max_frames: got 3, limit is 2"):
        load_frames(file, limits=ImageLimits(max_frames=2))
    with pytest.raises(MediaLimitError, match=r"max_animation_pixels: got 288, limit is 287"):
        load_frames(file, limits=ImageLimits(max_animation_pixels=287))
    with pytest.raises(MediaLimitError, match=r"max_pixels: got 96, limit is 95"):
        load_frames(file, limits=ImageLimits(max_pixels=95))
    assert 3 == image_info(file, limits=ImageLimits(max_frames=2)).frames


@pytest.mark.parametrize("kind", ["GIF", "WEBP", "PNG"])
def test_a_truncated_animation_is_an_error_that_names_the_picture(kind: str) -> None:
    """
    Not a shorter video.
    """
    rng = np.random.default_rng(0)
    pictures = [Image.fromarray(rng.integers(0, 256, (32, 32), dtype=np.uint8)) for _ in range(3)]
    file = io.BytesIO()
    pictures[0].save(file, kind, save_all=True, append_images=pictures[1:], duration=50)
    whole = file.getvalue()
    with pytest.raises(MediaError, match=r"picture \d of \d cannot|cannot be decoded"):
        load_frames(whole[: len(whole) - 400])


def test_transparency_and_disposal_are_seen_as_a_viewer_shows_them() -> None:
    """
    A picture drawn over the last one leaves what it does not cover.
    """
    left = Image.new("RGBA", (4, 2), (0, 0, 0, 0))
    left.paste((255, 0, 0, 255), (0, 0, 2, 2))
    right = Image.new("RGBA", (4, 2), (0, 0, 0, 0))
    right.paste((0, 0, 255, 255), (2, 0, 4, 2))
    for kind, disposal in itertools.product(("GIF", "PNG"), (1, 2)):
        file = io.BytesIO()
        left.save(
            file, kind, save_all=True, append_images=[right], disposal=disposal - (kind == "PNG")
        )
        frames = load_frames(file.getvalue(), background=(9, 9, 9))
        assert [[255, 0, 0], [9, 9, 9]] == frames.pixels[0, 0, [0, 3]].tolist()
        assert [0, 0, 255] == frames.pixels[1, 0, 3].tolist()


def test_a_picture_for_old_viewers_is_no_part_of_the_animation() -> None:
    """
    An animated PNG may show something else where animations are not known.
    """

    def rows(value: int) -> bytes:
        return zlib.compress((b"\0" + bytes([value]) * 4) * 4)

    control = struct.pack(">IIIIHHBB", 4, 4, 0, 0, 1, 2, 0, 0)
    file = png(
        (b"acTL", struct.pack(">II", 2, 0)),
        (b"IDAT", rows(7)),
        (b"fcTL", struct.pack(">I", 0) + control),
        (b"fdAT", struct.pack(">I", 1) + rows(50)),
        (b"fcTL", struct.pack(">I", 2) + control),
        (b"fdAT", struct.pack(">I", 3) + rows(60)),
        width=4,
        height=4,
    )
    assert 7 == load_image(file)[0, 0, 0]
    assert 2 == image_info(file).frames
    frames = load_frames(file)
    assert [50, 60] == frames.pixels[:, 0, 0, 0].tolist()
    assert np.allclose(0.5, frames.durations_s)


def test_a_gif_that_grows_gives_pictures_of_one_size() -> None:
    """
    A later picture may reach over the edge of the canvas; what was not there is background.
    """
    frames = load_frames(gif(8, 8, (0, 0, 8, 8), (6, 4, 8, 8)), background=(1, 2, 3))
    assert (2, 12, 14, 3) == frames.pixels.shape
    assert [1, 2, 3] == frames.pixels[0, 11, 13].tolist()


@pytest.mark.parametrize("source", [np.zeros((2, 5, 6, 3), np.uint8), None, 3])
def test_frames_come_from_files_only(source: Any) -> None:
    """
    An array of frames has no times in it.
    """
    with pytest.raises(ContractError, match=r"^source: got"):
        load_frames(source)
