"""What this installation can do, as far as a person may paste it into a question."""

from __future__ import annotations

import platform
from typing import Any

import vlmcore
from vlmcore._extras import EXTRAS, installed_version, look_at
from vlmcore.errors import MissingDependencyError, VlmcoreError
from vlmcore.vlm.devices import accelerators, host
from vlmcore.vlm.residency import Residency

__all__ = ["resident_models", "runtime_report"]

_VERSIONS = ("numpy", "attrs", "torch", "transformers", "pillow")


def runtime_report() -> dict[str, Any]:
    """Tell versions, devices and extras; without a name of a folder, and without secrets."""
    return {
        "vlmcore": vlmcore.__version__,
        "python": platform.python_version(),
        "platform": f"{platform.system()} {platform.machine()}",
        "packages": {name: installed_version(name) for name in _VERSIONS},
        "devices": _devices(),
        "extras": {name: _extra(name) for name in EXTRAS},
    }


def resident_models(residency: Residency) -> int | None:
    """Say how many models are in the memory; ``None`` where whose it is does not say."""
    keys = getattr(residency, "resident_keys", None)
    return None if keys is None else len(keys)


def _extra(name: str) -> dict[str, Any]:
    found = look_at(name)
    if found.is_complete:
        return {"complete": True}
    return {
        "complete": False,
        "missing": list(found.missing),
        "too_old": found.too_old,
        "install": f'pip install "vlmcore[{name}]"',
    }


def _devices() -> list[str] | str:
    try:
        return [device.name for device in (*accelerators(), host())]
    except (MissingDependencyError, VlmcoreError) as error:
        return str(error)
