"""Many questions about the same pictures."""

import numpy as np
import pytest

from vlmcore.errors import ContractError, MediaError, ModelError
from vlmcore.testing import EchoPredictor
from vlmcore.vlm.session import Session

IMAGE = np.zeros((12, 16, 3), dtype=np.uint8)


class Listening(EchoPredictor):
    """Remembers the prompts that it was given."""

    def __init__(self):
        super().__init__()
        self.prompts = []

    def generate(self, prompt, *rest, **named):
        self.prompts.append(prompt)
        return super().generate(prompt, *rest, **named)


def test_each_question_is_asked_with_the_same_pictures_and_system_text():
    """And with nothing of the questions before it."""
    predictor = Listening()
    with Session(predictor, images=[IMAGE], system="Be brief.") as session:
        session.ask("One?")
        session.ask("Two?")

    asked = [(p.text, p.system, [image.shape for image in p.images]) for p in predictor.prompts]
    assert [(text, "Be brief.", [(12, 16, 3)]) for text in ("One?", "Two?")] == asked


def test_a_video_is_asked_about_with_its_times():
    """Rate and times belong to the frames."""
    predictor = Listening()
    video = np.zeros((2, 8, 8, 3), dtype=np.uint8)
    Session(predictor, video=video, video_rate_hz=4.0, video_timestamps_s=[0.5, 2.0]).ask("When?")

    prompt = predictor.prompts[0]
    assert (4.0, (0.5, 2.0)) == (prompt.video_rate_hz, prompt.video_timestamps_s)


def test_a_question_is_streamed():
    """The pieces join to the answer."""
    with Session(EchoPredictor(), images=[IMAGE]) as session, session.stream("Who?") as stream:
        assert "".join(stream) == stream.result.text


def test_a_closed_session_is_refused_and_leaves_its_predictor_open():
    """Closing twice is no error."""
    predictor = EchoPredictor()
    session = Session(predictor, images=[IMAGE])
    session.close()
    session.close()

    for question in (session.ask, session.stream):
        with pytest.raises(ModelError, match="this session is closed: open another"):
            question("Who?")
    assert Session(predictor, images=[IMAGE]).ask("Who?").text


def test_a_blank_question_is_refused():
    """The text that stands for no question is never asked."""
    with pytest.raises(ContractError, match="text"):
        Session(EchoPredictor(), images=[IMAGE]).ask(" ")


@pytest.mark.parametrize("images", ["photo.jpg", b"bytes", IMAGE, 3])
def test_what_is_no_list_of_images_is_refused(images):
    """A path is not a list of its characters, and a picture not one of its rows."""
    with pytest.raises(ContractError, match=r"images: got .*, expected a list of images"):
        Session(EchoPredictor(), images=images)


def test_an_image_that_cannot_be_read_is_refused_when_the_session_opens():
    """Not with the first question."""
    with pytest.raises(MediaError):
        Session(EchoPredictor(), images=[b"not an image"])
