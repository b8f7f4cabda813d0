"""Data sets for tests: those that LeRobot wrote, copies that can be broken, and a recorded one."""

from __future__ import annotations

import importlib.util
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from episode_cases import GATE, HEADER, observation, proposal
from vlmcore.contracts.observation import Observation
from vlmcore.rollout import EpisodeReader, EpisodeWriter, encode_frames
from vlmcore.rollout.episode_frames import FrameEncoding
from vlmcore.rollout.episodes import EpisodeHeader

GOLDEN = Path(__file__).parent / "golden" / "lerobot"
ROWS = "data/chunk-000/file-000.parquet"
EPISODES = "meta/episodes/chunk-000/file-000.parquet"
TASKS = "meta/tasks.parquet"
VIDEO = "videos/observation.images.front/chunk-000/file-000.mp4"


def golden() -> Any:
    """Import the module that says what the golden data sets hold."""
    spec = importlib.util.spec_from_file_location("make_golden", GOLDEN / "make_golden.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def copy(kind: str, folder: Path) -> Path:
    """Copy a golden data set."""
    return Path(shutil.copytree(GOLDEN / kind, folder / kind))


def with_info(folder: Path, **changes: Any) -> Path:
    """Change what a copy says about itself; ``...`` takes a key away."""
    path = folder / "meta" / "info.json"
    said = json.loads(path.read_text()) | changes
    path.write_text(json.dumps({key: each for key, each in said.items() if each is not ...}))
    return folder


def with_feature(folder: Path, name: str, **changes: Any) -> Path:
    """Change what a copy says about one feature."""
    features = json.loads((folder / "meta" / "info.json").read_text())["features"]
    features[name] |= changes
    return with_info(folder, features=features)


def with_table(folder: Path, file: str, change: Callable[[pa.Table], pa.Table]) -> Path:
    """Change a table of a copy."""
    path = folder / file
    table = change(pq.read_table(path))
    path.unlink()
    pq.write_table(table, path)
    return folder


def with_column(folder: Path, file: str, name: str, values: Any) -> Path:
    """Put other values into a column of a copy: a list, an array, or a function of the old ones."""

    def change(table: pa.Table) -> pa.Table:
        old = table.column(name)
        new = values(old.to_pylist()) if callable(values) else values
        kind = old.type if isinstance(new, list) else None
        return table.set_column(table.schema.get_field_index(name), name, pa.array(new, kind))

    return with_table(folder, file, change)


def seen(i: int, *, episode: int = 0, sides: tuple[int, int] = (32, 48)) -> Observation:
    """Make an observation whose pixels say which it is."""
    frame = np.full((1, *sides, 3), 10 * i, np.uint8)
    frame[:, : sides[0] // 2, : sides[1] // 2] = (0, 0, 200)
    return attrs.evolve(
        observation(7 + i / 10, instruction=("wait", "go")[episode % 2]),
        images={"front": frame},
        state=[i, episode, 11.5],
    )


def record(
    path: Path,
    *,
    sent: tuple[int, ...] = (2, 2, 2),
    episode: int = 0,
    header: EpisodeHeader = HEADER,
    encoding: FrameEncoding | None = FrameEncoding.PNG,
    observe: Callable[[int], Observation] | None = None,
) -> EpisodeReader:
    """
    Record an episode: of each chunk of three steps as many are sent as *sent* says.

    The first joint goes on by 0.01 with each step that is sent.
    """
    at = 0.0
    with EpisodeWriter(path, header) as writer:
        for i, steps in enumerate(sent):
            looked = seen(i, episode=episode) if observe is None else observe(i)
            values = [[at + 0.01 * (step + 1), 0.0] for step in range(3)]
            chunk = proposal(np.array(values), looked.captured_at_s)
            vetted = GATE.vet(chunk, last_command=[at, 0.0])
            writer.record(
                looked,
                chunk,
                vetted,
                last_command=[at, 0.0],
                at_s=8 + i / 10,
                executed_steps=steps,
                frames={} if encoding is None else encode_frames(looked, encoding),
            )
            at += 0.01 * steps
    return EpisodeReader(path)
