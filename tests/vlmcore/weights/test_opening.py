"""Tests of `vlmcore.weights.opening`."""

from __future__ import annotations

import gc
import json
import os
from pathlib import Path

import numpy as np
import pytest

from vlmcore.embedded import model_directory
from vlmcore.errors import CorruptWeightsError, WeightsChangedError, WeightsError
from vlmcore.weights.budget import ReadBudget
from vlmcore.weights.dtypes import DType
from vlmcore.weights.index import WeightFormat
from vlmcore.weights.opening import open_files
from vlmcore.weights.ranges import FileRange, RangeReader
from vlmcore.weights.writing import write_pack, write_safetensors


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


def write_tensors(path: Path, *names: str) -> None:
    """Write a file of safetensors, an array a name."""
    write_safetensors({name: np.ones(2, np.float32) for name in names}, path, manifest=False)


def write_shards(folder: Path, stem: str = "model") -> None:
    """Write two files of safetensors and their index."""
    names = {"a": f"{stem}-00001-of-00002.safetensors", "b": f"{stem}-00002-of-00002.safetensors"}
    for name, file in names.items():
        write_tensors(folder / file, name)
    index = folder / f"{stem}.safetensors.index.json"
    index.write_text(json.dumps({"metadata": {"total_size": 16}, "weight_map": names}))


def test_several_files_are_one_checkpoint(tmp_path: Path) -> None:
    """
    Named in the order of their names, each with its tensors.
    """
    write_shards(tmp_path)
    with open_files(tmp_path) as files:
        assert ["a", "b"] == list(files.index)
        assert [0, 1] == [entry.file for entry in files.index.entries]
        assert [path.name for path in files.paths] == [file.name for file in files.index.files]
        assert files.fd(0) != files.fd(1)


@pytest.mark.parametrize(
    ("names", "chosen"),
    [
        (["w.safetensors"], "w.safetensors"),
        (["w.flashpack"], "w.flashpack"),
        (["w.safetensors", "model.safetensors"], "model.safetensors"),
        (["model.fp16.safetensors", "w.flashpack"], "model.fp16.safetensors"),
        (["w.safetensors", "w.flashpack.manifest.json", ".w.flashpack"], "w.safetensors"),
    ],
)
def test_a_folder_is_opened_by_the_file_that_is_meant(
    names: list[str], chosen: str, tmp_path: Path
) -> None:
    """
    The only one, or the only one that is called model.
    """
    for name in names:
        if name.endswith("flashpack"):
            (tmp_path / name).write_bytes(pack_bytes())
        else:
            write_tensors(tmp_path / name, "w")
    with open_files(tmp_path) as files:
        assert [chosen] == [path.name for path in files.paths]


def test_a_folder_of_several_files_and_another_one_is_opened_by_its_index(tmp_path: Path) -> None:
    """
    The parts are not taken for checkpoints.
    """
    write_shards(tmp_path)
    write_tensors(tmp_path / "consolidated.safetensors", "c")
    with open_files(tmp_path) as files:
        assert ["a", "b"] == list(files.index)


@pytest.mark.parametrize(
    "names", [[], ["a.flashpack", "b.flashpack"], ["model.flashpack", "model.safetensors"]]
)
def test_a_folder_in_which_it_is_not_clear_which_is_meant_is_refused(
    names: list[str], tmp_path: Path
) -> None:
    """
    The candidates are named.
    """
    for name in names:
        (tmp_path / name).write_bytes(pack_bytes())
    with pytest.raises(WeightsError, match=names[0] if names else "holds no weights"):
        open_files(tmp_path)


@pytest.mark.parametrize("name", ["weights", "weights.bin", "weights.flashpack"])
def test_a_pack_is_known_by_what_is_in_it_whatever_it_is_called(name: str, tmp_path: Path) -> None:
    """
    But for a file that is called as one of safetensors, which it has to be.
    """
    (tmp_path / name).write_bytes(pack_bytes())
    with open_files(tmp_path / name) as files:
        assert WeightFormat.FLASHPACK_V3 is files.index.format
    (tmp_path / "m.safetensors").write_bytes(pack_bytes())
    with pytest.raises(CorruptWeightsError):
        open_files(tmp_path / "m.safetensors")


def test_links_are_followed_as_the_cache_of_a_hub_has_them(tmp_path: Path) -> None:
    """
    To files, and from there no further than the file that was opened.
    """
    write_tensors(tmp_path / "blob", "w")
    (tmp_path / "model.safetensors").symlink_to("blob")
    with open_files(tmp_path / "model.safetensors") as files:
        (tmp_path / "blob").replace(tmp_path / "other")
        write_tensors(tmp_path / "blob", "another")
        files.check_unchanged()
        assert ["w"] == list(files.index)


def test_a_file_that_is_written_to_after_it_was_opened_is_an_error(tmp_path: Path) -> None:
    """
    Of the same size, too.
    """
    path = tmp_path / "m.flashpack"
    path.write_bytes(pack_bytes())
    with open_files(path) as files:
        os.utime(path, ns=(1, 1))
        with pytest.raises(WeightsChangedError, match="was written to"):
            files.check_unchanged()


def test_what_is_refused_leaves_no_file_open(tmp_path: Path) -> None:
    """
    A server may try many.
    """
    write_shards(tmp_path)
    (tmp_path / "model-00002-of-00002.safetensors").write_bytes(b"x")
    before = len(list(Path("/proc/self/fd").iterdir())) if Path("/proc/self/fd").exists() else 0
    for _ in range(3):
        with pytest.raises(CorruptWeightsError, match="00002-of-00002"):
            open_files(tmp_path)
    if before:
        assert before == len(list(Path("/proc/self/fd").iterdir()))


@pytest.mark.parametrize("path", ["", "a\0b", "nowhere/m.flashpack"])
def test_what_is_no_path_is_an_error_of_ours(
    path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    Not one of Python's; and an empty path does not open what lies where the process happens to be.
    """
    write_pack({"a": np.ones(1, np.float32)}, tmp_path / "m.flashpack")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(WeightsError):
        open_files(path)


def test_a_file_that_a_stranger_named_controls_no_terminal(tmp_path: Path) -> None:
    """
    The error is one line of characters, though the folder has a name of several in it.
    """
    try:
        (tmp_path / "x\x1b[31m\nm: is fine.flashpack").write_bytes(b"no pack")
    except OSError:
        pytest.skip("no such names here")
    with pytest.raises(WeightsError) as caught:
        open_files(tmp_path)
    assert str(caught.value).isprintable()
    assert r"x\x1b[31m\nm: is fine.flashpack" in str(caught.value)


def write_tied(folder: Path, notes: dict[str, dict[str, str]], metadata: object = None) -> Path:
    """Write two shards of a tensor each, ``a`` and ``b``, with a note in each."""
    for name in "ab":
        tensors = {name: np.ones(2, np.float32)}
        write_safetensors(tensors, folder / f"{name}.safetensors", metadata=notes.get(name, {}))
    path = folder / "model.safetensors.index.json"
    where = {name: f"{name}.safetensors" for name in "ab"}
    path.write_text(json.dumps({"metadata": metadata or {}, "weight_map": where}))
    return path


def test_tied_weights_of_several_files_are_found_wherever_they_are_noted(tmp_path: Path) -> None:
    """
    In the file of another shard, and in the index, as the writer of the hub does it.
    """
    said = {"total_size": 16, "d": "b"}
    with open_files(write_tied(tmp_path, {"a": {"c": "b"}}, said)) as files:
        assert {"c": "b", "d": "b"} == dict(files.index.aliases)
        assert {"c": "b", "d": "b"} == dict(files.index.metadata)


def test_a_name_that_is_tied_to_two_tensors_is_refused(tmp_path: Path) -> None:
    """
    Which of them it is nobody knows.
    """
    path = write_tied(tmp_path, {"a": {"c": "a"}, "b": {"c": "b"}})
    with pytest.raises(CorruptWeightsError, match="tied to 'a' and to 'b'"):
        open_files(path)


def test_a_note_that_could_be_no_name_ties_nothing(tmp_path: Path) -> None:
    """
    With control characters or a path it would reach a terminal as a name.
    """
    notes = {"../c": "a", "\x1b[2Jc": "a", "": "a", "c": "a"}
    path = tmp_path / "m.safetensors"
    write_safetensors({"a": np.ones(2, np.float32)}, path, metadata=notes)
    with open_files(path) as files:
        assert {"c": "a"} == dict(files.index.aliases)
        assert notes == dict(files.index.metadata)


def test_an_index_may_count_in_halves(tmp_path: Path) -> None:
    """
    Writers have made floats of its total size, with numbers of less than a byte.
    """
    with open_files(write_tied(tmp_path, {}, {"total_size": 16.5})) as files:
        assert ["a", "b"] == list(files.index)


def test_files_that_nobody_closed_are_closed_when_nobody_knows_them(tmp_path: Path) -> None:
    """
    A server that loads again and again does not run out of descriptors.
    """
    path = tmp_path / "m.flashpack"
    path.write_bytes(pack_bytes())
    files = open_files(path)
    fd = files.fd(0)
    os.fstat(fd)
    del files
    gc.collect()
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(fd)


def test_files_stay_open_as_long_as_they_are_read(tmp_path: Path) -> None:
    """
    A reader knows the files that it reads.
    """
    path = tmp_path / "m.flashpack"
    path.write_bytes(pack_bytes())
    into = np.zeros(12, np.uint8)
    with RangeReader(open_files(path), ReadBudget()) as reader:
        gc.collect()
        reader.read([FileRange(file=0, start=0, into=into)])
    assert list(range(12)) == into.tolist()
