"""Tests of `vlmcore.contracts.rotations`, in a space and in a document."""

from __future__ import annotations

import json
import math
from typing import Any

import attrs
import numpy as np
import pytest
from hypothesis import find, given

from vlmcore.contracts.documents import embodiment_from_json, embodiment_to_json
from vlmcore.contracts.embodiment import (
    ActionDim,
    ActionSpace,
    CameraSpec,
    Embodiment,
    LimitsSource,
    Reference,
)
from vlmcore.contracts.rotations import RotationForm, RotationGroup
from vlmcore.errors import ContractError, DocumentError
from vlmcore.testing._rotation_strategies import some_rotations
from vlmcore.testing.contract_strategies import action_spaces

XYZW = RotationForm.QUATERNION_XYZW
WRIST: dict[str, Any] = {"name": "wrist", "form": XYZW, "max_step_rad": 0.1}
WHOLE = RotationGroup(**WRIST)
PART: dict[str, Any] = {"low": -1.01, "high": 1.01, "rotation": "wrist"}
REACH = ActionDim(name="reach", unit="m", low=0.0, high=1.0, max_step=0.02)


def parts(names: str = "q_x q_y q_z q_w", rotation: str = "wrist") -> tuple[ActionDim, ...]:
    """Make the dimensions of a rotation."""
    return tuple(ActionDim(**PART | {"name": name, "rotation": rotation}) for name in names.split())


def space(*dims: ActionDim, groups: Any = (WHOLE,), rate_hz: float = 20) -> ActionSpace:
    """Make a space of *dims*, or of a wrist."""
    return ActionSpace(dims=dims or parts(), rate_hz=rate_hz, rotations=groups)


def robot(actions: ActionSpace) -> Embodiment:
    """Make a robot that moves by *actions*."""
    return Embodiment(
        name="arm",
        state_names=("s",),
        actions=actions,
        cameras=(CameraSpec(name="front"),),
        limits_source=LimitsSource.MANUFACTURER,
    )


def test_a_rotation_says_how_far_it_may_turn_in_a_step() -> None:
    """
    Itself, or by what it may turn in a second.
    """
    by_rate = attrs.evolve(WHOLE, max_step_rad=None, max_rate_rad_s=np.float32(2))
    assert (0.1, 0.1) == (WHOLE.step_rad(20), by_rate.step_rad(20))
    assert (float, math.pi) == (type(by_rate.max_rate_rad_s), by_rate.step_rad(2 / math.pi))


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"max_step_rad": None}, "max_step_rad: got neither .* for 'wrist', expected one"),
        ({"max_rate_rad_s": 1.0}, "max_rate_rad_s: got both .* for 'wrist', expected one"),
        ({"max_step_rad": 0}, "max_step_rad: got 0.0, .* above 0"),
        ({"max_step_rad": -0.1}, "max_step_rad: got -0.1, .* above 0"),
        ({"max_step_rad": math.nan}, "max_step_rad: got nan, expected a finite"),
        ({"max_step_rad": True}, "max_step_rad: got True, expected a finite"),
        ({"max_step_rad": "0.1"}, "max_step_rad: got '0.1', expected a finite"),
        ({"max_step_rad": 10**400}, "max_step_rad: got 1000.*, expected a finite"),
        ({"max_step_rad": 3.15}, "max_step_rad: got 3.15 for 'wrist', .* at most pi"),
        ({"max_step_rad": None, "max_rate_rad_s": 0}, "max_rate_rad_s: got 0.0, .* above 0"),
        ({"name": " "}, "name: got blank text"),
        ({"name": 3}, "name: got int, expected text"),
        ({"form": "rot6d"}, "form: got 'rot6d', expected one of RotationForm"),
    ],
)
def test_what_bounds_nothing_is_refused(changed: dict[str, Any], message: str) -> None:
    """
    No two rotations are further apart than pi: a longer step would never be one too many.
    """
    with pytest.raises(ContractError, match=f"^{message}"):
        RotationGroup(**WRIST | changed)


@pytest.mark.parametrize(("rate", "hz"), [(7.0, 2.0), (5e-324, 1e4)])
def test_a_rate_makes_a_step_that_bounds_something(rate: float, hz: float) -> None:
    """
    At the rate of the space.
    """
    group = RotationGroup(name="wrist", form=XYZW, max_rate_rad_s=rate)
    with pytest.raises(
        ContractError, match=r"^max_rate_rad_s: got .* Hz for 'wrist', .* at most pi"
    ):
        space(groups=(group,), rate_hz=hz)


@pytest.mark.parametrize("form", RotationForm)
def test_each_form_has_its_number_of_dimensions(form: RotationForm) -> None:
    """
    They have no steps of their own, and are found where they stand.
    """
    dims = (REACH, *parts(" ".join(f"r{i}" for i in range(form.size))))
    made = space(*dims, groups=[attrs.evolve(WHOLE, form=form)])

    assert [0.02, *[math.inf] * form.size] == made.max_step.tolist()
    assert slice(1, 1 + form.size) == made.rotations[0].columns(made.dims)
    assert () == ActionSpace(dims=(REACH,), rate_hz=20).rotations


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"max_step": 0.1}, "max_step: got 0.1 for 'q' of rotation 'wrist', expected None"),
        ({"max_rate": 0.1}, "max_rate: got 0.1 for 'q' of rotation 'wrist', expected None"),
        ({"period": 2.02}, "period: got 2.02 for 'q' of rotation 'wrist', expected None"),
        ({"levels": (0, 1)}, "levels: got .* for 'q' of rotation 'wrist', expected None"),
        ({"reference": Reference.DELTA}, "rotation: got 'wrist' with Reference.DELTA for 'q'"),
        ({"reference": Reference.VELOCITY}, "rotation: got 'wrist' with Reference.VELOCITY"),
        ({"position_low": 0, "position_high": 1}, "position_low: got 0 with Reference.ABSOLUTE"),
        ({"rotation": ""}, "rotation: got blank text"),
        ({"rotation": 1}, "rotation: got int, expected text"),
        ({"rotation": None}, "max_step: got neither"),
    ],
)
def test_one_number_of_a_rotation_has_bounds_and_nothing_else(changed: Any, message: str) -> None:
    """
    What it may do is said for all of them together.
    """
    with pytest.raises(ContractError, match=f"^{message}"):
        ActionDim(**{"name": "q", **PART, **changed})


@pytest.mark.parametrize(
    ("dims", "groups", "message"),
    [
        (parts()[:3], (WRIST,), "got 3 dimensions for 'wrist', expected 4, the numbers of Rot"),
        (parts("a b c d e"), (WRIST,), "got 5 dimensions for 'wrist', expected 4"),
        (
            (*parts()[:2], REACH, *parts()[2:]),
            (WRIST,),
            r"got dimensions \[0, 1, 3, 4\] for 'wrist'",
        ),
        (parts(), (), r"got \[\], expected 'wrist' among them, which 'q_x' names"),
        (parts(rotation="hand"), (WRIST,), r"got \['wrist'\], expected 'hand' among them"),
        (parts(), (WRIST, WRIST), r"got \['wrist', 'wrist'\], expected each name once"),
        (parts(), (WRIST, WRIST | {"name": "hand"}), "got 0 dimensions for 'hand', expected 4"),
    ],
)
def test_rotations_and_dimensions_name_each_other(dims: Any, groups: Any, message: str) -> None:
    """
    Side by side, as many as the form has, and no rotation without dimensions.
    """
    with pytest.raises(ContractError, match=f"^rotations: {message}"):
        space(*dims, groups=[RotationGroup(**each) for each in groups])


@pytest.mark.parametrize("wrong", [None, "wrist", 3, [WRIST], ["wrist"]])
def test_rotations_are_groups(wrong: Any) -> None:
    """
    Nothing else is read as one.
    """
    with pytest.raises(ContractError, match=r"^rotations: got .*expected a tuple of RotationGroup"):
        space(groups=wrong)


def test_a_document_keeps_rotations() -> None:
    """
    A reader of old sees a target that may go anywhere in one step.
    """
    said = robot(space(REACH, *parts()))
    document = json.loads(embodiment_to_json(said))

    assert said == embodiment_from_json(embodiment_to_json(said))
    assert [
        {
            "name": "wrist",
            "form": "quaternion_xyzw",
            "actions": ["q_x", "q_y", "q_z", "q_w"],
            "max_step_rad": 0.1,
        }
    ] == document["action_rotations"]
    assert [0.02, 2.02, 2.02, 2.02, 2.02] == document["max_delta_per_step"]
    assert "action_steps_unbounded" not in document
    assert "action_rotations" not in json.loads(embodiment_to_json(robot(space(REACH, groups=()))))


@pytest.mark.parametrize(
    ("changed", "path", "problem"),
    [
        ({"form": "euler"}, "[0].form", "got 'euler', expected one of"),
        ({"form": "rot6d"}, "", "got 4 dimensions for 'wrist', expected 6"),
        ({"max_step_rad": 4}, "[0].max_step_rad", "got 4, expected"),
        ({"max_step_rad": 0}, "[0].max_step_rad", "got 0, expected"),
        ({"max_rate_rad_s": 1}, "[0].max_rate_rad_s", "got both"),
        ({"actions": ["q_x", "q_y"]}, "[0].actions", "got 2 "),
        ({"actions": ["q_x", "q_y", "q_z", "who"]}, "[0].actions[3]", "is not one of action_names"),
        ({"actions": ["q_x", "q_y", "q_z", "q_z"]}, "[0].actions[3]", "is there twice"),
        ({"actions": ["q_w", "q_x", "q_y", "q_z"]}, "[0].actions", "expected them in the order"),
        ({"name": "a\nb"}, "[0].name", "expected no control characters"),
    ],
)
def test_a_fault_of_a_rotation_has_its_place(changed: Any, path: str, problem: str) -> None:
    """
    All of a document are listed, each with its path.
    """
    document = json.loads(embodiment_to_json(robot(space())))
    document["action_rotations"][0].update(changed)
    with pytest.raises(DocumentError) as caught:
        embodiment_from_json(json.dumps(document))
    faults = [what for at, what in caught.value.faults if at == f"$.action_rotations{path}"]
    assert any(problem in what for what in faults), caught.value.faults


@given(action_spaces(max_dims=8))
def test_every_space_is_made_from_its_fields(made: ActionSpace) -> None:
    """
    Rotations in it are kept by documents, and by copies.
    """
    said = robot(made)
    assert said == embodiment_from_json(embodiment_to_json(said))
    assert made == attrs.evolve(made)


def test_spaces_are_drawn_with_rotations() -> None:
    """
    In every form.
    """
    for form in RotationForm:
        groups, dims = find(
            some_rotations(list("abcdefg"), 20.0),
            lambda drawn, form=form: form in [group.form for group in drawn[0]],
        )
        assert sum(group.form.size for group in groups) == len(dims)
