"""Captioning jobs that are killed, interrupted, or have no disk to write to."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path
from unittest import mock

import pytest

from caption_cases import Recorder, caption, captions, draw_many, opened_journal, plan_of
from caption_faults import killed_again_and_again
from vlmcore.cli._interrupts import stopped_by_interrupt
from vlmcore.errors import JobJournalError, JobSinkError
from vlmcore.jobs import Result, Sidecars, Table, TableKind, caption_images
from vlmcore.jobs.captioning import journal_of
from vlmcore.jobs.exporting import status_of
from vlmcore.jobs.journal import Journal, Outcome
from vlmcore.testing import EchoPredictor, echo
from vlmcore.vlm.prompt import Prompt

unix = pytest.mark.skipif(sys.platform == "win32", reason="kills and interrupts by signals")


@unix
@pytest.mark.parametrize("seed", [1, 2])
def test_a_job_that_is_killed_again_and_again_loses_and_doubles_nothing(
    seed: int, tmp_path: Path
) -> None:
    """
    A kill at any moment loses nothing and repeats at most the batch in flight: every image has
    exactly one right caption at the end, and no half file is anywhere.
    """
    outcome = killed_again_and_again(tmp_path, images=120, kills=4, seed=seed)
    assert () == outcome.faults
    assert 1 <= outcome.kills


# ---- Ctrl-C --------------------------------------------------------------------------------------


def _interruptible(folder: Path, pipe: Connection) -> None:
    def answer(prompt: Prompt) -> str:
        pipe.send("asked")
        pipe.recv()
        return echo(prompt)

    # A runner in the background is told to ignore Ctrl-C, and so would this process be.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with stopped_by_interrupt(lambda: pipe.send("stopping")) as stop:
        try:
            report = caption_images(
                plan_of(folder, batch_size=1), EchoPredictor(answer=answer), stop=stop
            )
        except KeyboardInterrupt:
            pipe.send("interrupted")
        else:
            pipe.send(("stopped", report.was_stopped))


def heard(pipe: Connection) -> object:
    """Take what the other process says, which it has a minute for."""
    assert pipe.poll(60), "nothing was said for a minute"
    return pipe.recv()


@contextmanager
def interruptible(folder: Path) -> Iterator[tuple[int, Connection]]:
    """Run a job in a process that has been asked about an image, and waits."""
    ours, theirs = multiprocessing.Pipe()
    context = multiprocessing.get_context("forkserver")
    child = context.Process(target=_interruptible, args=(folder, theirs))
    child.start()
    theirs.close()  # so that a child that dies is heard
    try:
        assert "asked" == heard(ours)
        assert child.pid is not None
        yield child.pid, ours
        child.join(60)
        assert 0 == child.exitcode
    finally:
        child.kill()
        child.join()


@unix
def test_ctrl_c_ends_a_job_after_the_batch_in_flight(tmp_path: Path) -> None:
    """
    What was being answered is written, and nothing else is asked.
    """
    draw_many(tmp_path, 5)
    with interruptible(tmp_path) as (process, pipe):
        os.kill(process, signal.SIGINT)
        assert "stopping" == heard(pipe)
        pipe.send("go on")
        assert ("stopped", True) == heard(pipe)
    assert ["00000"] == list(captions(tmp_path))
    assert {4, 1} == {each for each in caption(tmp_path).counts.values() if each}


@unix
def test_a_second_ctrl_c_ends_a_job_at_once(tmp_path: Path) -> None:
    """
    The journal is whole, and the next run goes on.
    """
    draw_many(tmp_path, 5)
    with interruptible(tmp_path) as (process, pipe):
        os.kill(process, signal.SIGINT)
        assert "stopping" == heard(pipe)
        os.kill(process, signal.SIGINT)
        pipe.send("go on")  # a thread that is asking cannot be ended from outside
        said = heard(pipe)
        if said == "asked":  # the thread was sooner than the signal
            pipe.send("go on")
            said = heard(pipe)
        assert "interrupted" == said
    report = caption(tmp_path)
    assert (5, 0) == (report.total, report.failed)
    assert 5 == len(captions(tmp_path))


# ---- disks ---------------------------------------------------------------------------------------


@contextmanager
def small_disk(place: Path, size: str) -> Iterator[None]:
    """Mount a file system of a size, where that is allowed."""
    place.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(place)]
    try:
        subprocess.run(command, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("no file system may be mounted here")
    try:
        yield
    finally:
        subprocess.run(["umount", str(place)], check=True)


def fill(path: Path) -> None:
    """Write a file until there is no room for more."""
    with path.open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while file.write(bytes(1 << 10)):
            pass


@unix
def test_a_disk_that_is_full_ends_a_job_and_keeps_what_was_done(tmp_path: Path) -> None:
    """
    It says so; with room again the next run goes on, and every caption is right.
    """
    draw_many(tmp_path / "in", 60)
    out = tmp_path / "out"
    with small_disk(out, "600k"):
        filler = out / "filler"
        fields = {"sidecars": Sidecars(folder=out / "captions"), "batch_size": 4}

        def answer(prompt: Prompt) -> str:
            if not filler.exists():
                fill(filler)
            return echo(prompt)

        with pytest.raises((JobSinkError, JobJournalError), match=r"disk is full|No space left"):
            caption(tmp_path / "in", Recorder(answer), **fields)
        filler.unlink()
        report = caption(tmp_path / "in", **fields)
        assert (60, 0) == (report.total, report.failed)
        expected = Path(tmp_path / "other")
        caption(tmp_path / "in", sidecars=Sidecars(folder=expected))
        assert captions(expected) == captions(out / "captions")
        assert [] == list(out.rglob(".*.part"))


@pytest.mark.parametrize("written", [0, 1, 5])
def test_a_sink_that_is_full_ends_a_job_and_keeps_what_was_done(
    written: int, tmp_path: Path
) -> None:
    """
    After any number of files: none is half, and no answer is asked for again but of the batch that
    was in flight.
    """
    draw_many(tmp_path, 9)
    left = [None] * written + [OSError(28, "No space left on device")] * 99
    model = Recorder()
    with (
        mock.patch("vlmcore._whole_files.os.fsync", side_effect=left),
        pytest.raises(JobSinkError, match="No space left on device"),
    ):
        caption(tmp_path, model, batch_size=3)
    assert written == len(captions(tmp_path))
    report = caption(tmp_path, model, batch_size=3)
    assert (9, 0, 9) == (report.total, report.failed, len(captions(tmp_path)))
    assert 9 + 3 >= len(model.asked)


def test_a_journal_that_is_full_ends_a_job_and_no_file_is_written_that_it_knows_not_of(
    tmp_path: Path,
) -> None:
    """
    SQLite forgets what it could not write: a caption file of it would be taken for somebody else's.
    """
    draw_many(tmp_path, 40)
    caption(tmp_path)
    before = captions(tmp_path)
    connect = "vlmcore.jobs.journal.Journal._check"

    def check(journal: Journal, **_: object) -> None:
        (pages,) = journal.database.execute("PRAGMA page_count").fetchone()
        journal.database.execute(f"PRAGMA max_page_count = {pages}")

    with (
        mock.patch(connect, check),
        pytest.raises(JobJournalError, match="the disk is full: the journal keeps what it had"),
    ):
        caption(tmp_path, Recorder(lambda prompt: f"{echo(prompt)} {'x' * 5000}"), prompts="Who?")
    report = caption(tmp_path)
    assert {Result.DONE: 40} == {each: n for each, n in report.counts.items() if n}
    assert before == captions(tmp_path)


@contextmanager
def nobody() -> Iterator[Path]:
    """Be a user who may not do everything, in a folder of its own."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        is_root = os.geteuid() == 0
        if is_root:
            Path(folder).chmod(0o777)
            os.seteuid(65534)
        try:
            yield Path(folder)
        finally:
            if is_root:
                os.seteuid(0)
            for path in Path(folder).rglob("*"):
                if path.is_dir():
                    path.chmod(0o755)


@unix
def test_a_folder_that_may_not_be_written_to_is_told_of_before_anything_is_asked() -> None:
    """
    And that captions can go elsewhere; there they go.
    """
    with nobody() as place:
        images = place / "in"
        draw_many(images, 2)
        images.chmod(0o555)
        model = Recorder()
        with pytest.raises(JobSinkError) as caught:
            caption(images, model)
        problem = "cannot be written to (permission denied): captions can go elsewhere"
        assert (str(images), problem, []) == (caught.value.where, caught.value.problem, model.asked)
        assert 0 == caption(images, sidecars=Sidecars(folder=place / "out")).failed
        images.chmod(0o755)


@unix
def test_a_sub_folder_that_may_not_be_written_to_costs_its_own_images_only() -> None:
    """
    The answers are kept, and are written once it may be.
    """
    with nobody() as place:
        draw_many(place, 2)
        draw_many(place / "closed", 2)
        (place / "closed").chmod(0o555)
        report = caption(place)
        assert (2, 2) == (report.failed, report.counts[Result.CAPTIONED])
        assert {"permission denied"} == {each.problem for each in report.failures}
        (place / "closed").chmod(0o755)
        model = Recorder()
        assert (0, []) == (caption(place, model).failed, model.asked)
        assert 4 == len(captions(place))


@unix
def test_a_journal_that_may_not_be_written_to_is_told_of() -> None:
    """
    Another user made it; who may read it can look how far the job is.
    """
    with nobody() as place:
        draw_many(place, 2)
        caption(place)
        journal_of(place).chmod(0o444)
        with pytest.raises(JobJournalError, match="cannot be written: attempt to write a readonly"):
            caption(place)
        with opened_journal(place) as journal:
            assert 2 == status_of(journal, most_failures=1).counts[Outcome.CAPTIONED]


def test_images_that_are_corrupt_are_told_of_and_the_others_go_on(tmp_path: Path) -> None:
    """
    One in twenty: cut, empty, of zeros, or not an image at all.
    """
    paths = draw_many(tmp_path, 100)
    damages = (b"", bytes(70), b"GIF89a", b"<html>not found</html>", paths[0].read_bytes()[:40])
    for path, data in zip(paths[::20], damages, strict=True):
        path.write_bytes(data)
    table = tmp_path / "all.jsonl"
    report = caption(
        tmp_path, sidecars=Sidecars(), tables=[Table(path=table, kind=TableKind.JSONL)]
    )
    assert (95, 5) == (report.counts[Result.CAPTIONED], report.failed)
    assert all(each.problem for each in report.failures)
    assert (95, 100) == (len(captions(tmp_path)), len(table.read_text().splitlines()))
