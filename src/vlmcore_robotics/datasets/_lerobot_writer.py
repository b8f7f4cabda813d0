"""The files of a LeRobotDataset, written row by row, and what is said of them."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np

from vlmcore._arrays import Float64Array
from vlmcore.contracts.json_text import write_json
from vlmcore.errors import ContractError
from vlmcore.media.images import image_info
from vlmcore.rollout.episode_frames import EncodedFrame
from vlmcore_robotics.datasets._columns import Column, ColumnKind
from vlmcore_robotics.datasets._doors import write_table, write_tasks
from vlmcore_robotics.datasets._lerobot_files import (
    DATA_MIB,
    FILES_OF_A_CHUNK,
    VIDEO_MIB,
    DataFiles,
    VideoFiles,
)
from vlmcore_robotics.datasets._lerobot_statistics import (
    FeatureStatistics,
    is_looked_at,
    pixels_of,
)
from vlmcore_robotics.datasets.lerobot_info import (
    DATA_PATH,
    VERSION,
    VIDEO_PATH,
    LeRobotFeature,
)

__all__ = ["LeRobotWriter"]

_MIB = 0x100000
_WHOLE = ("frame_index", "episode_index", "index", "task_index")
_NUMBERS = ("min", "max", "mean", "std", "q01", "q10", "q50", "q90", "q99")


class LeRobotWriter:
    """
    Writes a data set into an empty folder.

    Args:
        folder: The folder.
        robot_type: What robot it is of.
        fps: Rows a second.
        features: The state, the action, and the pictures.
    """

    def __init__(
        self, folder: Path, *, robot_type: str, fps: float, features: tuple[LeRobotFeature, ...]
    ) -> None:
        self._folder = folder
        self._robot_type = robot_type
        self._fps = fps
        self._features = features
        self._pictures = [each for each in features if each.is_picture]
        self._tasks: dict[str, int] = {}
        self._tasks_of_episode: dict[str, None] = {}
        self.episodes = self.rows = self._in_episode = 0
        self._all, self._of_episode = FeatureStatistics(), FeatureStatistics()
        self._data = DataFiles(folder, _row_columns(features), most_bytes=DATA_MIB * _MIB)
        self._videos = {
            each.name: VideoFiles(folder, each, fps=fps, most_bytes=VIDEO_MIB * _MIB)
            for each in self._pictures
            if each.dtype == "video"
        }
        self._episodes = write_table(
            folder / "meta" / "episodes" / "chunk-000" / "file-000.parquet",
            _episode_columns(features),
        )

    def add(
        self,
        *,
        state: Float64Array,
        action: Float64Array,
        task: str,
        frames: Mapping[str, EncodedFrame],
    ) -> None:
        """
        Write a row of the present episode.

        Args:
            state: Shape ``[S]``.
            action: Shape ``[D]``.
            task: The instruction.
            frames: What each camera saw, by feature.

        Raises:
            ContractError: If a number is too large for float32, or a picture has another size.
            MediaError: If a picture cannot be decoded.
        """
        self._tasks_of_episode[task] = None
        number = self._tasks.setdefault(task, len(self._tasks))
        whole = (self._in_episode, self.episodes, self.rows, number)
        values: dict[str, Any] = {
            "observation.state": _as_float32("observation.state", state),
            "action": _as_float32("action", action),
            "timestamp": np.array([self._in_episode / self._fps], np.float32),
            **dict(zip(_WHOLE, whole, strict=True)),
        }
        for name, value in values.items():
            numbers = np.atleast_1d(np.asarray(value, np.float64))
            for statistics in (self._all, self._of_episode):
                statistics.add(name, numbers)
            if isinstance(value, np.ndarray) and len(value) == 1:
                values[name] = value[0]  # a list of one number is that number there
        size = 0
        for feature in self._pictures:
            frame = frames[feature.name]
            self._look_at(feature, frame)
            if feature.dtype == "image":
                size += len(frame.data)
                ending = frame.encoding.name.lower()
                path = f"frame-{self._in_episode:06d}.{ending}"
                values[feature.name] = {"bytes": frame.data, "path": path}
        self._data.add(values, size=size)
        self._in_episode += 1
        self.rows += 1

    def _look_at(self, feature: LeRobotFeature, frame: EncodedFrame) -> None:
        """Decode a frame if its pixels are needed."""
        header = image_info(frame.data)
        height_px, width_px, _ = feature.shape
        if (header.height_px, header.width_px) != (height_px, width_px):
            raise ContractError(
                f"frames[{feature.name!r}]",
                f"got {header.height_px} x {header.width_px} pixels, expected {height_px} x "
                f"{width_px}, as in the first observation",
            )
        is_sampled, video = is_looked_at(self._in_episode), self._videos.get(feature.name)
        if not is_sampled and video is None:
            return
        pixels = frame.pixels()
        if video is not None:
            video.add(pixels)
        if is_sampled:
            for statistics in (self._all, self._of_episode):
                statistics.add_frame(feature.name, pixels_of(pixels))

    def end_episode(self) -> None:
        """Say that the next row is of another episode."""
        if not self._in_episode:
            return
        said: dict[str, Any] = {
            "episode_index": self.episodes,
            "tasks": list(self._tasks_of_episode),
            "length": self._in_episode,
            "dataset_from_index": self.rows - self._in_episode,
            "dataset_to_index": self.rows,
            "meta/episodes/chunk_index": 0,
            "meta/episodes/file_index": 0,
        }
        said |= {f"data/{key}": value for key, value in self._data.end_episode().items()}
        for name, video in self._videos.items():
            place = video.end_episode()
            said |= {f"videos/{name}/{key}": value for key, value in place.items()}
        for name, found in self._of_episode.summaries().items():
            said |= {f"stats/{name}/{key}": value for key, value in found.items()}
        self._episodes.write({name: [value] for name, value in said.items()})
        self.episodes += 1
        self._in_episode = 0
        self._tasks_of_episode = {}
        self._of_episode = FeatureStatistics()

    def finish(self) -> None:
        """Write the ends of all files, and what the data set says of itself."""
        self.end_episode()
        self.close()
        meta = self._folder / "meta"
        write_tasks(meta / "tasks.parquet", list(self._tasks))
        for name, said in (("stats.json", self._all.summaries()), ("info.json", self._info())):
            (meta / name).write_text(write_json(said, indent=4), encoding="utf-8")

    def close(self) -> None:
        """Close all files."""
        with ExitStack() as ends:
            ends.callback(self._data.close)
            ends.callback(self._episodes.close)
            for video in self._videos.values():
                ends.callback(video.close)

    def _info(self) -> dict[str, Any]:
        is_whole = self._fps == int(self._fps)
        return {
            "codebase_version": VERSION,
            "robot_type": self._robot_type,
            "total_episodes": self.episodes,
            "total_frames": self.rows,
            "total_tasks": len(self._tasks),
            "chunks_size": FILES_OF_A_CHUNK,
            "data_files_size_in_mb": DATA_MIB,
            "video_files_size_in_mb": VIDEO_MIB,
            "fps": int(self._fps) if is_whole else self._fps,
            "splits": {"train": f"0:{self.episodes}"},
            "data_path": DATA_PATH,
            "video_path": VIDEO_PATH if self._videos else None,
            "features": {
                **{each.name: _said_of(each, self._fps) for each in self._features},
                "timestamp": _said("float32", [1], None),
                **{name: _said("int64", [1], None) for name in _WHOLE},
            },
        }


def _as_float32(name: str, numbers: Float64Array) -> np.ndarray:
    with np.errstate(over="ignore"):
        small = numbers.astype(np.float32)
    if not np.isfinite(small).all():
        at = int(np.argmin(np.isfinite(small)))
        raise ContractError(f"{name}[{at}]", f"got {numbers[at]}, expected a number of float32")
    return small


def _row_columns(features: tuple[LeRobotFeature, ...]) -> list[Column]:
    columns = []
    for each in features:
        if each.dtype == "image":
            columns.append(Column(each.name, ColumnKind.PICTURE))
        elif not each.is_picture:
            columns.append(Column(each.name, ColumnKind.FLOAT, each.shape[0]))
    return [
        *columns,
        Column("timestamp", ColumnKind.FLOAT),
        *(Column(name, ColumnKind.WHOLE) for name in _WHOLE),
    ]


def _episode_columns(features: tuple[LeRobotFeature, ...]) -> list[Column]:
    place = ("chunk_index", "file_index")
    whole = ["length", "dataset_from_index", "dataset_to_index"]
    whole += [f"data/{each}" for each in place]
    columns = [Column("episode_index", ColumnKind.WHOLE), Column("tasks", ColumnKind.TEXTS)]
    columns += [Column(name, ColumnKind.WHOLE) for name in whole]
    for each in features:
        if each.dtype == "video":
            at = f"videos/{each.name}"
            columns += [Column(f"{at}/{name}", ColumnKind.WHOLE) for name in place]
            times = ("from_timestamp", "to_timestamp")
            columns += [Column(f"{at}/{name}", ColumnKind.TIME) for name in times]
    pictures = {each.name for each in features if each.is_picture}
    for name in (*(each.name for each in features), "timestamp", *_WHOLE):
        kind = ColumnKind.PER_CHANNEL if name in pictures else ColumnKind.NUMBERS
        columns += [Column(f"stats/{name}/{number}", kind) for number in _NUMBERS]
        columns.append(Column(f"stats/{name}/count", ColumnKind.COUNTS))
    return columns + [Column(f"meta/episodes/{name}", ColumnKind.WHOLE) for name in place]


def _said(dtype: str, shape: list[int], names: list[str] | None) -> dict[str, Any]:
    return {"dtype": dtype, "shape": shape, "names": names}


def _said_of(feature: LeRobotFeature, fps: float) -> dict[str, Any]:
    if not feature.is_picture:
        return _said(feature.dtype, list(feature.shape), list(feature.names))
    said = _said(feature.dtype, list(feature.shape), ["height", "width", "channels"])
    if feature.dtype == "image":
        return said
    height_px, width_px, channels = feature.shape
    numbers = {"height": height_px, "width": width_px, "fps": fps, "channels": channels}
    words = {"codec": "h264", "pix_fmt": "yuv420p", "is_depth_map": False}
    about = {f"video.{key}": value for key, value in (numbers | words).items()}
    return said | {"info": about | {"has_audio": False}}
