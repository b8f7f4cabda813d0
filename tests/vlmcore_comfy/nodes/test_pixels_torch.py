"""Tests of `vlmcore_comfy.nodes.pixels`: budgets and profiles, without ComfyUI."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vlmcore.errors import ContractError
from vlmcore.media.profiles import PROFILES
from vlmcore_comfy.hosting import AloneHost, NodeStoppedError
from vlmcore_comfy.nodes.pixels import performance_profile, pixel_budget

torch = pytest.importorskip("torch")

AREA, BICUBIC = "Fast (area)", "Quality (bicubic)"


def budget(
    images: Any,
    megapixels: float = 1.0,
    edge: int = 1344,
    multiple: str = "14",
    quality: str = AREA,
    **more: Any,
) -> Any:
    return pixel_budget(images, megapixels, edge, multiple, quality, **more)


def test_every_profile_of_the_core_can_be_chosen() -> None:
    """
    By the labels that workflows saved, and no other.
    """
    labels = performance_profile.inputs[0].options["options"]
    assert [profile.label for profile in PROFILES] == labels


@pytest.mark.parametrize("profile", PROFILES, ids=lambda profile: profile.key)
def test_a_profile_gives_settings_that_the_other_nodes_take(profile: Any) -> None:
    """
    The budget node takes its pixels and its edge; and the document says the same.
    """
    frames, megapixels, edge, batch, unloads, said = performance_profile(profile.label)
    assert profile.max_frames == frames
    assert {
        "profile": profile.key,
        "max_frames": frames,
        "max_megapixels": megapixels,
        "max_edge": edge,
        "multiple": 14,
        "batch_size": batch,
        "unload_after": unloads,
    } == json.loads(said)
    assert budget(torch.zeros(1, 28, 28, 3), megapixels, edge)[1:3] == (28, 28)


@given(
    width=st.integers(1, 200),
    height=st.integers(1, 200),
    edge=st.integers(32, 160),
    megapixels=st.floats(0.01, 0.03),
    multiple=st.sampled_from(["1", "14", "28", "32"]),
    quality=st.sampled_from([AREA, BICUBIC]),
)
def test_no_image_leaves_the_budget_or_becomes_larger(
    *, width: int, height: int, edge: int, megapixels: float, multiple: str, quality: str
) -> None:
    """
    Edges are whole multiples, but one that is shorter than a multiple stays as it is or shrinks.
    """
    given_ = torch.zeros(1, height, width, 3)
    after, wide, high, said = budget(given_, megapixels, edge, multiple, quality)

    assert (1, high, wide, 3) == tuple(after.shape)
    assert wide <= width
    assert high <= height
    assert max(wide, high) <= edge
    assert wide * high <= megapixels * 1e6 + 1
    side = int(multiple)
    assert all(now % side == 0 or now < side for now in (wide, high))
    assert [wide, high] == json.loads(said)["after"]


def test_an_image_within_the_budget_keeps_its_pixels() -> None:
    """
    To the bit, where they are 8-bit values.
    """
    picture = torch.arange(28 * 28 * 3).reshape(1, 28, 28, 3) % 256 / 255.0
    assert torch.equal(picture, budget(picture)[0])


@pytest.mark.parametrize("quality", [AREA, BICUBIC])
def test_a_batch_becomes_smaller_image_by_image(quality: str) -> None:
    """
    Each stays itself, and stays within 0 and 1.
    """
    batch = torch.stack([torch.full((64, 96, 3), level) for level in (0.0, 0.4, 1.0)])
    after, wide, high, said = budget(batch, 0.01, 64, "1", quality)
    assert (64, 43) == (wide, high)
    assert [0.0, 0.4, 1.0] == pytest.approx(after.mean(dim=(1, 2, 3)).tolist(), abs=0.01)
    assert 0 <= float(after.min()) <= float(after.max()) <= 1
    assert {"images": 3, "before": [96, 64], "after": [64, 43], "patches": None}.items() <= (
        json.loads(said).items()
    )


def test_what_is_transparent_lies_on_white() -> None:
    """
    Models see three channels.
    """
    assert 1.0 == float(budget(torch.zeros(1, 28, 28, 4))[0].min())


def test_a_picture_of_8k_is_made_smaller() -> None:
    """
    It is larger than what models are given, which is why it comes here.
    """
    huge = torch.zeros(1, 1, 1, 1).expand(1, 4320, 7680, 3)
    after, wide, high, said = budget(huge)
    assert (1330, 742) == (wide, high)
    assert (1, high, wide, 3) == tuple(after.shape)
    assert [7680, 4320] == json.loads(said)["before"]


@pytest.mark.parametrize(
    ("images", "said"),
    [
        (torch.zeros(1, 8, 8), "images: .*Convert Mask to Image"),
        (torch.zeros(0, 8, 8, 3), "images: .*at least one picture"),
        (torch.full((1, 2, 2, 3), float("nan")), "images: 12 of 12 values are NaN"),
        (torch.zeros(1, 1, 1, 1).expand(1, 9000, 9000, 3), "images: .*max_pixels"),
        ("a text", "images: got 'a text', expected an IMAGE"),
        (None, "images: got None"),
    ],
)
def test_what_is_no_image_is_refused_in_one_sentence(images: Any, said: str) -> None:
    """
    By the name of the socket.
    """
    with pytest.raises(ContractError, match=said) as caught:
        budget(images)
    assert "\n" not in str(caught.value)


def test_a_person_who_stops_the_graph_does_not_wait_for_the_batch() -> None:
    """
    It ends between two images.
    """

    class Impatient(AloneHost):
        asked = 0

        def raise_if_stopped(self) -> None:
            self.asked += 1
            if self.asked > 2:
                raise NodeStoppedError

    host = Impatient()
    with pytest.raises(NodeStoppedError):
        budget(torch.zeros(100, 8, 8, 3), comfyui=host)
    assert 3 == host.asked
