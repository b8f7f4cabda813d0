"""Tests of `vlmcore_robotics.wire.observation_layout`: mappings of one's own."""

from __future__ import annotations

from typing import Any

import attrs
import numpy as np
import pytest

from vlmcore.contracts.observation import Observation
from vlmcore.errors import ContractError, LimitExceededError
from vlmcore_robotics.wire.observation_layout import (
    CameraKey,
    ImageAxes,
    ObservationLayout,
    StateKey,
)
from vlmcore_robotics.wire.resizing import resize_with_pad

FRONT = CameraKey(camera="front", key=("obs", "images", "base"))
WRIST = CameraKey(camera="wrist", key="wrist", required=False)
ARM, HAND = StateKey(key=("obs", "arm"), count=2), StateKey(key="hand", count=1)
LAYOUT = ObservationLayout(cameras=[FRONT, WRIST], state=[ARM, HAND], prompt=("obs", "task"))
IMAGE = np.arange(24, dtype=np.uint8).reshape(2, 4, 3)
REQUEST = {
    "obs": {"images": {"base": IMAGE}, "arm": np.array([1.0, 2.0]), "task": "go"},
    "hand": np.array([3.0]),
}


def observed(**fields: Any) -> Observation:
    return Observation(
        **{
            "instruction": "go",
            "state": [1.0, 2.0, 3.0],
            "images": {"front": IMAGE},
            "frame_rate_hz": 30.0,
            "captured_at_s": 4.5,
            **fields,
        }
    )


def read(request: Any, **options: Any) -> Observation:
    return LAYOUT.observation_from(request, captured_at_s=4.5, frame_rate_hz=30.0, **options)


def changed(*path: str, to: Any) -> dict[str, Any]:
    """Copy the request with one value changed, or taken out."""
    request: dict[str, Any] = {**REQUEST, "obs": {**REQUEST["obs"], "images": {"base": IMAGE}}}
    place = request
    for key in path[:-1]:
        place = place[key]
    if to is None:
        del place[path[-1]]
    else:
        place[path[-1]] = to
    return request


def test_parts_stand_in_maps_within_maps() -> None:
    """
    As the mapping says, in both directions.
    """
    request = LAYOUT.request_from(observed())

    assert (["obs", "hand"], ["images", "arm", "task"]) == (list(request), list(request["obs"]))
    assert [1.0, 2.0, 3.0] == [*request["obs"]["arm"], *request["hand"]]
    assert observed() == read(request)
    assert observed() == read(REQUEST)


def test_the_newest_frame_is_sent_and_not_copied() -> None:
    """
    These protocols know no history.
    """
    frames = np.stack([IMAGE, IMAGE + 1])
    observation = observed(images={"front": frames})
    sent = LAYOUT.request_from(observation)["obs"]["images"]["base"]

    assert np.array_equal(IMAGE + 1, sent)
    assert np.shares_memory(sent, observation.images["front"])


def test_a_camera_that_is_not_required_may_be_missing() -> None:
    """
    And is sent where it is there.
    """
    assert "wrist" not in LAYOUT.request_from(observed())
    both = {"front": IMAGE, "wrist": IMAGE}
    assert observed(images=both) == read(LAYOUT.request_from(observed(images=both)))


def test_channels_first_is_declared_and_never_guessed() -> None:
    """
    A frame of shape (3, 64, 3) could be either.
    """
    layout = attrs.evolve(LAYOUT, axes=ImageAxes.CHW)
    narrow = np.arange(3 * 64 * 3, dtype=np.uint8).reshape(3, 64, 3)
    request = layout.request_from(observed(images={"front": narrow}))

    assert (3, 3, 64) == request["obs"]["images"]["base"].shape
    again = layout.observation_from(request, captured_at_s=4.5, frame_rate_hz=30.0)
    assert observed(images={"front": narrow}) == again
    with pytest.raises(
        ContractError, match=r"got uint8 of shape \[2, 4, 3\], .* uint8 \[3, H, W\]"
    ):
        layout.observation_from(REQUEST, captured_at_s=0.0)


@pytest.mark.parametrize("axes", ImageAxes)
def test_frames_are_sent_in_the_size_of_the_model_where_it_is_declared(axes: ImageAxes) -> None:
    """
    Frames of 480 x 640 took six times the bytes of those that the model looks at.
    """
    pytest.importorskip("PIL")
    layout = attrs.evolve(LAYOUT, height_px=8, width_px=6, axes=axes)
    sent = layout.request_from(observed())["obs"]["images"]["base"]

    expected = resize_with_pad(IMAGE, height_px=8, width_px=6)
    assert np.array_equal(expected if axes is ImageAxes.HWC else expected.transpose(2, 0, 1), sent)


@pytest.mark.parametrize(
    "frame",
    [
        np.zeros((2, 4, 3), np.float32),
        np.zeros((3, 2, 4), np.uint8),
        np.zeros((2, 4, 4), np.uint8),
        np.zeros((1, 2, 4, 3), np.uint8),
        np.zeros((2, 4), np.uint8),
        np.zeros((0, 4, 3), np.uint8),
        [[1]],
        "jpeg",
        b"",
    ],
)
def test_a_frame_is_pixels_as_declared(frame: Any) -> None:
    """
    No float frame is scaled by a guess, no transparency dropped, no axis moved.
    """
    with pytest.raises(ContractError, match="uint8"):
        read(changed("obs", "images", "base", to=frame))


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (("obs", "images", "base"), None, r"^request\['obs'\]\['images'\]\['base'\]: got nothing"),
        (("hand",), None, r"^request\['hand'\]: got nothing, expected 1 numbers"),
        (("obs", "task"), None, r"^request\['obs'\]\['task'\]: got nothing"),
        (("obs",), None, "got nothing"),
        (("obs",), 3, "got nothing"),
        (("obs", "arm"), [1.0], r"^request\['obs'\]\['arm'\]: got 1 numbers, expected 2"),
        (("obs", "arm"), [1.0, 2.0, 3.0], "got 3 numbers, expected 2"),
        (("obs", "arm"), [[1.0, 2.0]], r"^request\['obs'\]\['arm'\]"),
        (("obs", "arm"), [True, False], r"^request\['obs'\]\['arm'\]\[0\]: got True"),
        (("obs", "arm"), ["1", "2"], "got '1', expected a number"),
        (("obs", "arm"), [float("nan"), 1.0], r"^state\[0\]: got nan"),
        (("hand",), "1", "got str"),
        (("hand",), True, "got True"),
        (("hand",), np.bool_(1)[...], "got bool"),
        (("obs", "task"), 3, "^instruction: got int"),
        (("obs", "task"), " ", "^instruction: got blank"),
        (("other",), IMAGE, r"^request\['other'\]: got a frame that the policy does not look at"),
        (("obs", "images", "side"), IMAGE, r"\['side'\]: got a frame .* expected one of request"),
    ],
)
def test_a_request_that_is_not_as_declared_is_refused_by_its_key(
    path: tuple[str, ...], value: Any, message: str
) -> None:
    """
    Before the policy meets it: a KeyError in there would be a traceback at the robot.
    """
    with pytest.raises(ContractError, match=message):
        read(changed(*path, to=value))


@pytest.mark.parametrize("request_map", [None, [], 3, "text"])
def test_a_request_is_a_map(request_map: Any) -> None:
    """
    Nothing else is.
    """
    with pytest.raises(ContractError, match=r"^request: got .*, expected a map"):
        read(request_map)


def test_keys_that_are_no_frames_may_stand_beside() -> None:
    """
    Clients send what other policies need.
    """
    assert observed() == read(changed("seed", to=7))


def test_the_instruction_may_be_the_servers_own() -> None:
    """
    Some policies know one task only.
    """
    assert "wave" == read(changed("obs", "task", to=None), default_prompt="wave").instruction
    assert "go" == read(REQUEST, default_prompt="wave").instruction


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        (
            {"state": [1.0, 2.0]},
            r"^state: got 2 numbers, expected 3: 2 for request\['obs'\]\['arm'\]",
        ),
        ({"state": [0.0] * 4}, "^state: got 4 numbers"),
        ({"images": {"wrist": IMAGE}}, r"^images: got cameras with missing \['front'\]"),
        ({"images": {"front": IMAGE, "top": IMAGE}}, r"not known \['top'\], expected front, wrist"),
    ],
)
def test_an_observation_of_another_robot_is_not_sent(fields: dict[str, Any], message: str) -> None:
    """
    Nothing is filled up, cut, or left out in silence.
    """
    with pytest.raises(ContractError, match=message):
        LAYOUT.request_from(observed(**fields))


@pytest.mark.parametrize(
    "fields",
    [
        {"cameras": []},
        {"cameras": [FRONT, FRONT]},
        {"cameras": [CameraKey(camera="a", key="k"), CameraKey(camera="b", key="k")]},
        {"cameras": [CameraKey(camera="a", key=("obs", "arm", "x"))]},
        {"cameras": ["front"]},
        {"cameras": None},
        {"cameras": FRONT},
        {"state": []},
        {"state": [ARM, ARM]},
        {"state": [{"key": "a", "count": 1}]},
        {"state": [StateKey(key="a", count=2000), StateKey(key="b", count=49)]},
        {"prompt": ()},
        {"prompt": "hand"},
        {"prompt": "obs"},
        {"prompt": ("a",) * 5},
        {"prompt": 3},
        {"axes": "HWC"},
        {"height_px": 224},
        {"width_px": 224},
        {"height_px": 0, "width_px": 224},
        {"height_px": 224.0, "width_px": 224},
        {"height_px": 1 << 16, "width_px": 1 << 16},
    ],
)
def test_a_layout_has_one_place_for_each_part(fields: dict[str, Any]) -> None:
    """
    Two parts under one key would overwrite each other.
    """
    with pytest.raises(ContractError):
        attrs.evolve(LAYOUT, **fields)


@pytest.mark.parametrize(
    ("kind", "fields"),
    [
        (CameraKey, {"camera": "", "key": "k"}),
        (CameraKey, {"camera": "a", "key": ""}),
        (CameraKey, {"camera": "a", "key": ("k", 1)}),
        (CameraKey, {"camera": "a", "key": b"k"}),
        (CameraKey, {"camera": "a", "key": "k", "required": 1}),
        (StateKey, {"key": "k", "count": 0}),
        (StateKey, {"key": "k", "count": True}),
        (StateKey, {"key": "k", "count": 2049}),
        (StateKey, {"key": None, "count": 1}),
    ],
)
def test_a_key_is_text_and_a_count_a_number(kind: type, fields: dict[str, Any]) -> None:
    """
    One clear error each.
    """
    with pytest.raises(LimitExceededError if fields.get("count") == 2049 else ContractError):
        kind(**fields)
