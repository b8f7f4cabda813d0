"""Tests of `vlmcore.weights._streaming`."""

from __future__ import annotations

import os
import threading
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest

from golden.weights.cases import all_dtypes
from vlmcore.errors import WeightsChangedError
from vlmcore.weights._streaming import pieces_of
from vlmcore.weights.budget import ReadBudget
from vlmcore.weights.opening import open_files
from vlmcore.weights.writing import write_safetensors

SMALL = ReadBudget(staging_bytes=4 * 4096, readers=3, chunk_bytes=4096)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """
    Write many small tensors and a large one.
    """
    large = np.random.default_rng(0).integers(0, 256, 100_001, np.uint8)
    arrays = {**all_dtypes(), "large": large}
    return Path(write_safetensors(arrays, tmp_path / "m.safetensors", manifest=False).path)


@pytest.mark.parametrize("is_reversed", ["in order", "reversed"])
def test_pieces_come_in_the_order_that_was_asked_for(is_reversed: str, path: Path) -> None:
    """
    Each tensor from its first byte to its last, and those of no bytes once.
    """
    found: dict[str, bytes] = defaultdict(bytes)
    with open_files(path) as files:
        entries = list(files.index.entries)
        if is_reversed == "reversed":
            entries.reverse()
        for piece in pieces_of(files, entries, SMALL):
            assert len(piece.data) <= SMALL.chunk_bytes
            found[piece.entry.name] += piece.data.tobytes()
            assert piece.is_last == (len(found[piece.entry.name]) == piece.entry.nbytes)
        assert [entry.name for entry in entries] == list(found)
        for entry in entries:
            assert os.pread(files.fd(0), entry.nbytes, entry.start) == found[entry.name]


def test_who_stops_taking_pieces_leaves_no_thread(path: Path) -> None:
    """
    What was read ahead is dropped.
    """
    before = threading.active_count()
    with open_files(path) as files:
        pieces = pieces_of(files, files.index.entries, SMALL)
        next(pieces)
        pieces.close()
    assert before == threading.active_count()


def test_a_file_that_is_cut_while_it_is_read_is_an_error(path: Path) -> None:
    """
    Of the piece that is missing.
    """
    with open_files(path) as files:
        os.truncate(path, files.index["large"].start + 10)
        with pytest.raises(WeightsChangedError):
            list(pieces_of(files, [files.index["large"]], SMALL))
