"""The tables and videos of a LeRobotDataset: one file after the other, none of them too large."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import attrs

from vlmcore._arrays import UInt8Array
from vlmcore_robotics.datasets._columns import Column
from vlmcore_robotics.datasets._doors import write_table, write_video
from vlmcore_robotics.datasets.lerobot_info import (
    DATA_PATH,
    VIDEO_PATH,
    LeRobotFeature,
    expanded,
)

__all__ = ["DATA_MIB", "FILES_OF_A_CHUNK", "VIDEO_MIB", "DataFiles", "VideoFiles"]

_MIB = 0x100000
FILES_OF_A_CHUNK = 1000
DATA_MIB, VIDEO_MIB = 100, 200  # after which the next episode has a file of its own
_ROWS, _GROUP_BYTES = 1000, 32 * _MIB  # of a row group


@attrs.define
class Shard:
    """Which file of which chunk is being written."""

    chunk_index: int = 0
    file_index: int = 0

    def next(self) -> None:
        """Go on to the next file."""
        self.file_index += 1
        if self.file_index == FILES_OF_A_CHUNK:
            self.chunk_index, self.file_index = self.chunk_index + 1, 0


class DataFiles:
    """
    The tables of rows.

    Args:
        folder: The folder of the data set.
        columns: What is in a row.
        most_bytes: After how many bytes the next episode has a file of its own.
    """

    def __init__(self, folder: Path, columns: Sequence[Column], *, most_bytes: int) -> None:
        self._folder = folder
        self._columns = columns
        self._most_bytes = most_bytes
        self._writer: Any = None
        self._buffer: dict[str, list[Any]] = {column.name: [] for column in columns}
        self._rows = self._bytes = 0
        self.shard = Shard()

    def add(self, row: dict[str, Any], *, size: int) -> None:
        """Take in a row, of which *size* bytes are pictures."""
        for name, value in row.items():
            self._buffer[name].append(value)
        self._rows += 1
        self._bytes += size
        if self._rows == _ROWS or self._bytes > _GROUP_BYTES:
            self.end_group()

    def end_group(self) -> None:
        """Write what waits."""
        if not self._rows:
            return
        if self._writer is None:
            path = expanded(DATA_PATH, **attrs.asdict(self.shard))
            self._writer = write_table(self._folder / path, self._columns)
        self._writer.write(self._buffer)
        self._buffer = {column.name: [] for column in self._columns}
        self._rows = self._bytes = 0

    def end_episode(self) -> dict[str, int]:
        """Write what waits, and say in which file the episode is."""
        self.end_group()
        place = attrs.asdict(self.shard)
        if self._writer is not None and self._writer.size >= self._most_bytes:
            self.close()
            self.shard.next()
        return place

    def close(self) -> None:
        """Write the end of the file."""
        if self._writer is not None:
            self._writer.close()
            self._writer = None


class VideoFiles:
    """
    The videos of one camera.

    Args:
        folder: The folder of the data set.
        feature: The camera.
        fps: Frames a second.
        most_bytes: After how many bytes the next episode has a file of its own.
    """

    def __init__(
        self, folder: Path, feature: LeRobotFeature, *, fps: float, most_bytes: int
    ) -> None:
        self._folder = folder
        self._feature = feature
        self._fps = fps
        self._most_bytes = most_bytes
        self._writer: Any = None
        self._first = 0
        self.shard = Shard()

    def add(self, pixels: UInt8Array) -> None:
        """Write a frame."""
        if self._writer is None:
            places = attrs.asdict(self.shard)
            path = expanded(VIDEO_PATH, video_key=self._feature.name, **places)
            height_px, width_px, _ = self._feature.shape
            self._writer = write_video(
                self._folder / path, rate_hz=self._fps, height_px=height_px, width_px=width_px
            )
        self._writer.write(pixels)

    def end_episode(self) -> dict[str, int | float]:
        """Say in which file the episode is, and from when to when."""
        times = (self._first / self._fps, self._writer.frames / self._fps)
        said = attrs.asdict(self.shard) | dict(
            zip(("from_timestamp", "to_timestamp"), times, strict=True)
        )
        self._first = self._writer.frames
        if self._writer.size >= self._most_bytes:
            self.close()
            self.shard.next()
            self._first = 0
        return said

    def close(self) -> None:
        """Write the end of the file."""
        if self._writer is not None:
            self._writer.close()
            self._writer = None
