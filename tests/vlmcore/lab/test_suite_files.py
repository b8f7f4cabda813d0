"""Tests of `vlmcore.lab.suite_files`: files of suites, and what lies beside them."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from suite_cases import case
from vlmcore.errors import ContractError, DocumentError, SuiteError
from vlmcore.lab.suite_documents import suite_to_json, suite_to_toml
from vlmcore.lab.suite_files import read_suite, require_media
from vlmcore.lab.suites import Suite
from vlmcore.limits import SuiteLimits
from vlmcore.media.encoding import encode_png

DICE = Suite(name="s", cases=[case()])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """
    A folder with an image of three dice, or so.
    """
    tmp_path.joinpath("dice.png").write_bytes(encode_png(np.zeros((4, 6, 3), np.uint8)))
    return tmp_path


def failure(path: object, **given: object) -> SuiteError:
    """Read a suite that cannot be."""
    with pytest.raises(SuiteError) as caught:
        read_suite(path, **given)  # type: ignore[arg-type]
    return caught.value


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("s.json", suite_to_json(DICE)),
        ("s.toml", suite_to_toml(DICE)),
        ("S.TOML", suite_to_toml(DICE)),
    ],
)
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_a_suite_is_read_with_its_folder(folder: Path, name: str, text: str, mark: bytes) -> None:
    """
    In JSON or TOML, also as Windows writes them.
    """
    folder.joinpath(name).write_bytes(mark + text.encode())
    suite = read_suite(folder / name)

    assert (DICE, folder) == (suite, suite.folder)
    assert folder / "dice.png" == suite.path_of(suite.cases[0])
    assert DICE == read_suite(str(folder / name))


def test_images_may_lie_elsewhere(folder: Path) -> None:
    """
    Where the caller says.
    """
    folder.joinpath("suites").mkdir()
    path = folder / "suites" / "s.json"
    path.write_text(suite_to_json(DICE))

    assert folder == read_suite(path, media_folder=folder).folder
    assert "'dice.png' does not exist" in failure(path).problem


def test_every_image_that_is_not_there_or_is_none_is_told_before_anything_is_asked(
    folder: Path,
) -> None:
    """
    With the case that needs it.
    """
    folder.joinpath("text.png").write_text("a dog")
    folder.joinpath("empty.png").write_bytes(b"")
    folder.joinpath("folder.png").mkdir()
    names = ["dice.png", "gone.png", "text.png", "empty.png", "folder.png", "gone.png"]
    cases = [case(name=str(i), image=name) for i, name in enumerate(names)]
    cases.append(case(name="v", image=None, video="gone.mp4", frames=4))
    # What a video holds is seen later.
    cases.append(case(name="w", image=None, video="text.png", frames=4))
    path = folder / "s.json"
    path.write_text(suite_to_json(Suite(name="s", cases=cases)))

    error = failure(path)

    places = [f"$.cases[{i}].image" for i in (1, 2, 3, 4, 5)] + ["$.cases[6].video"]
    assert places == [place for place, _ in error.faults]
    assert str(path) == error.subject
    assert "$.cases[1].image: 'gone.png' does not exist" in str(error)
    assert "$.cases[3].image: 'empty.png' is empty, expected an image" in str(error)


def test_an_image_that_is_too_large_is_told_from_its_header(folder: Path) -> None:
    """
    Nothing is decoded, and no request is made.
    """
    png = bytearray(encode_png(np.zeros((4, 6, 3), np.uint8)))
    png[16:24] = (50_000).to_bytes(4, "big") * 2
    folder.joinpath("dice.png").write_bytes(png)
    folder.joinpath("s.json").write_text(suite_to_json(DICE))

    assert "$.cases[0].image" in str(failure(folder / "s.json"))


def test_all_faults_of_the_document_are_told_with_the_path(folder: Path) -> None:
    """
    A ValueError, and a LabError.
    """
    path = folder / "s.toml"
    path.write_text('name = ""\n[[cases]]\nevaluator = "exakt"\n')
    error = failure(path)

    assert isinstance(error, ValueError)
    assert ("$.name", "got a blank text, expected at least one character") in error.faults
    assert {"$.cases[0].evaluator", "$.cases[0].prompt"} <= {place for place, _ in error.faults}
    assert str(error).startswith(f"{path}: ")


@pytest.mark.parametrize(
    ("name", "data", "problem"),
    [
        ("s.yaml", b"", "ends with neither .json nor .toml, expected a suite"),
        ("s.json", b"{", "JSON: got "),
        ("s.json", b"\xff", "JSON: got text that is not UTF-8"),
        ("s.toml", b"a", "TOML: got no TOML: "),
        ("s.json", b" " * 101, "max_file_bytes: got 101, limit is 100"),
    ],
)
def test_a_file_that_is_no_suite_is_told(
    tmp_path: Path, name: str, data: bytes, problem: str
) -> None:
    """
    In one error, whatever is wrong.
    """
    tmp_path.joinpath(name).write_bytes(data)
    error = failure(tmp_path / name, limits=SuiteLimits(max_file_bytes=100))

    assert error.problem.startswith(problem)
    assert () == error.faults


def test_a_path_that_leads_to_no_regular_file_is_told_and_a_pipe_is_not_opened(
    tmp_path: Path,
) -> None:
    """
    Opening a named pipe waits for its writer.
    """
    tmp_path.joinpath("folder.json").mkdir()
    os.mkfifo(tmp_path / "pipe.json")

    for name in ("folder.json", "pipe.json"):
        assert "is no regular file, expected a suite" == failure(tmp_path / name).problem
    assert "does not exist" == failure(tmp_path / "gone.json").problem
    assert "there is a null character" in failure("a\0.json").problem


def test_media_are_looked_for_in_a_folder_only() -> None:
    """
    A suite that was made in Python has none unless it says.
    """
    with pytest.raises(ContractError, match=r"^folder: got None"):
        require_media(DICE)
    with pytest.raises(DocumentError, match="does not exist"):
        require_media(Suite(name="s", cases=[case()], folder=Path("/nowhere")))
