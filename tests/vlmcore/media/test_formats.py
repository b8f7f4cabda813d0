"""Tests of `vlmcore.media.formats`."""

from __future__ import annotations

import pytest

from vlmcore.errors import MediaError
from vlmcore.media.formats import ImageFormat, format_of
from vlmcore.media.sources import Encoded


@pytest.mark.parametrize(
    ("start", "expected"),
    [
        (b"\0\0\0\x18ftypheic\0\0\0\0", "a HEIC image"),
        (b"\0\0\0\x18ftypmif1\0\0\0\0", "a HEIC image"),
        (b"\0\0\0\x18ftypisom\0\0\0\0", "a video or audio file (MP4)"),
        (b"<svg xmlns='http://www.w3.org/2000/svg'/>", "an SVG drawing"),
        (b"\xef\xbb\xbf<?xml version='1.0'?>\n<svg/>", "an SVG drawing"),
        (b"<!DOCTYPE html><html>", "a web page (HTML)"),
        (b"\n\n<html>", "a web page (HTML)"),
        (b"%PDF-1.7", "a PDF document"),
        (b"%!PS-Adobe-3.0 EPSF-3.0", "a PostScript file"),
        (b"8BPS\0\1", "a Photoshop file"),
        (b"\0\0\1\0\1\0", "an icon file (ICO)"),
        (b"\0\0\0\x0cJXL \r\n\x87\n", "a JPEG XL image"),
        (b"\0\0\0\x0cjP  \r\n\x87\n", "a JPEG 2000 image"),
        (b"RIFF\0\0\0\0AVI ", "a RIFF file of type 'AVI '"),
        (b"\x1aE\xdf\xa3", "a Matroska or WebM video"),
        (b"PK\3\4", "a ZIP archive"),
        (b"\x93NUMPY\1\0", "a NumPy file"),
        (b"version https://git-lfs.github.com/spec/v1\n", "a Git LFS pointer"),
        (b"data:image/png;base64,AAAA", "the text of a data URL"),
        (b'{"error": "not found"}', "text"),
        (b"\1\2\3\4\5\6\7\x08\x09", "not an image that is known (it starts with 01 02 03 04 05 06"),
    ],
)
def test_what_is_no_picture_of_ours_is_called_by_its_name(start: bytes, expected: str) -> None:
    """
    The person who gave it knows then what to do; the formats that are opened are listed.
    """
    with pytest.raises(MediaError) as caught:
        format_of(Encoded("thing", start))
    assert str(caught.value).startswith(f"thing: is {expected}")
    assert str(caught.value).endswith("expected PNG, JPEG, WebP, GIF, BMP, TIFF, PPM or AVIF")


def test_every_format_is_a_media_type() -> None:
    """
    What a data URL and an HTTP header need.
    """
    assert all(each.value.startswith("image/") for each in ImageFormat)
