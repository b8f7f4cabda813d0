"""``vlmcore lab sweep`` and goals: loads in one table, and how many requests were good."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lab_cases import COLOURS, suite_file
from vlmcore.lab.loads import ClosedLoop
from vlmcore.lab.verifying import read_artifact


@pytest.fixture
def suite(tmp_path: Path) -> str:
    """A suite that an echo answers well."""
    return str(suite_file(tmp_path, *COLOURS, evaluator="keywords", expected=["Which"]))


@pytest.fixture
def run(command: Any) -> Any:
    """Run the command; give its exit code, output and complaints."""

    def ran(*words: str) -> tuple[int, str, str]:
        done = command("lab", *words)
        return done.code, done.out, done.err

    return ran


def test_each_load_of_a_sweep_is_a_run_of_its_own(run: Any, suite: str, tmp_path: Path) -> None:
    """
    All in one table and on one page, times against the first of them.
    """
    page = tmp_path / "sweep.html"
    words = ("--clients", "1,2", "--runs", "5", "--slo", "e2e=60000", "--report", str(page))
    code, out, complaints = run("sweep", suite, "-o", str(tmp_path), "--json", *words)

    assert 0 == code, complaints
    first, second = json.loads(out)["loads"]
    assert ("one request at a time", "2 clients") == (first["load"], second["load"])
    loads = [read_artifact(each["artifact"]).start.plan.load for each in (first, second)]
    assert [ClosedLoop(clients=1), ClosedLoop(clients=2)] == loads
    assert {"ttft/1": 1.0, "e2e/1": 1.0} == {
        metric: first["times"][metric]["ratio"] for metric in ("ttft/1", "e2e/1")
    }
    assert second["times"]["e2e/1"]["ratio"] > 0
    assert [15, 15] == [each["goodput"]["good"] for each in (first, second)]
    assert "Loads of colours: target" in page.read_text()
    assert "15 of 15" in page.read_text()


def test_a_sweep_of_rates_is_told_in_lines(run: Any, suite: str, tmp_path: Path) -> None:
    """
    Without medians there is no ratio, and none is made up.
    """
    words = ("--rate", "200,400", "--runs", "2", "--arrivals", "constant")
    code, out, complaints = run("sweep", suite, "-o", str(tmp_path), *words)

    assert 0 == code, complaints
    assert "200 requests a second, constant: 6 requests, 0 failed" in out
    assert "400 requests a second, constant: 6 requests, 0 failed" in out
    assert "ttft x unknown, tpot x unknown, e2e x unknown" in out


def test_a_request_is_good_if_it_keeps_all_goals_together(
    run: Any, suite: str, tmp_path: Path
) -> None:
    """
    Which are part of the plan, so that whoever has the artifact can count again.
    """
    words = ("--runs", "2", "--slo", "ttft=60000", "--slo", "e2e=0.000001")
    code, out, complaints = run("run", suite, "-o", str(tmp_path), *words)

    assert 0 == code, complaints
    assert (
        "good: 0 of 6 requests, 0.00 a second; e2e/1 of at most 1e-06 ms missed by 6, "
        "ttft/1 of at most 60000 ms missed by 0" in out
    )
    (path,) = set(tmp_path.glob("*.json")) - {tmp_path / "colours.json"}
    assert {"ttft/1": 60000.0, "e2e/1": 1e-06} == dict(read_artifact(path).start.plan.goals)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--clients", "1,1"], "--clients: got '1,1', expected different numbers"),
        (["--clients", "1,,2"], "--clients: got '1,,2', expected different numbers"),
        (["--clients", "0,1"], "--clients: got 0"),
        (["--rate", "1,x"], "--rate: got '1,x', expected different numbers"),
        (["--rate", "-1"], "--rate: got -1"),
        (["--slo", "ttft"], "--slo: got 'ttft', expected NAME=BOUND"),
        (["--slo", "ttft=0"], "--slo: got 0"),
        (["--slo", "tftt=3"], "--slo: got 'tftt/1', expected one of ttft/1"),
    ],
)
def test_loads_and_goals_that_cannot_be_are_told_before_anything_is_asked(
    run: Any, suite: str, words: list[str], told: str
) -> None:
    """
    As a wrong command line.
    """
    code, out, complaints = run("sweep", suite, *words)

    assert (2, "") == (code, out)
    assert told in complaints
