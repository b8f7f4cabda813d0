"""Tests of `vlmcore.weights.manifest` and its schema."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import attrs
import jsonschema
import numpy as np
import pytest

from vlmcore.errors import ContractError, CorruptWeightsError, WeightsError, WeightsLimitError
from vlmcore.limits import WeightLimits
from vlmcore.weights.checksums import checksum_of, whole_checksum
from vlmcore.weights.manifest import (
    FileNote,
    Manifest,
    Provenance,
    manifest_path,
    read_manifest,
    write_manifest,
)
from vlmcore.weights.manifest_schema import MANIFEST
from vlmcore.weights.writing import write_pack

SUMS = {"a": checksum_of(b"a"), "b": checksum_of(b"b")}
WHOLE = Manifest(
    files=[FileNote(name="m.flashpack", size_bytes=7, sha256="0" * 64)],
    tensors=SUMS,
    payload_bytes=2,
    payload=whole_checksum(SUMS.values()),
    index=checksum_of(b"index"),
    provenance=Provenance(
        checkpoint="some/model",
        revision="0123abc",
        files=[FileNote(name="m.safetensors", size_bytes=9)],
    ),
    made_by={"vlmcore": "1"},
)


@pytest.mark.parametrize(
    "manifest",
    [
        WHOLE,
        attrs.evolve(WHOLE, provenance=None, made_by={}),
        attrs.evolve(WHOLE, provenance=Provenance(checkpoint="x")),
        attrs.evolve(WHOLE, tensors={}, payload=whole_checksum([]), payload_bytes=0),
    ],
)
def test_a_manifest_is_read_as_it_was_written(manifest: Manifest, tmp_path: Path) -> None:
    """
    With everything that is known, and with little.
    """
    write_manifest(manifest, tmp_path / "m.json")
    assert manifest == read_manifest(tmp_path / "m.json")


def test_a_manifest_fits_its_schema(tmp_path: Path) -> None:
    """
    The one that is published.
    """
    write_pack({"w": np.ones(3, np.float32)}, tmp_path / "m.flashpack")
    written = json.loads(manifest_path(tmp_path / "m.flashpack").read_text(encoding="utf-8"))
    jsonschema.validate(written, MANIFEST.json_schema())


@pytest.mark.parametrize(
    "change",
    [
        {"tensors_xxh3_128": {"a": "0" * 31}},
        {"tensors_xxh3_128": {"a": "g" * 32, "b": SUMS["b"]}},
        {"tensors_xxh3_128": {"a": SUMS["b"], "b": SUMS["a"]}},
        {"tensors_xxh3_128": {"a": 1}},
        {"tensors_xxh3_128": ["a"]},
        {"payload_xxh3_128": "0" * 32},
        {"payload_bytes": -1},
        {"payload_bytes": 1.5},
        {"files": [{"name": "a\nb", "size_bytes": 1}]},
        {"files": [{"name": "a", "size_bytes": 1, "sha256": "0" * 63}]},
        {"files": [{"name": "a"}]},
        {"source": {"checkpoint": "", "files": []}},
        {"source": {"checkpoint": "a\x1b[31m", "files": []}},
        {"version": 2},
        {"schema": "something-else"},
        {"more": 1},
    ],
    ids=str,
)
def test_a_manifest_that_cannot_be_true_is_refused(change: dict[str, Any], tmp_path: Path) -> None:
    """
    One error of one line that starts with its path.
    """
    path = tmp_path / "m.json"
    write_manifest(WHOLE, path)
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(CorruptWeightsError) as caught:
        read_manifest(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "text", [b"", b"{", b"[]", b"\xff", b"[" * 100_000, b'{"a":1,"a":2}', b"NaN"], ids=repr
)
def test_what_is_no_manifest_is_refused(text: bytes, tmp_path: Path) -> None:
    """
    No error of Python's own.
    """
    (tmp_path / "m.json").write_bytes(text)
    with pytest.raises(CorruptWeightsError):
        read_manifest(tmp_path / "m.json")


def test_a_manifest_that_is_too_large_is_refused(tmp_path: Path) -> None:
    """
    By its size, and by how much is in it.
    """
    path = tmp_path / "m.json"
    write_manifest(WHOLE, path)
    with pytest.raises(WeightsLimitError, match="max_manifest_bytes"):
        read_manifest(path, limits=WeightLimits(max_manifest_bytes=100))
    path.write_text('{"tensors_xxh3_128":[' + "[]," * 400_000 + "[]]}")
    with pytest.raises(WeightsLimitError, match="max_nodes"):
        read_manifest(path)


def test_a_manifest_that_is_no_file_is_refused(tmp_path: Path) -> None:
    """
    A pipe would be waited for.
    """
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path, tmp_path / "pipe", tmp_path / "nowhere"):
        with pytest.raises(WeightsError):
            read_manifest(path)


def test_a_manifest_needs_the_checksum_of_every_tensor(tmp_path: Path) -> None:
    """
    The missing one is named.
    """
    written = write_pack({"w": np.ones(3, np.float32)}, tmp_path / "m.flashpack")
    with pytest.raises(ContractError, match="got none of 'w'"):
        Manifest.of(written.layout.index("m.flashpack"), {})


@pytest.mark.parametrize("wrong", [{"size_bytes": -1}, {"sha256": "x"}, {"name": ""}], ids=str)
def test_a_note_of_a_file_is_checked(wrong: dict[str, Any]) -> None:
    """
    Its name, its size, its digest.
    """
    with pytest.raises(ContractError):
        FileNote(**({"name": "a", "size_bytes": 1} | wrong))


def test_the_manifest_of_more_tensors_than_usual_is_read_with_wider_limits(tmp_path: Path) -> None:
    """
    What can be written can be read; who does not ask for it gets the usual bound.
    """
    usual = WeightLimits().max_tensors
    checksums = dict.fromkeys(map(str, range(usual + 1)), checksum_of(b""))
    many = Manifest(
        files=(),
        tensors=checksums,
        payload_bytes=0,
        payload=whole_checksum(checksums.values()),
        index=checksum_of(b""),
    )
    path = tmp_path / "m.manifest.json"
    write_manifest(many, path)
    assert many.tensors == read_manifest(path, limits=WeightLimits.for_tensors(usual + 1)).tensors
    with pytest.raises(WeightsLimitError):
        read_manifest(path)


def test_a_manifest_that_is_read_lets_in_no_more_tensors_than_its_limits(tmp_path: Path) -> None:
    """
    Also where they fit the bound of its values.
    """
    write_pack({name: np.ones(1, np.int8) for name in "abc"}, tmp_path / "m.flashpack")
    with pytest.raises(WeightsLimitError, match="max_tensors: got 3, limit is 2"):
        read_manifest(tmp_path / "m.flashpack.manifest.json", limits=WeightLimits(max_tensors=2))
