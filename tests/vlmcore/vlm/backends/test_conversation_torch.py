"""What a processor is given for a prompt."""

import numpy as np
import pytest
import torch
import transformers

from vlmcore.embedded import model_directory
from vlmcore.errors import GenerationError
from vlmcore.vlm.backends._conversation import prepare
from vlmcore.vlm.prompt import Prompt

FRAMES = np.zeros((4, 8, 8, 3), np.uint8)
PIXELS = np.zeros((8, 8, 3), np.uint8)
CHAT = (
    "{% for m in messages %}{{ m['role'] }}: {% for part in m['content'] %}"
    "{% if part['type'] == 'text' %}{{ part['text'] }}{% else %}<{{ part['type'] }}>{% endif %}"
    "{% endfor %}|{% endfor %}"
)
NO_SYSTEM = "{% if messages[0]['role'] == 'system' %}{{ raise_exception('no system') }}{% endif %}"
DEAF_TO_SYSTEM = CHAT.replace("{% for m in messages %}", "{% for m in messages[-1:] %}")


class RecordingProcessor:
    """A processor with a real template and tokenizer that keeps what it was called with."""

    def __init__(self, template: str = CHAT) -> None:
        self.tokenizer = transformers.AutoTokenizer.from_pretrained(model_directory())
        self.tokenizer.chat_template = template
        self.calls: list[dict] = []

    def apply_chat_template(self, messages, **options):
        return self.tokenizer.apply_chat_template(messages, **options)

    def __call__(self, **arguments):
        self.calls.append(arguments)
        return {"input_ids": torch.zeros(len(arguments["text"]), 3, dtype=torch.long)}


def given(processor, *prompts, supports_video=False, thinking=None):
    prepare(
        prompts,
        processor,
        model="recording",
        supports_video=supports_video,
        thinking=thinking,
        device=torch.device("cpu"),
        dtype=torch.float32,
    )
    return processor.calls[-1]


def test_images_come_before_the_text_and_are_nested_by_prompt():
    """Every processor of transformers takes a list of images for each prompt of a batch."""
    call = given(
        RecordingProcessor(),
        Prompt(text="One?", images=[PIXELS]),
        Prompt(text="Two?", images=[PIXELS, PIXELS]),
    )

    assert ["user: <image>One?|", "user: <image><image>Two?|"] == call["text"]
    assert [1, 2] == [len(images) for images in call["images"]]


@pytest.mark.parametrize("template", [NO_SYSTEM + CHAT, DEAF_TO_SYSTEM])
def test_a_template_without_a_system_role_gets_the_system_text_in_the_question(template):
    """The system text is not lost, whether the template refuses it or ignores it."""
    call = given(RecordingProcessor(template), Prompt(text="What?", system="Be brief."))

    assert ["user: Be brief.\n\nWhat?|"] == call["text"]


def test_a_template_with_a_system_role_is_given_it():
    """The system text stands where the model learnt to read it."""
    call = given(RecordingProcessor(), Prompt(text="What?", system="Be brief."))

    assert ["system: Be brief.|user: What?|"] == call["text"]


def test_a_beginning_that_the_template_wrote_is_not_written_twice():
    """A doubled beginning-of-sequence token changes the answers of some models."""
    processor = RecordingProcessor("{{ bos_token }}" + CHAT)
    processor.tokenizer.bos_token = "<|im_start|>"

    assert given(processor, Prompt(text="What?"))["add_special_tokens"] is False
    assert "add_special_tokens" not in given(RecordingProcessor(), Prompt(text="What?"))


@pytest.mark.parametrize(("thinking", "seen"), [(None, "unset"), (True, "True"), (False, "False")])
def test_thinking_is_asked_for_in_the_words_of_the_template(thinking, seen):
    """Left alone, the template decides."""
    template = "{{ enable_thinking if enable_thinking is defined else 'unset' }}"

    assert [seen] == given(RecordingProcessor(template), Prompt(text="Hm"), thinking=thinking)[
        "text"
    ]


@pytest.mark.parametrize(
    ("fields", "times", "sampled_hz"),
    [
        ({"video_rate_hz": 2.0}, [0.0, 0.5, 1.0, 1.5], 2.0),
        ({"video_rate_hz": 30.0, "video_indices": [0, 30, 60, 90]}, [0.0, 1.0, 2.0, 3.0], 1.0),
        ({"video_timestamps_s": [0, 1, 2.5, 4.0]}, [0.0, 1.0, 2.5, 4.0], 0.75),
        (
            {"video_timestamps_s": [7, 8, 9.25, 10], "video_indices": [1, 2, 3, 9]},
            [7.0, 8.0, 9.25, 10.0],
            1.0,
        ),
    ],
)
def test_a_model_of_videos_is_told_the_time_of_each_frame(fields, times, sampled_hz):
    """The processor computes times as index over rate, and the sample's rate from its length."""
    call = given(
        RecordingProcessor(), Prompt(text="What?", video=FRAMES, **fields), supports_video=True
    )

    (metadata,) = call["video_metadata"]
    transformers.video_utils.VideoMetadata(**metadata)  # it takes each of these
    sampled = len(metadata["frames_indices"]) / metadata["total_num_frames"] * metadata["fps"]
    assert times == [index / metadata["fps"] for index in metadata["frames_indices"]]
    assert sampled_hz == pytest.approx(sampled, rel=1e-3)
    assert call["do_sample_frames"] is False
    assert ["user: <video>What?|"] == call["text"]


def test_a_model_of_images_is_given_the_frames_and_their_times_in_words():
    """Frames are images then, in order, after the images of the prompt."""
    prompt = Prompt(text="What?", images=[PIXELS], video=FRAMES, video_rate_hz=2.0)

    call = given(RecordingProcessor(), prompt)

    assert [5] == [len(images) for images in call["images"]]
    assert "last 4 images are frames of one video, at 0.0, 0.5, 1.0, 1.5 seconds" in call["text"][0]
    assert "videos" not in call


def test_frames_that_were_selected_are_told_at_their_own_times():
    """The index of a frame in its source says when it was seen, and not its place in the list."""
    prompt = Prompt(text="What?", video=FRAMES, video_indices=[0, 30, 60, 90], video_rate_hz=30.0)

    assert "at 0.0, 1.0, 2.0, 3.0 seconds" in given(RecordingProcessor(), prompt)["text"][0]


def test_a_system_text_that_the_user_repeats_is_not_taken_for_given():
    """A template that drops it is found out all the same."""
    prompt = Prompt(text="Describe it in French please.", system="French")

    assert given(RecordingProcessor(DEAF_TO_SYSTEM), prompt)["text"] == [
        "user: French\n\nDescribe it in French please.|"
    ]


@pytest.mark.parametrize(
    ("shape", "size"),
    [((1, 1), (8, 8)), ((1, 3000), (3000, 30)), ((500, 3), (8, 500)), ((8, 800), (800, 8))],
)
def test_a_very_thin_picture_is_stretched_to_what_processors_take(shape, size):
    """No side below 8 pixels, none below a hundredth of the other."""
    call = given(RecordingProcessor(), Prompt(text="?", images=[np.zeros((*shape, 3), np.uint8)]))

    assert [[size]] == [[image.size for image in images] for images in call["images"]]


def test_a_template_that_fails_names_the_model():
    """The message of the template is kept: it says what it cannot take."""
    with pytest.raises(
        GenerationError, match=r"recording: its processor refuses the prompt.*no sys"
    ):
        given(RecordingProcessor("{{ raise_exception('no sys') }}"), Prompt(text="What?"))
