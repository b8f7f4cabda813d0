"""Files of weights that lie are refused, by one clear error, quickly and in little memory."""

from __future__ import annotations

import json
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from hostile.make_weights import INDEXES, PACKS, SAFETENSORS, nothing_of, st, v3, v4, write_all

PEAK = Path("/proc/self/clear_refs")
if not PEAK.exists():
    pytest.skip("memory is measured as Linux notes it", allow_module_level=True)

SPECIAL = (
    "pipe",
    "socket",
    "folder",
    "link-to-nothing",
    "link-to-itself",
    "link-to-a-device",
    "link-to-a-pipe",
    "of-a-terabyte",
    "nowhere",
    "folder-of-two",
    "device",
    "terminal",
    "inside-a-file",
)
NAMES = (
    *SPECIAL,
    *(f"pack-{name}" for name in PACKS),
    *(f"safetensors-{name}" for name in SAFETENSORS),
    *(f"index-{name}" for name in INDEXES),
)

CHILD = """
import json, pathlib, sys, time
from vlmcore.errors import WeightsError
from vlmcore.weights.opening import open_files

def peak():
    return int(pathlib.Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0]) // 1024
def read_bytes():
    return int(pathlib.Path("/proc/self/io").read_text().split("rchar:")[1].split()[0])
report = {}
for name, path in json.loads(sys.stdin.read()).items():
    pathlib.Path("/proc/self/clear_refs").write_text("5")  # the peak starts anew
    before, started, already = peak(), time.process_time(), read_bytes()
    try:
        outcome = f"opened {open_files(path)!r}"
    except WeightsError as error:
        outcome = f"{type(error).__name__} {error}"
    except BaseException as error:
        outcome = f"FOREIGN {error!r:.500}"
    seconds = time.process_time() - started
    report[name] = [outcome, seconds, peak() - before, read_bytes() - already]
print(json.dumps(report))
"""


@pytest.fixture(scope="module")
def paths(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """
    Write every file once.
    """
    return write_all(tmp_path_factory.mktemp("hostile-weights"))


@pytest.fixture(scope="module")
def report(paths: dict[str, Path]) -> dict[str, Any]:
    """
    Open every file in one process of its own: outcome, seconds, MiB and bytes read of each.
    """
    done = subprocess.run(
        [sys.executable, "-c", CHILD],
        input=json.dumps({name: str(path) for name, path in paths.items()}),
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert 0 == done.returncode, done.stderr[-2000:]
    return dict(json.loads(done.stdout))


def test_every_file_is_tried(report: dict[str, Any]) -> None:
    """
    A case that nobody asks about would pass.
    """
    assert set(NAMES) == set(report)


@pytest.mark.parametrize("name", NAMES)
def test_a_file_that_lies_is_refused_by_an_error_that_names_it(
    report: dict[str, Any], name: str
) -> None:
    """
    One error of ours on one line that starts with a path, and nothing is opened.
    """
    outcome = report[name][0]
    kind, _, problem = outcome.partition(" ")
    expected = {"WeightsError", "CorruptWeightsError", "WeightsLimitError", "WeightsChangedError"}
    assert kind in expected, outcome
    assert problem.startswith("/"), outcome
    assert problem.isprintable(), outcome
    assert len(problem) < 1000


@pytest.mark.parametrize("name", NAMES)
def test_a_hostile_file_costs_less_than_64_mib(report: dict[str, Any], name: str) -> None:
    """
    Whatever it claims; the peak of the process, as the kernel notes it.
    """
    outcome, _, mib, _ = report[name]
    assert mib < 64, outcome


@pytest.mark.parametrize("name", NAMES)
def test_a_hostile_file_costs_less_than_a_second(report: dict[str, Any], name: str) -> None:
    """
    Time of the processor, not of a machine that others use.
    """
    outcome, seconds, _, _ = report[name]
    assert seconds < 1, outcome


@pytest.mark.parametrize("name", NAMES)
def test_no_more_than_a_header_is_read_of_a_hostile_file(report: dict[str, Any], name: str) -> None:
    """
    The payload is not touched before the file is believed.
    """
    outcome, _, _, read = report[name]
    assert read < 17 << 20, outcome


@pytest.mark.parametrize(
    "build",
    [
        v3,
        v4,
        st,
        partial(nothing_of, [0, 7], is_pack=True),
        partial(nothing_of, [7, 0], is_pack=False),
    ],
    ids=["version 3", "version 4", "safetensors", "nothing in a pack", "nothing in safetensors"],
)
def test_the_files_that_are_made_hostile_are_good_before(build: Any, tmp_path: Path) -> None:
    """
    So that it is the lie that is found.
    """
    path = tmp_path / "m"  # known by what is in it
    path.write_bytes(build())
    program = "import sys; from vlmcore.weights.opening import open_files; open_files(sys.argv[1])"
    subprocess.run([sys.executable, "-c", program, path], check=True)
