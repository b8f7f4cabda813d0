"""
Which kind of file some bytes are, told from the content and never from a name.

The list of formats that are opened is short on purpose: pictures that people have, whose decoders
run no other program and follow no reference out of the file.
"""

from __future__ import annotations

import enum

from vlmcore.errors import MediaError
from vlmcore.media.sources import Encoded

__all__ = ["ImageFormat", "format_of"]


class ImageFormat(enum.Enum):
    """A format of encoded images that is opened; the value is its media type."""

    JPEG = "image/jpeg"
    PNG = "image/png"
    GIF = "image/gif"
    WEBP = "image/webp"
    BMP = "image/bmp"
    TIFF = "image/tiff"
    PPM = "image/x-portable-anymap"
    AVIF = "image/avif"


_ACCEPTED = "expected PNG, JPEG, WebP, GIF, BMP, TIFF, PPM or AVIF"
_SIGNATURES = (
    (b"\xff\xd8\xff", ImageFormat.JPEG),
    (b"\x89PNG\r\n\x1a\n", ImageFormat.PNG),
    (b"GIF87a", ImageFormat.GIF),
    (b"GIF89a", ImageFormat.GIF),
    (b"II*\0", ImageFormat.TIFF),
    (b"MM\0*", ImageFormat.TIFF),
    (b"II+\0", ImageFormat.TIFF),
    (b"MM\0+", ImageFormat.TIFF),
    (b"BM", ImageFormat.BMP),
)
_REFUSED = (
    (b"%PDF", "a PDF document"),
    (b"%!PS", "a PostScript file"),
    (b"8BPS", "a Photoshop file"),
    (b"\0\0\1\0", "an icon file (ICO)"),
    (b"icns", "an icon file (ICNS)"),
    (b"\xff\x0a", "a JPEG XL image"),
    (b"\0\0\0\x0cJXL ", "a JPEG XL image"),
    (b"\0\0\0\x0cjP  ", "a JPEG 2000 image"),
    (b"\xff\x4f\xff\x51", "a JPEG 2000 image"),
    (b"\x1aE\xdf\xa3", "a Matroska or WebM video"),
    (b"PK\3\4", "a ZIP archive"),
    (b"\x1f\x8b", "a gzip file"),
    (b"\x93NUMPY", "a NumPy file: load it with numpy.load and pass the array"),
    (b"version https://git-lfs", "a Git LFS pointer: fetch the file itself with git lfs pull"),
)
_MOST_BRANDS_BYTES = 256
_HEIF_BRANDS = (b"heic", b"heix", b"heim", b"heis", b"hevc", b"hevx", b"mif1", b"msf1")


def format_of(encoded: Encoded) -> ImageFormat:
    """
    Tell the format of an encoded image from its first bytes.

    Raises:
        MediaError: If it is not of a format that is opened; says what it is where that is known.
    """
    data = encoded.data
    for signature, image_format in _SIGNATURES:
        if data.startswith(signature):
            return image_format
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return ImageFormat.WEBP
    if data[:2] in (b"P1", b"P2", b"P3", b"P4", b"P5", b"P6", b"Pf", b"PF") and data[2:3].isspace():
        return ImageFormat.PPM
    if b"avif" in _brands(data):
        return ImageFormat.AVIF
    raise MediaError(encoded.name, f"is {_describe(data)}, {_ACCEPTED}")


def _brands(data: bytes) -> list[bytes]:
    """List the kinds that a file of the MP4 family says it is of, the main one first."""
    end = min(int.from_bytes(data[:4], "big"), _MOST_BRANDS_BYTES)
    if data[4:8] != b"ftyp":
        return []
    return [data[8:12], *(data[at : at + 4] for at in range(16, end, 4))]


def _describe(data: bytes) -> str:
    for signature, words in _REFUSED:
        if data.startswith(signature):
            return words
    if brands := _brands(data):
        if brands[0] == b"avis":
            return "an animated AVIF image"
        if brands[0] in _HEIF_BRANDS:
            return "a HEIC image (convert it, or open it with a plugin and pass the PIL image)"
        return "a video or audio file (MP4)"
    if data[:4] == b"RIFF":
        return f"a RIFF file of type {data[8:12].decode('ascii', 'replace')!r}"
    return _describe_text(data[:256])


def _describe_text(start: bytes) -> str:
    text = start.removeprefix(b"\xef\xbb\xbf").lstrip().lower()
    if text.startswith(b"<svg") or (text.startswith((b"<?xml", b"<!--")) and b"<svg" in text):
        return "an SVG drawing (render it to PNG first)"
    if text.startswith((b"<!doctype html", b"<html")):
        return "a web page (HTML)"
    if text.startswith(b"data:"):
        return "the text of a data URL (pass it as a string)"
    if start.isascii() and not start.translate(None, b"\t\n\r" + bytes(range(32, 127))):
        return "text"
    return f"not an image that is known (it starts with {start[:8].hex(' ')})"
