"""Tests of `vlmcore.vision.dialects`: which dialect it is, where that can be told."""

from __future__ import annotations

from typing import Any

import pytest

from vlmcore.errors import AmbiguousResponseError, ContractError, LimitExceededError
from vlmcore.vision.dialects import DIALECTS, Dialect, Syntax, detect_dialect, find_dialect

BOX = "<loc_1><loc_2><loc_3><loc_4>"


@pytest.mark.parametrize(
    ("text", "name"),
    [
        (f"car{BOX}", "florence-2"),
        (f"car{BOX}{BOX}door{BOX}", "florence-2"),
        (f"<poly>{BOX}{BOX}</poly>", "florence-2-polygons"),
        (f"car{BOX}<loc_5><loc_6>", "florence-2-polygons"),
        ("<loc0001><loc0002><loc0003><loc0004> cat", "paligemma"),
        ('<point x="1.5" y="2.5" alt="a">a</point>', "molmo"),
        ('<points x1="1.5" y1="2.5" alt="a">a</points>', "molmo"),
        ("<object><patch_index_0044><patch_index_0863></object>", "kosmos-2"),
        ("<ref>cat</ref><box>[[1, 2, 3, 4]]</box>", "internvl"),
        ("<ref>cat</ref><box>(1,2),(3,4)</box>", "qwen-vl"),
        ("<|box_start|>(1,2),(3,4)<|box_end|>", "qwen2-vl"),
        ("<|ref|>a<|/ref|><|det|>[[1, 2, 3, 4]]<|/det|>", "deepseek-vl2"),
        ('[{"box_2d": [1, 2, 3, 4], "label": "a"}]', "gemini"),
        ('{"objects": [{"x_min": 0.1}]}', "moondream"),
    ],
)
def test_a_dialect_of_its_own_is_told_from_its_signs(text: str, name: str) -> None:
    """
    Nobody else writes so.
    """
    assert name == detect_dialect(text).name


@pytest.mark.parametrize(
    ("text", "readings"),
    [
        ('[{"bbox_2d": [1, 2, 3, 4]}]', ("qwen2.5-vl", "qwen3-vl")),
        ('[{"point_2d": [1, 2]}]', ("qwen2.5-vl", "qwen3-vl")),
        (f"text{BOX}{BOX}", ("florence-2", "florence-2-polygons")),
        ('{"box_2d": 1, "bbox_2d": 2}', ("gemini", "qwen2.5-vl", "qwen3-vl")),
    ],
)
def test_what_two_models_write_alike_is_never_guessed(text: str, readings: tuple[str, ...]) -> None:
    """
    Pixels read as thousandths are wrong places that look right.
    """
    with pytest.raises(AmbiguousResponseError, match="name the dialect") as error:
        detect_dialect(text)

    assert readings == error.value.readings


def test_what_has_no_sign_is_no_dialect() -> None:
    """
    Plain JSON with a box may mean anything.
    """
    with pytest.raises(ContractError, match="has no sign of a dialect"):
        detect_dialect('{"box": [1, 2, 3, 4]}')


def test_a_very_long_answer_is_not_searched() -> None:
    """
    Its length is looked at first.
    """
    with pytest.raises(LimitExceededError, match="max_text_characters"):
        detect_dialect("x" * ((1 << 20) + 1))


def test_dialects_are_found_by_name_and_a_wrong_name_lists_them() -> None:
    """
    One way out of a typing mistake.
    """
    assert DIALECTS["gemini"] is find_dialect("gemini") is find_dialect(DIALECTS["gemini"])
    with pytest.raises(ContractError, match="got 'gemni', expected a Dialect or one of qwen-vl,"):
        find_dialect("gemni")


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"full_scale": 0.0}, "full_scale: got 0.0"),
        ({"syntax": "json"}, "syntax: got 'json', expected one of"),
        ({"name": " "}, "name: got blank text"),
        ({"syntax": Syntax.MARKED_BOXES}, "marks: got None, expected four texts"),
        ({"marks": ("", "", "", "")}, "marks: got"),
    ],
)
def test_a_dialect_that_cannot_be_is_refused(fields: dict[str, Any], message: str) -> None:
    """
    A caller may bring one.
    """
    with pytest.raises(ContractError, match=message):
        Dialect(**{"name": "mine", "syntax": Syntax.JSON, "full_scale": 1.0, **fields})
