"""``vlmcore lab compare`` of artifacts: what was measured before is judged again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import attrs
import pytest

from lab_report_cases import artifact, sample, two, written
from vlmcore.lab.artifacts import Artifact


@pytest.fixture
def run(command: Any) -> Any:
    """Run ``vlmcore lab compare``; give its exit code, output and complaints."""

    def ran(*words: str) -> tuple[int, str, str]:
        done = command("lab", "compare", *words)
        return done.code, done.out, done.err

    return ran


def single(name: str, ms: float, **fields: Any) -> Artifact:
    """Make a run of one target, over ten blocks."""
    samples = [
        sample(case, name, block, ms, **fields) for block in range(10) for case in ("dog", "cat")
    ]
    return artifact(samples, name)


def test_a_run_of_two_targets_is_judged_again_without_asking_anything(
    run: Any, tmp_path: Path
) -> None:
    """
    The first target is the baseline, and other rules may give another verdict.
    """
    path = str(written(tmp_path, two(0.9)))

    code, out, complaints = run(path)

    assert (0, "") == (code, complaints)
    assert "win: new against old" in out
    assert "inconclusive: new against old" in run(path, "--margin", "0.2")[1]
    code, out, _ = run(path, "--baseline", "new", "--candidate", "old")
    assert 3 == code
    assert "regression: old against new" in out


def test_two_runs_are_no_race(run: Any, tmp_path: Path) -> None:
    """
    They were not measured in turn: half the time on another day proves nothing.
    """
    old, new = (str(written(tmp_path, single(*each))) for each in (("a", 100.0), ("b", 50.0)))

    code, out, _ = run(old, new)

    assert 0 == code
    assert "inconclusive: baseline (b) against baseline (a)" in out
    assert "measured in two runs, not in turn: no speed counts" in out
    said = json.loads(run(old, new, "--json")[1])
    assert [old, new] == [each["artifact"] for each in said["artifacts"]]
    assert ("a", "b", "inconclusive") == (said["baseline"], said["candidate"], said["verdict"])
    assert [None] * 3 == [each["ratio"]["estimate"] for each in said["speeds"]]


def test_answers_of_two_runs_are_held_against_each_other(run: Any, tmp_path: Path) -> None:
    """
    Which needs no race: what must be the same and is not is invalid output.
    """
    old, new = single("a", 100.0), single("a", 50.0, text="cat")
    paths = [str(written(tmp_path, each)) for each in (old, new)]

    code, out, _ = run(*paths, "--exact", "dog")

    assert 3 == code
    assert "case 'dog': one answer before, and another one after" in out


def test_an_artifact_that_was_edited_is_not_compared(run: Any, tmp_path: Path) -> None:
    """
    The place of the edit is told.
    """
    path = written(tmp_path, two(0.5))
    path.write_bytes(path.read_bytes().replace(b'"text":"dog"', b'"text":"cat"', 1))

    code, out, complaints = run(str(path))

    assert (1, "") == (code, out)
    assert "$.samples[0]" in complaints


def test_runs_of_other_suites_are_not_compared(run: Any, tmp_path: Path) -> None:
    """
    Unless it is said that this is meant.
    """
    old = single("a", 100.0)
    suite = {"name": "shore", "cases": old.start.suite["cases"]}
    new = attrs.evolve(old, start=attrs.evolve(old.start, suite=suite))
    paths = [str(written(tmp_path, each)) for each in (old, new)]

    code, _, complaints = run(*paths)

    assert 1 == code
    assert "suite" in complaints
    assert 0 == run(*paths, "--allow", "suite")[0]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--candidate", "nobody"], "--candidate: got 'nobody', expected one of old, new"),
        (["--baseline", "nobody"], "--baseline: got 'nobody', expected one of old, new"),
    ],
)
def test_a_target_that_a_run_has_not_is_named(
    run: Any, tmp_path: Path, words: list[str], told: str
) -> None:
    """
    With those that it has.
    """
    code, _, complaints = run(str(written(tmp_path, two(0.5))), *words)

    assert 2 == code
    assert told in complaints


def test_of_two_runs_with_several_targets_the_one_that_is_meant_is_named(
    run: Any, tmp_path: Path
) -> None:
    """
    There is no first among several.
    """
    both, one = written(tmp_path, two(0.5)), written(tmp_path, single("a", 100.0))

    code, _, complaints = run(str(both), str(one))

    assert 2 == code
    assert "--baseline: got none, expected one of old, new" in complaints
    assert 0 == run(str(both), str(one), "--baseline", "new")[0]
