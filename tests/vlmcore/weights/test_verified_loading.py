"""Weights that are compared with their manifest while they are read."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vlmcore.errors import WeightChecksumError, WeightsError
from vlmcore.weights._arrivals import ArrivalChecks
from vlmcore.weights.budget import ReadBudget
from vlmcore.weights.checksums import Checksum
from vlmcore.weights.index import TensorEntry
from vlmcore.weights.loading import load_weights
from vlmcore.weights.opening import open_files
from vlmcore.weights.report import Way
from vlmcore.weights.verifying import TensorChecks, Verification, find_manifest
from vlmcore.weights.writing import write_pack, write_safetensors
from weight_cases import Tensors, forget_pages, some_tensors

ways = pytest.mark.parametrize("way", list(Way))
SMALL = ReadBudget(readers=3, chunk_bytes=0x4000)


@pytest.fixture(scope="module")
def tensors() -> Tensors:
    return some_tensors()


@pytest.fixture(params=[write_pack, write_safetensors], ids=["pack", "safetensors"])
def path(request: pytest.FixtureRequest, tmp_path: Path, tensors: Tensors) -> Path:
    return Path(request.param(tensors, tmp_path / "some.weights").path)


@ways
@pytest.mark.parametrize("pages", ["in memory", "on disk"])
def test_weights_that_are_as_they_were_are_loaded(
    path: Path, tensors: Tensors, way: Way, pages: str
) -> None:
    """
    Every byte of every tensor is compared, also of those that come in several parts or have none.
    """
    if pages == "on disk":
        forget_pages(path)
    with load_weights(path, way=way, verification=Verification.WHOLE, budget=SMALL) as weights:
        assert sum(each.nbytes for each in tensors.values()) == weights.report.verified_bytes
        for name, tensor in tensors.items():
            assert tensor.tobytes() == weights[name].tobytes()


@ways
@pytest.mark.parametrize("name", ["large", "bytes", "scalar", "tiny.7"])
def test_a_flipped_bit_is_found_by_the_name_of_its_tensor(path: Path, way: Way, name: str) -> None:
    """
    What happened to the file on its way is told before a weight is used.
    """
    with open_files(path) as files:
        entry = files.index[name]
    with path.open("r+b") as file:
        file.seek(entry.stop - 1)
        last = file.read(1)[0]
        file.seek(entry.stop - 1)
        file.write(bytes([last ^ 1]))
    with pytest.raises(WeightChecksumError) as error:
        load_weights(path, way=way, verification=Verification.WHOLE, budget=SMALL)
    assert (name,) == error.value.tensors
    load_weights(path, way=way).close()  # nobody asked


@ways
def test_some_of_the_weights_can_be_compared(path: Path, tensors: Tensors, way: Way) -> None:
    """
    A sample of at least a sixteenth costs little, and says how much it was.
    """
    payload = sum(each.nbytes for each in tensors.values())
    with load_weights(path, way=way, verification=Verification.SAMPLED) as weights:
        assert payload / 16 <= weights.report.verified_bytes <= payload


@ways
def test_only_what_is_loaded_is_compared(path: Path, tensors: Tensors, way: Way) -> None:
    """
    A few tensors cost no look at the others.
    """
    names = ["half", "tiny.3"]
    with load_weights(path, way=way, names=names, verification=Verification.WHOLE) as weights:
        assert sum(tensors[name].nbytes for name in names) == weights.report.verified_bytes


def test_weights_without_a_manifest_cannot_be_compared(path: Path) -> None:
    """
    Who asks for a comparison that cannot be made does not get unchecked weights.
    """
    path.with_name(f"{path.name}.manifest.json").unlink()
    with pytest.raises(WeightsError, match="manifest"):
        load_weights(path, verification=Verification.WHOLE)


@pytest.mark.parametrize("readers", [1, 4])
def test_bytes_may_come_in_any_order_in_any_pieces_and_by_any_thread(
    readers: int, tmp_path: Path
) -> None:
    """
    Each byte of a tensor is taken once and in its turn, and it is compared when all are there.
    """
    some = {f"t{i}": np.arange(i * 37, dtype=np.uint8) for i in range(8)}
    path = write_pack(some, tmp_path / "some.flashpack", align_bytes=64).path
    with open_files(path) as files, ThreadPoolExecutor(readers) as pool:
        manifest = find_manifest(files)
        end = max(entry.stop for entry in files.index.entries)

        @settings(max_examples=50, deadline=None)
        @given(st.sets(st.integers(1, end - 1)), st.randoms(use_true_random=False))
        def check(cuts: set[int], random: Random) -> None:
            checks = TensorChecks(files, manifest)
            taken = dict.fromkeys(some, 0)

            def take(checksum: Checksum, entry: TensorEntry, start: int, stop: int) -> None:
                assert taken[entry.name] == start - entry.start
                checksum.update(some[entry.name][start - entry.start : stop - entry.start])
                taken[entry.name] = stop - entry.start

            arrivals = ArrivalChecks(checks, files.index.entries, take)
            pieces = list(pairwise([0, *sorted(cuts), end]))
            random.shuffle(pieces)
            list(pool.map(lambda piece: arrivals.arrived(0, *piece), pieces))
            assert {name: each.nbytes for name, each in some.items()} == taken
            assert len(some) == checks.finish().tensors

        check()
