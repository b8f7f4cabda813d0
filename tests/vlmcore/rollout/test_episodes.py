"""Tests of `vlmcore.rollout.episodes`: parts of a step that contradict each other are refused."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import attrs
import numpy as np
import pytest

from episode_cases import HEADER, NAN, ROBOT, observation, proposal, some_steps, step
from vlmcore.errors import ContractError
from vlmcore.rollout.episode_frames import encode_frames
from vlmcore.rollout.episodes import EpisodeHeader

FRAMES = encode_frames(observation())


@pytest.mark.parametrize(
    ("field", "wrong", "message"),
    [
        ("at_s", NAN, "at_s: got nan, expected a finite number"),
        ("at_s", True, "at_s: got True"),
        ("observation", observation(), "observation: got Observation, expected ObservationSummary"),
        ("chunk", None, "chunk: got NoneType, expected ActionChunk"),
        ("chunk", proposal([[0.0, 0.0]] * 3), "report.input_horizon: got 2, expected .* chunk, 3"),
        (
            "chunk",
            proposal([[0.0, 0.0]] * 2, source="b"),
            "report.policy_source: got 'test', expected that of the chunk, 'b'",
        ),
        ("report", {}, "report: got dict, expected SafetySummary"),
        ("last_command", [0.0], "last_command: got 1 numbers, expected 2"),
        ("last_command", [0.0, NAN], r"last_command\[1\]: got nan, expected a finite number"),
        ("last_command", "00", "last_command: got str"),
        ("vetted", [[0.0, 0.0]], r"vetted: got shape \[1, 2\], expected .* report, \[2, 2\]"),
        ("vetted", [[0.0, NAN]] * 2, r"vetted\[0\]\[1\]: got nan"),
        ("executed_steps", 3, "executed_steps: got 3, expected 0 to 2"),
        ("executed_steps", -1, "executed_steps: got -1"),
        ("executed_steps", True, "executed_steps: got True"),
        ("executed_steps", 1.0, "executed_steps: got 1.0"),
        ("position", {"x": NAN}, r"position\['x'\]: got nan, expected a finite number"),
        ("position", [1.0], "position: got list"),
        ("frames", [], r"frames: got \[\], expected frames by camera"),
        ("frames", {"back": FRAMES["front"]}, r"frames\['back'\]: is of no camera .*: front"),
        ("frames", {"front": [b"\xff\xd8\xff"]}, r"frames\['front'\]: got .* EncodedFrame"),
        ("frames", {"front": FRAMES["front"] * 2}, r"got the frames \[0, 0\], expected each once"),
        (
            "frames",
            {"front": [attrs.evolve(FRAMES["front"][0], frame_index=1)]},
            r"got the frames \[1\], expected each once, in order, of 1",
        ),
    ],
    ids=lambda value: repr(value)[:24],
)
def test_a_field_that_is_wrong_is_named(field: str, wrong: Any, message: str) -> None:
    """
    One clear error each.
    """
    with pytest.raises(ContractError, match=message):
        attrs.evolve(step(), **{field: wrong})


def test_a_step_with_values_and_a_refusal_is_refused() -> None:
    """
    Nothing leaves a gate that refused.
    """
    refused = step(last_command=None)
    assert refused.vetted is None
    with pytest.raises(ContractError, match=r"^vetted: .* says they are unsafe"):
        attrs.evolve(refused, vetted=[[0.0, 0.0]] * 2)


def test_no_step_is_executed_of_what_was_refused() -> None:
    """
    The bound is what left the gate.
    """
    with pytest.raises(ContractError, match=r"^executed_steps: got 1, expected 0 to 0"):
        step(last_command=None, executed_steps=1)


def test_sent_is_what_was_executed_of_what_left_the_gate() -> None:
    """
    Of two vetted steps the first; of a refused chunk nothing, with the width of the robot.
    """
    assert [[0.05, 0.0]] == step(executed_steps=1).sent.tolist()
    assert (0, 2) == step(last_command=None).sent.shape


def test_arrays_of_a_step_cannot_be_written_to() -> None:
    """
    Nor do they share memory with the caller's.
    """
    mine = np.zeros((2, 2))
    made = step(vetted=mine, executed_steps=1)
    mine[:] = 9.0
    assert made.vetted is not None
    assert 0.0 == made.vetted.max()
    for array in (made.vetted, made.sent, made.last_command):
        assert array is not None
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 1.0


def test_steps_are_copied_and_pickled_by_their_fields() -> None:
    """
    NaN in the chunk is the same NaN.
    """
    for each in (*some_steps(), step(frames=FRAMES, position={"x": 1})):
        for twin in (copy.deepcopy(each), pickle.loads(pickle.dumps(each))):
            assert twin == each


@pytest.mark.parametrize(
    "change",
    [
        {"at_s": 8.0},
        {"last_command": (0.0, 0.05)},
        {"last_command": None, "vetted": None},
        {"observation": observation(8.0).summary()},
        {"executed_steps": 1},
        {"position": {"x": 0.5}},
        {"frames": FRAMES},
    ],
    ids=str,
)
def test_steps_that_differ_in_one_field_are_not_equal(change: dict[str, Any]) -> None:
    """
    In each field that is not held against another.
    """
    assert step() == step()
    assert step() != step(**change)


def test_a_step_of_another_robot_does_not_fit() -> None:
    """
    Numbers without a name would be drawn and replayed as somebody else's.
    """
    HEADER.require_fits(step())
    alone = attrs.evolve(ROBOT, actions=attrs.evolve(ROBOT.actions, dims=ROBOT.actions.dims[:1]))
    with pytest.raises(ContractError, match=r"^chunk.names: got x, y, expected the actions x$"):
        EpisodeHeader(embodiment=alone).require_fits(step())
    renamed = attrs.evolve(step(), chunk=proposal([[0.0, 0.0]] * 2, names=("x", "z")))
    with pytest.raises(ContractError, match=r"^chunk.names: got x, z, expected the actions x, y"):
        HEADER.require_fits(renamed)
    HEADER.require_fits(attrs.evolve(renamed, chunk=proposal([[0.0, 0.0]] * 2, names=("y", "x"))))
    blind = EpisodeHeader(embodiment=attrs.evolve(ROBOT, state_names=("x",)))
    with pytest.raises(ContractError, match=r"^observation.state: got 3 numbers, expected the 1"):
        blind.require_fits(step())
    with pytest.raises(ContractError, match=r"^position: got z, expected the actions x, y"):
        HEADER.require_fits(step(position={"z": 0.0}))


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"embodiment": None}, "embodiment: got NoneType, expected Embodiment"),
        ({"made_by": "a\nb"}, "made_by: got "),
        ({"made_at": 12.0}, "made_at: got float, expected text"),
        ({"metadata": {"x": NAN}}, r"metadata.x: got float nan"),
        ({"metadata": []}, "metadata: got list, expected an object"),
    ],
    ids=str,
)
def test_a_header_that_is_wrong_is_refused(fields: dict[str, Any], message: str) -> None:
    """
    One clear error each.
    """
    with pytest.raises(ContractError, match=f"^{message}"):
        EpisodeHeader(**{"embodiment": ROBOT} | fields)


def test_headers_are_copied_and_pickled_by_their_fields() -> None:
    """
    Metadata, too, which is read-only in both.
    """
    header = attrs.evolve(HEADER, metadata={"seeds": [1, 2], "policy": {"name": "a"}})
    twin = pickle.loads(pickle.dumps(header))
    assert header == twin
    assert header != HEADER
    with pytest.raises(TypeError):
        twin.metadata["policy"] = 1
