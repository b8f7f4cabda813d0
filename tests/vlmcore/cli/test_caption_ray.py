"""``vlmcore caption --engine ray`` as a process, killed, stopped and run again."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from caption_cases import captions, draw_many
from vlmcore.cli.commands import ExitCode

pytest.importorskip("ray", reason="Ray is not installed: nox -s ray")
pytest.importorskip("torch", reason="torch is not installed")

MANY = 150
COMMAND = (sys.executable, "-m", "vlmcore", "caption")
SETTINGS = ("--engine", "ray", "--batch-size", "1", "--max-new-tokens", "4", "--json")


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    """A folder with more images than one task of the cluster takes."""
    draw_many(tmp_path / "photos", MANY)
    return tmp_path / "photos"


@contextmanager
def begun(photos: Path) -> Iterator[subprocess.Popen[str]]:
    """Begin the job, and wait until it has written the first captions."""
    words = [*COMMAND, str(photos), *SETTINGS]
    with subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            while process.poll() is None and not captions(photos):
                time.sleep(0.05)
            assert process.poll() is None
            yield process
        finally:
            process.kill()


def finished(photos: Path) -> dict[str, int]:
    """Run the same job in one process."""
    words = [*COMMAND, str(photos), "--max-new-tokens", "4", "--json"]
    done = subprocess.run(words, check=True, capture_output=True, text=True)
    return json.loads(done.stdout)


def test_a_job_that_was_killed_goes_on_with_what_it_had(photos: Path) -> None:
    """
    Here in one process; every image has one caption, and what was kept is not asked again.
    """
    with begun(photos) as process:
        process.send_signal(signal.SIGKILL)
        process.wait()
    kept = len(captions(photos))
    assert 0 < kept < MANY
    report = finished(photos)
    assert kept <= report["done"] < MANY
    assert MANY == report["done"] + report["captioned"] == len(captions(photos))


def test_a_job_that_is_told_to_end_keeps_what_came(photos: Path) -> None:
    """
    By a scheduler, which sends SIGTERM: it ends by itself, and says how far it is.
    """
    with begun(photos) as process:
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate()
    assert ExitCode.INTERRUPTED == process.returncode, err
    told = json.loads(out)
    assert 0 < told["captioned"] == len(captions(photos)) < MANY
    assert told["captioned"] == finished(photos)["done"]
    assert "Traceback" not in err
