"""`ScriptedPolicy` and its async twin: policies without a model, for tests of loops."""

import asyncio
import time

import attrs
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vlmcore.contracts.actions import ActionChunk
from vlmcore.contracts.embodiment import CameraSpec
from vlmcore.contracts.observation import Observation
from vlmcore.errors import ContractError, PolicyError
from vlmcore.policy.interface import AsyncPolicy, Policy, PolicyInfo
from vlmcore.testing.policies import AsyncScriptedPolicy, ScriptedPolicy, ScriptEnding

INFO = PolicyInfo(name="nod", action_names=("neck",))
FRAME = np.zeros((2, 3, 3), np.uint8)
SEEN = Observation(
    instruction="Nod.", state=[0.5], images={"front": FRAME}, frame_rate_hz=10, captured_at_s=7.5
)
CHUNK = ActionChunk(values=[[9.0, 8.0]], names=("a", "b"), source="other", observed_at_s=1.0)


def values(policy: ScriptedPolicy, times: int) -> list[float]:
    """Ask *times* times for the first number."""
    return [policy.infer(SEEN).values[0, 0].item() for _ in range(times)]


def test_both_are_policies() -> None:
    """
    By their methods.
    """
    assert isinstance(ScriptedPolicy([CHUNK]), Policy)
    assert isinstance(AsyncScriptedPolicy([CHUNK]), AsyncPolicy)


def test_an_array_becomes_a_chunk_with_the_names_that_info_gives() -> None:
    """
    Its source is the policy's name, its time that of the observation.
    """
    chunk = ScriptedPolicy([np.array([[0.1], [0.2]])], info=INFO).infer(SEEN)

    assert (("neck",), "nod", 7.5) == (chunk.names, chunk.source, chunk.observed_at_s)
    assert [[0.1], [0.2]] == chunk.values.tolist()


def test_a_chunk_keeps_what_it_says_but_for_source_and_time() -> None:
    """
    Also names that are not those of info: a loop is tested against policies that lie.
    """
    chunk = ScriptedPolicy([CHUNK], info=INFO).infer(SEEN)

    assert attrs.evolve(CHUNK, source="nod", observed_at_s=7.5) == chunk


def test_an_exception_in_the_script_is_raised_and_the_script_goes_on() -> None:
    """
    As a policy that fails once.
    """
    policy = ScriptedPolicy([[[1.0]], PolicyError("nod", "tired"), [[2.0]]], info=INFO)

    assert [1.0] == values(policy, 1)
    with pytest.raises(PolicyError, match="nod: tired"):
        policy.infer(SEEN)
    assert [2.0] == values(policy, 1)


@pytest.mark.parametrize(
    ("ending", "expected"),
    [
        (ScriptEnding.REPEAT, [1.0, 2.0, 2.0, 2.0, 2.0]),
        (ScriptEnding.CYCLE, [1.0, 2.0, 1.0, 2.0, 1.0]),
    ],
)
def test_the_end_of_a_script_is_what_was_chosen(ending: ScriptEnding, expected: object) -> None:
    """
    The last answer again, or the first one.
    """
    assert expected == values(ScriptedPolicy([[[1.0]], [[2.0]]], info=INFO, ending=ending), 5)


def test_a_script_may_refuse_to_be_asked_more_often() -> None:
    """
    So that a loop that asks too often is found.
    """
    policy = ScriptedPolicy([[[1.0]]], info=INFO, ending=ScriptEnding.RAISE)
    values(policy, 1)

    for _ in range(2):
        with pytest.raises(PolicyError, match="nod: its script of 1 answers is at its end"):
            policy.infer(SEEN)


@given(st.integers(1, 5), st.integers(0, 12), st.sampled_from(ScriptEnding))
def test_reset_starts_the_script_over(length: int, asked: int, ending: ScriptEnding) -> None:
    """
    Wherever it was, also beyond its end.
    """
    policy = ScriptedPolicy([[[float(i)]] for i in range(length)], info=INFO, ending=ending)
    values(policy, min(asked, length) if ending is ScriptEnding.RAISE else asked)

    policy.reset()

    assert [float(i) for i in range(length)] == values(policy, length)


def test_a_function_answers_what_it_is_shown() -> None:
    """
    With an array, a chunk or an exception; what it raises itself is raised.
    """
    assert [1.0] == values(ScriptedPolicy(lambda seen: [seen.state * 2], info=INFO), 1)
    with pytest.raises(ContractError, match=r"^script\.values\[0\]\[0\]: got "):
        ScriptedPolicy(lambda _: [["no"]], info=INFO).infer(SEEN)
    with pytest.raises(PolicyError, match="tired"):
        ScriptedPolicy(lambda _: PolicyError("nod", "tired")).infer(SEEN)
    with pytest.raises(ZeroDivisionError):
        ScriptedPolicy(lambda _: 1 / 0).infer(SEEN)


def test_it_remembers_what_it_was_shown() -> None:
    """
    Across resets, the very objects, also those that it failed at; how often it was reset, too.
    """
    policy = ScriptedPolicy([CHUNK, ValueError("broken")])
    later = attrs.evolve(SEEN, captured_at_s=8.0)
    policy.infer(SEEN)
    with pytest.raises(ValueError, match="broken"):
        policy.infer(later)
    policy.reset()
    policy.infer(SEEN)

    assert [SEEN, later, SEEN] == list(policy.shown)
    assert (1, False) == (policy.resets, policy.closed)


@pytest.mark.parametrize(
    ("info", "observation", "problem"),
    [
        ({"state_names": ("a", "b")}, SEEN, "state: got 1 numbers, expected 2: a, b"),
        (
            {"cameras": (CameraSpec(name="front"), CameraSpec(name="wrist"))},
            SEEN,
            "images: got front, expected 'wrist' too",
        ),
        (
            {"cameras": (CameraSpec(name="front", height_px=4, width_px=3),)},
            SEEN,
            "images['front']: got 2 x 3 pixels, expected 4 x 3 (height x width)",
        ),
        ({}, {"state": [0.5]}, "observation: got dict, expected an Observation"),
    ],
)
def test_what_info_does_not_expect_is_refused(info, observation, problem) -> None:
    """
    And is not noted as shown, and takes nothing from the script.
    """
    policy = ScriptedPolicy([CHUNK], info=PolicyInfo(name="nod", **info))

    with pytest.raises(ContractError) as error:
        policy.infer(observation)

    assert problem == str(error.value)
    assert () == policy.shown


def test_once_closed_it_refuses_to_answer_and_to_reset() -> None:
    """
    Closing twice is no error.
    """
    policy = ScriptedPolicy([CHUNK])
    policy.close()
    policy.close()

    for call in (policy.reset, lambda: policy.infer(SEEN)):
        with pytest.raises(PolicyError, match="scripted: this policy is closed: make it again"):
            call()
    assert policy.closed


@pytest.mark.parametrize(
    ("script", "options", "problem"),
    [
        ([], {}, "script: got no answers, expected at least one"),
        ((), {}, "script: got no answers, expected at least one"),
        ("abc", {}, "script: got str, expected a list or a tuple of answers, or a function"),
        (None, {}, "script: got NoneType, expected a list or a tuple of answers, or a function"),
        (CHUNK, {}, "script: got ActionChunk, expected a list or a tuple of answers"),
        (np.zeros((1, 1, 1)), {}, "script: got ndarray, expected a list or a tuple"),
        ({"a": CHUNK}, {}, "script: got dict, expected a list or a tuple"),
        ([CHUNK, PolicyError], {}, "script[1]: got the class PolicyError, expected one of its"),
        ([CHUNK, [[0.0]]], {}, "script[1]: got list, expected an ActionChunk or an exception"),
        ([CHUNK, [0.0]], {"info": INFO}, "script[1].values[0]: got float, expected an array"),
        ([[[0.0, 1.0]]], {"info": INFO}, "script[0].names: got 1 names, expected one a dimension"),
        ([[[True]]], {"info": INFO}, "script[0].values[0][0]: got True, expected a number"),
        ([CHUNK, KeyboardInterrupt()], {"info": INFO}, "script[1].values: got KeyboardInterrupt"),
        ([CHUNK], {"info": "nod"}, "info: got str, expected a PolicyInfo"),
        ([CHUNK], {"ending": "repeat"}, "ending: got 'repeat', expected one of ScriptEnding"),
        ([CHUNK], {"delay_s": -1.0}, "delay_s: got -1.0, expected a number from 0.0 to 3600.0"),
        ([CHUNK], {"delay_s": float("nan")}, "delay_s: got nan"),
    ],
)
@pytest.mark.parametrize("kind", [ScriptedPolicy, AsyncScriptedPolicy])
def test_what_is_no_script_is_refused_at_once(kind, script, options, problem) -> None:
    """
    With the place in the script, before a loop runs.
    """
    with pytest.raises(ContractError) as error:
        kind(script, **options)
    assert str(error.value).startswith(problem)


def test_nan_may_be_scripted() -> None:
    """
    It is the gate that finds it: so is the gate of a loop tested.
    """
    assert not ScriptedPolicy([[[float("nan")]]], info=INFO).infer(SEEN).is_finite


def test_an_exception_that_is_raised_many_times_does_not_grow() -> None:
    """
    Its traceback is that of the last time.
    """
    policy = ScriptedPolicy([ValueError("broken")])
    depths = []
    for _ in range(3):
        with pytest.raises(ValueError, match="broken") as error:
            policy.infer(SEEN)
        depths.append(len(error.traceback))

    assert 1 == len(set(depths))


def test_a_slow_policy_takes_its_time() -> None:
    """
    Each answer, also one that is an exception.
    """
    policy = ScriptedPolicy([CHUNK, ValueError("late")], delay_s=0.02)
    began_s = time.monotonic()
    policy.infer(SEEN)
    with pytest.raises(ValueError, match="late"):
        policy.infer(SEEN)

    assert time.monotonic() - began_s >= 0.04


def test_the_async_twin_plays_the_same_script() -> None:
    """
    Awaited; with the same attributes.
    """

    async def drive() -> tuple[list[float], AsyncScriptedPolicy]:
        policy = AsyncScriptedPolicy([[[1.0]], [[2.0]]], info=INFO, ending=ScriptEnding.CYCLE)
        said = [(await policy.infer(SEEN)).values[0, 0].item() for _ in range(3)]
        await policy.reset()
        said.append((await policy.infer(SEEN)).values[0, 0].item())
        await policy.aclose()
        await policy.aclose()
        with pytest.raises(PolicyError, match="closed"):
            await policy.infer(SEEN)
        with pytest.raises(PolicyError, match="closed"):
            await policy.reset()
        return said, policy

    said, policy = asyncio.run(drive())

    assert [1.0, 2.0, 1.0, 1.0] == said
    assert (4, 1, True) == (len(policy.shown), policy.resets, policy.closed)


def test_a_call_of_the_async_twin_can_be_cancelled() -> None:
    """
    It was shown, and its answer is gone from the script, as with a server that was asked.
    """

    async def drive() -> tuple[int, float]:
        policy = AsyncScriptedPolicy([[[1.0]], [[2.0]]], info=INFO, delay_s=0.05)
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(policy.infer(SEEN), timeout=0.005)
        shown = len(policy.shown)
        return shown, (await policy.infer(SEEN)).values[0, 0].item()

    assert (1, 2.0) == asyncio.run(drive())
