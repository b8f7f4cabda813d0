"""Tests of `vlmcore.weights.opening`."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from vlmcore.embedded import model_directory
from vlmcore.errors import WeightsChangedError, WeightsError
from vlmcore.weights.dtypes import DType
from vlmcore.weights.index import WeightFormat
from vlmcore.weights.opening import open_files


def pack_bytes() -> bytes:
    """Write a pack of one tensor, as the format says."""
    footer = {
        "format": "flashpack_v3",
        "target_dtype": "bfloat16",
        "align_bytes": 128,
        "total_elems": 6,
        "index": [{"name": "w", "shape": [2, 3], "offset": 0, "length": 6}],
    }
    text = json.dumps(footer).encode()
    return bytes(range(12)) + text + len(text).to_bytes(8, "little") + b"FLASHPK\0"


def test_a_pack_says_where_its_tensors_are(tmp_path: Path) -> None:
    """
    Name, type, shape, file and bytes; and what is read there is the tensor.
    """
    path = tmp_path / "m.flashpack"
    path.write_bytes(pack_bytes())
    with open_files(path) as files:
        entry = files.index["w"]
        assert (WeightFormat.FLASHPACK_V3, 12) == (files.index.format, files.index.payload_bytes)
        assert (DType.BFLOAT16, (2, 3), 0, 12) == (entry.dtype, entry.shape, 0, entry.stop)
        assert bytes(range(12)) == os.pread(files.fd(0), entry.nbytes, entry.start)


def test_a_folder_of_a_model_is_opened_by_the_one_file_in_it() -> None:
    """
    As the embedded model's, which is safetensors.
    """
    with open_files(model_directory()) as files:
        assert WeightFormat.SAFETENSORS is files.index.format
        assert ["model.safetensors"] == [path.name for path in files.paths]


def test_a_file_that_shrinks_after_it_was_opened_is_an_error(tmp_path: Path) -> None:
    """
    Before anything is read behind its end.
    """
    path = tmp_path / "m.flashpack"
    path.write_bytes(pack_bytes())
    with open_files(path) as files:
        files.check_unchanged()
        os.truncate(path, 5)
        with pytest.raises(WeightsChangedError, match="has 5 bytes"):
            files.check_unchanged()


def test_closed_files_are_not_read(tmp_path: Path) -> None:
    """
    Their descriptors may belong to something else by then.
    """
    path = tmp_path / "m.flashpack"
    path.write_bytes(pack_bytes())
    files = open_files(path)
    files.close()
    files.close()
    with pytest.raises(WeightsError, match="is closed"):
        files.fd(0)
