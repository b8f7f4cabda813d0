"""Ranks that load a checkpoint together, in processes of their own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from vlmcore.errors import ContractError
from vlmcore.weights.modules import load_tensors
from vlmcore.weights.opening import open_files
from vlmcore.weights.shards import load_shards
from vlmcore.weights.writing import write_pack

RANK = """
import datetime, os, sys, torch
import torch.distributed as dist
from vlmcore.errors import WeightsError
from vlmcore.vlm.generation import CancelToken
from vlmcore.weights.budget import ReadBudget
from vlmcore.weights.modules import load_tensors
from vlmcore.weights.ranges import RangeReader
from vlmcore.weights.report import Way
from vlmcore.weights.shards import load_shards
from vlmcore.weights.verifying import Verification

rank, store, whole = int(sys.argv[1]), sys.argv[2], sys.argv[3]
os.environ["GLOO_SOCKET_IFNAME"] = "lo"
submit, calls, what = RangeReader.submit, [], ""
def failing(self, *part):
    calls.append(part)
    if rank == 1 and len(calls) > 3:
        if what == "dies":
            os._exit(3)
        if what == "fails":
            raise WeightsError("disk", "is on fire")
    return submit(self, *part)
RangeReader.submit = failing
budget = ReadBudget(staging_bytes=1 << 18, readers=2, chunk_bytes=1 << 14)
for what in sys.argv[4:]:
    calls.clear()
    dist.init_process_group(
        "gloo", init_method=f"file://{store}.{what}", rank=rank, world_size=2,
        timeout=datetime.timedelta(seconds=60),
    )
    token, told = CancelToken(), []
    def tell(done, total):
        told.append((done, total))
        if what == "stops" and rank == 1 and done > total // 2:
            token.cancel()
    path = whole + {"differs": ".other", "is_gone": ".gone"}.get(what, "") * rank
    path += {"a pack": ".flashpack", "several files": ".index", "flips": ".flipped"}.get(what, "")
    dtype = torch.float32 if what == "converts" else None
    how = Verification.WHOLE if what in ("a pack", "flips") and rank == 0 else Verification.OFF
    try:
        loaded = load_shards(
            path, budget=budget, dtype=dtype, verification=how, progress=tell, cancel=token
        )
    except WeightsError as error:
        print(f"{what}:", type(error).__name__, error, flush=True)
    else:
        alone = [load_tensors(path, dtype=dtype, way=way) for way in Way]
        same = all(
            loaded[n].dtype == t.dtype and loaded[n].shape == t.shape
            and torch.equal(
                loaded[n].reshape(-1).view(torch.uint8), t.reshape(-1).view(torch.uint8)
            )
            for expected in alone for n, t in expected.items()
        )
        report = loaded.report
        names = all(loaded.keys() == expected.keys() for expected in alone)
        names = names and sorted(told) == told and told[-1] == (report.payload_bytes,) * 2
        read = report.plain_bytes + report.direct_bytes
        sizes = (read, report.payload_bytes, report.verified_bytes)
        print(f"{what}:", same, names, *sizes, flush=True)
    if what != "dies":
        dist.destroy_process_group()
os._exit(0)  # a group whose other rank is gone does not end well
"""
GOOD = ("loads", "converts", "a pack", "several files")
LOADS = (*GOOD, "stops", "flips", "fails", "is_gone", "differs", "dies")


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory) -> Path:
    """A file of some hundred KiB, with what is hard about tensors."""
    torch.manual_seed(6)
    weights = {
        "large": torch.randn(300, 401).to(torch.bfloat16),
        "odd": torch.randint(0, 256, (100_003,), dtype=torch.uint8),
        "scalar": torch.tensor(1.5),
        "nothing": torch.zeros(0, 3),
        "flags": torch.tensor([True, False]),
        **{f"tiny.{i}": torch.randn(i + 1, dtype=torch.float64) for i in range(30)},
    }
    path = tmp_path_factory.mktemp("ranks") / "m.safetensors"
    save_file(weights, path)
    save_file({**weights, "flags": torch.ones(2)}, f"{path}.other")
    for name in ("flashpack", "flipped"):
        written = write_pack(weights, f"{path}.{name}").path
    with open_files(written) as files:
        place = files.index["odd"].stop - 1
    with Path(written).open("r+b") as file:
        file.seek(place)
        last = file.read(1)[0]
        file.seek(place)
        file.write(bytes([last ^ 1]))
    parts = Path(f"{path}.index")
    parts.mkdir()
    where = {}
    for i in range(2):
        part = {name: weights[name] for name in list(weights)[i::2]}
        save_file(part, parts / f"model-{i}.safetensors")
        where.update(dict.fromkeys(part, f"model-{i}.safetensors"))
    (parts / "model.safetensors.index.json").write_text(json.dumps({"weight_map": where}))
    return path


@pytest.fixture(scope="module")
def told(checkpoint) -> dict[str, list[str]]:
    """
    What each of two ranks says of each load.

    They make all of them, a group for each: to start a process with torch takes seconds.
    """
    words = [str(checkpoint.with_name("store")), str(checkpoint), *LOADS]
    ranks = [
        subprocess.Popen(
            [sys.executable, "-c", RANK, str(rank), *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )
        for rank in range(2)
    ]
    try:
        ended = [rank.communicate(timeout=120) for rank in ranks]
    finally:
        for rank in ranks:
            rank.kill()
    assert [0, 3] == [rank.returncode for rank in ranks], ended
    said: dict[str, list[str]] = {}
    for out, _ in ended:
        for line in out.splitlines():
            what, _, words_of_it = line.partition(": ")
            said.setdefault(what, []).append(words_of_it)
    return said


@pytest.mark.parametrize("what", GOOD)
def test_ranks_get_the_same_bytes_and_read_each_once(told, what) -> None:
    """
    As one that loads alone, in either way, of whatever files; together they read hardly more than
    there is. Each is told of its progress, up to all of it.
    """
    words = [answer.split() for answer in told[what]]

    assert [["True", "True"]] * 2 == [each[:2] for each in words]
    read, payload = [int(each[2]) for each in words], int(words[0][3])
    verified = [int(each[4]) for each in words]
    assert (payload if what == "a pack" else 0) == max(verified)
    assert 0 == min(verified)
    assert payload <= sum(read) < payload + 4096
    assert min(read) > payload // 4


def test_one_rank_that_is_cancelled_stops_all(told) -> None:
    """
    As it is told itself, and the others why.
    """
    other, own = told["stops"]

    assert own.startswith("WeightsCancelledError")
    assert "rank 1 cannot load it (WeightsCancelledError: " in other


def test_a_flipped_bit_is_found_by_the_rank_that_compares(told) -> None:
    """
    By the name of its tensor, whichever rank has read it; the other was not asked to compare.
    """
    found, other = told["flips"]

    assert found.startswith("WeightChecksumError")
    assert "odd" in found
    assert other.startswith("True True")


def test_the_failure_of_one_rank_ends_all(told) -> None:
    """
    With its words, and no rank waits for ever.
    """
    other, failed = told["fails"]

    assert "WeightsError disk: is on fire" == failed
    assert "rank 1 cannot load it (WeightsError: disk: is on fire)" in other


def test_a_rank_that_dies_ends_the_others(told) -> None:
    """
    They are told that it is gone.
    """
    (other,) = told["dies"]

    assert "another rank is gone" in other


def test_a_rank_that_cannot_open_its_file_ends_all(told) -> None:
    """
    Before anything is read.
    """
    other, failed = told["is_gone"]

    assert failed.startswith("WeightsError")
    assert "rank 1 cannot load it (WeightsError: " in other


def test_ranks_with_different_files_are_told(told) -> None:
    """
    Each of them: tensors of two checkpoints are not mixed.
    """
    answers = told["differs"]

    assert 2 == len(answers)
    for answer in answers:
        assert "has other files, other tensors of them, or another budget" in answer


def test_a_process_without_ranks_is_told(checkpoint) -> None:
    """
    What is missing, and which function makes it.
    """
    with pytest.raises(ContractError, match=r"expected torch\.distributed\.init_process_group"):
        load_shards(checkpoint)
    assert 35 == len(load_tensors(checkpoint))
