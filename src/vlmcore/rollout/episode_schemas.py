"""
The lines of a recorded episode, key by key: one header, then one document a step or failed call.

They are made of the documents that there are: the embodiment, the summary of the observation, the
chunk, the report. In a chunk that was proposed a value that is not finite, which JSON cannot hold,
is the text ``"NaN"``, ``"Infinity"`` or ``"-Infinity"``; readers of plain chunks refuse it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import attrs

from vlmcore.contracts.schemas import (
    ACTION_CHUNK,
    EMBODIMENT,
    OBSERVATION_SUMMARY,
    DocumentKind,
)
from vlmcore.contracts.shapes import (
    Field,
    JsonObject,
    ListOf,
    MapOf,
    Number,
    Record,
    Shape,
    Text,
    Whole,
)
from vlmcore.limits import ContractLimits, DocumentLimits, EpisodeLimits
from vlmcore.rollout.episode_frames import FrameEncoding
from vlmcore.safety.documents import SAFETY_REPORT

__all__ = ["DOCUMENTS", "EPISODE", "EPISODE_FAILURE", "EPISODE_STEP", "NOT_FINITE"]

_LIMITS = ContractLimits()
_MOST_STEPS = EpisodeLimits().max_steps

#: What a proposed value that is not finite is written as, and what it is.
NOT_FINITE = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}


@attrs.frozen
class _Nested:
    """A document inside a document; its faults are found where it is read."""

    kind: DocumentKind

    def faults(self, value: Any, path: str) -> Iterator[tuple[str, str]]:
        yield from JsonObject().faults(value, path)

    def schema(self) -> dict[str, Any]:
        said = self.kind.json_schema()
        del said["$schema"]
        return said


@attrs.frozen
class _Either:
    """One of two shapes, for the published schema."""

    first: Shape
    second: Shape

    def faults(self, value: Any, path: str) -> Iterator[tuple[str, str]]:
        if any(self.first.faults(value, path)):
            yield from self.second.faults(value, path)

    def schema(self) -> dict[str, Any]:
        return {"anyOf": [self.first.schema(), self.second.schema()]}


@attrs.frozen
class _OrNull:
    """A shape, or null."""

    shape: Shape

    def faults(self, value: Any, path: str) -> Iterator[tuple[str, str]]:
        if value is not None:
            yield from self.shape.faults(value, path)

    def schema(self) -> dict[str, Any]:
        return {"anyOf": [{"type": "null"}, self.shape.schema()]}


_NUMBERS = ListOf(item=Number(), fewest=1, most=_LIMITS.max_actions)
_PROPOSED_NUMBERS = ListOf(
    item=_Either(Number(), Text(one_of=tuple(NOT_FINITE))), fewest=1, most=_LIMITS.max_actions
)
_PROPOSED = attrs.evolve(
    ACTION_CHUNK,
    title=f"{ACTION_CHUNK.title} A value that is not finite is a text.",
    keys={
        **ACTION_CHUNK.keys,
        "actions": Field(
            ListOf(item=_PROPOSED_NUMBERS, fewest=1, most=_LIMITS.max_horizon), "Step by step."
        ),
    },
)
_SAID = Text(blank=True, longest=_LIMITS.max_name_characters)
_CALL = Field(
    Record(
        fields={
            "digest": Field(Text(longest=64), "SHA-256 of the observation, without its time."),
            "took_s": Field(Number(), "How long the policy took, in seconds."),
        }
    ),
    "How the policy was asked.",
    optional=True,
)
_FRAME = Record(
    fields={
        "encoding": Field(
            Text(one_of=tuple(encoding.value for encoding in FrameEncoding)), "What the data is."
        ),
        "data": Field(Text(), "The encoded file, in base64."),
        "frame_index": Field(
            Whole(smallest=0, largest=_LIMITS.max_frames - 1), "Which frame of the history."
        ),
    }
)


def _line(name: str, title: str, keys: Mapping[str, Field]) -> DocumentKind:
    """Make a document that must say what it is: a file may hold any line at any place."""
    kind = DocumentKind(name=name, title=title, keys={})
    said = {
        "schema": Field(Text(one_of=(kind.schema_id,)), "What the line is."),
        "version": Field(Whole(smallest=1, largest=1), "Of the schema."),
    }
    return attrs.evolve(kind, keys=said | dict(keys))


EPISODE = _line(
    name="robot-episode",
    title="The first line of a recorded episode: whose it is.",
    keys={
        "embodiment": Field(_Nested(EMBODIMENT), "The robot."),
        "made_by": Field(_SAID, "What recorded it.", optional=True),
        "made_at": Field(_SAID, "When, as the recorder writes it.", optional=True),
        "metadata": Field(JsonObject(), "What else is to be known.", optional=True),
    },
)

EPISODE_STEP = _line(
    name="robot-episode-step",
    title="One step of the policy: what it was shown, what it proposed, what the gate made of it.",
    keys={
        "step": Field(
            Whole(smallest=0, largest=_MOST_STEPS - 1), "Which step of the episode, from 0."
        ),
        "at_s": Field(Number(), "Monotonic clock when the gate had decided, in seconds."),
        "observation": Field(_Nested(OBSERVATION_SUMMARY), "What the policy was shown."),
        "proposed": Field(_Nested(_PROPOSED), "What was put to the gate."),
        "last_command": Field(
            _OrNull(_NUMBERS), "What was sent before, in the order of the embodiment."
        ),
        "position": Field(
            MapOf(item=Number(), most=_LIMITS.max_actions),
            "The measured positions that it was vetted with, by action.",
            optional=True,
        ),
        "report": Field(_Nested(SAFETY_REPORT), "What the gate found."),
        "vetted": Field(
            _OrNull(ListOf(item=_NUMBERS, fewest=1, most=_LIMITS.max_horizon)),
            "The values that left the gate, in the order of the embodiment; null if none did.",
        ),
        "executed_steps": Field(
            Whole(smallest=0, largest=_LIMITS.max_horizon), "How many of them were sent."
        ),
        "frames": Field(
            MapOf(
                item=ListOf(item=_FRAME, fewest=0, most=_LIMITS.max_frames),
                most=_LIMITS.max_cameras,
            ),
            "What was kept of the pixels, by camera.",
            optional=True,
        ),
        "call": _CALL,
    },
)

EPISODE_FAILURE = _line(
    name="robot-episode-failure",
    title="A call that the policy did not answer.",
    keys={
        "step": Field(
            Whole(smallest=0, largest=_MOST_STEPS), "How many steps of the episode stand before it."
        ),
        "at_s": Field(Number(), "Monotonic clock when it had failed, in seconds."),
        "observation": Field(_Nested(OBSERVATION_SUMMARY), "What the policy was shown."),
        "error": Field(
            Text(longest=DocumentLimits().max_error_characters), "What went wrong, for people."
        ),
        "call": _CALL,
    },
)

#: The lines of an episode by the names of their documents.
DOCUMENTS: Mapping[str, DocumentKind] = {
    kind.name: kind for kind in (EPISODE, EPISODE_STEP, EPISODE_FAILURE)
}
