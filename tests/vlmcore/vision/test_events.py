"""Tests of `vlmcore.vision.events`: what models write about videos, as events."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vlmcore.errors import ContractError, LimitExceededError
from vlmcore.limits import VisionLimits
from vlmcore.vision.events import EVENTS_SCHEMA, VideoEvent, VideoEvents, events_from_text

WHOLE = {
    "summary": "A dog.",
    "events": [
        {"start_s": 0.5, "end_s": 1, "description": "runs", "objects": ["dog"], "confidence": 0.5},
        {"start_s": 2, "end_s": 3, "description": "sleeps"},
    ],
}


def read(answer: Any, **options: Any) -> list[tuple[float, float, str]]:
    """Read an answer about a video of 4 s."""
    text = answer if isinstance(answer, str) else json.dumps(answer)
    found = events_from_text(text, **{"duration_s": 4.0, **options})
    return [(event.start_s, event.end_s, event.description) for event in found]


RUNS, SLEEPS = (0.5, 1.0, "runs"), (2.0, 3.0, "sleeps")


@pytest.mark.parametrize(
    "around",
    [
        "{}",
        "Here it is:\n{}\nI hope that helps [1].",
        "```json\n{}\n```",
        "I see [1, 2] dogs. {}",
        '{{"thoughts": []}} {}',
    ],
)
def test_events_are_found_wherever_they_are_in_an_answer(around: str) -> None:
    """
    Alone, between words, in a fence, and after other JSON.
    """
    text = around.format(json.dumps(WHOLE))
    assert [RUNS, SLEEPS] == read(text)
    assert "A dog." == events_from_text(text, duration_s=4).summary


def test_a_list_of_events_needs_no_summary() -> None:
    """
    Some models leave the object around it away.
    """
    assert [RUNS, SLEEPS] == read(WHOLE["events"])
    assert [] == read([])


def test_of_an_answer_that_breaks_off_the_events_before_are_read() -> None:
    """
    A model that has used up its tokens has written some of them whole.
    """
    assert [RUNS] == read(json.dumps(WHOLE)[:-20])


def test_other_words_for_the_same_are_understood() -> None:
    """
    Times as text too: seconds, or minutes and seconds.
    """
    said = [
        {"timestamp": "1.5 s", "action": "a"},
        {"begin": "0:02", "stop": "00:00:03.5", "event": "b", "actors": ["x", 3]},
    ]
    assert [(1.5, 1.5, "a"), (2.0, 3.5, "b")] == read(said)
    assert ("x",) == events_from_text(json.dumps(said), duration_s=4).items[1].objects


@pytest.mark.parametrize(
    ("entry", "event"),
    [
        ({"start": -1, "end": 99}, (0.0, 4.0)),
        ({"start": 3, "end": 1}, (3.0, 3.0)),
        ({"start": 7}, (4.0, 4.0)),
        ({"start": "nan", "time": 1}, (1.0, 1.0)),
        ({"start": True, "time": 1}, (1.0, 1.0)),
        ({"start": "1:2:3:4", "time": 2, "end": "later"}, (2.0, 2.0)),
    ],
)
def test_times_are_moved_into_the_video(entry: dict[str, Any], event: tuple[float, float]) -> None:
    """
    And what is no time is none.
    """
    assert [(*event, "x")] == read([{**entry, "description": "x"}])


@pytest.mark.parametrize(
    "entry", [{}, {"start": 1}, {"description": "x"}, {"start": 1, "description": " "}, 3, None]
)
def test_what_has_no_time_or_no_words_is_left_out(entry: Any) -> None:
    """
    The others are read.
    """
    assert [(1.0, 1.0, "x")] == read({"events": [entry, {"start": 1, "description": "x"}]})


def test_events_are_in_order_and_no_more_than_asked_for() -> None:
    """
    The first ones are kept, whatever came first in the answer.
    """
    entries = [{"start": at, "event": str(at)} for at in (3, 1, 2)]
    assert [(1.0, 1.0, "1"), (2.0, 2.0, "2")] == read(entries, max_events=2)


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ("A dog runs.", "text: holds no JSON, expected"),
        ("", "text: holds no JSON"),
        ('{"summary": "x"}', "text: holds another JSON"),
        ('{"events": {"start": 1}}', "text: holds another JSON"),
        ("[1, 2]", "text: holds another JSON"),
        ('{"events": [{"start": 1e999}]}', "cannot be read .*1e999"),
        ('{"events": [], "events": []}', "cannot be read .*twice"),
        ("[" * 100_000, "text: holds no JSON"),
    ],
)
def test_an_answer_without_events_is_refused_with_what_it_holds(answer: str, said: str) -> None:
    """
    In one sentence, that says what was expected.
    """
    with pytest.raises(ContractError, match=said):
        events_from_text(answer, duration_s=4)
    with pytest.raises(ContractError, match="text: got None, expected what a model wrote"):
        events_from_text(None, duration_s=4)  # type: ignore[arg-type] # what a socket may give


def test_an_endless_answer_is_refused_unread() -> None:
    """
    By its length.
    """
    with pytest.raises(LimitExceededError, match="max_text_characters"):
        events_from_text("[]" * VisionLimits().max_text_characters, duration_s=1)


@pytest.mark.parametrize(
    "options", [{"duration_s": float("nan")}, {"duration_s": -1.0}, {"max_events": 0}]
)
def test_a_video_has_a_length(options: dict[str, Any]) -> None:
    """
    Of 0 for a single frame.
    """
    assert [(0.0, 0.0, "x")] == read([{"start": 1, "event": "x"}], duration_s=0.0)
    with pytest.raises(ContractError, match=next(iter(options))):
        read(WHOLE, **options)


@given(
    answer=st.text()
    | st.recursive(
        st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=5),
        lambda inner: (
            st.lists(inner, max_size=4)
            | st.dictionaries(
                st.sampled_from(
                    ["events", "start_s", "end", "event", "objects", "confidence", "x"]
                ),
                inner,
                max_size=6,
            )
        ),
    ).map(json.dumps),
    duration_s=st.floats(0, 1e6),
)
def test_any_answer_gives_events_within_the_video_or_an_error_of_ours(
    answer: str, duration_s: float
) -> None:
    """
    And what was read can be written and read again, unchanged.
    """
    try:
        found = events_from_text(answer, duration_s=duration_s)
    except ContractError:
        return
    assert all(0 <= event.start_s <= event.end_s <= duration_s for event in found)
    written = json.dumps(found.to_document())
    assert found == events_from_text(written, duration_s=duration_s)


def test_the_document_is_what_its_schema_describes() -> None:
    """
    The same that a model is asked to write.
    """
    jsonschema = pytest.importorskip("jsonschema")
    found = events_from_text(json.dumps(WHOLE), duration_s=4)
    jsonschema.Draft202012Validator(EVENTS_SCHEMA).validate(found.to_document())


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"start_s": 2}, "end_s: got 2 to 1 s"),
        ({"start_s": -1}, "end_s: got -1 to 1 s"),
        ({"end_s": float("inf")}, "end_s"),
        ({"description": " "}, "description: got ' '"),
        ({"description": None}, "description: got None"),
        ({"description": "x" * 2001}, "max_event_characters"),
        ({"objects": "dog"}, "objects: got 'dog', expected a list of names"),
        ({"objects": [1]}, "objects"),
        ({"confidence": 2}, "confidence"),
    ],
)
def test_an_event_is_a_time_and_words(fields: dict[str, Any], said: str) -> None:
    """
    What is not, cannot be made.
    """
    event = {"start_s": 0, "end_s": 1, "description": "x"}
    VideoEvent(**event)
    with pytest.raises(ContractError, match=said):
        VideoEvent(**{**event, **fields})


def test_events_are_a_list_in_order() -> None:
    """
    Whoever makes them sorts them.
    """
    early, late = (VideoEvent(start_s=at, end_s=9, description="x") for at in (1, 2))
    assert [early, late] == list(VideoEvents(items=[early, late]))
    for wrong in ([late, early], "no", [None]):
        with pytest.raises(ContractError, match="items"):
            VideoEvents(items=wrong)
    with pytest.raises(ContractError, match="summary"):
        VideoEvents(summary=None)  # type: ignore[arg-type] # what a caller may pass
