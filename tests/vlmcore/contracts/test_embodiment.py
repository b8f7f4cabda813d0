"""Tests of `vlmcore.contracts.embodiment`."""

from __future__ import annotations

import copy
import math
import pickle
from typing import Any

import attrs
import numpy as np
import pytest
from hypothesis import given

from vlmcore.contracts.embodiment import (
    ActionDim,
    ActionSpace,
    CameraSpec,
    Embodiment,
    LimitsSource,
    Reference,
)
from vlmcore.contracts.rotations import RotationForm, RotationGroup
from vlmcore.errors import ContractError, LimitExceededError
from vlmcore.testing.contract_strategies import action_spaces, embodiments

JOINT = ActionDim(name="joint", unit="rad", low=-1.0, high=2.0, max_rate=3.0)
SLIDE = ActionDim(name="slide", reference=Reference.DELTA, low=-0.1, high=0.1, max_step=0.05)
TURN = ActionDim(name="turn", low=0.0, high=360.0, period=360.0, max_step=5.0)
GRIPPER = ActionDim(name="gripper", low=0.0, high=1.0, levels=(0.0, 1.0))
SPACE = ActionSpace(dims=(JOINT, SLIDE, TURN, GRIPPER), rate_hz=30)
ROBOT: dict[str, Any] = {
    "name": "robot",
    "state_names": ("x", "y"),
    "actions": SPACE,
    "cameras": (CameraSpec(name="front"),),
    "limits_source": LimitsSource.DATASET,
}
ARRAYS = (
    "low",
    "high",
    "max_step",
    "period",
    "position_low",
    "position_high",
    "is_change",
    "is_discrete",
)


def test_a_space_holds_what_its_dimensions_say_as_arrays() -> None:
    """
    A rate becomes a step by the rate of control; what has no bound has an infinite one.
    """
    assert ("joint", "slide", "turn", "gripper") == SPACE.names
    assert [-1.0, -0.1, 0.0, 0.0] == SPACE.low.tolist()
    assert [2.0, 0.1, 360.0, 1.0] == SPACE.high.tolist()
    assert [0.1, 0.05, 5.0, math.inf] == SPACE.max_step.tolist()
    np.testing.assert_array_equal([np.nan, np.nan, 360.0, np.nan], SPACE.period)
    assert [False, True, False, False] == SPACE.is_change.tolist()
    assert [False, False, False, True] == SPACE.is_discrete.tolist()


@pytest.mark.parametrize("copied", [SPACE, copy.deepcopy(SPACE), pickle.loads(pickle.dumps(SPACE))])
@pytest.mark.parametrize("field", ARRAYS)
def test_nobody_can_move_a_bound(copied: ActionSpace, field: str) -> None:
    """
    Not even by lifting the flag, nor after a copy in another process.
    """
    array = getattr(copied, field)

    assert np.bool_ == array.dtype if field.startswith("is_") else np.float64 == array.dtype
    with pytest.raises(ValueError, match="read-only"):
        array[0] = 1
    with pytest.raises(ValueError, match="WRITEABLE"):
        array.flags.writeable = True


def test_a_space_says_whose_position_must_be_known() -> None:
    """
    Where nothing is said, everything is in bounds.
    """
    change = {"reference": Reference.DELTA, "low": -1, "high": 1, "max_step": 0.1}
    moved = ActionDim(name="dx", **change, position_low=-0.5, position_high=0.5)
    space = ActionSpace(dims=(ActionDim(name="dy", **change), moved), rate_hz=20)
    assert ("dx",) == space.position_names
    assert [-math.inf, -0.5] == space.position_low.tolist()
    assert [math.inf, 0.5] == space.position_high.tolist()


def test_spaces_are_compared_by_what_they_say() -> None:
    """
    Equal, with the same hash, wherever they came from.
    """
    other = pickle.loads(pickle.dumps(SPACE))

    assert SPACE == other
    assert hash(SPACE) == hash(other)
    assert SPACE != attrs.evolve(SPACE, rate_hz=20)


def test_a_dimension_is_found_by_its_name() -> None:
    """
    The names that there are are listed.
    """
    assert 2 == SPACE.index("turn")
    with pytest.raises(ContractError, match=r"^name: got 'Turn', expected one of joint, slide, tu"):
        SPACE.index("Turn")


@pytest.mark.parametrize(
    ("dims", "message"),
    [
        ((), "got 0 names, expected 1 to 2048"),
        ((JOINT, SLIDE, JOINT), r"got \['joint'\] more than once"),
        ((JOINT, "slide"), "expected a tuple of ActionDim"),
        ("joint", "expected a tuple of ActionDim"),
        (None, "expected a tuple of ActionDim"),
        (tuple(attrs.evolve(JOINT, name=f"j{i}") for i in range(2049)), "got 2049 names"),
    ],
)
def test_a_space_has_dimensions_with_names_of_their_own(dims: Any, message: str) -> None:
    """
    1 to 2,048.
    """
    with pytest.raises(ContractError, match=f"^dims: .*{message}"):
        ActionSpace(dims=dims, rate_hz=20)


def test_a_space_of_2048_dimensions_at_10000_hz_is_the_largest() -> None:
    """
    The limits belong to what is allowed.
    """
    dims = tuple(attrs.evolve(JOINT, name=f"j{i}") for i in range(2048))
    assert 2048 == len(ActionSpace(dims=dims, rate_hz=10_000).low)


@pytest.mark.parametrize("wrong", [0, -1.0, math.nan, math.inf, 10_000.1, True, "20", None])
def test_the_rate_of_control_is_above_0_and_up_to_10000(wrong: Any) -> None:
    """
    It is what a rate is divided by.
    """
    with pytest.raises(ContractError, match=r"^rate_hz: got "):
        ActionSpace(dims=(JOINT,), rate_hz=wrong)


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"low": 0, "high": 2.0**40, "max_step": 0.001}, "max_step"),
        ({"low": -1.0, "high": 1.0, "max_step": 3.5e-13}, "max_step"),
        ({"low": -1.0, "high": 1.0, "max_rate": 3.5e-12}, "max_rate"),
        ({"low": 1e6 - math.pi, "high": 1e6 + math.pi, "max_step": 1e-7}, "max_step"),
        ({"low": 0, "high": 1e15, "levels": (0.0, 1e15), "max_step": 1}, "max_step"),
        (
            {
                "reference": Reference.DELTA,
                "low": -1,
                "high": 1,
                "max_step": 1,
                "position_low": 1e6,
                "position_high": 1e6 + 1e-8,
            },
            "position_low",
        ),
    ],
)
def test_what_float64_cannot_tell_apart_is_no_bound(fields: dict[str, Any], field: str) -> None:
    """
    A slack of a hundredth at the most is false where float64 itself is too coarse.
    """
    dim = ActionDim(name="x", **fields)
    with pytest.raises(ContractError, match=rf"^{field}: got .* 'x', expected at least .*rounding"):
        ActionSpace(dims=(dim,), rate_hz=10)


@pytest.mark.parametrize(("form", "least"), [("quaternion_xyzw", 4e-13), ("axis_angle", 3e-12)])
def test_a_turn_that_float64_cannot_tell_apart_is_no_bound(form: str, least: float) -> None:
    """
    The numbers of a quaternion are at most 1, those of an axis with an angle up to a turn.
    """
    kind = RotationForm(form)
    dims = [ActionDim(name=f"r{i}", low=-1, high=1, rotation="r") for i in range(kind.size)]
    for step in (least, least / 2):
        group = RotationGroup(name="r", form=kind, max_rate_rad_s=step * 10)
        if step == least:
            assert 10 == ActionSpace(dims=dims, rotations=(group,), rate_hz=10).rate_hz
            continue
        with pytest.raises(ContractError, match=r"^max_rate_rad_s: got .* rad a step for 'r'"):
            ActionSpace(dims=dims, rotations=(group,), rate_hz=10)


@pytest.mark.parametrize(
    ("fields", "least"),
    [
        ({"levels": (0, 1), "max_step": 0.15}, "1"),
        ({"levels": (0, 1), "max_rate": 15}, "1"),
        ({"levels": (-1, 0, 0.5), "max_step": 0.4}, "0.5"),
        ({"levels": (-1, -0.8, 0), "max_step": 0.4, "reference": Reference.DELTA}, "0.8"),
    ],
    ids=str,
)
def test_a_gripper_that_could_never_leave_its_level_is_refused(
    fields: dict[str, Any], least: str
) -> None:
    """
    With a step of 0.15 it stayed open or closed for ever, and every chunk was called safe.
    """
    dim = ActionDim(name="grip", low=-1, high=1, **fields)
    with pytest.raises(ContractError) as error:
        ActionSpace(dims=(dim,), rate_hz=100)
    field = "max_step" if dim.max_rate is None else "max_rate"
    assert (
        f"{field}: got {dim.max_step or 0.15:g} a step for 'grip', expected at least {least}, "
        "or none: no other level could ever be reached"
    ) == str(error.value)


@pytest.mark.parametrize(
    "fields",
    [
        {"levels": (0, 1), "max_step": 1},
        {"levels": (0, 1), "max_rate": 100},
        {"levels": (0, 1)},
        {"levels": (-1, 0.9, 1), "max_step": 0.1},
        {"levels": (-1, -0.4, 0), "max_step": 0.4, "reference": Reference.DELTA},
        {"levels": (0.6, 0.7), "max_step": 0.7 - 0.6 - 1e-9},
    ],
    ids=str,
)
def test_a_step_that_reaches_one_other_level_is_enough(fields: dict[str, Any]) -> None:
    """
    Also one that the audit forgives.
    """
    dim = ActionDim(name="grip", low=-1, high=1, **fields)
    assert dim is ActionSpace(dims=(dim,), rate_hz=100).dims[0]


@pytest.mark.parametrize(("rate", "hz"), [(5e-324, 10_000), (1e308, 1e-3)])
def test_a_rate_that_makes_no_step_is_refused(rate: float, hz: float) -> None:
    """
    A step of 0 would hold the robot for ever, an infinite one would be no bound.
    """
    with pytest.raises(ContractError, match=r"^max_rate: got .* a step that float64 can hold"):
        ActionSpace(dims=(attrs.evolve(JOINT, max_rate=rate),), rate_hz=hz)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"height_px": 480}, "^width_px: got None, expected both sides or neither"),
        ({"width_px": 480}, "^height_px: got None"),
        ({"height_px": 0, "width_px": 1}, "^height_px: got 0"),
        ({"height_px": 1, "width_px": 1.0}, "^width_px: got 1.0"),
        ({"height_px": 4097, "width_px": 4096}, "^max_frame_pixels: got "),
        ({"name": ""}, "^name: got blank"),
    ],
)
def test_a_camera_has_a_name_and_both_sides_or_none(fields: dict[str, Any], message: str) -> None:
    """
    At most 16 Mi pixels.
    """
    with pytest.raises(ContractError, match=message):
        CameraSpec(**{"name": "front", **fields})
    assert 4096 == CameraSpec(name="front", height_px=4096, width_px=4096).height_px


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"name": "a\tb"}, "^name: got 'a.tb', expected no control characters"),
        ({"state_names": ()}, "^state_names: got 0 names"),
        ({"state_names": ("x", "x")}, r"^state_names: got \['x'\] more than once"),
        ({"state_names": ("x", 3)}, r"^state_names\[1\]: got int"),
        ({"state_names": "xy"}, "^state_names: got str, expected a tuple of names"),
        ({"state_names": (["x"],)}, r"^state_names\[0\]: got list"),
        ({"actions": (JOINT,)}, "^actions: got tuple, expected an ActionSpace"),
        ({"cameras": ()}, "^cameras: got 0 names"),
        ({"cameras": ("front",)}, "^cameras: got .* expected a tuple of CameraSpec"),
        ({"cameras": (CameraSpec(name="a"),) * 2}, r"^cameras: got \['a'\] more than once"),
        ({"cameras": tuple(CameraSpec(name=str(i)) for i in range(17))}, "^cameras: got 17"),
        ({"limits_source": "dataset"}, "^limits_source: got 'dataset', expected one of Limits"),
        ({"action_mode": "a\nb"}, "^action_mode: got"),
        ({"action_mode": None}, "^action_mode: got NoneType"),
        ({"notes": None}, "^notes: got NoneType, expected text"),
        ({"notes": "x" * 16_385}, "^max_notes_characters: got 16385, limit is 16384"),
    ],
)
def test_an_embodiment_says_which_field_is_wrong(fields: dict[str, Any], message: str) -> None:
    """
    One clear error each.
    """
    with pytest.raises(ContractError, match=message):
        Embodiment(**ROBOT | fields)


def test_lists_of_names_become_tuples() -> None:
    """
    Canonical, so that equal robots compare equal.
    """
    made = Embodiment(**ROBOT | {"state_names": ["x", "y"], "cameras": [CameraSpec(name="front")]})

    assert Embodiment(**ROBOT) == made
    assert ("front",) == made.camera_names


def test_limits_are_refused_as_limits() -> None:
    """
    With the numbers to be read.
    """
    with pytest.raises(LimitExceededError) as caught:
        Embodiment(**ROBOT, notes="x" * 20_000)
    assert (20_000, 16_384) == (caught.value.actual, caught.value.allowed)


@given(action_spaces())
def test_a_space_is_within_itself(space: ActionSpace) -> None:
    """
    What the gate relies on: ordered bounds, steps above zero, and a way to stand still.
    """
    assert (space.low < space.high).all()
    assert (space.max_step > 0).all()
    alone = np.array([dim.rotation is None for dim in space.dims])
    assert np.isinf(space.max_step[~space.is_discrete & alone]).sum() == 0
    assert ((space.low <= 0) & (space.high >= 0))[space.is_change].all()
    assert not (space.is_change & np.isfinite(space.period)).any()


@given(embodiments())
def test_an_embodiment_crosses_a_process_boundary(embodiment: Embodiment) -> None:
    """
    As it was.
    """
    assert embodiment == pickle.loads(pickle.dumps(embodiment))


def test_the_digest_of_a_space_covers_all_that_it_says() -> None:
    """
    Every field of a dimension, their order, and the rate.
    """

    def digest(*dims: ActionDim, rate_hz: float = 30) -> str:
        return ActionSpace(dims=dims, rate_hz=rate_hz).digest()

    rest = SPACE.dims[1:]
    changed = [
        digest(*SPACE.dims, rate_hz=31),
        digest(*SPACE.dims[::-1]),
        digest(*rest),
        digest(attrs.evolve(JOINT, name="q"), *rest),
        digest(attrs.evolve(JOINT, unit="turn"), *rest),
        digest(attrs.evolve(JOINT, high=1.5), *rest),
        digest(attrs.evolve(JOINT, max_rate=None, max_step=0.1), *rest),
        digest(*SPACE.dims[:3], attrs.evolve(GRIPPER, levels=(0.0, 0.5))),
        digest(JOINT, attrs.evolve(SLIDE, position_low=0.0, position_high=1.0), *SPACE.dims[2:]),
    ]
    assert len(changed) + 1 == len({SPACE.digest(), *changed})
    assert digest(*SPACE.dims) == SPACE.digest()
