"""The hypothesis strategies: what they draw is valid, and is as odd as what people have."""

import subprocess
import sys

import numpy as np
from hypothesis import find, given

from vlmcore.testing.predictors import EchoPredictor
from vlmcore.testing.strategies import generation_options, images, prompts


@given(images(max_side_px=30))
def test_images_are_what_models_get(image) -> None:
    """
    Always uint8 RGB, never empty, never larger than asked for.
    """
    height, width, channels = image.shape
    assert (np.uint8, 3) == (image.dtype, channels)
    assert 1 <= min(height, width)
    assert max(height, width) <= 30


def test_the_smallest_image_is_one_pixel() -> None:
    """
    Lines and single pixels are among them: that is where resizing breaks.
    """
    assert (1, 1, 3) == find(images(), lambda _: True).shape
    assert 1 == find(images(), lambda image: image.shape[1] > 50).shape[0]


@given(prompts(), generation_options())
def test_every_prompt_can_be_asked_with_every_options(prompt, options) -> None:
    """
    The echo answers all of them, and its stream joins to the same answer.
    """
    predictor = EchoPredictor()
    with predictor.stream(prompt, options) as stream:
        pieces = list(stream)

    assert predictor.generate(prompt, options).text == "".join(pieces)
    assert stream.result.new_tokens <= options.max_new_tokens


def test_without_hypothesis_the_error_names_the_extra() -> None:
    """
    Importing the strategies says what to install; the rest of the kit goes on working.
    """
    program = (
        "import sys; sys.modules['hypothesis'] = None\n"
        "import vlmcore.testing\n"
        "try:\n    import vlmcore.testing.strategies\n"
        "except ImportError as error:\n    print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True
    )

    assert "" == done.stderr
    assert 'pip install "vlmcore[testing]"' in done.stdout
