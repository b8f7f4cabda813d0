"""Tests of `vlmcore_robotics.servers.runtime`: one inference at a time, whoever asks."""

from __future__ import annotations

import gc
import logging
import threading
import time
import weakref
from concurrent.futures import CancelledError
from typing import Any

import pytest

from openpi_cases import INFO, PLAN, SEEN, echoing, seen_at
from vlmcore.errors import (
    ContractError,
    PolicyError,
    PolicyRefusedError,
    PolicyUnavailableError,
)
from vlmcore.testing import ScriptedPolicy
from vlmcore_robotics.servers.runtime import PolicyRuntime


class Gated:
    """A policy that answers when it is let, and says what it was asked and on which thread."""

    info = INFO

    def __init__(self) -> None:
        self.go = threading.Event()
        self.busy = threading.Event()
        self.asked: list[float] = []
        self.threads: set[int] = set()
        self.closed = 0

    def infer(self, observation: Any, /) -> Any:
        self.threads.add(threading.get_ident())
        self.asked.append(float(observation.state[0]))
        self.busy.set()
        assert self.go.wait(10)
        return ScriptedPolicy([PLAN], info=INFO).infer(observation)

    def reset(self) -> None:
        self.threads.add(threading.get_ident())

    def close(self) -> None:
        self.threads.add(threading.get_ident())
        self.closed += 1


def test_one_inference_runs_at_a_time_and_each_gets_its_own_answer() -> None:
    """
    In the order in which they came.
    """
    with PolicyRuntime(echoing(delay_s=0.005), max_waiting=20) as runtime:
        futures = [runtime.submit(seen_at(float(i))) for i in range(10)]
        timed = [future.result(10) for future in futures]
    assert [float(i) for i in range(10)] == [each.chunk.values[0, 0] for each in timed]
    assert timed[9].queued_s > timed[0].queued_s
    assert min(each.inferred_s for each in timed) >= 0.005


def test_every_call_of_the_policy_is_made_on_one_thread_that_is_not_the_askers() -> None:
    """
    What belongs to a thread, as the state of some accelerators, stays on it; closing, too.
    """
    policy = Gated()
    policy.go.set()
    with PolicyRuntime(policy) as runtime:
        runtime.submit(SEEN).result(10)
        runtime.reset().result(10)
        threading.Thread(target=lambda: runtime.submit(SEEN).result(10)).start()
        time.sleep(0.1)
    assert 1 == len(policy.threads)
    assert threading.get_ident() not in policy.threads


def test_a_request_is_refused_at_once_when_too_many_wait() -> None:
    """
    An answer to an old view is worth little.
    """
    policy = Gated()
    with PolicyRuntime(policy, max_waiting=1) as runtime:
        first, second = runtime.submit(SEEN), runtime.submit(SEEN)
        with pytest.raises(PolicyUnavailableError, match="scripted: busy: 2 requests are in hand"):
            runtime.submit(SEEN)
        policy.go.set()
        first.result(10)
        second.result(10)
        runtime.submit(SEEN).result(10)
        assert 1 == runtime.health.refused


def test_a_runtime_without_a_queue_takes_the_next_as_soon_as_one_is_answered() -> None:
    """
    Who has an answer can ask again: nothing is refused in between.
    """
    with PolicyRuntime(echoing(), max_waiting=0) as runtime:
        for _ in range(200):
            runtime.submit(SEEN).result(10)
        assert (200, 0) == (runtime.health.answered, runtime.health.refused)


def test_health_does_not_wait_for_an_inference() -> None:
    """
    Inference blocked the event loop: other clients, health and pings starved.
    """
    policy = Gated()
    with PolicyRuntime(policy) as runtime:
        future = runtime.submit(SEEN)
        assert policy.busy.wait(10)
        began_at_s = time.perf_counter()
        health = runtime.health
        assert time.perf_counter() - began_at_s < 0.05
        assert (True, 1, 0) == (health.is_open, health.in_hand, health.answered)
        policy.go.set()
        future.result(10)
    health = runtime.health
    assert (False, 0, 1, 0) == (health.is_open, health.in_hand, health.answered, health.failed)


def test_what_is_cancelled_before_its_turn_is_never_asked() -> None:
    """
    A client that left needs no answer.
    """
    policy = Gated()
    with PolicyRuntime(policy) as runtime:
        first = runtime.submit(seen_at(1.0))
        assert policy.busy.wait(10)
        second = runtime.submit(seen_at(2.0))
        assert second.cancel()
        assert 1 == runtime.health.in_hand
        policy.go.set()
        first.result(10)
        with pytest.raises(CancelledError):
            second.result(10)
    assert [1.0] == policy.asked


def test_what_is_cancelled_is_not_held_until_its_turn() -> None:
    """
    Clients that sent large frames and left filled the memory while one inference ran.
    """
    policy = Gated()
    with PolicyRuntime(policy) as runtime:
        runtime.submit(SEEN)
        assert policy.busy.wait(10)
        seen = seen_at(2.0)
        is_held = weakref.ref(seen)
        assert runtime.submit(seen).cancel()
        del seen
        gc.collect()
        assert is_held() is None
        policy.go.set()


def test_an_error_of_the_policy_is_told_by_its_class_and_logged_whole(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """
    Its words may have paths of this machine in them, or worse.
    """
    script = [KeyError("/home/me/weights"), RuntimeError("x"), PLAN]
    with PolicyRuntime(ScriptedPolicy(script, info=INFO)) as runtime:
        with caplog.at_level(logging.ERROR), pytest.raises(PolicyRefusedError) as caught:
            runtime.submit(SEEN).result(10)
        assert "scripted: the policy failed with KeyError; its log says more" == str(caught.value)
        assert caught.value.__cause__ is caught.value.__context__ is None
        assert "/home/me/weights" in caplog.text
        with pytest.raises(PolicyRefusedError, match="RuntimeError"):
            runtime.submit(SEEN).result(10)
        assert PLAN == runtime.submit(SEEN).result(10).chunk.values.tolist()
        assert (1, 2) == (runtime.health.answered, runtime.health.failed)


def test_an_exit_within_the_policy_ends_neither_thread_nor_server() -> None:
    """
    Some model code calls ``sys.exit``.
    """

    def leaving(_: Any) -> Any:
        raise SystemExit(3)

    with PolicyRuntime(ScriptedPolicy(leaving, info=INFO)) as runtime:
        for _ in range(2):
            with pytest.raises(PolicyRefusedError, match="SystemExit"):
                runtime.submit(SEEN).result(10)


def test_an_error_of_ours_is_told_as_it_is() -> None:
    """
    It was written for people.
    """
    odd = ScriptedPolicy([ContractError("state", "is odd")], info=INFO)
    with PolicyRuntime(odd) as runtime, pytest.raises(ContractError, match="state: is odd"):
        runtime.submit(SEEN).result(10)


def test_what_is_no_chunk_is_refused() -> None:
    """
    A policy may be anybody's code.
    """

    class Lazy(Gated):
        def infer(self, _: Any, /) -> Any:
            return None

    with (
        PolicyRuntime(Lazy()) as runtime,
        pytest.raises(PolicyRefusedError, match="it gave NoneType, expected an ActionChunk"),
    ):
        runtime.submit(SEEN).result(10)


def test_closing_drops_what_waits_and_closes_the_policy_once() -> None:
    """
    After the inference that runs.
    """
    policy = Gated()
    runtime = PolicyRuntime(policy)
    first, second = runtime.submit(seen_at(1.0)), runtime.submit(seen_at(2.0))
    assert policy.busy.wait(10)
    closing = threading.Thread(target=runtime.close)
    closing.start()
    time.sleep(0.05)
    with pytest.raises(PolicyError, match="this policy is closed"):
        runtime.submit(SEEN)
    policy.go.set()
    closing.join(10)
    runtime.close()

    assert PLAN == first.result(0).chunk.values.tolist()
    with pytest.raises(PolicyError, match="this policy is closed"):
        second.result(0)
    assert ([1.0], 1) == (policy.asked, policy.closed)


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"policy": "arm"}, "policy"),
        ({"max_waiting": -1}, "max_waiting"),
        ({"max_waiting": 1.5}, "max_waiting"),
    ],
)
def test_what_cannot_work_is_refused_at_construction(options: dict[str, Any], field: str) -> None:
    """
    Before a thread is made.
    """
    with pytest.raises(ContractError) as caught:
        PolicyRuntime(**{"policy": echoing(), **options})
    assert field == caught.value.field
