"""What a job was given stays as it is, whatever it comes from and wherever captions go."""

from __future__ import annotations

import json
import tarfile
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from caption_cases import caption, draw_many
from vlmcore.jobs import Result, Sidecars, Table, TableKind
from vlmcore.jobs.sources.opening import open_source


def _source(folder: Path, name: str) -> Path:
    """Have three images named by a folder, or by a file beside them."""
    images = draw_many(folder / "images", 3)
    source = folder / name
    names = [path.relative_to(folder).as_posix() for path in images]
    match source.suffix:
        case ".txt":
            source.write_text("\n".join(names), encoding="utf-8")
        case ".jsonl":
            lines = [json.dumps({"path": each}) for each in names]
            source.write_text("\n".join(lines), encoding="utf-8")
        case ".parquet":
            pa = pytest.importorskip("pyarrow")
            pq = pytest.importorskip("pyarrow.parquet")
            pq.write_table(pa.table({"path": names}), source)
        case ".tar":
            with tarfile.open(source, "w") as archive:
                for path in images:
                    archive.add(path, path.name)
        case _:
            pass  # the folder itself
    return source


SOURCES = ("images", "all.txt", "all.jsonl", "all.parquet", "all.tar")
SINKS = ("beside", "elsewhere", "jsonl", "parquet")
IN_ARCHIVES = ("all.tar", "beside")  # what is in an archive has nothing beside it


@pytest.mark.parametrize(
    ("name", "sink"), [pair for pair in product(SOURCES, SINKS) if pair != IN_ARCHIVES]
)
def test_no_file_that_a_job_was_given_is_changed(name: str, sink: str, tmp_path: Path) -> None:
    """
    Neither the images nor what names them: not a byte, and not the time of the last change.
    """
    source = _source(tmp_path / "given", name)
    given = [path for path in (tmp_path / "given").rglob("*") if path.is_file()]
    before = {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in given}
    out = tmp_path / "out"
    out.mkdir()
    sinks: dict[str, dict[str, Any]] = {
        "beside": {"sidecars": Sidecars()},
        "elsewhere": {"sidecars": Sidecars(folder=out)},
        "jsonl": {"tables": [Table(path=out / "all.jsonl", kind=TableKind.JSONL)]},
        "parquet": {"tables": [Table(path=out / "all.parquet", kind=TableKind.PARQUET)]},
    }
    report = caption(source.parent, source=open_source(source), **sinks[sink])
    assert (3, 0) == (report.counts[Result.CAPTIONED], report.failed)
    assert before == {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in given}
