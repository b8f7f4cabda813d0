"""Tests of `vlmcore.lab.journal` and `vlmcore.lab.recovery`."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from artifact_cases import artifact, plan, scored, start
from vlmcore.errors import ArtifactError, ContractError, LimitExceededError
from vlmcore.lab.artifact_documents import artifact_document
from vlmcore.lab.artifact_files import artifact_name
from vlmcore.lab.artifacts import Ending
from vlmcore.lab.events import Failure, FailureKind, Phase
from vlmcore.lab.journal import Journal
from vlmcore.lab.recovery import artifact_of_journal, finish_journal
from vlmcore.lab.sealing import seal
from vlmcore.lab.verifying import read_artifact
from vlmcore.limits import ArtifactLimits
from vlmcore.secrets import Secret

TESTS = Path(__file__).parents[2]


def test_a_run_that_ends_leaves_its_artifact_and_no_journal(tmp_path: Path) -> None:
    """
    What is in the artifact is what was appended, warm-ups apart.
    """
    run = artifact()
    with Journal(tmp_path, run.start, planned=3) as journal:
        for each in (*run.warm_ups, *run.samples):
            journal.append(each)
        path = journal.finish(wall_ns=run.wall_ns)
    assert run == read_artifact(path)
    assert [path] == list(tmp_path.iterdir())


def test_every_request_is_in_the_file_when_append_returns(tmp_path: Path) -> None:
    """
    One line each, which any reader of JSON lines takes.
    """
    with Journal(tmp_path, start(), planned=2) as journal:
        for count in (1, 2):
            journal.append(scored(count))
            lines = journal.path.read_bytes().splitlines()
            assert count + 1 == len(lines)
            assert "a dog." == json.loads(lines[-1])["sample"]["text"]
        assert (scored(1), scored(2)) == journal.samples


KILLED = """
import os, signal, sys
sys.path[:0] = [sys.argv[2]]
from artifact_cases import scored, start
from vlmcore.lab.journal import Journal
journal = Journal(sys.argv[1], start(), planned=30)
journal.append(scored(0))
journal.append(scored(1))
print(journal.path, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_killed_run_keeps_what_it_paid_for(tmp_path: Path) -> None:
    """
    SIGKILL in another process: both samples are there, and how it ended is said.
    """
    ended = subprocess.run(
        [sys.executable, "-c", KILLED, str(tmp_path), str(TESTS)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert -signal.SIGKILL == ended.returncode, ended.stderr
    path = finish_journal(ended.stdout.strip())
    run = read_artifact(path)
    assert (scored(0), scored(1)) == run.samples
    assert (Ending.KILLED, 30, None) == (run.ended, run.planned, run.wall_ns)
    assert "without a word" in run.reason
    assert [path] == list(tmp_path.iterdir())


def test_one_503_of_7_requests_costs_one_sample_and_not_the_file(tmp_path: Path) -> None:
    """
    A request that failed is a sample; what the run does about it is its own affair.
    """
    failure = Failure(kind=FailureKind.SERVER_ERROR, message="503")
    failed = scored(3, score=None, failure=failure, chunks=[], text="", finish_reason=None)
    with Journal(tmp_path, start(), planned=7) as journal:
        for i in range(7):
            journal.append(failed if i == 3 else scored(i))
        run = read_artifact(journal.finish())
    assert (7, 1) == (len(run.samples), run.failures)
    assert failure == run.samples[3].sample.failure


@pytest.mark.parametrize("label", ["a/b", "../x", "", ".hidden", "a b", "a\n", "ü", "x" * 81, 7])
def test_a_label_that_is_no_file_name_fails_before_anything_is_paid_for(label: object) -> None:
    """
    It cannot even be typed.
    """
    with pytest.raises(ContractError, match="label: got "):
        start(label=label)


def test_a_folder_that_is_not_there_fails_when_the_journal_is_opened(tmp_path: Path) -> None:
    """
    Not after the last request.
    """
    with pytest.raises(ArtifactError, match="cannot be written: does not exist"):
        Journal(tmp_path / "none", start(), planned=1)


def test_what_cannot_be_kept_fails_when_the_journal_is_opened(tmp_path: Path) -> None:
    """
    And no file is left.
    """
    with pytest.raises(ArtifactError, match="cannot be kept"):
        Journal(tmp_path, start(plan=plan(goals={"x": 1e20})), planned=1)
    assert [] == list(tmp_path.iterdir())


def test_two_runs_with_one_label_in_one_second_are_two_artifacts(tmp_path: Path) -> None:
    """
    The content names them; nothing is overwritten.
    """
    paths = []
    for number in (1, 2):
        with Journal(tmp_path, start(), planned=1) as journal:
            journal.append(scored(number))
            paths.append(journal.finish())
    assert 2 == len(set(paths)) == len(list(tmp_path.iterdir()))


def test_a_journal_whose_last_line_is_cut_gives_all_before_it(tmp_path: Path) -> None:
    """
    Wherever it was cut; a line that only lacks its end is kept.
    """
    with Journal(tmp_path, start(), planned=3) as journal:
        for i in range(3):
            journal.append(scored(i))
    data = journal.path.read_bytes()
    last = data.rstrip(b"\n").rindex(b"\n") + 1
    for cut in (last + 1, last + 200, len(data) - 2):
        journal.path.write_bytes(data[:cut])
        run = artifact_of_journal(journal.path)
        assert 2 == len(run.samples)
        assert "was cut" in run.reason
    journal.path.write_bytes(data[:-1])
    assert 3 == len(artifact_of_journal(journal.path).samples)
    journal.path.write_bytes(data[:last])
    assert "was cut" not in artifact_of_journal(journal.path).reason


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda lines: lines[:0], "line 1: .*is empty"),
        (lambda lines: [lines[0][:-9]], "line 1: .*is cut in its first line"),
        (lambda lines: [b"{}\n", *lines[1:]], r"line 1: benchmark-journal: 10 faults"),
        (lambda lines: [lines[1], *lines[1:]], r"line 1: benchmark-journal: \$.schema"),
        (lambda lines: [lines[0], b"{\n", *lines[1:]], "line 2: JSON: "),
        (lambda lines: [*lines[:2], lines[0], *lines[2:]], "line 3: .*schema"),
        (lambda lines: [*lines[:1], b"\n", *lines[1:]], "line 2: JSON"),
        (lambda lines: [lines[0], lines[1].replace(b'"dog"', b'"cat"')], "line .*: sample: got"),
        (
            lambda lines: [lines[0], lines[1].replace(b"a dog.", b"a cat.")],
            r"line 2: .*text_sha256",
        ),
        (
            lambda lines: [*lines[:2], lines[2].replace(b'"steady"', b'"cold-start"')],
            "samples: got .*expected all steady",
        ),
    ],
)
def test_a_journal_that_was_changed_before_its_end_is_refused(
    tmp_path: Path, change: object, problem: str
) -> None:
    """
    With the number of the line; the file is left as it is.
    """
    with Journal(tmp_path, start(), planned=2) as journal:
        journal.append(scored(0))
        journal.append(scored(1))
    lines = journal.path.read_bytes().splitlines(keepends=True)
    changed = b"".join(change(lines))  # type: ignore[operator]
    journal.path.write_bytes(changed)
    with pytest.raises(ArtifactError, match=problem):
        finish_journal(journal.path)
    assert changed == journal.path.read_bytes()


@given(st.binary(max_size=300))
def test_any_bytes_are_a_journal_or_our_error(
    tmp_path_factory: pytest.TempPathFactory, data: bytes
) -> None:
    """
    What is no journal is refused, whatever it is.
    """
    path = tmp_path_factory.mktemp("j") / "x.journal"
    path.write_bytes(data)
    with pytest.raises(ArtifactError, match="line "):
        artifact_of_journal(path)


def test_a_run_that_goes_on_is_not_finished_by_another(tmp_path: Path) -> None:
    """
    The journal belongs to the process that writes it, until that ends.
    """
    with Journal(tmp_path, start(), planned=2) as journal:
        journal.append(scored(0))
        with pytest.raises(ArtifactError, match="is still being written"):
            finish_journal(journal.path)
        journal.append(scored(1))
        assert 2 == len(read_artifact(journal.finish()).samples)


def test_a_run_that_was_killed_after_its_last_line_gives_the_same_artifact(tmp_path: Path) -> None:
    """
    Between the last line of the journal and the artifact nothing is lost.
    """
    with Journal(tmp_path, start(), planned=1) as journal:
        journal.append(scored(0))
        before = journal.path
        os.link(before, tmp_path / "kept.journal")
        path = journal.finish(Ending.STOPPED, reason="3 requests failed", wall_ns=5)
    data = path.read_bytes()
    assert path == finish_journal(tmp_path / "kept.journal")
    assert data == path.read_bytes()


def test_finishing_twice_is_an_error_and_changes_nothing(tmp_path: Path) -> None:
    """
    A journal that is closed says so.
    """
    with Journal(tmp_path, start(), planned=1) as journal:
        journal.append(scored(0))
        path = journal.finish()
        for call in (journal.finish, lambda: journal.append(scored(1))):
            with pytest.raises(ArtifactError, match="is closed"):
                call()
    assert 1 == len(read_artifact(path).samples)


def test_an_artifact_that_cannot_be_written_leaves_the_journal(tmp_path: Path) -> None:
    """
    The way is cleared, and it is finished later.
    """
    with Journal(tmp_path, start(), planned=1) as journal:
        journal.append(scored(0))
        run = artifact(samples=[scored(0)], warm_ups=[], planned=1, wall_ns=None)
        taken = tmp_path / artifact_name("baseline", seal(artifact_document(run)))
        taken.write_text("something else")
        with pytest.raises(ArtifactError, match="holds something else"):
            journal.finish()
    assert "something else" == taken.read_text()
    taken.unlink()
    assert run == read_artifact(finish_journal(journal.path))


def test_a_line_that_is_too_large_is_refused_and_the_next_is_kept(tmp_path: Path) -> None:
    """
    Nothing of it is left in the file.
    """
    limits = ArtifactLimits(max_line_bytes=5000)
    with Journal(tmp_path, start(), planned=2, limits=limits) as journal:
        with pytest.raises(LimitExceededError, match="max_document_bytes"):
            journal.append(scored(0, text="x" * 6000))
        journal.append(scored(1))
        assert (scored(1),) == read_artifact(journal.finish()).samples


def test_a_disk_that_is_full_loses_one_line_and_not_the_file(tmp_path: Path) -> None:
    """
    Half a line is taken back; when there is room again the run goes on.
    """
    with Journal(tmp_path, start(), planned=2) as journal:
        journal.append(scored(0))
        file = journal._file

        class Full:
            closed = False

            def write(self, data: memoryview) -> int:
                if len(data) > 100:
                    return file.write(data[:100])
                raise OSError(28, "No space left on device")

            def __getattr__(self, name: str) -> object:
                return getattr(file, name)

        journal._file = Full()  # type: ignore[assignment]
        with pytest.raises(ArtifactError, match="No space left on device"):
            journal.append(scored(1, text="x" * 50, chunks=[]))
        journal._file = file
        journal.append(scored(2))
        assert (scored(0), scored(2)) == read_artifact(journal.finish()).samples


def test_cold_starts_are_never_mixed_with_others(tmp_path: Path) -> None:
    """
    Neither with steady samples nor with warm-ups, and that is found at once.
    """
    for first, second in (
        (Phase.STEADY, Phase.COLD_START),
        (Phase.COLD_START, Phase.STEADY),
        (Phase.WARM_UP, Phase.COLD_START),
        (Phase.COLD_START, Phase.WARM_UP),
    ):
        with Journal(tmp_path, start(), planned=2) as journal:
            journal.append(scored(0, phase=first))
            with pytest.raises(ContractError, match="expected no cold starts beside others"):
                journal.append(scored(1, phase=second))


def test_a_sample_of_another_run_is_refused(tmp_path: Path) -> None:
    """
    Of a case or a target that this one does not have.
    """
    with Journal(tmp_path, start(), planned=2) as journal:
        for other in ({"case": "cat"}, {"target": "yours"}):
            with pytest.raises(ContractError, match="expected one of the inputs"):
                journal.append(scored(0, **other))


def test_threads_share_a_journal(tmp_path: Path) -> None:
    """
    Eight clients at once: every line is whole.
    """
    with Journal(tmp_path, start(), planned=80, sync=False) as journal:
        threads = [
            threading.Thread(
                target=lambda n=n: [journal.append(scored(10 * n + i)) for i in range(10)]
            )
            for n in range(8)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        run = read_artifact(journal.finish())
    assert {*range(80)} == {each.sample.block for each in run.samples}


def test_a_token_that_a_server_repeats_is_in_no_byte_that_is_kept(tmp_path: Path) -> None:
    """
    In the answer, the reasoning, the failure, the score, the prompt; whatever its spelling.
    """
    token = Secret("sekret-0123/45")
    said = f"line one\nyou said {token.reveal()}, escaped sekret-0123\\/45"
    failure = Failure(kind=FailureKind.REFUSED, message=said.replace("\n", " "))
    begin = start(suite={"prompt": f"my key is {token.reveal()}"})
    with Journal(tmp_path, begin, planned=2, secrets=(None, token)) as journal:
        one = scored(0, text=said, reasoning=said, finish_reason=token.reveal())
        score = attrs.evolve(one.score, reason=f"no dog in {token.reveal()}")
        kept = journal.append(attrs.evolve(one, score=score))
        journal.append(scored(1, score=None, failure=failure))
        in_journal = journal.path.read_text()
        path = journal.finish(Ending.STOPPED, reason=said)
    for text in (in_journal, path.read_text()):
        assert "sekret" not in text
        assert "[REDACTED]" in text
    assert "line one\nyou said [REDACTED], escaped [REDACTED]" == kept.sample.text
    assert kept == read_artifact(path).samples[0]


def test_a_message_that_gets_longer_without_its_token_is_cut_and_kept(tmp_path: Path) -> None:
    """
    What stands for a token is longer than a short one.
    """
    failure = Failure(kind=FailureKind.REFUSED, message="k7! " * 250)
    with Journal(tmp_path, start(), planned=1, secrets=(Secret("k7!"),)) as journal:
        kept = journal.append(scored(0, score=None, failure=failure))
    assert kept.sample.failure is not None
    assert 1000 == len(kept.sample.failure.message)
    assert "k7!" not in kept.sample.failure.message


def test_what_only_looks_like_a_token_stays_in_an_answer(tmp_path: Path) -> None:
    """
    The evidence is what the model wrote: "password: red" may be what is in the picture.
    """
    text = "The sign says password: red\u2028and token=7"
    with Journal(tmp_path, start(), planned=1, secrets=(Secret("sekret"),)) as journal:
        journal.append(scored(0, text=text))
        assert text == read_artifact(journal.finish()).samples[0].sample.text
