"""A control loop over a client and a server, with their sockets, threads and clocks."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlsplit

import attrs
import pytest

from openpi_cases import NAMES, ROBOT, SEEN, client, serving
from vlmcore.contracts.embodiment import ActionSpace, Embodiment
from vlmcore.contracts.observation import Observation
from vlmcore.errors import PolicyError
from vlmcore.policy.interface import PolicyInfo
from vlmcore.rollout import (
    ControlLoop,
    EpisodeHeader,
    EpisodeReader,
    EpisodeWriter,
    LinearBlend,
    MaxAges,
    PrefetchingBroker,
    replay,
)
from vlmcore.safety import SafetyGate, SafetyLatch, VettedChunk
from vlmcore.testing import ScriptedPolicy

FAST: Embodiment = attrs.evolve(ROBOT, actions=ActionSpace(dims=ROBOT.actions.dims, rate_hz=200))
INFO = PolicyInfo(name="onward", action_names=NAMES, state_names=NAMES, horizon=40, rate_hz=200)


def onward() -> ScriptedPolicy:
    """Make a policy that counts on from where the robot says it is, 0.01 a step."""
    return ScriptedPolicy(
        lambda seen: [[seen.state[0] + 0.01 * i, 0.0] for i in range(40)], info=INFO
    )


class Arm:
    """An arm that counts the rows that it executed, and reports their number as its state."""

    def __init__(self, then: Callable[[], object] = lambda: None) -> None:
        self.rows: list[float] = []
        self.held = 0
        self.then = then

    def accept(self, vetted: VettedChunk) -> None:
        if vetted.source == "hold":
            self.held += 1
        else:
            self.rows.append(vetted.values[0, 0])
        self.then()

    def observe(self) -> Observation:
        return attrs.evolve(
            SEEN, state=[0.01 * len(self.rows), 0.0], captured_at_s=time.monotonic()
        )


@pytest.mark.parametrize("blend", [None, LinearBlend(overlap=4)])
def test_each_row_that_is_executed_over_sockets_is_the_one_predicted_for_its_step(
    blend: LinearBlend | None, tmp_path: Path
) -> None:
    """
    With a policy behind a server, a gate, a latch and a recorder, all of them real.
    """
    arm = Arm(lambda: loop.stop() if len(arm.rows) == 100 else None)
    gate = SafetyGate(embodiment=FAST)
    with (
        serving(onward()) as url,
        client(url, embodiment=FAST) as policy,
        EpisodeWriter(tmp_path / "run.jsonl", EpisodeHeader(embodiment=FAST)) as recorder,
    ):
        broker = PrefetchingBroker(policy, SafetyLatch(gate), prefetch_at=30, blend=blend)
        loop = ControlLoop(
            broker,
            arm,
            observe=arm.observe,
            max_age_s=60.0,
            recorder=recorder,
            allow_template=True,
        )
        counts = loop.run(last_command=[0.0, 0.0])
        assert broker.wait_for_policy(timeout_s=30)
    assert [0.01 * i for i in range(100)] == pytest.approx(arm.rows)
    assert (100, 0) == (counts.ticks - counts.held, counts.refused)
    assert broker.counts.answered > 1
    episode = EpisodeReader(tmp_path / "run.jsonl")
    assert counts.ticks + 1 == len(list(episode))
    assert all(each.vetted is not None for each in replay(episode, gate, last_command=[0.0, 0.0]))


def test_the_robot_stands_still_while_a_server_is_away_and_goes_on_when_it_is_back() -> None:
    """
    A server that is restarted leaves no robot standing for ever, and no row twice.
    """
    with ExitStack() as first, ExitStack() as second:
        url = first.enter_context(serving(onward()))
        port = urlsplit(url).port

        def then() -> None:
            if len(arm.rows) == 20:
                first.close()
            if broker.counts.failed >= 3 and arm.held > 3 and not back:
                back.append(second.enter_context(serving(onward(), port=port)))
            if len(arm.rows) == 100:
                loop.stop()

        back: list[str] = []
        arm = Arm(then)
        policy = second.enter_context(client(url, embodiment=FAST))
        broker = PrefetchingBroker(
            policy,
            SafetyGate(embodiment=FAST),
            prefetch_at=4,
            max_ages=MaxAges(observation_s=30.0, chunk_s=60.0),
        )
        loop = ControlLoop(broker, arm, observe=arm.observe, max_age_s=60.0, allow_template=True)
        loop.run(last_command=[0.0, 0.0])
        assert broker.wait_for_policy(timeout_s=30)
    assert [url] == back
    assert [0.01 * i for i in range(100)] == pytest.approx(arm.rows)


def test_a_server_that_stays_away_ends_a_run_that_does_not_tolerate_it() -> None:
    """
    With the error of the client, and the robot standing still.
    """
    with ExitStack() as stack:
        policy = stack.enter_context(
            client(stack.enter_context(serving(onward())), embodiment=FAST)
        )
        arm = Arm(lambda: stack.close() if len(arm.rows) == 20 else None)
        broker = PrefetchingBroker(
            policy, SafetyGate(embodiment=FAST), prefetch_at=4, tolerate_failures=2
        )
        loop = ControlLoop(broker, arm, observe=arm.observe, max_age_s=60.0, allow_template=True)
        with pytest.raises(PolicyError):
            loop.run(last_command=[0.0, 0.0])
        assert broker.wait_for_policy(timeout_s=30)
    assert 3 == broker.counts.failed
    assert 20 <= len(arm.rows) <= 40
