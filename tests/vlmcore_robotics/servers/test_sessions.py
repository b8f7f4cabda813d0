"""Tests of the sessions of `vlmcore_robotics.servers.runtime`, and of what it does while idle."""

from __future__ import annotations

import logging
import threading
from typing import Any

import pytest

from openpi_cases import INFO, SEEN, client, serving
from vlmcore.errors import ContractError, PolicyError, PolicyRefusedError
from vlmcore.policy.interface import ForkingPolicy, OffloadingPolicy
from vlmcore.testing import ScriptedPolicy
from vlmcore_robotics.servers.runtime import PolicyRuntime

STEPS = [[[float(i), 0.0]] * 2 for i in range(5)]


def script() -> ScriptedPolicy:
    """Make a policy that counts its calls."""
    return ScriptedPolicy(STEPS, info=INFO)


class Counting:
    """A policy that counts its calls, and notes what happens to it and on which thread."""

    info = INFO

    def __init__(self, notes: list[str] | None = None, name: str = "first") -> None:
        self.notes = [] if notes is None else notes
        self.threads = {0}
        self.name = name
        self.scripted = script()
        self.offloaded = threading.Event()

    def note(self, what: str) -> None:
        self.notes.append(f"{self.name} {what}")
        self.threads.add(threading.get_ident())

    def infer(self, observation: Any, /) -> Any:
        if self.offloaded.is_set():
            self.note("comes back")
            self.offloaded.clear()
        return self.scripted.infer(observation)

    def reset(self) -> None:
        self.scripted.reset()

    def close(self) -> None:
        self.note("closed")

    def fork(self) -> Counting:
        self.note("forked")
        return Counting(self.notes, f"fork {self.notes.count('first forked')}")

    def offload(self) -> None:
        self.note("offloaded")
        self.offloaded.set()


class Shared(Counting):
    """The same, which can be had once only."""

    fork = None  # type: ignore[assignment]


def count(runtime: PolicyRuntime, session: str | None = None) -> float:
    """Ask; return how many calls the policy had before."""
    chunk = runtime.submit(SEEN, session=session).result(10).chunk
    return float(chunk.values[0, 0])


def test_two_sessions_do_not_clear_each_others_queue() -> None:
    """
    A shared policy was reset by one client, and another one's queue was gone.
    """
    with PolicyRuntime(script()) as runtime:
        assert [0, 1, 0, 2] == [count(runtime, session) for session in ("a", "a", "b", "a")]
        runtime.reset(session="b").result(10)
        assert [3, 0] == [count(runtime, session) for session in ("a", "b")]
        assert runtime.has_sessions


def test_those_without_a_session_share_one() -> None:
    """
    As old clients do, which know of none.
    """
    with PolicyRuntime(script()) as runtime:
        assert [0, 1] == [count(runtime), count(runtime)]
        assert 0 == count(runtime, "a")
        runtime.reset().result(10)
        assert [0, 1] == [count(runtime), count(runtime, "a")]


def test_a_policy_that_cannot_be_had_twice_is_shared_by_all_sessions() -> None:
    """
    And the runtime says so.
    """
    policy = Shared()
    assert not callable(policy.fork)
    with PolicyRuntime(policy) as runtime:
        assert [0, 1, 2] == [count(runtime, session) for session in ("a", "b", None)]
        runtime.reset(session="a").result(10)
        assert 0 == count(runtime, "b")
        assert not runtime.has_sessions


def test_the_session_that_was_not_used_for_longest_gives_way() -> None:
    """
    There are as many as was said; one that gave way begins anew when it comes back.
    """
    policy = Counting()
    with PolicyRuntime(policy, max_sessions=2) as runtime:
        assert [0, 0, 1, 0] == [count(runtime, session) for session in ("a", "b", "a", "c")]
        assert ["fork 2 closed", "first forked"] == policy.notes[-2:]
        assert [2, 0] == [count(runtime, session) for session in ("a", "b")]
    assert 1 == len(policy.threads - {0})


def test_a_session_that_nobody_uses_ends() -> None:
    """
    Without anybody asking.
    """
    ended = threading.Event()

    class Noticing(Counting):
        def fork(self) -> Counting:
            forked = Counting(self.notes, "fork")
            forked.close = ended.set  # type: ignore[method-assign]
            return forked

    with PolicyRuntime(Noticing(), session_idle_s=0.01) as runtime:
        assert 0 == count(runtime, "a")
        assert ended.wait(10)
        assert 0 == count(runtime, "a")


def test_a_session_can_be_ended() -> None:
    """
    As of a connection that is gone; ending one that there is not is no error.
    """
    policy = Counting()
    with PolicyRuntime(policy) as runtime:
        count(runtime, "a")
        runtime.end_session("a")
        runtime.end_session("b")
        assert 0 == count(runtime, "a")
        assert ["first forked", "fork 1 closed", "first forked"] == policy.notes
    assert ["fork 2 closed", "first closed"] == policy.notes[-2:]
    runtime.end_session("a")


def test_a_fork_that_fails_is_told_and_a_close_that_fails_is_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """
    The other sessions go on.
    """

    class Odd(Counting):
        forks: list[Any]

        def fork(self) -> Any:
            forked = self.forks.pop(0)
            if isinstance(forked, Exception):
                raise forked
            return forked

        def close(self) -> None:
            raise OSError("/home/me")

    policy = Odd()
    policy.forks = [MemoryError("/home/me"), None, Odd(), script()]
    with caplog.at_level(logging.ERROR), PolicyRuntime(policy, max_sessions=1) as runtime:
        with pytest.raises(PolicyRefusedError, match="failed with MemoryError"):
            count(runtime, "a")
        with pytest.raises(PolicyRefusedError, match="its fork is NoneType, expected a Policy"):
            count(runtime, "a")
        assert [0, 0] == [count(runtime, session) for session in ("a", "b")]
        assert "a session of the policy could not be closed" in caplog.text
        runtime.reset(session="b").result(10)
        with pytest.raises(PolicyRefusedError, match="failed with OSError"):
            runtime.close()


@pytest.mark.parametrize("session", ["", " ", 1, "a" * 300, "a\n"])
def test_a_session_has_a_name(session: Any) -> None:
    """
    It comes from clients.
    """
    with PolicyRuntime(script()) as runtime:
        for ask in (
            lambda: runtime.submit(SEEN, session=session),
            lambda: runtime.reset(session=session),
            lambda: runtime.end_session(session),
        ):
            with pytest.raises(ContractError) as caught:
                ask()
            assert "session" == caught.value.field
        assert 0 == runtime.health.in_hand


def test_each_connection_of_openpi_is_a_session() -> None:
    """
    It ends with the connection.
    """
    with serving(script()) as url:
        with client(url) as one, client(url) as two:
            assert [0, 1] == [one.infer(SEEN).values[0, 0] for _ in range(2)]
            assert 0 == two.infer(SEEN).values[0, 0]
        with client(url) as three:
            assert 0 == three.infer(SEEN).values[0, 0]


def test_a_policy_that_nobody_asks_is_offloaded_and_comes_back_by_itself() -> None:
    """
    Once, on the thread of the policy, and again after the next inference.
    """
    policy = Counting()
    assert isinstance(policy, ForkingPolicy)
    assert isinstance(policy, OffloadingPolicy)
    with PolicyRuntime(policy, idle_offload_s=0.01) as runtime:
        for _ in range(2):
            assert policy.offloaded.wait(10)
            runtime.reset().result(10)
            assert policy.offloaded.is_set(), "a reset needs no accelerator"
            assert 0 == count(runtime)
    assert ["first offloaded", "first comes back"] * 2 == policy.notes[:4]
    assert 1 == len(policy.threads - {0})


def test_a_policy_is_not_offloaded_while_it_is_asked_or_where_nobody_said_so() -> None:
    """
    The time counts from the end of the last inference.
    """
    policy, unasked = Counting(), Counting()
    with (
        PolicyRuntime(policy, idle_offload_s=60) as runtime,
        PolicyRuntime(unasked) as other,
    ):
        for _ in range(3):
            count(runtime)
            count(other)
    assert ["first closed"] == policy.notes == unasked.notes


def test_a_policy_that_cannot_be_offloaded_is_asked_nevertheless(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """
    It keeps its memory, and the log says why.
    """
    tried = threading.Event()

    class Heavy(Counting):
        def offload(self) -> None:
            tried.set()
            raise MemoryError

    with caplog.at_level(logging.ERROR), PolicyRuntime(Heavy(), idle_offload_s=0) as runtime:
        assert tried.wait(10)
        assert 0 == count(runtime)
    assert "could not be offloaded" in caplog.text


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"max_sessions": 0}, "max_sessions"),
        ({"session_idle_s": -1}, "session_idle_s"),
        ({"session_idle_s": float("nan")}, "session_idle_s"),
        ({"idle_offload_s": -1}, "idle_offload_s"),
        ({"idle_offload_s": 5}, "idle_offload_s"),
    ],
)
def test_options_that_cannot_work_are_refused(options: dict[str, Any], field: str) -> None:
    """
    As an offload of a policy that has none.
    """
    with pytest.raises(ContractError) as caught:
        PolicyRuntime(script(), **options)
    assert field == caught.value.field


def test_a_scripted_policy_that_is_closed_cannot_be_forked() -> None:
    """
    As anything else of it.
    """
    policy = script()
    policy.close()
    with pytest.raises(PolicyError, match="closed"):
        policy.fork()
