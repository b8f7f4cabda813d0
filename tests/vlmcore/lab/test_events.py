"""Tests of `vlmcore.lab.events`."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest
from hypothesis import given

from sample_cases import MS, chunks_at, sample, samples
from vlmcore.errors import ContractError, LimitExceededError
from vlmcore.lab.events import (
    Channel,
    Chunk,
    Failure,
    FailureKind,
    Phase,
    Sample,
    TokenSource,
    Usage,
)
from vlmcore.limits import SampleLimits

HUGE = 10**5000


def test_the_clock_stops_at_the_last_token_and_not_where_the_stream_closes() -> None:
    """
    One token, then 300 ms until the word that ends the stream.
    """
    one = sample(3.6, closed_ms=306)

    assert 3.6 * MS == one.last_token_ns
    assert 306 * MS == one.closed_ns


def test_the_first_token_is_of_any_channel_and_the_first_text_of_the_answer() -> None:
    """
    Five pieces of reasoning, then the answer.
    """
    thought = chunks_at([1, 20, 40, 60, 80], Channel.REASONING)
    one = sample(chunks=[*thought, *chunks_at([115])])

    assert (1 * MS, 115 * MS) == (one.first_token_ns, one.first_text_ns)


def test_an_empty_first_piece_is_no_token() -> None:
    """
    Servers begin with the role; others count it as the first token.
    """
    role = Chunk(at_ns=5 * MS, channel=Channel.NONE, characters=0)
    empty = Chunk(at_ns=6 * MS, characters=0)
    one = sample(chunks=[role, empty, *chunks_at([20])])

    assert (5 * MS, 20 * MS) == (one.first_chunk_ns, one.first_token_ns)


def test_a_token_whose_text_is_held_back_is_a_token() -> None:
    """
    Half a character, or a word that may go on: the model has written it.
    """
    held = Chunk(at_ns=7 * MS, characters=0, tokens=1)
    one = sample(chunks=[held, *chunks_at([20])])

    assert (7 * MS, 20 * MS) == (one.first_token_ns, one.first_text_ns)


def test_an_answer_without_a_token_has_no_times_and_is_no_measurement() -> None:
    """
    Not the time at which it closed.
    """
    empty = sample(closed_ms=9.08)

    assert [None] * 3 == [empty.first_token_ns, empty.first_text_ns, empty.last_token_ns]
    assert "empty output: no token came" == empty.excluded


def test_a_failed_sample_keeps_its_text_and_is_no_measurement() -> None:
    """
    An error in the middle of the stream.
    """
    failure = Failure(kind=FailureKind.SERVER_ERROR, message="out of slots")
    one = sample(5, 9, text="a ", failure=failure)

    assert "failed: server_error" == one.excluded
    assert "a " == one.text


def test_a_connection_that_was_cut_is_a_failure_of_its_own_kind() -> None:
    """
    What came before looks like an answer.
    """
    cut = sample(5, 9, finish_reason=None, failure=Failure(kind=FailureKind.TRUNCATED_STREAM))

    assert "failed: truncated_stream" == cut.excluded


def test_a_request_that_was_made_again_is_no_measurement() -> None:
    """
    The tries before would hide in its time, or be lost from it.
    """
    assert (
        "asked 2 times: figures would hide the tries that failed" == sample(5, attempts=2).excluded
    )
    assert "" == sample(5).excluded


def test_a_wait_begins_when_the_request_was_due() -> None:
    """
    A busy client that sends late would leave out the wait that it caused.
    """
    assert 10 == sample(5, scheduled_ns=10, request_ns=400).start_ns
    assert 400 == sample(5, request_ns=400).start_ns


def test_the_digest_is_that_of_the_text_as_utf8() -> None:
    """
    Of the text as it came, not of a text like it.
    """
    of_cafe = "850f7dc43910ff890f8879c0ed26fe697c93a067ad93a7d50f466a7028a9bf4e"
    assert of_cafe == sample(5, text="café").text_sha256
    assert of_cafe != sample(5, text="cafe\N{COMBINING ACUTE ACCENT}").text_sha256


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"request_ns": -1}, "request_ns: got -1, expected a whole number from 0 to"),
        ({"request_ns": 1 << 53}, "request_ns: got 9007199254740992, expected"),
        ({"closed_ns": HUGE}, "closed_ns: got a huge int, expected"),
        ({"request_ns": True}, "request_ns: got True"),
        ({"request_ns": 1.0}, "request_ns: got 1.0"),
        ({"sent_ns": float("nan")}, "sent_ns: got nan"),
        ({"request_ns": None}, "request_ns: got None"),
        ({"prepared_ns": 6, "sent_ns": 5}, "sent_ns: got 5, expected at least that of prepared"),
        ({"scheduled_ns": 9, "request_ns": 8}, "request_ns: got 8, expected at least that of sch"),
        ({"headers_ns": 6 * MS}, r"chunks\[0\].at_ns: got 5000000, expected at least that of head"),
        ({"closed_ns": 8 * MS}, r"closed_ns: got 8000000, expected at least that of chunks\[1\]"),
        ({"chunks": chunks_at([2, 1])}, r"chunks\[1\].at_ns: got 1000000, expected at least"),
        ({"case": ""}, "case: got blank text"),
        ({"case": "a\nb"}, "case: got 'a.nb', expected no control characters"),
        ({"target": None}, "target: got NoneType, expected text"),
        ({"phase": "steady"}, "phase: got 'steady', expected one of Phase.WARM_UP"),
        ({"block": -1}, "block: got -1"),
        ({"attempts": 0}, "attempts: got 0, expected a whole number from 1"),
        ({"streamed": "no"}, "streamed: got 'no', expected True or False"),
        ({"text": "\ud83d"}, "text: got a lone surrogate, expected characters"),
        ({"text": b"dog"}, "text: got bytes, expected str"),
        ({"reasoning": None}, "reasoning: got NoneType"),
        ({"finish_reason": "s" * 257}, "finish_reason: got 257 characters, expected at most 256"),
        ({"usage": {"prompt_tokens": 3}}, "usage: got dict, expected Usage"),
        ({"failure": "timeout"}, "failure: got str, expected Failure"),
        ({"peak_memory_bytes": -1}, "peak_memory_bytes: got -1"),
    ],
)
def test_a_sample_that_cannot_be_true_is_refused(fields: dict[str, Any], message: str) -> None:
    """
    With the name of its field.
    """
    with pytest.raises(ContractError, match=f"^{message}"):
        sample(5, 9, **fields)


@pytest.mark.parametrize(
    ("kind", "fields", "message"),
    [
        (Chunk, {"at_ns": -1, "characters": 0}, "at_ns: got -1"),
        (Chunk, {"at_ns": 0, "characters": 1.5}, "characters: got 1.5"),
        (Chunk, {"at_ns": 0, "characters": 0, "tokens": -1}, "tokens: got -1"),
        (Chunk, {"at_ns": 0, "characters": 0, "tokens": HUGE}, "tokens: got a huge int"),
        (Chunk, {"at_ns": 0, "characters": 1, "channel": "text"}, "channel: got 'text'"),
        (Chunk, {"at_ns": 0, "characters": 1, "channel": Channel.NONE}, "channel: got Channel.NO"),
        (Usage, {"source": "server"}, "source: got 'server', expected one of TokenSource.SERVER"),
        (Usage, {"source": TokenSource.MODEL, "cached_tokens": True}, "cached_tokens: got True"),
        (Failure, {"kind": "timeout"}, "kind: got 'timeout'"),
        (Failure, {"kind": FailureKind.TIMEOUT, "message": "x" * 1001}, "message: got 1001 char"),
    ],
)
def test_a_part_that_cannot_be_true_is_refused(
    kind: type, fields: dict[str, Any], message: str
) -> None:
    """
    With the name of its field.
    """
    with pytest.raises(ContractError, match=f"^{message}"):
        kind(**fields)


@pytest.mark.parametrize("chunks", ["ab", [1], None, {}])
def test_pieces_are_pieces(chunks: Any) -> None:
    """
    A text is no list of them.
    """
    with pytest.raises(ContractError, match=r"^chunks"):
        Sample(case="dog", target="mine", request_ns=0, closed_ns=1, chunks=chunks)


def test_pieces_are_bounded() -> None:
    """
    A server that never ends is no reason to run out of memory.
    """
    most = SampleLimits().max_chunks
    chunk = Chunk(at_ns=0, characters=0)
    with pytest.raises(LimitExceededError, match=f"max_chunks: got {most + 1}"):
        sample(chunks=[chunk] * (most + 1))


@given(one=samples())
def test_a_sample_is_a_value(one: Sample) -> None:
    """
    It crosses processes, cannot be changed, and is not of two phases.
    """
    assert one == pickle.loads(pickle.dumps(one)) == copy.deepcopy(one)
    assert hash(one) == hash(copy.copy(one))
    with pytest.raises(AttributeError):
        one.text = "better"  # type: ignore[misc]
    assert one.phase in Phase


@given(one=samples())
def test_marks_are_in_order_whatever_came(one: Sample) -> None:
    """
    The first token is not after the last, and no text is before the first token.
    """
    marks = [one.start_ns, one.first_chunk_ns, one.first_token_ns, one.first_text_ns]
    known = [mark for mark in (*marks, one.closed_ns) if mark is not None]
    assert sorted(known) == known
    assert (one.first_token_ns is None) == (one.last_token_ns is None)
    if one.first_token_ns is not None and one.last_token_ns is not None:
        assert one.first_token_ns <= one.last_token_ns <= one.closed_ns
