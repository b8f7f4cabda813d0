"""One episode of a LeRobotDataset, row by row; pictures are decoded when they are asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import attrs
import numpy as np

from vlmcore._arrays import Float64Array, UInt8Array, immutable
from vlmcore.contracts.embodiment import ActionSpace
from vlmcore.contracts.observation import Observation
from vlmcore.errors import EpisodeError, MediaError
from vlmcore.limits import DatasetLimits, ImageLimits, require_at_most
from vlmcore.media.images import load_image
from vlmcore.rollout._episode_paths import shown
from vlmcore.rollout.recorded_moments import RecordedMoment
from vlmcore_robotics.datasets._columns import Column, ColumnKind
from vlmcore_robotics.datasets._doors import read_table, read_video
from vlmcore_robotics.datasets._lerobot_tables import EpisodePlace
from vlmcore_robotics.datasets.lerobot_info import LeRobotFeature, LeRobotInfo

__all__ = ["LeRobotEpisode", "LeRobotRow"]

_ROWS, _ROWS_WITH_PICTURES = 1024, 16
_SLACK_S, _FLOAT32 = 1e-3, 1e-6  # how far a time in float32 may be from that of its row


@attrs.frozen(kw_only=True)
class RowLayout:
    """
    Which features of a data set are what.

    Attributes:
        state: The features that are the state, one after the other.
        action: The feature that is the action.
        action_names: What its numbers are.
        cameras: The features that are pictures, by the name of the camera.
        instruction: The task in words, instead of that of the data set; ``None`` for that.
        space: What the actions are, if anybody says.
    """

    state: tuple[LeRobotFeature, ...]
    action: LeRobotFeature
    action_names: tuple[str, ...]
    cameras: Mapping[str, LeRobotFeature]
    instruction: str | None
    space: ActionSpace | None


@attrs.frozen(kw_only=True, eq=False)
class LeRobotRow:
    """
    One row of an episode.

    Attributes:
        index: Which row of the episode it is, from 0.
        timestamp_s: When, in seconds from the first row.
        instruction: The task in words.
        state: What the robot reported, shape ``[S]``.
        action: What it was sent, shape ``[D]``; NaN where the data set has it.
        observe: Gives the observation; pictures are decoded then.
    """

    index: int
    timestamp_s: float
    instruction: str
    state: Float64Array
    action: Float64Array
    observe: Callable[[], Observation]


class LeRobotEpisode:
    """
    An episode of a LeRobotDataset; `LeRobotDatasetReader` makes it.

    Each loop reads its rows anew, a few at a time. An observation may be asked for at any time, and
    is fastest in the order of the rows. It is a `vlmcore.rollout.recorded_moments.RecordedEpisode`.

    Attributes:
        index: Which episode of the data set it is, from 0.
        name: The same in words.
        action_names: What the numbers of an action are.
        space: What the actions are, if the reader was told.
    """

    def __init__(
        self,
        folder: Path,
        info: LeRobotInfo,
        place: EpisodePlace,
        layout: RowLayout,
        tasks: tuple[str, ...],
        *,
        tolerance_s: float,
        limits: DatasetLimits,
    ) -> None:
        self._folder = folder
        self._info = info
        self._place = place
        self._layout = layout
        self._tasks = tasks
        self._tolerance_s = tolerance_s
        self._limits = limits
        self.index = place.index
        self.name = f"episode {place.index}"
        self.action_names = layout.action_names
        self.space = layout.space

    def __len__(self) -> int:
        return self._place.length

    def __repr__(self) -> str:
        return f"<LeRobotEpisode {self.index} of {shown(self._folder)}, {len(self)} rows>"

    def moments(self) -> Iterator[RecordedMoment]:
        """Give the rows as moments of which one action was sent each."""
        last = None
        for row in self:
            yield RecordedMoment(
                observe=row.observe, sent=row.action[None, :], last_command=_or_none(last)
            )
            last = row.action

    def __iter__(self) -> Iterator[LeRobotRow]:
        """
        Give the rows.

        Raises:
            EpisodeError: If a file is missing or cannot be read, or says something else than the
                data set says of it.
            ContractError: If a row makes no observation, as where a state is not finite.
        """
        place, path = self._place, self._folder / self._place.file
        pictures = [each for each in self._layout.cameras.values() if each.dtype == "image"]
        videos = self._open_videos()
        start, seen = place.row_in_file, 0
        try:
            with read_table(path, limits=self._limits) as table:
                if start + place.length > table.rows:
                    problem = f"has {table.rows} rows, expected {start + place.length}"
                    raise EpisodeError(shown(path), None, problem)
                rows = _ROWS_WITH_PICTURES if pictures else _ROWS
                columns = [*_columns(self._layout), *_pictures(pictures)]
                for batch in table.batches(
                    columns, start=start, stop=start + place.length, rows=rows
                ):
                    for i in range(len(batch["index"])):
                        values = {name: column[i] for name, column in batch.items()}
                        yield self._row(path, seen, values, videos)
                        seen += 1
            if seen != place.length:
                problem = f"gives {seen} rows, expected {place.length}"
                raise EpisodeError(shown(path), None, problem)
        finally:
            for video in videos.values():
                video.release()

    def _open_videos(self) -> dict[str, Any]:
        """Make what gives the frames; no file is opened yet."""
        made = {}
        for name, place in self._place.videos.items():
            height_px, width_px = self._info.feature(name).shape[:2]
            made[name] = read_video(
                self._folder / place.file,
                height_px=height_px,
                width_px=width_px,
                tolerance_s=self._tolerance_s,
                limits=self._limits,
            )
        return made

    def _row(
        self, path: Path, i: int, values: Mapping[str, Any], videos: Mapping[str, Any]
    ) -> LeRobotRow:
        place = self._place
        wanted = {"episode_index": place.index, "frame_index": i, "index": place.first_row + i}
        for name, number in wanted.items():
            if values[name] != number:
                problem = (
                    f"has {name} {values[name]} in row {place.row_in_file + i}, expected {number}"
                )
                raise EpisodeError(shown(path), None, problem)
        said_s, at_s = float(values["timestamp"][0]), i / self._info.fps
        if not abs(said_s - at_s) <= _SLACK_S + _FLOAT32 * at_s:
            problem = f"has the time {said_s:g} s in row {i} of episode {place.index}, expected "
            raise EpisodeError(shown(path), None, f"{problem}{at_s:g} s")
        task = int(values["task_index"])
        if not 0 <= task < len(self._tasks):
            problem = f"has the task {task}, expected one of {len(self._tasks)}"
            raise EpisodeError(shown(path), None, problem)
        layout = self._layout
        instruction = self._tasks[task] if layout.instruction is None else layout.instruction
        state = [number for each in layout.state for number in values[each.name].tolist()]
        return LeRobotRow(
            index=i,
            timestamp_s=at_s,
            instruction=instruction,
            state=_immutable_row(state),
            action=_immutable_row(values[layout.action.name].tolist()),
            observe=lambda: Observation(
                instruction=instruction,
                state=state,
                images={
                    camera: self._picture(path, i, feature, values, videos)
                    for camera, feature in layout.cameras.items()
                },
                frame_rate_hz=self._info.fps,
                captured_at_s=at_s,
            ),
        )

    def _picture(
        self,
        path: Path,
        i: int,
        feature: LeRobotFeature,
        values: Mapping[str, Any],
        videos: Mapping[str, Any],
    ) -> UInt8Array:
        """Decode what a camera saw in a row."""
        if feature.dtype == "video":
            frame: UInt8Array = videos[feature.name].frame(
                self._place.videos[feature.name].from_s + i / self._info.fps
            )
            return frame
        data = values[feature.name]
        where = f"has in row {i} of episode {self.index} as {feature.name}"
        if not data:
            raise EpisodeError(shown(path), None, f"{where} no picture, expected its bytes")
        require_at_most("max_frame_bytes", len(data), self._limits.max_frame_bytes)
        try:
            pixels = load_image(data, limits=ImageLimits(max_pixels=self._limits.max_frame_pixels))
        except MediaError as error:
            raise EpisodeError(shown(path), None, f"{where} what {error.problem}") from error
        if pixels.shape != feature.shape:
            came, wanted = list(pixels.shape), list(feature.shape)
            raise EpisodeError(shown(path), None, f"{where} a picture {came}, expected {wanted}")
        return pixels


def _columns(layout: RowLayout) -> list[Column]:
    whole = ("frame_index", "episode_index", "index", "task_index")
    numbers = (*layout.state, layout.action)
    return [
        *(Column(name, ColumnKind.WHOLE) for name in whole),
        Column("timestamp", ColumnKind.FLOAT),
        *(Column(each.name, ColumnKind.FLOAT, each.shape[0]) for each in numbers),
    ]


def _pictures(features: list[LeRobotFeature]) -> list[Column]:
    return [Column(feature.name, ColumnKind.PICTURE) for feature in features]


def _immutable_row(values: list[float]) -> Float64Array:
    return immutable(np.array(values, np.float64))


def _or_none(last: Float64Array | None) -> Float64Array | None:
    """Take what was sent before, if all of it is known."""
    return last if last is not None and np.isfinite(last).all() else None
