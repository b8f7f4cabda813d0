"""Which caption file belongs to which image, decided before the first is written."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path, PurePosixPath

from vlmcore.errors import JobSinkError
from vlmcore.jobs.items import Item, writable
from vlmcore.jobs.journal import Journal
from vlmcore.jobs.sinks.settings import NameClash, Sidecars
from vlmcore.jobs.sources._contents import NoContent

__all__ = ["claim_files", "claimed_file"]

_SHOWN = 3
_LONGEST = 400

# `wishes` holds for each image its own file, the short name of its caption file (a.txt), the long
# one (a.jpg.txt), and which of them it is given.
_WISHES = """
CREATE TEMP TABLE wishes (
    key TEXT PRIMARY KEY, image BLOB, short BLOB NOT NULL, long BLOB NOT NULL, path BLOB
) WITHOUT ROWID
"""
_KEEP_WHAT_IT_HAD = """
UPDATE wishes SET path = (
    SELECT path FROM sidecars
    WHERE sidecars.key = wishes.key AND sidecars.path IN (wishes.short, wishes.long)
)
"""
_TAKE_THE_SHORT = """
UPDATE wishes SET path = short WHERE path IS NULL AND short IS NOT image
AND (SELECT count(*) FROM wishes AS other WHERE other.short = wishes.short) = 1
"""
_TAKE_THE_LONG = "UPDATE wishes SET path = long WHERE path IS NULL"
_CONTESTED = """
SELECT short, group_concat(key, ' and ') FROM wishes
WHERE short IN (SELECT short FROM wishes WHERE path IS NULL) AND short IS NOT image
GROUP BY short ORDER BY short
"""
_TWICE = """
SELECT path, group_concat(key, ' and ') FROM wishes GROUP BY path HAVING count(*) > 1
"""
_OVER_IMAGES = """
SELECT path, key FROM wishes WHERE path IN (SELECT image FROM wishes WHERE image IS NOT NULL)
"""
# Whoever takes the file of an image that is gone finds a text in it that is not its own.
_FREE = """
DELETE FROM sidecars WHERE path IN (
    SELECT path FROM wishes WHERE wishes.path = sidecars.path AND wishes.key != sidecars.key
)
"""
_GIVE = """
INSERT INTO sidecars (path, key, run, state) SELECT path, key, ?, 'claimed' FROM wishes WHERE true
ON CONFLICT (path) DO UPDATE SET run = excluded.run
"""


def claim_files(journal: Journal, sidecars: Sidecars, items: Iterable[Item]) -> None:
    """
    Give each image of a run its caption file, and write down in the journal which.

    An image that is known to have no bytes is given none. Who had a file in an earlier run keeps
    it, so that captions do not change their images when one with a similar name is added.

    Raises:
        JobSinkError: If two images want the same file and are not to be told apart, or an image has
            no file that a caption could lie beside, or would lose its own.
    """
    database = journal.database
    with journal.told():
        database.execute("DROP TABLE IF EXISTS temp.wishes")
        database.execute(_WISHES)
        database.executemany(
            "INSERT OR IGNORE INTO wishes (key, image, short, long) VALUES (?, ?, ?, ?)",
            (_wish(item, sidecars) for item in items if not isinstance(item.content, NoContent)),
        )
        database.execute("CREATE INDEX temp.wanted ON wishes (short)")
        database.execute(_KEEP_WHAT_IT_HAD)
        database.execute(_TAKE_THE_SHORT)
        if sidecars.clash is NameClash.REFUSE:
            _require_none(journal, _CONTESTED, "is wanted by", "give them different names, or")
        database.execute(_TAKE_THE_LONG)
        _require_none(journal, _TWICE, "is wanted by", "give them different names")
        _require_none(journal, _OVER_IMAGES, "is an image itself, and is wanted by", "rename it")
        journal.write(_FREE, ())
        journal.write(_GIVE, (journal.run,))
        database.execute("DROP TABLE wishes")


def claimed_file(journal: Journal, key: str) -> Path | None:
    """Return the caption file of an image in this run; ``None`` if it was given none."""
    with journal.told():
        found = journal.database.execute(
            "SELECT path FROM sidecars WHERE key = ? AND run = ?", (key, journal.run)
        ).fetchone()
    return None if found is None else Path(os.fsdecode(found[0]))


def _wish(item: Item, sidecars: Sidecars) -> tuple[str, bytes | None, bytes, bytes]:
    path: Path | None = item.path
    if sidecars.folder is not None:
        path = sidecars.folder.joinpath(*_steps_inside(item.key))
    if path is None:
        raise JobSinkError(
            item.key,
            "has no file of its own, so that no caption file can lie beside it: write a table, or "
            "name a folder for the caption files",
        )
    if not path.name:
        path /= "_"  # a list may name "." or "/", of which nothing can be read
    image = None if item.path is None else os.fsencode(item.path)
    short, long = path.with_suffix(sidecars.suffix), path.with_name(path.name + sidecars.suffix)
    return item.key, image, os.fsencode(short), os.fsencode(long)


def _steps_inside(key: str) -> list[str]:
    """Take the parts of a key that lead down: no caption file is written outside of its folder."""
    steps = [part for part in PurePosixPath(key.replace("\\", "/")).parts if part.strip("/")]
    return [step.replace(":", "_") for step in steps if step not in {".", ".."}] or ["_"]


def _require_none(journal: Journal, query: str, problem: str, advice: str) -> None:
    found = journal.database.execute(query).fetchmany(_SHOWN + 1)
    if not found:
        return
    clashes = "; ".join(
        f"{writable(os.fsdecode(path))} {problem} {keys:.{_LONGEST}}"
        for path, keys in found[:_SHOWN]
    )
    more = "; and more" if len(found) > _SHOWN else ""
    if advice.endswith("or"):
        advice += " choose 'disambiguate', which writes a.jpg.txt and a.png.txt"
    raise JobSinkError("caption files", f"{clashes}{more}: {advice}")
