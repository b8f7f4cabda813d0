"""Tests of `vlmcore.rollout.episode_frames`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from episode_cases import observation
from vlmcore.errors import ContractError, LimitExceededError, MediaError, MediaLimitError
from vlmcore.limits import EpisodeLimits
from vlmcore.media.encoding import encode_png
from vlmcore.rollout.episode_frames import (
    EncodedFrame,
    FrameEncoding,
    encode_frames,
    require_frame_bytes,
)

PNG = encode_png(np.zeros((2, 3, 3), np.uint8))


def test_png_gives_every_pixel_back() -> None:
    """
    Of every frame, if all are asked for.
    """
    seen = observation(frames=3)
    frames = encode_frames(seen, FrameEncoding.PNG, newest_only=False)["front"]
    assert [0, 1, 2] == [frame.frame_index for frame in frames]
    for frame, image in zip(frames, seen.images["front"], strict=True):
        assert np.array_equal(image, frame.pixels())


def test_only_the_newest_frame_is_taken_unless_asked() -> None:
    """
    A history holds what the steps before have recorded already.
    """
    (frame,) = encode_frames(observation(frames=3))["front"]
    assert (2, FrameEncoding.JPEG) == (frame.frame_index, frame.encoding)
    assert np.abs(frame.pixels().astype(int) - 20).max() <= 4


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"encoding": "base64-png"}, "encoding: got 'base64-png', expected one of"),
        ({"encoding": FrameEncoding.JPEG}, "data: got image/png, expected base64-jpeg"),
        ({"data": "text"}, "data: got str, expected bytes"),
        ({"data": b""}, "data: got no bytes, expected an encoded image"),
        ({"data": b"%!PS"}, "data: got what is a PostScript file"),
        ({"frame_index": -1}, "frame_index: got -1, expected 0 to 255"),
        ({"frame_index": 256}, "frame_index: got 256"),
        ({"frame_index": True}, "frame_index: got True"),
    ],
    ids=str,
)
def test_a_frame_that_is_not_what_it_says_is_refused(fields: dict[str, Any], message: str) -> None:
    """
    Before anybody decodes it.
    """
    sound = {"encoding": FrameEncoding.PNG, "data": PNG, "frame_index": 0}
    with pytest.raises(ContractError, match=f"^{message}"):
        EncodedFrame(**sound | fields)


def test_a_frame_that_only_starts_like_an_image_fails_when_it_is_decoded() -> None:
    """
    With an error of media.
    """
    frame = EncodedFrame(encoding=FrameEncoding.PNG, data=PNG[:20], frame_index=0)
    with pytest.raises(MediaError):
        frame.pixels()


def test_frames_over_the_limits_are_refused() -> None:
    """
    One by one, and all of them together.
    """
    seen = observation(frames=4)
    with pytest.raises(MediaLimitError, match=r"max_bytes: got \d+, limit is 20"):
        encode_frames(seen, FrameEncoding.PNG, limits=EpisodeLimits(max_frame_bytes=20))
    frames = encode_frames(seen, FrameEncoding.PNG, newest_only=False)
    size = sum(len(frame.data) for frame in frames["front"])
    require_frame_bytes(frames, limits=EpisodeLimits(max_frames_bytes=size))
    with pytest.raises(LimitExceededError, match=rf"^max_frames_bytes: got {size}, limit is"):
        require_frame_bytes(frames, limits=EpisodeLimits(max_frames_bytes=size - 1))
    with pytest.raises(LimitExceededError, match=r"^max_frame_bytes: got "):
        require_frame_bytes(frames, limits=EpisodeLimits(max_frame_bytes=9))


def test_an_encoding_is_one_of_ours() -> None:
    """
    Its text is not.
    """
    with pytest.raises(ContractError, match=r"^encoding: got 'base64-jpeg', expected one of"):
        encode_frames(observation(), "base64-jpeg")  # type: ignore[arg-type]
    with pytest.raises(ContractError, match=r"^observation: got ObservationSummary, expected an O"):
        encode_frames(observation().summary())  # type: ignore[arg-type]
    with pytest.raises(ContractError, match=r"^quality: got 0"):
        encode_frames(observation(), quality=0)
