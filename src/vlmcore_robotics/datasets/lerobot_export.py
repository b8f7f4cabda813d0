"""Recorded episodes as a LeRobotDataset, version 3.0, that LeRobot itself reads."""

from __future__ import annotations

import enum
import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

import attrs

from vlmcore._arrays import Float64Array, require_member
from vlmcore.contracts.documents import embodiment_to_json
from vlmcore.contracts.embodiment import Embodiment
from vlmcore.errors import ContractError, EpisodeError
from vlmcore.rollout._episode_paths import cannot, path_of, shown
from vlmcore.rollout.episode_frames import EncodedFrame
from vlmcore.rollout.episode_reader import EpisodeReader, require_reader
from vlmcore.rollout.episodes import EpisodeStep
from vlmcore.rollout.recorded_moments import observed_steps, sent_until_the_next
from vlmcore_robotics.datasets._doors import require_doors
from vlmcore_robotics.datasets._lerobot_writer import LeRobotWriter
from vlmcore_robotics.datasets.lerobot_info import LeRobotFeature, is_feature_name

__all__ = ["LeRobotExport", "Pictures", "RowsOf", "export_lerobot"]

_CAMERA = "observation.images."


class RowsOf(enum.Enum):
    """What makes a row of the data set."""

    OBSERVATIONS = "observations"  # one for each observation, with the first action sent after it
    ACTIONS = "actions"  # one for each action; the observation before it is repeated


class Pictures(enum.Enum):
    """How pictures are kept."""

    IMAGES = "images"  # in the tables, as they were recorded
    VIDEOS = "videos"  # as H.264 in MP4, which loses some of them and is much smaller
    NONE = "none"  # not at all


@attrs.frozen(kw_only=True)
class LeRobotExport:
    """
    What was written.

    Attributes:
        folder: Where.
        episodes: How many episodes; one that was recorded gives more where nothing was sent.
        rows: How many rows.
        fps: Rows a second.
        left_out: Observations after which nothing was sent.
    """

    folder: Path
    episodes: int
    rows: int
    fps: float
    left_out: int


def export_lerobot(
    episodes: Iterable[EpisodeReader],
    folder: str | os.PathLike[str],
    *,
    rows: RowsOf = RowsOf.OBSERVATIONS,
    pictures: Pictures = Pictures.IMAGES,
) -> LeRobotExport:
    """
    Write recorded episodes as a LeRobotDataset, version 3.0.

    The action of a row is what was sent to the robot: values that left the gate, and no others. A
    row is one observation with the first action that was sent after it, so that nothing is in the
    data set that nobody saw. Where a policy is asked once for 8 actions, it has an eighth of the
    rate of the robot, and the 7 others are not in it; `RowsOf.ACTIONS` keeps them, each with the
    observation before it, which is then repeated as if the cameras had stood still.

    Rows are evenly apart in time. Where nothing was sent, an episode of the data set ends and the
    next begins.

    =========================== ================================================================
    ``observation.state``       float32, named as the robot names its state
    ``action``                  float32, named as the robot names its actions
    ``observation.images.X``    what camera X saw; a name that begins so already is kept
    ``meta/embodiment.json``    the robot, with units and limits, which the format has no place for
    =========================== ================================================================

    Args:
        episodes: What was recorded, all of the same robot. They are read twice.
        folder: Where to, by custom the name of the data set. It must not exist; it gets its name
            when it is whole.
        rows: What makes a row.
        pictures: How pictures are kept. They must have been recorded, if they are.

    Returns:
        What was written.

    Raises:
        EpisodeError: If *folder* exists or cannot be written, or an episode has faults.
        ContractError: If there is no episode or nothing was sent, the episodes are of different
            robots, a picture is missing or of another size than those before, or the observations
            come unevenly.
        MediaError: If a picture cannot be decoded.
        MissingDependencyError: If pyarrow is not installed, or PyAV for videos; the extra
            ``dataset`` brings them.

    Example:
        ::

            export_lerobot([EpisodeReader("run.jsonl")], "data/pick", pictures=Pictures.VIDEOS)
    """
    require_member(RowsOf, rows=rows)
    require_member(Pictures, pictures=pictures)
    require_doors(videos=pictures is Pictures.VIDEOS)
    recorded = list(episodes)
    wanted = path_of(folder)
    if wanted.exists():
        raise EpisodeError(shown(wanted), None, "exists already, expected a new name")
    robot = _robot_of(recorded)
    sides, actions_a_row = _survey(recorded, rows)
    fps = robot.actions.rate_hz / actions_a_row
    cameras = _pictures_of(sides, pictures)
    features = (*_numbers_of(robot), *cameras.values())
    unfinished = wanted.with_name(f".{wanted.name}.{os.getpid()}.part")
    left_out = 0
    try:
        unfinished.mkdir(parents=True)
        writer = LeRobotWriter(unfinished, robot_type=robot.name, fps=fps, features=features)
        try:
            for episode in recorded:
                left_out += _write(episode, writer, rows, cameras)
            writer.finish()
        finally:
            writer.close()
        (unfinished / "meta" / "embodiment.json").write_text(
            embodiment_to_json(robot), encoding="utf-8"
        )
        unfinished.rename(wanted)
    except OSError as error:
        raise cannot("written", wanted, error) from error
    finally:
        with suppress(OSError):
            shutil.rmtree(unfinished)
    return LeRobotExport(
        folder=wanted, episodes=writer.episodes, rows=writer.rows, fps=fps, left_out=left_out
    )


def _robot_of(episodes: list[EpisodeReader]) -> Embodiment:
    """Take the robot of all episodes."""
    if not episodes:
        raise ContractError("episodes", "got none, expected at least one")
    for i, episode in enumerate(episodes):
        require_reader(episode)
        if episode.header.embodiment != episodes[0].header.embodiment:
            raise ContractError(
                f"episodes[{i}]",
                f"got one of {episode.header.embodiment.name!r}, expected the robot of the first, "
                f"{episodes[0].header.embodiment.name!r}, with the same limits",
            )
    return episodes[0].header.embodiment


@attrs.frozen(kw_only=True)
class _Observed:
    """
    An observation that was recorded.

    Attributes:
        step: The first step of it, or the first with pictures.
        sent: What was sent after it, shape ``[N, D]``.
        begins: Whether nothing stands before it in the same episode of the data set.
    """

    step: EpisodeStep
    sent: Float64Array
    begins: bool


def _observed(episode: EpisodeReader) -> Iterator[_Observed]:
    """Give the observations; those after which nothing was sent, too."""
    begins, rate_hz = True, episode.header.embodiment.actions.rate_hz
    for steps in observed_steps(episode):
        sent, is_followed = sent_until_the_next(steps, rate_hz=rate_hz)
        shown_in = next((step for step in steps if step.frames), steps[0])
        yield _Observed(step=shown_in, sent=sent, begins=begins)
        begins = not is_followed


def _survey(episodes: list[EpisodeReader], rows: RowsOf) -> tuple[dict[str, tuple[int, int]], int]:
    """Find the sides of the frames, and how many actions there are for one row."""
    sides: dict[str, tuple[int, int]] = {}
    between: set[int] = set()  # actions from one observation to the next one
    before = first = 0
    for each in (each for episode in episodes for each in _observed(episode)):
        if each.sent.size and not first:
            first = len(each.sent)
            cameras = each.step.observation.cameras
            sides = {name: (seen.height_px, seen.width_px) for name, seen in cameras.items()}
        if not each.begins:
            between.add(before)
        before = len(each.sent)
    if not first:
        raise ContractError("episodes", "got none after which anything was sent, expected some")
    if rows is RowsOf.ACTIONS:
        return sides, 1
    if len(between) > 1:
        raise ContractError(
            "rows",
            f"got observations after each of which {min(between)} to {max(between)} actions were "
            "sent, expected always as many, since rows are evenly apart: RowsOf.ACTIONS makes "
            "a row of each action",
        )
    return sides, next(iter(between), first)


def _numbers_of(robot: Embodiment) -> tuple[LeRobotFeature, ...]:
    return tuple(
        LeRobotFeature(name=name, dtype="float32", shape=(len(names),), names=names)
        for name, names in (
            ("observation.state", robot.state_names),
            ("action", robot.actions.names),
        )
    )


def _pictures_of(
    sides: dict[str, tuple[int, int]], pictures: Pictures
) -> dict[str, LeRobotFeature]:
    """Make the features of the cameras, by their names."""
    if pictures is Pictures.NONE:
        return {}
    made: dict[str, LeRobotFeature] = {}
    for camera, (height_px, width_px) in sides.items():
        name = camera if camera.startswith(_CAMERA) else f"{_CAMERA}{camera}"
        if not is_feature_name(name):
            raise ContractError(
                "cameras", f"got {camera!r:.80}, expected a name of letters, digits and . _ -"
            )
        if pictures is Pictures.VIDEOS and (height_px % 2 or width_px % 2):
            raise ContractError(
                f"cameras[{camera!r}]",
                f"got {height_px} x {width_px} pixels, expected even sides, as H.264 needs them: "
                "Pictures.IMAGES keeps them",
            )
        dtype = "video" if pictures is Pictures.VIDEOS else "image"
        made[camera] = LeRobotFeature(name=name, dtype=dtype, shape=(height_px, width_px, 3))
    return made


def _write(
    episode: EpisodeReader,
    writer: LeRobotWriter,
    rows: RowsOf,
    cameras: dict[str, LeRobotFeature],
) -> int:
    """Write the rows of an episode, and say how many observations give none."""
    left_out = 0
    for each in _observed(episode):
        if each.begins:
            writer.end_episode()
        left_out += not each.sent.size
        frames = _frames_of(each.step, cameras) if each.sent.size else {}
        for action in each.sent[: 1 if rows is RowsOf.OBSERVATIONS else None]:
            writer.add(
                state=each.step.observation.state,
                action=action,
                task=each.step.observation.instruction,
                frames=frames,
            )
    writer.end_episode()
    return left_out


def _frames_of(step: EpisodeStep, cameras: dict[str, LeRobotFeature]) -> dict[str, EncodedFrame]:
    """Take the newest frame of each camera, by its feature."""
    found: dict[str, EncodedFrame] = {}
    seen = step.observation.cameras
    if cameras and set(seen) != set(cameras):
        raise ContractError(
            "cameras",
            f"got {', '.join(seen)}, expected those of the first observation, {', '.join(cameras)}",
        )
    for camera, feature in cameras.items():
        kept = step.frames.get(camera, ())
        if not kept or kept[-1].frame_index != seen[camera].frames - 1:
            raise ContractError(
                f"frames[{camera!r:.80}]",
                f"got none of the newest picture at {step.at_s:g} s, expected one: record with "
                "frames=encode_frames(observation), or export with Pictures.NONE",
            )
        found[feature.name] = kept[-1]
    return found
