"""Any bytes given to the image door give an image or our error, under a memory bound."""

from __future__ import annotations

import io
import struct
import sys
import zlib
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image, features

from hostile.make_images import HARMLESS, REFUSED
from vlmcore.errors import MediaError
from vlmcore.limits import ImageLimits
from vlmcore.media.frames import load_frames
from vlmcore.media.images import image_info, load_image
from vlmcore.media.sources import read_source

LIMITS = ImageLimits(
    max_pixels=1 << 18, max_encoded_bytes=1 << 22, max_frames=16, max_animation_pixels=1 << 20
)
MIB = 1 << 20


def seeds() -> list[bytes]:
    """Encode small pictures in every format and the variants that its decoder has code for."""
    rng = np.random.default_rng(0)
    colour = Image.fromarray(rng.integers(0, 256, (12, 16, 3), dtype=np.uint8))
    palette = colour.quantize(16)
    exif = Image.Exif()
    exif[0x0112] = 6
    exif[0x010E] = "words"
    variants: list[tuple[Image.Image, str, dict[str, Any]]] = [
        (colour, "PNG", {"exif": exif.tobytes(), "icc_profile": b"x" * 300}),
        (palette, "PNG", {"transparency": 3}),
        (colour.convert("I;16"), "PNG", {}),
        (colour, "JPEG", {"exif": exif.tobytes()}),
        (colour, "JPEG", {"progressive": True}),
        (colour.convert("CMYK"), "JPEG", {}),
        (colour, "WEBP", {"exif": exif.tobytes()}),
        (colour, "WEBP", {"lossless": True}),
        (palette, "GIF", {}),
        (colour, "BMP", {}),
        (palette, "BMP", {}),
        (colour, "TIFF", {"exif": exif.tobytes()}),
        (colour, "TIFF", {"compression": "tiff_lzw"}),
        (colour, "TIFF", {"compression": "jpeg"}),
        (colour.convert("1"), "TIFF", {"compression": "group4"}),
        (colour.convert("F"), "TIFF", {"compression": "tiff_deflate"}),
        (colour, "PPM", {}),
        (colour.convert("F"), "PPM", {}),
    ]
    if features.check("avif"):
        variants += [
            (colour, "AVIF", {"exif": exif.tobytes()}),
            (palette, "AVIF", {"quality": 100}),
        ]
    frames = [Image.new("RGBA", (9, 7), (red, 0, 0, 200)) for red in (0, 90, 200)]
    variants += [
        (frames[0], kind, {"save_all": True, "append_images": frames[1:], "duration": 50})
        for kind in ("GIF", "WEBP", "PNG")
    ]
    files = []
    for image, kind, options in variants:
        file = io.BytesIO()
        image.save(file, kind, **options)
        files.append(file.getvalue())
    return [*files, b"P3 2 1 255 1 2 3 4 5 6", b"P1 #c\n3 1 1 0 1"]


SEEDS = seeds()


@cache
def hostile_files() -> list[bytes]:
    """Build the hostile files, which takes a second, when the first test needs one."""
    return [build() for build in (REFUSED | HARMLESS).values()]


@st.composite
def damaged_files(draw: st.DrawFn) -> bytes:
    """Take a file and flip, overwrite, cut, repeat or splice in a few places."""
    small = [file for file in hostile_files() if len(file) < 20_000]
    data = bytearray(draw(st.sampled_from(SEEDS + small)))
    for _ in range(draw(st.integers(1, 5))):
        # The interesting places are near the start.
        at = draw(st.integers(0, min(len(data), draw(st.sampled_from([32, 200, 1 << 20])))))
        match draw(st.integers(0, 5)):
            case 0 if at < len(data):
                data[at] ^= 1 << draw(st.integers(0, 7))
            case 1:
                word = draw(st.sampled_from([b"\xff" * 4, b"\x7f\xff\xff\xff", b"\0" * 4, b"\0\1"]))
                data[at : at + len(word)] = word
            case 2:
                del data[at : at + draw(st.integers(1, 40))]
            case 3:
                del data[at:]
            case 4:
                start = draw(st.integers(0, len(data)))
                data[at:at] = data[start : start + draw(st.integers(1, 64))]
            case _:
                other = draw(st.sampled_from(SEEDS))
                start = draw(st.integers(0, len(other)))
                data[at : at + draw(st.integers(0, 64))] = other[start : start + 100]
    return with_checksums(bytes(data)) if draw(st.booleans()) else bytes(data)


def with_checksums(data: bytes) -> bytes:
    """Make the checksums of a PNG right again, so that damage reaches the code behind them."""
    if not data.startswith(b"\x89PNG\r\n\x1a\n"):
        return data
    at, parts = 8, [data[:8]]
    while at + 12 <= len(data) and at + 12 + (
        length := struct.unpack_from(">I", data, at)[0]
    ) <= len(data):
        body = data[at + 4 : at + 8 + length]
        parts += [data[at : at + 4], body, struct.pack(">I", zlib.crc32(body))]
        at += 12 + length
    return b"".join([*parts, data[at:]])


def peak_mib() -> int:
    """Tell the most memory that this process ever held."""
    return int(Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0]) // 1024


def check(data: bytes) -> None:
    """Require an image or our error of every way to read a file."""
    try:
        image = load_image(data, limits=LIMITS)
    except MediaError as error:
        assert str(error).startswith("bytes: ")  # noqa: PT017 - one of two good ends
    else:
        assert ("uint8", 3, 3) == (image.dtype.name, image.ndim, image.shape[-1])
        assert image.flags.c_contiguous
        assert image.flags.owndata
        assert 0 < image.size <= 3 * LIMITS.max_pixels
        # The canvas of an animated GIF may grow after its first picture.
        assert image_info(data, limits=LIMITS).height_px >= image.shape[0]
    try:
        frames = load_frames(data, limits=LIMITS)
    except MediaError:
        return
    assert 4 == frames.pixels.ndim
    assert len(frames.pixels) == len(frames.timestamps_s) == len(frames.durations_s) <= 16
    assert np.all(np.diff(frames.timestamps_s) > 0)


@pytest.mark.filterwarnings("ignore")  # Pillow warns about damage that it can live with
@given(st.binary(max_size=400))
def test_any_bytes_give_an_image_or_our_error(data: bytes) -> None:
    """
    Nothing else: no error of a decoder's, no crash.
    """
    check(data)


@pytest.mark.filterwarnings("ignore")
@given(st.sampled_from(SEEDS), st.binary(max_size=100))
def test_any_bytes_behind_a_signature_give_an_image_or_our_error(seed: bytes, rest: bytes) -> None:
    """
    As far as the decoders' own code.
    """
    check(seed[:24] + rest)
    check(seed[:8] + rest)


@pytest.mark.filterwarnings("ignore")
@given(damaged_files())
def test_any_damaged_file_gives_an_image_or_our_error(data: bytes) -> None:
    """
    Flipped bits, cut ends, parts repeated, parts of another format.
    """
    check(data)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.skipif(sys.platform != "linux", reason="/proc tells the peak of memory")
def test_a_thousand_damaged_files_stay_within_a_memory_bound() -> None:
    """
    Images of at most 2**18 pixels, one at a time: some MiB, whatever the files claim.
    """
    files = hostile_files()
    for data in SEEDS:
        check(data)
    before = peak_mib()
    for data in files:
        if len(data) <= LIMITS.max_encoded_bytes:
            check(data)
    rng = np.random.default_rng(1)
    for _ in range(1000):
        damaged = bytearray(SEEDS[rng.integers(len(SEEDS))])
        for _ in range(rng.integers(1, 4)):
            at = int(rng.integers(min(len(damaged) - 4, 200)))
            words = (b"\xff\xff\xff\xff", b"\x7f\xff\xff\x7f", b"\0\1\0\1")
            damaged[at : at + 4] = words[rng.integers(3)]
        check(with_checksums(bytes(damaged)))
    assert peak_mib() - before < 64


@given(st.text(max_size=60), st.sampled_from(["", "data:", "data:;base64,", "data:image/png,"]))
def test_any_text_gives_bytes_or_our_error(text: str, start: str) -> None:
    """
    Paths that are no paths, data URLs that are no data.
    """
    try:
        assert read_source(start + text, limits=LIMITS).data
    except MediaError as error:
        assert len(str(error)) < 600  # noqa: PT017 - one of two good ends
