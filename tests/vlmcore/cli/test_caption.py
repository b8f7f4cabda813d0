"""``vlmcore caption`` in this process, with an echo for a model."""

import json
import signal
import time
from pathlib import Path
from unittest.mock import Mock

import pytest

from vlmcore.cli._caption_progress import CaptionProgress, duration
from vlmcore.cli._terminal import Terminal
from vlmcore.errors import ModelAccessError
from vlmcore.jobs.reports import JobProgress, Result

RED = "Describe this image in one sentence. [image 6x4 #ff0000]"
BLUE = "Describe this image in one sentence. [image 7x5 #0000ff]"


@pytest.fixture
def photos(pictures) -> Path:
    """A folder with a red and a blue picture, and a sub-folder with a red one."""
    Path(pictures.text).unlink()
    inner = pictures.folder / "more"
    inner.mkdir()
    (inner / "red.png").write_bytes(Path(pictures.red).read_bytes())
    return pictures.folder


def test_every_image_gets_a_caption_beside_it(command, photos) -> None:
    """
    Those of sub-folders, too; how it went is told on standard error.
    """
    done = command("caption", photos)
    assert (0, "") == (done.code, done.out)
    assert "3 images in " in done.err
    assert ": 3 captioned\n" in done.err
    assert f"{RED}\n" == (photos / "red.txt").read_text()
    assert f"{BLUE}\n" == (photos / "blue.txt").read_text()
    assert f"{RED}\n" == (photos / "more" / "red.txt").read_text()


def test_the_word_run_may_be_written_or_left_out(command, photos) -> None:
    """
    A folder of that name is written as a path.
    """
    assert 0 == command("caption", "run", photos, "--no-recursive").code
    assert not (photos / "more" / "red.txt").exists()
    assert 0 == command("caption", photos).code


def test_a_rerun_loads_no_model_where_nothing_is_left_to_ask(command, photos) -> None:
    """
    And says what was done before.
    """
    first, second = command("caption", photos), command("caption", photos)
    assert (1, 0) == (len(first.loaded), len(second.loaded))
    assert "3 done before" in second.err


def test_a_table_is_written_instead_of_files(command, photos, tmp_path) -> None:
    """
    A line for each image, in the order of the folder.
    """
    table = tmp_path / "captions.jsonl"
    assert 0 == command("caption", photos, "-o", table, "--glob", "*.png").code
    rows = [json.loads(line) for line in table.read_text().splitlines()]
    assert ["blue.png", "red.png", "more/red.png"] == [row["key"] for row in rows]
    assert [BLUE, RED, RED] == [row["caption"] for row in rows]
    assert not list(photos.glob("*.txt"))


def test_several_questions_are_put_together_as_asked(command, photos) -> None:
    """
    By their names; each is one question to the model.
    """
    words = ("--ask", "what", "What?", "--ask", "how", "How?", "--template", "{what} | {how}")
    assert 0 == command("caption", photos, *words).code
    what, how = (photos / "red.txt").read_text().split(" | ")
    assert "What? [image 6x4 #ff0000]" == what
    assert "How? [image 6x4 #ff0000]\n" == how


def test_questions_may_say_what_an_image_is_called(command, photos) -> None:
    """
    Only where fields are asked for: braces are common in questions about JSON.
    """
    command("caption", photos, "--prompt", "Is it {stem}?", "--prompt-fields")
    assert "Is it red? [image 6x4 #ff0000]\n" == (photos / "red.txt").read_text()
    command("caption", photos, "--prompt", 'As {"a": 1}?')
    assert 'As {"a": 1}? [image 6x4 #ff0000]\n' == (photos / "red.txt").read_text()


def test_failures_are_told_with_their_reasons_and_the_others_are_done(command, photos) -> None:
    """
    The exit code is 1; the status lists them, and a rerun leaves them alone until told.
    """
    (photos / "bad.jpg").write_bytes(b"no image")
    done = command("caption", photos)
    assert 1 == done.code
    assert "vlmcore: bad.jpg: is text, expected PNG" in done.err
    status = command("caption", "status", photos)
    assert 0 == status.code
    assert "4 of 4 images are done with" in status.out
    assert "bad.jpg: is text" in status.out
    (photos / "bad.jpg").write_bytes((photos / "red.png").read_bytes())
    assert 0 == command("caption", photos, "--retry-failed").code
    assert f"{RED}\n" == (photos / "bad.txt").read_text()


def test_how_it_ended_is_a_json_object_for_programs(command, photos) -> None:
    """
    With a number for each result.
    """
    done = command("caption", photos, "--json", "--quiet")
    report = json.loads(done.out)
    assert (3, 3, 0) == (report["images"], report["captioned"], report["failed"])
    assert "" == done.err
    status = json.loads(command("caption", "status", photos, "--json").out)
    assert (3, 0) == (status["captioned"], status["waiting"])


def test_a_job_is_exported_as_a_table(command, photos, tmp_path) -> None:
    """
    From its journal, without asking.
    """
    command("caption", photos)
    done = command("caption", "export", photos, "-o", tmp_path / "all.jsonl")
    assert (0, []) == (done.code, done.loaded)
    assert 3 == len((tmp_path / "all.jsonl").read_text().splitlines())
    assert 2 == command("caption", "export", photos, "-o", "all.xlsx").code


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("nowhere",), "SOURCE: nowhere: does not exist, expected a folder of images"),
        ((".", "--trigger", "a  b"), "--trigger: "),
        ((".", "--template", "{nothing}"), "--template: got the field {nothing}"),
        ((".", "--extension", "txt"), "--extension: got 'txt', expected an ending"),
        ((".", "--skip-similar", "65"), "--skip-similar: got 65"),
        ((".", "--batch-size", "0"), "--batch-size: "),
        ((".", "--ask", "a", "b", "--prompt", "c"), "--prompt: got one beside --ask"),
        ((".", "--ask", "a b", "c"), "--ask: "),
        ((".", "--ask", "a", "b", "--ask", "a", "c"), "--ask: got two named 'a'"),
        ((".", "-o", "table.csv"), "--output: "),
        ((".", "--image-field", "url"), "--image-field: "),
        ((".", "--longest-edge", "0"), "--longest-edge: "),
        ((".", "--max-new-tokens", "0"), "--max-new-tokens: "),
        ((".", "--device", "tpu"), "--device: "),
        ((), "vlmcore caption: error: "),
    ],
)
def test_a_wrong_command_line_is_told_before_anything_is_asked(
    command, photos, monkeypatch, words, told
) -> None:
    """
    By the option that it was, with the exit code of a wrong command line.
    """
    monkeypatch.chdir(photos)
    done = command("caption", *words)
    assert (2, []) == (done.code, done.loaded)
    assert told in done.err
    assert not (photos / ".vlmcore").exists()


def test_a_model_that_cannot_be_loaded_ends_the_job(command, photos) -> None:
    """
    With the exit code for that, and nothing is counted as failed.
    """

    problem = ModelAccessError("embedded", "there is no such model")
    done = command("caption", photos, load=Mock(side_effect=problem))
    assert (3, "vlmcore: embedded: there is no such model\n") == (done.code, done.err)
    assert "3 waiting" in command("caption", "status", photos).out


def test_a_place_without_a_job_is_told(command, tmp_path) -> None:
    """
    Instead of an empty status.
    """
    done = command("caption", "status", tmp_path)
    assert 1 == done.code
    assert "no job has run here" in done.err


def test_the_first_ctrl_c_ends_it_after_what_is_being_answered(child, photos) -> None:
    """
    What was answered is written, the exit code is 130, and the next run goes on.
    """
    for i in range(20):
        (photos / f"{i}.png").write_bytes((photos / "red.png").read_bytes())
    process = child("caption", str(photos), "--batch-size", "1", made="delay_s=0.02")
    while not list(photos.rglob("*.txt")):
        time.sleep(0.01)
        assert process.poll() is None
    process.send_signal(signal.SIGINT)
    _, told = process.communicate(timeout=60)
    written = len(list(photos.rglob("*.txt")))
    assert b"stopping after what is being answered" in told
    assert 130 == process.returncode
    assert 1 <= written < 23
    again = child("caption", str(photos), "--json", "--quiet")
    report = json.loads(again.communicate(timeout=60)[0])
    assert (written, 23 - written) == (report["done"], report["captioned"])


def test_progress_is_a_line_where_a_person_watches(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """
    With what is done, how fast, how long it takes, and what failed.
    """
    counts = dict.fromkeys(Result, 0) | {Result.CAPTIONED: 120, Result.FAILED: 3}
    progress = JobProgress(total=1000, counts=counts, elapsed_s=60.0, rate_hz=2.0)
    with CaptionProgress(Terminal.standard(), quiet=False) as tell:
        tell(progress)
    assert "" == capsys.readouterr().err
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "200")
    with CaptionProgress(Terminal.standard(), quiet=False) as tell:
        tell(progress)
    expected = "captioning: 123 of 1,000, 12%, 2.0/s, 7 min 18 s left, 3 failed"
    assert expected in capsys.readouterr().err.split("\r")


@pytest.mark.parametrize(
    ("seconds", "written"),
    [(0.2, "0 s"), (59.6, "1 min"), (61, "1 min 1 s"), (90_061, "1 d 1 h")],
)
def test_times_are_written_as_people_read_them(seconds: float, written: str) -> None:
    """
    In the two largest units.
    """
    assert written == duration(seconds)
