"""Tests of `vlmcore.policy.interface`."""

from __future__ import annotations

import copy
import math
import pickle
from typing import Any

import attrs
import numpy as np
import pytest

from vlmcore.contracts.actions import ActionChunk
from vlmcore.contracts.embodiment import CameraSpec
from vlmcore.contracts.observation import Observation
from vlmcore.errors import ContractError, LimitExceededError
from vlmcore.policy import AsyncPolicy, Policy, PolicyInfo

INFO = PolicyInfo(
    name="pick",
    action_names=["x", "gripper"],
    action_units=["m", ""],
    state_names=["x"],
    cameras=[CameraSpec(name="front")],
    horizon=50,
    rate_hz=20,
    metadata={"checkpoint": {"steps": [1, 2]}},
)


class Still:
    """The smallest policy there is."""

    info = INFO

    def infer(self, observation: Observation, /) -> ActionChunk:
        return ActionChunk(
            values=[[0.0, 0.0]],
            names=("x", "gripper"),
            source=INFO.name,
            observed_at_s=observation.captured_at_s,
        )

    def reset(self) -> None: ...

    def close(self) -> None: ...


class StillAsync:
    """The same for ``asyncio``."""

    info = INFO

    async def infer(self, observation: Observation, /) -> ActionChunk:
        return Still().infer(observation)

    async def reset(self) -> None: ...

    async def aclose(self) -> None: ...


def test_a_policy_says_of_itself_only_what_it_knows() -> None:
    """
    A name is all that must be said.
    """
    bare = PolicyInfo(name="bare")
    assert [None] * 6 == [
        bare.action_names,
        bare.action_units,
        bare.state_names,
        bare.cameras,
        bare.horizon,
        bare.rate_hz,
    ]
    assert {} == dict(bare.metadata)


def test_what_is_said_is_kept_in_one_form() -> None:
    """
    Tuples for lists, and plain numbers.
    """
    assert (("x", "gripper"), ("m", ""), ("x",)) == (
        INFO.action_names,
        INFO.action_units,
        INFO.state_names,
    )
    assert (20.0, float) == (INFO.rate_hz, type(INFO.rate_hz))
    assert (CameraSpec(name="front"),) == INFO.cameras
    assert float is type(PolicyInfo(name="p", rate_hz=np.float32(30)).rate_hz)


def test_what_a_policy_says_cannot_be_changed() -> None:
    """
    Neither its fields, nor what is in its metadata, nor through what it was made from.
    """
    said: dict[str, Any] = {"tags": ["a"]}
    info = PolicyInfo(name="p", metadata=said)
    said["tags"].append("b")
    assert ("a",) == info.metadata["tags"]
    with pytest.raises(TypeError):
        info.metadata["tags"] = ()  # type: ignore[index]
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        info.name = "q"  # type: ignore[misc]


def test_it_is_compared_by_value_and_crosses_a_process_boundary() -> None:
    """
    Servers send it, and rollouts run in workers.
    """
    for other in (pickle.loads(pickle.dumps(INFO)), copy.deepcopy(INFO), attrs.evolve(INFO)):
        assert INFO == other
        assert hash(INFO) == hash(other)
        with pytest.raises(TypeError):
            other.metadata["new"] = 1
    assert attrs.evolve(INFO, name="other") != INFO


@pytest.mark.parametrize(
    ("field", "value", "problem"),
    [
        ("name", "", "name"),
        ("name", None, "name"),
        ("name", "a\nb", "name"),
        ("name", "a" * 257, "name"),
        ("action_names", "xy", "action_names"),
        ("action_names", (), "action_names"),
        ("action_names", ("x", "x"), "action_names"),
        ("action_names", ("x", 1), "action_names"),
        ("action_names", ("x", " "), "action_names"),
        ("state_names", (), "state_names"),
        ("state_names", ("s", "s"), "state_names"),
        ("action_units", ("m",), "action_units: got 1 units, expected one a name: there are 2"),
        ("action_units", "m", "action_units: got 'm', expected a tuple of texts"),
        ("action_units", ("m", None), "action_units"),
        ("action_units", ("m", "\x00"), "action_units"),
        ("cameras", ("front",), "cameras: got ('front',), expected a tuple of CameraSpec"),
        ("cameras", (), "cameras"),
        ("cameras", [CameraSpec(name="a")] * 2, "cameras"),
        ("cameras", CameraSpec(name="a"), "cameras"),
        ("horizon", 0, "horizon: got 0, expected a whole number of at least 1"),
        ("horizon", 8.0, "horizon"),
        ("horizon", True, "horizon"),
        ("rate_hz", 0, "rate_hz"),
        ("rate_hz", -20, "rate_hz"),
        ("rate_hz", math.nan, "rate_hz"),
        ("rate_hz", math.inf, "rate_hz"),
        ("rate_hz", 10_001, "rate_hz: got 10001, expected at most 10000"),
        ("rate_hz", "20", "rate_hz"),
        ("rate_hz", True, "rate_hz"),
        ("metadata", [1], "metadata"),
        ("metadata", {"x": math.nan}, "metadata"),
        ("metadata", {1: "x"}, "metadata"),
        ("metadata", {"x": np.zeros(2)}, "metadata"),
    ],
)
def test_a_field_that_is_not_as_described_is_named(field: str, value: Any, problem: str) -> None:
    """
    One clear error each.
    """
    with pytest.raises(ContractError) as error:
        attrs.evolve(INFO, **{field: value})
    assert str(error.value).startswith(problem)


def test_more_than_a_contract_holds_is_refused() -> None:
    """
    Nobody could make a chunk of it.
    """
    with pytest.raises(LimitExceededError, match="max_horizon: got 4097, limit is 4096"):
        attrs.evolve(INFO, horizon=4097)
    many = tuple(f"x{i}" for i in range(2049))
    for field in ("action_names", "state_names"):
        with pytest.raises(ContractError, match=field):
            PolicyInfo(name="p", **{field: many})
    with pytest.raises(ContractError, match="cameras"):
        PolicyInfo(name="p", cameras=[CameraSpec(name=f"c{i}") for i in range(17)])


def test_units_without_names_are_of_nothing() -> None:
    """
    Which number would they be of?
    """
    with pytest.raises(ContractError) as error:
        PolicyInfo(name="p", action_units=("m",))
    assert "action_units: got 1 units, expected one a name: there are no names" == str(error.value)


def test_a_policy_is_what_has_the_methods_of_one() -> None:
    """
    Nothing of ours needs to be inherited, and one for asyncio is no other one.
    """
    assert isinstance(Still(), Policy)
    assert isinstance(StillAsync(), AsyncPolicy)
    assert not isinstance(StillAsync(), Policy)
    assert not isinstance(Still(), AsyncPolicy)
    assert not isinstance(object(), Policy)


def test_the_smallest_policy_keeps_the_promises_of_the_interface() -> None:
    """
    Time and source come from the observation and from what it says of itself.
    """
    policy: Policy = Still()
    seen = Observation(
        instruction="go",
        state=[0.0],
        images={"front": np.zeros((2, 2, 3), np.uint8)},
        frame_rate_hz=20,
        captured_at_s=7.5,
    )
    chunk = policy.infer(seen)
    assert (7.5, policy.info.name, policy.info.action_names) == (
        chunk.observed_at_s,
        chunk.source,
        chunk.names,
    )
