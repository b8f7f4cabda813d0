"""What SQLite is told of a journal, and what it says where it cannot."""

from __future__ import annotations

import sqlite3

__all__ = ["APPLICATION", "TABLES", "VERSION", "problem_of"]

APPLICATION = 0x766C6D6A  # "vlmj", where a program looks that meets the file
VERSION = 1

TABLES = """
CREATE TABLE runs (
    run INTEGER PRIMARY KEY,
    plan TEXT NOT NULL,
    is_listed INTEGER NOT NULL DEFAULT 0
);
CREATE TABLE images (
    key TEXT PRIMARY KEY,
    run INTEGER NOT NULL,
    position INTEGER NOT NULL,
    size INTEGER,
    modified_ns INTEGER,
    digest BLOB,
    width_px INTEGER,
    height_px INTEGER,
    pixels BLOB,
    likeness BLOB,
    outcome TEXT NOT NULL,
    duplicate_of TEXT NOT NULL DEFAULT '',
    problem TEXT NOT NULL DEFAULT ''
) WITHOUT ROWID;
CREATE INDEX images_in_order ON images (run, position);
CREATE INDEX images_alike ON images (pixels) WHERE pixels IS NOT NULL;
CREATE TABLE answers (
    key TEXT NOT NULL,
    digest BLOB NOT NULL,
    mark TEXT NOT NULL,
    model TEXT NOT NULL,
    text TEXT NOT NULL,
    value TEXT,
    stop TEXT NOT NULL,
    problem TEXT NOT NULL DEFAULT '',
    PRIMARY KEY (key, digest, mark, model)
) WITHOUT ROWID;
CREATE TABLE sidecars (
    path BLOB PRIMARY KEY,
    key TEXT NOT NULL,
    run INTEGER NOT NULL,
    state TEXT NOT NULL,
    base TEXT,
    before BLOB,
    after BLOB
) WITHOUT ROWID;
CREATE INDEX sidecars_of ON sidecars (key);
"""


def problem_of(error: sqlite3.Error) -> str:
    """Say what SQLite did not do, for a person."""
    text = str(error)
    if "locked" in text:
        return "another process holds the journal, and does not let go of it"
    if "full" in text:
        return "the disk is full: the journal keeps what it had"
    if "readonly" in text or "unable to open" in text:
        return f"cannot be written: {text}"
    if "malformed" in text or "not a" in text:
        return f"is damaged ({text}): move it away to begin anew; caption files stay as they are"
    return f"the journal cannot be used: {text}"
