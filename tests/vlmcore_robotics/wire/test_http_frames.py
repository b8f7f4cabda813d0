"""Tests of `vlmcore_robotics.wire.http_frames`: encoded frames, read within limits."""

from __future__ import annotations

import base64
import contextlib
import io
import struct
import zlib
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from groot_cases import seen
from vlmcore._arrays import immutable
from vlmcore.errors import ContractError, LimitExceededError, VlmcoreError
from vlmcore.limits import HttpLimits
from vlmcore.media.encoding import encode_jpeg, encode_png
from vlmcore_robotics.wire.http_frames import WireEncoding, frames_from, frames_to
from vlmcore_robotics.wire.http_messages import ContentType

JSON, MESSAGEPACK = ContentType
PIXELS = (np.arange(4 * 6 * 3).reshape(4, 6, 3) * 3).astype(np.uint8)
LIMITS = HttpLimits()


def read(*frames: dict[str, Any], content_type: ContentType = JSON, **limits: int) -> Any:
    found = frames_from({"front": frames}, content_type, limits=HttpLimits(**limits))
    return found["front"]


def said(data: Any, encoding: str = "base64-jpeg", **more: Any) -> dict[str, Any]:
    text = base64.b64encode(data).decode() if isinstance(data, bytes) else data
    return {"encoding": encoding, "data": text, **more}


def encoded(image_format: str, **options: Any) -> bytes:
    file = io.BytesIO()
    Image.fromarray(PIXELS).save(file, image_format, **options)
    return file.getvalue()


def png_that_declares(width: int, height: int) -> bytes:
    def chunk(kind: bytes, body: bytes) -> bytes:
        crc = struct.pack(">I", zlib.crc32(kind + body))
        return struct.pack(">I", len(body)) + kind + body + crc

    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    body = zlib.compress(bytes(1000))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", body) + chunk(b"IEND", b"")


@pytest.mark.parametrize("content_type", ContentType)
@pytest.mark.parametrize("encoding", WireEncoding)
def test_frames_go_there_and_back(encoding: WireEncoding, content_type: ContentType) -> None:
    """
    PNG and plain pixels to the bit; JPEG nearly, at the same size.
    """
    sent = seen()
    document = frames_to(sent, encoding, content_type, quality=92, limits=LIMITS)
    found = frames_from(document, content_type, limits=LIMITS)

    assert list(sent.images) == list(found)
    for camera, frames in sent.images.items():
        assert frames.shape == found[camera].shape
        if encoding is not WireEncoding.JPEG:
            assert np.array_equal(frames, found[camera])


@pytest.mark.parametrize("encoding", [WireEncoding.JPEG, WireEncoding.PNG])
def test_an_observation_takes_a_frame_that_was_read_without_another_copy(
    encoding: WireEncoding,
) -> None:
    """
    It is read-only for good already, and many megabytes a second go this way.
    """
    written = frames_to(seen(), encoding, MESSAGEPACK, quality=92, limits=LIMITS)
    frames = frames_from({"a": written["cam_front"][:1]}, MESSAGEPACK, limits=LIMITS)["a"]
    assert (False, True) == (frames.flags.writeable, np.shares_memory(frames, immutable(frames)))


def test_a_frame_is_written_with_the_words_of_the_first_version() -> None:
    """
    ``base64-jpeg``, ``data`` and ``frame_index``, and nothing else.
    """
    (first, second) = frames_to(seen(), WireEncoding.JPEG, JSON, quality=92, limits=LIMITS)[
        "cam_front"
    ]
    assert ["encoding", "data", "frame_index"] == list(first)
    assert ("base64-jpeg", 0, 1) == (first["encoding"], first["frame_index"], second["frame_index"])


def test_plain_pixels_in_messagepack_are_not_copied() -> None:
    """
    They are a view of what came.
    """
    found = read({"encoding": "raw", "data": PIXELS}, content_type=MESSAGEPACK)
    assert np.shares_memory(PIXELS, found)


@pytest.mark.parametrize("image_format", ["PNG", "GIF", "TIFF", "BMP", "WEBP", "PPM"])
def test_what_says_jpeg_is_given_to_no_other_decoder(image_format: str) -> None:
    """
    "base64-jpeg" accepted PNG, GIF, TIFF and EPS, which would start Ghostscript.
    """
    with pytest.raises(ContractError, match=r"cameras\['front'\]\[0\]\.data: got image/.*"):
        read(said(encoded(image_format)))


@pytest.mark.parametrize(
    "data",
    [
        b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9999 9999\n",
        b"\xff\xd8\xff",
        b"\xff\xd8\xff\xd9",
        b"not an image",
        encoded("JPEG")[:60],
        encoded("JPEG")[:-20],
        b"<svg xmlns='http://www.w3.org/2000/svg'/>",
    ],
)
def test_what_is_no_whole_jpeg_is_refused_with_its_place(data: bytes) -> None:
    """
    One clear error each.
    """
    with pytest.raises(ContractError, match=r"cameras\['front'\]\[1\]\.data"):
        read(said(encoded("JPEG")), said(data))


def test_the_orientation_of_exif_is_applied() -> None:
    """
    It was ignored: a camera that was turned saw a world that lies on its side.
    """
    exif = Image.Exif()
    exif[0x0112] = 6
    found = read(said(encoded("JPEG", exif=exif.tobytes())))
    assert (1, 6, 4, 3) == found.shape


def test_a_size_is_read_from_the_header_before_anything_is_decoded() -> None:
    """
    2.1 kB of PNG were 16.8 million pixels.
    """
    bomb = said(png_that_declares(4096, 4097), "base64-png")
    with pytest.raises(LimitExceededError, match="max_frame_pixels"):
        read(bomb)
    large = said(png_that_declares(4096, 4096), "base64-png")
    with pytest.raises(LimitExceededError, match=r"max_decoded_bytes: got 100663296"):
        read(large, large)  # refused before the first of them is decoded


@pytest.mark.parametrize(
    ("frame", "limits", "limit"),
    [
        (said(encoded("JPEG")), {"max_frame_bytes": 100}, "max_frame_bytes"),
        (said(encoded("JPEG")), {"max_frames_bytes": 1000}, "max_frames_bytes"),
        (said(encoded("JPEG")), {"max_frame_pixels": 23}, "max_frame_pixels"),
        (said(encoded("JPEG")), {"max_decoded_bytes": 143}, "max_decoded_bytes"),
        (said("A" * 400), {"max_frame_bytes": 100}, "max_frame_bytes"),
        (
            said(PIXELS.tobytes(), "base64-raw", height=4, width=6),
            {"max_frame_pixels": 23},
            "max_frame_pixels",
        ),
        (
            said(PIXELS.tobytes(), "base64-raw", height=4, width=6),
            {"max_frame_bytes": 71},
            "max_frame_bytes",
        ),
    ],
)
def test_frames_are_bounded(frame: dict[str, Any], limits: dict[str, int], limit: str) -> None:
    """
    One by one and all together.
    """
    with pytest.raises(LimitExceededError, match=limit):
        read(frame, frame, **limits)


@pytest.mark.parametrize("limit", ["max_frame_bytes", "max_frames_bytes", "max_decoded_bytes"])
def test_what_a_peer_would_not_read_is_not_written(limit: str) -> None:
    """
    Rather than at a lower quality than was asked for.
    """
    with pytest.raises(LimitExceededError, match=limit):
        frames_to(seen(), WireEncoding.JPEG, JSON, quality=92, limits=HttpLimits(**{limit: 50}))


@pytest.mark.parametrize(
    ("frame", "content_type", "problem"),
    [
        (said("?", "base64-jpeg"), JSON, "not base64"),
        (said("\u00fc", "base64-jpeg"), JSON, "not base64"),
        (said("QUJD\n", "base64-jpeg"), JSON, "not base64"),
        (said(b"abc", "base64-raw"), JSON, "without a size"),
        (said(b"abc", "base64-raw", height=1), JSON, "without a size"),
        (said(b"abc", "base64-raw", height=1, width=2), JSON, "got 3 bytes for 1 x 2 pixels"),
        ({"encoding": "jpeg", "data": PIXELS}, MESSAGEPACK, "got an array, expected bytes"),
        ({"encoding": "raw", "data": PIXELS[..., :2]}, MESSAGEPACK, r"expected uint8 of shape"),
        ({"encoding": "raw", "data": PIXELS.astype(np.int8)}, MESSAGEPACK, r"got int8"),
        ({"encoding": "raw", "data": PIXELS[:0]}, MESSAGEPACK, r"of shape \[0, 6, 3\]"),
        ({"encoding": "raw", "data": np.array(7, np.uint8)}, MESSAGEPACK, r"of shape \[\]"),
        ({"encoding": "raw", "data": b"abc"}, MESSAGEPACK, "without a size"),
    ],
)
def test_a_frame_that_is_not_what_it_says_is_refused(
    frame: dict[str, Any], content_type: ContentType, problem: str
) -> None:
    """
    A missing "data" or a wrong type ended in status 500.
    """
    with pytest.raises(ContractError, match=problem):
        read(frame, content_type=content_type)


def test_frames_of_one_camera_have_one_size_and_are_in_order() -> None:
    """
    A history is not sorted here: what is out of order was mixed up before.
    """
    jpeg = encoded("JPEG")
    other = encode_jpeg(np.zeros((5, 6, 3), np.uint8))
    with pytest.raises(ContractError, match="expected one size"):
        read(said(jpeg), said(other))
    for indices in ((1, 0), (0, 0), (0, None)):
        frames = [said(jpeg, frame_index=index) for index in indices]
        with pytest.raises(ContractError, match="oldest first"):
            read(*frames)
    assert 2 == len(read(said(jpeg, frame_index=3), said(jpeg, frame_index=7)))


@given(data=st.data(), encoding=st.sampled_from(["base64-jpeg", "base64-png"]))
def test_any_change_of_a_byte_is_pixels_or_our_error(data: st.DataObject, encoding: str) -> None:
    """
    Nothing else comes out of the decoders.
    """
    make = encode_jpeg if encoding == "base64-jpeg" else encode_png
    file = bytearray(make(PIXELS))
    for _ in range(data.draw(st.integers(1, 4))):
        file[data.draw(st.integers(0, len(file) - 1))] = data.draw(st.integers(0, 255))
    with contextlib.suppress(VlmcoreError):
        read(said(bytes(file), encoding), max_frame_pixels=10_000)
