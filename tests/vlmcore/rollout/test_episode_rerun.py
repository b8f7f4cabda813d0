"""
Tests of `vlmcore.rollout.rerun_export`: what was written is read back with Rerun's own reader.

They run where ``rerun-sdk`` is installed, which ``nox -s rerun`` sees to.
"""

from __future__ import annotations

import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import attrs
import pytest

from episode_cases import (
    GATE,
    HEADER,
    NAN,
    ROBOT,
    observation,
    proposal,
    some_steps,
    step,
    write,
)
from vlmcore.errors import ContractError, EpisodeError
from vlmcore.rollout.episode_frames import FrameEncoding, encode_frames
from vlmcore.rollout.episode_reader import EpisodeReader
from vlmcore.rollout.episode_writer import EpisodeWriter
from vlmcore.rollout.episodes import EpisodeHeader, EpisodeStep
from vlmcore.rollout.rerun_export import export_to_rerun

pytest.importorskip("rerun")
chunks_of = pytest.importorskip(
    "rerun.chunk", reason="this rerun-sdk reads no recordings"
).RrdReader

PAGE = Path(__file__).parents[3] / "docs/how-to/record-and-replay.md"


def exported(folder: Path, *steps: EpisodeStep, header: EpisodeHeader = HEADER) -> Path:
    """Write an episode and export it."""
    reader = EpisodeReader(write(folder / "run.jsonl", *steps, header=header))
    assert len(steps) == export_to_rerun(reader, folder / "run.rrd")
    return folder / "run.rrd"


def columns(path: Path) -> dict[str, dict[str, list[Any]]]:
    """Read a recording: for each entity its columns, those that hold always left out."""
    found: dict[str, dict[str, list[Any]]] = {}
    for chunk in chunks_of(str(path)).stream().to_chunks():
        if chunk.is_static:
            continue
        batch = chunk.to_record_batch()
        entity = found.setdefault(chunk.entity_path, {})
        for name, column in zip(batch.schema.names, batch.columns, strict=True):
            entity.setdefault(name.partition(":")[2] or name, []).extend(column.to_pylist())
    return found


def series(path: Path, entity: str) -> list[tuple[int, float]]:
    """Read a series: its steps and its values, NaN as None."""
    read = columns(path).get(entity, {"step": [], "scalars": []})
    values = [value for (value,) in read["scalars"]]
    shown = [None if math.isnan(value) else round(value, 6) for value in values]
    return list(zip(read["step"], shown, strict=True))  # type: ignore[arg-type]


def test_the_viewer_takes_the_recording(tmp_path: Path) -> None:
    """
    As its own command says.
    """
    path = exported(tmp_path, *some_steps())
    command = [sys.executable, "-m", "rerun", "rrd", "verify", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "1 file verified without error" in done.stdout + done.stderr


def test_actions_are_series_with_what_was_proposed_and_what_was_sent(tmp_path: Path) -> None:
    """
    One step after the other on the timeline of steps; a chunk that was not sent takes one.
    """
    path = exported(tmp_path, *some_steps())
    assert [(0, 0.05), (1, 0.1), (2, 0.15)] == series(path, "/actions/x/proposed")
    assert [(0, 0.05), (1, 0.1), (2, 0.15)] == series(path, "/actions/x/sent")
    assert [(3, 0.2)] == series(path, "/actions/x/not_sent")
    assert [(0, 0.0), (2, 0.0), (3, 0.0)] == series(path, "/state/x")
    assert 3 == len(columns(path)["/report"]["text"])


def test_bounds_are_drawn_from_the_first_step_to_the_last(tmp_path: Path) -> None:
    """
    One point at each step of the policy, and one at the end.
    """
    path = exported(tmp_path, step([[0.01, 0.0]] * 3, executed_steps=3))
    assert [(0, -1.0), (2, -1.0)] == series(path, "/actions/y/low")
    assert [(0, 1.0), (2, 1.0)] == series(path, "/actions/y/high")


def test_violations_are_marked_where_they_are(tmp_path: Path) -> None:
    """
    What was NaN is a gap in the line, and marked where the robot was sent instead.
    """
    clamped = step([[0.05, 0.0], [0.5, 0.0], [NAN, 0.0]], executed_steps=3)
    path = exported(tmp_path, clamped)
    assert [(0, 0.05), (1, 0.5), (2, None)] == series(path, "/actions/x/proposed")
    assert [(0, 0.05), (1, 0.15), (2, 0.15)] == series(path, "/actions/x/sent")
    assert [(1, 0.5), (2, 0.15)] == series(path, "/actions/x/violations")
    assert [] == series(path, "/actions/y/violations")


def test_a_refused_chunk_is_told_in_the_log(tmp_path: Path) -> None:
    """
    NaN is drawn nowhere if nobody knows where the robot was; the log tells of it.
    """
    path = exported(tmp_path, step([[NAN, 0.3]], last_command=None))
    assert [] == series(path, "/actions/x/violations")
    assert [] == series(path, "/actions/x/not_sent")
    (text,) = columns(path)["/report"]["text"]
    assert ["test: refused (no_reference); 1 non_finite, 2 start_unknown; 0 sent"] == text
    assert [["ERROR"]] == columns(path)["/report"]["level"]


def test_the_timelines_are_step_and_time(tmp_path: Path) -> None:
    """
    Actions follow each other at the rate of the robot, from when the gate had decided.
    """
    path = exported(tmp_path, step(executed_steps=2))
    read = columns(path)["/actions/x/sent"]
    assert [7.5, 7.55] == [time.total_seconds() for time in read["time"]]
    assert [7.0] == [time.total_seconds() for time in columns(path)["/state/x"]["time"]]
    assert {"step", "time", "rerun.controls.RowId", "scalars"} == set(read)


def test_frames_are_images_and_the_instruction_is_a_text(tmp_path: Path) -> None:
    """
    Each frame at its own time, byte by byte as it was recorded; the text where it changes.
    """
    steps = []
    for instruction in ("grasp", "grasp", "let go"):
        seen = observation(frames=2, instruction=instruction)
        frames = encode_frames(seen, FrameEncoding.PNG, newest_only=False)
        steps.append(step(observation=seen.summary(), frames=frames))
    read = columns(exported(tmp_path, *steps))
    images = read["/cameras/front"]
    assert [["image/png"]] * 6 == images["media_type"]
    assert [6.9, 7.0] == [time.total_seconds() for time in images["time"][:2]]
    (blob,) = images["blob"][1]
    assert steps[0].frames["front"][1].data == bytes(blob)
    assert [["grasp"], ["let go"]] == read["/instruction"]["text"]
    assert [0, 2] == read["/instruction"]["step"]


def test_a_camera_with_two_encodings_has_two_entities(tmp_path: Path) -> None:
    """
    The viewer takes the images of one for a video, and shows no other encoding.
    """
    seen = observation()
    kinds = (FrameEncoding.PNG, FrameEncoding.JPEG, FrameEncoding.PNG)
    steps = [step(frames=encode_frames(seen, kind)) for kind in kinds]
    read = columns(exported(tmp_path, *steps))
    assert [[["image/png"]] * 2, [["image/jpeg"]]] == [
        read[entity]["media_type"] for entity in ("/cameras/front", "/cameras/front/jpeg")
    ]


def test_names_with_a_meaning_in_paths_are_escaped(tmp_path: Path) -> None:
    """
    A slash in a name is no other entity.
    """
    header = EpisodeHeader(embodiment=attrs.evolve(ROBOT, state_names=("a/b", "c d", "関節")))
    read = columns(exported(tmp_path, step(), header=header))
    assert {r"/state/a\/b", r"/state/c\ d", "/state/関節"} == {
        entity for entity in read if entity.startswith("/state")
    }


def test_a_long_episode_keeps_every_value(tmp_path: Path) -> None:
    """
    Series are written in parts.
    """
    path = exported(tmp_path, *[step([[0.01, 0.0]] * 60, executed_steps=60)] * 90)
    read = series(path, "/actions/x/sent")
    assert list(range(5400)) == [at for at, _ in read]


def test_an_episode_without_steps_opens_too(tmp_path: Path) -> None:
    """
    It says whose it is.
    """
    assert set() == {entity for entity in columns(exported(tmp_path)) if "/actions" in entity}


def test_a_file_that_is_there_is_kept_unless_told(tmp_path: Path) -> None:
    """
    And nothing unfinished is left beside it, whatever happens.
    """
    path = exported(tmp_path, step())
    before = path.read_bytes()
    reader = EpisodeReader(tmp_path / "run.jsonl")
    with pytest.raises(EpisodeError, match=r"run\.rrd: exists already, expected a new name"):
        export_to_rerun(reader, path)
    with (tmp_path / "run.jsonl").open("ab") as file:
        file.write(b"?\n")
    with pytest.raises(EpisodeError, match=r"run\.jsonl, line 3: "):
        export_to_rerun(reader, path, overwrite=True)
    assert before == path.read_bytes()
    assert {"run.jsonl", "run.rrd"} == {each.name for each in tmp_path.iterdir()}
    with pytest.raises(EpisodeError, match="cannot be written: No such file or directory"):
        export_to_rerun(reader, tmp_path / "no folder" / "run.rrd")


def test_a_time_that_rerun_cannot_hold_is_refused(tmp_path: Path) -> None:
    """
    It counts nanoseconds in 64 bits.
    """
    reader = EpisodeReader(write(tmp_path / "run.jsonl", step(at_s=1e300)))
    with pytest.raises(ContractError, match=r"^steps\[0\]\.at_s: got 1e\+300 s, expected at most"):
        export_to_rerun(reader, tmp_path / "run.rrd")


def test_the_example_of_the_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    The other tests of pages leave it out, since they have no Rerun.
    """
    monkeypatch.chdir(tmp_path)
    with EpisodeWriter("run.jsonl", HEADER) as writer:
        chunk = proposal([[0.05, 0.0]])
        vetted = GATE.vet(chunk, last_command=[0.0, 0.0])
        writer.record(observation(), chunk, vetted, last_command=[0.0, 0.0], at_s=7.0)
    block = PAGE.read_text(encoding="utf-8").partition("```py\n")[2].partition("```")[0]
    exec(compile(block, str(PAGE), "exec"), {})
    assert Path("run.rrd").stat().st_size > 0
