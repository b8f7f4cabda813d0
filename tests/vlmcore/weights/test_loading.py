"""Weights as arrays: mapped, or in memory of their own."""

from __future__ import annotations

import json
import math
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from vlmcore.errors import (
    ContractError,
    WeightsBudgetError,
    WeightsCancelledError,
    WeightsChangedError,
    WeightsError,
)
from vlmcore.vlm.generation import CancelToken
from vlmcore.weights import _arena, _loads, _mapping, _pages, writing
from vlmcore.weights.budget import ReadBudget
from vlmcore.weights.dtypes import DType
from vlmcore.weights.loading import Weights, load_weights, read_weights
from vlmcore.weights.opening import open_files
from vlmcore.weights.report import Way
from weight_cases import Tensors, forget_pages, run_child, some_tensors, write_safetensors

ways = pytest.mark.parametrize("way", list(Way))
MIB = 1 << 20


@pytest.fixture(scope="module")
def tensors() -> Tensors:
    return some_tensors()


@pytest.fixture
def path(tmp_path: Path, tensors: Tensors) -> Path:
    return write_safetensors(tmp_path / "some.safetensors", tensors)


@ways
@pytest.mark.parametrize("pages", ["in memory", "on disk"])
def test_every_tensor_is_what_was_written(
    path: Path, tensors: Tensors, way: Way, pages: str
) -> None:
    """
    Numbers, dtypes and shapes are those of the file, whether its pages are in memory or not.
    """
    if pages == "on disk":
        forget_pages(path)
    with load_weights(path, way=way) as weights:
        assert_same(tensors, weights)


def assert_same(tensors: Tensors, weights: Weights) -> None:
    """Compare names, dtypes, shapes and bytes."""
    assert tensors.keys() == weights.keys()
    for name, tensor in tensors.items():
        assert (tensor.dtype, tensor.shape) == (weights[name].dtype, weights[name].shape)
        assert tensor.tobytes() == weights[name].tobytes()


@ways
@pytest.mark.parametrize("write", [writing.write_pack, writing.write_safetensors])
def test_every_dtype_is_loaded(tmp_path: Path, way: Way, write: Any) -> None:
    """
    Bytes are those that were written for every dtype, also for those that NumPy has not by itself.
    """
    random = np.random.default_rng(0)
    tensors = {}
    for dtype in DType:
        if dtype in {DType.COMPLEX32, DType.BOOL} or (
            write is not writing.write_pack and not dtype.safetensors
        ):
            continue
        for shape in ((), (3, 5), (0, 2), (1000,)):
            size = dtype.itemsize * math.prod(shape)
            numbers = np.frombuffer(random.bytes(size), dtype.numpy).reshape(shape)
            tensors[f"{dtype.value}.{len(shape)}.{size}"] = numbers
    path = write(tensors, tmp_path / "some.weights").path
    with load_weights(path, way=way) as weights:
        assert_same(tensors, weights)
        assert all(array.flags.aligned for array in weights.values())


@ways
def test_the_shards_of_a_checkpoint_are_one_mapping(
    tmp_path: Path, tensors: Tensors, way: Way
) -> None:
    """
    Which file a tensor is in is of no matter to whoever wants it.
    """
    names = list(tensors)
    weight_map = {}
    for i in range(3):
        shard = f"model-{i + 1:05}-of-00003.safetensors"
        write_safetensors(tmp_path / shard, {name: tensors[name] for name in names[i::3]})
        weight_map.update(dict.fromkeys(names[i::3], shard))
    index = {"metadata": {}, "weight_map": weight_map}
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps(index))
    with load_weights(tmp_path, way=way) as weights:
        assert_same({name: tensors[name] for name in weights}, weights)
        assert set(names) == set(weights)


@ways
def test_a_name_that_stands_for_another_is_found_and_not_listed(tmp_path: Path, way: Way) -> None:
    """
    Tied weights that the file holds once are had under both names, and are the same memory.
    """
    path = tmp_path / "tied.safetensors"
    header = b'{"__metadata__":{"format":"pt","head":"embed"},'
    header += b'"embed":{"dtype":"F32","shape":[5],"data_offsets":[0,20]}}'
    path.write_bytes(len(header).to_bytes(8, "little") + header + np.ones(5, "f4").tobytes())
    with load_weights(path, way=way, names=["head"]) as weights:
        assert ["embed"] == list(weights)
        assert np.shares_memory(weights["head"], weights["embed"])
        assert weights.entry("embed") is weights.entry("head")


def test_own_memory_goes_back_with_the_last_array(tmp_path: Path) -> None:
    """
    Closing gives the host its memory, but for what somebody still looks at.
    """
    parts = {f"part.{i}": np.ones(16 * MIB, np.uint8) for i in range(2)}
    path = write_safetensors(tmp_path / "large.safetensors", parts)
    held, kept, after = map(int, run_child(GIVEN_BACK, path).split())
    assert held >= 30 * 1024  # the system counts roughly
    assert kept >= 14 * 1024
    assert after < 8 * 1024


@ways
def test_writing_to_a_weight_does_not_reach_the_file(path: Path, way: Way) -> None:
    """
    Arrays may be changed in place: the change stays in this process, and other loads do not see it.
    """
    before = path.read_bytes()
    with load_weights(path, way=way) as weights, load_weights(path, way=way) as others:
        expected = others["large"].copy()
        weights["large"][...] = 7
        assert (7, 7) == (weights["large"].min(), weights["large"].max())
        assert np.array_equal(expected, others["large"])
    assert before == path.read_bytes()


def test_copied_tensors_start_at_multiples_of_64_bytes(path: Path) -> None:
    """
    Vector instructions and other libraries want memory that is aligned, wherever it is in the file.
    """
    with load_weights(path, way=Way.COPY) as weights:
        assert {0} == {array.ctypes.data % 64 for array in weights.values()}


def test_mapped_tensors_are_aligned_to_their_numbers(tmp_path: Path) -> None:
    """
    What lies across the boundaries of its numbers in the file is copied; the rest is mapped.
    """
    odd = {"a": np.arange(3, dtype=np.uint8), "b": np.arange(5.0), "c": np.arange(4, dtype="i2")}
    header = (
        b'{"a":{"dtype":"U8","shape":[3],"data_offsets":[0,3]},'
        b'"b":{"dtype":"F64","shape":[5],"data_offsets":[3,43]},'
        b'"c":{"dtype":"I16","shape":[4],"data_offsets":[43,51]}}'
    )
    header += b" " * (-len(header) % 8)
    payload = b"".join(array.tobytes() for array in odd.values())
    path = tmp_path / "odd.safetensors"
    path.write_bytes(len(header).to_bytes(8, "little") + header + payload)
    with load_weights(path, way=Way.VIEWS) as weights:
        assert_same(odd, weights)
        assert all(array.flags.aligned for array in weights.values())
        assert (3, 48) == (weights.report.mapped_bytes, weights.report.plain_bytes)


@ways
def test_only_what_is_asked_for_is_loaded(path: Path, tensors: Tensors, way: Way) -> None:
    """
    A few tensors of a large file cost what they are.
    """
    names = ["scalar", "half", "nothing"]
    with load_weights(path, way=way, names=names) as weights:
        assert set(names) == set(weights)
        assert sum(tensors[name].nbytes for name in names) == weights.report.payload_bytes
        with pytest.raises(KeyError):
            weights["large"]


@pytest.mark.parametrize(
    ("names", "problem"),
    [
        (["scalar", "no\nbody"], r"names: got 'no\nbody', which .* does not have \(1 of such\)"),
        ("scalar", "names: got one text, expected several names"),
    ],
)
def test_a_name_that_is_not_there_is_told_before_anything_is_read(
    path: Path, names: list[str] | str, problem: str
) -> None:
    """
    A typo in a name costs no load, and cannot control a terminal.
    """
    with pytest.raises(ContractError) as error:
        load_weights(path, names=names)
    assert str(error.value).startswith(problem.partition(", which")[0].replace("\n", "\\n"))


@ways
def test_arrays_stay_good_after_closing(path: Path, tensors: Tensors, way: Way) -> None:
    """
    Memory that somebody looks at is not given back, nor given to others.
    """
    with load_weights(path, way=way) as weights:
        kept = weights["large"]
    assert np.array_equal(tensors["large"], kept)
    with pytest.raises(WeightsError, match="is closed, expected to be open"):
        weights["large"]


def test_files_that_the_caller_opened_stay_open(path: Path, tensors: Tensors) -> None:
    """
    Several loads may share one look at the files.
    """
    with open_files(path) as files:
        for way in Way:
            with read_weights(files, way=way) as weights:
                assert_same(tensors, weights)
        files.check_unchanged()


@ways
def test_progress_is_told_in_bytes_up_to_all_of_them(
    path: Path, tensors: Tensors, way: Way
) -> None:
    """
    A bar of progress never goes back, and is full at the end.
    """
    told: list[tuple[int, int]] = []
    load_weights(path, way=way, progress=lambda done, total: told.append((done, total))).close()
    total = told[-1][1]
    assert sum(tensor.nbytes for tensor in tensors.values()) <= total
    assert (total, total) == told[-1]
    assert sorted(told) == told


@ways
@pytest.mark.parametrize("when", ["before", "midway"])
def test_a_load_can_be_stopped(path: Path, way: Way, when: str) -> None:
    """
    It ends with an error that says how far it came, and no thread stays behind.
    """
    token = CancelToken()
    if when == "before":
        token.cancel()
    with pytest.raises(WeightsCancelledError) as error:
        load_weights(path, way=way, cancel=token, progress=lambda *_: token.cancel())
    assert (when == "midway") == (error.value.done_bytes > 0)


@ways
def test_an_error_of_the_callers_own_ends_the_load(path: Path, way: Way) -> None:
    """
    Whatever a callback raises comes out as it is.
    """

    def interrupt(*_: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        load_weights(path, way=way, progress=interrupt)


def test_what_does_not_fit_is_refused_before_memory_is_taken(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    An error says what is needed and what is free; the host is not driven out of memory.
    """
    monkeypatch.setattr(_arena, "free_host_bytes", lambda: MIB)
    with pytest.raises(WeightsBudgetError) as error:
        load_weights(path, way=Way.COPY, budget=ReadBudget())
    assert MIB == error.value.available_bytes < error.value.needed_bytes
    load_weights(path, way=Way.VIEWS, budget=ReadBudget()).close()


@pytest.mark.parametrize("kind", ["nfs4", "cifs", "fuse.sshfs", "9p"])
def test_files_on_network_disks_are_not_mapped(
    path: Path, tensors: Tensors, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    Mapped, they come page by page over the network, and end the process when the server does.
    """
    monkeypatch.setattr(_loads, "file_system", lambda _: kind)
    with load_weights(path, way=Way.VIEWS) as weights:
        assert_same(tensors, weights)
        assert Way.COPY is weights.report.way
        expected = (f"views: {path} is on {kind}, read into own memory instead",)
        assert expected == weights.report.steps_down


def test_a_system_without_page_calls_loads_as_well(
    path: Path, tensors: Tensors, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    Where nothing is known about pages, files are read the plain way, and mapped without fetching.
    """
    monkeypatch.setattr(_pages, "_libc_function", lambda _: None)
    monkeypatch.delattr(os, "O_DIRECT")
    monkeypatch.delattr(os, "preadv")
    for way in Way:
        with load_weights(path, way=way) as weights:
            assert_same(tensors, weights)
            assert 0 == weights.report.direct_bytes


def test_the_report_says_what_was_done(path: Path, tensors: Tensors) -> None:
    """
    Bytes, phases and speed are figures that a program can read.
    """
    forget_pages(path)
    with load_weights(path, way=Way.COPY) as weights:
        report = weights.report.to_dict()
    payload = sum(tensor.nbytes for tensor in tensors.values())
    assert ("copy", payload, len(tensors)) == (
        report["way"],
        report["payload_bytes"],
        report["tensors"],
    )
    assert ["open", "allocate", "read"] == list(report["phases_s"])
    assert payload <= report["direct_bytes"] + report["plain_bytes"] < payload + MIB
    assert report["staging_bytes"] <= ReadBudget().staging_bytes
    assert report["gb_per_s"] == payload / report["total_s"] / 1e9


SHRINK = """
import os, sys
from vlmcore.errors import WeightsChangedError
from vlmcore.weights.budget import ReadBudget
from vlmcore.weights.dtypes import DType
from vlmcore.weights.loading import read_weights
from vlmcore.weights.opening import open_files
from vlmcore.weights.report import Way
path, way, when = sys.argv[1], Way(sys.argv[2]), sys.argv[3]
def shrink(*_):
    os.truncate(path, 5000)
with open_files(path) as files:
    if when == "before":
        shrink()
    try:
        budget = ReadBudget(readers=1, chunk_bytes=4096)
        weights = read_weights(
            files, way=way, budget=budget, progress=shrink if when == "midway" else None
        )
        if when == "after":
            kept = weights["large"] if way is Way.COPY else None
            shrink()
            assert kept is None or kept.any()
            weights["large"].sum()
    except WeightsChangedError as error:
        print(error)
"""


@pytest.mark.parametrize(
    ("way", "when"),
    [(way, when) for way in Way for when in ("before", "midway", "after")][:-1],
)
def test_a_file_that_shrinks_is_an_error_and_no_end_of_the_process(
    path: Path, way: Way, when: str
) -> None:
    """
    Before, during and after the load, what is handed out was there when it was looked at.
    """
    said = run_child(SHRINK, path, way.value, when)
    assert str(path) in said
    assert "5000" in said or "ended" in said


def test_copied_weights_are_good_after_their_file_is_gone(path: Path) -> None:
    """
    Own memory is what to take where others may write to the file.
    """
    assert "" == run_child(SHRINK, path, "copy", "after")


def test_weights_that_were_overwritten_are_not_handed_out(path: Path) -> None:
    """
    A file that was written to in place has other weights, though it is as long as before.
    """
    with load_weights(path, way=Way.VIEWS) as weights:
        with path.open("r+b") as file:
            file.seek(5000)
            file.write(b"other bytes")
        os.utime(path, ns=(0, 0))
        with pytest.raises(WeightsChangedError, match="was written to after it was opened"):
            weights["large"]


GIVEN_BACK = """
import sys
from vlmcore.weights.loading import load_weights
from vlmcore.weights.report import Way
def resident():
    return next(int(line.split()[1]) for line in open("/proc/self/status") if "VmRSS" in line)
load_weights(sys.argv[1], way=Way.COPY, names=["part.0"]).close()
before = resident()
weights = load_weights(sys.argv[1], way=Way.COPY)
held = resident() - before
array = weights["part.0"]
weights.close()
kept = resident() - before
del array
print(held, kept, resident() - before)
"""
PEAK = """
import sys
from vlmcore.weights.loading import load_weights
from vlmcore.weights.report import Way
def peak():
    return next(int(line.split()[1]) for line in open("/proc/self/status") if "VmHWM" in line)
import numpy
before = peak()
with load_weights(sys.argv[1], way=Way(sys.argv[2])) as weights:
    total = sum(int(weights.raw(name).size) for name in weights)
    print(peak() - before, total // 1024)
"""


@pytest.mark.parametrize("pages", ["in memory", "on disk"])
def test_copying_takes_the_weights_and_a_bounded_rest(tmp_path: Path, pages: str) -> None:
    """
    Never twice the weights: what is on its way is in the budget.
    """
    random = np.random.default_rng(0)
    parts = {f"part.{i}": random.integers(0, 255, 24 * MIB, np.uint8) for i in range(4)}
    path = write_safetensors(tmp_path / "large.safetensors", parts)
    if pages == "on disk":
        forget_pages(path)
    peak_kib, payload_kib = map(int, run_child(PEAK, path, "copy").split())
    assert payload_kib <= peak_kib < payload_kib + 64 * 1024


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"path": None}, "path: got NoneType, expected a path"),
        ({"path": b"m.flashpack"}, "path: got bytes, expected a path"),
        ({"budget": 256}, "budget: got int, expected ReadBudget"),
        ({"progress": True}, "progress: got bool, expected a function"),
        ({"cancel": True}, "cancel: got bool, expected a CancelToken"),
        ({"limits": {}}, "limits: got dict, expected WeightLimits"),
        ({"names": 3}, "names: got int, expected several names"),
    ],
)
def test_an_argument_of_another_class_is_named(
    path: Path, arguments: dict[str, Any], problem: str
) -> None:
    """
    Not by an error of Python from within the load.
    """
    with pytest.raises(ContractError) as error:
        load_weights(**{"path": path, **arguments})
    assert problem == str(error.value)


def test_progress_of_a_file_that_is_partly_crooked_covers_all_of_it(tmp_path: Path) -> None:
    """
    Tensors that are mapped and tensors that are copied are counted together.
    """
    odd, size = 5 * MIB + 1, 12 * MIB + 1
    header = {
        "bytes": {"dtype": "U8", "shape": [odd], "data_offsets": [0, odd]},
        "floats": {"dtype": "F32", "shape": [7 * MIB // 4], "data_offsets": [odd, size]},
    }
    text = json.dumps(header).encode()
    path = tmp_path / "crooked.safetensors"
    path.write_bytes(len(text).to_bytes(8, "little") + text + bytes(size))
    seen: list[tuple[int, int]] = []
    with load_weights(path, progress=lambda *place: seen.append(place)) as weights:
        assert 0 < weights.report.mapped_bytes < weights.report.payload_bytes
        assert {weights.report.payload_bytes} == {total for _, total in seen}
    assert [done for done, _ in seen] == sorted({done for done, _ in seen})
    assert seen[-1][0] == seen[-1][1]


def test_pages_that_cannot_be_fetched_ahead_come_when_touched(
    path: Path, tensors: Tensors, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    A kernel that is too old for it maps all the same, and the report says so.
    """
    monkeypatch.setattr(_mapping, "populate", lambda *_: False)
    with load_weights(path, way=Way.VIEWS) as weights:
        assert_same(tensors, weights)
        assert "views: this system fetches no pages ahead" in weights.report.steps_down[0]
