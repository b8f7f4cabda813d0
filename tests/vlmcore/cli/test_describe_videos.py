"""``vlmcore describe`` with videos, animations and pictures that are made smaller."""

import io
import json
import sys

import numpy as np
import pytest
from PIL import Image

import vlmcore.media
from video_cases import clip

VIDEO = "Describe this video in one sentence."


@pytest.fixture
def video(tmp_path):
    """A clip of four seconds, 64 x 48 pixels, under a name that says nothing."""
    path = tmp_path / "clip.bin"
    path.write_bytes(clip(40))
    return str(path)


def test_a_video_is_described_by_its_frames(command, video, pictures) -> None:
    """
    It is known by its content; images beside it are described as ever.
    """
    done = command("describe", pictures.red, video)

    red = "Describe this image in one sentence. [image 6x4 #ff0000]"
    assert (0, f"{red}\n{VIDEO} [video 16 frames 64x48]\n") == (done.code, done.out)
    assert f"{video}: 16 frames of 3.9 s are looked at\n" in done.err


@pytest.mark.parametrize("how", ["uniform", "scenes", "motion", "hybrid"])
def test_frames_are_as_many_as_asked_for_and_as_large(command, video, how) -> None:
    """
    Whatever decides which; --verbose says when each is, and why.
    """
    words = ("--frames", "5", "--sampling", how, "--longest-edge", "32", "--prompt", "What?")
    done = command("describe", video, *words, "--verbose")

    assert (0, "What? [video 5 frames 32x24]\n") == (done.code, done.out)
    assert "  0.00 s: coverage\n" in done.err or "scene\n" in done.err


def test_pictures_are_made_smaller(command, pictures) -> None:
    """
    By pixels, or by the longer edge; what fits stays as it is.
    """
    words = ("--prompt", "?")
    assert (
        "? [image 3x2 #ff0000]\n"
        == command("describe", pictures.red, *words, "--longest-edge", "3").out
    )
    assert (
        "? [image 3x2 #ff0000]\n"
        == command("describe", pictures.red, *words, "--max-megapixels", "0.000006").out
    )
    assert (
        "? [image 6x4 #ff0000]\n"
        == command("describe", pictures.red, *words, "--max-megapixels", "1").out
    )


def test_a_video_comes_from_standard_input(command, monkeypatch) -> None:
    """
    It is held in memory then, as an image is.
    """
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(clip(10))))
    assert f"{VIDEO} [video 5 frames 64x48]\n" == command("describe", "-").out


def test_an_animation_is_a_video_where_frames_are_asked_for(command, tmp_path) -> None:
    """
    And its first picture where not.
    """
    path = tmp_path / "moving.gif"
    first, second = (Image.new("L", (8, 6), value) for value in (0, 255))
    first.save(path, "GIF", save_all=True, append_images=[second], duration=500)

    assert f"{VIDEO} [video 2 frames 8x6]\n" == command("describe", path, "--frames", "4").out
    assert "[image 8x6 #000000]" in command("describe", path).out


def test_one_prompt_holds_one_video_and_images_beside_it(command, video, pictures) -> None:
    """
    A second one is told, and nothing is asked.
    """
    words = ("--together", "--prompt", "?", "--frames", "2")
    done = command("describe", video, pictures.red, *words)
    assert "? [image 6x4 #ff0000] [video 2 frames 64x48]\n" == done.out
    done = command("describe", video, video, *words)
    assert (1, "") == (done.code, done.out)
    assert "is a second video, and a prompt holds one" in done.err


def test_a_broken_video_is_reported_and_the_others_are_done(command, video, tmp_path) -> None:
    """
    The complaint names the file; one that is cut short is described, and that is said.
    """
    broken = tmp_path / "broken.mp4"
    broken.write_bytes(clip(10)[:200])
    cut = tmp_path / "cut.mp4"
    random = np.random.default_rng(0)
    noise = [random.integers(0, 256, (48, 64, 3), np.uint8) for _ in range(60)]
    whole = clip(noise, index_in_front=True)
    cut.write_bytes(whole[: len(whole) // 2])

    done = command("describe", broken, cut, video, "--json")

    assert 1 == done.code
    answers = [json.loads(line) for line in done.out.splitlines()]
    assert ["error", "text", "text"] == ["error" if "error" in each else "text" for each in answers]
    assert f"vlmcore: {broken}: cannot be opened" in done.err
    assert f"vlmcore: {cut}: it ends at " in done.err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--frames", "0"), "--frames: got 0"),
        (("--frames", "2000"), "--frames: got 2000, limit is 1024"),
        (("--longest-edge", "0"), "--longest-edge: got 0"),
        (("--max-megapixels", "0"), "--max-megapixels: got 0.0"),
        (("--max-megapixels", "1e-9"), "--max-megapixels: got 0"),
        (("--sampling", "tracks"), "--sampling"),
    ],
)
def test_a_wrong_option_is_named(command, pictures, words, said) -> None:
    """
    Before anything is opened.
    """
    done = command("describe", pictures.red, *words)
    assert (2, "", []) == (done.code, done.out, done.loaded)
    assert said in done.err


def test_without_pyav_the_way_to_install_it_is_said(command, video, monkeypatch) -> None:
    """
    One line, and the exit code for it.
    """
    for name in ("_av", "_seeking"):
        monkeypatch.delitem(sys.modules, f"vlmcore.media.{name}", raising=False)
        monkeypatch.delattr(vlmcore.media, name, raising=False)
    monkeypatch.setitem(sys.modules, "av", None)
    done = command("describe", video)
    assert 'pip install "vlmcore[video]"' in done.err
    assert "" == done.out
    assert done.code not in (0, 1, 2)
