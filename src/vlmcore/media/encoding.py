"""Encoded images to hand on: pixels and nothing else, within a size that a receiver accepts."""

from __future__ import annotations

import base64

from vlmcore._arrays import UInt8Array, readonly_image, require_count
from vlmcore._optional import optional_dependency
from vlmcore.errors import ContractError, MediaLimitError
from vlmcore.media.formats import ImageFormat, format_of
from vlmcore.media.sources import Encoded

__all__ = ["data_url", "encode_jpeg", "encode_png"]

_LOWER_QUALITIES = (75, 60, 45, 30)


def encode_jpeg(image: UInt8Array, *, quality: int = 90, max_bytes: int | None = None) -> bytes:
    """
    Encode an image as JPEG, without metadata.

    Args:
        image: RGB, uint8, shape ``[H, W, 3]``, at most 65,535 pixels an edge.
        quality: 1 to 95. With *max_bytes*, lower ones down to 30 are tried until the file fits.
        max_bytes: The largest file that is wanted; ``None`` for no bound.

    Raises:
        ContractError: If *image* is not such an array, or an option is out of range.
        MediaLimitError: If it is too large even at quality 30: make it smaller first.
        MediaError: If JPEG cannot hold an image of this size.
        MissingDependencyError: If Pillow is not installed.
    """
    readonly_image(image, field="image")
    require_count(quality=quality)
    if quality > 95:
        raise ContractError("quality", f"got {quality}, expected 1 to 95")
    if max_bytes is not None:
        require_count(max_bytes=max_bytes)
    size = 0
    for each in (quality, *(lower for lower in _LOWER_QUALITIES if lower < quality)):
        encoded = _encode(image, ImageFormat.JPEG, quality=each)
        if max_bytes is None or len(encoded) <= max_bytes:
            return encoded
        size = len(encoded)
    raise MediaLimitError("image", "max_bytes", size, max_bytes or 0)


def encode_png(image: UInt8Array, *, compression: int = 6, max_bytes: int | None = None) -> bytes:
    """
    Encode an image as PNG, without loss and without metadata.

    Args:
        image: RGB, uint8, shape ``[H, W, 3]``.
        compression: How much time is spent to make the file smaller, 1 to 9. A camera's picture is
            written about three times as fast at 1 as at 6, and a fifth larger.
        max_bytes: The largest file that is wanted; ``None`` for no bound.

    Raises:
        ContractError: If *image* is not such an array, or an option is out of range.
        MediaLimitError: If the file is larger than *max_bytes*: encode as JPEG, or make it smaller.
        MissingDependencyError: If Pillow is not installed.
    """
    readonly_image(image, field="image")
    require_count(compression=compression)
    if compression > 9:
        raise ContractError("compression", f"got {compression}, expected 1 to 9")
    if max_bytes is not None:
        require_count(max_bytes=max_bytes)
    encoded = _encode(image, ImageFormat.PNG, compress_level=compression)
    if max_bytes is not None and len(encoded) > max_bytes:
        raise MediaLimitError("image", "max_bytes", len(encoded), max_bytes)
    return encoded


def _encode(image: UInt8Array, image_format: ImageFormat, **options: int) -> bytes:
    with optional_dependency("images", "PIL"):
        from vlmcore.media import _pillow  # noqa: PLC0415 - the door
    return _pillow.encode(image, image_format, **options)


def data_url(encoded: bytes) -> str:
    """
    Write an encoded image as a data URL, its type told from its content.

    Raises:
        MediaError: If it is not an image that is opened here.
    """
    media_type = format_of(Encoded("bytes", encoded)).value
    return f"data:{media_type};base64,{base64.b64encode(encoded).decode('ascii')}"
