"""Tests of `vlmcore.rollout.watchdog`."""

from __future__ import annotations

import logging
import math
import threading
from collections.abc import Callable
from typing import Any

import pytest

from control_cases import Clock, Sink, gate
from vlmcore.errors import ContractError
from vlmcore.rollout import ActionSink, Watchdog, hand_off, hold_still


class Kennel:
    """A watchdog with a clock of its own."""

    def __init__(self, **more: Any) -> None:
        self.clock, self.sink, self.told = Clock(), Sink(), 0
        options = {"limit_s": 0.5, "on_silence": self.hear, "clock": self.clock}
        self.dog = Watchdog(self.sink, **{**options, **more})

    def hear(self) -> None:
        self.told += 1

    def send(self) -> None:
        now_s = self.clock()
        held = hold_still(gate(), last_command=[0.2], now_s=now_s)
        hand_off(held, self.dog, now_s=now_s, max_age_s=1.0)


def test_a_watchdog_hands_on_what_it_is_handed_and_knows_how_long_ago() -> None:
    """
    It is a sink, and the bridge to a controller can ask it in its own cycle.
    """
    kennel = Kennel()
    assert isinstance(kennel.dog, ActionSink)
    assert (math.inf, False) == (kennel.dog.last_command_age_s(), kennel.dog.is_alive())
    kennel.send()
    assert [("hold", [0.2])] == kennel.sink.sent
    for later_s, is_alive in ((0.0, True), (0.5, True), (0.25, False)):
        kennel.clock.now_s += later_s
        assert is_alive is kennel.dog.is_alive()
    assert 0.75 == kennel.dog.last_command_age_s()
    kennel.send()
    assert kennel.dog.is_alive()


def test_silence_is_told_of_once() -> None:
    """
    And again in the next one, after a command went through.
    """
    kennel = Kennel()
    for _ in range(2):
        kennel.send()
        assert kennel.dog.check()
        kennel.clock.now_s += 0.6
        told = kennel.told
        assert [False, False, False] == [kennel.dog.check() for _ in range(3)]
        assert told + 1 == kennel.told


def test_silence_before_the_first_command_is_none() -> None:
    """
    Nothing moves yet, and there is nothing to stop.
    """
    kennel = Kennel()
    kennel.clock.now_s += 60
    assert not kennel.dog.check()
    assert 0 == kennel.told


def test_a_command_that_a_sink_did_not_take_does_not_count() -> None:
    """
    What it raises reaches the caller as it is.
    """
    kennel = Kennel()
    kennel.sink.then = lambda _: 1 / 0
    with pytest.raises(ZeroDivisionError):
        kennel.send()
    assert not kennel.dog.is_alive()


def watched(on_silence: Callable[[], object]) -> Kennel:
    """Make one whose silence is too long already."""
    kennel = Kennel(limit_s=0.01, on_silence=on_silence)
    kennel.send()
    kennel.clock.now_s += 1
    return kennel


def test_a_thread_tells_of_silence_where_nobody_asks() -> None:
    """
    Until it is stopped; and it can be started again.
    """
    heard = threading.Event()
    kennel = watched(heard.set)
    for _ in range(2):
        with kennel.dog:
            assert heard.wait(30)
        heard.clear()
        kennel.send()
        kennel.clock.now_s += 1
    kennel.dog.stop()
    assert not heard.is_set()
    assert "watchdog" not in {thread.name for thread in threading.enumerate()}


def test_what_is_called_in_silence_may_fail_and_the_next_silence_is_noticed(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """
    A watchdog that dies of its own bark guards nothing.
    """
    heard = threading.Semaphore(0)

    def fail() -> None:
        heard.release()
        raise RuntimeError("no radio")

    kennel = watched(fail)
    with caplog.at_level(logging.ERROR), kennel.dog:
        assert heard.acquire(timeout=30)
        kennel.send()
        kennel.clock.now_s += 1
        assert heard.acquire(timeout=30)
    assert "no radio" in caplog.text


def test_what_is_called_in_silence_may_stop_the_watchdog() -> None:
    """
    It does not wait for itself.
    """
    done = threading.Event()

    def stop() -> None:
        kennel.dog.stop()
        done.set()

    kennel = watched(stop)
    kennel.dog.start()
    assert done.wait(30)


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"limit_s": 0}, "limit_s: got 0"),
        ({"limit_s": math.nan}, "limit_s: got nan"),
        ({"on_silence": 3}, "on_silence: got 3"),
    ],
)
def test_an_argument_that_is_wrong_is_named(changed: dict[str, Any], words: str) -> None:
    """
    A watchdog that never barks is worse than none.
    """
    with pytest.raises(ContractError, match=f"^{words}"):
        Kennel(**changed)


def test_a_watchdog_needs_a_sink_and_for_its_thread_something_to_call() -> None:
    """
    Once at a time.
    """
    with pytest.raises(ContractError, match=r"^sink: got 3"):
        Watchdog(3, limit_s=1.0)  # type: ignore[arg-type]
    with pytest.raises(ContractError, match=r"^on_silence: got None"):
        Watchdog(Sink(), limit_s=1.0).start()
    with Kennel().dog as dog, pytest.raises(ContractError, match=r"^start"):
        dog.start()
