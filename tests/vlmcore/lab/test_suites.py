"""Tests of `vlmcore.lab.suites`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from suite_cases import case
from vlmcore.errors import ContractError, LimitExceededError
from vlmcore.lab.suites import Suite


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({"name": ""}, "name"),
        ({"name": "a\nb"}, "name"),
        ({"name": None}, "name"),
        ({"name": "x" * 257}, "name"),
        ({"prompt": " "}, "prompt"),
        ({"prompt": "\ud800"}, "prompt"),
        ({"prompt": 3}, "prompt"),
        ({"prompt": "x" * 65_537}, "max_prompt_characters"),
        ({"system": " "}, "system"),
        ({"system": None}, "system"),
        ({"evaluator": "exact"}, "evaluator"),
        ({"evaluator": None}, "evaluator"),
        ({"image": None}, "image"),
        ({"video": "a.mp4"}, "image"),
        ({"frames": 8}, "frames"),
        ({"image": None, "video": "a.mp4"}, "frames"),
        ({"image": None, "video": "a.mp4", "frames": 0}, "frames"),
        ({"image": None, "video": "a.mp4", "frames": 1025}, "max_frames"),
        ({"longest_edge_px": 0}, "longest_edge_px"),
        ({"longest_edge_px": True}, "longest_edge_px"),
        ({"longest_edge_px": 448.0}, "longest_edge_px"),
        ({"longest_edge_px": 65_537}, "max_edge_px"),
        ({"max_new_tokens": 0}, "max_new_tokens"),
        ({"max_new_tokens": 1 << 21}, "max_new_tokens"),
        ({"margin": -0.1}, "margin"),
        ({"margin": 1.1}, "margin"),
        ({"margin": float("nan")}, "margin"),
        ({"margin": True}, "margin"),
    ],
)
def test_a_case_is_as_it_is_described_or_refused(wrong: dict[str, Any], field: str) -> None:
    """
    With the field that is wrong.
    """
    with pytest.raises(ContractError) as caught:
        case(**wrong)
    assert field == caught.value.field


@pytest.mark.parametrize(
    "path",
    [
        "/etc/passwd",
        "../photo.png",
        "a/../../b.png",
        "./a.png",
        "a//b.png",
        "a/",
        "C:\\a.png",
        "C:a.png",
        "a\\..\\b.png",
        "http://example.com/a.png",
        "data:image/png;base64,AAAA",
        "",
        "a\0.png",
        "..",
    ],
)
@pytest.mark.parametrize("kind", ["image", "video"])
def test_images_and_videos_lie_in_the_folder_of_the_suite(path: str, kind: str) -> None:
    """
    A suite of somebody else's must not send other files to a server, nor fetch anything.
    """
    with pytest.raises(ContractError) as caught:
        case(**{"image": None, kind: path})
    assert kind == caught.value.field


@pytest.mark.parametrize("path", ["dice.png", "photos/a b/..dice.png", "é.png", "...png"])
def test_a_path_in_a_folder_in_it_is_one(path: str, tmp_path: Path) -> None:
    """
    With slashes on every system.
    """
    suite = Suite(name="s", cases=[case(image=path)], folder=tmp_path)

    assert tmp_path / path == suite.path_of(suite.cases[0])
    with pytest.raises(ContractError, match=r"^folder: got None"):
        Suite(name="s", cases=[case()]).path_of(case())


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({"name": " "}, "name"),
        ({"cases": []}, "cases"),
        ({"cases": None}, "cases"),
        ({"cases": "ab"}, "cases[0]"),
        ({"cases": [case(), None]}, "cases[1]"),
        ({"notes": None}, "notes"),
        ({"notes": " "}, "notes"),
        ({"notes": "x" * 16_385}, "max_notes_characters"),
        ({"folder": "photos"}, "folder"),
    ],
)
def test_a_suite_is_as_it_is_described_or_refused(wrong: dict[str, Any], field: str) -> None:
    """
    With the field that is wrong.
    """
    with pytest.raises(ContractError) as caught:
        Suite(**{"name": "s", "cases": [case()]} | wrong)
    assert field == caught.value.field


def test_two_cases_of_one_name_are_refused() -> None:
    """
    A figure says which case it is of.
    """
    with pytest.raises(ContractError, match=r"^cases\[0\].name: got 'a' more than once"):
        Suite(name="s", cases=[case(name="a"), case(name="b"), case(name="a")])


def test_there_are_so_many_cases_at_most() -> None:
    """
    And not more, whoever wrote the suite.
    """
    one = case()
    with pytest.raises(LimitExceededError, match=r"max_cases: got 10001"):
        Suite(name="s", cases=[one] * 10_001)


def test_where_a_suite_lies_is_no_part_of_it(tmp_path: Path) -> None:
    """
    The same on two machines is the same.
    """
    assert Suite(name="s", cases=[case()]) == Suite(name="s", cases=[case()], folder=tmp_path)
