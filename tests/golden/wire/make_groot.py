"""
Write the golden bytes of GR00T with msgpack, msgpack-numpy and ``numpy.save``.

Run once, with the versions of ``versions.json``, on the same day::

    python tests/golden/wire/make_groot.py

GR00T itself is not on PyPI: which map is sent is taken from the behaviour of its ``service.py`` and
``server_client.py``; the bytes of maps and arrays are those of the packages that it uses.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgpack
import msgpack_numpy
from groot_messages import CONFIGS, actions, config, flat_observation, observation
from make_golden import packed_npy

HERE = Path(__file__).parent
INFO = {"current_step": 3}


def n1_5_configs() -> dict[str, Any]:
    """Spell the modality configs of N1.5: JSON text in a map, and keys with prefixes."""
    found = {}
    for name, said in CONFIGS.items():
        prefix = "" if name == "language" else f"{name}."
        keys = [prefix + key for key in said["modality_keys"]]
        plain = config(keys, said["delta_indices"])
        text = json.dumps({key: plain[key] for key in ("delta_indices", "modality_keys")})
        found[name] = {"__ModalityConfig_class__": True, "as_json": text}
    return found


def configs(marker: str) -> dict[str, Any]:
    """Spell the modality configs of N1.6 and N1.7."""
    return {name: {marker: True, "as_json": said} for name, said in CONFIGS.items()}


def main() -> None:
    """Write the files."""
    nested = {"observation": observation(), "options": None}
    flat_actions = {f"action.{key}": value for key, value in actions().items()}
    answer = [actions(), INFO]
    for name, data, reply, said, encode in (
        ("n1.5", flat_observation(), flat_actions, n1_5_configs(), packed_npy),
        ("n1.6", nested, answer, configs("__ModalityConfig_class__"), packed_npy),
        ("n1.7", nested, answer, configs("__ModalityConfig__"), msgpack_numpy.encode),
    ):
        request = {"endpoint": "get_action", "data": data}
        for part, value in (("request", request), ("answer", reply), ("modalities", said)):
            packed = msgpack.packb(value, default=encode)
            (HERE / f"groot-{name}-{part}.bin").write_bytes(packed)


if __name__ == "__main__":
    main()
