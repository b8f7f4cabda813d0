"""``vlmcore actions`` in this process, on recorded chunks of every kind."""

from __future__ import annotations

import io
import json
import os
import pickle
import stat
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import attrs
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rotation_cases import turn, wrist
from safety_cases import GRIPPER, OFFSET, SLIDE, TORQUE, chunk, joint, space
from vlmcore.cli import main
from vlmcore.contracts.actions import ActionStep
from vlmcore.contracts.documents import (
    action_chunk_from_json,
    action_chunk_to_json,
    action_step_to_json,
    embodiment_to_json,
)
from vlmcore.contracts.embodiment import (
    ActionDim,
    CameraSpec,
    Embodiment,
    LimitsSource,
    Reference,
)
from vlmcore.media.images import load_image
from vlmcore.safety.documents import safety_report_from_json
from vlmcore.testing.contract_strategies import hostile_json

SO100 = "lerobot_so100_so101_template"
ROBOT = Embodiment(
    name="two joints",
    state_names=("x", "y"),
    actions=space(joint(), joint(name="y")),
    cameras=(CameraSpec(name="front"),),
    limits_source=LimitsSource.MANUFACTURER,
)
SAFE = [[0.05, 0.0], [0.1, 0.05]]
UNSAFE = [[0.05, 0.0], [0.3, 2.0]]


@pytest.fixture
def files(tmp_path: Path) -> SimpleNamespace:
    """A robot with two joints, a chunk that is safe from zero, and one that is not."""
    made = SimpleNamespace(
        folder=tmp_path,
        robot=tmp_path / "robot.json",
        safe=tmp_path / "safe.json",
        unsafe=tmp_path / "unsafe.json",
        out=tmp_path / "out.json",
    )
    made.robot.write_text(embodiment_to_json(ROBOT))
    made.safe.write_text(action_chunk_to_json(chunk(SAFE, "x", "y")))
    made.unsafe.write_text(action_chunk_to_json(chunk(UNSAFE, "x", "y")))
    return made


@pytest.fixture
def check(command, files):
    """Check a file against the robot with two joints."""

    def run(file: object, *words: object, previous: str | None = "zero") -> SimpleNamespace:
        start = () if previous is None else ("--previous", previous)
        return command("actions", "check", file, "--embodiment", files.robot, *start, *words)

    return run


def test_a_chunk_that_keeps_every_limit_is_exit_code_0(check, files) -> None:
    """
    One line says so, and nothing else is said.
    """
    done = check(files.safe)

    assert (0, "") == (done.code, done.err)
    assert "safe: 2 x 2 actions of test keep every limit of two joints\n" == done.out


def test_a_chunk_that_breaks_limits_is_exit_code_5_and_told_in_words(check, files) -> None:
    """
    What is wrong, where, by how much, and how often in each dimension.
    """
    done = check(files.unsafe)

    assert 5 == done.code
    assert [
        "unsafe: 2 x 2 actions of test for two joints",
        "  refused, since it breaks limits, and --mode block changes nothing",
        "  in what came: 1 out of bounds, 2 too far from the step before",
        "  by dimension: x 1, y 1",
        "  step 1, 'x': moves by 0.25, at most 0.1 is allowed",
        "  step 1, 'y': 2 is above high, 1",
        "  step 1, 'y': moves by 2, at most 0.1 is allowed",
    ] == done.out.splitlines()


def test_report_refuses_as_block_does(check, files) -> None:
    """
    A CI job fails either way.
    """
    done = check(files.unsafe, "--mode", "report")

    assert 5 == done.code
    assert "--mode report changes nothing" in done.out


@pytest.mark.parametrize("mode", ["clamp", "hold"])
def test_what_was_made_safe_is_exit_code_0_and_said(check, files, mode) -> None:
    """
    With how much was changed, and what was wrong before.
    """
    done = check(files.unsafe, "--mode", mode)

    assert 0 == done.code
    assert f"made safe by {mode}: " in done.out
    changed = {"clamp": 2, "hold": 3}[mode]
    assert f"  {changed} of 4 values are others than those that came\n" in done.out
    assert "in what came: 1 out of bounds" in done.out


def test_a_chunk_that_is_cut_says_how_much_of_it_is_left(check, files, tmp_path) -> None:
    """
    A value that is lost ends it; what stood before is safe.
    """
    lost = tmp_path / "lost.json"
    lost.write_text("[[0.05, 0.0], [0.1, NaN], [0.1, 0.0]]")
    words = ("--mode", "clamp", "--allow-nan", "--previous", "0,0")
    done = check(lost, *words, "-o", files.out)

    assert 0 == done.code
    assert [
        "  1 of 3 steps are left: it ends before the first value that is not finite",
        "  0 of 2 values are others than those that came",
    ] == done.out.splitlines()[1:3]
    assert [[0.05, 0.0]] == json.loads(files.out.read_text())["actions"]
    assert 2 == json.loads(check(lost, *words, "--json").out)["cut_steps"]
    assert done.out == check(lost, *words, "--non-finite", "truncate").out


def test_a_chunk_is_filled_where_that_is_asked_for(check, files, tmp_path) -> None:
    """
    The step before is sent again in the dimension that is lost, and the chunk goes on.
    """
    lost = tmp_path / "lost.json"
    lost.write_text("[[0.05, 0.0], [0.1, NaN], [0.1, 0.0]]")
    words = ("--mode", "clamp", "--non-finite", "hold", "--allow-nan", "--previous", "0,0")
    assert 0 == check(lost, *words, "-o", files.out).code
    assert [[0.05, 0.0], [0.1, 0.0], [0.1, 0.0]] == json.loads(files.out.read_text())["actions"]


def test_a_chunk_of_which_nothing_is_left_is_refused_in_words(check, tmp_path) -> None:
    """
    The first step is the one that would be sent.
    """
    lost = tmp_path / "lost.json"
    lost.write_text("[[NaN, 0.0], [0.1, 0.0]]")
    words = ("--mode", "clamp", "--allow-nan", "--previous", "0,0")
    done = check(lost, *words)

    assert 5 == done.code
    assert "  refused, since a value of its first step is not finite\n" in done.out


def test_to_cut_a_chunk_takes_the_mode_that_changes_it(check, files) -> None:
    """
    The complaint names the options as they were typed, and no names of Python.
    """
    for mode in ("block", "hold", "report"):
        done = check(files.safe, "--mode", mode, "--non-finite", "truncate")
        told = f"--non-finite: got truncate with --mode {mode}, expected --mode clamp, which alone"

        assert 2 == done.code
        assert told in done.err
        assert "NonFinite" not in done.err


@pytest.mark.parametrize("mode", ["block", "clamp", "hold", "report"])
def test_a_safe_chunk_is_exit_code_0_in_every_mode(check, files, mode) -> None:
    """
    It passes unchanged.
    """
    done = check(files.safe, "--mode", mode, "-o", files.out)

    assert 0 == done.code
    assert SAFE == json.loads(files.out.read_text())["actions"]


@pytest.mark.parametrize("previous", [None, "unknown"])
def test_without_the_last_command_no_target_is_safe_and_that_is_said(
    check, files, previous
) -> None:
    """
    No start is assumed in silence.
    """
    done = check(files.safe, previous=previous)

    assert 5 == done.code
    assert "its first step cannot be checked: give --previous" in done.out
    assert "what was sent last is unknown: no target is safe\n" in done.out
    assert "2 without a last command" in done.out


def test_a_chunk_of_changes_is_safe_without_a_last_command_and_that_is_said(command, files) -> None:
    """
    Changes start from zero where nobody knows better.
    """
    robot = Embodiment(
        name="slide",
        state_names=("x",),
        actions=space(SLIDE),
        cameras=ROBOT.cameras,
        limits_source=LimitsSource.DATASET,
    )
    files.robot.write_text(embodiment_to_json(robot))
    files.safe.write_text("[[0.01], [0.02]]")
    done = command("actions", "check", files.safe, "--embodiment", files.robot)

    assert 0 == done.code
    assert "is unknown: what is no target was taken to start from zero" in done.out
    assert "no target is safe" not in done.out


@pytest.mark.parametrize(
    ("dim", "words"),
    [
        (SLIDE, "step 0, 'dx': speeds up by 0.5, at most 0.02 is allowed"),
        (OFFSET, "step 0, 'o': moves by 0.5, at most 0.1 is allowed"),
        (attrs.evolve(TORQUE, max_step=0.2), "step 0, 't': grows by 0.5 N m, at most 0.2 N m is"),
    ],
)
def test_a_step_is_told_in_the_words_of_what_it_is(command, files, dim, words) -> None:
    """
    An offset moves, a change speeds up, a torque grows.
    """
    robot = attrs.evolve(ROBOT, actions=space(dim))
    files.robot.write_text(embodiment_to_json(robot))
    files.unsafe.write_text("[[0.5]]")
    done = command(
        "actions", "check", files.unsafe, "--embodiment", files.robot, "--previous", "zero"
    )
    assert (5, True) == (done.code, words in done.out)


@pytest.mark.parametrize(
    "previous",
    ["0,0", " 0.0 , 0e0", "x=0,y=0", "y=0, x = 0", "-0.01,0", "-1e-3,.0", "zero"],
)
def test_the_last_command_is_numbers_or_names(check, files, previous) -> None:
    """
    In the order of the embodiment, or in any; a minus at the front is no option.
    """
    assert 0 == check(files.safe, previous=previous).code


@pytest.mark.parametrize("text", ["[0, 0]", '{"y": 0, "x": 0}'])
def test_the_last_command_is_a_file(check, files, text) -> None:
    """
    A list, an object, or a step as it was sent.
    """
    file = files.folder / "last.json"
    file.write_text(text)
    plain = check(files.safe, previous=str(file))
    file.write_text(
        action_step_to_json(ActionStep(source="a", step_index=3, action={"x": 0, "y": 0}))
    )
    step = check(files.safe, previous=str(file))

    assert (0, 0) == (plain.code, step.code)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("null", "holds null, expected numbers"),
        ("[0]", "got 1 numbers, expected 2"),
        ('{"x": 0}', "got names with missing ['y']"),
        ('{"action": {"x": 0}}', "$.source: is missing"),
        ("[0, NaN]", "got NaN"),
        ("3", "got int, expected an array"),
    ],
)
def test_a_file_that_holds_no_last_command_is_told_in_one_line(check, files, text, problem) -> None:
    """
    With its name; nothing in it means that nobody knows.
    """
    file = files.folder / "last.json"
    file.write_text(text)
    done = check(files.safe, previous=str(file))

    assert (1, "", 1) == (done.code, done.out, done.err.count("\n"))
    assert done.err.startswith(f"vlmcore: {file}: ")
    assert problem in done.err


def test_numbers_are_numbers_also_where_a_file_is_called_so(check, files, monkeypatch) -> None:
    """
    A stray file called ``0,0`` does not say where a robot is.
    """
    monkeypatch.chdir(files.folder)
    Path("0,0").write_text("[0.9, 0.9]")

    assert 0 == check(files.safe, previous="0,0").code


def test_the_last_command_is_used(check, files) -> None:
    """
    From elsewhere the same chunk is too far away.
    """
    done = check(files.safe, previous="0.9,0")

    assert 5 == done.code
    assert "step 0, 'x': moves by -0.85" in done.out


@pytest.mark.parametrize(
    ("previous", "problem"),
    [
        ("0", "got 1 numbers, expected 2"),
        ("0,0,0", "got 3 numbers, expected 2"),
        ("0,nan", "got nan for 'y', expected finite numbers"),
        ("x=0", "got names with missing ['y']"),
        ("x=0,z=0,y=0", "got names with missing [] and unknown ['z']"),
        ("x=0,x=0", "got 'x=0', expected name=number for each dimension, once"),
        ("x=0,0", "got '0', expected name=number"),
        ("home", "got 'home', expected numbers, name=number, a file or 'unknown'"),
        ("", "got '', expected numbers"),
        ("1_0,0", "got '1_0', expected numbers"),
    ],
)
def test_a_last_command_that_is_none_is_a_mistake_of_the_command_line(
    check, files, previous, problem
) -> None:
    """
    The exit code is 2, and the option is named.
    """
    done = check(files.safe, previous=previous)

    assert (2, "") == (done.code, done.out)
    assert f"--previous: {problem}" in done.err


def test_only_the_steps_that_will_be_executed_are_looked_at(check, files) -> None:
    """
    The first one of the unsafe chunk is safe.
    """
    done = check(files.unsafe, "--execution-horizon", "1", "-o", files.out)
    more = check(files.safe, "--execution-horizon", "9")

    assert 0 == done.code
    assert UNSAFE[:1] == json.loads(files.out.read_text())["actions"]
    assert (0, "there are 2 steps only, and not 9\n") == (more.code, more.err)


def test_json_is_the_safety_report_document(check, files) -> None:
    """
    Nothing else is on standard output, safe or not.
    """
    unsafe, safe = check(files.unsafe, "--json"), check(files.safe, "--json")

    assert (5, 0) == (unsafe.code, safe.code)
    summary = safety_report_from_json(unsafe.out)
    assert (3, False) == (summary.total, summary.safe_for_handoff)
    assert safety_report_from_json(safe.out).safe_for_handoff


def test_the_limits_of_a_template_are_called_so(command, files) -> None:
    """
    A note on standard error, which ``--quiet`` leaves out.
    """
    files.safe.write_text(json.dumps([[0.0] * 6]))
    words = ("actions", "check", files.safe, "--embodiment", SO100, "--previous", "zero")
    told, quiet = command(*words), command(*words, "-q")

    assert f"the limits of {SO100} are a template's, certified by nobody\n" == told.err
    assert (0, "") == (quiet.code, quiet.err)


def test_the_run_of_a_real_policy_gives_its_counts(command, files) -> None:
    """
    SmolVLA on an SO-100: five steps that are too long, and nothing else.
    """
    rows = [
        [0.06258623, -0.11250310, -0.13713294, -0.06168950, -0.00926633, -0.08506130],
        [0.15420279, -0.05678255, -0.20159233, 0.06734322, -0.00563951, -0.09575561],
        [0.16482556, -0.07453565, -0.17410603, 0.02461835, -0.00256573, 0.15842065],
        [0.27048433, -0.09272483, -0.19934477, 0.05491992, 0.05286619, 0.07594281],
    ]
    np.save(files.folder / "run.npy", np.array(rows, np.float32))
    words = ("--embodiment", "LeRobot SO-100 / SO-101 template", "--previous", "zero", "--json")
    done = command("actions", "check", files.folder / "run.npy", *words)

    assert {
        "non_finite_values": 0,
        "out_of_bounds_values": 0,
        "per_step_delta_values": 5,
        "total": 5,
    } == json.loads(done.out)["violations"]


@pytest.mark.parametrize(
    "answer",
    [
        SAFE,
        [SAFE],
        {"actions": SAFE},
        {"action": SAFE, "latency_ms": 12.5},
        [{"actions": SAFE}, {"served_by": "test"}],
    ],
)
def test_the_answer_of_a_policy_is_a_chunk(check, files, answer) -> None:
    """
    In each shape that policies send; when it was observed does not matter here.
    """
    files.safe.write_text(json.dumps(answer))
    done = check(files.safe, "-o", files.out)

    assert 0 == done.code
    assert SAFE == action_chunk_from_json(files.out.read_text(), observed_at_s=0).values.tolist()


def test_named_parts_of_an_answer_are_declared(check, files) -> None:
    """
    In whatever order they came; and so is what is no action.
    """
    files.safe.write_text('{"b": [[0.02]], "a": [[0.01]], "state": [3, 4]}')
    bare = check(files.safe)
    done = check(files.safe, "--streams", "a=1,b=1", "--ignored", "state", "-o", files.out)

    assert 1 == bare.code
    assert "declare streams=" in bare.err
    assert (0, [[0.01, 0.02]]) == (done.code, json.loads(files.out.read_text())["actions"])


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", ">f4", "int32"])
def test_an_array_of_numpy_is_a_chunk(check, files, dtype) -> None:
    """
    In the order of the embodiment; what it is called does not matter.
    """
    np.save(files.folder / "a.npy", np.zeros((2, 2), dtype))
    (files.folder / "a.npy").rename(files.folder / "recorded.bin")

    assert 0 == check(files.folder / "recorded.bin").code


def test_nan_in_an_array_is_found_by_the_gate(check, files) -> None:
    """
    It is what the check is for.
    """
    np.save(files.folder / "a.npy", [[np.nan, 0.0], [np.inf, 0.0]])
    done = check(files.folder / "a.npy")

    assert 5 == done.code
    assert "in what came: 2 not finite" in done.out
    assert "step 0, 'x': is nan, expected a finite number" in done.out
    assert "step 1, 'x': is inf, expected a finite number" in done.out


@pytest.mark.parametrize(
    "text",
    [
        "[[NaN, 0], [0, 0]]",
        "[[null, 0], [0, 0]]",
        '{"actions": [[0, 0], [0, -Infinity]]}',
        '[{"actions": [[null, 0]]}, null]',
        '{"source": "a", "action_names": ["x", "y"], "actions": [[NaN, 0], [0, 0]]}',
        '{"source": "a", "action_names": ["x", "y"], "actions": [[0, null]]}',
        '{"source": "a", "action_names": ["x", "y"], "actions": [[0, "NaN"]]}',
        '[["-Infinity", 0]]',
    ],
)
def test_nan_in_json_is_found_by_the_gate_if_it_is_asked_for(check, files, text) -> None:
    """
    JSON does not know it; the complaint names the way out, and then it is one violation.
    """
    files.safe.write_text(text)
    strict, asked = check(files.safe), check(files.safe, "--allow-nan", "--json")

    assert (1, "") == (strict.code, strict.out)
    assert "--allow-nan lets the gate find them" in strict.err
    assert 5 == asked.code
    assert 1 == json.loads(asked.out)["violations"]["non_finite_values"]


def test_allowing_nan_changes_nothing_where_there_is_none(check, files) -> None:
    """
    A document is read as without it.
    """
    plain, asked = check(files.unsafe, "--json"), check(files.unsafe, "--json", "--allow-nan")

    assert (5, plain.out) == (asked.code, asked.out)


def test_names_in_another_order_are_reordered_on_request_only(check, files) -> None:
    """
    Numbers are not given to other names than their own.
    """
    files.safe.write_text(action_chunk_to_json(chunk([[0.0, 0.9]], "y", "x")))
    refused = check(files.safe, previous="x=0.9,y=0")
    mended = check(files.safe, "--reorder", "-o", files.out, previous="x=0.9,y=0")

    assert 1 == refused.code
    assert "got y, x, expected x, y, in this order: --reorder puts them in it" in refused.err
    assert (0, [[0.9, 0.0]]) == (mended.code, json.loads(files.out.read_text())["actions"])


def test_other_names_are_refused(check, files) -> None:
    """
    The chunk is one of another robot.
    """
    files.safe.write_text(action_chunk_to_json(chunk([[0.0, 0.0]], "x", "z")))
    done = check(files.safe, "--reorder")

    assert 1 == done.code
    assert "action_names: got x, z, expected x, y, as the embodiment names them" in done.err


def test_what_leaves_is_written_as_a_chunk_document(check, files) -> None:
    """
    It says when it was observed if what came did, and passes the gate as it is.
    """
    done = check(files.unsafe, "--mode", "clamp", "-o", files.out)
    written = action_chunk_from_json(files.out.read_text())
    again = check(files.out)

    assert (0, f"{files.out}: 2 steps that may be executed\n") == (done.code, done.err)
    assert ("test", 12.5) == (written.source, written.observed_at_s)
    assert np.allclose([[0.05, 0.0], [0.15, 0.1]], written.values)
    assert 0 == again.code


def test_a_time_that_nobody_told_is_not_written(check, files) -> None:
    """
    A reader of the file has to say how old it is, and is not told that it is of time 0.
    """
    files.safe.write_text(json.dumps(SAFE))
    check(files.safe, "-o", files.out)

    assert "observed_at_s" not in json.loads(files.out.read_text())


@pytest.mark.parametrize("mode", ["block", "report"])
def test_nothing_is_written_when_refused(check, files, mode) -> None:
    """
    What was there before stays, and the complaint says so, even if quiet.
    """
    files.out.write_text("of yesterday")
    done = check(files.unsafe, "--mode", mode, "-o", files.out, "-q")

    assert (5, "of yesterday") == (done.code, files.out.read_text())
    assert f"vlmcore: {files.out}: is not written, nothing is safe\n" == done.err


def test_the_file_itself_can_be_replaced_and_nothing_else_is_left(check, files) -> None:
    """
    It is written beside and renamed; its permissions are those of a new file, and links stay.
    """
    link = files.folder / "link.json"
    link.symlink_to(files.unsafe)
    before = sorted(files.folder.iterdir())
    mask = os.umask(0o027)
    try:
        done = check(files.unsafe, "--mode", "clamp", "-o", link)
    finally:
        os.umask(mask)

    assert 0 == done.code
    assert sorted(files.folder.iterdir()) == before
    assert link.is_symlink()
    assert 0o640 == stat.S_IMODE(files.unsafe.stat().st_mode)
    assert 0 == check(files.unsafe).code


@pytest.mark.parametrize(
    ("output", "problem"),
    [
        ("", "is a folder"),
        ("nowhere/out.json", "nowhere', does not exist"),
        ("safe.json/out.json", "Not a directory"),
        ("o" * 300, "File name too long"),
    ],
)
def test_an_output_that_cannot_be_written_is_exit_code_1(check, files, output, problem) -> None:
    """
    It is looked at first: the verdict was told, and then that its result was lost.
    """
    before = sorted(files.folder.iterdir())
    done = check(files.safe, "-o", files.folder / output)

    assert (1, "") == (done.code, done.out)
    assert problem in done.err
    assert before == sorted(files.folder.iterdir())


@pytest.mark.parametrize("work", ["check", "plot"])
def test_a_place_to_write_to_is_looked_at_before_anything_is_read(command, files, work) -> None:
    """
    A recording of a gigabyte was read first.
    """
    words = ("-o", "/nonexistent/x", "--embodiment", files.robot)
    done = command("actions", work, files.folder / "no.json", *words)

    assert (1, "") == (done.code, done.out)
    assert done.err.startswith("vlmcore: /nonexistent/x: its folder, '/nonexistent', does not")


def test_what_may_be_executed_is_written_though_nobody_reads_the_verdict(child, files) -> None:
    """
    ``check ... -o F | head -n 1`` printed its line, and there was no F.
    """
    reader, writer = os.pipe()
    os.close(reader)
    words = ("--embodiment", files.robot, "--previous", "zero", "-o", files.out)
    process = child("actions", "check", *map(str, (files.safe, *words)), stdout=writer)
    os.close(writer)

    assert 141 == process.wait(60)
    assert SAFE == json.loads(files.out.read_text())["actions"]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
@pytest.mark.parametrize(
    "words", [("actions", "check"), ("catalog", "vlm"), ("--help",), ("actions", "plot", "--help")]
)
def test_standard_output_on_a_full_disk_is_told_in_one_line(child, files, words) -> None:
    """
    It was a traceback, of every command.
    """
    if "check" in words:
        words = (*words, files.safe, "--embodiment", files.robot, "--previous", "zero")
    with open("/dev/full", "wb") as full:  # noqa: PTH123 - it is no path to look at
        process = child(*map(str, words), stdout=full)
        _, told = process.communicate(timeout=60)

    assert 1 == process.returncode
    assert b"vlmcore: standard output: cannot be written: No space left on device\n" == told


def test_a_device_is_not_replaced_by_a_file(check, files) -> None:
    """
    Root could do that to /dev/null.
    """
    fifo = files.folder / "fifo"
    os.mkfifo(fifo)
    done = check(files.safe, "-o", fifo)

    assert 1 == done.code
    assert "is no regular file" in done.err
    assert stat.S_ISFIFO(fifo.stat().st_mode)


def test_a_disk_that_is_full_leaves_what_was_there(check, files, monkeypatch) -> None:
    """
    Half a file is worse than none.
    """

    def full(_number: int) -> None:
        raise OSError(28, "No space left on device")

    files.out.write_text("of yesterday")
    monkeypatch.setattr("os.fsync", full)
    done = check(files.safe, "-o", files.out)

    assert (1, "of yesterday") == (done.code, files.out.read_text())
    assert "No space left on device" in done.err
    assert [] == [file for file in files.folder.iterdir() if file.suffix == ".part"]


def deep() -> bytes:
    """Nest lists."""
    return b"[" * 100_000 + b"]" * 100_000


def header(shape: str, descr: str = "<f8") -> bytes:
    """Write the header of an array, as it should not be."""
    text = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}".ljust(117) + "\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text.encode()


def saved(array: object) -> bytes:
    """Write an array as numpy.save does."""
    buffer = io.BytesIO()
    np.save(buffer, np.asarray(array))
    return buffer.getvalue()


EPISODE = b'{"schema": "comfyui-vlm/robot-episode", "version": 1}\n{"step": 0}\n{"step": 1}\n'


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"", "is empty"),
        (b" \n", "got Expecting value at line 2, column 1, expected JSON"),
        (b"\xff\xfe[\x00]\x00", "is text in UTF-16, expected UTF-8"),
        (b"\xef\xbb\xbf", "expected JSON"),
        (b"caf\xe9", "got text that is not UTF-8"),
        (pickle.dumps([0.0]), "is binary, expected JSON or one array of numpy.save"),
        (b"PK\x03\x04rest", "is a zip or .npz archive"),
        (deep(), "nested more than 32 deep"),
        (b'{"actions": [[0, 0]], "actions": [[0, 0]]}', "got the key 'actions' twice"),
        (b"[[1e999, 0]]", "expected numbers that float64 can hold"),
        (b'[["0", 0]]', "expected a number"),
        (b"[[true, 0]]", "expected a number"),
        (b"[[0, 0, 0]]", "expected axes [H, D] with 2 dimensions"),
        (b"[[0, 0], [0]]", "expected that of response[0]"),
        (b"{}", "got the keys none, expected actions"),
        (b'{"error": "out of\\u001b[2J memory"}', "holds an error of the policy: out of"),
        (b'{"arm": [[0, 0]]}', "streams 'arm', in an order that is not known"),
        (b'{"schema": "comfyui-vlm/robot-embodiment"}', "$.schema: got 'comfyui-vlm/robot-emb"),
        (EPISODE, "holds one JSON document a line, as episodes do; expected one chunk"),
        (saved(["a"]), "got values of <U1, expected numbers"),
        (saved([[1 + 2j]]), "got values of complex128, expected numbers"),
        (header("(1, 2)", "|O") + bytes(16), "got values of object, expected numbers"),
        (header("(10000000000, 2)") + bytes(16), "got 16 bytes of values for shape"),
        (header("(-1, -2)") + bytes(16), "got 16 bytes of values for shape"),
        (header("(" * 50), "got a header that cannot be read"),
        (b"\x93NUMPY\x07\x00", "got a header that cannot be read"),
        (saved([[0.0, 0.0]])[:-1], "got 15 bytes of values for shape (1, 2)"),
        (saved([[0.0, 0.0]]) * 2, "bytes of values for shape (1, 2)"),
        (saved(np.zeros((0, 2))), "got 0 steps, expected 1 to 4,096"),
    ],
)
def test_a_file_that_holds_no_chunk_is_told_in_one_line(check, files, data, problem) -> None:
    """
    The exit code is 1, the file is named, and nothing is on standard output.
    """
    files.safe.write_bytes(data)
    done = check(files.safe)

    assert (1, "", 1) == (done.code, done.out, done.err.count("\n"))
    assert done.err.startswith(f"vlmcore: {files.safe}: ")
    assert problem in done.err
    assert "\x1b" not in done.err


def test_the_mark_that_windows_writes_is_no_fault(check, files) -> None:
    """
    PowerShell begins UTF-8 with it.
    """
    files.safe.write_bytes(b"\xef\xbb\xbf" + files.safe.read_bytes())

    assert 0 == check(files.safe).code


def test_all_faults_of_a_document_are_in_the_line(check, files) -> None:
    """
    Each with its place.
    """
    files.safe.write_text('{"schema": "comfyui-vlm/robot-actions", "actions": 3, "horizon": 0}')
    done = check(files.safe)

    assert 1 == done.err.count("\n")
    for place in ("$.source", "$.action_names", "$.actions", "$.horizon"):
        assert f"{place}: " in done.err


@pytest.mark.parametrize(
    ("name", "problem"),
    [("nothing.json", "does not exist"), ("", "is a folder"), ("fifo", "is no regular file")],
)
def test_what_is_no_file_is_told_in_one_line(check, files, name, problem) -> None:
    """
    A named pipe would keep the command waiting.
    """
    os.mkfifo(files.folder / "fifo")
    done = check(files.folder / name)

    assert (1, "", 1) == (done.code, done.out, done.err.count("\n"))
    assert problem in done.err


def test_a_file_that_is_too_large_is_not_read(check, files) -> None:
    """
    Its size is asked for first.
    """
    with files.safe.open("wb") as file:
        file.truncate(1 << 40)
    done = check(files.safe)

    assert 1 == done.code
    assert "is larger than" in done.err


def test_names_cannot_control_the_terminal(check, files) -> None:
    """
    Neither that of the file nor those in it.
    """
    name = f"{files.folder}/\x1b[2J\nvlmcore: all fine.json"
    Path(name).write_text(files.safe.read_text())
    missing = check(name + "x")
    files.unsafe.write_text('{"\\u001b[31m": [[0, 0]]}')
    inside = check(files.unsafe)
    done = check(name, "--json")

    assert "\x1b" not in missing.err + inside.err + done.out
    assert (1, 1) == (missing.err.count("\n"), inside.err.count("\n"))


def test_an_answer_in_a_file_with_such_a_name_is_not_called_by_it(check, files) -> None:
    """
    The source of a chunk is one line of characters.
    """
    name = f"{files.folder}/\x1b[2J.json"
    Path(name).write_text(json.dumps(SAFE))

    assert "recorded actions" == json.loads(check(name, "--json").out)["policy_source"]


def test_standard_input_is_a_chunk(check, files, monkeypatch) -> None:
    """
    ``-`` reads JSON and arrays.
    """
    for data in (files.safe.read_bytes(), saved(SAFE)):
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(data)))
        assert 0 == check("-").code


def test_standard_input_of_a_terminal_is_not_waited_for(check, monkeypatch) -> None:
    """
    Nobody types a chunk.
    """

    class Keyboard(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr("sys.stdin", Keyboard())

    assert (1, "vlmcore: -: nothing is piped into standard input\n") == (
        (done := check("-")).code,
        done.err,
    )


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("--mode", "fix"), "argument --mode: invalid choice: 'fix'"),
        (("--execution-horizon", "0"), "--execution-horizon: got 0, expected a whole number"),
        (("--execution-horizon", "1.5"), "argument --execution-horizon: invalid int value"),
        (("--embodiment", "so100"), f"--embodiment: got 'so100', did you mean '{SO100}'?"),
        (("--embodiment", "\0"), "--embodiment: got"),
        (("--streams", "a"), "--streams: got 'a', expected name=dimensions for each, once"),
        (("--streams", "a=1,a=1"), "--streams: got 'a=1'"),
        (("--streams", "a=x"), "--streams: got 'a=x'"),
        (("--streams", "a=" + "9" * 5000), "--streams: got 'a=999"),
        (("--position", "x=0"), "--position: got names with missing [] and unknown ['x']"),
        (("--modes", "clamp"), "unrecognized arguments: --modes"),
    ],
)
def test_a_wrong_command_line_is_exit_code_2(check, files, words, problem) -> None:
    """
    The option is named, and nothing is done.
    """
    done = check(files.safe, *words)

    assert (2, "") == (done.code, done.out)
    assert problem in done.err


def test_what_has_no_default_has_to_be_said(command, files) -> None:
    """
    The robot is not guessed, and neither is what to do with actions.
    """
    alone = command("actions")
    robot = command("actions", "check", files.safe)

    assert (2, 2) == (alone.code, robot.code)
    assert "required: COMMAND" in alone.err
    assert "required: --embodiment" in robot.err


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (None, "does not exist"),
        ("\ufeff[]", "got list, expected an object"),
        ("{}", "robot-embodiment: $.name: is missing"),
        ("[", "expected JSON"),
    ],
)
def test_an_embodiment_that_cannot_be_read_is_told_in_one_line(check, files, text, problem) -> None:
    """
    With its name, and not that of the chunk.
    """
    files.robot.unlink()
    if text is not None:
        files.robot.write_text(text)
    done = check(files.safe)

    assert (1, "", 1) == (done.code, done.out, done.err.count("\n"))
    assert done.err.startswith(f"vlmcore: {files.robot}: ")
    assert problem in done.err


@pytest.mark.parametrize("word", ["nope.json", "nope.yaml", "robots/nope", "-"])
def test_a_robot_in_a_file_that_is_not_there_is_not_taken_for_a_template(
    check, files, word
) -> None:
    """
    Five templates were listed, and not that the file does not exist.
    """
    done = check(files.safe, "--embodiment", word)

    assert 1 == done.code
    assert done.err.startswith(f"vlmcore: {word}: does not exist")


def test_the_exit_codes_of_actions_are_about_actions(command) -> None:
    """
    They spoke of images and models.
    """
    for words in (("check",), ("plot",)):
        codes = command("actions", *words, "--help").out.partition("exit codes:")[2]
        assert codes
        assert not {"image", "model"} & set(codes.split())


def test_numbers_that_look_the_same_are_written_until_they_differ(check, files) -> None:
    """
    "1 is above high, 1" helps nobody.
    """
    files.safe.write_text("[[1.0000001, 0]]")
    done = check(files.safe, previous="1,0")

    assert "step 0, 'x': 1.0000001 is above high, 1\n" in done.out


def test_of_many_violations_the_first_are_described_and_all_are_counted(check, files) -> None:
    """
    A person reads ten lines, and not eight thousand.
    """
    files.safe.write_text(json.dumps([[5.0, 5.0]] * 4096))
    done = check(files.safe)

    assert "8192 out of bounds" in done.out
    assert len(done.out.splitlines()) < 20
    assert "  and 8184 more\n" in done.out


def test_a_rotation_is_told_by_its_name_and_in_radians(command, files) -> None:
    """
    Its first number moves by nothing that a person can act on; and zeros are no rotation.
    """
    robot = attrs.evolve(ROBOT, actions=wrist())
    files.robot.write_text(embodiment_to_json(robot))
    files.safe.write_text(json.dumps([turn(0.5).tolist(), [0, 0, 0, 2]]))
    words = ("actions", "check", files.safe, "--embodiment", files.robot, "--previous")
    done = command(*words, "0,0,0,1")

    assert "step 0, 'wrist': turns by 0.5 rad, at most 0.1 rad is allowed\n" in done.out
    assert "step 1, 'wrist': is no rotation (norm 2, limit 1.01)\n" in done.out
    zeros = command(*words, "zero")
    assert (2, True) == (zeros.code, "zeros are no rotation" in zeros.err)


def test_a_position_between_levels_is_told(command, files) -> None:
    """
    With the level that is nearest.
    """
    robot = Embodiment(
        name="hand",
        state_names=("gripper",),
        actions=space(GRIPPER),
        cameras=ROBOT.cameras,
        limits_source=LimitsSource.DATASET,
    )
    files.robot.write_text(embodiment_to_json(robot))
    files.safe.write_text("[[0.37], [1]]")
    words = ("--embodiment", files.robot, "--previous", "0")
    done = command("actions", "check", files.safe, *words)

    assert "step 0, 'gripper': 0.37 is no level, the nearest is 0" in done.out


def test_where_changes_lead_is_checked_from_a_measured_position(command, files) -> None:
    """
    Sixteen small changes add up to a way that leads out.
    """
    slide = ActionDim(
        name="dx",
        reference=Reference.DELTA,
        low=-0.05,
        high=0.05,
        max_step=0.1,
        position_low=-1.0,
        position_high=1.0,
    )
    robot = attrs.evolve(ROBOT, actions=space(slide), limits_source=LimitsSource.DATASET)
    files.robot.write_text(embodiment_to_json(robot))
    files.safe.write_text(json.dumps([[0.05]] * 16))
    words = ("actions", "check", files.safe, "--embodiment", files.robot, "--previous", "zero")
    near, far = (command(*words, "--position", f"dx={at}") for at in (0.1, 0.5))
    unknown, nan = command(*words), command(*words, "--position", "dx=nan")

    assert (0, 5, 5, 2) == (near.code, far.code, unknown.code, nan.code)
    assert "step 10, 'dx': leads to 1.05, beyond the position 1\n" in far.out
    assert "nobody knows where what it moves is: give --position" in unknown.out
    assert "--position: position['dx']: got nan, expected a finite number" in nan.err


def test_a_plot_is_a_png_of_the_size_that_was_asked_for(command, files) -> None:
    """
    With the bounds and what breaks them, from an array too.
    """
    pytest.importorskip("PIL")
    np.save(files.folder / "a.npy", UNSAFE)
    words = ("--embodiment", files.robot, "--previous", "zero", "--width", 640, "--height", 300)
    done = command("actions", "plot", files.folder / "a.npy", "-o", files.folder / "a.png", *words)

    assert (0, "", "2 values break a limit, and are marked\n") == (done.code, done.out, done.err)
    picture = load_image(files.folder / "a.png")
    assert (300, 640, 3) == picture.shape
    assert len(np.unique(picture.reshape(-1, 3), axis=0)) > 10


def test_a_document_names_its_dimensions_and_can_be_drawn_alone(command, files) -> None:
    """
    An array cannot: its dimensions have no names.
    """
    pytest.importorskip("PIL")
    alone = command("actions", "plot", files.unsafe, "-o", files.folder / "a.PNG")
    files.safe.write_text("[[0, 0]]")
    bare = command("actions", "plot", files.safe, "-o", files.folder / "b.png")

    assert (0, "") == (alone.code, alone.err)
    assert load_image(files.folder / "a.PNG").size
    assert 1 == bare.code
    assert "does not name its dimensions: --embodiment does" in bare.err
    assert not (files.folder / "b.png").exists()


def test_a_plot_replaces_what_was_there_and_is_a_png_whatever_it_is_called(command, files) -> None:
    """
    As other tools do; the note says so.
    """
    pytest.importorskip("PIL")
    files.out.write_text("of yesterday")
    done = command("actions", "plot", files.safe, "-o", files.out)

    assert 0 == done.code
    assert files.out.read_bytes().startswith(b"\x89PNG")
    assert f"{files.out}: is a PNG, whatever its name says\n" == done.err


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("--width", "9000"), "--width and --height: got 9000, limit is 4096"),
        (("--width", "3"), "--width: got 3, expected at least"),
        (("--height", "0"), "--height: got 0, expected a whole number"),
        (("--previous", "zero"), "--previous: got a value without --embodiment"),
        (("--position", "x=0"), "--position: got a value without --embodiment"),
        (("--execution-horizon", "1"), "--execution-horizon: got a value without --embodiment"),
    ],
)
def test_a_plot_with_a_wrong_command_line_is_exit_code_2(command, files, words, problem) -> None:
    """
    Nothing is written.
    """
    pytest.importorskip("PIL")
    done = command("actions", "plot", files.safe, "-o", files.out, *words)

    assert 2 == done.code
    assert problem in done.err
    assert not files.out.exists()


def test_a_plot_needs_a_place(command, files) -> None:
    """
    There is no default for it.
    """
    done = command("actions", "plot", files.safe)

    assert 2 == done.code
    assert "required: --output/-o" in done.err


def test_without_pillow_a_plot_says_what_to_install(files) -> None:
    """
    The exit code is 4, and nothing is written; the check needs no picture.
    """
    program = (
        "import sys; sys.modules['PIL'] = None; from vlmcore.cli import main; sys.exit(main())"
    )

    def run(*words: object) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-c", program, "actions", *map(str, words)]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    plot = run("plot", files.safe, "-o", files.out)
    check = run("check", files.safe, "--embodiment", files.robot, "--previous", "zero")

    assert (4, 0) == (plot.returncode, check.returncode)
    assert 'pip install "vlmcore[plot]"' in plot.stderr
    assert not files.out.exists()


@given(
    data=st.binary(max_size=200)
    | hostile_json().map(lambda text: text.encode("utf-8", "surrogatepass"))
    | st.binary().map(saved)
)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_bytes_give_a_verdict_or_one_line(capsys, files, data) -> None:
    """
    No traceback, whatever was recorded.
    """
    files.safe.write_bytes(data)
    words = ["--embodiment", str(files.robot), "--previous", "zero", "--allow-nan", "-q"]
    code = main(["actions", "check", str(files.safe), *words])
    done = capsys.readouterr()

    assert code in {0, 1, 5}
    assert (code == 1) == (done.err.count("\n") == 1)
    assert (code == 1) == (done.out == "")
