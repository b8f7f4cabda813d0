"""Packs and safetensors, both ways between `vlmcore.weights` and the packages of the formats."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from golden.weights.cases import SHAPES
from vlmcore.weights.dtypes import DType
from vlmcore.weights.opening import open_files
from vlmcore.weights.packing import pack, unpack
from vlmcore.weights.writing import write_pack, write_safetensors

flashpack = pytest.importorskip("flashpack", reason="`nox -s weights_peers` installs it")
safetensors = pytest.importorskip("safetensors.torch")

pytestmark = pytest.mark.filterwarnings("ignore:ComplexHalf support is experimental")
TORCH = tuple(dtype for dtype in DType if hasattr(torch, dtype.value))
BOTH = tuple(dtype for dtype in TORCH if dtype.safetensors is not None)
# What safetensors 0.8 writes, and does not read as torch.
WRITTEN_ONLY = {DType.FLOAT8_E8M0FNU}


def tensor(dtype: DType, shape: tuple[int, ...], seed: int) -> torch.Tensor:
    """Make a tensor whose bytes are anything."""
    made = torch.Generator().manual_seed(seed)
    if dtype is DType.BOOL:
        return torch.randint(0, 2, shape, generator=made).bool()
    raw = torch.randint(0, 256, (*shape, dtype.itemsize), dtype=torch.uint8, generator=made)
    return raw.view(getattr(torch, dtype.value)).reshape(shape)


def tensors(dtypes: tuple[DType, ...]) -> dict[str, torch.Tensor]:
    """Make one of each type and shape."""
    return {
        f"{dtype.value}.{name}": tensor(dtype, shape, 10 * i + j)
        for i, dtype in enumerate(dtypes)
        for j, (name, shape) in enumerate(SHAPES.items())
    }


def raw(each: torch.Tensor) -> tuple[str, bytes]:
    """Tell a tensor by its type and bytes; NaN is not NaN otherwise."""
    flat = each.detach().contiguous().reshape(-1)
    if not flat.numel():
        return str(each.dtype), b""
    return str(each.dtype), flat.view(torch.uint8).numpy().tobytes()


def assert_same(expected: dict[str, torch.Tensor], found: Any, *, scalars: bool = True) -> None:
    """Compare types, shapes and bytes."""
    assert expected.keys() == set(found.keys())
    for name, each in expected.items():
        assert raw(each) == raw(found[name]), name
        if scalars or each.ndim:
            assert each.shape == found[name].shape, name


def read_pack(path: Path) -> dict[str, torch.Tensor]:
    """Read a pack with flashpack itself."""
    from flashpack.deserialization import (  # noqa: PLC0415
        iterate_from_flash_tensor,
        read_flashpack_file,
    )

    storage, meta = read_flashpack_file(str(path), device="cpu", silent=True)
    return {name: view.clone() for name, view in iterate_from_flash_tensor(storage, meta)}


@pytest.mark.parametrize("dtype", TORCH, ids=lambda dtype: dtype.value)
@pytest.mark.parametrize("align_bytes", [0, 1, 24, 128, 4096])
def test_a_pack_of_one_type_is_the_one_that_flashpack_writes(
    dtype: DType, align_bytes: int, tmp_path: Path
) -> None:
    """
    Byte for byte, whatever the alignment.
    """
    made = tensors((dtype,))
    write_pack(made, tmp_path / "ours", align_bytes=align_bytes)
    flashpack.pack_to_file(made, str(tmp_path / "theirs"), None, align_bytes=align_bytes)
    assert (tmp_path / "theirs").read_bytes() == (tmp_path / "ours").read_bytes()


@pytest.mark.parametrize("align_bytes", [0, 1, 24, 128, 4096])
def test_a_pack_of_all_types_is_the_one_that_flashpack_writes(
    align_bytes: int, tmp_path: Path
) -> None:
    """
    Byte for byte, and each reads what the other wrote.
    """
    made = tensors(TORCH)
    write_pack(made, tmp_path / "ours", align_bytes=align_bytes)
    flashpack.pack_to_file(made, str(tmp_path / "theirs"), None, align_bytes=align_bytes)
    assert (tmp_path / "theirs").read_bytes() == (tmp_path / "ours").read_bytes()
    with open_files(tmp_path / "theirs") as files:
        assert set(made) == set(files.index)
    if align_bytes:
        assert_same(made, read_pack(tmp_path / "ours"), scalars=False)


def test_safetensors_are_those_that_safetensors_writes(tmp_path: Path) -> None:
    """
    Byte for byte, and each reads what the other wrote.
    """
    made = tensors(BOTH)
    write_safetensors(made, tmp_path / "ours", metadata={"format": "pt", "b": "ä", "a": "1"})
    safetensors.save_file(made, tmp_path / "theirs", {"format": "pt"})
    write_safetensors(made, tmp_path / "ours.plain", metadata={"format": "pt"})
    assert (tmp_path / "theirs").read_bytes() == (tmp_path / "ours.plain").read_bytes()
    with open_files(tmp_path / "theirs") as files:
        assert set(made) == set(files.index)
    readable = tensors(tuple(dtype for dtype in BOTH if dtype not in WRITTEN_ONLY))
    write_safetensors(readable, tmp_path / "readable")
    assert_same(readable, safetensors.load_file(tmp_path / "readable"))


def test_a_pack_of_a_model_is_the_one_that_flashpack_writes(tmp_path: Path) -> None:
    """
    By way of safetensors, and back.
    """
    model = torch.nn.Sequential(torch.nn.Linear(7, 5), torch.nn.BatchNorm1d(5)).bfloat16()
    made = dict(model.state_dict())
    safetensors.save_file(made, tmp_path / "m.safetensors", {"format": "pt"})
    pack(tmp_path / "m.safetensors", tmp_path / "m.flashpack")
    assert_same(made, read_pack(tmp_path / "m.flashpack"), scalars=False)
    unpack(tmp_path / "m.flashpack", tmp_path / "again.safetensors")
    again = (tmp_path / "again.safetensors").read_bytes()
    assert (tmp_path / "m.safetensors").read_bytes() == again


@pytest.mark.parametrize(
    "made",
    [
        torch.arange(24.0).reshape(2, 3, 4).permute(2, 0, 1),
        torch.arange(24).bfloat16()[::2],
        torch.ones(()).expand(3, 2),
        torch.complex(torch.ones(3), torch.ones(3)).conj(),
        torch.arange(6.0).reshape(2, 3).t().to(torch.float8_e4m3fn),
        torch.nn.Parameter(torch.ones(2, 2)).t(),
    ],
    ids=["permuted", "stepped", "expanded", "conjugate", "float8", "parameter"],
)
def test_a_tensor_that_is_not_contiguous_is_written_as_its_copy_would_be(
    made: torch.Tensor, tmp_path: Path
) -> None:
    """
    Where upstream raises.
    """
    write_pack({"w": made}, tmp_path / "ours")
    copy = made.detach().clone(memory_format=torch.contiguous_format).resolve_conj()
    flashpack.pack_to_file({"w": copy}, str(tmp_path / "theirs"), None)
    assert (tmp_path / "theirs").read_bytes() == (tmp_path / "ours").read_bytes()


def test_tied_tensors_are_both_written_as_flashpack_writes_them(tmp_path: Path) -> None:
    """
    A name each.
    """
    tied = torch.ones(3)
    made = {"a": tied, "b": tied, "c": tied.view(3, 1)}
    write_pack(made, tmp_path / "ours")
    flashpack.pack_to_file(made, str(tmp_path / "theirs"), None)
    assert (tmp_path / "theirs").read_bytes() == (tmp_path / "ours").read_bytes()


def test_weights_that_safetensors_left_out_as_tied_are_known_by_their_names(tmp_path: Path) -> None:
    """
    As it notes them in its metadata.
    """
    model = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.Linear(3, 3))
    model[1].weight = model[0].weight
    safetensors.save_model(model, str(tmp_path / "m.safetensors"))
    with open_files(tmp_path / "m.safetensors") as files:
        kept = next(name for name in files.index if name.endswith("weight"))
        (tied,) = files.index.aliases.items()
    assert {"0.weight", "1.weight"} == {*tied}
    assert kept == tied[1]
