"""
What a job has done so far, in one file that outlives it: the ground of every rerun.

An answer is kept under what it is an answer to: the image's key, the digest of its bytes, the mark
of the question and the model. Whoever asks the same again is given it, also after having asked
otherwise in between. What is made of answers, as captions with a trigger word, is not kept: it is
made again.

One process writes; any number may read meanwhile. SQLite keeps what was committed through a kill
and through a loss of power.
"""

from __future__ import annotations

import contextlib
import enum
import json
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import attrs

from vlmcore._closing import Closing
from vlmcore.errors import JobJournalError
from vlmcore.jobs._journal_tables import APPLICATION, TABLES, VERSION, problem_of
from vlmcore.jobs.items import Stamp, writable

__all__ = ["Answer", "Journal", "Known", "Outcome"]

_WAIT_S = 120.0  # for a reader that is in the middle of something, as a long table


class Outcome(enum.Enum):
    """What has become of an image."""

    WAITING = "waiting"  # its turn has not come
    CAPTIONED = "captioned"
    KEPT = "kept"  # it had a caption file that is not the job's, and that stays
    DUPLICATE = "duplicate"  # it is like another one, and was skipped for that
    FAILED = "failed"


@attrs.frozen(kw_only=True)
class Answer:
    """
    What a model said to one question about one image.

    Attributes:
        mark: The question, as `vlmcore.jobs.prompts.CaptionPrompt.mark` says.
        text: What it wrote, as it wrote it; where it failed, what there was of it.
        value: What the text says, where JSON was asked for.
        stop: Why it ended, as in `vlmcore.vlm.generation.StopReason`; empty where it had not begun.
        problem: Why it is no answer; empty if it is one.
    """

    mark: str
    text: str
    value: Any = None
    stop: str = ""
    problem: str = ""


@attrs.frozen(kw_only=True)
class Known:
    """
    What a journal knows of an image.

    Attributes:
        position: Its place in this run, from 0.
        stamp: That of its file when it was read; ``None`` if it has none.
        digest: SHA-256 of its bytes; ``None`` if they were never read.
        outcome: What became of it.
        duplicate_of: The key of the image that it is like, where it was skipped for that.
        problem: Why it failed; empty if it did not.
        is_readable: Whether it was decoded once, with the bytes that it has.
        has_pixels: Whether it can be told by its pixels.
        likeness: What it looks like, if that was wanted: `vlmcore.jobs.likeness.likeness_of`.
    """

    position: int
    stamp: Stamp | None
    digest: bytes | None
    outcome: Outcome
    duplicate_of: str
    problem: str
    is_readable: bool
    has_pixels: bool
    likeness: bytes | None


class Journal(Closing):
    """
    The journal of the job in one place.

    Nothing is kept before `commit`. It belongs to the thread that opened it.

    Args:
        path: Its file, which is made if it is not there.
        read_only: Whether it is only looked at, perhaps while another process writes.

    Raises:
        JobJournalError: If it cannot be read or written, or is no journal of this version.
    """

    def __init__(self, path: Path, *, read_only: bool = False) -> None:
        self.name = str(path)
        self.run = 0
        with self.told():
            if read_only and not path.is_file():
                raise JobJournalError(str(path), "there is no journal: no job has run here")
            # A URI, as that is how SQLite is told not to make the file. Who only looks may write,
            # too: what a writer that was killed left half done is undone by whoever opens it next.
            uri = f"{path.absolute().as_uri()}?mode={'rw' if read_only else 'rwc'}"
            self.database = sqlite3.connect(uri, uri=True, timeout=_WAIT_S, isolation_level=None)
            try:
                self._check(read_only=read_only)
            except BaseException:
                self.database.close()
                raise

    def close(self) -> None:
        """Close the file; what was not committed is forgotten."""
        self.database.close()

    @contextlib.contextmanager
    def told(self) -> Iterator[None]:
        """
        Say what SQLite did not do in the words of a job.

        Raises:
            JobJournalError: If it did not do it.
        """
        try:
            yield
        except sqlite3.Error as error:
            raise JobJournalError(self.name, problem_of(error)) from error

    def _check(self, *, read_only: bool) -> None:
        database = self.database
        if read_only:
            database.execute("PRAGMA query_only = ON")
        # Rollback journals are understood by network file systems, which write-ahead logs are not.
        for setting in ("synchronous = FULL", "trusted_schema = OFF", "cell_size_check = ON"):
            database.execute(f"PRAGMA {setting}")
        (application,) = database.execute("PRAGMA application_id").fetchone()
        (version,) = database.execute("PRAGMA user_version").fetchone()
        if (application, version) == (APPLICATION, VERSION):
            return
        (tables,) = database.execute("SELECT count(*) FROM sqlite_schema").fetchone()
        if application or version or tables or read_only:
            came = f"version {version}" if application == APPLICATION else "a file of another kind"
            raise JobJournalError(self.name, f"got {came}, expected a journal of version {VERSION}")
        database.executescript(
            f"BEGIN; {TABLES} PRAGMA application_id = {APPLICATION};"
            f"PRAGMA user_version = {VERSION}; COMMIT;"
        )

    def begin(self, plan: dict[str, Any]) -> int:
        """Begin a run, note what it is to do, and return its number."""
        cursor = self.write("INSERT INTO runs (plan) VALUES (?)", (json.dumps(plan),))
        self.run = int(cursor.lastrowid or 0)
        return self.run

    def commit(self) -> None:
        """Keep what was told since the last time, whatever happens from here on."""
        with self.told():
            if self.database.in_transaction:
                self.database.execute("COMMIT")

    def register(self, keys: Iterable[tuple[int, str]]) -> None:
        """
        Tell which images there are in this run; of two with one key, the first is it.

        Args:
            keys: The position of each, from 0, and its key.
        """
        self.write_many(
            "INSERT INTO images (run, position, key, outcome) VALUES (?, ?, ?, ?) "
            "ON CONFLICT (key) DO UPDATE SET run = excluded.run, position = excluded.position "
            "WHERE run != excluded.run",
            ((self.run, position, key, Outcome.WAITING.value) for position, key in keys),
        )

    def note_listed(self) -> None:
        """Tell that all images of this run are known: those of runs before are not meant."""
        self.write("UPDATE runs SET is_listed = 1 WHERE run = ?", (self.run,))

    def keys_between(self, first: int, end: int | None) -> list[str]:
        """Return which images of this run have positions from *first* to before *end*."""
        with self.told():
            found = self.database.execute(
                "SELECT key FROM images WHERE run = ?1 AND position >= ?2 "
                "AND (?3 IS NULL OR position < ?3) ORDER BY position",
                (self.run, first, end),
            ).fetchall()
        return [str(key) for (key,) in found]

    def known(self, key: str) -> Known | None:
        """Say what is known of an image; ``None`` if it is none of this run."""
        with self.told():
            row = self.database.execute(
                "SELECT size, modified_ns, position, digest, outcome, duplicate_of, problem, "
                "width_px IS NOT NULL, pixels IS NOT NULL, likeness "
                "FROM images WHERE key = ? AND run = ?",
                (key, self.run),
            ).fetchone()
        if row is None:
            return None
        size, modified_ns, position, digest, outcome, duplicate_of, problem, *looks = row
        is_readable, has_pixels, likeness = looks
        return Known(
            position=position,
            stamp=None if size is None else Stamp(size, modified_ns),
            digest=digest,
            outcome=Outcome(outcome),
            duplicate_of=duplicate_of,
            problem=problem,
            is_readable=bool(is_readable),
            has_pixels=bool(has_pixels),
            likeness=likeness,
        )

    def note_seen(
        self,
        key: str,
        *,
        stamp: Stamp | None,
        digest: bytes | None,
        size_px: tuple[int, int] | None = None,
        pixels: bytes | None = None,
        likeness: bytes | None = None,
    ) -> None:
        """
        Tell that an image was read.

        Args:
            key: The image.
            stamp: That of its file, taken before it was read.
            digest: SHA-256 of its bytes; ``None`` if they could not be read.
            size_px: Its width and height, if it was decoded.
            pixels: SHA-256 of its pixels, if that was wanted.
            likeness: Its `vlmcore.jobs.likeness.Likeness`, as bytes, if that was wanted.
        """
        width_px, height_px = size_px or (None, None)
        self.write(
            "UPDATE images SET size = ?, modified_ns = ?, "
            # What is not told now is as it was, if the bytes are.
            "width_px = CASE WHEN ?7 IS NULL AND digest IS ?3 THEN width_px ELSE ?7 END, "
            "height_px = CASE WHEN ?8 IS NULL AND digest IS ?3 THEN height_px ELSE ?8 END, "
            "pixels = CASE WHEN ?4 IS NULL AND digest IS ?3 THEN pixels ELSE ?4 END, "
            "likeness = CASE WHEN ?5 IS NULL AND digest IS ?3 THEN likeness ELSE ?5 END, "
            "digest = ?3 WHERE key = ?6",
            (
                None if stamp is None else stamp.size,
                None if stamp is None else stamp.modified_ns,
                digest,
                pixels,
                likeness,
                key,
                width_px,
                height_px,
            ),
        )

    def note_outcome(
        self, key: str, outcome: Outcome, *, problem: str = "", duplicate_of: str = ""
    ) -> None:
        """Tell what has become of an image."""
        self.write(
            "UPDATE images SET outcome = ?1, problem = ?2, duplicate_of = ?3 WHERE key = ?4 "
            "AND (outcome, problem, duplicate_of) IS NOT (?1, ?2, ?3)",
            (outcome.value, writable(problem), duplicate_of, key),
        )

    def note_answer(self, key: str, digest: bytes, model: str, answer: Answer) -> None:
        """Tell what a model said to a question about an image with these bytes."""
        self.write(
            "INSERT OR REPLACE INTO answers VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            (
                key,
                digest,
                answer.mark,
                model,
                writable(answer.text),
                None if answer.value is None else json.dumps(answer.value),
                answer.stop,
                writable(answer.problem),
            ),
        )

    def answers(
        self, key: str, digest: bytes, model: str, marks: Sequence[str]
    ) -> dict[str, Answer]:
        """Find what *model* said about an image with these bytes, by the marks of the questions."""
        with self.told():
            rows = self.database.execute(
                "SELECT mark, text, value, stop, problem FROM answers "
                "WHERE key = ? AND digest = ? AND model = ?",
                (key, digest, model),
            ).fetchall()
        return {
            mark: Answer(
                mark=mark,
                text=text,
                value=None if value is None else json.loads(value),
                stop=stop,
                problem=problem,
            )
            for mark, text, value, stop, problem in rows
            if mark in marks
        }

    def with_pixels(self, pixels: bytes, key: str) -> list[tuple[str, bytes]]:
        """Find the keys and digests of other images of this run with the same pixels."""
        with self.told():
            found = self.database.execute(
                "SELECT key, digest FROM images WHERE pixels = ? AND key != ? AND run = ? "
                "ORDER BY position",
                (pixels, key, self.run),
            ).fetchall()
        return [(str(other), bytes(digest)) for other, digest in found]

    def count(self) -> int:
        """Say how many images there are in this run."""
        with self.told():
            (count,) = self.database.execute(
                "SELECT count(*) FROM images WHERE run = ?", (self.run,)
            ).fetchone()
        return int(count)

    def write(self, statement: str, values: Sequence[Any]) -> sqlite3.Cursor:
        """Run a statement that writes, for those who have tables of their own in the file."""
        with self.told():
            self._begin()
            return self.database.execute(statement, values)

    def write_many(self, statement: str, values: Iterable[Sequence[Any]]) -> None:
        """Run a statement that writes for each of *values*."""
        with self.told():
            self._begin()
            self.database.executemany(statement, values)

    def _begin(self) -> None:
        if not self.database.in_transaction:
            self.database.execute("BEGIN IMMEDIATE")
