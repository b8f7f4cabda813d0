"""
Write the checkpoint that loaders are compared with: about 600 tensors of bfloat16, shaped as of a
language model, as a file of safetensors and as a pack.

    python bench/weights/checkpoint.py FOLDER --gigabytes 2
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import torch
from safetensors.torch import save_file

LAYERS = 66
WIDTH, INNER, VOCABULARY = 1024, 3392, 16_000  # of 2 GB; less gets narrower


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").strip().splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--gigabytes", type=float, default=2.0)
    options = parser.parse_args(arguments)
    options.folder.mkdir(parents=True, exist_ok=True)
    scale = (options.gigabytes / 2) ** 0.5
    tensors = dict(model(scale))
    size = sum(tensor.nbytes for tensor in tensors.values())
    save_file(tensors, options.folder / "model.safetensors", metadata={"format": "pt"})
    write_pack(tensors, options.folder / "model.flashpack")
    for name in ("model.flashpack", "model.safetensors"):
        write_manifest_of(options.folder / name)
    print(f"{len(tensors)} tensors, {size / 1e9:.3f} GB")
    return 0


def model(scale: float) -> Iterator[tuple[str, torch.Tensor]]:
    """Draw the tensors."""
    generator = torch.Generator().manual_seed(0)
    width, inner = (int(side * scale) // 64 * 64 for side in (WIDTH, INNER))
    words = int(VOCABULARY * scale)

    def tensor(*shape: int) -> torch.Tensor:
        bits = torch.randint(-30_000, 30_000, shape, dtype=torch.int16, generator=generator)
        return bits.view(torch.bfloat16)

    yield "model.embed_tokens.weight", tensor(words, width)
    for i in range(LAYERS):
        layer = f"model.layers.{i}"
        for name in ("q_proj", "k_proj", "v_proj", "o_proj"):
            yield f"{layer}.self_attn.{name}.weight", tensor(width, width)
        yield f"{layer}.mlp.gate_proj.weight", tensor(inner, width)
        yield f"{layer}.mlp.up_proj.weight", tensor(inner, width)
        yield f"{layer}.mlp.down_proj.weight", tensor(width, inner)
        yield f"{layer}.input_layernorm.weight", tensor(width)
        yield f"{layer}.post_attention_layernorm.weight", tensor(width)
    yield "model.norm.weight", tensor(width)
    yield "lm_head.weight", tensor(words, width)


def write_pack(tensors: dict[str, torch.Tensor], path: Path) -> None:
    """Write a pack with the package of the format's authors."""
    import flashpack  # noqa: PLC0415 - not needed by those who read the file

    holder = torch.nn.Module()
    for name, tensor in tensors.items():
        place = holder
        *parents, last = name.split(".")
        for parent in parents:
            if not hasattr(place, parent):
                place.add_module(parent, torch.nn.Module())
            place = getattr(place, parent)
        place.register_parameter(last, torch.nn.Parameter(tensor, requires_grad=False))
    flashpack.pack_to_file(holder, str(path), target_dtype=torch.bfloat16, silent=True)


def write_manifest_of(path: Path) -> None:
    """Write what is compared while reading."""
    from vlmcore.weights.checksums import checksum_of  # noqa: PLC0415
    from vlmcore.weights.loading import load_weights  # noqa: PLC0415
    from vlmcore.weights.manifest import Manifest, manifest_path, write_manifest  # noqa: PLC0415

    with load_weights(path) as weights:
        checksums = {name: checksum_of(weights.raw(name)) for name in weights}
        write_manifest(Manifest.of(weights.index, checksums), manifest_path(path))


if __name__ == "__main__":
    sys.exit(main())
