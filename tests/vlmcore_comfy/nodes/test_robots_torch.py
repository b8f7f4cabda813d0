"""The nodes for robots: documents in and out, a gate that old graphs pass, and one new colour."""

from __future__ import annotations

import asyncio
import json
import math
import re
from collections.abc import Iterator
from typing import Any

import attrs
import numpy as np
import pytest

from vlmcore.contracts.documents import action_chunk_from_json, embodiment_from_json
from vlmcore.contracts.embodiment import Embodiment
from vlmcore.contracts.presets import find_embodiment
from vlmcore.errors import ContractError, EndpointError, PolicyError, UnsafeActionError
from vlmcore.policy.catalog import POLICIES
from vlmcore.policy.interface import PolicyInfo
from vlmcore.safety.documents import safety_report_from_json
from vlmcore.safety.vetted import VettedChunk
from vlmcore.testing import ScriptedPolicy
from vlmcore_comfy.declaring import Blocked
from vlmcore_comfy.nodes.actions import (
    action_inspect,
    actions_from_json,
    chunk_replan,
    trajectory_preview,
)
from vlmcore_comfy.nodes.embodiments import embodiment_profile, model_catalog
from vlmcore_comfy.nodes.observations import observation_builder
from vlmcore_comfy.nodes.policies import groot_policy, http_policy, openpi_policy
from vlmcore_comfy.nodes.safety import action_safety
from vlmcore_comfy.policy_tokens import token_for
from vlmcore_comfy.seeing import SeenBy
from vlmcore_robotics.servers.http import HttpPolicyServer
from vlmcore_robotics.servers.runtime import PolicyRuntime
from vlmcore_robotics.servers.threads import serve_in_thread

torch = pytest.importorskip("torch")

ARM = find_embodiment("generic_7dof_joint_gripper")
STILL = "[0, 0, 0, 0, 0, 0, 0, 0]"
PROFILE: dict[str, Any] = {
    "preset": "Generic 7-DoF joint + gripper",
    "control_hz": 0.0,
    "state_names_json": "",
    "action_names_json": "",
    "action_min_json": "",
    "action_max_json": "",
    "max_delta_json": "",
    "camera_names_json": "",
    "action_mode_override": "",
}
SEEN: dict[str, Any] = {
    "task": "Pick up the cube.",
    "state_json": STILL,
    "primary_camera": "observation.images.front",
    "history_fps": 10.0,
    "timestamp": 0.0,
}


REMOTELY: dict[str, Any] = {"timeout_seconds": 5.0, "allow_remote": False}


async def over_http(observation: Any, endpoint: str) -> Any:
    return await http_policy(
        observation=observation, endpoint=endpoint, include_history=True, **REMOTELY
    )


def picture(frames: int = 1) -> Any:
    return torch.full((frames, 6, 8, 3), 0.5)


def seen(robot: Embodiment | None = ARM, **changes: Any) -> SeenBy:
    given = {"primary_image": picture(), "embodiment": robot, **SEEN, **changes}
    return observation_builder(**given)[0]


def rows(*values: float, steps: int = 3) -> str:
    return json.dumps([[value] * 8 for value in values] if values else [[0.0] * 8] * steps)


@pytest.mark.parametrize(
    "label",
    [
        "Generic 7-DoF joint + gripper",
        "Generic EEF delta + gripper",
        "LeRobot SO-100 / SO-101 template",
        "LIBERO Panda simulation template",
        "ALOHA bimanual template",
    ],
)
def test_each_preset_is_the_robot_of_the_core(label: str) -> None:
    """
    Nothing of it is written down twice.
    """
    robot, profile, states, actions = embodiment_profile(**{**PROFILE, "preset": label})
    assert robot == find_embodiment(label) == embodiment_from_json(profile)
    assert (states, actions) == (len(robot.state_names), len(robot.actions.names))


def test_what_is_said_takes_the_place_of_the_preset() -> None:
    """
    Field by field; what is blank stays.
    """
    robot, _, states, actions = embodiment_profile(
        **{
            **PROFILE,
            "control_hz": 50.0,
            "state_names_json": '["x", "y"]',
            "action_names_json": '["dx", "dy"]',
            "action_min_json": "[-1, -1]",
            "action_max_json": "[1, 1]",
            "max_delta_json": "[0.1, 0.2]",
            "camera_names_json": '["top"]',
            "action_mode_override": "delta end-effector pose",
        }
    )
    assert (states, actions, robot.actions.rate_hz) == (2, 2, 50.0)
    assert robot.camera_names == ("top",)
    assert robot.actions.is_change.tolist() == [True, True]
    assert robot.actions.max_step.tolist() == [0.1, 0.2]


@pytest.mark.parametrize(
    ("field", "text", "said"),
    [
        ("state_names_json", "[1]", "state_names_json: expected a JSON list of names"),
        ("state_names_json", "[", "state_names_json: is no JSON"),
        ("action_min_json", '["a"]', "action_min_json: expected a JSON list of numbers"),
        ("action_min_json", "[true]", "action_min_json: expected a JSON list of numbers"),
        ("action_max_json", "[1]", "action_max"),
        ("max_delta_json", "[NaN]", "max_delta_json: is no JSON"),
        ("camera_names_json", '["a", "a"]', "camera"),
    ],
)
def test_a_wrong_field_of_a_robot_is_told(field: str, text: str, said: str) -> None:
    """
    By its name, with what was expected.
    """
    with pytest.raises(ContractError, match=re.escape(said)):
        embodiment_profile(**{**PROFILE, field: text})


@pytest.mark.parametrize("spec", POLICIES, ids=lambda spec: spec.key)
def test_each_policy_of_the_catalog_is_a_choice(spec: Any) -> None:
    """
    The labels of the node are those of the catalog.
    """
    (labels,) = (each.options["options"] for each in model_catalog.inputs)
    assert spec.label in labels
    info, checkpoint, kind, backend = model_catalog(spec.label)
    assert json.loads(info)["key"] == spec.key
    assert (checkpoint, kind) == (spec.checkpoint or "", spec.policy_type)
    assert backend == spec.runtimes[0].value


def test_an_observation_is_put_together() -> None:
    """
    A batch is a history; cameras that are not joined are not there.
    """
    built, summary, history = observation_builder(
        primary_image=picture(3),
        wrist_image=picture(),
        wrist_camera="wrist",
        embodiment=ARM,
        **{**SEEN, "timestamp": 7.5},
    )
    assert history == 3
    assert set(built.observation.images) == {"observation.images.front", "wrist"}
    assert built.observation.captured_at_s == 7.5
    assert built.embodiment is ARM
    assert json.loads(summary)["schema"] == "comfyui-vlm/robot-observation"


def test_a_state_may_come_by_name() -> None:
    """
    In whatever order; without a robot nobody knows the names.
    """
    named = json.dumps({name: index for index, name in enumerate(reversed(ARM.state_names))})
    assert seen(state_json=named).observation.state.tolist() == list(map(float, range(7, -1, -1)))
    with pytest.raises(ContractError, match="state_json: expected a JSON list of numbers"):
        seen(None, state_json=named)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"state_json": "[0, 0]"}, "state_json: got 2 numbers, expected 8"),
        ({"state_json": ""}, "state_json: expected a JSON list of numbers"),
        ({"primary_image": torch.zeros(0, 4, 4, 3)}, "primary_image: got the shape [0, 4, 4, 3]"),
        ({"primary_image": torch.zeros(2, 4, 5)}, "Convert Mask to Image"),
        ({"primary_image": torch.full((1, 2, 2, 3), float("nan"))}, "primary_image: 12 of 12"),
        ({"wrist_image": picture(), "wrist_camera": SEEN["primary_camera"]}, "wrist_camera: got"),
        ({"task": "  "}, "instruction: "),
        ({"task": "x" * 16_385}, "got 16385"),
        ({"primary_camera": "a\nb"}, "images"),
    ],
)
def test_a_wrong_observation_is_told(changes: dict[str, Any], said: str) -> None:
    """
    By the widget or the socket that is wrong.
    """
    with pytest.raises(ContractError, match=re.escape(said)):
        seen(**changes)


@pytest.mark.parametrize(
    "text",
    [
        "[[0, 1], [2, 3]]",
        '{"actions": [[0, 1], [2, 3]]}',
        '{"action": [[[0, 1], [2, 3]]]}',
        '[[[0, 1], [2, 3]], {"latency_ms": 3}]',
        '{"arm": [[0], [2]], "gripper": [[1], [3]]}',
        '{"actions": [[0, 1], [2, 3]], "action_names": ["a", "b"]}',
    ],
)
def test_actions_are_read_in_every_form_that_policies_send(text: str) -> None:
    """
    Rows, under a key, in a batch of one, with notes, as streams, as a document.
    """
    chunk, summary = actions_from_json(text)
    assert chunk.values.tolist() == [[0, 1], [2, 3]]
    assert action_chunk_from_json(summary, observed_at_s=0.0).names == chunk.names


@pytest.mark.parametrize("text", ["", "[]", "[[]]", "{}", "[[0], [0, 1]]", "[[[0]], [[0]]]", '"a"'])
def test_what_is_no_chunk_is_told(text: str) -> None:
    """
    Nothing is guessed from it.
    """
    with pytest.raises(ContractError):
        actions_from_json(text)


def test_a_chunk_is_written_down() -> None:
    """
    As a document, with the step that was chosen.
    """
    chunk, _ = actions_from_json("[[0, 1], [2, 3]]")
    trajectory, step, horizon, width = action_inspect(chunk, 1)
    assert (horizon, width) == (2, 2)
    assert json.loads(step)["action"] == {"action_0": 2.0, "action_1": 3.0}
    assert json.loads(trajectory)["actions"] == [[0, 1], [2, 3]]
    with pytest.raises(ContractError, match="step_index: got 2, expected 0 to 1"):
        action_inspect(chunk, 2)


def test_two_chunks_are_blended() -> None:
    """
    The example of the documents: a third, two thirds, then all of the new one.
    """
    old, _ = actions_from_json("[[0], [0], [0]]")
    new, _ = actions_from_json("[[1], [1], [1], [1]]")
    made, report = chunk_replan(old, new, 1, 2, 3)
    assert made.values.ravel().tolist() == pytest.approx([1 / 3, 2 / 3, 1])
    said = json.loads(report)
    assert (said["transition_steps_applied"], said["output_horizon"]) == (2, 3)


def test_a_chunk_is_drawn_as_large_as_asked() -> None:
    """
    Also without a robot, or with one that it is not of.
    """
    chunk, _ = actions_from_json(rows())
    for robot in (None, ARM, find_embodiment("aloha_bimanual_template")):
        (drawn,) = trajectory_preview(chunk, 640, 320, robot)
        assert tuple(drawn.shape) == (1, 320, 640, 3)
        assert float(drawn.std()) > 0


def gate(actions: str, mode: str, previous: str = STILL, horizon: int = 8) -> tuple[Any, ...]:
    return action_safety(actions_from_json(actions)[0], ARM, mode, horizon, previous)


def test_what_is_safe_passes_and_is_vetted() -> None:
    """
    In every mode that vets; the robot's bounds are a template's, and the report says so.
    """
    for mode in ("Block unsafe", "Clamp safely", "Hold position on unsafe"):
        chunk, report, is_safe, vetted = gate(rows(), mode)
        assert is_safe
        assert isinstance(vetted, VettedChunk)
        assert chunk.values.tolist() == vetted.values.tolist()
        assert safety_report_from_json(report).safe_for_handoff
        assert "certified by nobody" in json.loads(report)["warning"]


def test_a_report_alone_vets_nothing() -> None:
    """
    However safe it is.
    """
    chunk, report, is_safe, vetted = gate(rows(9.0), "Report only")
    assert not is_safe
    assert chunk.values[0, 0] == 9.0
    assert isinstance(vetted, Blocked)
    assert json.loads(report)["violations"]["out_of_bounds_values"] == 8
    assert isinstance(gate(rows(), "Report only")[3], Blocked)


def test_a_gate_that_vetted_nothing_is_asked_again_until_it_does() -> None:
    """
    ComfyUI would keep what it gave, and tell nobody that its actions were kept back.
    """
    widgets = {"mode": "Clamp safely", "execution_horizon": 8, "previous_action_json": ""}
    unknown = dict.fromkeys(widgets)  # as ComfyUI gives what comes over a link
    changes = action_safety.changes
    assert changes is not None
    gate(rows(), "Clamp safely", "")
    assert math.isnan(changes(**widgets))
    assert math.isnan(changes(**unknown))
    assert changes(**{**widgets, "execution_horizon": 9}) is None
    for horizon in range(1, 101):  # of many graphs the last are remembered
        gate(rows(), "Report only", STILL, horizon=horizon)
    assert changes(**widgets) is None
    assert changes(mode="Report only", execution_horizon=36, previous_action_json=STILL) is None
    assert math.isnan(changes(mode="Report only", execution_horizon=37, previous_action_json=STILL))


def test_a_jump_is_blocked_clamped_or_held() -> None:
    """
    As the mode says; what is clamped keeps every step.
    """
    with pytest.raises(UnsafeActionError):
        gate(rows(1.0), "Block unsafe")
    chunk, report, is_safe, vetted = gate(rows(1.0, 1.0), "Clamp safely")
    assert is_safe
    assert isinstance(vetted, VettedChunk)
    assert np.abs(np.diff(chunk.values, axis=0, prepend=0.0)).max() <= 0.15 + 1e-12
    assert json.loads(report)["changed"] is True
    held, _, is_safe, _ = gate(rows(1.0), "Hold position on unsafe")
    assert is_safe
    assert held.values.tolist() == [[0.0] * 8]


def test_an_old_graph_that_never_said_where_the_robot_is_goes_on_marked() -> None:
    """
    It gets its actions, is told that they are not safe, and no vetted ones.
    """
    for mode in ("Block unsafe", "Clamp safely"):
        chunk, report, is_safe, vetted = gate(rows(), mode, previous="")
        assert not is_safe
        assert chunk.values.tolist() == [[0.0] * 8] * 3
        assert isinstance(vetted, Blocked)
        assert "previous_action_json is blank" in vetted.reason
        said = json.loads(report)
        assert (said["safe_for_handoff"], said["previous_action_provided"]) == (False, False)
    clamped, report, _, _ = gate(rows(0.0, 1.0, 1.0), "Clamp safely", previous="")
    assert clamped.values[1, 0] == pytest.approx(0.12)
    assert json.loads(report)["changed"] is True


def test_a_chunk_that_is_not_finite_never_passes_unmarked() -> None:
    """
    NaN is cut off or refused, whatever the mode.
    """
    chunk, _ = actions_from_json(rows())
    values = chunk.values.copy()
    values[1:] = np.nan
    bad = attrs.evolve(chunk, values=values)
    cut, report, is_safe, _ = action_safety(bad, ARM, "Clamp safely", 8, STILL)
    assert is_safe
    assert len(cut.values) == 1
    assert json.loads(report)["cut_steps"] == 2
    with pytest.raises(UnsafeActionError):
        action_safety(bad, ARM, "Block unsafe", 8, STILL)


@pytest.mark.parametrize(
    "previous", [STILL, json.dumps(dict.fromkeys(ARM.actions.names, 0.0)), "DOCUMENT"]
)
def test_what_was_sent_last_is_read_in_every_form(previous: str) -> None:
    """
    Numbers, numbers by name, or the document of a step, as Inspect writes it.
    """
    if previous == "DOCUMENT":
        previous = action_inspect(gate(rows(), "Block unsafe")[0], 0)[1]
    assert gate(rows(), "Block unsafe", previous)[2]


@pytest.mark.parametrize("previous", ["7", '"a"', "[1", "[0, 0]", '{"x": 1}'])
def test_what_was_sent_last_is_told_where_it_is_wrong(previous: str) -> None:
    """
    A wrong one is never taken for a missing one.
    """
    with pytest.raises(ContractError):
        gate(rows(), "Block unsafe", previous)


def test_sockets_of_another_colour_are_told() -> None:
    """
    What came is named, with what was expected.
    """
    with pytest.raises(ContractError, match=r"actions: got .*, expected a chunk of actions"):
        action_inspect(seen(), 0)  # type: ignore[arg-type]
    with pytest.raises(ContractError, match=r"observation: got .*, expected an observation"):
        asyncio.run(over_http("x", "http://localhost:9"))


@pytest.mark.parametrize("other", [5, "x", [1], torch.zeros(1, 2, 2, 3)], ids=type)
def test_what_is_no_robot_is_told(other: Any) -> None:
    """
    Every node that takes a robot looks at it before it looks into it.
    """
    with pytest.raises(ContractError, match=r"embodiment: got .*, expected a robot"):
        seen(other)
    chunk, _ = actions_from_json(rows())
    with pytest.raises(ContractError, match=r"embodiment: got .*, expected a robot"):
        trajectory_preview(chunk, 320, 240, other)
    with pytest.raises(ContractError, match=r"embodiment: got .*, expected a robot"):
        action_safety(chunk, other, "Report only", 8, "")


@pytest.fixture
def url() -> Iterator[str]:
    info = PolicyInfo(name="nod", action_names=ARM.actions.names)
    policy = ScriptedPolicy([[[0.01] * 8] * 4], info=info)
    with (
        PolicyRuntime(policy) as runtime,
        serve_in_thread(HttpPolicyServer(runtime, port=0)) as served,
    ):
        yield served


def test_a_policy_is_asked_over_a_connection_that_is_kept(url: str) -> None:
    """
    The second graph finds it open; what it said is in the report.
    """

    async def twice() -> list[Any]:
        return [await over_http(seen(), url) for _ in range(2)]

    answers = asyncio.run(twice())
    assert [json.loads(report)["connected_anew"] for _, report in answers] == [True, False]
    assert answers[0][0].values.shape == (4, 8)


def test_a_server_that_names_its_actions_wants_a_robot(url: str) -> None:
    """
    A graph without one has actions without names, which are not guessed to be the server's.
    """
    with pytest.raises(PolicyError, match="it is not for 'unnamed'"):
        asyncio.run(over_http(seen(None), url))


@pytest.mark.parametrize(
    ("endpoint", "kind"),
    [
        ("http://localhost:9", PolicyError),
        ("http://example.com", EndpointError),
        ("ftp://localhost", EndpointError),
        ("http://a:b@localhost", EndpointError),
    ],
)
def test_a_server_that_is_not_there_or_may_not_be_asked_is_told(endpoint: str, kind: Any) -> None:
    """
    By its address, without what may be a password.
    """
    with pytest.raises(kind) as caught:
        asyncio.run(over_http(seen(), endpoint))
    assert "a:b" not in str(caught.value)


def test_other_protocols_tell_the_same() -> None:
    """
    Nothing listens there: in one sentence, and at once.
    """
    with pytest.raises(PolicyError, match="nothing listens there"):
        asyncio.run(
            openpi_policy(
                observation=seen(),
                endpoint="ws://localhost:9",
                observation_layout="Nested images (ALOHA)",
                state_key="state",
                prompt_key="prompt",
                **REMOTELY,
            )
        )
    with pytest.raises(PolicyError, match="nothing listens there"):
        asyncio.run(groot_policy(observation=seen(), host="localhost", port=9, **REMOTELY))
    with pytest.raises(EndpointError):
        asyncio.run(groot_policy(observation=seen(), host="example.com", port=9, **REMOTELY))


def test_a_token_goes_to_this_machine_and_to_hosts_that_the_environment_names(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """
    A graph comes from anywhere, and names any server.
    """
    schemes = ("http", "https")
    assert token_for("VLA_POLICY_TOKEN", "http://localhost:1", schemes=schemes) is None
    monkeypatch.setenv("VLA_POLICY_TOKEN", "a-token-of-mine")
    assert token_for("VLA_POLICY_TOKEN", "http://localhost:1", schemes=schemes) is not None
    elsewhere = "https://robot.example.com"
    assert token_for("VLA_POLICY_TOKEN", elsewhere, schemes=schemes) is None
    monkeypatch.setenv("VLA_POLICY_HOSTS", "robot.example.com")
    assert token_for("VLA_POLICY_TOKEN", elsewhere, schemes=schemes) is not None
