"""Server-sent events."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vlmcore._net.events import EventReader
from vlmcore.errors import LimitExceededError


def events(*parts: bytes, finish: bool = False) -> list[bytes]:
    reader = EventReader(max_bytes=1000)
    found = [event for part in parts for event in reader.feed(part)]
    return [*found, *reader.finish()] if finish else found


@pytest.mark.parametrize(
    ("stream", "expected"),
    [
        (b"data: a\n\n", [b"a"]),
        (b"data:a\n\ndata:  b\n\n", [b"a", b" b"]),
        (b"data: a\r\n\r\ndata: b\r\r", [b"a", b"b"]),
        (b": ping\n\ndata: a\n\n", [b"a"]),
        (b"data: a\ndata: b\n\n", [b"a\nb"]),
        (b"\xef\xbb\xbfdata: a\n\n", [b"a"]),
        (b"event: x\nid: 1\nretry: 9\ndata: a\n\n", [b"a"]),
        (b"data\n\n", [b""]),
        (b"data: a", []),
        ("data: a\u2028b\u0085c\n\n".encode(), ["a\u2028b\u0085c".encode()]),
    ],
)
@pytest.mark.parametrize("size", [1, 2, 1000])
def test_events_are_read_as_the_standard_has_them(
    stream: bytes, expected: list[bytes], size: int
) -> None:
    """
    Wherever the bytes are cut, also between the two that end a line.
    """
    assert expected == events(*(stream[i : i + size] for i in range(0, len(stream), size)))


def test_the_last_event_may_be_taken_unfinished() -> None:
    """
    Where the end of the answer is known to be its end.
    """
    assert [b"a"] == events(b"data: a", finish=True)


@pytest.mark.parametrize("stream", [b"data: " + b"x" * 2000, b"data: xxxxxxxx\n" * 200])
def test_an_event_without_an_end_is_not_held(stream: bytes) -> None:
    """
    In one line or in many.
    """
    with pytest.raises(LimitExceededError, match="max_event_bytes"):
        events(*(stream[i : i + 10] for i in range(0, len(stream), 10)))


@given(stream=st.binary(max_size=200), size=st.integers(1, 20))
def test_how_bytes_are_cut_makes_no_difference(stream: bytes, size: int) -> None:
    """
    For any bytes.
    """
    assert events(stream) == events(*(stream[i : i + size] for i in range(0, len(stream), size)))
