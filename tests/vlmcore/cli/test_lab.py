"""``vlmcore lab``: runs, comparisons, artifacts that were edited, and runs that were killed."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from lab_cases import COLOURS, suite_file
from model_server_cases import answers, model, refuses, serving
from vlmcore.lab.artifacts import Ending
from vlmcore.lab.verifying import read_artifact
from vlmcore.testing import EchoPredictor


@pytest.fixture
def suite(tmp_path: Path) -> str:
    """A suite whose answers an echo may have or not."""
    return str(suite_file(tmp_path, *COLOURS, evaluator="keywords", expected=["Which"]))


@pytest.fixture
def run(command: Any) -> Any:
    """Run the command; give its exit code, output and complaints."""

    def ran(*words: str, **given: Any) -> tuple[int, str, str]:
        done = command(*words, **given)
        return done.code, done.out, done.err

    return ran


def artifacts(folder: Path) -> list[Path]:
    return sorted(set(folder.glob("*.json")) - {folder / "colours.json"})


def test_a_run_writes_an_artifact_that_verifies(run: Any, suite: str, tmp_path: Path) -> None:
    """
    With a line for each case.
    """
    code, out, complaints = run("lab", "run", suite, "-o", str(tmp_path), "--runs", "2")

    assert 0 == code, complaints
    assert "target: 6 requests, 0 failed" in out
    assert all(f"  {name}: quality 1.00, " in out for name in COLOURS)
    (path,) = artifacts(tmp_path)
    artifact = read_artifact(path)
    assert Ending.COMPLETE is artifact.ended
    assert (3, 6) == (len(artifact.warm_ups), len(artifact.samples))
    code, out, _ = run("lab", "verify", str(path))
    assert 0 == code
    assert out.startswith(f"{path}: as it was written, sha256 ")


def test_an_edited_artifact_is_found_with_the_place(run: Any, suite: str, tmp_path: Path) -> None:
    """
    One byte is enough, and nothing in it counts any more.
    """
    run("lab", "run", suite, "-o", str(tmp_path), "--runs", "1")
    (path,) = artifacts(tmp_path)
    edited = bytearray(path.read_bytes())
    edited[edited.index(b'"text":"') + 9] ^= 1
    path.write_bytes(edited)

    code, out, complaints = run("lab", "verify", str(path))

    assert (1, "") == (code, out)
    assert "$.samples[" in complaints


def test_a_case_below_the_quality_that_is_asked_for_is_no_success(run: Any, tmp_path: Path) -> None:
    """
    The code is that of a failed gate.
    """
    suite = str(suite_file(tmp_path, "red", "blue", expected=["nobody says this"]))
    code, _, complaints = run(
        "lab", "run", suite, "-o", str(tmp_path), "--runs", "1", "--min-quality", "0.5"
    )

    assert 3 == code
    assert "case 'red' is below --min-quality 0.5" in complaints


def test_a_comparison_of_a_target_with_itself_is_no_win(
    run: Any, suite: str, tmp_path: Path
) -> None:
    """
    With the control beside it, and as JSON for programs.
    """
    words = ("--baseline", "embedded", "--candidate", "embedded", "--json", "--runs", "6")
    code, out, complaints = run("lab", "compare", suite, "-o", str(tmp_path), *words)

    assert code in {0, 3}, complaints
    said = json.loads(out)
    assert said["verdict"] in {"inconclusive", "win", "regression"}
    assert ["ttft/1", "tpot/1", "e2e/1"] == [each["metric"] for each in said["speeds"]]
    assert all(each["control"]["blocks"] for each in said["speeds"])
    assert {"kept"} == {each["quality"] for each in said["quality"]}


def test_a_candidate_that_answers_worse_is_invalid_however_fast(
    run: Any, suite: str, tmp_path: Path
) -> None:
    """
    The code is that of a failed gate.
    """

    def load(name: str, **_: Any) -> EchoPredictor:
        if name == "embedded":
            return EchoPredictor(delay_s=0.002)
        return EchoPredictor(model=name, answer=lambda _: "something else")

    words = ("--baseline", "embedded", "--candidate", "other", "--allow", "checkpoint")
    code, out, _ = run(
        "lab", "compare", suite, "-o", str(tmp_path), "--runs", "5", *words, load=load
    )

    assert 3 == code
    assert "invalid output: candidate against baseline" in out


def test_a_target_may_be_shown_smaller_pictures(run: Any, suite: str, tmp_path: Path) -> None:
    """
    Which is another input, and compared only where that is meant.
    """
    words = ("--baseline", "embedded", "--candidate", "embedded,longest_edge_px=30", "--runs", "1")
    code, _, complaints = run("lab", "compare", suite, "-o", str(tmp_path), *words)

    assert 1 == code
    assert "pixels" in complaints
    (path,) = artifacts(tmp_path)
    sizes = {(i.target, i.media[0].width_px) for i in read_artifact(path).start.inputs}
    assert {("baseline", 60), ("candidate", 30)} == sizes
    code, out, _ = run("lab", "compare", str(path), "--allow", "pixels")
    assert 0 == code
    assert "changed on purpose: pixels" in out


def test_a_server_is_a_target_like_another(run: Any, suite: str, tmp_path: Path) -> None:
    """
    What it does not tell of itself is said to be unknown.
    """
    with serving(model) as server:
        target = f"{server.url}#m"
        code, out, complaints = run(
            "lab", "run", suite, "--target", target, "-o", str(tmp_path), "--clients", "4"
        )

    assert 0 == code, complaints
    assert "target: 15 requests, 0 failed" in out
    (path,) = artifacts(tmp_path)
    facts = read_artifact(path).start.identity.targets[0]
    assert (server.url, "m") == (facts.server.address, facts.checkpoint.model)
    assert all(given.media[0].sent_sha256 for given in read_artifact(path).start.inputs)


def test_a_request_that_fails_costs_the_others_nothing(
    run: Any, suite: str, tmp_path: Path
) -> None:
    """
    The run is written, and the code says that not all was well.
    """
    nothing = [refuses(404)] * 3  # of what it is asked about itself
    with serving(*nothing, answers("Which?"), refuses(503), answers("Which?")) as server:
        words = ("--target", f"{server.url}#m", "--warm-ups", "0", "--runs", "1")
        code, out, _ = run("lab", "run", suite, "-o", str(tmp_path), *words)

    assert 1 == code
    assert "target: 3 requests, 1 failed" in out
    (path,) = artifacts(tmp_path)
    failed = [each.sample for each in read_artifact(path).samples if each.sample.failure]
    assert ["server_error"] == [each.failure.kind.value for each in failed]


def test_a_run_that_is_killed_keeps_what_it_paid_for(suite: str, tmp_path: Path) -> None:
    """
    ``recover`` makes an artifact of its journal, which verifies.
    """
    program = (
        "import sys; from vlmcore.cli import main; from vlmcore.testing import EchoPredictor; "
        "sys.exit(main(load=lambda *_, **__: EchoPredictor(delay_s=0.02)))"
    )
    words = ["lab", "run", suite, "-o", str(tmp_path), "--runs", "99"]
    process = subprocess.Popen([sys.executable, "-c", program, *words])
    try:
        journal = lines_of_a_journal(tmp_path, at_least=6)
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait(20)
    told = subprocess.run(
        [sys.executable, "-m", "vlmcore", "lab", "recover", str(journal)],
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip

    assert 0 == told.returncode, told.stderr
    artifact = read_artifact(told.stdout.strip())
    assert Ending.KILLED is artifact.ended
    assert len(artifact.samples) + len(artifact.warm_ups) >= 5
    assert not journal.exists()


def lines_of_a_journal(folder: Path, *, at_least: int) -> Path:
    ends_s = time.monotonic() + 60
    while time.monotonic() < ends_s:
        for journal in folder.glob("*.journal"):
            if journal.read_bytes().count(b"\n") >= at_least:
                return journal
        time.sleep(0.02)
    raise AssertionError("no journal")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["nope.json"], "nope.json: does not exist"),
        (["SUITE", "--runs", "0"], "--runs: got 0"),
        (["SUITE", "--clients", "0"], "--clients: got 0"),
        (["SUITE", "--rate", "-1"], "--rate: got -1"),
        (["SUITE", "--rate", "1", "--clients", "2"], "not allowed with argument"),
        (["SUITE", "--label", "../x"], "label: got '../x'"),
        (["SUITE", "--output", "nowhere"], "--output: got 'nowhere', expected a folder"),
        (["SUITE", "--target", "embedded,colour=red"], "--target: got 'colour' of 'embedded'"),
        (["SUITE", "--target", "embedded,dtype"], "--target: got 'dtype', expected MODEL,OPTION"),
        (["SUITE", "--target", "http://u:secret@127.0.0.1:9/v1"], "URL#model"),
        (["SUITE", "--max-new-tokens", "0"], "max_new_tokens"),
        (["SUITE", "--cache", "warm-prefix", "--warm-ups", "0"], "warm_ups_per_case: got 0"),
        (["SUITE", "--min-quality", "2"], "--min-quality: got 2, expected 0 to 1"),
    ],
)
def test_what_cannot_be_done_is_told_before_anything_is_asked(
    run: Any, suite: str, words: list[str], told: str
) -> None:
    """
    Nothing is paid for a typing error, and nothing secret is repeated.
    """
    code, out, complaints = run("lab", "run", *[suite if w == "SUITE" else w for w in words])

    assert code in {1, 2}
    assert "" == out
    assert told in complaints
    assert "secret" not in complaints


def test_a_comparison_needs_two_targets(run: Any, suite: str) -> None:
    """
    Which of them is missing is said.
    """
    code, _, complaints = run("lab", "compare", suite, "--baseline", "embedded")

    assert 2 == code
    assert "--candidate" in complaints
