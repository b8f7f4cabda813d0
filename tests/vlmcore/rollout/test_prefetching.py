"""Tests of `vlmcore.rollout.prefetching`."""

from __future__ import annotations

import gc
import threading
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from control_cases import Bench, Clock, Counting, gate, seen
from episode_cases import ROBOT
from safety_cases import JOINT, SLIDE
from vlmcore.contracts.actions import ActionChunk
from vlmcore.contracts.observation import Observation
from vlmcore.errors import (
    ContractError,
    PolicyError,
    PolicyTimeoutError,
    PolicyUnavailableError,
    UnsafeActionError,
)
from vlmcore.policy import PolicyInfo
from vlmcore.rollout import (
    EnsembleBlend,
    LinearBlend,
    MaxAges,
    PrefetchCounts,
    PrefetchingBroker,
    Starvation,
    TimedObservation,
)
from vlmcore.safety import SafetyGate, SafetyLatch

LOST = PolicyTimeoutError("counting", "reply", 1.0)
AGES = MaxAges(observation_s=0.2, chunk_s=0.32)


def begun(**more: Any) -> Bench:
    """Make a bench that has its first answer."""
    bench = Bench(**more)
    assert bench.step() is None
    bench.later.finish()
    return bench


def test_the_robot_goes_on_while_the_policy_thinks() -> None:
    """
    The chunk that it has is executed until the answer is there, and no step waits.
    """
    bench = begun()
    assert [0, 1, 2, 3, 4, 5, 6] == bench.steps(7)
    assert 1 == len(bench.later.waiting)  # asked when 4 were left
    assert 2 == bench.looked


def test_rows_that_are_past_are_dropped_by_count_and_not_by_an_estimate_of_latency() -> None:
    """
    The first chunk skips no row from standstill, however long it took: none was executed yet.
    """
    bench = Bench()
    assert [None] * 21 == bench.steps(21)
    bench.later.finish()
    assert [0, 1, 2, 3, 4] == bench.steps(5)  # it asked before the fifth, at 4
    bench.clock.now_s += 60
    assert [5, 6] == bench.steps(2)
    bench.later.finish()  # counts from 4 on, and 5, 6 are past
    assert [7, 8, 9, 10, 11] == bench.steps(5)
    assert [0, 4] == bench.policy.shown


OUTCOMES = st.sampled_from(["wait", "answer", "fail", "nan", "reset", "wait", "answer"])


class Numbered(Counting):
    """Counts on within an episode; answers with NaN when told to."""

    is_lost = False

    def infer(self, observation: Observation, /) -> ActionChunk:
        chunk = super().infer(observation)
        if not self.is_lost:
            return chunk
        self.is_lost = False
        lost = np.full(chunk.values.shape, np.nan)
        return ActionChunk(
            values=lost, names=chunk.names, source=chunk.source, observed_at_s=chunk.observed_at_s
        )


@given(
    st.lists(OUTCOMES, max_size=60),
    st.integers(1, 9),
    st.integers(0, 9),
    st.sampled_from([None, LinearBlend(overlap=3), EnsembleBlend()]),
    st.sampled_from([None, 1, 3, 20]),
)
def test_the_row_that_is_executed_at_a_step_is_the_row_predicted_for_it(
    outcomes: list[str], horizon: int, prefetch_at: int, blend: Any, execution_horizon: int | None
) -> None:
    """
    Whatever latencies, lost replies, failures, late answers and resets there are.
    """
    policy = Numbered(horizon)
    made = gate(execution_horizon=execution_horizon)
    bench = Bench(policy, made, prefetch_at=prefetch_at, blend=blend)
    for episode, outcome in enumerate(outcomes, start=1):
        if outcome == "reset":
            bench.broker.reset()
            bench.executed = episode * 1000.0
        elif outcome != "wait" and bench.later.waiting:
            policy.is_lost = outcome == "nan"
            bench.later.finish(LOST if outcome == "fail" else None)
        assert len(bench.later.waiting) <= 1
        expected = bench.executed
        assert bench.step() in (None, pytest.approx(expected, abs=1e-9))
    counts = bench.broker.counts
    assert counts.asked >= counts.answered + counts.failed + counts.late


def test_an_answer_whose_rows_are_all_past_is_not_executed() -> None:
    """
    There is none left for the present step; the policy is asked again, with what is seen now.
    """
    bench = begun()
    assert [0, 1, 2, 3, 4, 5, 6] == bench.steps(7)
    bench.policy.horizon = 2
    bench.later.finish()  # with a row for step 4 and one for step 5
    bench.policy.horizon = 8
    assert [7, None] == bench.steps(2)
    assert 1 == bench.broker.counts.late
    bench.later.finish()
    assert [8, 9] == bench.steps(2)
    assert [0, 4, 7] == bench.policy.shown


def test_one_request_is_made_at_a_time() -> None:
    """
    A policy is not safe for threads, and the answer to an older observation is worth less.
    """
    bench = begun(prefetch_at=8)
    bench.step()
    for _ in range(6):
        bench.step()
        assert 1 == len(bench.later.waiting)


def test_a_lost_reply_with_an_empty_queue_does_not_leave_the_robot_standing_for_ever() -> None:
    """
    It is told, and the next step asks again, with an observation that is made then.
    """
    bench = begun()
    bench.steps(8)
    assert [None, None] == bench.steps(2)
    bench.later.finish(LOST)
    looked = bench.looked
    assert bench.step() is None
    assert (1, "counting: no reply within 1 s") == (bench.broker.failures, bench.broker.trouble)
    assert looked + 1 == bench.looked
    bench.later.finish()
    assert 8 == bench.step()
    assert (0, "") == (bench.broker.failures, bench.broker.trouble)


def test_failures_are_tolerated_as_often_as_it_was_said() -> None:
    """
    As long as they come in a row; the last one is raised, also while rows are left.
    """
    bench = begun(tolerate_failures=1)
    bench.steps(5)
    bench.later.finish(LOST)
    assert 5 == bench.step()
    bench.later.finish(PolicyUnavailableError("counting", "nothing listens there"))
    with pytest.raises(PolicyUnavailableError, match="nothing listens there"):
        bench.step()


def test_a_mistake_of_the_policy_is_raised_as_it_is() -> None:
    """
    It is not one of those that go away by asking again.
    """
    bench = Bench()
    bench.step()
    bench.later.finish(ZeroDivisionError("a bug"))
    with pytest.raises(ZeroDivisionError, match="a bug"):
        bench.step()


def test_an_answer_that_is_under_way_when_the_gate_refuses_a_step_is_not_executed() -> None:
    """
    It answers an observation after which something else was planned than was sent.
    """
    policy = Counting()
    bench = begun(policy=policy, made=gate(JOINT))
    assert 0 == bench.step()
    with pytest.raises(UnsafeActionError, match="violations"):
        bench.step()  # from 0 to 1
    assert bench.broker.proposed is not None
    assert bench.step() is None
    assert 1 == len(bench.later.waiting)


def test_the_chunk_of_the_last_episode_is_not_executed_in_the_next() -> None:
    """
    Neither what was planned nor what was under way; and the policy forgets before it is asked.
    """
    bench = begun()
    bench.steps(5)
    bench.broker.reset()
    assert PrefetchCounts() == bench.broker.counts
    bench.executed = 500.0
    assert bench.step() is None
    assert (1, 0) == (len(bench.later.waiting), bench.policy.resets)  # the old request still runs
    bench.later.finish()
    assert bench.step() is None
    bench.later.finish()
    assert 1 == bench.policy.resets
    assert [500, 501] == bench.steps(2)


def test_a_reset_that_fails_is_tried_again_before_the_policy_is_asked() -> None:
    """
    A policy that did not forget must not answer.
    """

    class Stubborn(Counting):
        def reset(self) -> None:
            super().reset()
            if self.resets == 1:
                raise PolicyUnavailableError("counting", "is away")

    bench = Bench(Stubborn())
    bench.broker.reset()
    bench.step()
    bench.later.finish()
    assert bench.step() is None
    assert (1, [], 1) == (bench.broker.failures, bench.policy.shown, bench.policy.resets)
    bench.later.finish()
    assert 0 == bench.step()
    assert 2 == bench.policy.resets


def test_a_robot_that_starves_holds_its_targets_and_stops_its_changes() -> None:
    """
    Each such step passes the gate, and is counted.
    """
    policy = Counting()
    policy.info = PolicyInfo(name="two", action_names=("x", "dx"))
    bench = Bench(policy, gate(JOINT, SLIDE))
    bench.last_command = [0.5, 0.04]
    vetted = bench.broker.step(bench.observe, last_command=[0.5, 0.04])
    assert ("hold", [[0.5, 0.0]]) == (vetted.source, vetted.values.tolist())
    assert vetted.report.safe_for_handoff
    assert vetted.observed_at_s == bench.clock()
    assert vetted.proposed is bench.broker.proposed
    assert 1 == bench.broker.counts.starved


def test_starvation_that_is_to_stop_the_robot_raises_and_trips_the_latch() -> None:
    """
    Nothing passes any more until a person rearms it.
    """
    latch = SafetyLatch(gate())
    bench = begun(made=latch, starvation=Starvation.STOP)
    bench.steps(8)
    with pytest.raises(PolicyError) as error:
        bench.step()
    assert "counting: nothing is left to execute: the answer is not there yet" == str(error.value)
    assert latch.is_tripped
    with pytest.raises(UnsafeActionError, match=r"^tripped: nothing is left to execute"):
        bench.step()
    latch.rearm()
    bench.later.finish()
    assert bench.step() is None
    bench.later.finish()
    assert 8 == bench.step()


def test_the_first_answer_of_an_episode_is_waited_for_also_where_starvation_stops() -> None:
    """
    Nothing was executed yet, so nothing has run dry.
    """
    bench = Bench(starvation=Starvation.STOP)
    assert [None] * 3 == bench.steps(3)
    bench.later.finish()
    bench.steps(5)
    bench.later.finish()
    bench.step()
    bench.broker.reset()
    assert bench.step() is None


def test_zero_is_refused_for_targets_where_it_is_a_place_to_go_to() -> None:
    """
    A short action padded with 0.0 drives the arm to zero, and so would this.
    """
    policy = Counting()
    policy.info = PolicyInfo(name="any")
    with pytest.raises(
        ContractError, match=r"^starvation: got .*ZERO with the targets x, expected"
    ):
        PrefetchingBroker(policy, gate(), prefetch_at=1, starvation=Starvation.ZERO)
    PrefetchingBroker(policy, gate(SLIDE), prefetch_at=1, starvation=Starvation.ZERO)


class Looking(Counting):
    """A policy that looks two steps back."""

    def __init__(self) -> None:
        super().__init__()
        self.looked: list[float] = []

    def steps_back(self) -> int:
        return 2

    def observe(self, observation: Observation, /) -> None:
        self.looked.append(observation.state[0])


def test_a_policy_that_looks_back_is_shown_the_steps_in_which_it_is_not_asked() -> None:
    """
    Where it is called, and not while it thinks: the last two steps before it is asked.
    """
    policy = Looking()
    bench = begun(policy=policy)
    bench.steps(6)  # asked again when four are left, and once more when that is answered
    assert ([0.0], []) == (policy.shown, policy.looked)
    bench.later.finish()
    bench.steps(6)
    bench.later.finish()
    shown, looked = policy.shown, policy.looked
    assert ([shown[1] - 2, shown[1] - 1], [shown[2] - 2, shown[2] - 1]) == (looked[:2], looked[2:])


def test_nothing_is_shown_of_an_episode_that_is_over() -> None:
    """
    The steps before its end are no past of the next.
    """
    policy = Looking()
    bench = begun(policy=policy)
    bench.steps(3)
    bench.broker.reset()
    bench.step()
    bench.later.finish()
    assert [] == policy.looked


def test_an_old_observation_is_not_shown_to_the_policy() -> None:
    """
    The next step looks again; if nothing is left meanwhile, the robot stands still.
    """
    bench = begun(max_ages=MaxAges(observation_s=0.2, chunk_s=5.0))
    bench.steps(4)
    frozen = seen(4.0, bench.clock())  # a frozen camera reads as valid
    bench.observe = lambda: frozen  # type: ignore[method-assign]
    bench.step()
    bench.later.finish(LOST)
    assert [5, 6] == bench.steps(2)  # asked once more, within the age
    bench.later.finish(LOST)
    assert [7, None] == bench.steps(2)
    bench.later.finish(LOST)
    assert [None, None, None] == bench.steps(3)
    assert [] == bench.later.waiting
    assert bench.broker.trouble.startswith("the observation is 0.")
    assert 3 == bench.broker.counts.stale_observations


def test_the_rest_of_an_old_chunk_is_not_executed() -> None:
    """
    The world went on since it was seen.
    """
    bench = begun(max_ages=AGES, prefetch_at=0)
    assert [0, 1, 2, 3, 4, 5, None] == bench.steps(7)  # 0.05 s each, one before the first
    assert 1 == bench.broker.counts.stale_chunks
    assert bench.broker.trouble.startswith("the chunk is 0.35 s old, expected at most 0.32 s")
    bench.later.finish()
    assert 6 == bench.step()


def test_an_old_frame_of_a_single_camera_counts_where_its_time_is_known() -> None:
    """
    A maximal age for each source, and not for the newest of them alone.
    """
    bench = Bench(max_ages=MaxAges(observation_s=0.2, chunk_s=1.0, cameras_s={"front": 0.1}))
    with pytest.raises(ContractError, match=r"^max_ages\.cameras_s\['front'\]"):
        bench.step()

    def observe() -> TimedObservation:
        now_s = bench.clock()
        return TimedObservation(observation=seen(0.0, now_s), captured_at_s={"front": now_s - 0.15})

    bench.observe = observe  # type: ignore[method-assign]
    assert bench.step() is None
    assert "the frame of 'front' is 0.15 s old, expected at most 0.1 s" == bench.broker.trouble
    assert [] == bench.later.waiting


def test_an_observation_of_another_clock_is_refused() -> None:
    """
    Its age is not known.
    """
    bench = Bench(max_ages=AGES)
    bench.observe = lambda: seen(0.0, bench.clock() + 5)  # type: ignore[method-assign]
    with pytest.raises(ContractError, match=r"^observation\.captured_at_s: got 5 s after now"):
        bench.step()


def test_what_was_seen_last_can_be_recorded_with_what_is_sent_from_then_on() -> None:
    """
    Its answer comes later; until then the rows of older ones are what followed it.
    """
    bench = begun()
    for _ in range(7):
        bench.step()
        recorded = bench.broker.observation
        assert recorded is not None
        asked_at = 0 if bench.looked == 1 else 4
        assert asked_at == recorded.state[0]
    assert 2 == bench.looked  # and the rows of the first answer went on
    bench.later.finish()
    bench.step()
    assert recorded == bench.broker.observation


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"prefetch_at": -1}, "prefetch_at: got -1"),
        ({"prefetch_at": 1.5}, r"prefetch_at: got 1\.5"),
        ({"starvation": "hold"}, "starvation: got 'hold'"),
        ({"tolerate_failures": -1}, "tolerate_failures: got -1"),
        ({"executor": 3}, "executor: got 3"),
        ({"max_ages": 0.5}, "max_ages: got float"),
        ({"blend": 3}, "blend: got 3"),
    ],
)
def test_an_argument_that_is_wrong_is_named(changed: dict[str, Any], words: str) -> None:
    """
    Before anything moves.
    """
    with pytest.raises(ContractError, match=f"^{words}"):
        Bench(**changed)


def test_a_policy_for_another_robot_is_refused() -> None:
    """
    Before the first action, with the difference.
    """
    with pytest.raises(ContractError, match=r"^policy\.info: action_names is x, expected"):
        PrefetchingBroker(Counting(), SafetyGate(embodiment=ROBOT), prefetch_at=1)
    with pytest.raises(ContractError, match=r"^gate: got NoneType"):
        PrefetchingBroker(Counting(), None, prefetch_at=1)  # type: ignore[arg-type]
    with pytest.raises(ContractError, match=r"^observe: got Observation"):
        Bench().broker.step(seen(0.0, 1.0), last_command=[0.0])  # type: ignore[arg-type]


class Gated(Counting):
    """A policy that answers when the test lets it."""

    def __init__(self) -> None:
        super().__init__()
        self.is_asked, self.may_answer = threading.Semaphore(0), threading.Semaphore(0)
        self.threads: set[int] = set()

    def infer(self, observation: Observation, /) -> ActionChunk:
        self.threads.add(threading.get_ident())
        self.is_asked.release()
        assert self.may_answer.acquire(timeout=30)
        return super().infer(observation)


def test_a_policy_infers_on_a_thread_of_its_own() -> None:
    """
    Always the same one; the loop goes on, and is not kept waiting by a policy that hangs.
    """
    policy, clock = Gated(), Clock()
    bench = Bench(policy)
    broker = bench.broker = PrefetchingBroker(policy, gate(), prefetch_at=4, clock=clock)
    assert broker.wait_for_policy(timeout_s=0.1)
    assert [None] * 50 == bench.steps(50)
    assert policy.is_asked.acquire(timeout=30)
    assert not broker.wait_for_policy(timeout_s=0.001)
    policy.may_answer.release()
    assert broker.wait_for_policy(timeout_s=30)
    assert [0, 1, 2, 3, 4, 5] == bench.steps(6)
    assert policy.is_asked.acquire(timeout=30)
    broker.reset()
    assert bench.step() is None  # nobody waits for the old inference, and none is begun beside it
    policy.may_answer.release(2)
    assert broker.wait_for_policy(timeout_s=30)
    bench.step()
    assert broker.wait_for_policy(timeout_s=30)
    assert 1 == len(policy.threads)
    assert threading.get_ident() not in policy.threads
    with pytest.raises(ContractError, match=r"^timeout_s"):
        broker.wait_for_policy(timeout_s=0)


def test_the_thread_ends_with_the_broker() -> None:
    """
    Nobody has to close it.
    """
    bench = Bench()
    bench.broker = PrefetchingBroker(bench.policy, gate(), prefetch_at=4)
    before = set(threading.enumerate())
    bench.step()
    assert bench.broker.wait_for_policy(timeout_s=30)
    (thread,) = set(threading.enumerate()) - before
    del bench
    gc.collect()
    thread.join(30)
    assert not thread.is_alive()
