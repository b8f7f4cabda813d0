"""Tests of `vlmcore.weights.writing` with tensors of torch."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from vlmcore.errors import ContractError
from vlmcore.weights.modules import load_tensors
from vlmcore.weights.writing import write_pack


@pytest.mark.filterwarnings("ignore:torch.quantize_per_tensor", "ignore:The PyTorch API of nested")
@pytest.mark.parametrize(
    ("make", "kind"),
    [
        (lambda: torch.ones(3, device="meta"), "got meta"),
        (lambda: torch.eye(3).to_sparse(), "got torch.sparse_coo"),
        (lambda: torch.quantize_per_tensor(torch.ones(3), 0.1, 0, torch.qint8), "got quantized"),
        (lambda: torch.nested.nested_tensor([torch.ones(2), torch.ones(3)]), "got nested"),
    ],
    ids=("meta", "sparse", "quantized", "nested"),
)
def test_a_tensor_that_is_more_than_its_numbers_is_not_written(
    make: Callable[[], torch.Tensor], kind: str, tmp_path: Path
) -> None:
    """
    The error names it and its kind, before there is a file.
    """
    with pytest.raises(ContractError, match=f"'w': {kind}"):
        write_pack({"v": torch.ones(3), "w": make()}, tmp_path / "m.flashpack")
    assert [] == list(tmp_path.iterdir())


def test_a_view_that_changes_signs_as_it_is_read_is_written_as_it_reads(tmp_path: Path) -> None:
    """
    The imaginary part of a conjugate is the same memory, and the other sign.
    """
    view = torch.complex(torch.ones(3), torch.arange(3.0)).conj().imag
    assert view.is_neg()

    write_pack({"w": view}, tmp_path / "m.flashpack", manifest=False)

    assert [-0.0, -1.0, -2.0] == load_tensors(tmp_path / "m.flashpack")["w"].tolist()
