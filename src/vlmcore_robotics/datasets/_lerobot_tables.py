"""The tables that say where the episodes of a LeRobotDataset are, held against each other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import attrs

from vlmcore.errors import EpisodeError
from vlmcore.limits import ContractLimits, DatasetLimits, require_at_most
from vlmcore.rollout._episode_paths import cannot, shown
from vlmcore_robotics.datasets._columns import Column, ColumnKind
from vlmcore_robotics.datasets._doors import read_table
from vlmcore_robotics.datasets.lerobot_info import LeRobotInfo

__all__ = ["EpisodePlace", "VideoPlace", "read_episodes", "read_tasks"]

_ROWS = 1024
_LONGEST_S = 1e9
_LIMITS = ContractLimits()


@attrs.frozen(kw_only=True)
class VideoPlace:
    """
    Where the frames of one camera of an episode are.

    Attributes:
        file: From the folder of the data set.
        from_s: The time of the first frame in it.
    """

    file: str
    from_s: float


@attrs.frozen(kw_only=True)
class EpisodePlace:
    """
    Where an episode is.

    Attributes:
        index: Which one it is.
        length: How many rows it has.
        file: Its table, from the folder of the data set.
        first_row: Its first row, counted over the whole data set.
        row_in_file: The same, counted in its table.
        videos: Its videos by feature.
    """

    index: int
    length: int
    file: str
    first_row: int
    row_in_file: int
    videos: dict[str, VideoPlace]


def read_tasks(folder: Path, *, limits: DatasetLimits) -> tuple[str, ...]:
    """
    Read the instructions, in the order of their numbers.

    Raises:
        EpisodeError: If there is no such table, or it does not number its texts from 0.
        LimitExceededError: If there are more than *limits* allow, or one is longer.
    """
    path = folder / "meta" / "tasks.parquet"
    with read_table(path, limits=limits) as table:
        require_at_most("max_tasks", table.rows, limits.max_tasks)
        name = next((each for each in table.names if each != "task_index"), "task")
        columns = [Column("task_index", ColumnKind.WHOLE), Column(name, ColumnKind.TEXT)]
        found: dict[int, str] = {}
        for batch in table.batches(columns, start=0, stop=table.rows, rows=_ROWS):
            for index, task in zip(batch["task_index"].tolist(), batch[name], strict=True):
                require_at_most("max_task_characters", len(task), _LIMITS.max_task_characters)
                found[index] = task
        if sorted(found) != list(range(table.rows)):
            problem = "numbers its tasks otherwise, expected each number from 0 once"
            raise EpisodeError(shown(path), None, problem)
    return tuple(found[index] for index in range(len(found)))


def read_episodes(
    folder: Path, info: LeRobotInfo, videos: Sequence[str], *, limits: DatasetLimits
) -> tuple[EpisodePlace, ...]:
    """
    Read where the episodes are, and hold it against what the data set says of itself.

    Args:
        folder: The folder of the data set.
        info: What it says.
        videos: The features whose videos are wanted.
        limits: How much there may be.

    Raises:
        EpisodeError: If something contradicts something else, or a table cannot be read.
    """
    where = folder / "meta" / "episodes"
    rows = [row for path in _files(where, limits) for row in _rows(path, videos, limits)]
    rows.sort(key=lambda row: row["episode_index"])
    problem = ""
    if len(rows) != info.total_episodes:
        problem = f"lists {len(rows)} episodes, expected the {info.total_episodes} of info.json"
    elif [row["episode_index"] for row in rows] != list(range(len(rows))):
        problem = "numbers its episodes otherwise, expected them from 0 in their order"
    if problem:
        raise EpisodeError(shown(where), None, problem)
    places, at = [], 0
    starts: dict[str, int] = {}
    for row in rows:
        first, stop, index = (
            row["dataset_from_index"],
            row["dataset_to_index"],
            row["episode_index"],
        )
        if first != at or stop - first != row["length"] or row["length"] < 1:
            problem = (
                f"says that episode {index} has {row['length']} rows, from {first} to {stop}, "
                f"expected rows from {at} on"
            )
            raise EpisodeError(shown(where), None, problem)
        at = stop
        file = info.data_file(*_place(where, row, "data"))
        places.append(
            EpisodePlace(
                index=index,
                length=row["length"],
                file=file,
                first_row=first,
                row_in_file=first - starts.setdefault(file, first),
                videos={name: _video(where, row, info, name) for name in videos},
            )
        )
    if at != info.total_frames:
        problem = f"lists {at} rows, expected the {info.total_frames} of info.json"
        raise EpisodeError(shown(where), None, problem)
    return tuple(places)


def _files(where: Path, limits: DatasetLimits) -> list[Path]:
    found: list[Path] = []
    try:
        for path in where.glob("*/*.parquet"):
            found.append(path)
            require_at_most("max_files", len(found), limits.max_files)
    except OSError as error:
        raise cannot("read", where, error) from error
    if not found:
        raise EpisodeError(
            shown(where), None, "holds no tables, expected chunk-000/file-000.parquet"
        )
    return sorted(found)


def _rows(path: Path, videos: Sequence[str], limits: DatasetLimits) -> Iterator[dict[str, Any]]:
    whole = ["episode_index", "length", "dataset_from_index", "dataset_to_index"]
    whole += [f"data/{each}" for each in ("chunk_index", "file_index")]
    whole += [f"videos/{name}/{each}" for name in videos for each in ("chunk_index", "file_index")]
    columns = [Column(name, ColumnKind.WHOLE) for name in whole]
    columns += [Column(f"videos/{name}/from_timestamp", ColumnKind.TIME) for name in videos]
    with read_table(path, limits=limits) as table:
        require_at_most("max_episodes", table.rows, limits.max_episodes)
        for batch in table.batches(columns, start=0, stop=table.rows, rows=_ROWS):
            lists = [batch[column.name].tolist() for column in columns]
            for values in zip(*lists, strict=True):
                yield dict(zip(batch, values, strict=True))


def _place(where: Path, row: dict[str, Any], of: str) -> tuple[int, int]:
    place = (row[f"{of}/chunk_index"], row[f"{of}/file_index"])
    if min(place) < 0:
        problem = f"has {list(place)} for {of}, expected the numbers of a chunk and of a file"
        raise EpisodeError(shown(where), None, problem)
    return place


def _video(where: Path, row: dict[str, Any], info: LeRobotInfo, name: str) -> VideoPlace:
    from_s = row[f"videos/{name}/from_timestamp"]
    if not 0 <= from_s <= _LONGEST_S:
        problem = f"has the time {from_s} for {name}, expected one from 0 on"
        raise EpisodeError(shown(where), None, problem)
    file = info.video_file(name, *_place(where, row, f"videos/{name}"))
    return VideoPlace(file=file, from_s=from_s)
