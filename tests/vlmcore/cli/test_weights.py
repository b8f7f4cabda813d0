"""``vlmcore weights inspect``, ``verify``, ``pack`` and ``unpack``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from golden.weights.cases import all_dtypes
from vlmcore.cli._bytes_progress import BytesProgress, in_bytes
from vlmcore.embedded import model_directory
from vlmcore.weights.manifest import manifest_path
from vlmcore.weights.opening import open_files
from vlmcore.weights.writing import write_pack, write_safetensors

GOLDEN = Path(__file__).parents[2] / "golden" / "weights"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """
    Write a pack of every type.
    """
    return Path(write_pack(all_dtypes(), tmp_path / "all.flashpack").path)


def flip(path: Path, name: str) -> None:
    """Flip a bit of a tensor."""
    with open_files(path) as files:
        at = files.index[name].start
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    path.write_bytes(data)


def test_a_pack_is_looked_at_by_a_person(command: Any, path: Path) -> None:
    """
    Its format, its types, where it comes from; a line for each tensor if asked.
    """
    done = command("weights", "inspect", path)
    assert (0, "") == (done.code, done.err)
    assert done.out.startswith(f"{path}: flashpack_v4, 95 tensors, ")
    assert "  bfloat16: 5 tensors, 58 bytes\n" in done.out
    assert "  manifest: payload " in done.out
    lines = command("weights", "inspect", path, "--tensors").out.splitlines()
    assert "bfloat16.scalar.gewicht-ä  bfloat16  []  2 bytes" in lines


def test_a_pack_is_looked_at_by_a_program(command: Any, path: Path) -> None:
    """
    Everything that is known, each tensor with its checksum.
    """
    said = json.loads(command("weights", "inspect", path, "--json").out)
    assert ("flashpack_v4", 95) == (said["format"], len(said["tensors"]))
    (tensor,) = [each for each in said["tensors"] if each["name"] == "int64.one.gewicht-ä"]
    assert ("int64", [1], 8) == (tensor["dtype"], tensor["shape"], tensor["stop"] - tensor["start"])
    assert 32 == len(tensor["xxh3_128"])
    assert 64 == len(said["manifest"]["sha256"][0])


def test_a_model_is_packed_and_comes_from_where_it_was(command: Any, tmp_path: Path) -> None:
    """
    One line, or one JSON object.
    """
    target = tmp_path / "m.flashpack"
    done = command("weights", "pack", model_directory(), target, "--revision", "v1")
    assert (0, f"{target}: flashpack_v3, 109 tensors, 3.8 MB\n") == (done.code, done.out)
    assert "  from model at v1\n" in command("weights", "inspect", target).out
    again = command("weights", "unpack", target, tmp_path / "m.safetensors", "--json")
    assert "safetensors" == json.loads(again.out)["format"]
    whole = (model_directory() / "model.safetensors").read_bytes()
    assert whole == (tmp_path / "m.safetensors").read_bytes()


def test_numbers_are_converted_when_asked(command: Any, tmp_path: Path) -> None:
    """
    And the file says so.
    """
    target = tmp_path / "m.flashpack"
    words = ("--dtype", "bfloat16", "--no-manifest", "--align", "64")
    assert 0 == command("weights", "pack", model_directory(), target, *words).code
    said = command("weights", "inspect", target).out
    assert "  bfloat16: 109 tensors" in said
    assert "  no manifest\n" in said


def test_weights_that_are_as_they_were_are_verified(command: Any, path: Path) -> None:
    """
    All of them, or a sample.
    """
    done = command("weights", "verify", path)
    assert (0, "") == (done.code, done.err)
    assert "95 of 95 tensors" in done.out
    assert 0 == command("weights", "verify", path, "--sampled", "--seed", "3").code
    said = json.loads(command("weights", "verify", path, "--json").out)
    assert (True, 95) == (said["same"], said["compared"]["tensors"])


def test_a_flipped_bit_is_told_by_name_and_has_an_exit_code_of_its_own(
    command: Any, path: Path
) -> None:
    """
    A script can tell it from a file that is not there.
    """
    flip(path, "float16.matrix.gewicht-ä")
    done = command("weights", "verify", path, "--json")
    assert 5 == done.code
    assert "float16.matrix" in done.err
    said = json.loads(done.out)
    assert (False, ["float16.matrix.gewicht-ä"]) == (said["same"], said["tensors"])
    assert 1 == command("weights", "verify", path.with_name("nothing")).code


def test_another_manifest_can_be_named(command: Any, path: Path, tmp_path: Path) -> None:
    """
    One that came another way.
    """
    elsewhere = tmp_path / "elsewhere.json"
    manifest_path(path).replace(elsewhere)
    assert 1 == command("weights", "verify", path).code
    assert 0 == command("weights", "verify", path, "--manifest", elsewhere).code


@pytest.mark.parametrize(
    "words",
    [
        ("inspect", "nothing"),
        ("inspect", "cut.flashpack"),
        ("verify", "good.safetensors"),
        ("pack", "nothing", "out"),
        ("pack", "cut.flashpack", "out"),
        ("pack", "good.safetensors", "no/folder"),
        ("pack", "good.safetensors", "good.safetensors"),
        ("pack", "good.safetensors", "out", "--dtype", "float16"),
        ("unpack", "complex.flashpack", "out"),
        ("unpack", "good.safetensors", "out", "--checkpoint", "\x1b[2J"),
        ("pack", "good.safetensors", "out", "--align", "-1"),
    ],
)
def test_what_cannot_be_done_is_told_in_one_line(
    words: tuple[str, ...], command: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    The exit code says that a file is the reason, and no file is left.
    """
    monkeypatch.chdir(tmp_path)
    write_safetensors({"w": np.float32([1e9])}, "good.safetensors", manifest=False)
    write_pack({"w": np.ones(2, np.complex128)}, "complex.flashpack", manifest=False)
    (tmp_path / "cut.flashpack").write_bytes((GOLDEN / "one-dtype.flashpack").read_bytes()[:-1])
    before = set(tmp_path.iterdir())
    done = command("weights", *words)
    assert (1, "") == (done.code, done.out)
    assert done.err.startswith("vlmcore: ")
    assert 1 == done.err.count("\n")
    assert "\x1b" not in done.err
    assert before == set(tmp_path.iterdir())


@pytest.mark.parametrize("words", [(), ("pack", "a"), ("pack", "a", "b", "--dtype", "int8")])
def test_words_that_are_wrong_are_told_before_anything_is_done(
    words: tuple[str, ...], command: Any
) -> None:
    """
    As of every command.
    """
    assert 2 == command("weights", *words).code


def test_sizes_are_written_as_people_read_them() -> None:
    """
    In powers of ten, as disks are sold.
    """
    sizes = (0, 999, 1000, 3_825_664, 24 * 10**9, 2 * 10**12)
    expected = ["0 bytes", "999 bytes", "1.0 kB", "3.8 MB", "24.0 GB", "2.0 TB"]
    assert expected == [in_bytes(size) for size in sizes]


def test_progress_is_a_line_that_takes_itself_away(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """
    Where a person watches; nowhere else.
    """
    with BytesProgress("packing", quiet=False) as progress:
        progress(5, 10)
    assert "" == capsys.readouterr().err
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    moments = iter([0.0, 1.0, 1.01, 2.0])
    monkeypatch.setattr("time.monotonic", lambda: next(moments))
    with BytesProgress("packing", quiet=False) as progress:
        progress(5_000_000, 10_000_000)
        progress(6_000_000, 10_000_000)
        progress(8_000_000, 10_000_000)
    lines = capsys.readouterr().err.split("\r")
    assert "packing 5.0 MB of 10.0 MB, 50%, 5.0 MB/s" in lines
    assert "packing 8.0 MB of 10.0 MB, 80%, 4.0 MB/s" in lines
    assert not lines[-2].strip()


def test_a_file_whose_name_leaves_no_room_for_a_manifest_is_looked_at(
    command: Any, tmp_path: Path
) -> None:
    """
    The system does not even say that there is none.
    """
    path = tmp_path / ("m" * 250)
    write_pack({"w": np.ones(4, np.float32)}, path, manifest=False)
    done = command("weights", "inspect", path)
    assert (0, "") == (done.code, done.err)
    assert "  no manifest\n" in done.out


@pytest.mark.parametrize("name", ["inspect", "verify", "load", "tune", "pack", "unpack"])
def test_how_many_tensors_are_let_in_is_an_option(
    command: Any, name: str, path: Path, tmp_path: Path
) -> None:
    """
    Models of many experts have more than usual: each command takes them if it is told.
    """
    target = (tmp_path / "target",) if name.endswith("pack") else ()
    done = command("weights", name, path, *target, "--max-tensors", 94)
    assert (1, "") == (done.code, done.out)
    assert "max_tensors: got 95, limit is 94" in done.err


def test_a_limit_that_is_none_is_a_wrong_word(command: Any, path: Path) -> None:
    """
    As zero tensors.
    """
    done = command("weights", "inspect", path, "--max-tensors", 0)
    assert (2, "") == (done.code, done.out)
    assert "max_tensors: got 0" in done.err
