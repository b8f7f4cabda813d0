"""Tests of `vlmcore.rollout.flight_recorder`."""

from __future__ import annotations

import itertools
import logging
import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import attrs
import numpy as np
import pytest

from episode_cases import GATE, HEADER, NAN, ROBOT, observation, outcome
from vlmcore.contracts.actions import ActionChunk
from vlmcore.contracts.observation import Observation
from vlmcore.errors import ContractError, EpisodeError, PolicyError
from vlmcore.policy.interface import ObservingPolicy, OffloadingPolicy, PolicyInfo
from vlmcore.rollout.episode_calls import EpisodeFailure, digest_of
from vlmcore.rollout.episode_reader import EpisodeReader
from vlmcore.rollout.episode_writer import EpisodeWriter
from vlmcore.rollout.episodes import EpisodeStep
from vlmcore.rollout.flight_recorder import FlightRecorder, FramesKept
from vlmcore.rollout.recorded_policies import EpisodePolicy
from vlmcore.testing import ScriptedPolicy, check_policy, example_observation

INFO = PolicyInfo(name="scripted", action_names=("x", "y"))
PLAN = [[0.05, 0.0], [0.1, 0.0]]


def recorder(*answers: Any, **options: Any) -> FlightRecorder:
    """Record a script; the clock goes on by a quarter of a second at each reading."""
    ticks = (i / 4 for i in itertools.count())
    policy = ScriptedPolicy(list(answers) or [PLAN], info=INFO)
    return FlightRecorder(policy, ROBOT, **{"clock": lambda: next(ticks), **options})


def writer(path: Path) -> EpisodeWriter:
    """Write an episode of the robot of these tests."""
    return EpisodeWriter(path / "run.jsonl", HEADER)


def steps_in(path: Path) -> list[EpisodeStep]:
    """Read it."""
    return list(EpisodeReader(path / "run.jsonl"))


def test_a_recorder_is_the_policy_that_it_records() -> None:
    """
    It keeps every promise of one.
    """
    info = attrs.evolve(INFO, state_names=ROBOT.state_names, cameras=ROBOT.cameras)

    def make() -> FlightRecorder:
        return FlightRecorder(ScriptedPolicy([PLAN], info=info), ROBOT, clock=lambda: 0.0)

    check_policy(make, example_observation(ROBOT), embodiment=ROBOT)


class Able(ScriptedPolicy):
    """A policy that gives memory back, and looks back."""

    def __init__(self) -> None:
        super().__init__([PLAN], info=INFO)
        self.told: list[object] = []

    def offload(self) -> None:
        self.told.append("offload")

    def steps_back(self) -> int:
        return 3

    def observe(self, observation: Observation, /) -> None:
        self.told.append(observation)


def test_a_recorder_can_what_the_policy_can() -> None:
    """
    A policy that is recorded gives its memory back while nobody asks, as another one does.
    """
    policy, seen = Able(), example_observation(ROBOT)
    recorder = FlightRecorder(policy, ROBOT, clock=lambda: 0.0)
    assert isinstance(recorder, OffloadingPolicy)
    assert isinstance(recorder, ObservingPolicy)
    recorder.offload()
    recorder.observe(seen)
    assert (["offload", seen], 3) == (policy.told, recorder.steps_back())

    recorder = FlightRecorder(ScriptedPolicy([PLAN], info=INFO), ROBOT, clock=lambda: 0.0)
    assert not isinstance(recorder, (OffloadingPolicy, ObservingPolicy))


def test_each_call_is_recorded_with_its_digest_and_how_long_it_took() -> None:
    """
    And with what a gate says that knows no last command.
    """
    recording = recorder()
    chunk = recording.infer(observation())

    (step,) = recording.recent
    assert isinstance(step, EpisodeStep)
    assert step.call is not None
    assert (digest_of(observation()), 0.25) == (step.call.digest, step.call.took_s)
    assert step.chunk == chunk
    assert step.report.reason is not None
    assert step.report.reason.value == "first_step_unchecked"
    assert (None, None, 0) == (step.vetted, step.last_command, step.executed_steps)


def test_the_gate_that_looks_starts_from_what_is_told_of_the_observation() -> None:
    """
    Then a replay can start there, too.
    """
    recording = recorder(last_command=lambda seen: seen.state[:2])
    recording.infer(observation())
    (step,) = recording.recent
    assert isinstance(step, EpisodeStep)
    assert step.report.safe_for_handoff
    assert step.last_command is not None
    assert [0.0, 0.0] == step.last_command.tolist()


def test_a_function_that_fails_stops_no_robot() -> None:
    """
    It is one of the recording only.
    """
    recording = recorder(last_command=lambda _seen: {}["elbow"])
    assert recording.infer(observation()).horizon == 2
    assert recording.lost == 1


def test_what_is_answered_is_on_disk_before_the_caller_has_it(tmp_path: Path) -> None:
    """
    Whatever happens to the program next.
    """
    with writer(tmp_path) as file:
        recording = recorder(writer=file)
        recording.infer(observation())
        assert [PLAN] == [step.chunk.values.tolist() for step in steps_in(tmp_path)]


def test_a_program_that_is_killed_leaves_what_it_recorded(tmp_path: Path) -> None:
    """
    It is not asked before: nothing waits in memory.
    """
    program = """
import os, signal, sys
sys.path.insert(0, sys.argv[2])
from pathlib import Path
from rollout.test_flight_recorder import *
file = writer(Path(sys.argv[1]))
recording = recorder(PLAN, PolicyError("scripted", "tired"), PLAN, writer=file)
recording.infer(observation())
try:
    recording.infer(observation())
except PolicyError:
    pass
recording.infer(observation())
os.kill(os.getpid(), signal.SIGKILL)
"""
    tests = Path(__file__).parents[1]
    path = os.pathsep.join([str(tests), str(tests.parent), *sys.path])
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path), str(tests)],
        env={**os.environ, "PYTHONPATH": path},
        check=False,
    )
    assert -signal.SIGKILL == done.returncode
    events = list(EpisodeReader(tmp_path / "run.jsonl").events())
    assert [EpisodeStep, EpisodeFailure, EpisodeStep] == [type(event) for event in events]


def test_a_call_that_fails_is_recorded_and_fails() -> None:
    """
    With the words of the error, and without its tokens.
    """
    error = PolicyError("far", "refused: Authorization: Bearer sekret")
    recording = recorder(error)
    with pytest.raises(PolicyError) as raised:
        recording.infer(observation())

    (failure,) = recording.recent
    assert raised.value is error
    assert isinstance(failure, EpisodeFailure)
    assert failure.error == "PolicyError: far: refused: Authorization: [REDACTED]"
    assert failure.call is not None
    assert failure.call.took_s == 0.25


def test_errors_of_every_kind_are_recorded() -> None:
    """
    Also one without words, and one that is no exception of a policy.
    """
    recording = recorder(KeyError(), RuntimeError("x" * 5000))
    for kind in (KeyError, RuntimeError):
        with pytest.raises(kind):
            recording.infer(observation())
    first, second = recording.recent
    assert isinstance(first, EpisodeFailure)
    assert isinstance(second, EpisodeFailure)
    assert first.error == "KeyError"
    assert len(second.error) <= 1000


def test_ctrl_c_during_an_inference_is_recorded_too() -> None:
    """
    It tells what the policy was shown when somebody had enough.
    """

    class Interrupted(ScriptedPolicy.__mro__[1]):  # type: ignore[name-defined,misc]
        def infer(self, _seen: Any) -> Any:
            raise KeyboardInterrupt

        def reset(self) -> None: ...
        def close(self) -> None: ...

    recording = FlightRecorder(Interrupted([PLAN], info=INFO), ROBOT, clock=lambda: 0.0)
    with pytest.raises(KeyboardInterrupt):
        recording.infer(observation())
    (failure,) = recording.recent
    assert isinstance(failure, EpisodeFailure)
    assert failure.error == "KeyboardInterrupt"


def test_the_word_of_the_gate_is_recorded_with_the_answer(tmp_path: Path) -> None:
    """
    A vetted chunk, with how much of it was sent, or a refusal.
    """
    with writer(tmp_path) as file:
        recording = recorder(PLAN, [[NAN, 9.0]], writer=file, is_vetted=True)
        for last, sent in (([0.0, 0.0], 2), (None, 0)):
            chunk = recording.infer(observation())
            recording.note(outcome(chunk, last), last_command=last, executed_steps=sent)
    kept, refused = steps_in(tmp_path)
    assert kept.sent.tolist() == PLAN
    assert kept.last_command is not None
    assert kept.call is not None
    assert refused.vetted is None
    assert refused.report.reason is not None


@pytest.mark.parametrize("end", ["infer", "reset", "close"])
def test_an_answer_that_no_gate_was_asked_about_is_written_in_the_end(
    end: str, tmp_path: Path
) -> None:
    """
    The next call, a reset and a close are the end of waiting.
    """
    recording = recorder(writer=writer(tmp_path), is_vetted=True)
    recording.infer(observation())
    assert steps_in(tmp_path) == []
    {
        "infer": lambda: recording.infer(observation(8.0)),
        "reset": recording.reset,
        "close": recording.close,
    }[end]()
    assert [7.0] == [step.chunk.observed_at_s for step in steps_in(tmp_path)]
    recording.close()


@pytest.mark.parametrize("is_vetted", [False, True])
def test_a_word_about_no_answer_is_refused(*, is_vetted: bool) -> None:
    """
    It would be recorded with another one.
    """
    recording = recorder(is_vetted=is_vetted)
    chunk = recording.infer(observation())
    if is_vetted:
        recording.note(GATE.check(chunk, last_command=None), last_command=None)
    with pytest.raises(ContractError, match="no answer waits"):
        recording.note(GATE.check(chunk, last_command=None), last_command=None)


def test_a_word_about_another_answer_is_counted_and_stops_nothing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """
    A robot goes on; who looks at the recording finds out.
    """
    recording = recorder(is_vetted=True)
    chunk = recording.infer(observation())
    other = attrs.evolve(chunk, values=chunk.values + 0.01)
    with caplog.at_level(logging.WARNING):
        recording.note(outcome(other, [0.0, 0.0]), last_command=[0.0, 0.0])
    assert recording.lost == 1
    assert recording.problem.startswith("chunk: got another one")
    assert "is not recorded" in caplog.text


def test_a_full_disk_stops_no_robot(tmp_path: Path) -> None:
    """
    The answer is given all the same, and the ring goes on.
    """
    file = writer(tmp_path)
    recording = recorder(writer=file)
    file.close()  # as a disk that is gone
    assert PLAN == recording.infer(observation()).values.tolist()
    assert (1, 1) == (recording.lost, len(recording.recent))
    assert "is closed" in recording.problem


def test_answers_that_are_no_chunks_of_the_robot_are_given_and_counted() -> None:
    """
    What a policy answers is the business of others.
    """
    other = ActionChunk(values=[[1.0]], names=("z",), source="test", observed_at_s=0.0)
    recording = recorder(other)
    assert recording.infer(observation()).names == ("z",)
    assert (1, ()) == (recording.lost, recording.recent)


@pytest.mark.parametrize("is_vetted", [False, True])
def test_what_is_no_observation_is_refused_by_the_policy_and_counted(*, is_vetted: bool) -> None:
    """
    There is nothing to record of it.
    """
    recording = recorder(is_vetted=is_vetted)
    with pytest.raises(ContractError, match="observation"):
        recording.infer("look")  # type: ignore[arg-type]
    assert recording.lost == 1


def test_the_ring_keeps_the_last_calls_and_dumps_them(tmp_path: Path) -> None:
    """
    As an episode, after something went wrong.
    """
    recording = recorder(PLAN, PolicyError("scripted", "tired"), [[0.5, 0.5]], keep=2)
    recording.infer(observation(1.0))
    with pytest.raises(PolicyError):
        recording.infer(observation(2.0))
    recording.infer(observation(3.0))

    assert recording.dump(tmp_path / "crash.jsonl") == 2
    assert recording.recent == tuple(EpisodeReader(tmp_path / "crash.jsonl").events())
    with pytest.raises(EpisodeError, match="exists already"):
        recording.dump(tmp_path / "crash.jsonl")


def test_the_ring_is_bounded_in_bytes_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    """
    Frames that are kept whole would fill the memory otherwise.
    """
    recording = recorder(frames=FramesKept.PNG)
    recording.infer(observation())
    (step,) = recording.recent
    assert isinstance(step, EpisodeStep)
    size = len(step.frames["front"][0].data)
    monkeypatch.setattr("vlmcore.rollout.flight_recorder._MOST_FRAME_BYTES", 3 * size)
    for _ in range(5):
        recording.infer(observation())
    assert len(recording.recent) == 3


@pytest.mark.parametrize(
    ("kept", "shape"),
    [
        (FramesKept.THUMBNAIL, (48, 96, 3)),
        (FramesKept.JPEG, (100, 200, 3)),
        (FramesKept.PNG, (100, 200, 3)),
    ],
)
def test_frames_are_kept_as_it_was_said(kept: FramesKept, shape: tuple[int, ...]) -> None:
    """
    The newest of each camera; as PNG to the last pixel.
    """
    pytest.importorskip("PIL")
    frames = np.random.default_rng(0).integers(0, 256, (2, 100, 200, 3), np.uint8)
    seen = attrs.evolve(observation(), images={"front": frames})
    recording = recorder(frames=kept)
    recording.infer(seen)
    (step,) = recording.recent
    assert isinstance(step, EpisodeStep)
    (frame,) = step.frames["front"]
    assert shape == frame.pixels().shape
    assert frame.frame_index == 1
    if kept is FramesKept.PNG:
        assert np.array_equal(frames[1], frame.pixels())


def test_no_pixels_are_kept_unless_it_is_said() -> None:
    """
    They are of people's homes.
    """
    recording = recorder()
    recording.infer(observation())
    (step,) = recording.recent
    assert isinstance(step, EpisodeStep)
    assert dict(step.frames) == {}


def test_what_was_recorded_plays_as_a_policy(tmp_path: Path) -> None:
    """
    With the digests compared: answer by answer, failures too.
    """
    with writer(tmp_path) as file:
        recording = recorder(PLAN, PolicyError("scripted", "tired"), [[NAN, 0.5]], writer=file)
        for at_s in (1.0, 2.0, 3.0):
            with suppress(PolicyError):
                recording.infer(observation(instruction=f"go to {at_s}"))
    replayed = EpisodePolicy(EpisodeReader(tmp_path / "run.jsonl"), is_checked=True)
    assert PLAN == replayed.infer(observation(instruction="go to 1.0")).values.tolist()
    with pytest.raises(PolicyError, match=r"it failed when it was recorded: .*tired"):
        replayed.infer(observation(instruction="go to 2.0"))
    last = replayed.infer(observation(instruction="go to 3.0"))
    assert np.array_equal(last.values, [[NAN, 0.5]], equal_nan=True)


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"clock": 7}, "clock"),
        ({"keep": 0}, "keep"),
        ({"last_command": [0.0, 0.0]}, "last_command"),
        ({"keep": 1 << 30}, "max_steps"),
        ({"frames": "png"}, "frames"),
        ({"is_vetted": 1}, "is_vetted"),
        ({"writer": "run.jsonl"}, "writer"),
    ],
)
def test_arguments_are_checked(options: dict[str, Any], field: str) -> None:
    """
    At once, and not when something has gone wrong.
    """
    with pytest.raises(ContractError, match=field):
        recorder(**options)
    with pytest.raises(ContractError, match="policy: got type, expected a Policy"):
        FlightRecorder(ScriptedPolicy, ROBOT, clock=lambda: 0.0)  # type: ignore[arg-type]


def test_a_writer_of_another_robot_is_refused(tmp_path: Path) -> None:
    """
    Each step would be.
    """
    other = attrs.evolve(HEADER, embodiment=attrs.evolve(ROBOT, name="other"))
    with (
        EpisodeWriter(tmp_path / "run.jsonl", other) as file,
        pytest.raises(ContractError, match="writer: got one of 'other'"),
    ):
        recorder(writer=file)


def test_closing_closes_the_policy_and_the_file(tmp_path: Path) -> None:
    """
    Twice is no error.
    """
    recording = recorder(writer=writer(tmp_path))
    recording.close()
    recording.close()
    with pytest.raises(PolicyError, match="closed"):
        recording.infer(observation())
