"""Tests of `vlmcore.jobs.sinks.sidecars`."""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from secrets import token_hex

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from vlmcore.errors import JobSinkError
from vlmcore.jobs.items import FileContent, Item
from vlmcore.jobs.journal import Journal
from vlmcore.jobs.sinks.claims import claim_files
from vlmcore.jobs.sinks.settings import ExistingCaption, Sidecars
from vlmcore.jobs.sinks.sidecars import Pending, SidecarWriter, fails_everywhere
from vlmcore.limits import JobLimits

SKIP, OVERWRITE, APPEND, PREPEND = ExistingCaption


@contextmanager
def run(folder: Path, existing: ExistingCaption = SKIP, **fields: str) -> Iterator[SidecarWriter]:
    """Begin a run over one image; what is not committed is forgotten, as after a kill."""
    path = folder / "a.jpg"
    with Journal(folder / "journal") as journal:
        journal.database.execute("PRAGMA synchronous = OFF")
        journal.begin({})
        journal.register([(0, "a.jpg")])
        sidecars = Sidecars(existing=existing, **fields)
        claim_files(journal, sidecars, [Item(key="a.jpg", content=FileContent(path), path=path)])
        writer = SidecarWriter(journal, sidecars)
        writer.recover()
        journal.commit()
        writer.commit = journal.commit  # type: ignore[attr-defined]
        yield writer


def finished(writer: SidecarWriter, pending: Pending) -> bool:
    """Write a caption that was begun, as a thread does, and tell the journal."""
    is_written = writer.write(pending)
    writer.finish(pending, is_written=is_written)
    return is_written


def write(
    folder: Path, caption: str, existing: ExistingCaption = SKIP, **fields: str
) -> bool | None:
    """Write a caption; ``None`` if nothing had to be, ``False`` if another text stays."""
    with run(folder, existing, **fields) as writer:
        if writer.stays("a.jpg"):
            return False
        if writer.is_written("a.jpg", caption):
            return None
        pending = writer.begin("a.jpg", caption)
        writer.commit()  # type: ignore[attr-defined]
        is_written = pending is not None and finished(writer, pending)
        writer.commit()  # type: ignore[attr-defined]
        return is_written


def test_a_caption_file_is_utf8_without_bom_and_ends_with_a_line_feed(tmp_path: Path) -> None:
    """
    `\\n` on every system, and one at the end.
    """
    assert write(tmp_path, "Ein Hund.\nZwei Käfer.\n\n")
    assert "Ein Hund.\nZwei Käfer.\n".encode() == (tmp_path / "a.txt").read_bytes()


@pytest.mark.parametrize(
    ("existing", "expected"),
    [
        (SKIP, "By hand.\r\n"),
        (OVERWRITE, "A dog.\n"),
        (APPEND, "By hand.\nA dog.\n"),
        (PREPEND, "A dog.\nBy hand.\n"),
    ],
)
def test_a_text_that_was_there_is_treated_as_asked(
    existing: ExistingCaption, expected: str, tmp_path: Path
) -> None:
    """
    Skip, overwrite, append or prepend; again and again, it is the same.
    """
    path = tmp_path / "a.txt"
    path.write_bytes(b"By hand.\r\n")
    for result in (existing is not SKIP, None, None):
        assert (False if existing is SKIP else result) is write(tmp_path, "A dog.", existing)
        assert expected.encode() == path.read_bytes()


@pytest.mark.parametrize("existing", [APPEND, PREPEND])
def test_a_new_caption_takes_the_place_of_the_old_one(
    existing: ExistingCaption, tmp_path: Path
) -> None:
    """
    The text of somebody else stays beside it, and no caption is there twice.
    """
    path = tmp_path / "a.txt"
    path.write_text("By hand.\n")
    write(tmp_path, "A dog.", existing, separator=" | ")
    write(tmp_path, "A cat.", existing, separator=" | ")
    parts = ["By hand.", "A cat."] if existing is APPEND else ["A cat.", "By hand."]
    assert f"{' | '.join(parts)}\n" == path.read_text()


def test_overwriting_leaves_nothing_of_what_was_appended_to(tmp_path: Path) -> None:
    """
    A run that is to overwrite does not keep the text beside the caption of the run before.
    """
    path = tmp_path / "a.txt"
    path.write_text("By hand.\n")
    write(tmp_path, "A dog.", APPEND)
    assert write(tmp_path, "A dog.", OVERWRITE)
    assert "A dog.\n" == path.read_text()


@pytest.mark.parametrize("blank", [b"", b"\n", b"\xef\xbb\xbf \r\n"])
@pytest.mark.parametrize("existing", ExistingCaption)
def test_a_blank_file_is_none(existing: ExistingCaption, blank: bytes, tmp_path: Path) -> None:
    """
    Nobody's text is in it.
    """
    path = tmp_path / "a.txt"
    path.write_bytes(blank)
    assert write(tmp_path, "A dog.", existing)
    assert "A dog.\n" == path.read_text()


def test_a_file_that_was_taken_away_is_written_again(tmp_path: Path) -> None:
    """
    Who wants it gone takes the image away, too.
    """
    write(tmp_path, "A dog.")
    (tmp_path / "a.txt").unlink()
    assert write(tmp_path, "A dog.")
    assert "A dog.\n" == (tmp_path / "a.txt").read_text()


@pytest.mark.parametrize("existing", [SKIP, APPEND, PREPEND])
@pytest.mark.parametrize("caption", ["A dog.", "A cat."])
def test_a_caption_that_was_edited_stays(
    caption: str, existing: ExistingCaption, tmp_path: Path
) -> None:
    """
    Also if the job has another one now.
    """
    write(tmp_path, "A dog.", existing)
    (tmp_path / "a.txt").write_text("A good dog.\n")
    assert not write(tmp_path, caption, existing)
    assert "A good dog.\n" == (tmp_path / "a.txt").read_text()


@pytest.mark.parametrize("existing", [SKIP, APPEND])
@pytest.mark.parametrize("before", [None, "By hand.\n"])
def test_what_is_written_while_the_job_is_about_to_write_stays(
    before: str | None, existing: ExistingCaption, tmp_path: Path
) -> None:
    """
    The file is looked at once more before it is replaced.
    """
    path = tmp_path / "a.txt"
    if before is not None:
        path.write_text(before)
    with run(tmp_path, existing) as writer:
        pending = writer.begin("a.jpg", "A dog.")
        if pending is None:
            assert (SKIP, "By hand.\n") == (existing, before)
            return
        path.write_text("Just now.\n")
        assert not finished(writer, pending)
        writer.commit()  # type: ignore[attr-defined]
    assert "Just now.\n" == path.read_text()
    write(tmp_path, "A dog.", existing)
    assert ("Just now.\n" + "A dog.\n" * (existing is APPEND)) == path.read_text()


def test_a_kill_before_a_new_caption_is_written_leaves_the_old_one_as_the_jobs(
    tmp_path: Path,
) -> None:
    """
    It was taken for somebody else's text: skipped for ever, or doubled where one appends.
    """
    for existing in (SKIP, APPEND):
        write(tmp_path, "A dog.", existing)
        with run(tmp_path, existing) as writer:
            assert writer.begin("a.jpg", "A cat.") is not None
            writer.commit()  # type: ignore[attr-defined]
        assert write(tmp_path, "A cat.", existing)
        assert "A cat.\n" == (tmp_path / "a.txt").read_text()


def test_what_a_kill_in_the_last_moment_leaves_is_taken_away(tmp_path: Path) -> None:
    """
    Between the name beside and the right one; what others keep there stays.
    """
    part, other = tmp_path / f".a.txt.{token_hex(8)}.part", tmp_path / ".b.txt.0.part"
    with run(tmp_path) as writer:
        writer.begin("a.jpg", "A dog.")
        writer.commit()  # type: ignore[attr-defined]
    part.write_text("A dog.\n")
    other.write_text("not ours")
    assert write(tmp_path, "A dog.")
    assert (False, True) == (part.exists(), other.exists())


@pytest.mark.parametrize(
    ("make", "problem"),
    [
        (Path.mkdir, "Is a directory"),
        (os.mkfifo, "is no regular file, expected a caption file"),
        (lambda path: path.symlink_to(path), "Too many levels of symbolic links"),
        (
            lambda path: path.write_bytes(b"x" * (JobLimits().max_sidecar_bytes + 1)),
            "has more than 1,048,576 bytes: it is no caption",
        ),
    ],
)
def test_what_is_no_caption_file_is_told_of(
    make: Callable[[Path], object], problem: str, tmp_path: Path
) -> None:
    """
    A folder of that name, a pipe, a link in a circle, a large file: nothing is read without end.
    """
    make(tmp_path / "a.txt")
    with pytest.raises(JobSinkError) as caught:
        write(tmp_path, "A dog.")
    assert problem in caught.value.problem
    assert not fails_everywhere(caught.value)


def test_a_text_that_is_no_utf8_is_not_added_to(tmp_path: Path) -> None:
    """
    It would become another one.
    """
    (tmp_path / "a.txt").write_bytes(b"caf\xe9")
    with pytest.raises(JobSinkError, match="is no UTF-8 text"):
        write(tmp_path, "A dog.", APPEND)
    assert b"caf\xe9" == (tmp_path / "a.txt").read_bytes()


def test_a_kill_over_a_file_that_cannot_be_read_keeps_no_run_from_beginning(
    tmp_path: Path,
) -> None:
    """
    A folder has come in its place: that is told of when its turn comes.
    """
    with run(tmp_path) as writer:
        writer.begin("a.jpg", "A dog.")
        writer.commit()  # type: ignore[attr-defined]
    (tmp_path / "a.txt").mkdir()
    with run(tmp_path) as writer, pytest.raises(JobSinkError):
        writer.begin("a.jpg", "A dog.")
    (tmp_path / "a.txt").rmdir()
    assert write(tmp_path, "A dog.")


@pytest.mark.parametrize(
    ("number", "is_so"),
    [(errno.ENOSPC, True), (errno.EROFS, True), (errno.EACCES, False), (errno.ENAMETOOLONG, False)],
)
def test_a_full_disk_is_told_from_a_file_that_cannot_be_written(
    number: int, *, is_so: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    The one ends a job; the other is a failure of one image.
    """
    with run(tmp_path) as writer:
        pending = writer.begin("a.jpg", "A dog.")
        assert pending is not None

        def fail(*_: object) -> None:
            raise OSError(number, os.strerror(number))

        monkeypatch.setattr(os, "fsync", fail)
        with pytest.raises(JobSinkError) as caught:
            finished(writer, pending)
    monkeypatch.undo()
    assert is_so is fails_everywhere(caught.value)
    assert not (tmp_path / "a.txt").exists()


class CaptionFile(RuleBasedStateMachine):
    """
    One caption file, a job that is killed now and then, and somebody who edits.

    Words of the user are ``u0``, ``u1``...; captions are ``dog`` and ``cat``.
    """

    def __init__(self) -> None:
        super().__init__()
        self.place = tempfile.TemporaryDirectory()
        self.folder = Path(self.place.name)
        self.path = self.folder / "a.txt"
        self.edits = 0
        self.last_edit: str | None = None  # that has to be there

    def teardown(self) -> None:
        self.place.cleanup()

    @property
    def text(self) -> str | None:
        return self.path.read_text() if self.path.exists() else None

    @rule(keeps=st.booleans())
    def edit(self, *, keeps: bool) -> None:
        """Write something else, or something more."""
        self.last_edit = f"u{self.edits}"
        self.edits += 1
        text = self.text if keeps else None
        self.path.write_text(f"{text or ''}\n{self.last_edit}\n")

    @rule()
    def take_away(self) -> None:
        self.path.unlink(missing_ok=True)
        self.last_edit = None

    @rule(
        caption=st.sampled_from(["dog", "cat"]),
        existing=st.sampled_from(ExistingCaption),
        killed_after=st.sampled_from(["", "", "begin", "commit", "part", "finish"]),
        edits_between=st.booleans(),
    )
    def run_job(
        self, caption: str, existing: ExistingCaption, killed_after: str, *, edits_between: bool
    ) -> None:
        before = self.text
        with run(self.folder, existing) as writer:
            assert not list(self.folder.glob(".a.txt.*"))
            if writer.stays("a.jpg"):
                assert (SKIP, True) == (existing, bool(before and before.strip()))
                return
            if writer.is_written("a.jpg", caption):
                return
            pending = writer.begin("a.jpg", caption)
            if pending is None:
                assert existing is not OVERWRITE
                return
            if killed_after == "begin":
                return
            writer.commit()  # type: ignore[attr-defined]
            if killed_after == "part":
                (self.folder / f".a.txt.{token_hex(8)}.part").write_bytes(pending.data)
            if killed_after in ("commit", "part"):
                return
            if edits_between:
                self.edit(keeps=False)
            is_written = finished(writer, pending)
            assert is_written is (existing is OVERWRITE or not edits_between)
            if existing is OVERWRITE:
                self.last_edit = None
            if killed_after == "finish":
                return
            writer.commit()  # type: ignore[attr-defined]
        assert not is_written or 1 == (self.text or "").count(caption)

    @invariant()
    def no_caption_is_there_twice(self) -> None:
        text = self.text or ""
        assert 1 >= text.count("dog") + text.count("cat")

    @invariant()
    def what_somebody_wrote_is_there(self) -> None:
        """Unless it was taken away, or a run was to overwrite it."""
        if self.last_edit is not None:
            assert 1 == (self.text or "").split().count(self.last_edit)


TestCaptionFile = CaptionFile.TestCase
