"""Tests of what contracts and reports look like in notebooks."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pytest
from hypothesis import given

from safety_cases import GRIPPER, JOINT, WHEEL, chunk, gate, space
from vlmcore.contracts.embodiment import (
    ActionDim,
    ActionSpace,
    CameraSpec,
    Embodiment,
    LimitsSource,
    Reference,
)
from vlmcore.contracts.observation import Observation
from vlmcore.contracts.presets import PRESETS
from vlmcore.contracts.rotations import RotationForm, RotationGroup
from vlmcore.safety import Remedy
from vlmcore.testing.contract_strategies import action_chunks, embodiments, observations

VOID = {"img", "br"}
FORBIDDEN = {"script", "style", "link", "iframe", "object", "embed", "form", "base", "meta"}


class Strict(HTMLParser):
    """Refuses tags that are not closed in their order, scripts, and what comes from outside."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.texts: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag not in FORBIDDEN
        for name, value in attrs:
            assert not name.startswith("on"), name
            if name in ("src", "href"):
                assert (value or "").startswith("data:image/png;base64,")
            assert "url(" not in (value or "")
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert [tag] == self.open[-1:], f"{tag} closes {self.open}"
        self.open.pop()

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def read(shown: Any) -> str:
    """Read what a notebook is given, strictly, and take its text."""
    page = shown._repr_html_()
    reader = Strict()
    reader.feed(page)
    reader.close()

    assert [] == reader.open
    assert re.search(r"[\x00-\x08\x0b-\x1f\x7f\u202a-\u202e\u2066-\u2069]", page) is None
    assert len(page) < 512 * 1024
    return "".join(reader.texts)


def robot(*dims: ActionDim, **fields: Any) -> Embodiment:
    given: dict[str, Any] = {
        "name": "arm",
        "state_names": ("x",),
        "actions": space(*(dims or (JOINT,))),
        "cameras": (CameraSpec(name="front", height_px=480, width_px=640),),
        "limits_source": LimitsSource.MANUFACTURER,
    }
    return Embodiment(**given | fields)


def observation(**fields: Any) -> Observation:
    image = np.full((480, 640, 3), 90, np.uint8)
    given: dict[str, Any] = {
        "instruction": "pick it up",
        "state": [0.5, -0.25],
        "images": {"front": np.stack([image] * 3), "wrist": image},
        "frame_rate_hz": 30,
        "captured_at_s": 12.5,
    }
    return Observation(**given | fields)


def test_a_robot_says_its_bounds_and_whose_they_are() -> None:
    """
    Each dimension with its unit, its reference and its steps.
    """
    slide = ActionDim(
        name="dx", unit="m", reference=Reference.VELOCITY, low=-0.05, high=0.05, max_rate=1.0
    )
    text = read(robot(JOINT, slide, GRIPPER, WHEEL))
    for words in ("data sheet", "velocity", "-0.05", "levels 0, 1", "comes round after 6", "any"):
        assert words in text
    assert "front (480 x 640)" in text


def test_a_rotation_says_how_far_it_may_turn() -> None:
    """
    Its dimensions have no steps of their own.
    """
    group = RotationGroup(name="hand", form=RotationForm.QUATERNION_XYZW, max_step_rad=0.25)
    dims = tuple(ActionDim(name=name, low=-1, high=1, rotation="hand") for name in "xyzw")
    turning = ActionSpace(dims=dims, rate_hz=20, rotations=(group,))
    text = read(robot(actions=turning))

    assert "Rotation hand: quaternion xyzw, at most 0.25 rad a step" in text
    assert 4 == text.count("part of the rotation hand")


@pytest.mark.parametrize("preset", PRESETS.values(), ids=list(PRESETS))
def test_a_template_says_that_nobody_certifies_it(preset: Embodiment) -> None:
    """
    Plainly, where it is seen.
    """
    assert "Template limits, certified by nobody." in read(preset)


def test_an_observation_shows_its_newest_frames_small() -> None:
    """
    The instruction, how many frames there are, and the state.
    """
    shown = observation()
    text = read(shown)
    for words in ("pick it up", "3 frames at 30 Hz", "480 x 640, 3 of 3", "1 of 3", "-0.25"):
        assert words in text
    assert 2 == shown._repr_html_().count("<img ")


def test_a_chunk_shows_its_first_and_last_steps_and_a_chart() -> None:
    """
    Without any package to draw with.
    """
    made = chunk([[float(step)] for step in range(9)])
    assert "step 0step 1step 2step 7step 8" in read(made)
    assert "<svg " in made._repr_html_()


def test_a_report_says_its_verdict_its_counts_and_the_first_violations() -> None:
    """
    In the words of the report.
    """
    unsafe = gate().check(chunk([[0.05], [9.0]]), last_command=[0.0])
    text = read(unsafe)
    for words in ("Not safe to hand on: violations", "out of bounds1", "step 1, 'x': 9 out of"):
        assert words in text
    assert "Safe to hand on, unchanged" in read(gate().check(chunk([[0.05]]), last_command=[0.0]))


def test_a_vetted_chunk_says_that_it_was_changed() -> None:
    """
    And whose limits it keeps.
    """
    template = robot(JOINT, limits_source=LimitsSource.TEMPLATE)
    made = chunk([[0.05], [0.5]])
    vetted = type(gate())(embodiment=template, remedy=Remedy.CLAMP).vet(made, last_command=[0.0])
    text = read(vetted)
    for words in ("Vetted: test", "after changes", "certified by nobody", "1 value broke a limit"):
        assert words in text


def test_markup_and_marks_of_direction_stay_text() -> None:
    """
    A name with a script in it is a name; what would turn the line around is written out.
    """
    name = '<script>alert("x")</script>'
    arm = robot(
        ActionDim(name=name, low=-1, high=1, max_step=0.1), name=f"'{name}'", notes="\u202e<b>"
    )
    assert name in read(arm)
    assert "\\u202e<b>" in read(arm)
    seen = observation(
        instruction=f"\x00\x1b[31m\u2066{name}\n", images={'"><i>': np.zeros((2, 2, 3), np.uint8)}
    )
    assert "\\x00\\x1b[31m\\u2066<script>" in read(seen)
    assert name in read(chunk([[1.0]], name))


def test_the_largest_contracts_give_small_pages() -> None:
    """
    What is not shown is counted.
    """
    noise = np.random.default_rng(0).normal(size=(4096, 2048))
    names = tuple(f"dim_{i}" for i in range(2048))
    assert "and 2,000 more dimensions" in read(chunk(noise, *names))
    dims = (ActionDim(name=name, low=-1, high=1, max_step=0.1) for name in names)
    assert "and 2,000 more dimensions" in read(robot(*dims, state_names=names))
    images = {f"cam_{i}": np.zeros((64, 64, 3), np.uint8) for i in range(16)}
    assert "and 2,000 more numbers" in read(
        observation(instruction="x" * 16_000, state=np.zeros(2048), images=images)
    )


@given(action_chunks())
def test_any_chunk_is_shown(made: Any) -> None:
    """
    Whatever it holds.
    """
    read(made)


@given(embodiments())
def test_any_robot_is_shown(made: Any) -> None:
    """
    Whatever it is called.
    """
    read(made)


@given(observations())
def test_any_observation_is_shown(made: Any) -> None:
    """
    Whatever it is told.
    """
    read(made)
