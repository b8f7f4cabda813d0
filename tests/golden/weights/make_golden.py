"""
Write the golden files of weights with the real packages; run by hand where they are installed.

``python tests/golden/weights/make_golden.py`` needs flashpack, safetensors and torch.
"""

from __future__ import annotations

import json
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch
from flashpack import pack_to_file
from safetensors.torch import save_file

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parents[1]))

from golden.weights.cases import all_dtypes, one_dtype  # noqa: E402
from vlmcore.weights.dtypes import DType  # noqa: E402


def tensors(arrays: dict[str, Any]) -> dict[str, torch.Tensor]:
    """Turn arrays into tensors of torch, of the same bytes."""
    made = {}
    for name, array in arrays.items():
        dtype = DType.of(array.dtype)
        raw = torch.from_numpy(array.view(dtype.storage).copy())
        made[name] = raw.view(getattr(torch, dtype.value)) if not dtype.is_native else raw
    return made


def main() -> None:
    """Write them all, with the versions beside."""
    pack_to_file(tensors(one_dtype()), str(HERE / "one-dtype.flashpack"), None)
    pack_to_file(tensors(all_dtypes()), str(HERE / "all-dtypes.flashpack"), None)
    pack_to_file(tensors(one_dtype()), str(HERE / "aligned-to-0.flashpack"), None, align_bytes=0)
    pack_to_file(tensors(all_dtypes()), str(HERE / "aligned-to-24.flashpack"), None, align_bytes=24)
    save_file(tensors(all_dtypes()), HERE / "all-dtypes.safetensors", {"format": "pt"})
    save_file(tensors(one_dtype()), HERE / "one-dtype.safetensors")
    versions = {name: version(name) for name in ("flashpack", "safetensors", "torch")}
    (HERE / "versions.json").write_text(json.dumps(versions, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
