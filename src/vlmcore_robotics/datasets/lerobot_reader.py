"""
Data sets of LeRobot, version 3.0, as they lie in a folder; LeRobot itself is not needed.

Parquet is decoded by pyarrow and MP4 by FFmpeg, within `vlmcore.limits.DatasetLimits`. They are
large and written in C++ and C: files of somebody whom you do not trust belong into a process of
their own.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence

from vlmcore._arrays import as_tuple, require_finite_between
from vlmcore.contracts.embodiment import CameraSpec, Embodiment
from vlmcore.contracts.json_text import read_json
from vlmcore.errors import ContractError, EpisodeError
from vlmcore.limits import DatasetLimits, DocumentLimits, EpisodeLimits
from vlmcore.policy.fitting import differences_between
from vlmcore.policy.interface import PolicyInfo
from vlmcore.rollout._episode_paths import cannot, open_file, path_of, shown
from vlmcore_robotics.datasets._lerobot_tables import read_episodes, read_tasks
from vlmcore_robotics.datasets.lerobot_episodes import LeRobotEpisode, RowLayout
from vlmcore_robotics.datasets.lerobot_info import LeRobotFeature, LeRobotInfo, info_from_document

__all__ = ["LeRobotDatasetReader"]

_CAMERA = "observation.images."
_LONGEST_TOLERANCE_S = 1.0


class LeRobotDatasetReader:
    """
    Reads a LeRobotDataset, version 3.0, from its folder, episode by episode.

    What its tables say is held against each other before the first row is given. States must be
    finite, as an observation asks for it; actions may hold NaN, which is given as it is.

    Args:
        folder: The folder that holds ``meta``.
        robot: The robot that it is of. Its names are then those of states and actions, in the order
            of the data set, and `differences` says in what the two differ. ``None`` for the names
            of the data set.
        state: The features that are the state, one after the other.
        action: The feature that is the action.
        cameras: The features that are the pictures, by the names of cameras; ``None`` for all of
            them, by the names of the data set without ``observation.images.``.
        instruction: The task in words, instead of those of the data set.
        tolerance_s: How far from its time a frame of a video may be.
        limits: How much is read.

    Attributes:
        info: What it says about itself.
        tasks: Its instructions.
        state_names: What the numbers of a state are.
        action_names: What the numbers of an action are.
        camera_names: The names of its cameras.
        differences: In what it says something else than *robot*, one sentence each.

    Raises:
        EpisodeError: If there is no such folder, a file of it is missing or cannot be read, or it
            contradicts itself.
        ContractError: If it is of another version, or of other features than asked for.
        LimitExceededError: If there is more of something than *limits* allow.
        MissingDependencyError: If pyarrow is not installed, or PyAV for videos; the extra
            ``dataset`` brings them.

    Example:
        ::

            data = LeRobotDatasetReader("data/pick")
            for row in data[0]:
                print(row.timestamp_s, row.observe(), row.action)
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        *,
        robot: Embodiment | None = None,
        state: Sequence[str] = ("observation.state",),
        action: str = "action",
        cameras: Mapping[str, str] | None = None,
        instruction: str | None = None,
        tolerance_s: float = 1e-4,
        limits: DatasetLimits | None = None,
    ) -> None:
        if robot is not None and not isinstance(robot, Embodiment):
            raise ContractError("robot", f"got {type(robot).__name__}, expected an Embodiment")
        require_finite_between(0.0, _LONGEST_TOLERANCE_S, tolerance_s=tolerance_s)
        self._folder = path_of(folder)
        self._limits = limits or DatasetLimits()
        self._tolerance_s = tolerance_s
        self.info = info = self._read_info()
        states = tuple(_numbers(info, name) for name in as_tuple(state))
        pictures = _pictures(info, cameras)
        said = _numbers(info, action)
        self.state_names = tuple(name for each in states for name in _names_of(each))
        self.action_names = _names_of(said)
        self.camera_names = tuple(pictures)
        self.differences = () if robot is None else self._differences_from(robot)
        space = None
        if robot is not None:
            _require_as_many("action", self.action_names, robot.actions.names)
            _require_as_many("state", self.state_names, robot.state_names)
            self.state_names, self.action_names = robot.state_names, robot.actions.names
            space = robot.actions
        self._layout = RowLayout(
            state=states,
            action=said,
            action_names=self.action_names,
            cameras=pictures,
            instruction=instruction,
            space=space,
        )
        self.tasks = read_tasks(self._folder, limits=self._limits)
        videos = [feature.name for feature in pictures.values() if feature.dtype == "video"]
        self._places = read_episodes(self._folder, info, videos, limits=self._limits)

    def __repr__(self) -> str:
        return (
            f"<LeRobotDatasetReader of {shown(self._folder)}: {len(self)} episodes, "
            f"{self.info.total_frames} rows at {self.info.fps:g} Hz>"
        )

    def __len__(self) -> int:
        return len(self._places)

    def __getitem__(self, index: int) -> LeRobotEpisode:
        """
        Take an episode.

        Raises:
            ContractError: If there is none of this number.
        """
        if type(index) is not int or not 0 <= index < len(self):
            raise ContractError("index", f"got {index!r:.80}, expected 0 to {len(self) - 1}")
        return LeRobotEpisode(
            self._folder,
            self.info,
            self._places[index],
            self._layout,
            self.tasks,
            tolerance_s=self._tolerance_s,
            limits=self._limits,
        )

    def __iter__(self) -> Iterator[LeRobotEpisode]:
        """Give the episodes in their order."""
        return (self[index] for index in range(len(self)))

    def _read_info(self) -> LeRobotInfo:
        path, most = self._folder / "meta" / "info.json", self._limits.max_info_bytes
        if not self._folder.is_dir():
            raise EpisodeError(shown(self._folder), None, "is no folder, expected a data set")
        with open_file(path, limits=EpisodeLimits(max_file_bytes=most)) as file:
            try:
                text = file.read(most + 1)
            except OSError as error:
                raise cannot("read", path, error) from error
        try:
            document = read_json(text, limits=DocumentLimits(max_document_bytes=most))
            return info_from_document(document, limits=self._limits)
        except ContractError as error:
            raise EpisodeError(shown(path), None, str(error)) from error

    def _differences_from(self, robot: Embodiment) -> tuple[str, ...]:
        cameras = []
        for name, feature in _pictures(self.info, None).items():
            height_px, width_px = feature.shape[:2]
            cameras.append(CameraSpec(name=name, height_px=height_px, width_px=width_px))
        info = PolicyInfo(
            name="data set",
            action_names=self.action_names,
            state_names=self.state_names,
            cameras=tuple(cameras) or None,
            rate_hz=self.info.fps,
        )
        return differences_between(info, robot)


def _numbers(info: LeRobotInfo, name: str) -> LeRobotFeature:
    """Take a feature that is a list of numbers."""
    feature = info.feature(name)
    if not feature.dtype.startswith("float") or len(feature.shape) != 1:
        raise ContractError(
            f"features[{name!r}]",
            f"got {feature.dtype} of shape {list(feature.shape)}, expected a list of float32 or "
            "float64",
        )
    return feature


def _pictures(info: LeRobotInfo, cameras: Mapping[str, str] | None) -> dict[str, LeRobotFeature]:
    """Take the features that are pictures, by the names of cameras."""
    if cameras is None:
        found = [feature for feature in info.features if feature.is_picture]
        return {feature.name.removeprefix(_CAMERA): feature for feature in found}
    taken = {camera: info.feature(name) for camera, name in cameras.items()}
    for camera, feature in taken.items():
        if not feature.is_picture:
            raise ContractError(
                f"cameras[{camera!r:.80}]", f"got a feature of {feature.dtype}, expected pictures"
            )
    return taken


def _names_of(feature: LeRobotFeature) -> tuple[str, ...]:
    """Take the names of the numbers; where nobody says, their place."""
    numbered = tuple(f"{feature.name}[{i}]" for i in range(feature.shape[0]))
    return feature.names or numbered


def _require_as_many(field: str, came: tuple[str, ...], wanted: tuple[str, ...]) -> None:
    if len(came) != len(wanted):
        raise ContractError(
            field,
            f"got {len(came)} numbers, {', '.join(came):.200}, expected the {len(wanted)} of the "
            f"robot, {', '.join(wanted):.200}",
        )
