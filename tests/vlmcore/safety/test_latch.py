"""Tests of `vlmcore.safety.latch`."""

from __future__ import annotations

import copy
import math
import pickle
import signal
import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from safety_cases import JOINT, SLIDE, chunk, space
from vlmcore.errors import ContractError, UnsafeActionError
from vlmcore.safety import RefusalReason, Remedy, SafetyGate, SafetyLatch

SAFE, JUMP = chunk([[0.05]]), chunk([[0.9]])


def latch(remedy: Remedy = Remedy.CLAMP, **more: Any) -> SafetyLatch:
    """Put a latch behind a gate for one joint."""
    return SafetyLatch(SafetyGate(space=space(JOINT), remedy=remedy), **more)


def reason_of(each: SafetyLatch, came: Any = SAFE) -> str | None:
    """Vet, and take the reason of a refusal."""
    try:
        each.vet(came, last_command=[0.0])
    except UnsafeActionError as error:
        return error.reason
    return None


@pytest.mark.parametrize("remedy", Remedy)
def test_too_many_consecutive_clamps_trip_it(remedy: Remedy) -> None:
    """
    No "too many consecutive clamps" trip: now there is one, after 3, and for refusals too.
    """
    each = latch(remedy)
    first = {reason_of(each, JUMP) for _ in range(3)}

    assert {"violations" if remedy in (Remedy.BLOCK, Remedy.REPORT) else None} == first
    assert (3, True) == (each.consecutive, each.is_tripped)
    assert ["tripped"] * 5 == [reason_of(each, came) for came in (SAFE, JUMP, SAFE, SAFE, SAFE)]


def test_a_latched_trip_with_explicit_rearm_after_3_consecutive_unsafe_chunks() -> None:
    """
    Latched trip with explicit rearm after N (default 3) consecutive unsafe chunks.
    """
    each = latch()
    assert 3 == each.max_consecutive
    for count in (1, 2):
        reason_of(each, JUMP)
        assert (count, False) == (each.consecutive, each.is_tripped)
    assert reason_of(each) is None  # what is safe starts the count again
    assert 0 == each.consecutive
    for _ in range(3):
        assert reason_of(each, JUMP) is None
    assert "tripped" == reason_of(each)

    each.rearm()

    assert (0, False) == (each.consecutive, each.is_tripped)
    assert reason_of(each) is None


def test_a_refusal_of_the_latch_carries_the_report_of_what_tripped_it() -> None:
    """
    Nothing left, whatever the gate had said of that chunk.
    """
    each = latch(max_consecutive=1)
    vetted = each.vet(JUMP, last_command=[0.0])
    with pytest.raises(UnsafeActionError) as error:
        each.vet(SAFE, last_command=[0.0])

    assert str(error.value).startswith("tripped: unsafe chunks in a row: 1; ")
    report = error.value.report
    assert vetted.report.violations == report.violations
    assert (True, True) == (vetted.report.safe_for_handoff, vetted.report.changed)
    assert (False, False) == (report.safe_for_handoff, report.changed)
    assert RefusalReason.TRIPPED is report.reason
    assert report.reason.value == error.value.reason == report.summary().reason.value


def test_a_latch_that_has_tripped_cuts_off_nothing() -> None:
    """
    Nothing leaves at all, whatever had been left of the chunk that tripped it.
    """
    each = latch(max_consecutive=1)
    vetted = each.vet(chunk([[0.05], [math.nan]]), last_command=[0.0])
    with pytest.raises(UnsafeActionError) as error:
        each.vet(SAFE, last_command=[0.0])
    assert (1, 0) == (vetted.report.cut_steps, error.value.report.cut_steps)


def test_a_chunk_that_is_none_of_this_robot_does_not_count() -> None:
    """
    It is a mistake of the caller; the count goes on after it.
    """
    each = latch(max_consecutive=2)
    reason_of(each, JUMP)
    for wrong in (chunk([[0.0]], "y"), None, chunk([[0.0, 0.0]], "x", "y")):
        with pytest.raises(ContractError):
            each.vet(wrong, last_command=[0.0])
    with pytest.raises(ContractError, match=r"^last_command"):
        each.vet(SAFE, last_command=[0.0, 0.0])
    assert (1, False) == (each.consecutive, each.is_tripped)
    reason_of(each, JUMP)
    assert each.is_tripped


def test_a_position_goes_through_to_the_gate() -> None:
    """
    As the last command does.
    """
    each = SafetyLatch(SafetyGate(space=space(SLIDE)))
    with pytest.raises(ContractError, match=r"^position"):
        each.vet(chunk([[0.0]], "dx"), last_command=[0.0], position={"dx": 0.0})
    assert each.gate.actions.names == ("dx",)


def test_threads_take_turns() -> None:
    """
    However many there are, as many unsafe chunks pass as may, and no more.
    """
    each, start = latch(max_consecutive=20), threading.Barrier(8)

    def run(_: int) -> int:
        start.wait()
        return sum(reason_of(each, JUMP) is None for _ in range(10))

    with ThreadPoolExecutor(8) as pool:
        assert 20 == sum(pool.map(run, range(8)))
    assert (20, True) == (each.consecutive, each.is_tripped)


@pytest.mark.parametrize("wrong", [0, -1, 1.5, True, "3", None])
def test_the_number_that_trips_it_is_a_whole_number_above_0(wrong: Any) -> None:
    """
    Zero would never let anything pass.
    """
    with pytest.raises(ContractError, match=r"^max_consecutive"):
        latch(max_consecutive=wrong)


def test_a_latch_is_put_behind_a_gate() -> None:
    """
    Not behind a space, nor behind another latch.
    """
    for wrong in (space(JOINT), latch(), None):
        came = type(wrong).__name__
        with pytest.raises(ContractError, match=rf"^gate: got {came}, expected a SafetyGate$"):
            SafetyLatch(wrong)  # type: ignore[arg-type]


class Rearming(Mapping[str, float]):
    """A last command that rearms the latch while it is read."""

    def __init__(self, each: SafetyLatch) -> None:
        self.each = each

    def __getitem__(self, name: str) -> float:
        self.each.rearm()
        return 0.0

    def __iter__(self) -> Iterator[str]:
        return iter(("x",))

    def __len__(self) -> int:
        return 1


def test_rearming_in_the_middle_of_a_turn_is_no_deadlock() -> None:
    """
    From a mapping that rearms, and from a signal handler, which runs in the thread it interrupts.
    """
    each = latch(max_consecutive=2)
    reason_of(each, JUMP)
    each.vet(JUMP, last_command=Rearming(each))
    assert (1, False) == (each.consecutive, each.is_tripped)


@pytest.mark.skipif(not hasattr(signal, "raise_signal"), reason="there are no signals here")
def test_a_signal_handler_may_rearm_at_any_time() -> None:
    """
    Also while a chunk is being vetted.
    """
    each = latch(max_consecutive=2)

    class Interrupted(Rearming):
        def __getitem__(self, name: str) -> float:
            signal.raise_signal(signal.SIGINT)
            return 0.0

    before = signal.signal(signal.SIGINT, lambda *_: each.rearm())
    try:
        reason_of(each, JUMP)
        each.vet(JUMP, last_command=Interrupted(each))
    finally:
        signal.signal(signal.SIGINT, before)
    assert (1, False) == (each.consecutive, each.is_tripped)


@pytest.mark.parametrize("make", [copy.copy, copy.deepcopy, pickle.dumps])
def test_a_latch_has_no_copies(make: Any) -> None:
    """
    Of two latches for one robot each would count the half.
    """
    with pytest.raises(TypeError, match=r"^a SafetyLatch is not copied or pickled: make another"):
        make(latch())


def test_a_latch_can_be_tripped_for_a_reason_that_the_gate_does_not_know_of() -> None:
    """
    As by a loop that runs dry; what is told is that reason, until somebody rearms it.
    """
    each = latch()
    vetted = each.vet(SAFE, last_command=[0.0])
    each.trip(vetted.report, "nothing is left to execute")
    assert (0, True) == (each.consecutive, each.is_tripped)
    with pytest.raises(UnsafeActionError) as error:
        each.vet(SAFE, last_command=[0.0])
    assert str(error.value).startswith("tripped: nothing is left to execute; ")
    report = error.value.report
    assert (RefusalReason.TRIPPED, False) == (report.reason, report.safe_for_handoff)

    each.rearm()
    assert reason_of(each) is None


def test_a_latch_that_has_tripped_keeps_its_reason() -> None:
    """
    The first one says what went wrong.
    """
    each = latch(max_consecutive=1)
    tripped = each.vet(JUMP, last_command=[0.0])
    each.trip(tripped.report, "another one")
    with pytest.raises(UnsafeActionError, match=r"^tripped: unsafe chunks in a row: 1; "):
        each.vet(SAFE, last_command=[0.0])


def test_a_latch_is_tripped_with_a_report_and_a_sentence() -> None:
    """
    A person reads them.
    """
    each = latch()
    report = each.vet(SAFE, last_command=[0.0]).report
    with pytest.raises(ContractError, match=r"^report: got str, expected a SafetyReport"):
        each.trip("report", "why")  # type: ignore[arg-type]
    with pytest.raises(ContractError, match=r"^why: got blank text"):
        each.trip(report, " ")
    assert not each.is_tripped
