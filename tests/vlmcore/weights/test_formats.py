"""Tests of `vlmcore.weights.flashpack_format` and `vlmcore.weights.safetensors_format`."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hostile.make_weights import HEADER, V3, V4, headed, v3, v4
from vlmcore.errors import ContractError, VlmcoreError, WeightsError, WeightsLimitError
from vlmcore.limits import WeightLimits
from vlmcore.weights.flashpack_format import footer_span, parse_footer
from vlmcore.weights.index import WeightFile
from vlmcore.weights.opening import open_files
from vlmcore.weights.safetensors_format import header_span, parse_header, parse_shards

LIMITS = WeightLimits()
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)

LIAR = 4  # the tensors before it are true
LIES: dict[str, list[Any]] = {
    "name": ["t0", "a/b", "a\nb", "", "\u00e9", "__metadata__", 7],
    "dtype": ["F3", "BF16", "I8", None, ["F32"]],
    "shape": [[3], [2.0], ["2"], [True], [-1], [10**17, 0], [10**30, 0], [10**18] * 5, [1] * 65, 2],
    "offset": [-1, 1, 10**17, 10**30, 0.0, "0", True, None],
    "length": [-1, 0, 1, 10**30, 2.0, None],
    "macroblock": [1, -1, 10**17, "0", None],
    "data_offsets": [[0], [0, 0, 0], [8, 0], [-8, 0], [1, 9], [0.0, 8], [10**30, 10**30], None],
}


def open_bytes(folder: Path, data: bytes, name: str) -> str:
    """Open a file of these bytes, and say how that ended."""
    (folder / name).write_bytes(data)
    try:
        with open_files(folder / name) as files:
            return repr(files.index)
    except WeightsError as error:
        return type(error).__name__


@pytest.mark.parametrize("build", [v3, v4])
def test_a_pack_that_is_cut_anywhere_is_refused(build: Any, tmp_path: Path) -> None:
    """
    After every byte, and before every byte.
    """
    whole = build()
    assert open_bytes(tmp_path, whole, "m.flashpack").startswith("<WeightIndex")
    for at in range(len(whole)):
        assert "CorruptWeightsError" == open_bytes(tmp_path, whole[:at], "m.flashpack"), at
    for at in range(1, len(whole)):
        assert "CorruptWeightsError" == open_bytes(tmp_path, whole[at:], "m.flashpack"), at


def test_safetensors_that_are_cut_anywhere_are_refused(tmp_path: Path) -> None:
    """
    After every byte.
    """
    whole = headed(json.dumps(HEADER).encode(), bytes(36))
    for at in range(len(whole)):
        assert "CorruptWeightsError" == open_bytes(tmp_path, whole[:at], "m.safetensors"), at


@given(data=st.data())
def test_a_pack_with_any_byte_changed_is_read_or_refused(
    data: Any, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """
    By an error of ours, whatever it was.
    """
    whole = bytearray(data.draw(st.sampled_from([v3(), v4()])))
    for _ in range(data.draw(st.integers(1, 4))):
        whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    open_bytes(tmp_path_factory.mktemp("any"), bytes(whole), "m.flashpack")


@given(
    change=st.dictionaries(st.sampled_from([*V4, *V3]), JSON, max_size=3),
    entry=st.dictionaries(st.sampled_from([*V4["index"][0]]), JSON, max_size=3),
)
def test_a_footer_of_any_values_is_read_or_refused(
    change: dict[str, Any], entry: dict[str, Any]
) -> None:
    """
    By an error of ours.
    """
    footer = json.loads(json.dumps(V4)) | change
    if isinstance(footer["index"], list) and footer["index"]:
        footer["index"][0] = V4["index"][0] | entry
    text = json.dumps(footer).encode()
    file = WeightFile(name="m", size_bytes=268 + len(text) + 16)
    with contextlib.suppress(VlmcoreError):
        parse_footer(text, file=file, limits=LIMITS)


@given(
    change=st.dictionaries(st.sampled_from([*HEADER, "c"]), JSON, max_size=2),
    entry=st.dictionaries(st.sampled_from([*HEADER["a"]]), JSON, max_size=3),
)
def test_a_header_of_any_values_is_read_or_refused(
    change: dict[str, Any], entry: dict[str, Any]
) -> None:
    """
    By an error of ours.
    """
    text = json.dumps(HEADER | {"a": HEADER["a"] | entry} | change).encode()
    with contextlib.suppress(VlmcoreError):
        parse_header(text, file=0, size_bytes=8 + len(text) + 36, limits=LIMITS)


@given(st.binary(max_size=64) | JSON.map(lambda value: json.dumps(value).encode()))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    """
    As a footer, a header, an index of files, or where those are.
    """
    size = 1000
    for parse in (
        lambda: footer_span(data, size_bytes=size, limits=LIMITS),
        lambda: header_span(data, size_bytes=size, limits=LIMITS),
        lambda: parse_footer(data, file=WeightFile(name="m", size_bytes=size), limits=LIMITS),
        lambda: parse_header(data, file=0, size_bytes=size, limits=LIMITS),
        lambda: parse_shards(data, limits=LIMITS),
    ):
        with contextlib.suppress(ContractError):
            parse()


def test_json_with_spaces_in_any_order_of_keys_is_read(tmp_path: Path) -> None:
    """
    As other writers write it.
    """
    footer = {key: V4[key] for key in reversed(V4)}
    spaced = json.dumps(footer, indent=3).encode()
    pack = bytes(268) + b" \n" + spaced + b"\t "
    pack += (len(spaced) + 4).to_bytes(8, "little") + b"FLASHPK\0"
    assert "3 tensors" in open_bytes(tmp_path, pack, "m.flashpack")
    header = json.dumps(HEADER, indent=2).encode() + b"   "
    assert "2 tensors" in open_bytes(tmp_path, headed(header, bytes(36)), "m.safetensors")


@pytest.mark.parametrize("kind", ["pack", "safetensors"])
@pytest.mark.parametrize(("key", "lie"), [(key, lie) for key in LIES for lie in LIES[key]])
def test_a_lie_after_many_true_words_is_refused_by_the_same_words(
    key: str, lie: Any, kind: str
) -> None:
    """
    What was said word by word of another tensor is read faster. The result is that of JSON with
    spaces, which is looked at closely, whatever is wrong with a tensor.
    """
    document, size = (pack_of if kind == "pack" else header_of)(key, lie)
    spaced = json.dumps(document, separators=(", ", ": ")).encode()
    compact = json.dumps(document, separators=(",", ":")).encode().ljust(len(spaced))
    assert read_as(kind, spaced, size) == read_as(kind, compact, size)


@pytest.mark.parametrize(
    ("kind", "word", "other"),
    [
        ("pack", '"offset":128', '"offset":0128'),
        ("pack", '"shape":[2],"offset":128', '"shape":[02],"offset":128'),
        ("pack", '"shape":[2],"offset":128', '"shape":[2,],"offset":128'),
        ("pack", '{"name":"t4"', '{{"name":"t4"'),
        ("pack", '"t4"', '"t4",'),
        ("pack", ',{"name":"t4"', ',,{"name":"t4"'),
        ("pack", ',{"name":"t4"', '{"name":"t4"'),
        ("safetensors", "[32,40]", "[032,40]"),
        ("safetensors", "[32,40]", "[32,40,]"),
        ("safetensors", '"t4":', '"t4"'),
        ("safetensors", ',"t4":', ',,"t4":'),
        ("safetensors", ',"t4":', '"t4":'),
    ],
)
def test_what_is_no_json_after_many_true_words_is_refused(kind: str, word: str, other: str) -> None:
    """
    The quick way reads nothing that a reader of JSON would not.
    """
    document, size = (pack_of if kind == "pack" else header_of)("", None)
    text = json.dumps(document, separators=(",", ":"))
    assert word in text
    assert isinstance(read_as(kind, text.replace(word, other, 1).encode(), size), str)
    assert 6 == len(read_as(kind, text.encode(), size))


@pytest.mark.parametrize("spaces", range(6))
@pytest.mark.parametrize(
    "much", ["[" + "1, " * 2000, '["' + "a" * 4000, '[{"a": 1}' + ', "a"' * 2000]
)
def test_a_member_that_is_too_long_is_said_to_be(much: str, spaces: int) -> None:
    """
    Wherever in its words the part that is read of it ends.
    """
    said = read_as("pack", f'{{"x":{" " * spaces}{much}]}}'.encode(), 0)
    assert f"ContractError JSON: got a member of more than 3072 characters at {5 + spaces}" == said


def read_as(kind: str, text: bytes, size: int) -> Any:
    """Read a footer or a header: the tensors, or what is wrong."""
    try:
        if kind == "pack":
            file = WeightFile(name="m", size_bytes=size + len(text) + 16)
            return parse_footer(text, file=file, limits=LIMITS).entries
        return parse_header(text, file=0, size_bytes=8 + len(text) + size, limits=LIMITS).entries
    except VlmcoreError as error:
        return f"{type(error).__name__} {error}"


def pack_of(key: str, lie: Any) -> tuple[dict[str, Any], int]:
    """Say of a pack what it is, but for one lie; and the size of its payload."""
    index: list[dict[str, Any]] = [
        {"name": f"t{i}", "shape": [2], "offset": i * 32, "length": 2, "macroblock": 0}
        for i in range(6)
    ]
    index[LIAR] |= {key: lie} if key in index[LIAR] else {}
    block = {"dtype": "float32", "offset_bytes": 0, "length_bytes": 648, "length_elems": 162}
    head = {"format": "flashpack_v4", "align_bytes": 128, "total_payload_bytes": 648}
    return head | {"total_elems": 162, "macroblocks": [block], "index": index}, 648


def header_of(key: str, lie: Any) -> tuple[dict[str, Any], int]:
    """Say of safetensors what they are, but for one lie; and the size of their payload."""
    tensors: list[dict[str, Any]] = [
        {"name": f"t{i}", "dtype": "F32", "shape": [2], "data_offsets": [i * 8, i * 8 + 8]}
        for i in range(6)
    ]
    tensors[LIAR] |= {key: lie} if key in tensors[LIAR] else {}
    return {str(each.pop("name")): each for each in tensors}, 48


def test_an_empty_file_of_safetensors_is_read(tmp_path: Path) -> None:
    """
    It has no tensors, and upstream writes it.
    """
    assert "0 tensors" in open_bytes(tmp_path, headed(b"{}", b""), "m.safetensors")


def test_a_key_that_the_format_does_not_have_yet_is_passed_over(tmp_path: Path) -> None:
    """
    As long as what is known of the rest holds.
    """
    pack = v3(lambda footer: footer.update(comment="none"))
    assert "2 tensors" in open_bytes(tmp_path, pack, "m.flashpack")


@pytest.mark.parametrize(
    ("limits", "name"),
    [
        (WeightLimits(max_tensors=1), "max_tensors"),
        (WeightLimits(max_header_bytes=20), "max_header_bytes"),
        (WeightLimits(max_rank=1), "max_rank"),
        (WeightLimits(max_blocks=1), "max_blocks"),
    ],
)
def test_a_pack_that_is_over_a_limit_of_the_caller_is_refused(
    limits: WeightLimits, name: str, tmp_path: Path
) -> None:
    """
    By the name of the limit.
    """
    (tmp_path / "m.flashpack").write_bytes(v4())
    with pytest.raises(WeightsLimitError) as caught:
        open_files(tmp_path / "m.flashpack", limits=limits)
    assert name == caught.value.limit
