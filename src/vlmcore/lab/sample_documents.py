"""Samples as JSON, both ways: lines of a journal, and parts of an artifact."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from vlmcore.contracts.faults import Faults
from vlmcore.contracts.nullable import Nullable
from vlmcore.contracts.shapes import Field, Flag, ListOf, Record, Text, Whole
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

__all__ = ["SAMPLE", "read_sample", "sample_document", "sample_from"]

_LIMITS = SampleLimits()
_TIME = Whole(smallest=0, largest=_LIMITS.max_ns)
_NAME = Text(longest=_LIMITS.max_name_characters)
_LINE = Text(longest=_LIMITS.max_name_characters, blank=True)
_ANSWER = Text(longest=_LIMITS.max_text_characters, blank=True)
_TOKENS = Whole(smallest=0, largest=_LIMITS.max_tokens)
_NUMBER = Whole(smallest=0, largest=_LIMITS.max_requests)
_MARKS = ("scheduled_ns", "request_ns", "prepared_ns", "sent_ns", "headers_ns", "closed_ns")
_MADE = ("first_token_ns", "first_text_ns", "last_token_ns", "text_sha256")
_COLUMNS = tuple(field.name for field in attrs.fields(Chunk))


def _members(kind: type[Channel | FailureKind | Phase | TokenSource]) -> Text:
    return Text(one_of=tuple(member.value for member in kind))


def _column(item: Any) -> ListOf:
    return ListOf(item=item, fewest=0, most=_LIMITS.max_chunks)


_CHUNKS = Record(
    fields={
        "at_ns": Field(_column(_TIME), "When each piece of the answer was there."),
        "channel": Field(_column(_members(Channel)), "What the tokens of each are."),
        "characters": Field(
            _column(Whole(smallest=0, largest=_LIMITS.max_text_characters)),
            "How many characters each added.",
        ),
        "tokens": Field(
            _column(Nullable(_TOKENS)), "How many tokens each holds; null if that was not told."
        ),
    }
)
_USAGE = Record(
    fields={
        "source": Field(_members(TokenSource), "Who counted."),
        "prompt_tokens": Field(Nullable(_TOKENS), "Given to the model, those of images too."),
        "cached_tokens": Field(Nullable(_TOKENS), "Of these, kept from earlier requests."),
        "generated_tokens": Field(Nullable(_TOKENS), "Written, those of the reasoning too."),
        "reasoning_tokens": Field(Nullable(_TOKENS), "Of these, reasoning."),
    }
)
_FAILURE = Record(
    fields={
        "kind": Field(_members(FailureKind), "In one word."),
        "message": Field(
            Text(longest=_LIMITS.max_message_characters, blank=True), "What was said."
        ),
    }
)

#: What a sample is in JSON, for the documents that hold samples.
SAMPLE = Record(
    fields={
        "case": Field(_NAME, "The case of the suite."),
        "target": Field(_NAME, "What was asked."),
        "phase": Field(_members(Phase), "What the sample is for."),
        "block": Field(_NUMBER, "Its block in the plan, from 0."),
        "leg": Field(_NUMBER, "Its leg in the block, from 0."),
        "scheduled_ns": Field(Nullable(_TIME), "When it was due; null in a closed loop."),
        "request_ns": Field(
            _TIME, "When the caller began, in ns since the beginning of the run, as all times."
        ),
        "prepared_ns": Field(Nullable(_TIME), "When the request was complete."),
        "sent_ns": Field(Nullable(_TIME), "When its last byte was handed to the network."),
        "headers_ns": Field(Nullable(_TIME), "When the head of the response was there."),
        "first_token_ns": Field(Nullable(_TIME), "Of the first piece with a token in it."),
        "first_text_ns": Field(Nullable(_TIME), "Of the first characters of the answer itself."),
        "last_token_ns": Field(Nullable(_TIME), "Of the last piece with a token in it."),
        "closed_ns": Field(_TIME, "When nothing more could come."),
        "chunks": Field(_CHUNKS, "The pieces of the answer, column by column."),
        "streamed": Field(Flag(), "Whether the answer came while it was written."),
        "text": Field(_ANSWER, "The whole answer, or what came of it."),
        "text_sha256": Field(Text(longest=64), "Of the answer as UTF-8."),
        "reasoning": Field(_ANSWER, "What the model thought, kept apart."),
        "finish_reason": Field(Nullable(_LINE), "Why the answer ended; null if nobody said so."),
        "usage": Field(Nullable(_USAGE), "How many tokens it took; null if nobody told."),
        "failure": Field(Nullable(_FAILURE), "Why it failed; null if it did not."),
        "attempts": Field(
            Whole(smallest=1, largest=_LIMITS.max_requests), "How often it was asked."
        ),
        "peak_memory_bytes": Field(
            Nullable(Whole(smallest=0, largest=_LIMITS.max_memory_bytes)),
            "The most memory that the model took; null if not measured.",
        ),
    }
)


def sample_document(sample: Sample) -> dict[str, Any]:
    """
    Write a sample as plain values of JSON.

    What is made of the chunks is written beside them, for whoever reads without this package.

    Example:
        >>> sample = Sample(case="dog", target="mine", request_ns=0, closed_ns=5)
        >>> document = sample_document(sample)
        >>> document["first_token_ns"] is None, sample_from(document) == sample
        (True, True)
    """
    said = {key: getattr(sample, key) for key in SAMPLE.fields}
    said["phase"] = sample.phase.value
    said["chunks"] = {
        "at_ns": [chunk.at_ns for chunk in sample.chunks],
        "channel": [chunk.channel.value for chunk in sample.chunks],
        "characters": [chunk.characters for chunk in sample.chunks],
        "tokens": [chunk.tokens for chunk in sample.chunks],
    }
    if sample.usage is not None:
        said["usage"] = attrs.asdict(sample.usage) | {"source": sample.usage.source.value}
    if sample.failure is not None:
        said["failure"] = {
            "kind": sample.failure.kind.value,
            "message": sample.failure.message,
        }
    return said


def sample_from(value: Any) -> Sample:
    """
    Read a sample from plain values of JSON.

    Raises:
        DocumentError: If there are faults; all of them are listed.
    """
    faults = Faults("lab-sample")
    sample = read_sample(value, "$", faults)
    faults.raise_any()
    assert sample is not None
    return sample


def read_sample(value: Any, path: str, faults: Faults) -> Sample | None:
    """
    Read a sample that stands in another document.

    Args:
        value: The sample, in plain values of JSON.
        path: Where it stands.
        faults: Is given what is wrong.

    Returns:
        The sample; ``None`` if anything is wrong with it.
    """
    found = list(SAMPLE.faults(value, path))
    for where, problem in found:
        faults.add(where, problem)
    if found:
        return None
    columns = value["chunks"]
    lengths = {key: len(columns[key]) for key in _COLUMNS}
    if len({*lengths.values()}) > 1:
        listed = ", ".join(f"{count} {key}" for key, count in lengths.items())
        faults.add(f"{path}.chunks", f"got {listed}, expected as many of each")
        return None
    sample: Sample | None = None
    with faults.at(path, **_places(value, path)):
        sample = _made(value)
    if sample is None or not _agrees(sample, value, path, faults):
        return None
    return sample


def _places(value: Mapping[str, Any], path: str) -> dict[str, str]:
    columns = {key: f"{path}.chunks.{key}" for key in _COLUMNS}
    return columns | {key: f"{path}.{key}" for key in value}


def _made(value: Mapping[str, Any]) -> Sample:
    rows = zip(*(value["chunks"][key] for key in _COLUMNS), strict=True)
    usage, failure = value["usage"], value["failure"]
    plain = {key: each for key, each in value.items() if key not in _MADE}
    return Sample(
        **plain
        | {
            "phase": Phase(value["phase"]),
            "chunks": [
                Chunk(at_ns=at, channel=Channel(channel), characters=characters, tokens=tokens)
                for at, channel, characters, tokens in rows
            ],
            "usage": usage and Usage(**usage | {"source": TokenSource(usage["source"])}),
            "failure": failure
            and Failure(kind=FailureKind(failure["kind"]), message=failure["message"]),
        }
    )


def _agrees(sample: Sample, value: Mapping[str, Any], path: str, faults: Faults) -> bool:
    """Hold what was written beside the chunks and the text against them."""
    made = {key: getattr(sample, key) for key in _MADE}
    wrong = [key for key, expected in made.items() if value[key] != expected]
    for key in wrong:
        faults.add(f"{path}.{key}", f"got {value[key]!r}, expected {made[key]!r}, as measured")
    return not wrong
