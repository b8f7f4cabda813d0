"""Tests of `vlmcore.jobs.journal`."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sqlite3
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vlmcore.errors import JobJournalError
from vlmcore.jobs.items import BytesContent, Item, Stamp
from vlmcore.jobs.journal import Answer, Journal, Outcome

ANSWER = Answer(mark="mark", text="A dog.", value={"legs": 4}, stop="end")


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    with Journal(tmp_path / "journal") as journal:
        journal.begin({})
        journal.register([(0, "a"), (1, "b")])
        yield journal


def test_an_image_that_was_told_of_is_waiting(journal: Journal) -> None:
    """
    Of one that was not, nothing is known.
    """
    known = journal.known("b")
    assert known is not None
    assert (1, Outcome.WAITING, None, None) == (
        known.position,
        known.outcome,
        known.stamp,
        known.digest,
    )
    assert journal.known("c") is None
    assert 2 == journal.count()


def test_what_was_seen_and_said_is_found_again(journal: Journal) -> None:
    """
    An answer by its image, the bytes, the question and the model, all of which it depends on.
    """
    journal.note_seen("a", stamp=Stamp(5, 7), digest=b"d", size_px=(3, 2), likeness=b"looks")
    journal.note_answer("a", b"d", "model", ANSWER)
    journal.note_outcome("a", Outcome.CAPTIONED)
    known = journal.known("a")
    assert known is not None
    assert (Stamp(5, 7), b"d", True, False, b"looks") == (
        known.stamp,
        known.digest,
        known.is_readable,
        known.has_pixels,
        known.likeness,
    )
    assert {"mark": ANSWER} == journal.answers("a", b"d", "model", ["mark", "other"])
    assert {} == journal.answers("a", b"d", "model", ["other"])
    assert {} == journal.answers("a", b"other", "model", ["mark"])
    assert {} == journal.answers("a", b"d", "other", ["mark"])
    assert {} == journal.answers("b", b"d", "model", ["mark"])


def test_what_an_image_looks_like_is_forgotten_with_its_bytes(journal: Journal) -> None:
    """
    Where the bytes are the same, what is not told again stays.
    """
    journal.note_seen("a", stamp=None, digest=b"1", size_px=(3, 2), pixels=b"p", likeness=b"l")
    journal.note_seen("a", stamp=None, digest=b"1")
    known = journal.known("a")
    assert known is not None
    assert (True, True, b"l") == (known.is_readable, known.has_pixels, known.likeness)
    journal.note_seen("a", stamp=None, digest=b"2")
    known = journal.known("a")
    assert known is not None
    assert (False, False, None) == (known.is_readable, known.has_pixels, known.likeness)


def test_of_two_images_with_one_key_the_first_is_meant(journal: Journal) -> None:
    """
    Its place is the first one; there is one image.
    """
    journal.register([(7, "a")])
    known = journal.known("a")
    assert known is not None
    assert (0, 2) == (known.position, journal.count())


def test_images_of_an_earlier_run_are_none_of_this_one(journal: Journal) -> None:
    """
    Until they are told of again; then all is known that was.
    """
    journal.note_outcome("a", Outcome.FAILED, problem="why")
    journal.begin({})
    assert (None, 0) == (journal.known("a"), journal.count())
    journal.register([(3, "a")])
    known = journal.known("a")
    assert known is not None
    assert (3, Outcome.FAILED, "why") == (known.position, known.outcome, known.problem)


def test_images_between_two_places_are_found(journal: Journal) -> None:
    """
    In their order.
    """
    journal.register([(5, "e"), (4, "d")])
    assert ["b", "d"] == journal.keys_between(1, 5)
    assert ["d", "e"] == journal.keys_between(2, None)


def test_images_with_the_same_pixels_are_found(journal: Journal) -> None:
    """
    Others, and those of this run.
    """
    for key in ("a", "b"):
        journal.note_seen(key, stamp=None, digest=key.encode(), pixels=b"p")
    assert [("b", b"b")] == journal.with_pixels(b"p", "a")
    journal.begin({})
    assert [] == journal.with_pixels(b"p", "a")


def test_what_was_not_committed_is_forgotten(tmp_path: Path) -> None:
    """
    All of it, or nothing.
    """
    with Journal(tmp_path / "journal") as journal:
        journal.begin({})
        journal.register([(0, "kept")])
        journal.commit()
        journal.note_outcome("kept", Outcome.CAPTIONED)
        journal.register([(1, "lost")])
    with Journal(tmp_path / "journal") as journal:
        journal.run = 1
        known = journal.known("kept")
        assert known is not None
        assert (Outcome.WAITING, 1) == (known.outcome, journal.count())


def test_telling_what_is_known_writes_nothing(journal: Journal) -> None:
    """
    A rerun over many images that are done leaves their pages alone.
    """
    journal.note_outcome("a", Outcome.CAPTIONED)
    changes = journal.database.total_changes
    journal.note_outcome("a", Outcome.CAPTIONED)
    assert changes == journal.database.total_changes
    journal.note_outcome("a", Outcome.FAILED, problem="why")
    journal.note_outcome("a", Outcome.FAILED, problem="other")
    assert changes + 2 == journal.database.total_changes


ANY_TEXT = st.text(st.characters(exclude_categories=()), max_size=12)


@given(keys=st.lists(ANY_TEXT, max_size=8), text=ANY_TEXT, value=st.none() | ANY_TEXT)
def test_any_text_is_kept(
    keys: list[str], text: str, value: str | None, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """
    As a key and as an answer: control characters, NUL, and what is half a character, too.
    """
    items = [Item(key=key, content=BytesContent("", b"")) for key in keys]
    with Journal(tmp_path_factory.mktemp("any") / "journal") as journal:
        journal.begin({"text": text})
        journal.register((n, item.key) for n, item in enumerate(items))
        said = Answer(mark="m", text=text, value=value, problem=text)
        for item in items:
            journal.note_outcome(item.key, Outcome.FAILED, problem=text)
            journal.note_answer(item.key, b"", "model", said)
            known = journal.known(item.key)
            assert known is not None
            assert known.position == [each.key for each in items].index(item.key)
            (found,) = journal.answers(item.key, b"", "model", ["m"]).values()
            assert value == found.value
            if text.isprintable():
                assert (text, text, text) == (known.problem, found.text, found.problem)
        assert len({item.key for item in items}) == journal.count()


def test_half_a_character_is_written_out() -> None:
    """
    Names of files that are no UTF-8 have such, and no table can hold them.
    """
    item = Item(key="a\udcff\ud83d", content=BytesContent("", b""))
    assert r"a\udcff\ud83d" == item.key


def test_a_reader_is_refused_where_no_job_has_run(tmp_path: Path) -> None:
    """
    And makes no file.
    """
    with pytest.raises(JobJournalError, match="there is no journal: no job has run here"):
        Journal(tmp_path / "journal", read_only=True)
    assert [] == list(tmp_path.iterdir())


def test_a_reader_reads_while_a_job_writes(journal: Journal, tmp_path: Path) -> None:
    """
    It sees what was committed, and cannot write.
    """
    journal.commit()
    journal.note_outcome("a", Outcome.CAPTIONED)
    with Journal(tmp_path / "journal", read_only=True) as reader:
        reader.run = 1
        known = reader.known("a")
        assert known is not None
        assert Outcome.WAITING is known.outcome
        with pytest.raises(JobJournalError, match=r"cannot be written: .*readonly"):
            reader.begin({})


def _write_and_die(path: Path) -> None:
    journal = Journal(path)
    journal.database.execute("PRAGMA cache_size = 2")  # so that pages are written before the end
    journal.begin({})
    journal.register((n, f"{n:0500}") for n in range(2000))
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.skipif(sys.platform == "win32", reason="needs SIGKILL")
def test_a_reader_reads_what_a_writer_left_that_was_killed(tmp_path: Path) -> None:
    """
    Half of a commit is in the file then, which whoever opens it next has to undo: to look how far
    a job is that was killed failed with "attempt to write a readonly database".
    """
    path = tmp_path / "journal"
    with Journal(path) as journal:
        journal.begin({})
        journal.register([(0, "a")])
        journal.commit()
    child = multiprocessing.get_context("spawn").Process(target=_write_and_die, args=(path,))
    child.start()
    child.join(60)
    assert (-signal.SIGKILL, True) == (child.exitcode, path.with_name("journal-journal").exists())
    with Journal(path, read_only=True) as reader:
        reader.run = 1
        assert (1, None) == (reader.count(), reader.known(f"{0:0500}"))


def _fill(path: Path) -> None:
    with Journal(path) as journal:
        journal.begin({})
        journal.register((n, f"{n:0100}") for n in range(500))
        journal.commit()


@pytest.mark.parametrize(
    ("damage", "problem"),
    [
        (lambda _data: b"no database at all" * 100, "is damaged (file is not a database)"),
        (lambda data: data[: len(data) // 2], "is damaged (database disk image is malformed)"),
        (
            lambda data: data[:60] + (9).to_bytes(4, "big") + data[64:],
            "got version 9, expected a journal of version 1",
        ),
        (
            lambda data: data[:68] + bytes(4) + data[72:],
            "got a file of another kind, expected a journal of version 1",
        ),
    ],
)
def test_what_is_no_journal_is_refused(damage, problem: str, tmp_path: Path) -> None:
    """
    Damaged, of a later version, or another program's: it is named, and left as it is.
    """
    path = tmp_path / "journal"
    _fill(path)
    path.write_bytes(damage(path.read_bytes()))
    before = path.read_bytes()
    with pytest.raises(JobJournalError) as caught:
        _fill(path)
    assert str(path) == caught.value.where
    assert caught.value.problem.startswith(problem)
    assert before == path.read_bytes()


def test_a_folder_in_its_place_is_told_of(tmp_path: Path) -> None:
    """
    As what cannot be opened.
    """
    with pytest.raises(JobJournalError, match="cannot be written: unable to open"):
        Journal(tmp_path)


def test_a_full_disk_is_told_of_and_what_was_committed_stays(journal: Journal) -> None:
    """
    SQLite forgets all of what it could not write.
    """
    journal.commit()
    (pages,) = journal.database.execute("PRAGMA page_count").fetchone()
    journal.database.execute(f"PRAGMA max_page_count = {pages}")
    with pytest.raises(JobJournalError, match="the disk is full: the journal keeps what it had"):
        journal.register((n, f"{n:0500}") for n in range(2, 500))
    assert 2 == journal.count()


def test_a_journal_that_is_held_is_told_of(
    journal: Journal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    By a process that has gone on writing for longer than anybody waits.
    """
    journal.note_outcome("a", Outcome.CAPTIONED)
    monkeypatch.setattr("vlmcore.jobs.journal._WAIT_S", 0.01)
    with Journal(tmp_path / "journal") as other, pytest.raises(JobJournalError) as caught:
        other.begin({})
    assert "another process holds the journal, and does not let go of it" == caught.value.problem


def test_names_that_mean_something_in_an_address_are_names(tmp_path: Path) -> None:
    """
    The file is told to SQLite as a URI.
    """
    path = tmp_path / "a?mode=ro#%20 \N{SNOWMAN}"
    with Journal(path) as journal:
        journal.begin({})
    assert [path] == list(tmp_path.iterdir())
    assert sqlite3.connect(path).execute("PRAGMA application_id").fetchone() != (0,)
