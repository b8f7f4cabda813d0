"""Tests of `vlmcore.contracts.documents`: taken whole, or refused with all faults."""

from __future__ import annotations

import contextlib
import json
import math
from collections.abc import Callable
from typing import Any

import attrs
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vlmcore.contracts.actions import ActionChunk, Stream
from vlmcore.contracts.documents import (
    action_chunk_from_document,
    action_chunk_from_json,
    action_chunk_to_document,
    action_chunk_to_json,
    action_step_from_document,
    action_step_from_json,
    action_step_to_document,
    action_step_to_json,
    embodiment_from_document,
    embodiment_from_json,
    embodiment_to_document,
    embodiment_to_json,
    observation_summary_from_document,
    observation_summary_from_json,
    observation_summary_to_document,
    observation_summary_to_json,
)
from vlmcore.contracts.embodiment import ActionDim, Embodiment, LimitsSource, Reference
from vlmcore.contracts.observation import Observation
from vlmcore.contracts.presets import PRESETS, find_embodiment
from vlmcore.errors import ContractError, DocumentError, LimitExceededError
from vlmcore.limits import DocumentLimits
from vlmcore.testing.contract_strategies import (
    action_chunks,
    embodiments,
    hostile_json,
    json_objects,
    observations,
)

EMBODIMENT_KEYS = [
    "schema",
    "version",
    "name",
    "state_names",
    "action_names",
    "action_min",
    "action_max",
    "max_delta_per_step",
    "control_hz",
    "action_mode",
    "camera_names",
    "notes",
]
CHUNK = ActionChunk(
    values=[[0.1, -0.0], [5e-324, 1.0]],
    names=("x", "gripper"),
    source="policy",
    observed_at_s=3.5,
    streams=(Stream(name="arm", start=0, end=1), Stream(name="hand", start=1, end=2)),
    metadata={"latency_ms": 12.5, "tags": ["a", None]},
)
SUMMARY = Observation(
    instruction="Pick it up.",
    state=[0.0, 1.0],
    images={"front": np.zeros((2, 4, 5, 3), np.uint8)},
    frame_rate_hz=30,
    captured_at_s=12.5,
).summary()
READERS: list[Callable[[Any], Any]] = [
    embodiment_from_document,
    observation_summary_from_document,
    action_chunk_from_document,
    action_step_from_document,
]
WRITTEN: list[tuple[Callable[[Any], Any], dict[str, Any]]] = [
    (embodiment_from_document, embodiment_to_document(PRESETS["ALOHA bimanual template"])),
    (observation_summary_from_document, observation_summary_to_document(SUMMARY)),
    (action_chunk_from_document, action_chunk_to_document(CHUNK)),
    (action_step_from_document, action_step_to_document(CHUNK.step(0))),
]


def robot(**changes: Any) -> dict[str, Any]:
    """Write an embodiment of old, with *changes*; None takes a key away."""
    document = embodiment_to_document(find_embodiment("generic_eef_delta_gripper")) | changes
    return {key: value for key, value in document.items() if value is not None}


def faults_of(read: Callable[[Any], Any], document: Any) -> dict[str, str]:
    with pytest.raises(DocumentError) as caught:
        read(document)
    return dict(caught.value.faults)


@pytest.mark.parametrize("label", PRESETS)
def test_a_template_is_written_with_exactly_the_keys_of_old(label: str) -> None:
    """
    Readers outside this project know these and no others.
    """
    document = embodiment_to_document(PRESETS[label])

    assert EMBODIMENT_KEYS == list(document)
    assert ("comfyui-vlm/robot-embodiment", 1) == (document["schema"], document["version"])
    assert PRESETS[label] == embodiment_from_document(document)


def test_a_document_of_old_without_schema_and_version_with_max_delta_loads() -> None:
    """
    As version 1; numbers of a delta mode are changes, a gripper's are targets.
    """
    old = robot(schema=None, version=None, notes=None)
    old["max_delta"] = old.pop("max_delta_per_step")
    loaded = embodiment_from_document(old)

    wanted = attrs.evolve(find_embodiment("generic_eef_delta_gripper"), notes="")
    assert wanted == loaded
    assert LimitsSource.TEMPLATE is loaded.limits_source


@pytest.mark.parametrize(
    ("mode", "references"),
    [
        ("absolute joint position", [Reference.ABSOLUTE, Reference.ABSOLUTE]),
        ("LIBERO normalized Delta template", [Reference.DELTA, Reference.ABSOLUTE]),
        ("joint velocity", [Reference.VELOCITY, Reference.ABSOLUTE]),
        ("joint_velocities", [Reference.VELOCITY, Reference.ABSOLUTE]),
        ("", [Reference.ABSOLUTE, Reference.ABSOLUTE]),
    ],
)
def test_what_numbers_of_old_refer_to_is_read_from_the_mode(
    mode: str, references: list[Reference]
) -> None:
    """
    Once, when the document is read: nothing reads the text of a mode afterwards.
    """
    names, ones = ["x", "Left Gripper"], [1.0, 1.0]
    old = robot(
        action_mode=mode,
        action_names=names,
        action_min=[-1, -1],
        action_max=ones,
        max_delta_per_step=ones,
    )

    assert references == [dim.reference for dim in embodiment_from_document(old).actions.dims]


DOUBTFUL_MODES = [
    "absolute joint position (velocity-limited)",
    "position, not delta",
    "max delta 0.1 per step",
    "velocity_limit 2",
    "without deltas",
    "delta velocity",
    "DeltaPose",
]


@pytest.mark.parametrize("mode", DOUBTFUL_MODES)
def test_a_mode_that_speaks_of_a_limit_does_not_make_targets_rates_or_changes(mode: str) -> None:
    """
    "delta" and "velocity" were looked for anywhere in free text, and targets became changes.
    """
    said = robot(action_mode=mode)
    references = dict.fromkeys(said["action_names"][:6], "absolute")

    assert {
        "$.action_mode": f"got {mode!r}, which can be read in two ways: say in action_references "
        "what these are, one of absolute, delta, chunk_relative, velocity, torque: "
        "dx, dy, dz, drx, dry, drz"
    } == faults_of(embodiment_from_document, said)
    loaded = embodiment_from_document(said | {"action_references": references})
    assert {Reference.ABSOLUTE} == {dim.reference for dim in loaded.actions.dims}
    assert loaded == embodiment_from_document(embodiment_to_document(loaded))


def test_what_is_left_unsaid_of_a_doubtful_mode_is_named() -> None:
    """
    Grippers are never in doubt.
    """
    some = dict.fromkeys(("dx", "dy", "drx", "dry", "drz"), "delta")
    said = robot(action_mode="delta, no absolute", action_references=some)
    assert faults_of(embodiment_from_document, said)["$.action_mode"].endswith(
        "velocity, torque: dz"
    )


def test_what_the_keys_of_old_cannot_say_has_keys_of_its_own() -> None:
    """
    And only where it is there; steps without a bound are as wide as the range for old readers.
    """
    template = find_embodiment("lerobot_so100_so101_template")
    dims = (
        ActionDim(name="turn", unit="deg", low=0, high=360, period=360, max_rate=90),
        ActionDim(name="gripper", low=-1, high=1, levels=(-1, 1)),
        ActionDim(
            name="slide",
            reference=Reference.DELTA,
            low=-1,
            high=1,
            max_step=0.1,
            position_low=-8,
            position_high=0,
        ),
    )
    mine = attrs.evolve(
        template,
        actions=attrs.evolve(template.actions, dims=dims),
        limits_source=LimitsSource.DATASET,
        cameras=(attrs.evolve(template.cameras[0], height_px=480, width_px=640),),
    )
    document = embodiment_to_document(mine)

    assert [3.0, 2.0, 0.1] == document["max_delta_per_step"]
    assert {
        "limits_source": "dataset",
        "action_units": {"turn": "deg"},
        "action_references": {"slide": "delta"},
        "action_max_rates": {"turn": 90.0},
        "action_periods": {"turn": 360.0},
        "action_levels": {"gripper": [-1.0, 1.0]},
        "action_position_min": {"slide": -8.0},
        "action_position_max": {"slide": 0.0},
        "action_steps_unbounded": ["gripper"],
        "camera_sizes": {"observation.images.front": [480, 640]},
    } == {key: document[key] for key in document if key not in EMBODIMENT_KEYS}
    assert mine == embodiment_from_document(document)


def test_all_faults_are_told_at_once_each_with_its_place() -> None:
    """
    A person mends a file once, not once a fault.
    """
    wrong = robot(
        name=None,
        state_names="xyz",
        action_min=[-0.05, -0.05, -0.05, 9, 0.1, -0.25, -1],
        control_hz=True,
        camera_names=["front", "front"],
        note="mine",
        action_periods={"dx": 0.1, "nobody": 1.0},
        action_position_min={"dy": 1.0, "gripper": 0.0, "someone": 0.0},
        action_position_max={"gripper": 1.0},
        camera_sizes={"side": [480, 640]},
    )

    assert {
        "$.name": "is missing",
        "$.state_names": "got the text 'xyz', expected a list",
        "$.control_hz": "got true, expected a number",
        "$.note": "is not a key of this document; did you mean 'notes'?",
        "$.camera_names": "got ['front'] more than once, expected each name once",
        "$.action_min[3]": "got [9, 0.25] for 'drx', expected low below high",
        "$.action_min[4]": "got [0.1, 0.25] for 'dry', expected a range with 0 in it: "
        "standing still must be possible",
        "$.action_periods.dx": "got 0.1 with Reference.DELTA for 'dx', expected none: "
        "only a target that can take every angle comes round again",
        "$.action_periods.nobody": "is not one of action_names",
        "$.action_position_max.dy": "got None for 'dy', expected both or neither",
        "$.action_position_min.gripper": "got 0 with Reference.ABSOLUTE for 'gripper', expected "
        "none: only changes, rates and offsets that can take every value add up to a position",
        "$.action_position_min.someone": "is not one of action_names",
        "$.camera_sizes.side": "is not one of camera_names",
    } == faults_of(embodiment_from_document, wrong)


@pytest.mark.parametrize(
    ("changes", "path", "problem"),
    [
        ({"action_min": [-1.0]}, "$.action_min", "got 1 numbers, expected one an action, 7"),
        ({"action_max": [1.0] * 8}, "$.action_max", "got 8 numbers"),
        ({"max_delta_per_step": [1.0]}, "$.max_delta_per_step", "got 1 numbers"),
        ({"max_delta_per_step": [0.0] * 7}, "$.max_delta_per_step[0]", "above 0"),
        ({"max_delta": [1.0] * 7}, "$.max_delta", "beside 'max_delta_per_step'"),
        ({"max_delta_per_step": None}, "$.max_delta_per_step", "is missing"),
        ({"action_mode": None}, "$.action_mode", "is missing"),
        ({"action_mode": "a\nb"}, "$.action_mode", "no control characters"),
        ({"name": "a\x1b"}, "$.name", "no control characters"),
        ({"name": " "}, "$.name", "blank"),
        ({"state_names": []}, "$.state_names", "got 0 items, expected 1 to 2048"),
        ({"state_names": ["x", 1]}, "$.state_names[1]", "got 1, expected a text"),
        ({"state_names": ["x", "\u202e"]}, "$.state_names[1]", "no control characters"),
        ({"action_min": [-1.0, "1.5"]}, "$.action_min[1]", "got the text '1.5'"),
        ({"action_min": [-1.0, math.nan]}, "$.action_min[1]", "got nan, expected a finite"),
        ({"action_min": [-1.0, 10**400]}, "$.action_min[1]", "that float64 can hold"),
        ({"action_min": [-1.0, None]}, "$.action_min[1]", "got null, expected a number"),
        ({"action_min": {"dx": 1}}, "$.action_min", "got an object, expected a list"),
        ({"control_hz": 0}, "$.control_hz", "above 0"),
        ({"control_hz": 10_001}, "$.control_hz", "at most 10000"),
        ({"camera_names": [str(i) for i in range(17)]}, "$.camera_names", "got 17 items"),
        ({"camera_sizes": {"a": [1]}}, "$.camera_sizes.a", "got 1 items"),
        (
            {"camera_sizes": {"observation.images.front": [4097, 4096]}},
            "$.camera_sizes['observation.images.front']",
            "limit is 16777216",
        ),
        ({"limits_source": "mine"}, "$.limits_source", "expected one of 'template', 'dataset'"),
        ({"action_references": {"dx": "sideways"}}, "$.action_references.dx", "'absolute'"),
        ({"action_max_rates": {"dx": 1.0}}, "$.max_delta_per_step[0]", "expected 0.05: action_max"),
        ({"action_levels": {"gripper": [1, 0]}}, "$.action_levels.gripper", "above the one"),
        ({"action_steps_unbounded": ["dx"]}, "$.max_delta_per_step[0]", "got neither"),
        ({"action_steps_unbounded": ["a"]}, "$.action_steps_unbounded.a", "not one of"),
        ({"notes": "x" * 16_385}, "$.notes", "got 16385 characters"),
        ({"schema": "comfyui-vlm/robot-actions"}, "$.schema", "got 'comfyui-vlm/robot-actions'"),
        ({"schema": 3}, "$.schema", "got 3, expected 'comfyui-vlm/robot-embodiment'"),
        ({"version": 2}, "$.version", "got 2, expected 1"),
        ({"version": True}, "$.version", "got True, expected 1"),
        ({"version": "1"}, "$.version", "got '1', expected 1"),
    ],
)
def test_a_fault_of_an_embodiment_has_its_place(
    changes: dict[str, Any], path: str, problem: str
) -> None:
    """
    The path of the document, not the field of a class.
    """
    found = faults_of(embodiment_from_document, robot(**changes))

    assert path in found
    assert problem in found[path]


def test_the_place_of_a_step_is_under_the_key_that_was_written() -> None:
    """
    Not under today's name for it.
    """
    old = robot(max_delta=[1.0], max_delta_per_step=None)
    assert ["$.max_delta"] == list(faults_of(embodiment_from_document, old))


def test_a_rate_that_makes_no_step_has_its_place() -> None:
    """
    Found only when the space is made.
    """
    rates = {"dx": 5e-324}
    wrong = robot(action_max_rates=rates, max_delta_per_step=[5e-324] + [0.1] * 6, control_hz=1e4)
    assert {"$.action_max_rates", "$.max_delta_per_step[0]"} & set(
        faults_of(embodiment_from_document, wrong)
    )


def chunk_document(**changes: Any) -> dict[str, Any]:
    document = action_chunk_to_document(CHUNK) | changes
    return {key: value for key, value in document.items() if value is not None}


def test_a_chunk_is_written_with_the_keys_of_old_and_its_time() -> None:
    """
    Without its time it could be executed a day later.
    """
    document = action_chunk_to_document(CHUNK)

    assert [
        "schema",
        "version",
        "source",
        "horizon",
        "action_dim",
        "action_names",
        "streams",
        "metadata",
        "actions",
        "observed_at_s",
    ] == list(document)
    assert "comfyui-vlm/robot-actions" == document["schema"]
    assert {"name": "hand", "start": 1, "end": 2} == document["streams"][1]
    assert CHUNK == action_chunk_from_json(action_chunk_to_json(CHUNK, indent=2))


@pytest.mark.parametrize("broken", [math.nan, math.inf, -math.inf])
def test_json_never_carries_nan_or_infinity(broken: float) -> None:
    """
    Such a chunk refuses to be written, and says to run the safety gate first.
    """
    wrong = attrs.evolve(CHUNK, values=[[0.0, 1.0], [2.0, broken]])
    with pytest.raises(ContractError) as caught:
        action_chunk_to_json(wrong)
    assert f"values[1][1]: got {broken} for 'gripper' (1 of 4 values are not finite)" in str(
        caught.value
    )
    assert "run the safety gate first" in str(caught.value)


def test_a_chunk_of_old_does_not_say_when_it_was_observed() -> None:
    """
    No time is made up: the caller says it, and a caller's clock goes before that of a file.
    """
    old = chunk_document(observed_at_s=None)

    assert {"$.observed_at_s": "is missing: say how old it is with observed_at_s="} == faults_of(
        action_chunk_from_document, old
    )
    assert 7.0 == action_chunk_from_document(old, observed_at_s=7).observed_at_s
    assert 7.0 == action_chunk_from_json(action_chunk_to_json(CHUNK), observed_at_s=7).observed_at_s


@pytest.mark.parametrize(
    ("changes", "path", "problem"),
    [
        ({"horizon": 3}, "$.horizon", "got 3, expected that of actions, 2"),
        ({"action_dim": 3}, "$.action_dim", "got 3, expected one a name, 2"),
        ({"actions": [[1.0, 2.0], [1.0]]}, "$.actions[1]", "got 1 numbers, expected 2"),
        ({"actions": [[1.0, 2.0], [1.0, True]]}, "$.actions[1][1]", "got true"),
        ({"actions": [[1.0, 2.0], [1.0, math.inf]]}, "$.actions[1][1]", "got inf"),
        ({"actions": []}, "$.actions", "got 0 items"),
        ({"actions": [1.0]}, "$.actions[0]", "got 1.0, expected a list"),
        ({"action_names": ["x", "x"]}, "$.action_names", "more than once"),
        ({"action_names": ["x", "\n"]}, "$.action_names[1]", "blank"),
        ({"action_names": None}, "$.action_names", "is missing"),
        ({"source": ""}, "$.source", "blank"),
        ({"source": "a\x00"}, "$.source", "control"),
        ({"streams": [{"name": "a", "start": 0}]}, "$.streams[0].end", "is missing"),
        ({"streams": [{"name": "a", "start": 1, "end": 1}]}, "$.streams[0].end", "more than st"),
        ({"streams": [{"name": "a", "start": 0, "end": 1}]}, "$.streams", "got an end at 1"),
        ({"metadata": [1]}, "$.metadata", "got a list, expected an object"),
        ({"metadata": {"a": [math.nan]}}, "$.metadata.a[0]", "expected a JSON value"),
        ({"observed_at_s": "now"}, "$.observed_at_s", "got the text 'now'"),
        ({"validated": True}, "$.validated", "is not a key of this document"),
    ],
)
def test_a_fault_of_a_chunk_has_its_place(changes: dict[str, Any], path: str, problem: str) -> None:
    """
    A file that says of itself that it was validated is refused, too.
    """
    found = faults_of(action_chunk_from_document, chunk_document(**changes))

    assert path in found
    assert problem in found[path]


@pytest.mark.parametrize("key", ["state_names", "action_names", "camera_names"])
def test_a_name_that_is_none_hides_no_name_that_is_there_twice(key: str) -> None:
    """
    Whoever mends the first fault would be told of the second only then.
    """
    document = embodiment_to_document(find_embodiment("aloha_bimanual_template"))
    found = faults_of(embodiment_from_document, {**document, key: ["a", "a", " ", 7]})
    assert {f"$.{key}[1]", f"$.{key}[2]", f"$.{key}[3]"} <= found.keys()
    assert "got 'a' twice" == found[f"$.{key}[1]"]


def test_numbers_of_one_list_hide_no_other_list_that_is_too_short() -> None:
    """
    A list whose numbers are wrong says nothing of those beside it.
    """
    document = embodiment_to_document(find_embodiment("aloha_bimanual_template"))
    wrong = {"action_min": document["action_min"][:13], "max_delta_per_step": [-1.0] * 14}
    found = faults_of(embodiment_from_document, {**document, **wrong})
    assert "got 13 numbers, expected one an action, 14" == found["$.action_min"]
    assert 15 == len(found)


def test_notes_that_cannot_be_written_are_not_read() -> None:
    """
    Half of a pair of surrogates, which JSON can spell and UTF-8 cannot.
    """
    document = embodiment_to_document(find_embodiment("aloha_bimanual_template"))
    found = faults_of(embodiment_from_document, {**document, "notes": "\ud800"})
    assert {"$.notes": "got a lone surrogate, expected characters"} == found


def test_horizon_and_dimension_may_be_left_out() -> None:
    """
    The rows say them.
    """
    assert CHUNK == action_chunk_from_document(chunk_document(horizon=None, action_dim=None))


def test_a_step_is_written_with_its_keys() -> None:
    """
    Names and numbers.
    """
    document = action_step_to_document(CHUNK.step(1))

    assert {
        "schema": "comfyui-vlm/robot-action-step",
        "version": 1,
        "source": "policy",
        "step_index": 1,
        "action": {"x": 5e-324, "gripper": 1.0},
    } == document
    assert CHUNK.step(1) == action_step_from_json(action_step_to_json(CHUNK.step(1)))
    found = faults_of(action_step_from_document, document | {"step_index": 1.0, "action": {}})
    assert {"$.step_index", "$.action"} == set(found)
    assert ["$.action[1]"] == list(
        faults_of(action_step_from_document, document | {"action": {"x": 1, "\n": 2}})
    )


def test_a_summary_is_written_with_the_keys_of_the_wire() -> None:
    """
    Sizes stand where the wire has pictures.
    """
    document = observation_summary_to_document(SUMMARY)

    assert {
        "schema": "comfyui-vlm/robot-observation",
        "version": 1,
        "task": "Pick it up.",
        "state": [0.0, 1.0],
        "timestamp": 12.5,
        "history_fps": 30.0,
        "cameras": {"front": {"frames": 2, "height": 4, "width": 5}},
    } == document
    assert SUMMARY == observation_summary_from_json(observation_summary_to_json(SUMMARY))


@pytest.mark.parametrize(
    ("changes", "path"),
    [
        ({"task": ""}, "$.task"),
        ({"task": "\ud800"}, "$.task"),
        ({"state": [1, math.nan]}, "$.state[1]"),
        ({"history_fps": 0}, "$.history_fps"),
        ({"cameras": {}}, "$.cameras"),
        ({"cameras": {"front": [{"encoding": "base64-jpeg"}]}}, "$.cameras.front"),
        ({"cameras": {"front": {"frames": 0, "height": 1, "width": 1}}}, "$.cameras.front.frames"),
        ({"cameras": {"a": {"frames": 1, "height": 4097, "width": 4096}}}, "$.cameras.a"),
        ({"cameras": {" ": {"frames": 1, "height": 1, "width": 1}}}, "$.cameras[0]"),
    ],
)
def test_a_fault_of_a_summary_has_its_place(changes: dict[str, Any], path: str) -> None:
    """
    One each.
    """
    document = observation_summary_to_document(SUMMARY) | changes
    assert [path] == list(faults_of(observation_summary_from_document, document))


@pytest.mark.parametrize("read", READERS)
@pytest.mark.parametrize("value", [None, 1, "x", [], [{}]])
def test_a_document_is_an_object(read: Callable[[Any], Any], value: Any) -> None:
    """
    Everything else is refused as a whole.
    """
    assert ["$"] == list(faults_of(read, value))


@pytest.mark.parametrize(("read", "document"), WRITTEN)
def test_a_key_that_is_not_known_is_refused(
    read: Callable[[Any], Any], document: dict[str, Any]
) -> None:
    """
    It may be one that matters, mistyped.
    """
    assert ["$['a key']"] == list(faults_of(read, document | {"a key": 1}))


@pytest.mark.parametrize(("read", "document"), WRITTEN)
def test_another_document_is_refused_by_name_and_nothing_else_is_told(
    read: Callable[[Any], Any], document: dict[str, Any]
) -> None:
    """
    What else is wrong with it is no news.
    """
    assert ["$.schema"] == list(faults_of(read, {"schema": "x/y"}))
    assert ["$.version"] == list(faults_of(read, document | {"version": 0}))


def test_faults_are_listed_up_to_a_limit() -> None:
    """
    A text of a megabyte is no error message.
    """
    wrong = chunk_document(actions=[["x", "y"]] * 4096)
    assert 100 == len(faults_of(action_chunk_from_document, wrong))


def test_a_text_over_the_limit_is_not_read() -> None:
    """
    Limits are passed to the door.
    """
    with pytest.raises(LimitExceededError):
        embodiment_from_json(" " * 100, limits=DocumentLimits(max_document_bytes=99))


@given(embodiments())
def test_an_embodiment_is_read_back_exactly(embodiment: Embodiment) -> None:
    """
    Everything that a class can say, a document can say.
    """
    assert embodiment == embodiment_from_json(embodiment_to_json(embodiment))


@given(action_chunks())
def test_a_chunk_is_read_back_exactly(chunk: ActionChunk) -> None:
    """
    Bit by bit, and so is each of its steps.
    """
    other = action_chunk_from_json(action_chunk_to_json(chunk))

    assert chunk == other
    assert chunk.values.tobytes() == other.values.tobytes()
    assert chunk.step(0) == action_step_from_json(action_step_to_json(chunk.step(0)))


@given(observations())
def test_a_summary_is_read_back_exactly(observation: Observation) -> None:
    """
    Whatever was shown.
    """
    summary = observation.summary()
    assert summary == observation_summary_from_json(observation_summary_to_json(summary))


@pytest.mark.parametrize("read", READERS)
@given(value=json_objects() | hostile_json())
def test_any_value_gives_a_contract_or_our_error(read: Callable[[Any], Any], value: Any) -> None:
    """
    Nothing else is raised.
    """
    with pytest.raises(ContractError):
        read(value)


@pytest.mark.parametrize(("read", "document"), WRITTEN)
@given(data=st.data())
def test_any_change_of_a_document_gives_a_contract_or_our_error(
    read: Callable[[Any], Any], document: dict[str, Any], data: st.DataObject
) -> None:
    """
    One value anywhere in it replaced by another.
    """
    changed = json.loads(json.dumps(document))
    place: Any = changed
    while True:
        keys = list(place) if isinstance(place, dict) else list(range(len(place)))
        key = data.draw(st.sampled_from(keys))
        inner = place[key]
        if not isinstance(inner, (dict, list)) or not inner or data.draw(st.booleans()):
            break
        place = inner
    place[key] = data.draw(
        st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=3)
    )
    with contextlib.suppress(ContractError):
        read(changed)


@pytest.mark.parametrize(
    ("read", "document"), WRITTEN, ids=lambda value: getattr(value, "__name__", "")
)
def test_keys_that_are_no_text_are_faults(read: Callable[[Any], Any], document: Any) -> None:
    """
    A reader of YAML gives numbers, dates and nothing as keys; JSON knows text alone.
    """
    assert {"$": "got the key 1, expected text"} == faults_of(read, {**document, 1: 2})


@pytest.mark.parametrize("mode", ["joint torque", "chunk relative joint offsets", "effort"])
def test_free_text_of_old_makes_no_torques_and_no_offsets(mode: str) -> None:
    """
    Documents of old load unchanged: action_mode is free text, and action_references says it.
    """
    loaded = embodiment_from_document(robot(action_mode=mode))
    assert {Reference.ABSOLUTE} == {dim.reference for dim in loaded.actions.dims}


@pytest.mark.parametrize("mode", ["joint torque", "delta", ""])
@pytest.mark.parametrize("reference", [Reference.CHUNK_RELATIVE, Reference.TORQUE])
def test_offsets_and_torques_are_said_by_name_whatever_the_mode_is(
    mode: str, reference: Reference
) -> None:
    """
    And come back exactly; offsets with where they may lead.
    """
    name = robot()["action_names"][0]
    said = robot(action_mode=mode, action_references={name: reference.value})
    if reference.leads_somewhere:
        said |= {"action_position_min": {name: -1.0}, "action_position_max": {name: 1.0}}
    loaded = embodiment_from_document(said)
    written = embodiment_to_document(loaded)

    assert reference is loaded.actions.dims[0].reference
    assert reference.value == written["action_references"][name]
    assert loaded == embodiment_from_document(written)
