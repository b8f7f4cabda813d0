"""The evidence of a run and the lines of its journal, key by key; version 2 of the schema."""

from __future__ import annotations

import enum
from collections.abc import Iterator, Mapping
from typing import Any

import attrs

from vlmcore.contracts.nullable import Nullable
from vlmcore.contracts.schemas import DocumentKind
from vlmcore.contracts.shapes import (
    Field,
    Flag,
    JsonObject,
    ListOf,
    MapOf,
    Number,
    Record,
    Shape,
    Text,
    Whole,
)
from vlmcore.lab.artifacts import Ending
from vlmcore.lab.canonical import EXACT
from vlmcore.lab.identity_documents import IDENTITY, INPUT
from vlmcore.lab.run_plans import CacheMode
from vlmcore.lab.sample_documents import SAMPLE
from vlmcore.lab.scoring.scores import ScoreFlag
from vlmcore.limits import ArtifactLimits, SampleLimits

__all__ = [
    "ARTIFACT",
    "DOCUMENTS",
    "ENDED",
    "JOURNAL_END",
    "JOURNAL_SAMPLE",
    "JOURNAL_START",
    "START",
]

_LIMITS = ArtifactLimits()
_SAMPLES = SampleLimits()
_LINE = Text(longest=_LIMITS.max_name_characters)
_SAID = Text(longest=_LIMITS.max_name_characters, blank=True)
_SHA256 = Text(longest=64)
_TIME = Whole(smallest=0, largest=_SAMPLES.max_ns)
_COUNT = Whole(smallest=0, largest=_SAMPLES.max_requests)


def _members(kind: type[enum.Enum]) -> Text:
    return Text(one_of=tuple(member.value for member in kind))


@attrs.frozen
class _ReadApart:
    """An object whose faults are found where it is read."""

    shape: Shape

    def faults(self, value: Any, path: str) -> Iterator[tuple[str, str]]:
        yield from JsonObject().faults(value, path)

    def schema(self) -> dict[str, Any]:
        return self.shape.schema()


@attrs.frozen
class _Digests:
    """The digest of each part, of a list those of its items."""

    def faults(self, value: Any, path: str) -> Iterator[tuple[str, str]]:
        yield from JsonObject().faults(value, path)

    def schema(self) -> dict[str, Any]:
        digest = {"type": "string", "pattern": "^[0-9a-f]{64}$"}
        either = {"anyOf": [digest, {"type": "array", "items": digest}]}
        return {"type": "object", "additionalProperties": either}


_PLAN = Record(
    fields={
        "load": Field(JsonObject(), "How requests were sent."),
        "cache": Field(_members(CacheMode), "What a target might have kept of earlier ones."),
        "runs_per_case": Field(_COUNT, "Measured requests of each case and target."),
        "warm_ups_per_case": Field(_COUNT, "Requests of each before them."),
        "order_seed": Field(Whole(smallest=0, largest=EXACT), "The seed of the order."),
        "generation": Field(JsonObject(), "All that answers were generated with."),
        "streamed": Field(Flag(), "Whether answers were asked for while they were written."),
        "retries": Field(_COUNT, "How often a request that failed was to be asked again."),
        "deadline_s": Field(Number(positive=True), "When a request was given up."),
        "max_failures": Field(Nullable(_COUNT), "How many failed requests ended the run."),
        "goals": Field(JsonObject(), "What a request should keep to."),
    }
)
_SCORE = Record(
    fields={
        "value": Field(Number(largest=1.0), "From 0 to 1."),
        "reason": Field(Text(), "Why, in one line."),
        "flags": Field(
            ListOf(item=_members(ScoreFlag), fewest=0, most=len(ScoreFlag)),
            "What to know beside it.",
        ),
    }
)
_SCORED: dict[str, Field] = {
    "sample": Field(_ReadApart(SAMPLE), "What was measured."),
    "score": Field(Nullable(_SCORE), "How good the answer was; null if it was not scored."),
}
#: What is known of a run before its first request.
START: dict[str, Field] = {
    "label": Field(_LINE, "A name for people, which the file is called by."),
    "created_at": Field(_LINE, "When the run began, in UTC."),
    "identity": Field(_ReadApart(IDENTITY), "What it was made with."),
    "suite": Field(JsonObject(), "The suite as a document."),
    "suite_sha256": Field(_SHA256, "What the suite says its digest is."),
    "plan": Field(_PLAN, "What it was to do."),
    "inputs": Field(
        ListOf(item=_ReadApart(INPUT), fewest=0, most=_LIMITS.max_cases * _LIMITS.max_files),
        "What each target was given for each case.",
    ),
}
#: What is known after its last.
ENDED: dict[str, Field] = {
    "ended": Field(_members(Ending), "How the run ended."),
    "reason": Field(_SAID, "Why it ended so, for people."),
    "planned": Field(_TIME, "How many samples it was to have."),
    "wall_ns": Field(Nullable(_TIME), "How long it took, in nanoseconds."),
}


def _kind(name: str, title: str, version: int, keys: Mapping[str, Field]) -> DocumentKind:
    """Make a document that must say what it is."""
    kind = DocumentKind(name=name, title=title, keys={}, version=version)
    said = {
        "schema": Field(Text(one_of=(kind.schema_id,)), "What the document is."),
        "version": Field(Whole(smallest=version, largest=version), "Of the schema."),
    }
    return attrs.evolve(kind, keys=said | dict(keys))


def _many(item: Shape) -> ListOf:
    return ListOf(item=item, fewest=0, most=_SAMPLES.max_requests)


ARTIFACT = _kind(
    "benchmark-run",
    "The evidence of a run: what it was made with, and every sample with its whole answer.",
    2,
    {
        **START,
        "warm_ups": Field(_many(Record(fields=_SCORED)), "Requests that are in no figure."),
        "samples": Field(_many(Record(fields=_SCORED)), "The measured requests, of one phase."),
        **ENDED,
        "unknown": Field(
            MapOf(item=_LINE, most=_SAMPLES.max_requests),
            "Each place that nobody could tell of, and why.",
        ),
        "digests": Field(
            _Digests(), "SHA-256 of each other part in canonical JSON (RFC 8785), of lists by item."
        ),
    },
)
JOURNAL_START = _kind(
    "benchmark-journal", "The first line of a journal: all but the samples.", 1,
    {**START, "planned": ENDED["planned"]},
)  # fmt: skip
JOURNAL_SAMPLE = _kind("benchmark-journal-sample", "One request.", 1, _SCORED)
JOURNAL_END = _kind("benchmark-journal-end", "How a run ended.", 1, ENDED)

#: The documents of this module by their names.
DOCUMENTS: Mapping[str, DocumentKind] = {
    kind.name: kind for kind in (ARTIFACT, JOURNAL_START, JOURNAL_SAMPLE, JOURNAL_END)
}
