"""Tests of `vlmcore.weights.verifying`."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from golden.weights.cases import all_dtypes
from vlmcore.errors import (
    ContractError,
    CorruptWeightsError,
    WeightChecksumError,
    WeightsCancelledError,
    WeightsChangedError,
    WeightsError,
)
from vlmcore.weights.manifest import Provenance, manifest_path, write_manifest
from vlmcore.weights.opening import open_files
from vlmcore.weights.verifying import (
    TensorChecks,
    Verification,
    find_manifest,
    manifest_of,
    verify,
)
from vlmcore.weights.writing import write_pack, write_safetensors


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """
    Write a pack of many tensors and its manifest.
    """
    path = tmp_path / "m.flashpack"
    write_pack({**all_dtypes(), "large": np.arange(3_000_000, dtype=np.int64)}, path)
    return path


def flip(path: Path, at: int) -> None:
    """Flip one bit of a file."""
    with path.open("r+b") as file:
        file.seek(at)
        (byte,) = file.read(1)
        file.seek(at)
        file.write(bytes([byte ^ 4]))


def test_weights_that_are_as_they_were_are_said_to_be(path: Path) -> None:
    """
    All of them were compared.
    """
    with open_files(path) as files:
        found = verify(files)
        assert (len(files.index), files.index.payload_bytes) == (found.tensors, found.bytes)
        assert (found.tensors, found.bytes) == (found.of_tensors, found.of_bytes)


@pytest.mark.parametrize("which", ["large", "bool.one.gewicht-ä", "float64.matrix.gewicht-ä"])
@pytest.mark.parametrize("end", ["first", "last"])
def test_a_flipped_bit_is_found_by_the_name_of_its_tensor(which: str, end: str, path: Path) -> None:
    """
    Its first byte or its last.
    """
    with open_files(path) as files:
        entry = files.index[which]
    flip(path, entry.start if end == "first" else entry.stop - 1)
    with open_files(path) as files, pytest.raises(WeightChecksumError) as caught:
        verify(files)
    assert (which,) == caught.value.tensors


def test_every_tensor_that_differs_is_named(path: Path) -> None:
    """
    Not only the first.
    """
    with open_files(path) as files:
        entries = [files.index["large"], files.index["int64.one.gewicht-ä"]]
    for entry in entries:
        flip(path, entry.start)
    with open_files(path) as files, pytest.raises(WeightChecksumError) as caught:
        verify(files)
    assert {entry.name for entry in entries} == set(caught.value.tensors)


def test_a_sample_is_some_tensors_and_another_seed_other_ones(path: Path) -> None:
    """
    Of at least a sixteenth of all bytes, and the same ones again with the same seed.
    """
    with open_files(path) as files:
        manifest = find_manifest(files)
        names = [
            TensorChecks(files, manifest, how=Verification.SAMPLED, seed=seed).names
            for seed in (0, 0, 1, 2)
        ]
        found = verify(files, how=Verification.SAMPLED)
        assert files.index.payload_bytes <= 16 * found.bytes
    assert names[0] == names[1]
    assert len(set(names)) > 1
    assert found.tensors == len(names[0])


def test_nothing_is_compared_when_it_is_off(path: Path) -> None:
    """
    Neither tensors nor what the file says.
    """
    with open_files(path) as files:
        assert 0 == verify(files, how=Verification.OFF).bytes


def test_another_type_of_the_same_size_is_found(tmp_path: Path) -> None:
    """
    The bytes are the same; what the file says of them is not.
    """
    write_pack({"w": np.ones(3, np.float32)}, tmp_path / "m.flashpack")
    data = (tmp_path / "m.flashpack").read_bytes()
    (tmp_path / "m.flashpack").write_bytes(data.replace(b'"float32"', b'"int32"  '))
    with open_files(tmp_path / "m.flashpack") as files:
        for how in (Verification.WHOLE, Verification.SAMPLED):
            with pytest.raises(CorruptWeightsError, match="other types, shapes or places"):
                verify(files, how=how)


@pytest.mark.parametrize("other", [{"w": np.ones(3)}, {"v": np.ones(3)}, {}], ids=len)
def test_the_manifest_of_another_file_is_none_of_this(
    other: dict[str, Any], tmp_path: Path
) -> None:
    """
    The name that is too much, or missing, is told.
    """
    write_safetensors({"w": np.ones(3), "x": np.ones(1)}, tmp_path / "m.safetensors")
    write_safetensors(other, tmp_path / "n.safetensors")
    manifest_path(tmp_path / "n.safetensors").replace(manifest_path(tmp_path / "m.safetensors"))
    told = pytest.raises(CorruptWeightsError, match="the manifest says otherwise")
    with open_files(tmp_path / "m.safetensors") as files, told:
        verify(files)


def test_without_a_manifest_nothing_is_compared_in_silence(tmp_path: Path) -> None:
    """
    The error names the file that is missing.
    """
    write_pack({"w": np.ones(3)}, tmp_path / "m.flashpack", manifest=False)
    with open_files(tmp_path / "m.flashpack") as files, pytest.raises(WeightsError) as caught:
        verify(files)
    assert str(manifest_path(tmp_path / "m.flashpack")) == caught.value.path


def test_a_manifest_of_files_that_somebody_else_wrote_can_be_made(tmp_path: Path) -> None:
    """
    Of several files, too: it lies beside their index, and opening their folder finds it.
    """
    where = {}
    for number, name in enumerate("ab", 1):
        where[name] = f"model-{number:05}-of-00002.safetensors"
        write_safetensors({name: np.ones(number)}, tmp_path / where[name], manifest=False)
    index = tmp_path / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": where}))
    with open_files(tmp_path) as files:
        made = manifest_of(files, provenance=Provenance(checkpoint="some/model"))
        write_manifest(made, manifest_path(files.chosen))
    digests = [
        hashlib.sha256((tmp_path / file).read_bytes()).hexdigest() for file in where.values()
    ]
    assert digests == [note.sha256 for note in made.files]
    assert index.with_name("model.safetensors.index.json.manifest.json").exists()
    for path in (tmp_path, index):
        with open_files(path) as files:
            assert made == find_manifest(files)
            assert 2 == verify(files).tensors


def test_tensors_can_be_compared_as_they_come_and_in_any_order(path: Path) -> None:
    """
    As a loader does, with what it has in memory.
    """
    with open_files(path) as files:
        checks = TensorChecks(files, find_manifest(files))
        for entry in reversed(files.index.entries):
            checks.check(entry.name, os.pread(files.fd(0), entry.nbytes, entry.start))
        assert len(files.index) == checks.finish().tensors
        checks.check("large", b"other")
        with pytest.raises(WeightChecksumError):
            checks.finish()


def test_a_file_that_is_cut_meanwhile_is_an_error(path: Path) -> None:
    """
    Not a signal, and not a checksum.
    """
    with open_files(path) as files:
        os.truncate(path, 1 << 20)
        with pytest.raises(WeightsChangedError):
            verify(files)


def test_comparing_can_be_stopped(path: Path) -> None:
    """
    After the piece that is at hand.
    """

    class Cancelled:
        cancelled = True

    with open_files(path) as files, pytest.raises(WeightsCancelledError):
        verify(files, cancel=Cancelled())


def test_progress_ends_with_all_bytes(path: Path) -> None:
    """
    Of those that are compared.
    """
    told: list[tuple[int, int]] = []
    with open_files(path) as files:
        verify(files, progress=lambda done, total: told.append((done, total)))
        assert (files.index.payload_bytes,) * 2 == told[-1]


@pytest.mark.parametrize("suffix", ["flashpack", "safetensors"])
def test_several_tensors_without_numbers_are_those_of_their_manifest(
    suffix: str, tmp_path: Path
) -> None:
    """
    They lie at the same place, and their order is the same for who writes and who reads.
    """
    tensors = {name: np.zeros(0, np.int8) for name in "dbca"} | {"w": np.ones(3, np.int8)}
    path = tmp_path / f"m.{suffix}"
    (write_pack if suffix == "flashpack" else write_safetensors)(tensors, path)
    with open_files(path) as files:
        assert 5 == verify(files).tensors


@pytest.mark.parametrize("lie", ["payload_bytes", "size_bytes"])
def test_a_manifest_that_speaks_of_other_sizes_is_none_of_this_file(lie: str, path: Path) -> None:
    """
    All that it says is compared, not checksums only.
    """
    beside = manifest_path(path)
    said = json.loads(beside.read_text())
    (said if lie in said else said["files"][0])[lie] += 1
    beside.write_text(json.dumps(said))
    with open_files(path) as files, pytest.raises(CorruptWeightsError, match="manifest says"):
        verify(files)


def test_a_path_is_no_manifest(path: Path) -> None:
    """
    And is told how to become one.
    """
    with open_files(path) as files, pytest.raises(ContractError, match="read_manifest"):
        verify(files, str(manifest_path(path)))  # type: ignore[arg-type]
