"""``vlmcore detect``, with a tiny model that finds nonsense."""

import json
from pathlib import Path

import numpy as np
import pytest

from vlmcore.media.images import load_image
from vlmcore.vision.documents import detections_from_document

pytest.importorskip("transformers")
LOOSE = ("--box-threshold", "0", "--max-iou", "1", "--device", "cpu")


@pytest.fixture(scope="module")
def model(tmp_path_factory) -> str:
    from tiny_detectors import make_tiny_detector  # noqa: PLC0415 - imports torch

    return str(make_tiny_detector("owlv2", tmp_path_factory.mktemp("models") / "owl"))


@pytest.fixture
def noise(pictures) -> str:
    path = pictures.folder / "noise.png"
    image = pytest.importorskip("PIL.Image")
    pixels = np.random.default_rng(0).integers(0, 256, (48, 90, 3), dtype=np.uint8)
    image.fromarray(pixels).save(path)
    return str(path)


def test_what_is_found_is_a_document_and_is_drawn(command, model, noise, tmp_path) -> None:
    """
    The document is that of `vlmcore.vision`, with the name of the image.
    """
    drawn = tmp_path / "drawn.png"
    words = ("detect", noise, "--labels", "A cup, red hand", "--model", model, *LOOSE)
    done = command(*words, "--json", "-o", drawn)

    assert (0, "") == (done.code, done.err)
    document = json.loads(done.out)
    assert noise == document.pop("image")
    found = detections_from_document(document)
    assert set(found.labels) <= {"A cup", "red hand"}
    assert len(found) > 0
    assert (48, 90, 3) == load_image(drawn).shape
    assert (load_image(drawn) != load_image(noise)).any()


def test_a_line_says_score_box_and_label(command, model, noise) -> None:
    """
    For people and for ``sort``.
    """
    done = command("detect", noise, "--labels", "a cup", "--model", model, *LOOSE)

    assert 0 == done.code
    for line in done.out.splitlines():
        score, box, label = line.split("  ")
        assert 0 <= float(score) <= 1
        assert 4 == len(box.split(" "))
        assert "a cup" == label


def test_an_image_that_cannot_be_read_is_reported_and_the_others_are_done(
    command, model, pictures, noise
) -> None:
    """
    The exit code says that something is missing.
    """
    words = (pictures.text, noise, "--labels", "a cup", "--model", model, *LOOSE)
    done = command("detect", *words)

    assert 1 == done.code
    assert pictures.text in done.err
    assert noise in done.out


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["--labels", " , "], 2, "--labels: got none"),
        (["--labels", "a\x1b[1m"], 2, "--labels: got"),
        (["--labels", "a", "--box-threshold", "2"], 2, "--box-threshold: got 2.0"),
        (["--labels", "a", "--max-detections", "0"], 2, "--max-detections: got 0"),
        (["--labels", "a", "--device", "abacus"], 2, "--device: got 'abacus'"),
        (["--labels", "a", "--model", "./none"], 3, "there is no such folder"),
        (["more.png", "--labels", "a", "-o", "x.png"], 2, "--output: draws one image"),
        ([], 2, "--labels"),
    ],
)
def test_a_wrong_command_line_is_told_before_a_model_is_loaded(
    command, noise, words, code, said
) -> None:
    """
    With the option that is wrong.
    """
    done = command("detect", noise, *words)

    assert code == done.code
    assert said in done.err
    assert not Path("x.png").exists()
