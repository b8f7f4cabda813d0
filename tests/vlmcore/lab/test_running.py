"""A run: the order of its requests, its loads, and how it ends."""

from __future__ import annotations

import threading
import time
from itertools import groupby, pairwise
from pathlib import Path
from typing import Any

import attrs
import pytest

import artifact_cases
from lab_cases import ScriptedAsker, colours, plan
from vlmcore.errors import ArtifactError, ContractError
from vlmcore.lab.artifacts import Ending, RunStart
from vlmcore.lab.events import Phase
from vlmcore.lab.journal import Journal
from vlmcore.lab.loads import ClosedLoop, OpenLoop
from vlmcore.lab.preparing import input_of
from vlmcore.lab.recovery import artifact_of_journal
from vlmcore.lab.run_plans import CacheMode, RunPlan
from vlmcore.lab.running import Runner, RunTarget
from vlmcore.lab.schedules import Arrivals
from vlmcore.lab.suite_documents import suite_document
from vlmcore.vlm.generation import GenerationOptions

SHORT = GenerationOptions(max_new_tokens=16)


def run(
    folder: Path, planned: RunPlan, *askers: ScriptedAsker, names: tuple[str, ...] = (), **more: Any
) -> tuple[Journal, tuple[Ending, str]]:
    """Run a plan over the suite of colours; the targets are called A, B, ..."""
    suite = colours(folder, *names)
    targets = [RunTarget(name=chr(65 + i), asker=a, options=SHORT) for i, a in enumerate(askers)]
    runner = Runner(suite, planned, targets, **more)
    start = RunStart(
        label="run",
        created_at="2026-12-01T08:00:00Z",
        identity=artifact_cases.identity(
            targets=[artifact_cases.target(name=each.name) for each in targets]
        ),
        suite=suite_document(suite),
        plan=planned,
        inputs=tuple(
            input_of(suite, case, target=each.name, rules=None)
            for each in targets
            for case in suite.cases
        ),
    )
    with Journal(folder, start, planned=runner.planned, sync=False) as journal:
        return journal, runner.run(journal)


def test_every_case_is_warmed_up_and_then_asked_once_a_block(tmp_path: Path) -> None:
    """
    Warm-ups are kept, and are no measured samples.
    """
    asker = ScriptedAsker()
    journal, ended = run(tmp_path, plan(runs_per_case=3, warm_ups_per_case=2), asker)

    assert (Ending.COMPLETE, "") == ended
    phases = [phase for phase, _ in groupby(request.phase for request in asker.asked)]
    assert [Phase.WARM_UP, Phase.STEADY] == phases
    blocks = [(r.block, r.case) for r in asker.measured]
    assert sorted(blocks) == [(b, c) for b in range(3) for c in ("blue", "green", "red")]
    assert 9 == len(journal.samples)
    assert [1.0] * 9 == [each.score.value for each in journal.samples if each.score]


def test_two_targets_are_asked_as_abba(tmp_path: Path) -> None:
    """
    A machine that gets warm then gets warm for both.
    """
    first, second = ScriptedAsker(), ScriptedAsker()
    journal, _ = run(tmp_path, plan(runs_per_case=2), first, second, names=("red",))

    assert "ABBABAAB" == "".join(each.sample.target for each in journal.samples)
    assert (4, 4) == (len(first.asked), len(second.asked))


@pytest.mark.parametrize("clients", [2, 5])
def test_as_many_clients_as_there_are_ask_at_a_time(tmp_path: Path, clients: int) -> None:
    """
    Each waits for its answer, and none for another's.
    """
    together = threading.Barrier(clients)

    def answer(request: Any) -> str:
        if request.phase is Phase.STEADY:
            together.wait(20)  # who is alone waits for ever
        return "red"

    asker = ScriptedAsker(answer)
    planned = plan(load=ClosedLoop(clients=clients), runs_per_case=2 * clients)
    journal, ended = run(tmp_path, planned, asker, names=("red",))

    assert Ending.COMPLETE is ended[0]
    assert 2 * clients == len(journal.samples)


def test_an_open_loop_measures_from_when_a_request_was_due(tmp_path: Path) -> None:
    """
    A target that takes its time is asked all the same, and nothing is hidden by its slowness.
    """
    free = threading.Event()

    def answer(request: Any) -> str:
        if len(asker.asked) == 4:
            free.set()
        assert free.wait(20)  # the first is answered when the fourth was asked
        return request.case

    asker = ScriptedAsker(answer)
    load = OpenLoop(rate_per_s=200, arrivals=Arrivals.CONSTANT)
    journal, _ = run(tmp_path, plan(load=load, runs_per_case=4), asker, names=("red",))

    times = [each.sample.scheduled_ns for each in journal.samples]
    due = sorted(time_ns for time_ns in times if time_ns is not None)
    assert 4 == len(due)
    gaps = {later - earlier for earlier, later in pairwise(due)}
    assert all(abs(gap - 5_000_000) < 2_000 for gap in gaps)
    assert all(each.sample.start_ns == each.sample.scheduled_ns for each in journal.samples)


def test_with_a_unique_cache_no_two_requests_begin_alike(tmp_path: Path) -> None:
    """
    A server that keeps beginnings of prompts then finds none.
    """
    asker = ScriptedAsker()
    run(tmp_path, plan(cache=CacheMode.UNIQUE, warm_ups_per_case=1), asker)

    systems = [request.prompt().system for request in asker.asked]
    assert len({*systems}) == len(asker.asked) == 9
    assert {16} == {len(system) for system in systems}


def test_requests_that_fail_are_kept_and_the_run_goes_on(tmp_path: Path) -> None:
    """
    One that failed has no score; what the others cost is not lost.
    """
    asker = ScriptedAsker(lambda request: None if request.case == "red" else request.case)
    journal, ended = run(tmp_path, plan(), asker)

    assert Ending.COMPLETE is ended[0]
    failed = [each for each in journal.samples if each.sample.failure is not None]
    assert ["red", "red"] == [each.sample.case for each in failed]
    assert all(each.score is None for each in failed)


@pytest.mark.parametrize("clients", [1, 2])
def test_too_many_failures_end_a_run(tmp_path: Path, clients: int) -> None:
    """
    What was asked until then is kept.
    """
    asker = ScriptedAsker(lambda _: None)
    planned = plan(load=ClosedLoop(clients=clients), runs_per_case=30, max_failures=4)
    journal, ended = run(tmp_path, planned, asker)

    assert Ending.STOPPED is ended[0]
    assert ended[1].endswith("requests failed, and 4 may")
    assert 5 <= len(journal.samples) <= 5 + clients


@pytest.mark.parametrize("load", [ClosedLoop(), ClosedLoop(clients=2), OpenLoop(rate_per_s=500)])
def test_a_run_that_is_stopped_keeps_what_was_answered(tmp_path: Path, load: Any) -> None:
    """
    What is under way is waited for, and nothing new is asked.
    """
    stop = threading.Event()

    def answer(request: Any) -> str:
        if len(asker.asked) >= 3:
            stop.set()
        return request.case

    asker = ScriptedAsker(answer)
    journal, ended = run(tmp_path, plan(load=load, runs_per_case=99), asker, stop=stop)

    assert (Ending.CANCELLED, "somebody ended it") == ended
    assert len(asker.asked) == len(journal.samples) < 99
    assert len(artifact_of_journal(journal.path).samples) == len(journal.samples)


@pytest.mark.parametrize("load", [ClosedLoop(), ClosedLoop(clients=3), OpenLoop(rate_per_s=500)])
def test_a_disk_that_takes_no_more_ends_a_run_and_its_threads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, load: Any
) -> None:
    """
    Requests that nobody could keep are not paid for.
    """

    def full(*_: Any) -> None:
        raise ArtifactError("journal", "cannot be written: No space left on device")

    monkeypatch.setattr(Journal, "append", full)
    before, asker = {*threading.enumerate()}, ScriptedAsker()
    with pytest.raises(ArtifactError, match="No space left"):
        run(tmp_path, plan(load=load, runs_per_case=200), asker)
    ends_s = time.monotonic() + 20
    while {*threading.enumerate()} - before and time.monotonic() < ends_s:
        time.sleep(0.01)

    assert not {*threading.enumerate()} - before
    assert len(asker.asked) < 200


@pytest.mark.parametrize("load", [ClosedLoop(), ClosedLoop(clients=3), OpenLoop(rate_per_s=500)])
def test_a_fault_of_a_target_is_told_and_not_taken_for_an_answer(tmp_path: Path, load: Any) -> None:
    """
    An error that no target may raise is none of the server's.
    """

    def answer(_: Any) -> str:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        run(tmp_path, plan(load=load), ScriptedAsker(answer))


def test_who_has_the_floor_is_told_of_each_request(tmp_path: Path) -> None:
    """
    A person sees how far it is, with warm-ups counted.
    """
    told: list[tuple[int, int]] = []

    def progress(_: Any, /, *, done: int, planned: int) -> None:
        told.append((done, planned))

    run(tmp_path, plan(warm_ups_per_case=1), ScriptedAsker(), progress=progress)

    assert [(i, 9) for i in range(1, 10)] == told


def test_a_case_may_have_its_own_length(tmp_path: Path) -> None:
    """
    Others have that of the run.
    """
    suite = colours(tmp_path)
    cases = [attrs.evolve(suite.cases[0], max_new_tokens=3), *suite.cases[1:]]
    suite, asker = attrs.evolve(suite, cases=cases), ScriptedAsker()
    runner = Runner(suite, plan(), [RunTarget(name="A", asker=asker, options=SHORT)])
    lengths = {
        request.case: request.options.max_new_tokens
        for leg in runner._legs
        for request in (runner._request(leg, case) for case in leg.cases)
    }

    assert {"red": 3, "green": 16, "blue": 16} == lengths


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"retries": 1}, "retries: got 1, expected 0"),
        ({"cache": CacheMode.WARM_PREFIX}, "warm_ups_per_case: got 0, expected at least 1"),
    ],
)
def test_plans_that_would_measure_something_else_are_refused(
    tmp_path: Path, fields: dict[str, Any], told: str
) -> None:
    """
    Before anything is asked.
    """
    with pytest.raises(ContractError, match=told):
        run(tmp_path, plan(**fields), ScriptedAsker())
