"""What a case is shown to a model as, and the record of that."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import pytest

from lab_cases import colours
from vlmcore.lab.inputs import pixels_sha256
from vlmcore.lab.preparing import input_of, prompt_of, shown_at
from vlmcore.lab.scoring.keywords import KeywordEvaluator
from vlmcore.lab.suites import Case, Suite
from vlmcore.media.encoding import encode_png
from vlmcore.media.formats import ImageFormat
from vlmcore.vlm.remote.pictures import PictureRules


def test_a_picture_is_made_as_small_as_its_case_says(tmp_path: Path) -> None:
    """
    Both sizes are recorded, and the pixels that were given.
    """
    suite = colours(tmp_path, "red", longest_edge_px=30)
    prompt = prompt_of(suite, suite.cases[0])
    given = input_of(suite, suite.cases[0], target="mine", rules=None)

    assert (20, 30, 3) == prompt.images[0].shape
    (media,) = given.media
    assert (40, 60, 20, 30) == (
        media.stored_height_px,
        media.stored_width_px,
        media.height_px,
        media.width_px,
    )
    assert pixels_sha256(prompt.images[0]) == media.pixels_sha256
    assert ("", None) == (media.encoder, media.sent_sha256)
    assert hashlib.sha256(b"Which colour is it?").hexdigest() == given.prompt_sha256


@pytest.mark.parametrize("name", ["JPEG", "PNG"])
def test_what_is_sent_to_a_server_is_recorded(tmp_path: Path, name: str) -> None:
    """
    By the digest of the file, and in the words of its encoder.
    """
    rules = PictureRules(format=ImageFormat[name])
    suite = colours(tmp_path, "red")
    (media,) = input_of(suite, suite.cases[0], target="served", rules=rules).media

    sent = rules.encode(prompt_of(suite, suite.cases[0]).images[0])
    assert hashlib.sha256(sent).hexdigest() == media.sent_sha256
    assert media.encoder.startswith(name)


def test_a_nonce_stands_before_everything(tmp_path: Path) -> None:
    """
    Before the words of the system, which come before the image.
    """
    suite = colours(tmp_path, "red", system="Be short.")
    assert "0123\nBe short." == prompt_of(suite, suite.cases[0], nonce="0123").system
    assert "Be short." == prompt_of(suite, suite.cases[0]).system


def test_a_picture_is_turned_as_it_says(tmp_path: Path) -> None:
    """
    A photo that lies on its side is measured upright.
    """
    image = pytest.importorskip("PIL.Image")
    photo = image.new("RGB", (600, 300))
    exif = photo.getexif()
    exif[0x0112] = 6
    photo.save(tmp_path / "photo.jpg", exif=exif)
    case = Case(
        name="photo",
        image="photo.jpg",
        prompt="?",
        evaluator=KeywordEvaluator(expected=["a"]),
        longest_edge_px=448,
    )
    suite = Suite(name="photos", cases=[case], folder=tmp_path)
    (media,) = input_of(suite, case, target="mine", rules=None).media

    assert (600, 300) == (media.stored_height_px, media.stored_width_px)
    assert (448, 224) == (media.height_px, media.width_px)


def test_what_is_transparent_lies_on_white(tmp_path: Path) -> None:
    """
    Black would be another picture.
    """
    clear = np.zeros((4, 4, 4), np.uint8)
    image = pytest.importorskip("PIL.Image")
    image.fromarray(clear, "RGBA").save(tmp_path / "clear.png")
    case = Case(
        name="clear",
        image="clear.png",
        prompt="?",
        evaluator=KeywordEvaluator(expected=["a"]),
    )
    shown = prompt_of(Suite(name="s", cases=[case], folder=tmp_path), case).images[0]

    assert [255] == np.unique(shown).tolist()
    assert encode_png(shown)


def test_a_video_is_shown_at_even_steps(tmp_path: Path) -> None:
    """
    As one video to a model of this process, and frame by frame to a server.
    """
    pytest.importorskip("av")
    from video_cases import clip  # noqa: PLC0415

    (tmp_path / "clip.mp4").write_bytes(clip(40))
    case = Case(
        name="clip",
        video="clip.mp4",
        frames=3,
        prompt="?",
        evaluator=KeywordEvaluator(expected=["a"]),
    )
    suite = Suite(name="clips", cases=[case], folder=tmp_path)

    (media,) = input_of(suite, case, target="mine", rules=None).media
    frames = input_of(suite, case, target="served", rules=PictureRules()).media

    assert 3 == media.frames == len(frames)
    assert {1} == {each.frames for each in frames}
    assert 3 == len({each.sent_sha256 for each in frames})


@pytest.mark.parametrize(
    ("case_px", "target_px", "shown_px"),
    [(None, 20, 20), (40, 20, 20), (20, 40, 20), (20, None, 20)],
)
def test_a_target_is_shown_the_smaller_of_what_it_and_the_case_say(
    tmp_path: Path, case_px: int | None, target_px: int | None, shown_px: int
) -> None:
    """
    A target can be shown less than a case says, and never more.
    """
    suite = colours(tmp_path, "red", **({} if case_px is None else {"longest_edge_px": case_px}))
    case = shown_at(suite.cases[0], target_px)

    assert (shown_px * 2 // 3, shown_px) == pytest.approx(
        prompt_of(suite, case).images[0].shape[:2], abs=1
    )


def test_a_case_without_sizes_is_shown_as_it_is(tmp_path: Path) -> None:
    """
    No target says anything, and no case does.
    """
    suite = colours(tmp_path, "red")

    assert suite.cases[0] is shown_at(suite.cases[0], None)
