"""Samples for tests: scripted ones in milliseconds, and any that the contract allows."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from hypothesis import strategies as st

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

MS = 1_000_000


def chunks_at(times_ms: Iterable[float], channel: Channel = Channel.TEXT) -> list[Chunk]:
    """Make a chunk of one character for each time."""
    return [Chunk(at_ns=round(at * MS), channel=channel, characters=1) for at in times_ms]


def told(tokens: int | None) -> Usage:
    """Make what a server tells."""
    return Usage(source=TokenSource.SERVER, generated_tokens=tokens)


def sample(
    *times_ms: float, tokens: int | None = None, closed_ms: float | None = None, **fields: Any
) -> Sample:
    """Make a sample whose request was made at 0, with a chunk of one character at each time."""
    chunks = fields.pop("chunks", chunks_at(times_ms))
    last_ns = max((chunk.at_ns for chunk in chunks), default=0)
    defaults = {
        "case": "dog",
        "target": "mine",
        "request_ns": 0,
        "closed_ns": last_ns if closed_ms is None else round(closed_ms * MS),
        "text": "x" * sum(c.characters for c in chunks if c.channel is Channel.TEXT),
        "finish_reason": "stop",
        "usage": told(tokens),
    }
    return Sample(chunks=chunks, **defaults | fields)


_TEXTS = st.text(st.characters(codec="utf-8"), max_size=8)
_NAMES = st.sampled_from(["dog", "크다", "a b"])
_COUNTS = st.none() | st.integers(0, 1000)


@st.composite
def samples(draw: st.DrawFn) -> Sample:
    """Samples of every kind: streamed and not, whole, failed, empty, of an open loop."""
    gaps = st.integers(0, 50 * MS)
    now = draw(st.integers(0, 1 << 52))
    marks = {}
    for mark in ("scheduled_ns", "request_ns", "prepared_ns", "sent_ns", "headers_ns"):
        now += draw(gaps)
        marks[mark] = now if mark == "request_ns" or draw(st.booleans()) else None
    chunks = []
    for channel in draw(st.lists(st.sampled_from(Channel), max_size=6)):
        now += draw(gaps)
        is_none = channel is Channel.NONE
        characters = 0 if is_none else draw(st.integers(0, 3))
        tokens = draw(st.sampled_from([None, 0] if is_none else [None, 0, 1, 2]))
        chunks.append(Chunk(at_ns=now, channel=channel, characters=characters, tokens=tokens))
    usages = st.builds(
        Usage,
        source=st.sampled_from(TokenSource),
        prompt_tokens=_COUNTS,
        cached_tokens=_COUNTS,
        generated_tokens=_COUNTS,
        reasoning_tokens=_COUNTS,
    )
    failures = st.builds(Failure, kind=st.sampled_from(FailureKind), message=_TEXTS)
    return Sample(
        case=draw(_NAMES),
        target=draw(_NAMES),
        phase=draw(st.sampled_from(Phase)),
        block=draw(st.integers(0, 9)),
        leg=draw(st.integers(0, 3)),
        **marks,
        chunks=chunks,
        closed_ns=now + draw(gaps),
        streamed=draw(st.booleans()),
        text=draw(_TEXTS),
        reasoning=draw(_TEXTS),
        finish_reason=draw(st.none() | _TEXTS),
        usage=draw(st.none() | usages),
        failure=draw(st.none() | st.none() | failures),
        attempts=draw(st.sampled_from([1, 1, 2])),
        peak_memory_bytes=draw(st.none() | st.integers(0, 1 << 40)),
    )
