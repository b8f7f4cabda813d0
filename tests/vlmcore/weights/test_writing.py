"""Tests of `vlmcore.weights.writing`."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from golden.weights.cases import BOTH, SHAPES, all_dtypes, numbers, one_dtype
from vlmcore.errors import ContractError, CorruptWeightsError, WeightsCancelledError, WeightsError
from vlmcore.weights.dtypes import DType
from vlmcore.weights.manifest import coming_manifest_path, manifest_path, read_manifest
from vlmcore.weights.opening import open_files
from vlmcore.weights.verifying import verify
from vlmcore.weights.writing import write_pack, write_safetensors

GOLDEN = Path(__file__).parents[2] / "golden" / "weights"


def read_all(path: Path) -> dict[str, Any]:
    """Read every tensor of a file as an array."""
    with open_files(path) as files:
        return {
            entry.name: np.frombuffer(
                os.pread(files.fd(0), entry.nbytes, entry.start), entry.dtype.storage
            )
            .reshape(entry.shape)
            .view(entry.dtype.numpy if entry.dtype is not DType.COMPLEX32 else entry.dtype.storage)
            for entry in files.index.entries
        }


def assert_same(expected: dict[str, Any], found: dict[str, Any]) -> None:
    """Compare types, shapes and bytes."""
    assert expected.keys() == found.keys()
    for name, array in expected.items():
        assert (array.dtype, array.shape) == (found[name].dtype, found[name].shape), name
        assert array.tobytes() == found[name].tobytes(), name


@pytest.mark.parametrize(
    ("golden", "arrays", "align_bytes"),
    [
        ("one-dtype.flashpack", one_dtype, 128),
        ("all-dtypes.flashpack", all_dtypes, 128),
        ("aligned-to-0.flashpack", one_dtype, 0),
        ("aligned-to-24.flashpack", all_dtypes, 24),
    ],
)
def test_a_pack_has_the_bytes_that_flashpack_writes(
    golden: str, arrays: Any, align_bytes: int, tmp_path: Path
) -> None:
    """
    Of one type and of all of them, with scalars and tensors of no numbers.
    """
    path = tmp_path / "m.flashpack"
    write_pack(arrays(), path, align_bytes=align_bytes)
    assert (GOLDEN / golden).read_bytes() == path.read_bytes()


@pytest.mark.parametrize(
    ("golden", "arrays", "metadata"),
    [
        ("one-dtype.safetensors", one_dtype, None),
        ("all-dtypes.safetensors", all_dtypes, {"format": "pt"}),
    ],
)
def test_safetensors_have_the_bytes_that_safetensors_writes(
    golden: str, arrays: Any, metadata: dict[str, str] | None, tmp_path: Path
) -> None:
    """
    With and without metadata.
    """
    path = tmp_path / "m.safetensors"
    write_safetensors(arrays(), path, metadata=metadata)
    assert (GOLDEN / golden).read_bytes() == path.read_bytes()


@pytest.mark.parametrize("golden", sorted(path.name for path in GOLDEN.glob("*-*.*")))
def test_what_upstream_wrote_is_read(golden: str) -> None:
    """
    Every type, every shape, the same bytes.
    """
    assert_same(
        one_dtype() if "one" in golden or "to-0" in golden else all_dtypes(),
        read_all(GOLDEN / golden),
    )


@pytest.mark.parametrize(
    "array",
    [
        np.arange(24, dtype=np.float32).reshape(2, 3, 4).transpose(2, 0, 1),
        np.arange(24, dtype=np.float32)[::-2],
        np.broadcast_to(np.float32(3), (2, 3)),
        np.arange(6, dtype=">f4").reshape(2, 3),
        np.asfortranarray(np.arange(6, dtype=np.int64).reshape(2, 3)),
        np.arange(3_000_000, dtype=np.float32).reshape(1500, 2000).T,
        np.zeros((2, 1_500_000), np.float32)[:, ::-1],
    ],
    ids=["transposed", "backwards", "broadcast", "big-endian", "fortran", "large", "wide"],
)
def test_a_tensor_that_is_not_contiguous_is_written_in_c_order(array: Any, tmp_path: Path) -> None:
    """
    Upstream raises; nobody should have to copy it first.
    """
    write_pack({"w": array}, tmp_path / "m.flashpack")
    found = read_all(tmp_path / "m.flashpack")["w"]
    assert np.array_equal(array, found)


@given(
    shape=st.lists(st.integers(0, 4), max_size=4),
    dtypes=st.lists(st.sampled_from(tuple(DType)), min_size=1, max_size=4),
    align_bytes=st.integers(0, 300),
)
def test_any_pack_that_is_written_is_read_the_same(
    shape: list[int], dtypes: list[DType], align_bytes: int, tmp_path_factory: Any
) -> None:
    """
    Any types, shapes and alignments: what is laid out passes the checks of what is read.
    """
    arrays = {
        f"{i}": numbers(dtype, tuple(shape), i)
        for i, dtype in enumerate(dtypes)
        if dtype is not DType.COMPLEX32
    }
    arrays["one"] = np.float32([1])
    path = tmp_path_factory.mktemp("any") / "m.flashpack"
    write_pack(arrays, path, align_bytes=align_bytes, manifest=False)
    assert_same(arrays, read_all(path))


@given(shape=st.lists(st.integers(0, 4), max_size=4), dtypes=st.lists(st.sampled_from(BOTH)))
def test_any_safetensors_that_are_written_are_read_the_same(
    shape: list[int], dtypes: list[DType], tmp_path_factory: Any
) -> None:
    """
    Also none at all.
    """
    arrays = {f"{i}": numbers(dtype, tuple(shape), i) for i, dtype in enumerate(dtypes)}
    path = tmp_path_factory.mktemp("any") / "m.safetensors"
    write_safetensors(arrays, path, manifest=False)
    assert_same(arrays, read_all(path))


def test_two_names_of_one_array_are_both_written(tmp_path: Path) -> None:
    """
    Tied weights, as upstream writes them; nothing is dropped.
    """
    tied = np.ones(3, np.float32)
    write_pack({"a": tied, "b": tied}, tmp_path / "m.flashpack")
    assert_same({"a": tied, "b": tied}, read_all(tmp_path / "m.flashpack"))


def test_a_scalar_stays_a_scalar(tmp_path: Path) -> None:
    """
    Not an array of one number.
    """
    write_pack({"a": np.float32(2)}, tmp_path / "m.flashpack")
    assert () == read_all(tmp_path / "m.flashpack")["a"].shape


@pytest.mark.parametrize(
    "name", ["a/b", "a\\b", "", "a\nb", "a" * 1025, "a\u202eb", "a\udc80", 1, None, b"a"]
)
@pytest.mark.parametrize("write", [write_pack, write_safetensors])
def test_a_name_that_would_not_be_read_is_not_written(
    write: Any, name: Any, tmp_path: Path
) -> None:
    """
    There is no file then, and the error is ours though a good name is beside it.
    """
    with pytest.raises(ContractError):
        write({"b": np.ones(1, np.float32), name: np.ones(1, np.float32)}, tmp_path / "m")
    assert [] == list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "value",
    [
        np.array(["a"]),
        np.array([object()]),
        np.ma.masked_array([1.0], [True]),
        np.zeros(1, "datetime64[s]"),
        np.zeros(1, [("a", "f4")]),
        np.zeros(1, np.longdouble),
        [1.0],
        2.0,
        None,
    ],
    ids=("texts", "objects", "masked", "times", "records", "long doubles", "list", "float", "None"),
)
def test_what_is_no_tensor_is_not_written(value: Any, tmp_path: Path) -> None:
    """
    The error names it; nothing is converted in silence.
    """
    with pytest.raises(ContractError, match="'w'"):
        write_pack({"v": np.ones(1), "w": value}, tmp_path / "m.flashpack")
    assert [] == list(tmp_path.iterdir())


@pytest.mark.parametrize("tensors", [{}, {"a": np.zeros((0, 3), np.float32)}])
def test_a_pack_of_nothing_is_not_written(tensors: dict[str, Any], tmp_path: Path) -> None:
    """
    Upstream could not read it.
    """
    with pytest.raises(ContractError, match="something to pack"):
        write_pack(tensors, tmp_path / "m.flashpack")


@pytest.mark.parametrize("dtype", [DType.COMPLEX128])
def test_a_dtype_that_safetensors_do_not_know_is_not_written(dtype: DType, tmp_path: Path) -> None:
    """
    The error names the tensor.
    """
    with pytest.raises(ContractError, match="dtype of 'w': got complex128"):
        write_safetensors({"w": np.zeros(2, dtype.numpy)}, tmp_path / "m.safetensors")


def test_a_manifest_lies_beside_what_is_written(tmp_path: Path) -> None:
    """
    With the SHA-256 that any tool makes of the file, and a checksum of each tensor.
    """
    path = tmp_path / "m.flashpack"
    written = write_pack(all_dtypes(), path)
    assert written.manifest == read_manifest(manifest_path(path))
    assert written.manifest is not None
    assert hashlib.sha256(path.read_bytes()).hexdigest() == written.manifest.files[0].sha256
    assert set(all_dtypes()) == set(written.manifest.tensors)
    assert len(SHAPES) * len(BOTH) == len(written.manifest.tensors)


def test_a_manifest_of_the_file_before_does_not_stay(tmp_path: Path) -> None:
    """
    It would speak of another file.
    """
    path = tmp_path / "m.flashpack"
    write_pack(one_dtype(), path)
    write_pack(one_dtype(), path, manifest=False)
    assert [path] == list(tmp_path.iterdir())


def test_progress_counts_every_byte(tmp_path: Path) -> None:
    """
    Up to the size of the file.
    """
    path, told = tmp_path / "m.flashpack", []
    write_pack(all_dtypes(), path, progress=lambda done, total: told.append((done, total)))
    size = path.stat().st_size
    assert (size, size) == told[-1]
    assert sorted(told) == told


def test_a_write_that_is_cancelled_leaves_the_file_that_was_there(tmp_path: Path) -> None:
    """
    And its manifest.
    """

    class Cancelled:
        cancelled = True

    path = tmp_path / "m.flashpack"
    write_pack(one_dtype(), path)
    before = {each: each.read_bytes() for each in tmp_path.iterdir()}
    with pytest.raises(WeightsCancelledError):
        write_pack(all_dtypes(), path, cancel=Cancelled())
    assert before == {each: each.read_bytes() for each in tmp_path.iterdir()}


def test_a_file_for_which_there_is_no_room_is_not_begun(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    Minutes are not spent on a part of it.
    """
    free = shutil.disk_usage(tmp_path)._replace(free=10)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: free)
    with pytest.raises(WeightsError, match="needs 946 bytes, and there is room for 10"):
        write_pack(one_dtype(), tmp_path / "m.flashpack")
    assert [] == list(tmp_path.iterdir())


def test_a_file_of_a_name_that_would_not_be_read_is_not_written(tmp_path: Path) -> None:
    """
    It is told before there is one.
    """
    with pytest.raises(ContractError, match="control characters"):
        write_pack(one_dtype(), tmp_path / "a\nb")
    assert [] == list(tmp_path.iterdir())


def test_a_folder_that_is_not_there_is_an_error_of_the_file(tmp_path: Path) -> None:
    """
    It names the path.
    """
    with pytest.raises(WeightsError, match="does not exist") as caught:
        write_pack(one_dtype(), tmp_path / "no" / "m.flashpack")
    assert str(tmp_path / "no" / "m.flashpack") == caught.value.path


def test_the_golden_files_say_by_what_they_were_written() -> None:
    """
    So that they can be made again.
    """
    said = json.loads((GOLDEN / "versions.json").read_text(encoding="utf-8"))
    assert {"flashpack": "0.4.5", "safetensors": "0.8.0"}.items() <= said.items()


def test_a_manifest_that_cannot_be_written_leaves_the_file_that_was_there(tmp_path: Path) -> None:
    """
    The pack does not take its place before its manifest can: else the old one speaks of a new file.
    """
    path = tmp_path / "m.flashpack"
    path.write_bytes(b"old")
    manifest_path(path).mkdir()
    with pytest.raises(WeightsError, match="manifest"):
        write_pack({"w": np.ones(4, np.float32)}, path)
    assert b"old" == path.read_bytes()
    assert [manifest_path(path), path] == sorted(tmp_path.iterdir(), reverse=True)


def test_a_manifest_that_cannot_be_removed_is_an_error_of_the_manifest(tmp_path: Path) -> None:
    """
    As a folder in its place, where the file is written without one.
    """
    path = tmp_path / "m.flashpack"
    manifest_path(path).mkdir()
    with pytest.raises(WeightsError, match=r"is a folder|directory|not permitted"):
        write_pack({"w": np.ones(4, np.float32)}, path, manifest=False)


def test_a_name_as_long_as_the_system_allows_leaves_no_room_for_a_manifest(tmp_path: Path) -> None:
    """
    That is known before the file is there, and without a manifest it is written.
    """
    path = tmp_path / ("m" * 250)
    with pytest.raises(WeightsError, match="too long"):
        write_pack({"w": np.ones(4, np.float32)}, path)
    assert [] == list(tmp_path.iterdir())
    write_pack({"w": np.ones(4, np.float32)}, path, manifest=False)
    assert [path] == list(tmp_path.iterdir())


@pytest.mark.parametrize("path", ["", ".", "/"])
def test_a_path_without_a_name_is_no_path_of_a_file(path: str) -> None:
    """
    As what a variable of a shell is that nobody has set.
    """
    with pytest.raises(WeightsError, match="is no path of a file") as caught:
        write_pack({"w": np.ones(4, np.float32)}, path)
    assert path == caught.value.path


def test_a_zero_byte_in_a_path_is_an_error_of_the_file(tmp_path: Path) -> None:
    """
    As Python raises something else for it.
    """
    with pytest.raises((ContractError, WeightsError)):
        write_pack({"w": np.ones(4, np.float32)}, f"{tmp_path}/a\0b/m.flashpack")


def test_a_tensor_by_the_name_that_safetensors_keep_is_not_written(tmp_path: Path) -> None:
    """
    What is called ``__metadata__`` would be read as no tensor; a pack may hold one.
    """
    tensors = {"__metadata__": np.ones(4, np.float32)}
    with pytest.raises(ContractError, match="__metadata__"):
        write_safetensors(tensors, tmp_path / "m.safetensors")
    with open_files(write_pack(tensors, tmp_path / "m.flashpack").path) as files:
        assert ["__metadata__"] == list(files.index)


REPLACING = """
import os, signal, sys
import numpy as np
from vlmcore.weights import writing
writing._replace_manifest = lambda *_, **__: os.kill(os.getpid(), signal.SIGKILL)
writing.write_pack({"w": np.full(int(sys.argv[2]), 2, np.float32)}, sys.argv[1],
                   manifest=sys.argv[3] == "yes")
"""


@pytest.mark.skipif(sys.platform == "win32", reason="no such signal")
@pytest.mark.parametrize("elements", [4, 5])
@pytest.mark.parametrize("manifest", ["yes", "no"])
def test_a_writer_that_is_killed_between_file_and_manifest_is_told_and_no_corruption(
    elements: int, manifest: str, tmp_path: Path
) -> None:
    """
    The new file lies beside the old manifest, which the manifest that waits shows.
    """
    path = tmp_path / "m.flashpack"
    write_pack({"w": np.ones(4, np.float32)}, path)
    words = [sys.executable, "-c", REPLACING, str(path), str(elements), manifest]
    assert -signal.SIGKILL == subprocess.run(words, check=False, timeout=60).returncode
    with open_files(path) as files, pytest.raises(WeightsError, match="before it had") as error:
        verify(files)
    assert not isinstance(error.value, CorruptWeightsError)
    assert "'m.flashpack.manifest.json.new' is still there; write the file again" in str(
        error.value
    )
    write_pack({"w": np.ones(elements, np.float32)}, path)
    assert [path, manifest_path(path)] == sorted(tmp_path.iterdir())
    with open_files(path) as files:
        assert 1 == verify(files).tensors


def test_a_first_pack_whose_writer_was_ended_says_what_to_do(tmp_path: Path) -> None:
    """
    There is no old manifest then, and the new one still has the name of what comes.
    """
    path = tmp_path / "m.flashpack"
    write_pack({"w": np.ones(4, np.float32)}, path)
    manifest_path(path).rename(coming_manifest_path(path))
    with open_files(path) as files, pytest.raises(WeightsError, match="is not there") as error:
        verify(files)
    assert not isinstance(error.value, CorruptWeightsError)
    assert "'m.flashpack.manifest.json.new' is still there; write the file again" in str(
        error.value
    )
    write_pack({"w": np.ones(4, np.float32)}, path)
    with open_files(path) as files:
        assert 1 == verify(files).tensors


def test_a_file_that_is_whole_is_so_whatever_waits_beside_it(tmp_path: Path) -> None:
    """
    A writer that was ended before it replaced anything left the old file and its manifest.
    """
    path = tmp_path / "m.flashpack"
    write_pack({"w": np.ones(4, np.float32)}, path)
    coming_manifest_path(path).touch()
    with open_files(path) as files:
        assert 1 == verify(files).tensors


def test_a_manifest_that_is_a_link_stays_one(tmp_path: Path) -> None:
    """
    As the file does: what it leads to is replaced.
    """
    path, elsewhere = tmp_path / "m.flashpack", tmp_path / "elsewhere.json"
    manifest_path(path).symlink_to(elsewhere)
    written = write_pack({"w": np.ones(4, np.float32)}, path)
    assert manifest_path(path).is_symlink()
    assert written.manifest == read_manifest(elsewhere)
