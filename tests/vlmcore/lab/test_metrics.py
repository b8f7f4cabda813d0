"""Tests of `vlmcore.lab.metrics`: the figures of published tables, and what is right instead."""

from __future__ import annotations

import math
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sample_cases import MS, chunks_at, sample, samples, told
from vlmcore.errors import ContractError
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
from vlmcore.lab.metrics import METRICS, find_metric, measure, require_measured, token_gaps_ms

ROW_05E = sample(37.5, 190.5, tokens=31)
# 393.9 tok/s of two tokens, counted as n / (end - first).
ROW_05A = sample(38.3, 38.3 + 2000 / 393.9, tokens=2)
ROW_01B = sample(88.2, 774.1, tokens=31)


def value(one: Sample, metric: str) -> float | None:
    """Take the figure, whatever the reason if there is none."""
    return measure(one, metric).value


def reason(one: Sample, metric: str) -> str:
    """Take the reason of a figure that there must not be."""
    reading = measure(one, metric)
    assert reading.value is None
    return reading.reason


def test_a_rate_counts_the_tokens_after_the_first_as_the_time_does() -> None:
    """
    31 tokens from 37.5 to 190.5 ms: 30 gaps, not 31, which would say 202.6.
    """
    assert 196.1 == pytest.approx(value(ROW_05E, "rate/1"), abs=0.05)


def test_two_tokens_have_one_gap() -> None:
    """
    Counting both over one gap doubles the rate: 393.9.
    """
    assert 197 == round(value(ROW_05A, "rate/1") or 0)


@pytest.mark.parametrize(("tokens", "said"), [(0, "0 tokens"), (1, "1 token")])
def test_one_token_has_no_rate(tokens: int, said: str) -> None:
    """
    Null, with the reason.
    """
    one = sample(3.6, tokens=tokens, closed_ms=306)

    assert f"{said}: there is no time between tokens" == reason(one, "rate/1")
    assert reason(one, "rate/1") == reason(one, "tpot/1")


def test_a_request_ends_at_its_last_token_and_not_at_done() -> None:
    """
    One token and 300 ms until the stream closed were called 306 ms and 3.3 tok/s.
    """
    one = sample(3.6, tokens=1, closed_ms=306)

    assert 3.6 == value(one, "e2e/1")
    assert 302.4 == pytest.approx(value(one, "tail/1"))
    assert value(one, "rate/1") is None


def test_reasoning_counts_as_tokens_and_not_as_the_answer() -> None:
    """
    Five pieces of reasoning, then "dog", six tokens told: not 115 ms until the first token, nor
    18,060 tok/s after it.
    """
    thought = chunks_at([1, 24, 47, 70, 93], Channel.REASONING)
    one = sample(chunks=[*thought, Chunk(at_ns=116 * MS, characters=3)], tokens=6)

    assert 1 == value(one, "ttft/1")
    assert 116 == value(one, "ttfo/1")
    assert 5 / 0.115 == pytest.approx(value(one, "rate/1"))


def test_reasoning_without_an_answer_has_no_first_text() -> None:
    """
    The rest is measured.
    """
    one = sample(chunks=chunks_at([1, 24], Channel.REASONING), tokens=2)

    assert "no text came" == reason(one, "ttfo/1")
    assert 24 == value(one, "e2e/1")


def test_without_a_count_of_tokens_there_is_no_rate() -> None:
    """
    The number of pieces is not a count of tokens.
    """
    for nobody in (None, told(None)):
        one = sample(1, 2, 3, usage=nobody)
        assert "nobody told how many tokens were generated" == reason(one, "rate/1")
        assert 3 == value(one, "e2e/1")


def test_tokens_that_were_counted_afterwards_are_good_enough() -> None:
    """
    The sample says who counted.
    """
    one = sample(0, 100, usage=Usage(source=TokenSource.TOKENIZER, generated_tokens=11))

    assert 100 == pytest.approx(value(one, "rate/1"))


@pytest.mark.parametrize("metric", METRICS)
def test_an_empty_answer_has_no_figure(metric: str) -> None:
    """
    Its time to first token was called 9.08 ms, the time at which it closed.
    """
    empty = sample(closed_ms=9.08, prepared_ns=0, scheduled_ns=0)

    assert "empty output: no token came" == reason(empty, metric)


@pytest.mark.parametrize("metric", METRICS)
def test_a_failed_sample_has_no_figure(metric: str) -> None:
    """
    Nor one that was asked again.
    """
    failed = sample(5, 9, tokens=2, failure=Failure(kind=FailureKind.SERVER_ERROR))

    assert "failed: server_error" == reason(failed, metric)
    assert reason(sample(5, 9, tokens=2, attempts=3), metric).startswith("asked 3 times")


def test_input_work_and_runtime_work_are_told_apart() -> None:
    """
    One harness times the resizing and another does it before the clock starts.
    """
    one = sample(60, 90, prepared_ns=20 * MS, sent_ns=21 * MS)

    assert (20, 40, 70) == tuple(
        value(one, metric) for metric in ("prepare/1", "ttft_prepared/1", "e2e_prepared/1")
    )
    assert (60, 90) == (value(one, "ttft/1"), value(one, "e2e/1"))
    assert "not known when it was prepared" == reason(sample(60), "prepare/1")
    assert "not known when it was prepared" == reason(sample(60), "ttft_prepared/1")


def test_a_request_that_was_sent_late_has_waited() -> None:
    """
    Due at 0, sent at 400 ms since the client was busy: leaving that out hides a queue.
    """
    one = sample(420, 450, scheduled_ns=0, request_ns=400 * MS)

    assert (420, 450, 400) == tuple(value(one, m) for m in ("ttft/1", "e2e/1", "late/1"))
    assert "not scheduled: a closed loop" == reason(sample(5), "late/1")


def test_the_first_piece_of_others_may_be_empty() -> None:
    """
    The same name means different things elsewhere, so there is a formula for both.
    """
    role = Chunk(at_ns=5 * MS, channel=Channel.NONE, characters=0)
    one = sample(chunks=[role, *chunks_at([20, 30])], prepared_ns=1 * MS)

    assert (4, 19) == (value(one, "ttfc_prepared/1"), value(one, "ttft_prepared/1"))


def test_an_answer_that_was_not_streamed_has_an_end_and_no_beginning() -> None:
    """
    Its first token came with its last.
    """
    one = sample(chunks=[Chunk(at_ns=90 * MS, characters=40)], tokens=9, streamed=False)

    assert 90 == value(one, "e2e/1")
    assert "not streamed: the first token came with the last" == reason(one, "ttft/1")
    assert "all tokens came in one piece" == reason(one, "rate/1")
    assert "all tokens came in one piece" == reason(one, "itl/1")


def test_gaps_are_between_pieces_that_hold_tokens() -> None:
    """
    Signs of life do not make a stream look smooth.
    """
    alive = Chunk(at_ns=50 * MS, channel=Channel.NONE, characters=0)
    one = sample(chunks=[*chunks_at([10, 20]), alive, *chunks_at([90])])

    assert (10.0, 70.0) == token_gaps_ms(one)
    assert (40, 70) == (value(one, "itl/1"), value(one, "itl_longest/1"))


def test_like_is_compared_with_like() -> None:
    """
    The published headline of 7.33 sets full pixels against few; the runtime made 4.06 of it.
    """
    full = sample(700.3, 1395.7, tokens=31)

    def factor(metric: str, before: Sample, after: Sample) -> float:
        return (value(before, metric) or math.nan) / (value(after, metric) or math.nan)

    assert 1.80 == pytest.approx(factor("e2e/1", full, ROW_01B), abs=0.005)
    assert 4.06 == pytest.approx(factor("e2e/1", ROW_01B, ROW_05E), abs=0.005)
    assert 2.35 == pytest.approx(factor("ttft/1", ROW_01B, ROW_05E), abs=0.005)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("ttft", r"metric: got 'ttft', expected one of ttft/1, .*; did you mean 'ttft/1'\?"),
        ("ttft/2", "did you mean 'ttft/1'"),
        (None, "metric: got None"),
        (["ttft/1"], "metric: got \\['ttft/1'\\]"),
    ],
)
def test_a_formula_has_a_version(name: Any, message: str) -> None:
    """
    A word alone means different things elsewhere.
    """
    with pytest.raises(ContractError, match=message):
        find_metric(name)
    with pytest.raises(ContractError, match=message):
        measure(ROW_05E, name)


def test_warm_ups_and_cold_starts_are_not_mixed_with_what_is_warm() -> None:
    """
    Each apart is what it is.
    """
    cold, warm_up = sample(5, phase=Phase.COLD_START), sample(5, phase=Phase.WARM_UP)
    require_measured([cold, cold])
    with pytest.raises(ContractError, match=r"samples\[1\]: got Phase.COLD_START, expected Phase."):
        require_measured([sample(5), cold])
    with pytest.raises(ContractError, match=r"samples\[1\]: got a warm-up, expected none"):
        require_measured([sample(5), warm_up])
    with pytest.raises(ContractError, match=r"samples\[0\]: got str, expected Sample"):
        require_measured("a")  # type: ignore[arg-type]


@given(one=samples(), metric=st.sampled_from(sorted(METRICS)))
def test_a_figure_is_a_number_or_there_is_a_reason(one: Sample, metric: str) -> None:
    """
    Never NaN, never infinite, never below 0.
    """
    reading = measure(one, metric)

    assert (reading.value is None) == bool(reading.reason)
    if reading.value is not None:
        assert math.isfinite(reading.value)
        assert reading.value >= 0


@given(one=samples(), later_ns=st.integers(0, 1 << 50), metric=st.sampled_from(sorted(METRICS)))
def test_when_a_run_began_changes_no_figure(one: Sample, later_ns: int, metric: str) -> None:
    """
    Times are whole numbers, so not by a bit.
    """
    marks = ("scheduled_ns", "request_ns", "prepared_ns", "sent_ns", "headers_ns", "closed_ns")
    known = {mark: getattr(one, mark) for mark in marks if getattr(one, mark) is not None}
    later = attrs.evolve(
        one,
        **{mark: at_ns + later_ns for mark, at_ns in known.items()},
        chunks=[attrs.evolve(chunk, at_ns=chunk.at_ns + later_ns) for chunk in one.chunks],
    )

    assert measure(one, metric) == measure(later, metric)


@given(one=samples())
def test_figures_of_one_sample_agree(one: Sample) -> None:
    """
    The time per token is what other tools make of the end and the first token, and one over the
    rate.
    """
    made = {metric: value(one, metric) for metric in METRICS}
    ttft, ttfo, e2e = made["ttft/1"], made["ttfo/1"], made["e2e/1"]
    if ttft is not None and ttfo is not None and e2e is not None:
        assert ttft <= ttfo <= e2e
    if made["tpot/1"] is not None and one.streamed and ttft is not None and e2e is not None:
        tokens = one.generated_tokens or 0
        assert (e2e - ttft) / (tokens - 1) == pytest.approx(made["tpot/1"])
    if made["tpot/1"] is not None and made["rate/1"] is not None:
        assert 1000 == pytest.approx(made["tpot/1"] * made["rate/1"])
    if made["itl/1"] is not None and made["itl_longest/1"] is not None:
        assert made["itl/1"] <= made["itl_longest/1"] + 1e-9


def test_the_names_of_formulas_are_promises() -> None:
    """
    A formula that changes gets a new number, and the old one stays.
    """
    assert {
        *("ttft/1", "ttfo/1", "e2e/1", "tpot/1", "itl/1", "itl_longest/1", "rate/1", "prepare/1"),
        *("ttft_prepared/1", "ttfc_prepared/1", "e2e_prepared/1", "late/1", "tail/1"),
    } == set(METRICS)
    assert {"ms", "tok/s"} == {metric.unit for metric in METRICS.values()}
    assert all((metric.unit == "ms") == metric.is_time for metric in METRICS.values())
