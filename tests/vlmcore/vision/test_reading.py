"""Tests of `vlmcore.vision.reading`: what models answer, in pixels of the image."""

from __future__ import annotations

import contextlib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vlmcore.errors import ContractError, DocumentError, LimitExceededError
from vlmcore.vision.dialects import DIALECTS, Dialect, Syntax
from vlmcore.vision.reading import SpatialAnswer, read_detections, read_spatial_answer
from vlmcore.vision.views import ImageView

VIEW = ImageView(height_px=1000, width_px=2000)


def read(text: str, dialect: str, view: ImageView = VIEW) -> list[tuple[str, Any]]:
    found = read_detections(text, dialect, view, label="asked")
    return [(item.label, item.place.bounds) for item in found]


@pytest.mark.parametrize(
    ("dialect", "text", "found"),
    [
        (
            "qwen3-vl",
            '```json\n[{"bbox_2d": [100, 250, 500, 750], "label": "dog"}]\n```',
            [("dog", (200, 250, 1000, 750))],
        ),
        ("qwen2.5-vl", '{"bbox_2d": [1, 2, 1999, 999]}', [("asked", (1, 2, 1999, 999))]),
        ("qwen2.5-vl", '[{"point_2d": [5, 6], "label": "a"}]', [("a", (5, 6, 5, 6))]),
        (
            "qwen2-vl",
            (
                "<|object_ref_start|>a dog<|object_ref_end|>"
                "<|box_start|>(100,250),(500,750)<|box_end|>"
            ),
            [("a dog", (200, 250, 1000, 750))],
        ),
        (
            "qwen-vl",
            "<ref>dog</ref><box>(0,0),(500,500)</box>",
            [("dog", (0, 0, 1000, 500))],
        ),
        (
            "florence-2",
            (
                "</s><s>car<loc_0><loc_0><loc_499><loc_999>door<loc_1><loc_1><loc_2><loc_2>"
                "<loc_3><loc_3><loc_4><loc_4></s>"
            ),
            [
                ("car", (1, 0.5, 999, 999.5)),
                ("door", (3, 1.5, 5, 2.5)),
                ("door", (7, 3.5, 9, 4.5)),
            ],
        ),
        (
            "florence-2-polygons",
            (
                "STOP<loc_1><loc_1><loc_9><loc_1><loc_9><loc_9><loc_1><loc_9>"
                "cat<poly><loc_0><loc_0><loc_9><loc_0><loc_9><loc_9><sep>"
                "<loc_10><loc_10><loc_19><loc_10><loc_19><loc_19></poly>"
            ),
            [
                ("STOP", (3, 1.5, 19, 9.5)),
                ("cat", (1, 0.5, 19, 9.5)),
                ("cat", (21, 10.5, 39, 19.5)),
            ],
        ),
        (
            "paligemma",
            (
                "<loc0256><loc0512><loc0768><loc1023><seg001><seg002> a cat ; "
                "<loc0000><loc0000><loc0512><loc0512> dog"
            ),
            [("a cat", (1000, 250, 1998.046875, 750)), ("dog", (0, 0, 1000, 500))],
        ),
        (
            "molmo",
            (
                'See <points x1="10.0" y1="20.5" x2="50" y2="0" alt="eyes &amp; ears">eyes</points>'
                ' and <point x="100" y="100">a nose</point>.'
            ),
            [
                ("eyes & ears", (200, 205, 200, 205)),
                ("eyes & ears", (1000, 0, 1000, 0)),
                ("a nose", (2000, 1000, 2000, 1000)),
            ],
        ),
        (
            "moondream",
            '{"objects": [{"x_min": 0.1, "y_min": 0.25, "x_max": 0.5, "y_max": 0.75}]}',
            [("asked", (200, 250, 1000, 750))],
        ),
        ("moondream", '{"points": [{"x": 0.5, "y": 0.1}]}', [("asked", (1000, 100, 1000, 100))]),
        (
            "gemini",
            (
                'Sure:\n```json\n[{"box_2d": [250, 100, 750, 500], "label": "dog"},\n'
                ' {"point": [500, 250], "label": "nose"}]\n```'
            ),
            [("dog", (200, 250, 1000, 750)), ("nose", (500, 500, 500, 500))],
        ),
        (
            "kosmos-2",
            (
                "<grounding> An image of<phrase> a dog</phrase><object>"
                "<patch_index_0033><patch_index_0528></delimiter_of_multi_objects/>"
                "<patch_index_0032><patch_index_0033></object>."
            ),
            [("a dog", (93.75, 46.875, 1031.25, 515.625)), ("a dog", (0, 31.25, 125, 62.5))],
        ),
        (
            "internvl",
            "<ref>dogs</ref><box>[[100, 250, 500, 750], [0, 0, 1000, 1000]]</box>",
            [("dogs", (200, 250, 1000, 750)), ("dogs", (0, 0, 2000, 1000))],
        ),
        (
            "deepseek-vl2",
            "<|ref|>dog<|/ref|><|det|>[[0, 0, 999, 999]]<|/det|>",
            [("dog", (0, 0, 2000, 1000))],
        ),
        (
            "normalised",
            '{"label": "dog", "polygon": [[0, 0], [1, 0], [1, 1]]}',
            [("dog", (0, 0, 2000, 1000))],
        ),
        ("normalised", "[]", []),
        ("pixels", '[{"box": [1.5, 2, 3, 4], "name": "b"}]', [("b", (1.5, 2, 3, 4))]),
    ],
)
def test_each_dialect_is_read_as_its_model_means_it(
    dialect: str, text: str, found: list[tuple[str, Any]]
) -> None:
    """
    Labels and pixels of the image, in the order of the answer.
    """
    assert [(label, pytest.approx(bounds)) for label, bounds in found] == read(text, dialect)


SIDE = st.integers(0, 998)
BOX = st.tuples(SIDE, SIDE, st.integers(1, 999), st.integers(1, 999)).map(
    lambda b: (b[0], b[1], min(999, b[0] + b[2]), min(999, b[1] + b[3]))
)


@given(boxes=st.lists(BOX, max_size=5), side=st.integers(10, 3000), height=st.integers(1, 3000))
def test_boxes_come_through_every_dialect_of_thousandths(
    boxes: list[tuple[int, ...]], side: int, height: int
) -> None:
    """
    Written as Qwen3-VL, Gemini and InternVL write them, they are the same boxes.
    """
    view = ImageView(height_px=height, width_px=side)
    expected = [
        pytest.approx((x1 * side / 1000, y1 * height / 1000, x2 * side / 1000, y2 * height / 1000))
        for x1, y1, x2, y2 in boxes
    ]
    qwen = json.dumps([{"bbox_2d": box} for box in boxes])
    gemini = json.dumps([{"box_2d": [y1, x1, y2, x2]} for x1, y1, x2, y2 in boxes])
    tags = "".join(f"<box>[{list(box)}]</box>" for box in boxes) or "<box>"

    for text, dialect in ((qwen, "qwen3-vl"), (gemini, "gemini"), (tags, "internvl")):
        found = read_spatial_answer(text, dialect, view).detections
        assert expected == [item.place.bounds for item in found]


@given(text=st.text(), dialect=st.sampled_from(sorted(DIALECTS)))
def test_any_text_gives_an_answer_or_faults(text: str, dialect: str) -> None:
    """
    What is read lies in the image, and an answer with nothing in it says so.
    """
    answer = read_spatial_answer(text, dialect, VIEW)

    assert isinstance(answer, SpatialAnswer)
    assert len(answer.detections) or answer.faults or "[" in text or "{" in text


PIECES = st.sampled_from(
    [
        '{"box_2d": [1, 2, 3, 4]}',
        "[",
        "]",
        "{",
        "}",
        ",",
        '"label": "a"',
        "<loc_1>",
        "<loc0001>",
        "<box>",
        "</box>",
        "[[1,2,3,4]]",
        "<ref>",
        "<point ",
        'x="1"',
        'y="2"',
        ">",
        "</point>",
        "<object>",
        "<patch_index_0001>",
        "</object>",
        "NaN",
        "1e999",
        "-5",
        "<sep>",
        "dog",
        "```\n",
    ]
)


@given(text=st.lists(PIECES, max_size=12).map("".join), dialect=st.sampled_from(sorted(DIALECTS)))
def test_any_mixture_of_what_dialects_are_made_of_is_borne(text: str, dialect: str) -> None:
    """
    Every place that comes out has been checked by its contract.
    """
    for item in read_spatial_answer(text, dialect, VIEW).detections:
        left, top, right, bottom = item.place.bounds
        assert 0 <= left <= right <= 2000
        assert 0 <= top <= bottom <= 1000


@pytest.mark.parametrize(
    ("dialect", "text", "kept", "fault"),
    [
        ("gemini", "I see no dog.", 0, ("$", "has no JSON")),
        ("gemini", '[{"box_2d": [1,2,30,40]}, {"box_2d": [5', 1, ("$", "is cut or broken")),
        ("gemini", '[{"box_2d": [1,2,30,40]}, {"box_2d": [5, NaN]}]', 1, ("$", "got NaN")),
        ("gemini", '[{"box_2d": [1,2,30]}]', 0, ("$[0].box_2d", "got 3 numbers, expected 4")),
        ("gemini", '[{"box_2d": "1 2 3 4"}]', 0, ("$[0].box_2d", "got str, expected a list")),
        ("gemini", '[{"box_2d": [1,2,3,true]}]', 0, ("$[0].box_2d", "got True among")),
        ("gemini", '[{"box_2d": [30,2,10,40]}]', 0, ("$[0].box_2d", "bottom: got 10, expected")),
        ("gemini", '[{"box_2d": [1,2,3,2]}]', 0, ("$[0].box_2d", "right: got 4, expected more")),
        ("gemini", '[{"box_2d": [1,2,3,1920]}]', 0, ("$[0].box_2d", "number: got 1920, expected")),
        ("gemini", '[{"label": "dog"}]', 0, ("$[0]", "has no place")),
        ("gemini", "[1, 2]", 0, ("$[0]", "got int, expected an object")),
        ("gemini", '[{"box_2d": [1,2,3,4], "label": 5}]', 0, ("$[0].box_2d", "got the label 5")),
        ("gemini", '[{"box_2d": [1,2,3,4], "score": 5}]', 0, ("$[0].box_2d", "score: got 5")),
        ("gemini", '[{"box_2d": [1,2,3,4], "score": "5"}]', 0, ("$[0].box_2d", "got the score")),
        ("florence-2", "dog<loc_1><loc_2><loc_3>", 0, ("$[0]", "is cut: got 3 numbers")),
        ("florence-2", "dog<loc_1><loc_2><loc_3><loc_4>ca", 1, ("$", "ends with 'ca'")),
        ("florence-2", "dog<loc_1><loc_2><loc_1><loc_4>", 0, ("$[0]", "right: got 3")),
        ("florence-2", "no dog", 0, ("$", "ends with 'no dog'")),
        ("florence-2", "", 0, ("$", "has no place in it")),
        ("florence-2-polygons", "a<loc_1><loc_2><loc_3>", 0, ("$[0]", "got 3 numbers")),
        ("paligemma", "a cat", 0, ("$", "has no place in it, as paligemma writes them")),
        ("molmo", 'a <point x="5" y="6">b</point> <point x="7', 1, ("$", "is cut: a tag")),
        ("molmo", '<points x1="5" y1="6" x2="7">b</points>', 1, ("$[0].x2", "got '7' and ''")),
        ("molmo", '<point x="5" y="1e99">b</point>', 0, ("$[0].x", "got '5' and '1e99'")),
        ("molmo", '<point alt="b">b</point>', 0, ("$[0]", "without x and y")),
        ("kosmos-2", "<object><patch_index_0001>", 0, ("$[0]", "is cut or broken")),
        ("internvl", "<box>[[1, 2, 3, 4]]</box><box>[[1, 2", 1, ("$[1]", "is cut: no </box>")),
        ("internvl", "<box>[[1, 2, 3]]</box>", 0, ("$[0]", "got 3 numbers of a box")),
        ("internvl", "<box>[[a, b, 3, 4]]</box>", 0, ("$[0]", "got '[[a, b, 3, 4]]'")),
    ],
)
def test_what_is_whole_is_kept_and_what_is_not_is_listed(
    dialect: str, text: str, kept: int, fault: tuple[str, str]
) -> None:
    """
    A fault has its place; read strictly, it is an error.
    """
    answer = read_spatial_answer(text, dialect, VIEW)
    path, problem = answer.faults[-1] if len(answer.faults) == 1 else answer.faults[0]

    assert (kept, fault[0]) == (len(answer.detections), path)
    assert fault[1] in problem
    with pytest.raises(DocumentError, match="answer: "):
        read_detections(text, dialect, VIEW)


def test_a_little_beyond_the_image_is_clipped() -> None:
    """
    Models write 1000 of 999, and 1010 now and then.
    """
    assert [("asked", (0, 0, 2000, 1000))] == read('{"bbox_2d": [-5, -5, 1010, 1010]}', "qwen3-vl")


def test_pixels_of_what_was_shown_lead_back_to_the_image() -> None:
    """
    Qwen2.5-VL answers in pixels of the picture that its processor made.
    """
    view = ImageView(height_px=1000, width_px=2000, seen_height_px=504, seen_width_px=1008)

    assert [("asked", pytest.approx((1000, 500, 2000, 1000)))] == read(
        '{"bbox_2d": [504, 252, 1008, 504]}', "qwen2.5-vl", view
    )


def test_a_letterbox_is_taken_off() -> None:
    """
    Thousandths are of the square with its padding, not of the image.
    """
    view = ImageView.letterboxed(height_px=1000, width_px=2000, side_px=500)

    assert [("asked", pytest.approx((0, 0, 1000, 500)))] == read(
        '{"bbox_2d": [0, 250, 500, 500]}', "qwen3-vl", view
    )
    with pytest.raises(DocumentError, match="bottom: got 0, expected more than 0"):
        read('{"bbox_2d": [0, 0, 500, 200]}', "qwen3-vl", view)
    with pytest.raises(DocumentError, match="point: got 1000, -500, which is not in the image"):
        read('{"point_2d": [500, 0]}', "qwen3-vl", view)


def test_a_dialect_of_the_callers_own_is_read() -> None:
    """
    A model that was told what to write.
    """
    mine = Dialect(name="mine", syntax=Syntax.JSON, full_scale=100.0, box_key="where")
    found = read_detections('{"label": "a", "where": [0, 0, 50, 50]}', mine, VIEW)

    assert (0, 0, 1000, 500) == found[0].place.bounds


def test_more_places_than_are_read_are_refused() -> None:
    """
    And more text.
    """
    with pytest.raises(LimitExceededError, match="max_detections: got 4097"):
        read_spatial_answer("<loc_1><loc_1><loc_2><loc_2>" * 4097, "florence-2", VIEW)
    with pytest.raises(LimitExceededError, match="max_detections"):
        read_spatial_answer("{}" * 4097, "gemini", VIEW)
    with pytest.raises(LimitExceededError, match="max_text_characters"):
        read_spatial_answer(" " * ((1 << 20) + 1), "gemini", VIEW)


def test_no_more_than_a_hundred_faults_are_listed() -> None:
    """
    The rest is no news.
    """
    assert 100 == len(read_spatial_answer("[" + "1," * 500 + "1]", "gemini", VIEW).faults)


@pytest.mark.parametrize(
    "piece",
    [
        " ",
        "[",
        "[1,",
        '{"a":',
        '"',
        "<object>",
        "<phrase>",
        "<box>",
        "<loc_1>",
        "<point ",
        'a="',
        '<point x="1" ',
        "<loc0001>",
        '[{"box_2d":[1,2,3,4]},',
        "```\n",
        "<ref>",
        "\\",
    ],
)
def test_a_piece_over_and_over_is_read_to_its_end(piece: str) -> None:
    """
    Time grows with the length; if it grew with its square, this would not come to an end.
    """
    text = piece * ((1 << 18) // len(piece))

    for dialect in sorted(DIALECTS):
        with contextlib.suppress(ContractError):
            read_spatial_answer(text, dialect, VIEW)


@pytest.mark.parametrize(
    ("text", "view", "message"),
    [
        (None, VIEW, "text: got NoneType, expected what a model wrote"),
        ("[]", (1000, 2000), "view: got tuple, expected an ImageView"),
    ],
)
def test_arguments_of_other_kinds_are_told(text: Any, view: Any, message: str) -> None:
    """
    A size alone does not say how the image was shown.
    """
    with pytest.raises(ContractError, match=message):
        read_spatial_answer(text, "gemini", view)
