"""The tables of a journal, in the words of SQLite."""

from __future__ import annotations

__all__ = ["APPLICATION", "TABLES", "VERSION"]

APPLICATION = 0x766C6D6A  # "vlmj", where a program looks that meets the file
VERSION = 1

TABLES = """
CREATE TABLE runs (
    run INTEGER PRIMARY KEY,
    plan TEXT NOT NULL
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
    after BLOB
) WITHOUT ROWID;
CREATE INDEX sidecars_of ON sidecars (key);
"""
