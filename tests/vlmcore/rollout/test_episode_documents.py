"""Tests of `vlmcore.rollout.episode_documents` and of the schemas that they follow."""

from __future__ import annotations

import base64
import json
from contextlib import suppress
from typing import Any

import attrs
import jsonschema
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from episode_cases import HEADER, INF, NAN, observation, some_steps, step
from vlmcore.contracts.documents import action_chunk_from_document
from vlmcore.contracts.json_text import read_json, write_json
from vlmcore.errors import DocumentError
from vlmcore.limits import EpisodeLimits
from vlmcore.rollout.episode_calls import EpisodeFailure
from vlmcore.rollout.episode_documents import (
    episode_failure_from_document,
    episode_failure_to_document,
    episode_header_from_document,
    episode_header_to_document,
    episode_step_from_document,
    episode_step_to_document,
)
from vlmcore.rollout.episode_frames import FrameEncoding, encode_frames
from vlmcore.rollout.episode_schemas import DOCUMENTS, EPISODE, EPISODE_FAILURE, EPISODE_STEP
from vlmcore.rollout.episodes import EpisodeHeader, EpisodeStep
from vlmcore.testing.contract_strategies import hostile_json, json_objects
from vlmcore.testing.rollout_strategies import episodes

VALIDATORS = {
    name: jsonschema.Draft202012Validator(kind.json_schema()) for name, kind in DOCUMENTS.items()
}
FRAMES = encode_frames(observation(frames=2), FrameEncoding.PNG)


def document(**fields: Any) -> dict[str, Any]:
    """Write a step with a frame, and change some of its keys."""
    seen = observation(frames=2).summary()
    return episode_step_to_document(step(observation=seen, frames=FRAMES), 0) | fields


def through_text(value: dict[str, Any]) -> Any:
    """Write a document as one line and read it."""
    text = write_json(value, indent=None)
    assert "\n" not in text
    return read_json(text)


@given(episodes(max_lines=1), st.integers(0, 99))
def test_what_is_written_is_read_back_exactly(
    episode: tuple[EpisodeHeader, tuple[EpisodeStep | EpisodeFailure, ...]], index: int
) -> None:
    """
    Any robot, any chunk, NaN and infinity too, any frames; and it is what the schemas say.
    """
    header, lines = episode
    first = through_text(episode_header_to_document(header))
    assert header == episode_header_from_document(first)
    VALIDATORS[EPISODE.name].validate(first)
    for made in lines:
        if isinstance(made, EpisodeFailure):
            line = through_text(episode_failure_to_document(made, index))
            assert made == episode_failure_from_document(line, index)
            VALIDATORS[EPISODE_FAILURE.name].validate(line)
            continue
        header.require_fits(made)
        line = through_text(episode_step_to_document(made, index))
        read = episode_step_from_document(line, index)
        assert made == read
        assert np.array_equal(np.signbit(made.chunk.values), np.signbit(read.chunk.values)) or not (
            made.chunk.is_finite
        )
        VALIDATORS[EPISODE_STEP.name].validate(line)


@given(hnp.arrays("float64", (2, 2), elements=st.sampled_from((NAN, INF, -INF, -0.0, 1.5))))
def test_what_is_not_finite_is_written_as_a_text(values: np.ndarray) -> None:
    """
    JSON does not know it, and a null would not say which.
    """
    written = episode_step_to_document(step(values), 0)["proposed"]["actions"]
    expected = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity", "-0.0": -0.0, "1.5": 1.5}
    assert [[expected[str(number)] for number in row] for row in values.tolist()] == written


def test_a_reader_of_plain_chunks_refuses_what_is_not_finite() -> None:
    """
    It must not take the text for a number, nor find a zero in its place.
    """
    written = episode_step_to_document(some_steps()[1], 0)["proposed"]
    with pytest.raises(
        DocumentError, match=r"actions\[1\]\[0\]: got the text 'NaN', expected a nu"
    ):
        action_chunk_from_document(written)


@pytest.mark.parametrize("name", DOCUMENTS)
def test_a_published_schema_is_one(name: str) -> None:
    """
    As a validator of JSON Schema says.
    """
    VALIDATORS[name].check_schema(DOCUMENTS[name].json_schema())
    json.dumps(DOCUMENTS[name].json_schema(), allow_nan=False)


def frame(**fields: Any) -> dict[str, Any]:
    """Write the one frame, with some of its keys changed."""
    return {"front": [document()["frames"]["front"][0] | fields]}


def proposed(**fields: Any) -> dict[str, Any]:
    """Write the proposed chunk, with some of its keys changed."""
    return dict(document()["proposed"]) | fields


@pytest.mark.parametrize(
    ("fields", "fault"),
    [
        ({"schema": "comfyui-vlm/robot-episode"}, "$.schema: got 'comfyui-vlm/robot-episode', exp"),
        ({"version": 2}, "$.version: got 2, expected 1"),
        ({"step": 1}, "$.step: got 1, expected 0: the steps in their order"),
        ({"step": True}, "$.step: got true, expected a whole number"),
        ({"at_s": "7"}, "$.at_s: got the text '7', expected a number"),
        ({"at_s": None}, "$.at_s: got null"),
        ({"vetted": [[0.0, "NaN"]] * 2}, "$.vetted[0][1]: got the text 'NaN', expected a number"),
        ({"vetted": [[0.0]] * 2}, "$.vetted: got shape [2, 1], expected that of the report"),
        ({"vetted": [[0.0], [0.0, 1.0]]}, "$.vetted[1]: got shape [2], expected that of vetted[0]"),
        ({"last_command": []}, "$.last_command: got 0 items, expected 1 to"),
        ({"last_command": [0.0]}, "$.last_command: got 1 numbers, expected 2"),
        ({"executed_steps": 3}, "$.executed_steps: got 3, expected 0 to 2"),
        ({"extra": 1}, "$.extra: is not a key of this document"),
        ({"observation": 3}, "$.observation: got 3, expected an object"),
        ({"observation": {}}, "$.observation.task: is missing"),
        ({"report": {}}, "$.report.embodiment: is missing"),
        ({"position": {"x": "1"}}, "$.position.x: got the text '1', expected a number"),
        ({"proposed": {}}, "$.proposed.actions: is missing"),
        ({"proposed": []}, "$.proposed: got a list, expected an object"),
        ({"proposed": proposed(actions=[["nan", 0], [0, 0]])}, "$.proposed.actions[0][0]: got the"),
        ({"proposed": proposed(actions=["NaN", [0, 0]])}, "$.proposed.actions[0]: got the text"),
        ({"proposed": proposed(actions="NaN")}, "$.proposed.actions: got the text 'NaN'"),
        ({"proposed": proposed(source="b")}, "$.report.policy_source: got 'test', expected that"),
        ({"frames": {"back": frame()["front"]}}, "$.frames['back']: is of no camera of the obs"),
        ({"frames": frame(data="_w==")}, "$.frames.front[0].data: got what is not base64"),
        ({"frames": frame(data="é")}, "$.frames.front[0].data: got what is not base64"),
        ({"frames": frame(data="AAAA")}, "$.frames.front[0].data: got what is not an image"),
        ({"frames": frame(encoding="base64-jpeg")}, "$.frames.front[0].data: got image/png, expe"),
        ({"frames": frame(encoding="base64-tiff")}, "$.frames.front[0].encoding: got 'base64-tif"),
        ({"frames": frame(frame_index=2)}, "$.frames['front']: got the frames [2], expected each"),
        ({"frames": frame(frame_index=0.0)}, "$.frames.front[0].frame_index: got 0.0"),
    ],
    ids=str,
)
def test_a_fault_is_told_with_its_place(fields: dict[str, Any], fault: str) -> None:
    """
    In the line and in each of the documents inside it.
    """
    with pytest.raises(DocumentError) as error:
        episode_step_from_document(document(**fields), 0)
    assert fault in str(error.value)


def test_all_faults_of_a_line_are_told_at_once() -> None:
    """
    Of every document in it.
    """
    broken = document(observation={}, frames=frame(data="AAAA"), step=4)
    with pytest.raises(DocumentError) as error:
        episode_step_from_document(broken, 0)
    starts = {path.split(".")[1].split("[")[0] for path, _ in error.value.faults}
    assert {"observation", "frames", "step"} == starts


@pytest.mark.parametrize("value", [None, [], 3, "x", {}, {"schema": None}])
def test_what_is_no_line_of_an_episode_is_refused(value: Any) -> None:
    """
    Each line says what it is.
    """
    with pytest.raises(DocumentError):
        episode_step_from_document(value, 0)
    with pytest.raises(DocumentError):
        episode_header_from_document(value)


def test_a_line_that_does_not_say_what_it_is_is_refused() -> None:
    """
    Elsewhere a document without a schema is one of version 1; a line of a file is not.
    """
    silent = document()
    del silent["schema"]
    with pytest.raises(DocumentError, match=r"\$\.schema: is missing"):
        episode_step_from_document(silent, 0)


def test_faults_of_the_robot_are_told_in_the_header() -> None:
    """
    With the path of the robot's document inside the header's.
    """
    broken = episode_header_to_document(HEADER)
    broken["embodiment"]["action_min"][1] = "low"
    broken["made_at"] = "a\nb"
    with pytest.raises(DocumentError, match=r"\$\.embodiment\.action_min\[1\]: got the text 'low'"):
        episode_header_from_document(broken)


def test_frames_over_the_limits_are_refused_before_they_are_decoded() -> None:
    """
    By the length of their text.
    """
    size = len(base64.b64decode(document()["frames"]["front"][0]["data"]))
    assert episode_step_from_document(document(), 0, limits=EpisodeLimits(max_frame_bytes=size))
    for limits, fault in (
        (EpisodeLimits(max_frame_bytes=9), r"\$\.frames\.front\[0\]: got \d+, limit is 9"),
        (EpisodeLimits(max_frames_bytes=9), r"\$\.frames: got \d+, limit is 9"),
    ):
        with pytest.raises(DocumentError, match=fault):
            episode_step_from_document(document(), 0, limits=limits)


@given(hostile_json() | json_objects().map(json.dumps), st.data())
def test_any_document_gives_a_step_or_our_error(text: str, data: st.DataObject) -> None:
    """
    Also one that is true but for one value of it.
    """
    line: Any = document()
    target = data.draw(st.sampled_from((line, *(v for v in line.values() if type(v) is dict))))
    try:
        target[data.draw(st.sampled_from(sorted(target)))] = read_json(text)
    except ValueError:
        return
    with suppress(DocumentError):
        episode_step_from_document(line, 0)


def test_metadata_of_the_largest_depth_is_read_back() -> None:
    """
    A chunk may hold it, and so may a line.
    """
    deep: dict[str, Any] = {}
    for _ in range(30):
        deep = {"a": deep}
    made = step()
    made = attrs.evolve(made, chunk=attrs.evolve(made.chunk, metadata=deep))
    assert episode_step_from_document(episode_step_to_document(made, 0), 0) == made
