"""What happens in a video, and when."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import attrs

from vlmcore._arguments import shown
from vlmcore._arrays import (
    plain_float,
    require_count,
    require_finite,
    require_finite_between,
)
from vlmcore.contracts.json_found import find_json
from vlmcore.contracts.json_text import read_json
from vlmcore.errors import ContractError, LimitExceededError
from vlmcore.limits import VisionLimits, require_at_most

__all__ = ["EVENTS_SCHEMA", "VideoEvent", "VideoEvents", "events_from_text"]

_LIMITS = VisionLimits()
_STARTS = ("start_s", "start", "start_time", "begin", "timestamp", "time", "time_s")
_ENDS = ("end_s", "end", "end_time", "stop")
_WORDS = ("description", "event", "action", "label", "summary", "name")
_THINGS = ("objects", "actors", "entities", "subjects")

EVENTS_SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "summary": {"type": "string"},
        "events": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "start_s": {"type": "number"},
                    "end_s": {"type": "number"},
                    "description": {"type": "string"},
                    "objects": {"type": "array", "items": {"type": "string"}},
                    "confidence": {"type": "number", "minimum": 0, "maximum": 1},
                },
                "required": ["start_s", "end_s", "description"],
            },
        },
    },
    "required": ["summary", "events"],
}
"""The JSON Schema of what a model is asked to answer about a video."""


def _tuple(value: Any) -> Any:
    return tuple(value) if isinstance(value, Iterable) and not isinstance(value, str) else value


@attrs.frozen(kw_only=True)
class VideoEvent:
    """
    Something that happens.

    Attributes:
        start_s: When it begins, in seconds of the video.
        end_s: When it ends, not before.
        description: What it is, in at most as many characters as `vlmcore.limits.VisionLimits`
            allows.
        objects: What takes part.
        confidence: How sure that is, 0 to 1; ``None`` if that was not said.
    """

    start_s: float = attrs.field(converter=plain_float)
    end_s: float = attrs.field(converter=plain_float)
    description: str
    objects: tuple[str, ...] = attrs.field(default=(), converter=_tuple)
    confidence: float | None = attrs.field(default=None, converter=plain_float)

    def __attrs_post_init__(self) -> None:
        require_finite(start_s=self.start_s, end_s=self.end_s)
        if not 0 <= self.start_s <= self.end_s:
            raise ContractError(
                "end_s", f"got {self.start_s:g} to {self.end_s:g} s, expected 0 or later, in order"
            )
        words = self.description
        if not isinstance(words, str) or not words.strip():
            raise ContractError("description", f"got {shown(words)}, expected what happens")
        require_at_most("max_event_characters", len(words), _LIMITS.max_event_characters)
        if not isinstance(self.objects, tuple) or not all(
            isinstance(each, str) for each in self.objects
        ):
            raise ContractError("objects", f"got {shown(self.objects)}, expected a list of names")
        if self.confidence is not None:
            require_finite_between(0.0, 1.0, confidence=self.confidence)


@attrs.frozen(kw_only=True)
class VideoEvents:
    """
    What happens in a video.

    Attributes:
        items: The events, by their start.
        summary: All of it in words; may be empty.

    Raises:
        ContractError: If a field is not as described.
        LimitExceededError: If there are more than `vlmcore.limits.VisionLimits` allows.
    """

    items: tuple[VideoEvent, ...] = attrs.field(default=(), converter=_tuple)
    summary: str = ""

    def __attrs_post_init__(self) -> None:
        if not isinstance(self.items, tuple) or not all(
            isinstance(each, VideoEvent) for each in self.items
        ):
            raise ContractError("items", f"got {shown(self.items)}, expected a list of VideoEvent")
        require_at_most("max_events", len(self.items), _LIMITS.max_events)
        starts = [event.start_s for event in self.items]
        if starts != sorted(starts):
            raise ContractError("items", "expected the events by their start")
        if not isinstance(self.summary, str):
            raise ContractError("summary", f"got {shown(self.summary)}, expected text")

    def __iter__(self) -> Iterator[VideoEvent]:
        return iter(self.items)

    def __len__(self) -> int:
        return len(self.items)

    def to_document(self) -> dict[str, Any]:
        """Return all of it as what JSON can hold; `EVENTS_SCHEMA` describes it."""
        return {
            "summary": self.summary,
            "events": [
                {
                    "start_s": event.start_s,
                    "end_s": event.end_s,
                    "description": event.description,
                    "objects": list(event.objects),
                    **({} if event.confidence is None else {"confidence": event.confidence}),
                }
                for event in self.items
            ],
        }


def events_from_text(text: str, *, duration_s: float, max_events: int = 256) -> VideoEvents:
    """
    Read the events in what a model wrote: JSON, in a fence or between words.

    Times outside the video are moved to its ends, an end before its start to the start, and events
    without a time or without words are left out: models write such. Of an answer that breaks off,
    the events before that are read.

    Args:
        text: What it wrote.
        duration_s: How long the video is.
        max_events: How many events are taken, from the first on.

    Raises:
        ContractError: If there is no JSON of events in it.
        LimitExceededError: If it is too large.

    Example:
        >>> said = '{"summary": "A dog.", "events": [{"start": 1, "end": 9, "action": "runs"}]}'
        >>> events_from_text(said, duration_s=4.0).items[0].end_s
        4.0
    """
    require_finite(duration_s=duration_s)
    if duration_s < 0:
        raise ContractError("duration_s", f"got {duration_s:g}, expected 0 or more")
    require_count(max_events=max_events)
    summary, entries = _answer(text)
    found = [
        event
        for event in (_event(entry, duration_s) for entry in entries if isinstance(entry, dict))
        if event is not None
    ]
    found.sort(key=lambda event: event.start_s)
    return VideoEvents(items=found[:max_events], summary=summary)


def _answer(text: str) -> tuple[str, list[Any]]:
    """Find the summary and the entries of the first part of *text* that has a list of events."""
    if not isinstance(text, str):
        raise ContractError("text", f"got {shown(text)}, expected what a model wrote")
    require_at_most("max_text_characters", len(text), _LIMITS.max_text_characters)
    found = find_json(text)
    lists: list[list[Any]] = []
    single: list[Any] = []
    problem = "holds no JSON"
    for part in found.parts:
        value, wrong = _read(part)
        if isinstance(value, dict) and isinstance(value.get("events"), list):
            summary = value.get("summary")
            return summary.strip() if isinstance(summary, str) else "", value["events"]
        if isinstance(value, list) and (not value or any(isinstance(each, dict) for each in value)):
            lists.append(value)
        if isinstance(value, dict) and _number(value, _STARTS) is not None:
            single.append(value)
        problem = f"holds JSON that cannot be read ({wrong})" if wrong else "holds another JSON"
    if single and found.is_cut:  # what was whole when the model had to stop
        return "", single
    if lists:
        return "", lists[0]
    raise ContractError("text", f"{problem}, expected {{summary, events: [...]}}")


def _read(part: str) -> tuple[Any, str]:
    try:
        return read_json(part), ""
    except LimitExceededError:
        raise
    except ContractError as error:
        return None, error.problem


def _event(entry: dict[str, Any], duration_s: float) -> VideoEvent | None:
    start = _number(entry, _STARTS)
    words = next((entry[key] for key in _WORDS if isinstance(entry.get(key), str)), "").strip()
    if start is None or not words:
        return None
    end = _number(entry, _ENDS)
    start = min(max(start, 0.0), duration_s)
    things: list[Any] = next(
        (entry[key] for key in _THINGS if isinstance(entry.get(key), list)), []
    )
    confidence = _number(entry, ("confidence", "score"))
    return VideoEvent(
        start_s=start,
        end_s=max(start, min(start if end is None else end, duration_s)),
        description=words[: _LIMITS.max_event_characters],
        objects=[each for each in things if isinstance(each, str)],
        confidence=None if confidence is None else min(max(confidence, 0.0), 1.0),
    )


def _number(entry: dict[str, Any], keys: tuple[str, ...]) -> float | None:
    for key in keys:
        value = entry.get(key)
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            return float(value)
        if isinstance(value, str):
            seconds = _seconds(value)
            if seconds is not None:
                return seconds
    return None


def _seconds(text: str) -> float | None:
    """Read a time as ``"2.5"``, ``"2.5s"`` or ``"1:02.5"``."""
    parts = text.strip().removesuffix("s").strip().split(":")
    try:
        numbers = [float(part) for part in parts]
    except ValueError:
        return None
    if len(numbers) > 3 or any(number < 0 for number in numbers):
        return None
    total = 0.0
    for number in numbers:
        total = total * 60 + number
    return total if total < 1e9 else None
