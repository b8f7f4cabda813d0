"""Tests of `vlmcore.rollout.episode_writer`: nothing that was recorded is lost."""

from __future__ import annotations

import errno
import os
import pickle
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
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
    outcome,
    proposal,
    some_steps,
    step,
    write,
)
from vlmcore.contracts.actions import ActionChunk
from vlmcore.contracts.embodiment import Reference
from vlmcore.errors import ContractError, EpisodeError, LimitExceededError, UnsafeActionError
from vlmcore.limits import EpisodeLimits
from vlmcore.rollout import _episode_paths, episode_writer
from vlmcore.rollout.episode_frames import encode_frames
from vlmcore.rollout.episode_reader import EpisodeReader
from vlmcore.rollout.episode_writer import EpisodeWriter
from vlmcore.rollout.episodes import EpisodeHeader
from vlmcore.safety import SafetyGate, SafetyLatch


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Name a file that is not there."""
    return tmp_path / "run.jsonl"


class FullDisk:
    """A file that takes some bytes and then none."""

    def __init__(self, file: Any, room: int) -> None:
        self._file, self.room = file, room

    def write(self, data: memoryview) -> int:
        taken = self._file.write(data[: self.room])
        self.room -= taken
        if not taken:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return int(taken)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


def test_a_line_is_in_the_file_when_it_was_appended(path: Path) -> None:
    """
    Another program sees it before the writer is closed.
    """
    with EpisodeWriter(path, HEADER) as writer:
        for count, each in enumerate(some_steps(), 1):
            writer.append(each)
            assert count == writer.steps == len(list(EpisodeReader(path)))
    assert 4 == path.read_bytes().count(b"\n")


def test_a_program_that_is_killed_leaves_what_it_recorded(path: Path) -> None:
    """
    Under the final name: no temporary file that somebody would have to know of.
    """
    program = (
        "import os, sys\n"
        "from episode_cases import HEADER, some_steps\n"
        "from vlmcore.rollout.episode_writer import EpisodeWriter\n"
        "writer = EpisodeWriter(sys.argv[1], HEADER)\n"
        "for step in some_steps(): writer.append(step)\n"
        "os.kill(os.getpid(), 9)\n"
    )
    tests = Path(__file__).parents[2]
    environment = {**os.environ, "PYTHONPATH": str(tests)}
    subprocess.run([sys.executable, "-c", program, path], env=environment, check=False)

    reader = EpisodeReader(path)
    assert all(a == b for a, b in zip(reader, some_steps(), strict=True))
    assert not reader.truncated
    assert [path] == list(path.parent.iterdir())


def test_a_file_that_is_there_is_never_overwritten_unless_told(path: Path) -> None:
    """
    Yesterday's episode is not lost to a name that was used twice.
    """
    before = write(path, step()).read_bytes()
    with pytest.raises(EpisodeError, match=r"run\.jsonl: exists already, expected a new name"):
        EpisodeWriter(path, HEADER)
    assert before == path.read_bytes()
    EpisodeWriter(path, HEADER, overwrite=True).close()
    assert [] == list(EpisodeReader(path))


def test_nothing_is_emptied_by_a_header_that_cannot_be_written(path: Path) -> None:
    """
    The header is made before the file is opened.
    """
    before = write(path).read_bytes()
    with pytest.raises(LimitExceededError, match=r"^max_line_bytes: got \d+, limit is 99"):
        EpisodeWriter(path, HEADER, overwrite=True, limits=EpisodeLimits(max_line_bytes=99))
    with pytest.raises(ContractError, match=r"^header: got Embodiment, expected an EpisodeHeader"):
        EpisodeWriter(path, ROBOT, overwrite=True)  # type: ignore[arg-type]
    assert before == path.read_bytes()


def test_a_line_that_does_not_fit_on_the_disk_is_taken_back(path: Path) -> None:
    """
    What came before it stays readable, and what comes after it stands on its own line.
    """
    with EpisodeWriter(path, HEADER) as writer:
        writer.append(step())
        disk: Any = FullDisk(writer._file, room=100)
        writer._file = disk
        with pytest.raises(EpisodeError, match="cannot be written: No space left on device"):
            writer.append(step())
        disk.room = 1 << 20
        writer.append(step(executed_steps=2))
        assert 2 == writer.steps
    assert [0, 2] == [each.executed_steps for each in EpisodeReader(path)]


def test_a_line_that_cannot_be_taken_back_is_the_last_one(path: Path) -> None:
    """
    Better no more lines than one in the middle of another.
    """

    class Gone(FullDisk):
        def truncate(self, _: int) -> None:
            raise OSError(errno.EIO, "gone")

    with EpisodeWriter(path, HEADER) as writer:
        writer._file = Gone(writer._file, room=9)  # type: ignore[assignment]
        with pytest.raises(EpisodeError, match="No space left on device"):
            writer.append(step())
        with pytest.raises(EpisodeError, match="is closed, expected an open writer"):
            writer.append(step())
    reader = EpisodeReader(path)
    assert [] == list(reader)
    assert reader.truncated


def test_an_interrupt_leaves_no_half_line(path: Path) -> None:
    """
    Ctrl-C, too.
    """

    class Interrupted(FullDisk):
        def write(self, data: memoryview) -> int:
            self._file.write(data[:9])
            raise KeyboardInterrupt

    with EpisodeWriter(path, HEADER) as writer:
        file, writer._file = writer._file, Interrupted(writer._file, 0)  # type: ignore[assignment]
        with pytest.raises(KeyboardInterrupt):
            writer.append(step())
        writer._file = file
    reader = EpisodeReader(path)
    assert [] == list(reader)
    assert not reader.truncated


def test_a_closed_writer_refuses(path: Path) -> None:
    """
    And may be closed again.
    """
    writer = EpisodeWriter(path, HEADER)
    writer.close()
    writer.close()
    with pytest.raises(EpisodeError, match=r"run\.jsonl: is closed, expected an open writer"):
        writer.append(step())


def test_a_writer_that_is_closed_in_the_middle_of_a_line_ends_before_it(path: Path) -> None:
    """
    As a signal handler may do that interrupts it.
    """
    writer = EpisodeWriter(path, HEADER)

    class Closing(FullDisk):
        def write(self, data: memoryview) -> int:
            writer.close()
            return int(self._file.write(data))

    writer._file = Closing(writer._file, 0)  # type: ignore[assignment]
    with pytest.raises(ValueError, match="closed file"):
        writer.append(step())
    assert [] == list(EpisodeReader(path))


def test_the_file_is_closed_when_the_block_fails(path: Path) -> None:
    """
    And what is in it stays.
    """

    def fail() -> None:
        with EpisodeWriter(path, HEADER) as writer:
            writer.append(step())
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert 1 == len(list(EpisodeReader(path)))


def test_sync_forces_every_line_onto_the_disk(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    The header, the name of the file, and each step.
    """
    synced: list[int] = []
    for module in (episode_writer, _episode_paths):
        monkeypatch.setattr(module.os, "fsync", synced.append)
    with EpisodeWriter(path, HEADER, sync=True) as writer:
        writer.append(step())
    assert (3 if hasattr(os, "O_DIRECTORY") else 2) == len(synced)


def test_threads_may_share_a_writer(path: Path) -> None:
    """
    Each line is whole, and each step has its number.
    """
    steps = some_steps()
    barrier = threading.Barrier(4)

    def append(_: int) -> None:
        barrier.wait()
        for each in steps * 5:
            writer.append(each)

    with EpisodeWriter(path, HEADER) as writer, ThreadPoolExecutor(4) as threads:
        list(threads.map(append, range(4)))
    assert 60 == writer.steps == len(list(EpisodeReader(path)))


def test_an_episode_can_be_copied_step_by_step(path: Path) -> None:
    """
    Byte by byte the same, or cut as somebody likes.
    """
    write(path, *some_steps())
    reader = EpisodeReader(path)
    twin = write(path.with_name("twin.jsonl"), *reader, header=reader.header)
    assert path.read_bytes() == twin.read_bytes()
    cut = write(path.with_name("cut.jsonl"), *list(reader)[1:], header=reader.header)
    assert 2 == len(list(EpisodeReader(cut)))


def test_record_writes_what_the_gate_gave_or_raised(path: Path) -> None:
    """
    What it is told by name is put in the order of the robot.
    """
    seen = observation()
    kept, lost = proposal([[0.05, 0.0]]), proposal([[NAN, 0.0]])
    passed, refused = outcome(kept, [0.0, 0.0]), outcome(lost, None)
    with EpisodeWriter(path, HEADER) as writer:
        named = {"y": 0.0, "x": 0.0}
        more: dict[str, Any] = {"at_s": 7.1, "last_command": named}
        writer.record(seen, kept, passed, executed_steps=1, frames=encode_frames(seen), **more)
        writer.record(seen.summary(), lost, refused, at_s=7.2, last_command=None)
        asked = GATE.check(kept, last_command=named)
        made = writer.record(seen, kept, asked, **more | {"at_s": 7.2})
    first, second, third = EpisodeReader(path)

    assert ([0.0, 0.0], 1, ["front"]) == (
        first.last_command.tolist(),  # type: ignore[union-attr]
        first.executed_steps,
        list(first.frames),
    )
    assert [[0.05, 0.0]] == first.sent.tolist()
    assert (None, None) == (second.vetted, second.last_command)
    assert "no_reference" == second.report.reason.value  # type: ignore[union-attr]
    assert third.report.safe_for_handoff
    assert third.vetted is None
    assert third == made


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"outcome": None}, "outcome: got NoneType, expected a VettedChunk, an Unsafe"),
        ({"outcome": step().report}, "outcome: got SafetySummary"),
        ({"last_command": [0.0]}, "last_command: got 1 numbers, expected 2"),
        ({"last_command": {"z": 0.0}}, r"last_command: got names with missing \['x', 'y'\]"),
        ({"observation": None}, "observation: got NoneType, expected an Observation"),
        ({"observation": proposal([[0.05, 0.0]])}, "observation: got ActionChunk, expected an Obs"),
        ({"chunk": observation()}, "chunk: got Observation, expected an ActionChunk"),
        ({"outcome": proposal([[0.05, 0.0]])}, "outcome: got ActionChunk, expected a VettedChunk"),
        ({"executed_steps": 2}, "executed_steps: got 2, expected 0 to 1"),
        ({"chunk": proposal([[0.0, 0.0]] * 2)}, "report.input_horizon: got 1, expected"),
        ({"at_s": NAN}, "at_s: got nan"),
    ],
    ids=str,
)
def test_what_does_not_belong_together_is_not_recorded(
    path: Path, change: dict[str, Any], message: str
) -> None:
    """
    And leaves no trace in the file.
    """
    chunk = proposal([[0.05, 0.0]])
    sound = {"observation": observation(), "chunk": chunk, "outcome": outcome(chunk, [0.0, 0.0])}
    more: dict[str, Any] = {"last_command": [0.0, 0.0], "at_s": 7.0}
    with EpisodeWriter(path, HEADER) as writer:
        with pytest.raises(ContractError, match=f"^{message}"):
            writer.record(**sound | more | change)
        with pytest.raises(ContractError, match=r"^step: got dict, expected an EpisodeStep"):
            writer.append({})  # type: ignore[arg-type]
        assert 0 == writer.steps
    assert 1 == len(path.read_bytes().splitlines())


SAFE, UNSAFE = proposal([[0.05, 0.0]]), proposal([[0.9, NAN]])
BLOCKING = SafetyGate(embodiment=ROBOT)
SLOWER = attrs.evolve(ROBOT, actions=attrs.evolve(ROBOT.actions, rate_hz=10))
OTHER = proposal([[0.04, 0.0]])


@pytest.mark.parametrize("chunk", [SAFE, UNSAFE], ids=["passed", "refused"])
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"chunk": OTHER}, "chunk: got another one than the outcome is of"),
        ({"last_command": [0.01, 0.0]}, r"last_command: got \[0.01, 0.0\], expected what the gate"),
        ({"last_command": None}, "last_command: got None, expected"),
        ({"gate": SafetyGate(embodiment=SLOWER)}, "outcome: got that of a gate of another action"),
        (
            {"gate": SafetyGate(embodiment=attrs.evolve(ROBOT, name="left arm"))},
            "outcome: got that of a gate of 'left arm', expected one of the header's robot, 'two",
        ),
    ],
    ids=["chunk", "last command", "no last command", "limits", "robot"],
)
def test_what_is_said_of_another_outcome_is_not_recorded(
    path: Path, chunk: ActionChunk, change: dict[str, Any], message: str
) -> None:
    """
    A vetted chunk knows what it was made of, and so does a refusal as far as it found something.
    """
    change = dict(change)
    came = outcome(chunk, [0.0, 0.0], change.pop("gate", BLOCKING))
    sound = {"chunk": chunk, "last_command": [0.0, 0.0], "at_s": 7.0, **change}
    with EpisodeWriter(path, HEADER) as writer:
        with pytest.raises(ContractError, match=f"^{message}"):
            writer.record(observation(), outcome=came, **sound)
        assert 0 == writer.steps


def test_a_last_command_that_nobody_knew_is_not_recorded(path: Path) -> None:
    """
    The gate refused because it was not told: the file must not say that it was.
    """
    refused = outcome(SAFE, None)
    with EpisodeWriter(path, HEADER) as writer:
        with pytest.raises(ContractError, match=r"^last_command: got one, expected None, as the"):
            writer.record(observation(), SAFE, refused, last_command=[0.0, 0.0], at_s=7.0)
        writer.record(observation(), SAFE, refused, last_command=None, at_s=7.0)


def test_a_chunk_that_holds_the_same_is_the_same(path: Path) -> None:
    """
    As one that went through a process or a file on its way.
    """
    with EpisodeWriter(path, HEADER) as writer:
        for chunk in (SAFE, UNSAFE):
            came = outcome(chunk, [0.0, 0.0], BLOCKING)
            twin = pickle.loads(pickle.dumps(chunk))
            writer.record(observation(), twin, came, last_command=[0.0, 0.0], at_s=7.0)
        assert 2 == writer.steps


def test_the_refusals_of_a_tripped_latch_are_recorded(path: Path) -> None:
    """
    Their report is of the chunk that tripped it, and not of the one that was refused.
    """
    latch = SafetyLatch(BLOCKING, max_consecutive=1)
    with EpisodeWriter(path, HEADER) as writer:
        for chunk in (UNSAFE, SAFE):
            with pytest.raises(UnsafeActionError) as error:
                latch.vet(chunk, last_command=[0.0, 0.0])
            writer.record(observation(), chunk, error.value, last_command=[0.0, 0.0], at_s=7.0)
    assert ["violations", "tripped"] == [
        step.report.reason.value  # type: ignore[union-attr]
        for step in EpisodeReader(path)
    ]


def test_time_does_not_go_back_in_what_is_recorded(path: Path) -> None:
    """
    Of another clock, or written down twice; steps that are copied keep their times.
    """
    vetted = outcome(SAFE, [0.0, 0.0])
    with EpisodeWriter(path, HEADER) as writer:
        for at_s in (7.0, 7.0):
            writer.record(observation(), SAFE, vetted, last_command=[0.0, 0.0], at_s=at_s)
        with pytest.raises(ContractError, match=r"^at_s: got 6.5, expected no time before that"):
            writer.record(observation(), SAFE, vetted, last_command=[0.0, 0.0], at_s=6.5)
        writer.append(step(at_s=1.0))
        assert 3 == writer.steps


def test_a_position_that_the_gate_was_not_given_is_not_recorded(path: Path) -> None:
    """
    It is known from the vetted chunk; a refusal says at least that there was none.
    """
    x = attrs.evolve(
        ROBOT.actions.dims[0], reference=Reference.DELTA, position_low=-1, position_high=1
    )
    actions = attrs.evolve(ROBOT.actions, dims=(x, ROBOT.actions.dims[1]))
    robot = attrs.evolve(ROBOT, actions=actions)
    gate = SafetyGate(embodiment=robot)
    vetted = gate.vet(SAFE, last_command=[0.0, 0.0], position={"x": 0.5})
    refused = outcome(SAFE, [0.0, 0.0], gate)
    more: dict[str, Any] = {"last_command": [0.0, 0.0], "at_s": 7.0}
    with EpisodeWriter(path, EpisodeHeader(embodiment=robot)) as writer:
        for came in (vetted, refused):
            with pytest.raises(ContractError, match=r"^position: got .*, expected"):
                writer.record(observation(), SAFE, came, position={"x": 0.4}, **more)
            writer.record(observation(), SAFE, came, **more)
    assert [{"x": 0.5}, {}] == [dict(step.position) for step in EpisodeReader(path)]


@pytest.mark.parametrize("limit", ["max_line_bytes", "max_file_bytes", "max_nodes", "max_steps"])
def test_what_a_reader_would_refuse_is_not_written(path: Path, limit: str) -> None:
    """
    With the limits at what is needed, and one below it.
    """
    long = proposal([[0.0, 0.0]] * 40)
    one = step(chunk=long, report=outcome(long, [0.0, 0.0]).report.summary(), vetted=None)  # type: ignore[attr-defined]
    lines = write(path, one).read_text().splitlines(keepends=True)
    needed = {
        "max_line_bytes": len(lines[1]),
        "max_file_bytes": len(lines[0]) + len(lines[1]),
        "max_nodes": 1 + sum(lines[1].count(mark) for mark in ",[{"),
        "max_steps": 1,
    }[limit]
    exact, below = (EpisodeLimits(**{limit: most}) for most in (needed, max(needed - 1, 1)))
    assert 1 == len(list(EpisodeReader(path, limits=exact)))
    with EpisodeWriter(path, HEADER, overwrite=True, limits=exact) as writer:
        writer.append(one)
    with EpisodeWriter(path, HEADER, overwrite=True, limits=below) as writer:
        if limit == "max_steps":
            writer.append(one)
        with pytest.raises(LimitExceededError, match=f"^{limit}: got "):
            writer.append(one)


def test_a_step_of_another_robot_is_not_appended(path: Path) -> None:
    """
    Its numbers would get names that are not theirs.
    """
    other = EpisodeHeader(embodiment=attrs.evolve(ROBOT, state_names=("x",)))
    writer = EpisodeWriter(path, other)
    with writer, pytest.raises(ContractError, match=r"^observation.state: got 3 numbers"):
        writer.append(step())


@pytest.mark.parametrize("wrong", [None, 3, "", "  ", "a\0b", b"", ["run.jsonl"]])
def test_a_path_is_text_or_a_path(wrong: Any) -> None:
    """
    For a writer and for a reader.
    """
    with pytest.raises(ContractError, match=r"^path: got .*, expected the path of a file"):
        EpisodeWriter(wrong, HEADER)
    with pytest.raises(ContractError, match=r"^path: got .*, expected the path of a file"):
        EpisodeReader(wrong)


def test_a_file_that_cannot_be_made_is_an_error_of_ours(tmp_path: Path) -> None:
    """
    With what the system says.
    """
    with pytest.raises(EpisodeError, match="cannot be written: No such file or directory"):
        EpisodeWriter(tmp_path / "no folder" / "run.jsonl", HEADER)
    with pytest.raises(EpisodeError, match="is a folder, expected a file"):
        EpisodeWriter(tmp_path, HEADER, overwrite=True)
    if hasattr(os, "mkfifo"):
        os.mkfifo(tmp_path / "pipe")
        with pytest.raises(EpisodeError, match="is not a regular file, expected a file"):
            EpisodeWriter(tmp_path / "pipe", HEADER, overwrite=True)


def test_a_header_that_does_not_fit_on_the_disk_closes_the_file(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    And leaves no half of it.
    """
    made: list[Any] = []

    def create(*arguments: Any, **options: Any) -> Any:
        made.append(FullDisk(_episode_paths.create_file(*arguments, **options), room=9))
        return made[0]

    monkeypatch.setattr(episode_writer, "create_file", create)
    with pytest.raises(EpisodeError, match="No space left on device"):
        EpisodeWriter(path, HEADER)
    assert made[0].closed
    assert b"" == path.read_bytes()


def test_a_writer_says_what_it_has_written(path: Path) -> None:
    """
    In its representation, and so does a reader say of what it is.
    """
    with EpisodeWriter(path, HEADER) as writer:
        writer.append(step())
        assert f"<EpisodeWriter of {path}, 1 steps>" == repr(writer)
    assert f"<EpisodeReader of {path}>" == repr(EpisodeReader(path))
