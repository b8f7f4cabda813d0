"""How pictures are sent."""

from __future__ import annotations

import numpy as np
import pytest

from vlmcore.errors import ContractError, MediaLimitError
from vlmcore.media.formats import ImageFormat
from vlmcore.media.images import load_image
from vlmcore.vlm.prompt import Prompt
from vlmcore.vlm.remote.pictures import PictureRules, pictures_of

NOISE = np.random.default_rng(0).integers(0, 256, (64, 96, 3), np.uint8)


def test_png_loses_nothing() -> None:
    """
    The pixels that come out are those that went in.
    """
    (picture,) = pictures_of(
        Prompt(text="?", images=(NOISE,)), PictureRules(format=ImageFormat.PNG)
    )
    assert "image/png" == picture.media_type
    assert np.array_equal(NOISE, load_image(picture.encoded))


def test_jpeg_is_made_smaller_until_it_fits() -> None:
    """
    First by its quality; what does not fit then is an error that says so.
    """
    whole = len(PictureRules().encode(NOISE))
    encoded = PictureRules(max_picture_bytes=whole // 2).encode(NOISE)
    assert len(encoded) <= whole // 2
    with pytest.raises(MediaLimitError, match="max_bytes"):
        PictureRules(max_picture_bytes=500).encode(NOISE)


@pytest.mark.parametrize(
    ("rules", "size"),
    [
        (PictureRules(longest_edge_px=48), (32, 48)),
        (PictureRules(max_pixels=1536), (32, 48)),
        (PictureRules(), (64, 96)),
    ],
)
def test_pictures_that_are_too_large_are_made_smaller(
    rules: PictureRules, size: tuple[int, int]
) -> None:
    """
    With their proportions.
    """
    assert size == load_image(rules.encode(NOISE)).shape[:2]


@pytest.mark.parametrize(("count", "size"), [(2, (64, 96)), (3, (16, 24))])
def test_many_pictures_are_made_smaller_than_few(count: int, size: tuple[int, int]) -> None:
    """
    As Anthropic wants it: from the twenty-first on, shorter edges hold for all of them.
    """
    rules = PictureRules(many_pictures=2, edge_of_many_px=24)
    prompt = Prompt(text="?", images=(NOISE,) * count)
    sizes = {load_image(each.encoded).shape[:2] for each in pictures_of(prompt, rules)}
    assert {size} == sizes


def test_frames_at_a_rate_have_times_too() -> None:
    """
    Two frames a second.
    """
    prompt = Prompt(text="?", video=np.stack([NOISE] * 3), video_rate_hz=2.0)
    captions = [picture.caption for picture in pictures_of(prompt, PictureRules())]
    assert ["<0.0 seconds>", "<0.5 seconds>", "<1.0 seconds>"] == captions


@pytest.mark.parametrize(
    "fields",
    [
        {"format": ImageFormat.GIF},
        {"quality": 96},
        {"quality": 0},
        {"max_pictures": 0},
        {"longest_edge_px": 0},
        {"many_pictures": 2},
        {"edge_of_many_px": 24},
        {"many_pictures": 0, "edge_of_many_px": 24},
    ],
)
def test_rules_that_are_none_are_refused(fields: dict[str, object]) -> None:
    """
    When they are made.
    """
    with pytest.raises(ContractError):
        PictureRules(**fields)  # type: ignore[arg-type]
