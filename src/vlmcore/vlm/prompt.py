"""What a model is asked: a text, and what it is to look at."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import attrs

from vlmcore._arrays import (
    UInt8Array,
    readonly_frames,
    readonly_image,
    require_positive,
    require_text,
)
from vlmcore.errors import ContractError
from vlmcore.limits import PromptLimits, require_at_most
from vlmcore.media.images import load_image

if TYPE_CHECKING:
    from vlmcore.media.sampling import SampledVideo

__all__ = ["Prompt"]

_BEYOND = 1e12  # frames, or seconds, of no video there is


def _images(value: Any) -> tuple[UInt8Array, ...]:
    if isinstance(value, (str, bytes)) or not isinstance(value, Iterable):
        raise ContractError(
            "images",
            f"got {type(value).__name__}, expected uint8 RGB arrays of shape [H, W, 3]; "
            "Prompt.of(text, source) takes paths and everything else that holds an image",
        )
    return tuple(readonly_image(image, field=f"images[{i}]") for i, image in enumerate(value))


def _video(value: Any) -> UInt8Array | None:
    return None if value is None else readonly_frames(value, field="video")


def _shape(pixels: UInt8Array | None) -> str:
    return "None" if pixels is None else f"<uint8 {list(pixels.shape)}>"


def _shapes(images: tuple[UInt8Array, ...]) -> str:
    return f"<{len(images)} images>" if len(images) > 4 else f"({', '.join(map(_shape, images))})"


def _optional_tuple(value: Any) -> Any:
    return tuple(value) if isinstance(value, Iterable) else value


@attrs.frozen(kw_only=True, eq=False)
class Prompt:
    """
    What a model is asked: text, and images or the frames of a video to look at.

    A video is given either as frames at a constant rate, or as frames that were selected from a
    longer video, with the index and the time of each; models that read timestamps are given them.

    Attributes:
        text: The question or instruction. Not blank.
        system: The system text; empty leaves it out.
        images: Each of shape ``[H, W, 3]``, uint8 RGB; read-only views of what was given.
        video: Frames of shape ``[T, H, W, 3]``, uint8 RGB, oldest first.
        video_rate_hz: Rate of the frames as given, in frames a second.
        video_indices: Index of each frame in the source video, ascending.
        video_timestamps_s: Time of each frame in the source video, in seconds, ascending.

    Raises:
        ContractError: If a field is not as described.
        LimitExceededError: If there is more than `vlmcore.limits.PromptLimits` allows.
    """

    text: str
    system: str = ""
    images: tuple[UInt8Array, ...] = attrs.field(default=(), converter=_images, repr=_shapes)
    video: UInt8Array | None = attrs.field(default=None, converter=_video, repr=_shape)
    video_rate_hz: float = 1.0
    video_indices: tuple[int, ...] | None = attrs.field(default=None, converter=_optional_tuple)
    video_timestamps_s: tuple[float, ...] | None = attrs.field(
        default=None, converter=_optional_tuple
    )

    def __attrs_post_init__(self) -> None:
        require_text(text=self.text)
        if not isinstance(self.system, str):
            raise ContractError("system", f"got {type(self.system).__name__}, expected text")
        require_positive(video_rate_hz=self.video_rate_hz)
        self._check_limits(PromptLimits())
        self._check_selection()

    @classmethod
    def of(cls, text: str, *sources: Any, system: str = "") -> Prompt:
        """
        Ask *text* about images from anywhere.

        Args:
            text: The question or instruction.
            sources: Everything that `vlmcore.load_image` takes: paths, bytes, data URLs, PIL
                images, arrays, tensors.
            system: The system text.

        Raises:
            MediaError: If a source cannot be read as an image.
            ContractError: If *text* is blank.

        Example:
            >>> import numpy as np
            >>> Prompt.of("What is this?", np.zeros((48, 64))).images[0].shape
            (48, 64, 3)
        """
        return cls(text=text, system=system, images=tuple(load_image(s) for s in sources))

    @classmethod
    def of_video(cls, text: str, video: SampledVideo, *, system: str = "") -> Prompt:
        """
        Ask *text* about frames that were chosen of a video, with the time of each.

        Args:
            text: The question or instruction.
            video: The frames, from `vlmcore.media.sample_video` or `vlmcore.media.sample_frames`.
            system: The system text.

        Raises:
            ContractError: If *text* is blank.
            LimitExceededError: If there are more frames than a prompt may hold.

        Example:
            >>> import numpy as np
            >>> from vlmcore.media import sample_frames
            >>> video = sample_frames(np.zeros((9, 48, 64, 3), np.uint8), rate_hz=1)
            >>> Prompt.of_video("What happens?", video).video_timestamps_s[-1]
            8.0
        """
        return cls(
            text=text,
            system=system,
            video=video.pixels,
            video_rate_hz=video.rate_hz,
            video_timestamps_s=video.selection.timestamps_s,
        )

    def _check_limits(self, limits: PromptLimits) -> None:
        for field, text in (("text", self.text), ("system", self.system)):
            require_at_most("max_text_characters", len(text), limits.max_text_characters)
            _require_unicode(field, text)
        require_at_most("max_images", len(self.images), limits.max_images)
        frames = 0 if self.video is None else len(self.video)
        require_at_most("max_video_frames", frames, limits.max_video_frames)

    def _check_selection(self) -> None:
        indices, times = self.video_indices, self.video_timestamps_s
        if indices is not None:
            self._check_each_frame("video_indices", indices, "a whole number", _is_index)
        if times is not None:
            self._check_each_frame("video_timestamps_s", times, "a number of seconds", _is_time)

    def _check_each_frame(
        self, field: str, values: Any, kind: str, is_one: Callable[[object], bool]
    ) -> None:
        frames = 0 if self.video is None else len(self.video)
        if not isinstance(values, tuple) or len(values) != frames:
            count = f"{len(values)} values" if isinstance(values, tuple) else type(values).__name__
            raise ContractError(field, f"got {count}, expected one value a frame, {frames}")
        for i, value in enumerate(values):
            if not is_one(value):
                raise ContractError(
                    f"{field}[{i}]", f"expected {kind} of at least 0 and below {_BEYOND:g}"
                )
        for i, (earlier, later) in enumerate(pairwise(values), start=1):
            if later <= earlier:
                raise ContractError(
                    f"{field}[{i}]", f"got {later} after {earlier}, expected more: frames follow"
                )


def _require_unicode(field: str, text: str) -> None:
    """Refuse half a character: no tokenizer takes it, and no file can hold it."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ContractError(
            field,
            f"got {text[error.start]!r} at {error.start}, which is no character (a surrogate)",
        ) from None


def _is_index(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < _BEYOND


def _is_time(value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return False
    return 0 <= value < _BEYOND  # NaN is not
