"""What a LeRobotDataset says about itself in ``meta/info.json``, version 3.0 of its format."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any

import attrs

from vlmcore._arrays import plain_float
from vlmcore.errors import ContractError
from vlmcore.limits import ContractLimits, DatasetLimits, require_at_most

__all__ = [
    "DATA_PATH",
    "VERSION",
    "VIDEO_PATH",
    "LeRobotFeature",
    "LeRobotInfo",
    "expanded",
    "info_from_document",
    "is_feature_name",
]

#: The version of the format.
VERSION = "v3.0"
#: Where the tables and the videos are, by custom.
DATA_PATH = "data/chunk-{chunk_index:03d}/file-{file_index:03d}.parquet"
VIDEO_PATH = "videos/{video_key}/chunk-{chunk_index:03d}/file-{file_index:03d}.mp4"

_LIMITS = ContractLimits()
_PLACE = re.compile(r"\{(video_key|chunk_index|file_index)(?::0(\d)d)?\}")
_PICTURES = ("image", "video")


@attrs.frozen(kw_only=True)
class LeRobotFeature:
    """
    One thing that each row of a data set holds.

    Attributes:
        name: Its key, as ``"observation.state"``.
        dtype: As ``"float32"``; ``"image"`` or ``"video"`` for pictures.
        shape: How many numbers there are along each axis; ``(H, W, C)`` of pictures.
        names: What its numbers are, if the data set names each; empty if not.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    names: tuple[str, ...] = ()

    @property
    def is_picture(self) -> bool:
        """Whether it is a picture, embedded or in a video."""
        return self.dtype in _PICTURES


@attrs.frozen(kw_only=True)
class LeRobotInfo:
    """
    What a data set says about itself.

    Attributes:
        robot_type: What robot it is of; empty if it does not say.
        fps: Rows a second.
        total_episodes: How many episodes there are.
        total_frames: How many rows.
        features: What each row holds.
        data_path: Where the tables are, from its folder.
        video_path: Where the videos are; ``None`` if there are none.
    """

    robot_type: str
    fps: float
    total_episodes: int
    total_frames: int
    features: tuple[LeRobotFeature, ...]
    data_path: str
    video_path: str | None

    def feature(self, name: str) -> LeRobotFeature:
        """
        Take a feature.

        Raises:
            ContractError: If there is none of this name.
        """
        for feature in self.features:
            if feature.name == name:
                return feature
        known = ", ".join(feature.name for feature in self.features)
        raise ContractError("feature", f"got {name!r:.80}, expected one of {known}")

    def data_file(self, chunk_index: int, file_index: int) -> str:
        """Say where a table is, from the folder of the data set."""
        return expanded(self.data_path, chunk_index=chunk_index, file_index=file_index)

    def video_file(self, feature: str, chunk_index: int, file_index: int) -> str:
        """Say where a video is, from the folder of the data set."""
        return expanded(
            self.video_path or "", video_key=feature, chunk_index=chunk_index, file_index=file_index
        )


def expanded(template: str, **places: str | int) -> str:
    """Fill a template in; nothing but its places means anything in it."""

    def fill(found: re.Match[str]) -> str:
        value = places[found[1]]
        return f"{value:0{found[2]}d}" if found[2] and isinstance(value, int) else str(value)

    return _PLACE.sub(fill, template)


def info_from_document(value: Any, *, limits: DatasetLimits | None = None) -> LeRobotInfo:
    """
    Read what ``meta/info.json`` says; keys that are not needed are passed over.

    Args:
        value: What `vlmcore.contracts.json_text.read_json` gave.
        limits: How much there may be.

    Raises:
        ContractError: If it is of another version, or something in it is not as it must be.
        LimitExceededError: If there is more of something than *limits* allow.
    """
    limits = limits or DatasetLimits()
    if not isinstance(value, Mapping):
        raise ContractError("info", f"got {type(value).__name__}, expected an object")
    _require_version(value.get("codebase_version"))
    fps = plain_float(value.get("fps"))
    if not isinstance(fps, float) or not 0 < fps <= _LIMITS.max_rate_hz:
        raise ContractError(
            "fps", f"got {fps!r:.80}, expected a number above 0 and up to {_LIMITS.max_rate_hz}"
        )
    features = value.get("features")
    if not isinstance(features, Mapping) or not features:
        raise ContractError("features", f"got {features!r:.80}, expected an object with some")
    require_at_most("max_features", len(features), limits.max_features)
    robot_type, video_path = value.get("robot_type"), value.get("video_path")
    made = LeRobotInfo(
        robot_type=robot_type if isinstance(robot_type, str) else "",
        fps=fps,
        total_episodes=_whole("total_episodes", value.get("total_episodes"), limits.max_episodes),
        total_frames=_whole("total_frames", value.get("total_frames"), limits.max_rows),
        features=tuple(_feature(name, each, limits) for name, each in features.items()),
        data_path=_template("data_path", value.get("data_path")),
        video_path=None if video_path is None else _template("video_path", video_path),
    )
    if any(feature.dtype == "video" for feature in made.features) and made.video_path is None:
        raise ContractError("video_path", "got null beside features that are videos")
    return made


def _require_version(version: Any) -> None:
    if version == VERSION:
        return
    if isinstance(version, str) and re.fullmatch(r"v?[12](\.\d{1,3})*", version):
        raise ContractError(
            "codebase_version",
            f"got {version!r}, expected {VERSION!r}: LeRobot converts it, with "
            "python -m lerobot.datasets.v30.convert_dataset_v21_to_v30 --repo-id=... --root=...",
        )
    raise ContractError("codebase_version", f"got {version!r:.40}, expected {VERSION!r}")


def _whole(field: str, value: Any, most: int) -> int:
    if type(value) is not int or not 0 <= value <= most:
        raise ContractError(field, f"got {value!r:.80}, expected a whole number from 0 to {most}")
    return value


def _template(field: str, value: Any) -> str:
    """Read a template of paths that leads nowhere but into the folder of the data set."""
    if not isinstance(value, str) or not 1 <= len(value) <= _LIMITS.max_name_characters:
        raise ContractError(field, f"got {value!r:.80}, expected the template of a path")
    plain = _PLACE.sub("0", value)
    parts = PurePosixPath(plain).parts
    is_inside = parts and not plain.startswith("/") and ".." not in parts
    if not is_inside or any(c in plain for c in "{}\\:") or not plain.isprintable():
        raise ContractError(
            field,
            f"got {value!r:.80}, expected a path inside the folder with {{chunk_index:03d}}, "
            "{file_index:03d} and {video_key} in it",
        )
    return value


def is_feature_name(name: Any) -> bool:
    """Say whether a feature may be called so; a folder of videos is."""
    if not isinstance(name, str) or not 1 <= len(name) <= _LIMITS.max_name_characters:
        return False
    return name not in (".", "..") and re.fullmatch(r"[\w.\- ]+", name) is not None


def _feature(name: Any, value: Any, limits: DatasetLimits) -> LeRobotFeature:
    field = f"features[{name!r:.80}]"
    if not is_feature_name(name):
        raise ContractError(field, "got such a name, expected letters, digits and . _ -")
    if not isinstance(value, Mapping) or not isinstance(value.get("dtype"), str):
        raise ContractError(field, f"got {value!r:.80}, expected an object with a dtype")
    shape = value.get("shape")
    if not isinstance(shape, (list, tuple)) or not 1 <= len(shape) <= 5:
        raise ContractError(f"{field}.shape", f"got {shape!r:.80}, expected a list of sides")
    sides = tuple(_whole(f"{field}.shape", side, limits.max_frame_pixels) for side in shape)
    if 0 in sides:
        raise ContractError(f"{field}.shape", f"got {list(sides)}, expected sides of at least 1")
    feature = LeRobotFeature(name=name, dtype=value["dtype"], shape=sides)
    if feature.is_picture:
        if len(sides) != 3 or sides[-1] != 3:
            raise ContractError(f"{field}.shape", f"got {list(sides)}, expected [H, W, 3]")
        require_at_most("max_frame_pixels", sides[0] * sides[1], limits.max_frame_pixels)
        return feature
    return attrs.evolve(feature, names=_names(value.get("names"), math.prod(sides)))


def _names(value: Any, count: int) -> tuple[str, ...]:
    """Read a list of names, or the one list in an object; what does not name each is none."""
    if isinstance(value, Mapping) and len(value) == 1:
        value = next(iter(value.values()))
    if isinstance(value, list) and len(value) == count and all(isinstance(n, str) for n in value):
        return tuple(value)
    return ()
