"""The extras of vlmcore, and which of them are complete in this environment."""

from __future__ import annotations

import re
from importlib.metadata import PackageNotFoundError, version

import attrs

__all__ = ["EXTRAS", "Extra", "installed_version", "look_at"]

# A test holds this table to pyproject.toml: it is here so that a bare checkout can be asked, too.
EXTRAS: dict[str, dict[str, str]] = {
    "images": {"pillow": "10"},
    "local": {"torch": "2.4", "transformers": "4.57", "pillow": "10"},
    "detection": {"torch": "2.4", "transformers": "4.57", "pillow": "10", "timm": "1.0"},
    "quantized": {
        "torch": "2.4",
        "transformers": "4.57",
        "pillow": "10",
        "bitsandbytes": "0.46",
        "accelerate": "1.0",
    },
    "structure": {"jsonschema": "4.23", "llguidance": "1.3"},
    "remote": {"h11": "0.14", "pillow": "10"},
    "weights": {"ml_dtypes": "0.5", "xxhash": "3.4"},
    "video": {"av": "14", "pillow": "10"},
    "robotics": {"h11": "0.14", "websockets": "15", "pillow": "10"},
    "server": {
        "h11": "0.14",
        "websockets": "15",
        "pillow": "10",
        "starlette": "0.40",
        "uvicorn": "0.30",
    },
    "lerobot": {
        "h11": "0.14",
        "websockets": "15",
        "pillow": "10",
        "lerobot": "0.4",
    },
    "dataset": {"pyarrow": "17", "av": "14", "pillow": "10"},
    "audio": {"h11": "0.14", "soundfile": "0.12"},
    "comfy": {
        "h11": "0.14",
        "websockets": "15",
        "pillow": "10",
        "transformers": "4.57",
    },
    "lab": {
        "torch": "2.4",
        "transformers": "4.57",
        "pillow": "10",
        "jinja2": "3.1",
        "rfc8785": "0.1.4",
    },
    "jobs": {"pyarrow": "17", "pillow": "10"},
    "ray": {"ray": "2.40", "pandas": "2", "pillow": "10"},
    "rerun": {"rerun-sdk": "0.24", "pillow": "10"},
    "plot": {"matplotlib": "3.8", "pillow": "10.1"},
    "testing": {"hypothesis": "6.100", "pytest": "8"},
}
"""The packages of each extra, with the lowest version that will do."""


@attrs.frozen(kw_only=True)
class Extra:
    """
    What is there of an extra.

    Attributes:
        name: The extra.
        installed: The version of each of its packages that is there.
        missing: Its packages that are not there.
        too_old: Its packages that are there, with the version that is needed.
    """

    name: str
    installed: dict[str, str]
    missing: tuple[str, ...]
    too_old: dict[str, str]

    @property
    def is_complete(self) -> bool:
        """Whether everything that needs the extra can work."""
        return not self.missing and not self.too_old


def look_at(name: str) -> Extra:
    """Look which packages of the extra are installed, without importing any."""
    wanted = EXTRAS[name]
    found = {package: installed_version(package) for package in wanted}
    installed = {package: there for package, there in found.items() if there is not None}
    return Extra(
        name=name,
        installed=installed,
        missing=tuple(package for package, there in found.items() if there is None),
        too_old={
            package: wanted[package]
            for package, there in installed.items()
            if _release(there) < _release(wanted[package])
        },
    )


def installed_version(package: str) -> str | None:
    """Return the version of an installed package, ``None`` if it is not there."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _release(text: str) -> tuple[int, ...]:
    """
    Return the numbers of a version: ``"2.13.0+cpu"`` is ``(2, 13, 0)``.

    Example:
        >>> _release("4.57.0.dev0") < _release("4.57")
        False
    """
    leading = re.match(r"\d+(\.\d+)*", text)
    return tuple(map(int, leading[0].split("."))) if leading else ()
