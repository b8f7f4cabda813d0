"""Tests of `vlmcore.contracts.observation`."""

from __future__ import annotations

import math
import pickle
import tracemalloc
from typing import Any

import attrs
import numpy as np
import pytest
from hypothesis import given

from vlmcore.contracts.embodiment import CameraSpec, Embodiment
from vlmcore.contracts.observation import (
    CameraSummary,
    Observation,
    ObservationSummary,
    check_fits,
    state_from,
)
from vlmcore.contracts.presets import find_embodiment
from vlmcore.errors import ContractError, LimitExceededError
from vlmcore.testing.contract_strategies import embodiments, observations

IMAGE = np.arange(4 * 5 * 3, dtype=np.uint8).reshape(4, 5, 3)
SEEN: dict[str, Any] = {
    "instruction": "Pick it up.",
    "state": [0.0, 1.0],
    "images": {"front": IMAGE},
    "frame_rate_hz": 30,
    "captured_at_s": 12.5,
}


def test_one_image_is_one_frame() -> None:
    """
    Everything else has the axes ``[T, H, W, 3]``.
    """
    seen = Observation(**SEEN)

    assert (1, 4, 5, 3) == seen.images["front"].shape
    assert 1 == seen.history
    assert (30.0, float) == (seen.frame_rate_hz, type(seen.frame_rate_hz))


def test_a_later_write_does_not_change_an_observation() -> None:
    """
    Frames and state are copies in memory that nobody can write to, and so is the mapping.
    """
    mine, state = IMAGE.copy(), np.zeros(2)
    seen = Observation(**SEEN | {"images": {"front": mine}, "state": state})
    mine[:], state[:] = 7, 7

    assert IMAGE.tolist() == seen.images["front"][0].tolist()
    assert [0.0, 0.0] == seen.state.tolist()
    for array in (seen.images["front"], seen.state):
        with pytest.raises(ValueError, match="WRITEABLE"):
            array.flags.writeable = True
    with pytest.raises(TypeError):
        seen.images["front"] = mine  # type: ignore[index]


def test_a_frame_is_copied_once_and_not_again() -> None:
    """
    What is in memory that nobody can write to is shared from then on.
    """
    seen = Observation(**SEEN)
    again = attrs.evolve(seen, instruction="Put it down.")

    assert not np.shares_memory(IMAGE, seen.images["front"])
    assert np.shares_memory(seen.images["front"], again.images["front"])


def test_each_of_three_frames_of_480_by_640_is_copied_at_most_once() -> None:
    """
    Also for a moment no more is held than one copy of each, and a view is not made whole before.
    """
    wide = np.zeros((480, 1280, 3), np.uint8)
    images = {"front": wide[:, :640], "wrist": wide[:, ::2], "top": wide[::-1, 640:]}
    held = 3 * 480 * 640 * 3
    Observation(**SEEN)  # what is imported at the first of all is not counted

    tracemalloc.start()
    try:
        seen = Observation(**SEEN | {"images": images})
        assert held <= tracemalloc.get_traced_memory()[1] < held + 65_000
    finally:
        tracemalloc.stop()
    assert not any(np.shares_memory(wide, frames) for frames in seen.images.values())


def test_a_camera_with_one_frame_shows_it_all_the_time() -> None:
    """
    Repeated for the history of the others, and not copied for it.
    """
    history = np.stack([IMAGE, IMAGE + 1, IMAGE + 2])
    seen = Observation(**SEEN | {"images": {"front": history, "wrist": IMAGE}})

    assert 3 == seen.history
    assert [IMAGE.tolist()] * 3 == seen.frames("wrist").tolist()
    assert history.tolist() == seen.frames("front").tolist()
    assert np.shares_memory(seen.images["wrist"], seen.frames("wrist"))
    with pytest.raises(ValueError, match="read-only"):
        seen.frames("wrist")[0] = 0
    with pytest.raises(ContractError, match=r"^camera: got 'side', expected one of front, wrist"):
        seen.frames("side")


def test_cameras_have_the_same_history_or_one_frame() -> None:
    """
    Two frames beside three are of different times.
    """
    images = {"front": np.stack([IMAGE] * 3), "wrist": np.stack([IMAGE] * 2)}
    with pytest.raises(ContractError, match=r"^images: got {'wrist': 2} frames beside 3 of others"):
        Observation(**SEEN | {"images": images})


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"instruction": " \n"}, "^instruction: got blank"),
        ({"instruction": b"go"}, "^instruction: got bytes"),
        ({"instruction": "\ud800"}, "^instruction: got a lone surrogate"),
        ({"instruction": "x" * 16_385}, "^max_task_characters: got 16385, limit is 16384"),
        ({"state": []}, "^state: got 0 numbers, expected 1 to 2048"),
        ({"state": np.zeros(2049)}, "^state: got 2049 numbers"),
        ({"state": [0, math.nan, math.inf]}, r"^state\[1\]: got nan \(2 of 3 are not finite\)"),
        ({"state": [True, 1.0]}, r"^state\[0\]: got True"),
        ({"state": ["1.5"]}, r"^state\[0\]: got '1.5'"),
        ({"state": [[0.0, 1.0]]}, r"^state\[0\]: got \[0.0, 1.0\]"),
        ({"state": None}, "^state: got NoneType"),
        ({"images": {}}, "^images: got 0 names"),
        ({"images": [IMAGE]}, "^images: got list, expected the frames of each camera"),
        ({"images": {"a": IMAGE / 255}}, r"^images\['a'\]: got float64 .*load_image"),
        ({"images": {"a": IMAGE[..., :2]}}, r"^images\['a'\]: got uint8 of shape \[4, 5, 2\]"),
        ({"images": {"a": IMAGE[..., 0]}}, r"^images\['a'\]: got uint8 of shape \[4, 5\]"),
        ({"images": {"a": IMAGE[np.newaxis][:0]}}, r"^images\['a'\]: got .*\[0, 4, 5, 3\]"),
        ({"images": {"a": IMAGE.tolist()}}, r"^images\['a'\]: got list"),
        ({"images": {" ": IMAGE}}, r"^images\[0\]: got blank"),
        ({"images": {"a\n": IMAGE}}, r"^images\[0\]: got .* control"),
        ({"images": {3: IMAGE}}, r"^images\[0\]: got int"),
        ({"images": {"x" * 257: IMAGE}}, r"^images\[0\]: got 257 characters, expected at most 256"),
        ({"images": {str(i): IMAGE for i in range(17)}}, "^max_cameras: got 17, limit is 16"),
        ({"frame_rate_hz": 0}, "^frame_rate_hz: got 0"),
        ({"frame_rate_hz": math.inf}, "^frame_rate_hz: got inf"),
        ({"captured_at_s": math.nan}, "^captured_at_s: got nan"),
        ({"captured_at_s": "now"}, "^captured_at_s: got 'now'"),
    ],
)
def test_an_observation_says_which_field_is_wrong(fields: dict[str, Any], message: str) -> None:
    """
    One clear error each.
    """
    with pytest.raises(ContractError, match=message):
        Observation(**SEEN | fields)


@pytest.mark.parametrize(
    ("shape", "limit", "actual"),
    [((257, 1, 1, 3), "max_frames", 257), ((4097, 4096, 3), "max_frame_pixels", 4097 * 4096)],
)
def test_what_is_too_large_is_refused_before_it_is_copied(
    shape: tuple[int, ...], limit: str, actual: int
) -> None:
    """
    Also 50 MiB that are one pixel repeated.
    """
    large = np.broadcast_to(np.uint8(0), shape)
    with pytest.raises(LimitExceededError) as caught:
        Observation(**SEEN | {"images": {"a": large}})
    assert (limit, actual) == (caught.value.limit, caught.value.actual)


def test_256_frames_of_16_cameras_are_allowed() -> None:
    """
    The limits belong to what is allowed.
    """
    frames = np.broadcast_to(np.uint8(0), (256, 1, 1, 3))
    seen = Observation(**SEEN | {"images": {str(i): frames for i in range(16)}})
    assert (16, 256) == (len(seen.images), seen.history)


def test_an_observation_is_shown_without_its_pixels() -> None:
    """
    They filled the screen.
    """
    made = Observation(**SEEN)
    size = f"{len(made.state)} numbers, 'front': 1 x 4 x 5 pixels"
    assert f"<Observation {made.instruction!r}: {size}, at {made.captured_at_s:g} s>" == repr(made)


def test_observations_are_equal_by_value() -> None:
    """
    One pixel makes a difference, and so does the order of the cameras.
    """
    made = Observation(**SEEN)
    other = made.images["front"].copy()
    other[0, 0, 0, 0] += 1
    assert made == Observation(**SEEN)
    assert made != attrs.evolve(made, images={"front": other})
    both = attrs.evolve(made, images={"a": other, "b": other})
    assert both != attrs.evolve(both, images={"b": other, "a": other})
    assert made.summary() != made


@pytest.mark.parametrize(
    ("swapped", "message"),
    [
        (lambda seen: check_fits(ROBOT, seen), "observation: got Embodiment, expected Observation"),
        (
            lambda seen: check_fits(seen, ROBOT.actions),
            "embodiment: got ActionSpace, expected Embodiment",
        ),
        (lambda _: state_from(ROBOT, [0.0]), "names: got an Embodiment, expected its state_names"),
    ],
)
def test_a_robot_in_the_place_of_something_else_is_told(swapped: Any, message: str) -> None:
    """
    Swapped arguments were an AttributeError somewhere inside.
    """
    with pytest.raises(ContractError) as error:
        swapped(Observation(**SEEN))
    assert message == str(error.value)


def test_a_summary_has_no_pixels() -> None:
    """
    For logs: what was shown, and how much of it.
    """
    summary = Observation(**SEEN).summary()

    assert {"front": CameraSummary(frames=1, height_px=4, width_px=5)} == dict(summary.cameras)
    assert summary == pickle.loads(pickle.dumps(summary))
    assert summary != attrs.evolve(summary, state=[0.0, 2.0])


@pytest.mark.parametrize("cameras", [{"front": 1}, {}, None, [CameraSummary]])
def test_a_summary_names_its_cameras(cameras: Any) -> None:
    """
    1 to 16 of them.
    """
    summary = Observation(**SEEN).summary()
    with pytest.raises(ContractError, match=r"^cameras: got "):
        attrs.evolve(summary, cameras=cameras)


@pytest.mark.parametrize("field", ["frames", "height_px", "width_px"])
@pytest.mark.parametrize("wrong", [0, True, 1.0])
def test_a_camera_summary_counts_in_whole_numbers(field: str, wrong: Any) -> None:
    """
    Of at least 1.
    """
    with pytest.raises(ContractError, match=f"^{field}: got "):
        CameraSummary(**{"frames": 1, "height_px": 1, "width_px": 1, field: wrong})


def test_a_state_is_a_list_in_order_or_an_object_by_name() -> None:
    """
    In whatever order the object is written.
    """
    assert [1.0, 2.0] == state_from(("x", "y"), [1, 2]).tolist()
    assert [1.0, 2.0] == state_from(("x", "y"), np.float32([1, 2])).tolist()
    assert [1.0, 2.0] == state_from(("x", "y"), {"y": 2, "x": 1}).tolist()


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"x": 1}, r"^state: got names with missing \['y'\], expected x, y$"),
        ({"x": 1, "y": 2, "z": 3}, r"^state: got names with not known \['z'\], expected x, y$"),
        ({"X": 1, "y": 2}, r"missing \['x'\], not known \['X'\]"),
        ({"x": 1, "y": True}, r"^state\['y'\]: got True"),
        ({"x": 1, "y": "2"}, r"^state\['y'\]: got '2'"),
        ({"x": 1, "y": math.nan}, r"^state\['y'\]: got nan, expected a finite number"),
        ({"x": 1, "y": 10**5000}, r"^state\['y'\]: got a huge int"),
        ({"x": 1, "y": None}, r"^state\['y'\]: got None"),
        ({"x": 1, "y": np.float32("inf")}, r"^state\['y'\]: got inf"),
        ([1, 2, 3], "^state: got 3 numbers, expected 2: x, y"),
        ("12", "^state: got str"),
    ],
)
def test_missing_and_extra_names_of_a_state_are_listed(values: Any, message: str) -> None:
    """
    Nothing is filled in, and a number that is none is told by the name that it came with.
    """
    with pytest.raises(ContractError, match=message):
        state_from(("x", "y"), values)


ROBOT = attrs.evolve(
    find_embodiment("Generic EEF delta + gripper"),
    state_names=("x", "y"),
    cameras=(CameraSpec(name="front", height_px=4, width_px=5), CameraSpec(name="wrist")),
)
BOTH = {"front": IMAGE, "wrist": IMAGE[:2]}


def test_an_observation_fits_its_robot() -> None:
    """
    Its state, its cameras, and the sizes that are declared.
    """
    check_fits(Observation(**SEEN | {"images": BOTH}), ROBOT)
    check_fits(Observation(**SEEN), ROBOT, all_cameras=False)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"state": [1.0]}, "^state: got 1 numbers, expected the 2 of 'generic_eef.*: x, y"),
        ({"images": {"front": IMAGE}}, r"^images: got names with missing \['wrist'\]"),
        ({"images": BOTH | {"top": IMAGE}}, r"^images: .*not known \['top'\], expected front, wri"),
        (
            {"images": BOTH | {"front": IMAGE[:2]}},
            r"^images\['front'\]: got 2 x 5 pixels, .* 4 x 5",
        ),
    ],
)
def test_cameras_must_be_those_of_the_robot(fields: dict[str, Any], message: str) -> None:
    """
    A policy that is shown another camera's frames acts on them.
    """
    with pytest.raises(ContractError, match=message):
        check_fits(Observation(**{**SEEN, "images": BOTH, **fields}), ROBOT)


def test_a_camera_that_is_not_of_the_robot_is_refused_in_any_case() -> None:
    """
    Also where not all cameras must be there.
    """
    seen = Observation(**SEEN | {"images": {"top": IMAGE}})
    with pytest.raises(ContractError, match=r"^images: .*not known \['top'\]"):
        check_fits(seen, ROBOT, all_cameras=False)


@given(observations())
def test_an_observation_is_the_same_in_another_process(seen: Observation) -> None:
    """
    Pixel by pixel, and still not to be written to.
    """
    other = pickle.loads(pickle.dumps(seen))

    assert seen == other
    assert hash(seen) == hash(other)
    assert isinstance(seen.summary(), ObservationSummary)
    assert not any(frames.flags.writeable for frames in other.images.values())


@given(
    embodiments().flatmap(lambda robot: observations(embodiment=robot).map(lambda o: (o, robot)))
)
def test_what_is_drawn_for_a_robot_fits_it(drawn: tuple[Observation, Embodiment]) -> None:
    """
    So that policies can be tested with it.
    """
    check_fits(*drawn)


@pytest.mark.parametrize("shape", [(2, 2, 3), (1, 2, 2, 3)])
def test_a_masked_frame_is_refused(shape: tuple[int, ...]) -> None:
    """
    Its mask would be lost without a word, as that of actions would.
    """
    masked = np.ma.masked_array(np.zeros(shape, np.uint8), np.ones(shape, bool))
    with pytest.raises(ContractError, match="got a masked array, expected a plain one"):
        Observation(
            instruction="x",
            state=[0.0],
            images={"top": masked},
            frame_rate_hz=1.0,
            captured_at_s=0.0,
        )


@pytest.mark.parametrize("wrong", [None, 1, "xy", (1, 0), ["x", "x"], [["x"]], np.zeros(2), b"xy"])
def test_what_are_no_names_of_a_state_is_told_in_a_sentence(wrong: Any) -> None:
    """
    It raised a TypeError, or read the letters of a text as names.
    """
    with pytest.raises(ContractError, match=r"^names"):
        state_from(wrong, [0.0, 0.0])


@pytest.mark.parametrize("wrong", [None, [], {"front": 1}, np.zeros(2), "back"])
def test_what_is_no_camera_of_an_observation_is_told_in_a_sentence(wrong: Any) -> None:
    """
    What has no hash raised a TypeError.
    """
    picture = np.zeros((2, 2, 3), np.uint8)
    seen = Observation(
        instruction="go", state=[0.0], images={"front": picture}, frame_rate_hz=1, captured_at_s=0
    )
    with pytest.raises(ContractError, match=r"^camera: got .*, expected one of front"):
        seen.frames(wrong)
