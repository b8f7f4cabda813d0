"""Small files that claim or unpack to much are refused, or read, quickly and in little memory."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from hostile.make_images import HARMLESS, REFUSED, png, write_all

pytest.importorskip("resource", reason="memory is measured with getrusage")

FOLDERS = Path(__file__).parents[1]
NAMES = (*REFUSED, *HARMLESS, "file-of-a-terabyte")

CHILD = """
import json, pathlib, resource, sys, time
import numpy
from PIL import Image
from vlmcore.errors import VlmcoreError
from vlmcore.media import image_info, load_frames, load_image
from vlmcore.media import _pillow

MIB = 1 << 20
def peak():
    # What getrusage tells starts at the peak of the parent; the kernel's own note does not.
    status = pathlib.Path("/proc/self/status")
    if status.exists():
        return int(status.read_text().split("VmHWM:")[1].split()[0]) // 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // MIB
load_image(sys.argv[2])  # what decoding one image loads is not counted
before = peak()
report = {}
for name, path in json.loads(sys.argv[1]).items():
    outcomes = []
    started = time.process_time()
    for read in (load_image, load_frames, image_info):
        try:
            value = read(path)
            outcomes.append(list(getattr(value, "shape", [])) or type(value).__name__)
        except VlmcoreError as error:
            outcomes.append(f"{type(error).__name__} {error}")
        except BaseException as error:
            outcomes.append(f"FOREIGN {error!r}")
    report[name] = [outcomes, time.process_time() - started, peak() - before]
print(json.dumps(report))
"""


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Read every file in one process of its own, and tell outcome, seconds and MiB of each."""
    folder = tmp_path_factory.mktemp("hostile")
    paths = {name: str(path) for name, path in write_all(folder).items()}
    plain = folder / "plain"
    plain.write_bytes(png())
    command = [sys.executable, "-W", "ignore", "-c", CHILD, json.dumps(paths), str(plain)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert 0 == done.returncode, done.stderr[-2000:]
    return dict(json.loads(done.stdout))


@pytest.mark.parametrize("name", [*REFUSED, "file-of-a-terabyte"])
def test_a_file_that_claims_too_much_is_refused_by_an_error_that_names_it(
    report: dict[str, Any], name: str
) -> None:
    """
    One error of ours that starts with the file's name, whatever the decoder would have made of it.
    """
    (image, frames, _), _, _ = report[name]
    for outcome in (image, frames):
        assert str(outcome).startswith("Media"), outcome
        assert f"/{name}: " in outcome


@pytest.mark.parametrize("name", HARMLESS)
def test_what_hides_beside_a_picture_does_not_stop_it_from_being_read(
    report: dict[str, Any], name: str
) -> None:
    """
    Text, profiles and EXIF that unpack to gigabytes are left alone; the pixels are there.
    """
    (image, _, info), _, _ = report[name]
    assert image in ([8, 8, 3], [16, 16, 3])
    assert "ImageInfo" == info


@pytest.mark.parametrize("name", NAMES)
def test_a_hostile_file_costs_less_than_a_second_and_64_mib(
    report: dict[str, Any], name: str
) -> None:
    """
    Reading it as an image, as frames and for its header, all three; memory is counted over all.
    """
    outcomes, seconds, mib = report[name]
    assert seconds < 1, outcomes
    assert mib < 64, outcomes
