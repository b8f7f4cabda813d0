"""Tests of `vlmcore._parquet_pages`."""

from __future__ import annotations

import contextlib
import io
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataset_cases import GOLDEN
from vlmcore._parquet_pages import Page, pages

ROWS = 30_000
TABLE = pa.table(
    {
        "index": list(range(ROWS)),
        "text": ["x" * (i % 50) for i in range(ROWS)],
        "numbers": [[float(i)] * (i % 4) for i in range(ROWS)],
    }
)


def chunks(path: Path) -> Any:
    """Say of each column chunk where it begins and ends, and how many values it has."""
    said = pq.ParquetFile(path).metadata
    for group in range(said.num_row_groups):
        for i in range(said.num_columns):
            chunk = said.row_group(group).column(i)
            offsets = (chunk.dictionary_page_offset, chunk.data_page_offset)
            start = min(each for each in offsets if each)
            yield start, start + chunk.total_compressed_size, chunk.num_values


def varint(number: int) -> bytes:
    """Write a number as Thrift does, with its sign in the last bit."""
    number = number * 2 if number >= 0 else -number * 2 - 1
    found = b""
    while number >= 0x80:
        found += bytes([number & 0x7F | 0x80])
        number >>= 7
    return found + bytes([number])


def header(*, unpacked: int, packed: int = 3, values: int = 5, more: bytes = b"") -> bytes:
    """Write the header of a page of data."""
    own = b"\x15" + varint(values) + b"\x15" + varint(0) + b"\x00"
    sizes = b"\x15" + varint(unpacked) + b"\x15" + varint(packed)
    return b"\x15" + varint(0) + sizes + more + b"\x0c" + varint(5) + own + b"\x00"


def read(data: bytes, values: int = 5) -> list[Page]:
    return list(pages(io.BytesIO(data), start=0, stop=len(data), values=values))


@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("codec", ["none", "snappy", "zstd", "gzip"])
def test_the_headers_of_what_arrow_writes_are_read(
    tmp_path: Path, version: Any, codec: str
) -> None:
    """
    With checksums, statistics and an index, too: as many values in the pages as in the footer.
    """
    path = tmp_path / "table.parquet"
    pq.write_table(
        TABLE,
        path,
        compression=codec,
        data_page_version=version,
        row_group_size=20_000,
        write_page_checksum=True,
        write_page_index=True,
    )
    with path.open("rb") as file:
        for start, stop, values in chunks(path):
            found = list(pages(file, start=start, stop=stop, values=values))
            assert values == sum(page.values for page in found if not page.is_dictionary)


def test_the_headers_of_what_lerobot_writes_are_read() -> None:
    """
    In every table of a data set.
    """
    for path in GOLDEN.rglob("*.parquet"):
        with path.open("rb") as file:
            for start, stop, values in chunks(path):
                found = list(pages(file, start=start, stop=stop, values=values))
                assert values == sum(page.values for page in found if not page.is_dictionary)


def test_a_page_that_lies_about_its_size_is_seen_before_it_is_unpacked() -> None:
    """
    Two gigabytes out of three bytes.
    """
    (page,) = read(header(unpacked=2**31 - 1) + b"abc")
    assert (2**31 - 1, 3, 5) == (page.unpacked_bytes, page.packed_bytes, page.values)


@pytest.mark.parametrize(
    "hidden",
    [
        b"\x06" + varint(2) + varint(7),  # as 64 bits, which Arrow passes over
        b"\x04" + varint(2) + varint(7),  # as 16 bits
    ],
)
def test_a_second_size_of_another_type_hides_nothing(hidden: bytes) -> None:
    """
    Arrow takes the one that is of the right type, and so is the one that is bounded.
    """
    (page,) = read(header(unpacked=2**30, more=hidden) + b"abc")
    assert 2**30 == page.unpacked_bytes


def test_a_field_whose_number_wraps_is_the_one_that_arrow_takes_it_for() -> None:
    """
    65,538 is 2 in sixteen bits.
    """
    more = b"\x05" + varint(65_538) + varint(2**30)
    (page,) = read(header(unpacked=3, more=more) + b"abc")
    assert 2**30 == page.unpacked_bytes


@pytest.mark.parametrize(
    "data",
    [
        b"",
        header(unpacked=3)[:-4],
        header(unpacked=3, packed=4) + b"abc",
        header(unpacked=3, packed=-1) + b"abc",
        header(unpacked=-3) + b"abc",
        header(unpacked=3, values=-1) + b"abc",
        b"\x1c" * 40,
        b"\x19\xf9" + b"\xff" * 40,
    ],
)
def test_a_header_that_cannot_be_is_refused(data: bytes) -> None:
    """
    Cut short, longer than the column, negative, nested without end.
    """
    with pytest.raises(ValueError, match=r"^a page "):
        list(pages(io.BytesIO(data), start=0, stop=len(data) or 1, values=5))


@given(data=st.binary(max_size=300))
def test_any_bytes_give_pages_or_our_error(data: bytes) -> None:
    """
    And an end.
    """
    with contextlib.suppress(ValueError):
        read(data, values=2**40)
