"""Tests of `vlmcore.vision.scenes` and `vlmcore.vision.questions`: a scene, and what is asked."""

from __future__ import annotations

import json

import pytest

from vlmcore.media.selections import (
    FrameReason,
    FrameSelection,
    SampledFrame,
    SamplingStrategy,
)
from vlmcore.vision.detections import Detection, Detections
from vlmcore.vision.events import VideoEvent, VideoEvents
from vlmcore.vision.places import Box
from vlmcore.vision.questions import VideoTask, reasoning_prompt
from vlmcore.vision.scenes import SceneState, scene_state
from vlmcore.vision.tracks import Tracks, track_detections


def followed(*lefts: float | None) -> Tracks:
    """Follow a cup of 10 by 10 pixels whose left side is at *lefts*; ``None`` is out of sight."""
    return track_detections(
        [
            Detections(
                height_px=60,
                width_px=80,
                items=[]
                if left is None
                else [Detection(place=Box.of((left, 0, left + 10, 10)), label="cup")],
            )
            for left in lefts
        ],
        rate_hz=2,
    )


def scene(*lefts: float | None, happened: str = "") -> SceneState:
    events = [VideoEvent(start_s=0, end_s=1, description=happened)] if happened else []
    return scene_state(followed(*lefts), VideoEvents(items=events))


def test_a_scene_says_when_each_thing_was_seen_and_where_it_is() -> None:
    """
    Its way is along where it was seen, not from the first to the last.
    """
    (cup,) = scene(None, 0, 3, 0, None).things
    assert (0.5, 1.5) == (cup.first_s, cup.last_s)
    assert (0, 0, 10, 10) == cup.box
    assert cup.moved_px == pytest.approx(6)
    assert not cup.is_there


@pytest.mark.parametrize(("lefts", "is_moving"), [((0, 1, 0, 1, 0), False), ((0, 3, 6), True)])
def test_boxes_of_a_still_thing_jitter(lefts: tuple[float, ...], *, is_moving: bool) -> None:
    """
    By less than two hundredths of the diagonal, however long.
    """
    assert is_moving is scene(*lefts).things[0].is_moving


def test_a_scene_is_told_in_a_line_for_each_thing_and_each_event() -> None:
    """
    A model is given it, and a person reads it; what happened keeps to its line.
    """
    lines = scene(0, 5, happened="it\nmoves\tfast").summary.splitlines()
    assert [
        "cup #1: 0.00 to 0.50 s, moving, there at the end",
        "0.00 to 1.00 s: it moves fast",
    ] == lines
    assert "Nothing was followed" in scene(None, None).summary


def test_the_document_of_a_scene_is_json() -> None:
    """
    Things and events together.
    """
    document = json.loads(json.dumps(scene(0, 5, happened="moves").to_document()))
    assert [0.5, 1, "moves"] == [
        document["duration_s"],
        document["things"][0]["track_id"],
        document["events"][0]["description"],
    ]


SHOWN = FrameSelection(
    frames=tuple(
        SampledFrame(timestamp_s=at_s, index=k, reason=FrameReason.COVERAGE, change=None)
        for k, at_s in enumerate((0.0, 1.25))
    ),
    strategy=SamplingStrategy.UNIFORM,
    scanned_frames=0,
    duration_s=2.0,
)


@pytest.mark.parametrize("task", VideoTask)
def test_a_question_says_the_times_of_the_frames_and_the_form_of_the_answer(
    task: VideoTask,
) -> None:
    """
    Whatever is wanted.
    """
    asked = reasoning_prompt(SHOWN, task, "Where is it?", max_events=7)
    for part in (task.value, "0.00, 1.25", "2.00 s", "Question: Where is it?", "at most 7"):
        assert part in asked
    assert "Question:" not in reasoning_prompt(SHOWN, task, " \n")


def test_what_is_known_of_the_scene_is_told_and_bounded() -> None:
    """
    A long history leaves room for the answer.
    """
    known = scene(0, 5, happened="x" * 1900)
    assert "cup #1" in reasoning_prompt(SHOWN, VideoTask.TIMELINE, scene=known)
    many = scene_state(
        followed(0),
        VideoEvents(
            items=[VideoEvent(start_s=0, end_s=0, description="x" * 1900) for _ in range(50)]
        ),
    )
    assert len(reasoning_prompt(SHOWN, VideoTask.TIMELINE, scene=many)) < 6000
