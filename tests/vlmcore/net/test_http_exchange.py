"""Requests and answers of HTTP on one connection, without its socket."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vlmcore._net.http_exchange import HttpExchange
from vlmcore._net.http_parts import BrokenHttpError, Head, HungUpError, NotHttpError

ANSWER = b"HTTP/1.1 200 OK\r\nA: b\r\nContent-Length: 2\r\n\r\nhi"
CHUNKED = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"


def asked(**kwargs: int) -> HttpExchange:
    exchange = HttpExchange(**{"max_head_bytes": 1000, **kwargs})
    ask(exchange)
    return exchange


def ask(exchange: HttpExchange, body: bytes = b"") -> bytes:
    parts = exchange.request(
        host="localhost:1", method="POST", target="/x", headers=[("c", "d")], body=body
    )
    return b"".join(parts)


def heard(exchange: HttpExchange, *data: bytes) -> list[Head | bytes]:
    return [part for each in data for part in exchange.feed(each)]


def test_a_request_is_written_with_its_length_and_asks_for_no_compression() -> None:
    """
    The body is a part of its own, so that it is not copied.
    """
    parts = HttpExchange(max_head_bytes=1000).request(
        host="localhost:1", method="POST", target="/x", headers=[("c", "d")], body=b"body"
    )
    assert b"body" == parts[1]
    assert (
        b"POST /x HTTP/1.1\r\nhost: localhost:1\r\naccept-encoding: identity\r\nc: d\r\n"
        b"content-length: 4\r\n\r\n"
    ) == parts[0]


@pytest.mark.parametrize("size", [1, 2, 7, 1000])
def test_an_answer_comes_as_its_head_and_its_body(size: int) -> None:
    """
    Wherever its bytes are cut.
    """
    exchange = asked()
    head, *body = heard(exchange, *(ANSWER[i : i + size] for i in range(0, len(ANSWER), size)))
    assert isinstance(head, Head)
    assert (200, "b") == (head.status, head.headers["a"])
    assert b"hi" == b"".join(part for part in body if isinstance(part, bytes))
    assert exchange.is_done
    assert exchange.is_reusable


def test_another_request_follows_on_the_same_connection() -> None:
    """
    After the answer, as often as the peer keeps it.
    """
    exchange = asked()
    for _ in range(3):
        assert 2 == len(heard(exchange, ANSWER))
        ask(exchange)
        assert not exchange.is_done


@pytest.mark.parametrize(
    "answer",
    [
        ANSWER + b"more",
        b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 0\r\n\r\n",
        b"HTTP/1.0 200 OK\r\ncontent-length: 0\r\n\r\n",
    ],
    ids=["something more", "close", "http 1.0"],
)
def test_a_connection_that_is_spent_is_not_used_again(answer: bytes) -> None:
    """
    What nobody asked for may be an answer to nobody's question.
    """
    exchange = asked()
    heard(exchange, answer)
    assert exchange.is_done
    assert not exchange.is_reusable


@pytest.mark.parametrize(
    ("data", "error", "words"),
    [
        ([b"SSH-2.0"], NotHttpError, "expected HTTP"),
        ([b"HTTP/1.1 200 OK\r\n", b""], HungUpError, "hung up"),
        ([CHUNKED, b"2\r\nh", b""], HungUpError, "hung up"),
        ([b""], HungUpError, "hung up"),
        ([b"HTTP/1.1 OK\r\n\r\n"], BrokenHttpError, "broke the protocol"),
        ([b"HTTP/1.1 200 OK\r\na: " + b"x" * 2000 + b"\r\n\r\n"], BrokenHttpError, "max_head"),
        ([b"HTTP/1.1 999 No\r\n\r\n"], BrokenHttpError, "status: got 999"),
        ([b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\n\r\n"], BrokenHttpError, "gzip"),
        (
            [b"HTTP/1.1 200 OK\r\ncontent-length: " + b"9" * 900 + b"\r\n\r\n"],
            BrokenHttpError,
            "Content-Length",
        ),
    ],
)
def test_what_is_no_answer_is_told_as_such(
    data: list[bytes], error: type[BrokenHttpError], words: str
) -> None:
    """
    Early ends apart from what is no HTTP.
    """
    with pytest.raises(error, match=words):
        heard(asked(), *data)


def test_headers_that_contradict_each_other_are_named() -> None:
    """
    The first of them counts, for who does not care.
    """
    (head,) = heard(asked(), b"HTTP/1.1 200 OK\r\na: 1\r\nb: 2\r\na: 3\r\nb: 2\r\n\r\n")
    assert isinstance(head, Head)
    assert ("1", frozenset({"a"})) == (head.headers["a"], head.contradicted)


def test_a_flood_of_small_pieces_is_stopped_where_that_is_asked_for() -> None:
    """
    Each takes time, however small it is.
    """
    flood = CHUNKED + b"1\r\nx\r\n" * 50
    assert 51 == len(heard(asked(), flood))
    with pytest.raises(BrokenHttpError, match="too many small pieces"):
        heard(asked(most_pieces=20), flood)


@given(data=st.lists(st.binary(max_size=80), max_size=5))
def test_any_bytes_are_parts_or_an_error(data: list[bytes]) -> None:
    """
    And nothing else.
    """
    exchange = asked()
    try:
        heard(exchange, *data)
        heard(exchange, CHUNKED, *data)
    except BrokenHttpError:
        pass
