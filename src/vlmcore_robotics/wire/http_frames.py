"""
The frames of an observation over HTTP: JPEG, PNG or plain pixels, read within limits.

What a frame is, is said beside it and must be so: bytes that say JPEG are given to the decoder of
JPEG and to no other. Sizes are read from the headers of all frames and added up before the first of
them is decoded. The orientation of EXIF is applied.
"""

from __future__ import annotations

import base64
import binascii
import enum
from collections.abc import Mapping, Sequence
from typing import Any

import attrs
import numpy as np

from vlmcore._arrays import UInt8Array, require_count
from vlmcore.contracts.observation import Observation
from vlmcore.errors import ContractError, LimitExceededError, MediaError, MediaLimitError
from vlmcore.limits import HttpLimits, ImageLimits, require_at_most
from vlmcore.media._readonly import readonly_pixels
from vlmcore.media.encoding import encode_jpeg, encode_png
from vlmcore.media.formats import ImageFormat
from vlmcore.media.headers import Header, read_header
from vlmcore.media.sources import Encoded
from vlmcore_robotics.wire.http_messages import ContentType

__all__ = ["WireEncoding", "frames_from", "frames_to"]

_CHANNELS = 3


class WireEncoding(enum.Enum):
    """
    How a frame is encoded; the value is the word for it in MessagePack.

    In JSON, where bytes are written in base64, the word is ``base64-jpeg`` and so on.
    """

    JPEG = "jpeg"  # the only one that servers of old read; small, and pixels change a little
    PNG = "png"  # every pixel comes back
    RAW = "raw"  # so it does here: rows of RGB from the top, without any work

    def word(self, content_type: ContentType) -> str:
        """Say it as a document of *content_type* does."""
        return f"base64-{self.value}" if content_type is ContentType.JSON else self.value


_FORMATS = {WireEncoding.JPEG: ImageFormat.JPEG, WireEncoding.PNG: ImageFormat.PNG}


def frames_to(
    observation: Observation,
    encoding: WireEncoding,
    content_type: ContentType,
    *,
    quality: int,
    limits: HttpLimits,
) -> dict[str, list[dict[str, Any]]]:
    """
    Encode all frames of an observation, as a document holds them.

    Args:
        observation: What is seen.
        encoding: How frames are encoded.
        content_type: What they are written into.
        quality: Of JPEG, 1 to 95.
        limits: How large they may be: what a peer with the same limits reads.

    Raises:
        ContractError: If *quality* is out of range.
        LimitExceededError: If a frame is too large, or all of them together are.
        MissingDependencyError: If Pillow is needed and not installed.
    """
    require_count(quality=quality)
    pixels = sum(frames.size for frames in observation.images.values())
    require_at_most("max_decoded_bytes", pixels, limits.max_decoded_bytes)
    total = 0
    found: dict[str, list[dict[str, Any]]] = {}
    for camera, frames in observation.images.items():
        found[camera] = []
        for i, frame in enumerate(frames):
            data = _encoded(frame, encoding, quality)
            size = data.size if isinstance(data, np.ndarray) else len(data)
            require_at_most("max_frame_bytes", size, limits.max_frame_bytes)
            total += size
            require_at_most("max_frames_bytes", total, limits.max_frames_bytes)
            said = {"encoding": encoding.word(content_type), "data": data, "frame_index": i}
            if content_type is ContentType.JSON:
                said["data"] = base64.b64encode(data).decode("ascii")
                if encoding is WireEncoding.RAW:
                    said |= {"height": frame.shape[0], "width": frame.shape[1]}
            found[camera].append(said)
    return found


def frames_from(
    cameras: Mapping[str, Sequence[Mapping[str, Any]]],
    content_type: ContentType,
    *,
    limits: HttpLimits,
) -> dict[str, UInt8Array]:
    """
    Read the frames of each camera, shape ``[T, H, W, 3]``.

    Args:
        cameras: As they stand in a document, each key of a frame of its type.
        content_type: What kind of document it is.
        limits: How large they may be.

    Returns:
        For each camera its frames, oldest first. A single frame of plain pixels is a view.

    Raises:
        ContractError: If a frame is not what it says, or those of one camera differ in size.
        LimitExceededError: If one is too large, or all of them together are.
        MissingDependencyError: If Pillow is needed and not installed.
    """
    found: dict[str, list[_Frame]] = {}
    encoded = decoded = 0
    for camera, said in cameras.items():
        found[camera] = []
        for i, each in enumerate(said):
            frame = _frame(f"cameras[{camera!r:.80}][{i}]", each, content_type, limits)
            encoded += frame.size
            decoded += frame.height_px * frame.width_px * _CHANNELS
            require_at_most("max_frames_bytes", encoded, limits.max_frames_bytes)
            require_at_most("max_decoded_bytes", decoded, limits.max_decoded_bytes)
            found[camera].append(frame)
        _check_together(camera, said, found[camera])
    return {camera: _stacked(frames, limits) for camera, frames in found.items()}


@attrs.frozen(kw_only=True)
class _Frame:
    """One frame before it is decoded, with the size that it declares."""

    place: str
    size: int  # in bytes, as it came
    data: Any  # the header of a file, or bytes of plain pixels, or a memoryview of an array
    height_px: int
    width_px: int

    def pixels(self, limits: HttpLimits) -> UInt8Array:
        if not isinstance(self.data, Header):
            shape = (self.height_px, self.width_px, _CHANNELS)
            return np.frombuffer(self.data, np.uint8).reshape(shape)
        try:
            return readonly_pixels(self.data, name="bytes", limits=_image_limits(limits))
        except MediaError as error:
            raise _as_ours(self.place, error) from error


def _frame(
    place: str, said: Mapping[str, Any], content_type: ContentType, limits: HttpLimits
) -> _Frame:
    encoding = next(each for each in WireEncoding if each.word(content_type) == said["encoding"])
    data = said["data"]
    if content_type is ContentType.JSON:
        data = _from_base64(place, data, limits)
    if encoding is WireEncoding.RAW:
        data, height, width = _raw(place, data, said.get("height"), said.get("width"))
    elif not isinstance(data, bytes):
        raise ContractError(f"{place}.data", "got an array, expected bytes")
    size = len(data)
    require_at_most("max_frame_bytes", size, limits.max_frame_bytes)
    if encoding is not WireEncoding.RAW:
        data = _header(place, encoding, data, limits)
        height, width = data.shown_height_px, data.shown_width_px
    require_at_most("max_frame_pixels", height * width, limits.max_frame_pixels)
    return _Frame(place=place, size=size, data=data, height_px=height, width_px=width)


def _raw(place: str, data: Any, height: int | None, width: int | None) -> tuple[Any, int, int]:
    if isinstance(data, np.ndarray):
        shape = data.shape
        if data.dtype != np.uint8 or data.ndim != 3 or shape[2] != _CHANNELS or not data.size:
            raise ContractError(
                f"{place}.data",
                f"got {data.dtype} of shape {list(shape)}, expected uint8 of shape [H, W, 3]",
            )
        # Flat, so that its length is in bytes; what comes off the wire is contiguous.
        return np.ascontiguousarray(data).reshape(-1).data, shape[0], shape[1]
    if height is None or width is None:
        raise ContractError(place, "got plain pixels without a size, expected height and width")
    if len(data) != height * width * _CHANNELS:
        raise ContractError(
            f"{place}.data",
            f"got {len(data)} bytes for {height} x {width} pixels, "
            f"expected {height * width * _CHANNELS}",
        )
    return data, height, width


def _header(place: str, encoding: WireEncoding, data: bytes, limits: HttpLimits) -> Header:
    """Read the header, and require that the bytes are what they are said to be."""
    try:
        header = read_header(Encoded("bytes", data), limits=_image_limits(limits))
    except MediaError as error:
        raise _as_ours(place, error) from error
    if header.image_format is not _FORMATS[encoding]:
        raise ContractError(
            f"{place}.data",
            f"got {header.image_format.value}, expected {_FORMATS[encoding].value}",
        )
    return header


def _check_together(
    camera: str, said: Sequence[Mapping[str, Any]], frames: Sequence[_Frame]
) -> None:
    sizes = {(frame.height_px, frame.width_px) for frame in frames}
    if len(sizes) > 1:
        raise ContractError(
            f"cameras[{camera!r:.80}]",
            f"got frames of {sorted(sizes)} pixels (height, width), expected one size",
        )
    indices = [each["frame_index"] for each in said if each.get("frame_index") is not None]
    if indices and (len(indices) < len(said) or sorted(set(indices)) != indices):
        raise ContractError(
            f"cameras[{camera!r:.80}]",
            f"got the indices {indices!r:.80}, expected one a frame, ascending: oldest first",
        )


def _stacked(frames: Sequence[_Frame], limits: HttpLimits) -> UInt8Array:
    pixels = [frame.pixels(limits) for frame in frames]
    if len(pixels) == 1:
        return pixels[0][np.newaxis]
    joined = b"".join(
        frame.data for frame in pixels
    )  # as bytes, an observation need not copy them once more
    return np.frombuffer(joined, np.uint8).reshape(len(pixels), *pixels[0].shape)


def _encoded(frame: UInt8Array, encoding: WireEncoding, quality: int) -> Any:
    match encoding:
        case WireEncoding.JPEG:
            return encode_jpeg(frame, quality=quality)
        case WireEncoding.PNG:
            return encode_png(frame, compression=1)  # a robot waits for it
        case WireEncoding.RAW:
            return np.ascontiguousarray(frame)


def _from_base64(place: str, text: str, limits: HttpLimits) -> bytes:
    require_at_most("max_frame_bytes", len(text) * 3 // 4 - 2, limits.max_frame_bytes)
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise ContractError(
            f"{place}.data", "got text that is not base64, expected base64"
        ) from None


def _image_limits(limits: HttpLimits) -> ImageLimits:
    return ImageLimits(max_pixels=limits.max_frame_pixels, max_encoded_bytes=limits.max_frame_bytes)


def _as_ours(place: str, error: MediaError) -> ContractError:
    if isinstance(error, MediaLimitError):
        return LimitExceededError(error.limit, error.actual, error.allowed)
    return ContractError(f"{place}.data", f"got what {error.problem}")
