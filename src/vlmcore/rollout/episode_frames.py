"""The frames of an observation as an episode keeps them: encoded, one by one."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping

import attrs

from vlmcore._arguments import require_switch, shown
from vlmcore._arrays import UInt8Array, require_count, require_member
from vlmcore.contracts._thumbnails import shrunk
from vlmcore.contracts.observation import Observation
from vlmcore.errors import ContractError, MediaError
from vlmcore.limits import ContractLimits, EpisodeLimits, ImageLimits, require_at_most
from vlmcore.media.encoding import encode_jpeg, encode_png
from vlmcore.media.formats import ImageFormat, format_of
from vlmcore.media.images import load_image
from vlmcore.media.sources import Encoded

__all__ = ["EncodedFrame", "FrameEncoding", "encode_frames", "require_frame_bytes"]

_LIMITS = ContractLimits()


class FrameEncoding(enum.Enum):
    """How a frame is encoded; the value is what a document says."""

    JPEG = "base64-jpeg"
    PNG = "base64-png"


_FORMATS = {FrameEncoding.JPEG: ImageFormat.JPEG, FrameEncoding.PNG: ImageFormat.PNG}


@attrs.frozen(kw_only=True)
class EncodedFrame:
    """
    One encoded frame of one camera.

    Attributes:
        encoding: What *data* is; its first bytes must say the same.
        data: The encoded file.
        frame_index: Which frame of the camera's history it is, from 0, the oldest.

    Raises:
        ContractError: If a field is not as described.
    """

    encoding: FrameEncoding
    data: bytes = attrs.field(repr=False)
    frame_index: int

    def __attrs_post_init__(self) -> None:
        require_member(FrameEncoding, encoding=self.encoding)
        if not isinstance(self.data, bytes):
            raise ContractError("data", f"got {type(self.data).__name__}, expected bytes")
        if not self.data:
            raise ContractError("data", "got no bytes, expected an encoded image")
        try:
            came = format_of(Encoded("data", self.data))
        except MediaError as error:
            raise ContractError("data", f"got what {error.problem}") from None
        if came is not _FORMATS[self.encoding]:
            raise ContractError("data", f"got {came.value}, expected {self.encoding.value}")
        index = self.frame_index
        if type(index) is not int or not 0 <= index < _LIMITS.max_frames:
            expected = f"expected 0 to {_LIMITS.max_frames - 1}"
            raise ContractError("frame_index", f"got {shown(index)}, {expected}")

    def pixels(self) -> UInt8Array:
        """
        Decode the frame.

        Returns:
            RGB, uint8, shape ``[H, W, 3]``.

        Raises:
            MediaError: If it cannot be decoded, or has more pixels than a frame may have.
            MissingDependencyError: If Pillow is not installed.
        """
        return load_image(self.data, limits=ImageLimits(max_pixels=_LIMITS.max_frame_pixels))


def encode_frames(
    observation: Observation,
    encoding: FrameEncoding = FrameEncoding.JPEG,
    *,
    quality: int = 90,
    newest_only: bool = True,
    longest_px: int | None = None,
    limits: EpisodeLimits | None = None,
) -> dict[str, tuple[EncodedFrame, ...]]:
    """
    Encode what the cameras of an observation showed, to be recorded.

    Args:
        observation: What the policy was shown.
        encoding: JPEG is small, PNG gives every pixel back.
        quality: Of JPEG, 1 to 95; lower ones are tried where a frame is too large.
        newest_only: Whether only the newest frame of each camera is taken. The older ones were the
            newest of the steps before, if every frame is shown to the policy.
        longest_px: How long the longest side of a frame may be; larger ones are made smaller, each
            pixel the mean of those it stands for. ``None`` keeps their size.
        limits: How large a frame may be.

    Returns:
        For each camera its encoded frames, oldest first.

    Raises:
        MediaLimitError: If a frame is too large: use JPEG, or smaller frames.
        LimitExceededError: If all of them are together.
        ContractError: If an argument is not as described.
        MissingDependencyError: If Pillow is not installed.

    Example:
        >>> import numpy as np
        >>> seen = Observation(instruction="wait", state=[0.0], frame_rate_hz=10.0,
        ...     captured_at_s=0.0, images={"front": np.zeros((3, 8, 8, 3), np.uint8)})
        >>> [frame.frame_index for frame in encode_frames(seen)["front"]]
        [2]
    """
    if not isinstance(observation, Observation):
        raise ContractError(
            "observation", f"got {type(observation).__name__}, expected an Observation"
        )
    require_switch(newest_only=newest_only)
    require_member(FrameEncoding, encoding=encoding)
    require_count(quality=quality, **({} if longest_px is None else {"longest_px": longest_px}))
    most = (limits or EpisodeLimits()).max_frame_bytes

    def encoded(image: UInt8Array, index: int) -> EncodedFrame:
        if longest_px is not None:
            image = shrunk(image, longest_px)
        match encoding:
            case FrameEncoding.JPEG:
                data = encode_jpeg(image, quality=quality, max_bytes=most)
            case FrameEncoding.PNG:
                data = encode_png(image, max_bytes=most)
        return EncodedFrame(encoding=encoding, data=data, frame_index=index)

    found = {}
    for camera, images in observation.images.items():
        first = len(images) - 1 if newest_only else 0
        found[camera] = tuple(encoded(images[i], i) for i in range(first, len(images)))
    require_frame_bytes(found, limits=limits)
    return found


def require_frame_bytes(
    frames: Mapping[str, Iterable[EncodedFrame]], *, limits: EpisodeLimits | None = None
) -> None:
    """
    Refuse frames that are too large to be recorded.

    Raises:
        LimitExceededError: If one is larger than *limits* allow, or all of them together are.
    """
    limits = limits or EpisodeLimits()
    sizes = [len(frame.data) for each in frames.values() for frame in each]
    require_at_most("max_frame_bytes", max(sizes, default=0), limits.max_frame_bytes)
    require_at_most("max_frames_bytes", sum(sizes), limits.max_frames_bytes)
