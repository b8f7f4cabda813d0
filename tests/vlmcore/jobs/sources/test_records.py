"""Tests of `vlmcore.jobs.sources.records`."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vlmcore import embedded
from vlmcore.errors import ContractError, JobSourceError, MediaError
from vlmcore.jobs.items import Item
from vlmcore.jobs.sources.records import JsonLinesImages
from vlmcore.limits import JobSourceLimits
from vlmcore.media.encoding import encode_jpeg
from vlmcore.media.images import load_image

PNG = (Path(embedded.__file__).parent / "samples/scene-1.png").read_bytes()
TEXT = base64.b64encode(PNG).decode()


def images(folder: Path, *records: Any, **options: Any) -> JsonLinesImages:
    lines = [record if isinstance(record, str) else json.dumps(record) for record in records]
    (folder / "records.jsonl").write_text("\n".join(lines), encoding="utf-8")
    return JsonLinesImages(folder / "records.jsonl", **options)


def read(item: Item) -> bytes:
    return item.content.read().data


def problem(folder: Path, *records: Any, **options: Any) -> str:
    with pytest.raises(JobSourceError) as caught:
        list(images(folder, *records, **options))
    assert str(folder / "records.jsonl") == caught.value.where
    return caught.value.problem


@pytest.mark.parametrize("field", ["image", "path", "file_name", "image_path"])
def test_the_field_of_the_image_is_found_in_the_first_record(tmp_path: Path, field: str) -> None:
    """
    As LLaVA and the image folders of `datasets` call it, among others.
    """
    (tmp_path / "a.png").write_bytes(PNG)
    (item,) = images(tmp_path, {"text": "A cat.", field: "./a.png"})
    assert ("a.png", tmp_path / "a.png", PNG) == (item.key, item.path, read(item))


@pytest.mark.parametrize(
    "image",
    [
        TEXT,
        f"data:image/png;base64,{TEXT}",
        base64.urlsafe_b64encode(PNG).decode(),
        "\n".join(TEXT[i : i + 76] for i in range(0, len(TEXT), 76)),
        TEXT.rstrip("="),
    ],
)
def test_an_image_may_be_in_the_record_itself(tmp_path: Path, image: str) -> None:
    """
    As a data URL or as base64; it is called by its line.
    """
    first, second = images(tmp_path, {"image": "a.png"}, {"image": image})
    assert ("a.png", "2") == (first.key, second.key)
    assert (None, PNG) == (second.path, read(second))
    assert second.content.stamp() is None


def test_base64_is_told_from_a_path_by_the_image_that_it_begins_with(tmp_path: Path) -> None:
    """
    Names may consist of the same letters.
    """
    jpeg = base64.b64encode(encode_jpeg(load_image(PNG))).decode()
    name = "photos/abcdefghijklmnopqrstuvwxyz0123456789"
    first, second = images(tmp_path, {"image": jpeg}, {"image": name})
    assert ("1", name) == (first.key, second.key)
    assert jpeg.startswith("/9j/")


def test_a_record_is_called_by_its_id(tmp_path: Path) -> None:
    """
    Text or a whole number, also where two have the same picture.
    """
    records = [{"n": 7, "image": "a.png"}, {"n": "x\n", "image": "a.png"}, {"n": 0, "image": TEXT}]
    found = list(images(tmp_path, *records, id="n"))
    assert ["7", "x\\x0a", "0"] == [item.key for item in found]
    assert [tmp_path / "a.png", tmp_path / "a.png", None] == [item.path for item in found]


def test_without_ids_two_records_of_a_path_are_one_image(tmp_path: Path) -> None:
    """
    As many questions are about one picture in the data sets of LLaVA.
    """
    records = [{"image": "a.png"}, {"image": "b.png"}, {"image": "./a.png"}]
    assert ["a.png", "b.png"] == [item.key for item in images(tmp_path, *records)]


def test_blank_lines_and_a_bom_are_passed_over(tmp_path: Path) -> None:
    """
    Lines are counted with them.
    """
    found = list(images(tmp_path, '\ufeff{"image": "a.png"}', "", "  ", {"image": TEXT}))
    assert ["a.png", "4"] == [item.key for item in found]


@pytest.mark.parametrize(
    ("record", "said"),
    [
        ({"image": None}, "has None in the field 'image', expected the path of an image"),
        ({}, "has no field 'image', expected the path of an image"),
        ({"image": 7}, "has 7 in the field 'image'"),
        ({"image": {"bytes": "x"}}, "has {'bytes': 'x'} in the field 'image'"),
        ({"image": " "}, "has a blank path"),
        ({"image": "a\0b"}, "has no path that a file could have"),
        ({"image": "x" * 40_000}, "has no path that a file could have"),
        ({"image": "https://example.com/a.png"}, "is a https URL and is not fetched"),
        ({"image": "data:image/png;base64,@"}, "is not base64"),
        ({"image": TEXT[:-9] + "@" + TEXT[-8:]}, "is not base64"),
    ],
)
def test_a_record_without_an_image_fails_alone(
    tmp_path: Path, record: dict[str, Any], said: str
) -> None:
    """
    It has a row that says why; the others are captioned.
    """
    _, item, last = images(tmp_path, {"image": "a.png"}, record, {"image": "b.png"})
    with pytest.raises(MediaError) as caught:
        item.content.read()
    assert said in str(caught.value)
    assert ("2", "b.png") == (item.key, last.key)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("{", "line 2: is no record: JSON: got "),
        ("[]", "line 2: got [], expected an object"),
        ('"a.png"', "line 2: got 'a.png', expected an object"),
        ('{"image": "a", "image": "b"}', "line 2: is no record: JSON: got the key 'image' twice"),
        ('{"image": NaN}', "line 2: is no record: JSON: got NaN"),
        ("[" * 100_000, "line 2: is no record: JSON: got values nested more than 32 deep"),
        ('{"a": ' * 40 + "1" + "}" * 40, "line 2: is no record: JSON: got values nested more"),
        (f'{{"a": [{"1," * 2_000_000}1]}}', "line 2: is no record: max_nodes: got 20000"),
    ],
)
def test_a_line_that_is_no_record_is_named(tmp_path: Path, line: str, said: str) -> None:
    """
    A file that is broken is not half captioned without a word.
    """
    assert problem(tmp_path, {"image": "a.png"}, line).startswith(said)


def test_a_line_that_is_no_utf8_is_named(tmp_path: Path) -> None:
    """
    Others would be read wrongly, too.
    """
    (tmp_path / "records.jsonl").write_bytes(b'{"image": "\xe4.png"}\n')
    with pytest.raises(
        JobSourceError, match="line 1: is no record: JSON: got text that is not UTF"
    ):
        list(JsonLinesImages(tmp_path / "records.jsonl"))


def test_a_line_without_an_end_is_refused_before_it_is_held(tmp_path: Path) -> None:
    """
    At the size that a record may have.
    """
    limits = JobSourceLimits(max_record_bytes=1000)
    said = problem(tmp_path, {"image": "x" * 300_000}, limits=limits)
    assert "line 1 has more than 1000 bytes, expected fewer" == said


@pytest.mark.parametrize(
    ("record", "said"),
    [
        (
            {"image": "a", "path": "b"},
            "line 1 has 'image' and 'path', expected to be told which of them is the image",
        ),
        ({"x": "a"}, "line 1 has the fields 'x', expected one of 'image', 'path', 'file_name'"),
        ({"image": None}, "line 1 has the fields 'image', expected one of 'image', 'path'"),
        ({}, "line 1 has the fields none, expected one of 'image', 'path', 'file_name'"),
    ],
)
def test_which_field_is_the_image_is_never_guessed(
    tmp_path: Path, record: dict[str, Any], said: str
) -> None:
    """
    Captions of the wrong pictures cost as much as those of the right ones.
    """
    assert problem(tmp_path, record).startswith(said)
    assert 1 == len(list(images(tmp_path, record, image="path")))


@pytest.mark.parametrize(
    ("record", "said"),
    [
        ({"image": "b.png"}, "line 2: got nothing in the field 'id', expected an id"),
        ({"image": "b.png", "id": None}, "line 2: got None in the field 'id', expected an id"),
        ({"image": "b.png", "id": True}, "line 2: got True in the field 'id', expected an id"),
        ({"image": "b.png", "id": 1.5}, "line 2: got 1.5 in the field 'id', expected an id"),
        ({"image": "b.png", "id": " "}, "line 2: got ' ' in the field 'id', expected an id"),
        ({"image": "b.png", "id": "1"}, "line 2: has the id '1' of a line before it"),
    ],
)
def test_an_id_that_is_none_or_there_twice_is_refused(
    tmp_path: Path, record: dict[str, Any], said: str
) -> None:
    """
    Two images of one name would have one caption.
    """
    assert problem(tmp_path, {"image": "a.png", "id": 1}, record, id="id").startswith(said)


@pytest.mark.parametrize("options", [{"image": ""}, {"id": 7}, {"image": ["image"]}])
def test_names_of_fields_are_texts(tmp_path: Path, options: dict[str, Any]) -> None:
    """
    Anything else is refused by the name of its argument.
    """
    with pytest.raises(ContractError) as caught:
        images(tmp_path, {"image": "a.png"}, **options)
    assert [caught.value.field] == list(options)


@pytest.mark.parametrize(
    "name", ["half \ud800.png", "a byte \udce9.png", "caf\u00e9.jpg", "\u202egnp.a"]
)
def test_a_path_of_odd_characters_has_a_key_that_can_be_written(tmp_path: Path, name: str) -> None:
    """
    JSON can write half a character, which no table can.
    """
    (item,) = images(tmp_path, json.dumps({"image": name}))
    item.key.encode()
    with pytest.raises(MediaError):
        item.content.read()


@given(
    value=st.recursive(
        st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=9),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
        max_leaves=5,
    )
)
def test_any_record_gives_an_image_or_our_error(
    tmp_path_factory: pytest.TempPathFactory, value: Any
) -> None:
    """
    And reading it gives bytes or `MediaError`.
    """
    folder = tmp_path_factory.getbasetemp()
    for record in (value, {"image": value, "id": 1}, {"image": "a", "id": value}):
        try:
            (item,) = images(folder, json.dumps(record), image="image", id="id")
        except JobSourceError:
            continue
        with pytest.raises(MediaError):
            item.content.read()
