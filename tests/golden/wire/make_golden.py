"""
Write the golden bytes of this folder with the packages whose formats they are.

Run once, with ``numpy==2.4.6 msgpack==1.2.4 msgpack-numpy==0.4.8 pillow==13.0.0`` and
``openpi-client==0.1.2`` (without its dependencies, which ask for an older NumPy)::

    python tests/golden/wire/make_golden.py

The tests read the bytes and do not need these packages.
"""

from __future__ import annotations

import io
import json
from importlib.metadata import version
from pathlib import Path

import msgpack
import msgpack_numpy
import numpy as np
from messages import ALOHA, ANSWER, ARRAYS, DROID, LIBERO, METADATA, SIZES, frame
from openpi_client import msgpack_numpy as openpi
from openpi_client.image_tools import resize_with_pad

HERE = Path(__file__).parent
PACKAGES = ("openpi-client", "msgpack", "msgpack-numpy", "numpy", "pillow")


def packed_npy(value: object) -> object:
    """Spell an array as the servers of GR00T N1.5 and N1.6 do."""
    if isinstance(value, np.ndarray):
        file = io.BytesIO()
        np.save(file, value, allow_pickle=False)
        return {"__ndarray_class__": True, "as_npy": file.getvalue()}
    return value.item() if isinstance(value, np.generic) else value


def main() -> None:
    """Write the files."""
    for name, message in {
        "arrays": ARRAYS,
        "libero": LIBERO,
        "droid": DROID,
        "aloha": ALOHA,
        "answer": ANSWER,
        "metadata": METADATA,
    }.items():
        (HERE / f"openpi-{name}.bin").write_bytes(openpi.packb(message))
    (HERE / "msgpack-numpy-arrays.bin").write_bytes(
        msgpack.packb(ARRAYS, default=msgpack_numpy.encode)
    )
    (HERE / "npy-arrays.bin").write_bytes(msgpack.packb(ARRAYS, default=packed_npy))
    for name, (height, width) in SIZES.items():
        resized = resize_with_pad(frame(height, width, 3), 8, 8)
        (HERE / f"resized-{name}.bin").write_bytes(openpi.packb(resized))
    (HERE / "versions.json").write_text(
        json.dumps({"date": "2026-11-30", **{name: version(name) for name in PACKAGES}}, indent=2)
        + "\n"
    )


if __name__ == "__main__":
    main()
