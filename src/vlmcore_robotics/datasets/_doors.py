"""Where the doors of this room are opened: each when something needs it, and not before."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from vlmcore._optional import optional_dependency

if TYPE_CHECKING:
    from vlmcore_robotics.datasets._parquet import ParquetReader, ParquetWriter
    from vlmcore_robotics.datasets._video import VideoReader, VideoWriter

__all__ = ["read_table", "read_video", "require_doors", "write_table", "write_tasks", "write_video"]


def require_doors(*, videos: bool) -> None:
    """
    Require the packages to be there, before anything is done.

    Raises:
        MissingDependencyError: If pyarrow is not installed, or PyAV where there are videos.
    """
    with optional_dependency("dataset", "pyarrow"):
        from vlmcore_robotics.datasets import _parquet  # noqa: F401, PLC0415 - the door
    if videos:
        with optional_dependency("dataset", "av"):
            from vlmcore_robotics.datasets import _video  # noqa: F401, PLC0415 - the door


def read_table(path: Path, **options: Any) -> ParquetReader:
    """Open a table to be read."""
    require_doors(videos=False)
    from vlmcore_robotics.datasets._parquet import ParquetReader  # noqa: PLC0415 - the door

    return ParquetReader(path, **options)


def write_table(path: Path, columns: Any) -> ParquetWriter:
    """Open a table to be written."""
    require_doors(videos=False)
    from vlmcore_robotics.datasets._parquet import ParquetWriter  # noqa: PLC0415 - the door

    return ParquetWriter(path, columns)


def write_tasks(path: Path, tasks: list[str]) -> None:
    """Write the table of instructions."""
    require_doors(videos=False)
    from vlmcore_robotics.datasets import _parquet  # noqa: PLC0415 - the door

    _parquet.write_tasks(path, tasks)


def read_video(path: Path, **options: Any) -> VideoReader:
    """Open a video to be read."""
    require_doors(videos=True)
    from vlmcore_robotics.datasets._video import VideoReader  # noqa: PLC0415 - the door

    return VideoReader(path, **options)


def write_video(path: Path, **options: Any) -> VideoWriter:
    """Open a video to be written."""
    require_doors(videos=True)
    from vlmcore_robotics.datasets._video import VideoWriter  # noqa: PLC0415 - the door

    return VideoWriter(path, **options)
