"""Tests of `vlmcore_comfy.nodes.videos`: frames, tracks, scenes and events, without ComfyUI."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vlmcore.errors import ContractError
from vlmcore.vision.detections import Detection, Detections
from vlmcore.vision.places import Box
from vlmcore_comfy.hosting import AloneHost, NodeStoppedError
from vlmcore_comfy.nodes.videos import (
    STRATEGIES,
    TASKS,
    events_from_json,
    frame_sampler,
    reasoning_prompt,
    scene_state,
    track_crops,
    track_detections,
    tracks_from_json,
)
from vlmcore_comfy.video_frames import Detected

torch = pytest.importorskip("torch")

TRACKED = "Track-change priority"
HEIGHT, WIDTH = 32, 48


def numbered(count: int, height: int = HEIGHT, width: int = WIDTH) -> Any:
    """Build frames of one grey each, by which they are known again."""
    greys = torch.arange(count) % 256 / 255.0
    return greys[:, None, None, None].expand(count, height, width, 3)


def sample(frames: Any, **changes: Any) -> Any:
    return frame_sampler(
        **{
            "frames": frames,
            "fps": 10.0,
            "max_frames": 4,
            "strategy": STRATEGIES[0],
            "minimum_gap_seconds": 0.15,
            "thumbnail_size": 96,
            **changes,
        }
    )


def seen(*places: tuple[float, float] | None) -> Detected:
    """Build what was found in frames: a cup of 10 by 10 pixels at each place, or nothing."""
    return Detected(
        tuple(
            Detections(
                height_px=HEIGHT,
                width_px=WIDTH,
                items=[]
                if at is None
                else [Detection(place=Box.of((*at, at[0] + 10, at[1] + 10)), label="cup")],
            )
            for at in places
        ),
        10.0,
    )


def follow(*places: tuple[float, float] | None) -> Any:
    return track_detections(seen(*places), 0.3, 5)[0]


def shown(images: Any) -> list[int]:
    return (images.amax(dim=(1, 2, 3)) * 255).round().int().tolist()


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("count", [1, 2, 5, 100])
def test_the_selection_says_which_frames_were_taken_and_when(strategy: str, count: int) -> None:
    """
    The index of a frame is its place in what was given, its time follows from it.
    """
    tracks = follow(*[(0.0, 0.0)] * count)
    frames, selection, said, diagnostics = sample(numbered(count), strategy=strategy, tracks=tracks)
    told = json.loads(said)["frames"]
    assert shown(frames) == [frame["index"] for frame in told]
    assert [frame["index"] / 10 for frame in told] == pytest.approx(
        [frame["timestamp_s"] for frame in told]
    )
    assert json.loads(said) == selection.to_document()
    assert {"input_frames": count, "selected_frames": len(told), "fps": 10.0}.items() <= (
        json.loads(diagnostics).items()
    )


@given(
    count=st.integers(1, 40),
    fps=st.floats(0.01, 1000),
    most=st.integers(1, 50),
    gap=st.floats(0, 60),
    strategy=st.sampled_from(STRATEGIES[:-1]),
)
def test_frames_are_in_order_apart_and_no_more_than_asked_for(
    *, count: int, fps: float, most: int, gap: float, strategy: str
) -> None:
    """
    Whatever the video: at least one, and the gap between each two.
    """
    selection = sample(
        numbered(count, 4, 4), fps=fps, max_frames=most, minimum_gap_seconds=gap, strategy=strategy
    )[1]
    times = selection.timestamps_s
    assert 1 <= len(times) <= min(most, count)
    assert all(b - a >= gap - 1e-6 for a, b in pairwise(times))


@pytest.mark.parametrize("strategy", STRATEGIES[:-1])
def test_ten_thousand_frames_are_looked_at(strategy: str) -> None:
    """
    A long video is covered to its end.
    """
    selection = sample(numbered(10_000, 4, 4), strategy=strategy)[1]
    assert 4 == len(selection.frames)
    assert 999.9 == selection.duration_s


def test_frames_that_need_no_look_are_not_converted() -> None:
    """
    These would be 23 GiB as 8-bit values; the tensor repeats one number.
    """
    many = torch.zeros(1, 1, 1, 1).expand(10_000, 900, 900, 3)
    assert (4, 900, 900, 3) == tuple(sample(many, strategy="Uniform coverage")[0].shape)


@pytest.mark.parametrize("strategy", STRATEGIES[:-1])
def test_frames_that_are_all_equal_are_covered_evenly(strategy: str) -> None:
    """
    From the first to the last.
    """
    selection = sample(torch.full((31, 8, 8, 3), 0.5), strategy=strategy)[1]
    assert [0, 10, 20, 30] == [frame.index for frame in selection.frames]


def test_the_frame_in_which_a_thing_appears_is_taken() -> None:
    """
    Nothing else changes: the picture is the same throughout.
    """
    tracks = follow(*[None] * 13, *[(5.0, 5.0)] * 18)
    still = torch.full((31, HEIGHT, WIDTH, 3), 0.5)
    selection = sample(still, strategy=TRACKED, tracks=tracks)[1]
    assert {13: "track"} == {
        frame.index: frame.reason.value
        for frame in selection.frames
        if frame.reason.value != "coverage"
    }


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"frames": torch.zeros(5, 8, 8)}, "frames: .*Convert Mask to Image"),
        ({"frames": torch.zeros(0, 8, 8, 3)}, "frames: .*at least one"),
        ({"frames": None}, "frames: got None, expected an IMAGE"),
        ({"frames": torch.full((2, 4, 4, 3), float("nan"))}, r"frames\[0\]: 48 of 48 values"),
        ({"strategy": TRACKED}, "tracks: are not there, expected them for"),
        ({"tracks": "tracks"}, "tracks: got 'tracks', expected tracks"),
        ({"tracks": seen((0.0, 0.0))}, "tracks: got Detected.*, expected tracks"),
        ({"tracks": follow((0.0, 0.0))}, "tracks: are of 1 frames, expected the 5 here"),
    ],
)
def test_what_cannot_be_sampled_is_refused_in_one_sentence(
    changes: dict[str, Any], said: str
) -> None:
    """
    By the name of the socket.
    """
    with pytest.raises(ContractError, match=said) as caught:
        sample(**{"frames": numbered(5), **changes})
    assert "\n" not in str(caught.value)


class Impatient(AloneHost):
    """A person who stops the graph when the node asks for the third time."""

    asked = 0

    def raise_if_stopped(self) -> None:
        self.asked += 1
        if self.asked > 2:
            raise NodeStoppedError


def test_a_person_who_stops_the_graph_does_not_wait_for_the_video() -> None:
    """
    It ends between two frames, or two crops.
    """
    host = Impatient()
    with pytest.raises(NodeStoppedError):
        sample(numbered(10_000, 8, 8), comfyui=host)
    assert 3 == host.asked
    tracks = follow(*[(5.0, 5.0)] * 10)
    with pytest.raises(NodeStoppedError):
        track_crops(numbered(10), tracks, 10, 10, 64, 1.0, comfyui=Impatient())


def test_detections_become_tracks() -> None:
    """
    With their count, and a document.
    """
    tracks, said, count = track_detections(seen((0.0, 0.0), None, (1.0, 0.0)), 0.3, 1)
    assert 1 == count == len(tracks)
    assert [0, 2] == [point["frame"] for point in json.loads(said)["tracks"][0]["points"]]
    assert (tracks, 1) == tracks_from_json(said)
    with pytest.raises(ContractError, match="detections: got None, expected detections"):
        track_detections(None, 0.3, 1)


def test_a_thing_is_cut_out_of_frames_spread_over_its_time() -> None:
    """
    Each crop comes from the frame that the list names, and is as large as asked for.
    """
    tracks = follow(*[(5.0, 5.0)] * 9)
    crops, said = track_crops(numbered(9), tracks, 3, 32, 64, 1.0)
    manifest = json.loads(said)
    assert (3, 64, 64, 3) == tuple(crops.shape)
    assert [0, 4, 8] == shown(crops) == [each["frame"] for each in manifest]
    assert [0, 1, 2] == [each["crop"] for each in manifest]
    assert {"track_id": 1, "label": "cup", "box": [5, 5, 15, 15]}.items() <= manifest[0].items()


def test_where_there_are_too_many_crops_each_thing_gets_its_share() -> None:
    """
    Nothing is left out as long as there is one for each.
    """
    places = [(float(7 * i), 0.0) for i in range(3)]
    found = Detected(
        tuple(
            Detections(
                height_px=HEIGHT,
                width_px=WIDTH,
                items=[
                    Detection(place=Box.of((x, y, x + 5, y + 5)), label="cup") for x, y in places
                ],
            )
            for _ in range(4)
        ),
        1.0,
    )
    tracks = track_detections(found, 0.3, 0)[0]

    def ids(most: int) -> list[int]:
        said = track_crops(numbered(4), tracks, 4, most, 64, 1.0)[1]
        return [each["track_id"] for each in json.loads(said)]

    assert [1, 1, 2, 2, 3] == ids(5)
    assert [1, 2, 3] == ids(3)
    assert [1, 2] == ids(2)


@pytest.mark.parametrize(
    ("frames", "tracks", "said"),
    [
        (numbered(2), follow((0.0, 0.0)), "tracks: are of 1 frames, expected the 2 here"),
        (numbered(1, 8, 8), follow((0.0, 0.0)), "are of frames of 48 x 32 pixels, expected the 8"),
        (numbered(1), follow(None), "tracks: hold nothing"),
        (numbered(1), {}, "tracks: got {}, expected tracks"),
        (torch.zeros(1, 8, 8), follow((0.0, 0.0)), "frames: .*Convert Mask"),
    ],
)
def test_what_cannot_be_cut_out_is_refused(frames: Any, tracks: Any, said: str) -> None:
    """
    Instead of cutting something else.
    """
    with pytest.raises(ContractError, match=said):
        track_crops(frames, tracks, 3, 32, 64, 1.35)


def test_a_video_goes_all_the_way_to_the_state_of_its_scene_and_back() -> None:
    """
    Detections, tracks, frames, a question, an answer, events, a scene, and the next question.
    """
    tracks = follow((0.0, 0.0), (4.0, 0.0), (8.0, 0.0))
    selection = sample(numbered(3), tracks=tracks)[1]
    question, schema = reasoning_prompt(selection, TASKS[-1], "Where does it go?", 5)
    assert "Where does it go?" in question
    assert {"summary", "events"} == set(json.loads(schema)["required"])

    answer = (
        'Sure: {"summary": "It goes.", "events": [{"start_s": 0, "end_s": 9, "event": "goes"}]}'
    )
    events, summary, normalized = events_from_json(answer, selection, 5)
    assert "It goes." == summary
    assert 0.2 == json.loads(normalized)["events"][0]["end_s"]

    state, said, told = scene_state(tracks, events)
    assert [1] == [thing["track_id"] for thing in json.loads(said)["things"]]
    assert "0.00 to 0.20 s: goes" in told
    assert told in reasoning_prompt(selection, TASKS[0], "", 5, state)[0]


def test_every_task_asks_for_something_else() -> None:
    """
    And all for the same form.
    """
    selection = sample(numbered(3))[1]
    asked = {reasoning_prompt(selection, task, "Why?", 5)[0] for task in TASKS}
    assert len(TASKS) == len(asked)


SELECTION = sample(numbered(3))[1]


@pytest.mark.parametrize(
    ("node", "inputs", "said"),
    [
        (reasoning_prompt, (None, TASKS[0], "", 5), "selection: got None, expected a selection"),
        (reasoning_prompt, (SELECTION, TASKS[-1], " ", 5), "question: is blank"),
        (reasoning_prompt, (SELECTION, TASKS[0], "", 5, "x"), "scene_state: got 'x'"),
        (events_from_json, ("{}", "x", 5), "selection: got 'x'"),
        (events_from_json, ("no", SELECTION, 5), "text: holds no JSON"),
        (scene_state, (None,), "tracks: got None"),
        (scene_state, (follow(None), "x"), "events: got 'x', expected events"),
    ],
)
def test_what_comes_through_a_wrong_socket_is_refused_by_its_name(
    node: Any, inputs: tuple[Any, ...], said: str
) -> None:
    """
    Graphs that programs write may join anything.
    """
    with pytest.raises(ContractError, match=said):
        node(*inputs)
