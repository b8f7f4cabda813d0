"""Prompts say what is wrong with them, and never change a caller's pixels."""

import math

import numpy as np
import pytest

from vlmcore.errors import ContractError, LimitExceededError, MediaError
from vlmcore.media.sampling import sample_frames
from vlmcore.vlm.prompt import Prompt

FRAMES = np.zeros((3, 4, 5, 3), np.uint8)


def test_images_are_views_that_cannot_be_written_through():
    """No copy of a large frame is made, and no model can change it."""
    image = np.zeros((4, 5, 3), np.uint8)

    prompt = Prompt(text="What?", images=[image])

    assert np.shares_memory(image, prompt.images[0])
    with pytest.raises(ValueError, match="read-only"):
        prompt.images[0][0, 0, 0] = 1
    assert image.flags.writeable


@pytest.mark.parametrize(
    "image",
    [
        np.zeros((4, 5, 3), np.float32),
        np.zeros((4, 5, 4), np.uint8),
        np.zeros((4, 5), np.uint8),
        np.zeros((0, 5, 3), np.uint8),
        "cat.png",
        None,
    ],
)
def test_an_image_that_is_no_rgb_array_is_refused_with_its_place(image):
    """The error says which image, what came, and what makes the right thing."""
    with pytest.raises(ContractError, match=r"load_image") as refused:
        Prompt(text="What?", images=[np.zeros((1, 1, 3), np.uint8), image])

    assert "images[1]" == refused.value.field


@pytest.mark.parametrize("images", ["cat.png", b"x", 3])
def test_a_source_in_place_of_arrays_is_told_of_prompt_of(images):
    """A path given as `images` is not iterated letter by letter."""
    with pytest.raises(ContractError, match=r"Prompt\.of"):
        Prompt(text="What?", images=images)


@pytest.mark.parametrize("text", ["", "  \n", None, 3])
def test_a_prompt_needs_a_text(text):
    """A blank question is a mistake of the caller's, not a question."""
    with pytest.raises(ContractError) as refused:
        Prompt(text=text)

    assert "text" == refused.value.field


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("video", FRAMES[0]),
        ("video", [FRAMES[0]]),
        ("video_rate_hz", 0.0),
        ("video_rate_hz", math.inf),
        ("video_indices", 5),
        pytest.param("video_indices", (0, 1, 10**5000), id="an index with 5000 digits"),
        ("video_timestamps_s", 5.0),
        pytest.param("video_timestamps_s", (0, 1, 10**400), id="a time beyond float64"),
        ("video_indices", (0, 1)),
        ("video_indices", (0, 2, 2)),
        ("video_indices", (0, 1.0, 2)),
        ("video_indices", (-1, 1, 2)),
        ("video_timestamps_s", (0.0, 0.5)),
        ("video_timestamps_s", (0.0, 0.5, 0.4)),
        ("video_timestamps_s", (0.0, 0.5, math.nan)),
        ("system", None),
    ],
)
def test_a_field_that_breaks_its_contract_is_named(field, value):
    """Frames, their rate, their indices and their times must fit together."""
    fields = {"text": "What?", "video": FRAMES, field: value}
    with pytest.raises(ContractError) as refused:
        Prompt(**fields)

    assert field == refused.value.field.partition("[")[0]


def test_the_repr_of_a_prompt_does_not_print_its_pixels():
    """A notebook that shows a prompt stays a notebook."""
    shown = repr(Prompt(text="What?", images=[FRAMES[0]] * 9, video=FRAMES))

    assert "images=<9 images>, video=<uint8 [3, 4, 5, 3]>" in shown
    assert "(<uint8 [4, 5, 3]>)" in repr(Prompt(text="What?", images=[FRAMES[0]]))


@pytest.mark.parametrize("field", ["text", "system"])
def test_half_a_character_is_refused_with_its_place(field):
    """A stray byte on a command line becomes one; tokenizers fail on it with a riddle."""
    with pytest.raises(ContractError, match="at 3") as refused:
        Prompt(**{"text": "What?", field: "abc\udc80"})

    assert field == refused.value.field


def test_a_selection_of_frames_keeps_its_indices_and_times():
    """What a sampler chose from a longer video travels with the frames."""
    prompt = Prompt(
        text="What?", video=FRAMES, video_indices=[0, 30, 90], video_timestamps_s=[0, 1.0, 3.0]
    )

    assert (0, 30, 90) == prompt.video_indices
    assert (0, 1.0, 3.0) == prompt.video_timestamps_s


def test_more_images_than_the_limit_are_refused_by_number():
    """The error says how many there were and how many there may be."""
    image = np.zeros((1, 1, 3), np.uint8)
    with pytest.raises(LimitExceededError) as refused:
        Prompt(text="What?", images=[image] * 257)

    assert (257, 256) == (refused.value.actual, refused.value.allowed)


def test_prompt_of_takes_sources_of_any_kind():
    """`Prompt.of` opens what `load_image` opens, in order."""
    prompt = Prompt.of("What?", np.zeros((6, 7, 3), np.uint8), np.ones((5, 4)), system="Be brief.")

    assert [(6, 7, 3), (5, 4, 3)] == [image.shape for image in prompt.images]
    assert "Be brief." == prompt.system


def test_prompt_of_names_the_file_that_is_not_there():
    """The path stands in the error."""
    with pytest.raises(MediaError, match=r"no-such-file\.png"):
        Prompt.of("What?", "no-such-file.png")


def test_a_sampled_video_is_a_prompt_in_one_line():
    """The frames as they are, with the time of each, for models that read times."""
    video = sample_frames(np.zeros((61, 4, 5, 3), np.uint8), rate_hz=10)

    prompt = Prompt.of_video("What happens?", video, system="Be brief.")

    assert np.shares_memory(video.pixels, prompt.video)
    assert video.selection.timestamps_s == prompt.video_timestamps_s
    assert ("Be brief.", 2.5) == (prompt.system, prompt.video_rate_hz)
    assert 1.0 == Prompt.of_video("What?", sample_frames(FRAMES[:1], rate_hz=10)).video_rate_hz
