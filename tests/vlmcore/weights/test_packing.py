"""Tests of `vlmcore.weights.packing`."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from golden.weights.cases import all_dtypes, one_dtype
from vlmcore.embedded import model_directory
from vlmcore.errors import (
    ContractError,
    CorruptWeightsError,
    WeightsCancelledError,
    WeightsChangedError,
    WeightsError,
)
from vlmcore.weights.dtypes import DType
from vlmcore.weights.opening import open_files
from vlmcore.weights.packing import pack, unpack
from vlmcore.weights.verifying import verify
from vlmcore.weights.writing import write_pack, write_safetensors

GOLDEN = Path(__file__).parents[2] / "golden" / "weights"
EMBEDDED = model_directory() / "model.safetensors"


def write_shards(folder: Path) -> Path:
    """Write a checkpoint of two files and their index."""
    arrays = all_dtypes()
    names, where = sorted(arrays), {}
    for number, part in enumerate((names[:40], names[40:]), 1):
        file = f"model-{number:05}-of-00002.safetensors"
        write_safetensors({name: arrays[name] for name in part}, folder / file, manifest=False)
        where.update(dict.fromkeys(part, file))
    index = folder / "model.safetensors.index.json"
    index.write_text(json.dumps({"metadata": {"total_size": 1}, "weight_map": where}))
    return index


def bytes_of(path: Path) -> dict[str, tuple[DType, tuple[int, ...], bytes]]:
    """Read every tensor."""
    with open_files(path) as files:
        return {
            each.name: (
                each.dtype,
                each.shape,
                os.pread(files.fd(each.file), each.nbytes, each.start),
            )
            for each in files.index.entries
        }


def test_a_model_is_packed_and_unpacked_to_the_bytes_that_it_had(tmp_path: Path) -> None:
    """
    The embedded model, which transformers saved.
    """
    pack(model_directory(), tmp_path / "m.flashpack")
    unpack(tmp_path / "m.flashpack", tmp_path / "m.safetensors")
    assert EMBEDDED.read_bytes() == (tmp_path / "m.safetensors").read_bytes()


def test_several_files_become_one_pack(tmp_path: Path) -> None:
    """
    Every tensor of every file, of every type.
    """
    index = write_shards(tmp_path)
    pack(index, tmp_path / "one.flashpack")
    assert bytes_of(index) == bytes_of(tmp_path / "one.flashpack")


def test_a_pack_of_golden_safetensors_is_one_that_flashpack_would_write(tmp_path: Path) -> None:
    """
    Given the tensors in the order of the file.
    """
    with open_files(GOLDEN / "all-dtypes.safetensors") as files:
        arrays = {entry.name: all_dtypes()[entry.name] for entry in files.index.entries}
    write_pack(arrays, tmp_path / "a.flashpack")
    pack(GOLDEN / "all-dtypes.safetensors", tmp_path / "b.flashpack")
    assert (tmp_path / "a.flashpack").read_bytes() == (tmp_path / "b.flashpack").read_bytes()


def test_a_manifest_names_the_source_and_its_digests(tmp_path: Path) -> None:
    """
    As the hub says them, so that they can be compared.
    """
    written = pack(model_directory(), tmp_path / "m.flashpack", revision="abc")
    assert written.manifest is not None
    origin = written.manifest.provenance
    assert origin is not None
    assert ("model", "abc") == (origin.checkpoint, origin.revision)
    assert hashlib.sha256(EMBEDDED.read_bytes()).hexdigest() == origin.files[0].sha256
    with open_files(written.path) as files:
        assert len(files.index) == verify(files).tensors


def test_a_checkpoint_in_the_cache_of_a_hub_is_known_by_its_repository(tmp_path: Path) -> None:
    """
    Its files are links there, which are followed.
    """
    snapshot = tmp_path / "models--some--model" / "snapshots" / "0123abc"
    blobs = snapshot.parents[1] / "blobs"
    snapshot.mkdir(parents=True)
    blobs.mkdir()
    write_safetensors(one_dtype(), blobs / "digest", manifest=False)
    (snapshot / "model.safetensors").symlink_to("../../blobs/digest")
    written = pack(snapshot, tmp_path / "m.flashpack")
    assert written.manifest is not None
    assert written.manifest.provenance is not None
    assert "some/model" == written.manifest.provenance.checkpoint
    assert "0123abc" == written.manifest.provenance.revision


def test_nothing_is_converted_unless_somebody_says_so(tmp_path: Path) -> None:
    """
    And then floating-point numbers only: whole numbers stay whole.
    """
    arrays = {
        "weight": np.array([1.0, 1.00390625, 3.0], np.float32),
        "ids": np.array([1 << 40], np.int64),
        "flag": np.array([True]),
    }
    write_safetensors(arrays, tmp_path / "m.safetensors")
    pack(tmp_path / "m.safetensors", tmp_path / "same.flashpack")
    pack(tmp_path / "m.safetensors", tmp_path / "other.flashpack", dtype="bfloat16")
    same, other = bytes_of(tmp_path / "same.flashpack"), bytes_of(tmp_path / "other.flashpack")
    assert bytes_of(tmp_path / "m.safetensors") == same
    assert (DType.INT64, DType.BOOL) == (other["ids"][0], other["flag"][0])
    found = np.frombuffer(other["weight"][2], DType.BFLOAT16.numpy).astype(np.float32)
    assert [1.0, 1.0, 3.0] == found.tolist()


def test_a_number_that_does_not_fit_is_an_error_and_not_infinity(tmp_path: Path) -> None:
    """
    It names the tensor; infinity that was there stays.
    """
    arrays = {"fine": np.float32([np.inf, np.nan, 1]), "large": np.float32([1, 1e6])}
    write_safetensors(arrays, tmp_path / "m.safetensors", manifest=False)
    with pytest.raises(WeightsError, match="'large': got numbers beyond float16"):
        pack(tmp_path / "m.safetensors", tmp_path / "m.flashpack", dtype="float16")
    assert [tmp_path / "m.safetensors"] == list(tmp_path.iterdir())


@pytest.mark.parametrize("dtype", ["int8", "float8_e4m3fn", "complex64", "float3"])
def test_weights_are_converted_to_wide_floating_point_numbers_only(
    dtype: str, tmp_path: Path
) -> None:
    """
    The rest needs scales, which no format here has.
    """
    with pytest.raises(ContractError, match="dtype"):
        pack(EMBEDDED, tmp_path / "m.flashpack", dtype=dtype)


def test_a_source_is_not_its_own_target(tmp_path: Path) -> None:
    """
    By whatever name.
    """
    path, link = tmp_path / "m.safetensors", tmp_path / "link"
    write_safetensors(one_dtype(), path)
    link.symlink_to(path)
    for target in (path, link):
        with pytest.raises(WeightsError, match="is a file of the source"):
            unpack(path, target)


def test_a_source_that_changes_meanwhile_becomes_no_pack(tmp_path: Path) -> None:
    """
    What was read of it is of two files.
    """
    path = tmp_path / "m.safetensors"
    write_safetensors(one_dtype(), path, manifest=False)

    def touch(done: int, total: int) -> None:
        if done == total:
            os.utime(path, ns=(1, 1))

    with pytest.raises(WeightsChangedError, match="was written to"):
        pack(path, tmp_path / "m.flashpack", progress=touch)
    assert [path] == list(tmp_path.iterdir())


def test_a_corrupt_source_becomes_no_pack(tmp_path: Path) -> None:
    """
    It is refused before there is a file.
    """
    path = tmp_path / "m.safetensors"
    path.write_bytes(EMBEDDED.read_bytes()[:-1])
    with pytest.raises(CorruptWeightsError, match="it was cut"):
        pack(path, tmp_path / "m.flashpack")
    assert [path] == list(tmp_path.iterdir())


def test_a_pack_that_is_cancelled_leaves_nothing(tmp_path: Path) -> None:
    """
    No file, no thread.
    """

    class Later:
        asked = 0

        @property
        def cancelled(self) -> bool:
            self.asked += 1
            return self.asked > 5

    with pytest.raises(WeightsCancelledError):
        pack(model_directory(), tmp_path / "m.flashpack", cancel=Later())
    assert [] == list(tmp_path.iterdir())


def test_links_are_followed_and_kept(tmp_path: Path) -> None:
    """
    What the target leads to is replaced.
    """
    (tmp_path / "link").symlink_to("m.flashpack")
    pack(EMBEDDED, tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "m.flashpack").is_file()


CHILD = """
import pathlib, resource, signal, sys
from vlmcore.weights.packing import pack
source, target, what = sys.argv[1:]
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it
if what == "full":
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))
def progress(done, total):
    if what not in ("full", "whole") and done > total // 2:
        signal.raise_signal(getattr(signal, what))
def peak():
    return int(pathlib.Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0])
pack(source, target + ".warm", manifest=True) if what == "whole" else None
before = peak()
pack(sys.argv[-3] + ".large" if what == "whole" else source, target, progress=progress)
print(peak() - before)
"""


def run(*words: Any) -> subprocess.CompletedProcess[str]:
    """Pack in a process of its own."""
    command = [sys.executable, "-c", CHILD, *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="files without a name are Linux's")
@pytest.mark.parametrize("ending", ["SIGTERM", "SIGKILL", "SIGINT", "full"])
def test_what_ends_a_pack_early_leaves_no_half_of_it_and_the_old_one_as_it_was(
    ending: str, tmp_path: Path
) -> None:
    """
    Signals that are asked nicely or not, and a disk that is full.
    """
    target = tmp_path / "m.flashpack"
    pack(GOLDEN / "one-dtype.safetensors", target)
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    done = run(EMBEDDED, target, ending)
    assert 0 != done.returncode
    if ending == "full":
        assert "WeightsError" in done.stderr
        assert "File too large" in done.stderr
    else:
        assert done.returncode in (-getattr(signal, ending), 1)
    assert before == {path: path.read_bytes() for path in tmp_path.iterdir()}


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="memory is measured as on Linux")
def test_a_pack_takes_no_more_memory_than_some_pieces(tmp_path: Path) -> None:
    """
    Of 400 MB, as of 4 MB.
    """
    small, large = tmp_path / "s", tmp_path / "s.large"
    write_safetensors({"w": np.ones(10, np.float32)}, small, manifest=False)
    arrays = {f"w{i}": np.ones(25_000_000, np.float32) for i in range(4)}
    write_safetensors(arrays, large, manifest=False)
    done = run(small, tmp_path / "m.flashpack", "whole")
    assert 0 == done.returncode, done.stderr
    assert int(done.stdout) < 96 << 10


FULL = """
import pathlib, sys
from vlmcore.errors import WeightsError
from vlmcore.weights.packing import pack
disk, small, large = map(pathlib.Path, sys.argv[1:])
target, other = disk / "m.flashpack", disk / "other"
pack(small, target)
before = {path: path.read_bytes() for path in disk.iterdir()}
def fill(done, total):
    if done > total // 2 and not other.exists():
        with other.open("wb", buffering=0) as file:
            try:
                while file.write(bytes(4096)):
                    pass
            except OSError:
                pass
try:
    pack(large, target, progress=fill)
except WeightsError as error:
    print(error)
other.unlink()
assert before == {path: path.read_bytes() for path in disk.iterdir()}
"""
MOUNTED = 'mount -t tmpfs -o size=6m none "$1" && exec "$0" -c "$2" "$1" "$3" "$4"'


def may_mount() -> bool:
    """Say whether this system lets a process have a small disk of its own."""
    command = ["unshare", "-Urm", "mount", "-t", "tmpfs", "none", "/mnt"]
    try:
        return 0 == subprocess.run(command, capture_output=True, check=False).returncode
    except OSError:
        return False


@pytest.mark.skipif(not may_mount(), reason="no small disk can be had here")
def test_a_disk_that_others_fill_meanwhile_leaves_the_old_pack_as_it_was(tmp_path: Path) -> None:
    """
    There was room when the pack was begun; the error says what happened, and is no SIGBUS.
    """
    words = [tmp_path, FULL, GOLDEN / "one-dtype.safetensors", EMBEDDED]
    done = subprocess.run(
        ["unshare", "-Urm", "sh", "-c", MOUNTED, sys.executable, *map(str, words)],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert 0 == done.returncode, done.stderr
    assert f"{tmp_path}/m.flashpack: No space left on device\n" == done.stdout


@pytest.mark.skipif(os.name != "posix", reason="modes are those of POSIX")
def test_a_pack_is_as_readable_as_any_new_file(tmp_path: Path) -> None:
    """
    And not for its owner only, as upstream's are.
    """
    (tmp_path / "any").touch()
    pack(GOLDEN / "one-dtype.safetensors", tmp_path / "m.flashpack")
    assert 1 == len({path.stat().st_mode for path in tmp_path.iterdir()})
