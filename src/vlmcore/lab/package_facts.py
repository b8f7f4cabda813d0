"""Which code measures: its version, its commit, and the versions of what it stands on."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterable
from importlib.metadata import Distribution, PackageNotFoundError, distribution, version
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import url2pathname

import vlmcore
from vlmcore.lab.identity import Package, PackageSource

__all__ = ["RELEVANT", "commit_of", "find_package", "find_versions"]

#: Packages whose versions change what is measured.
RELEVANT = (
    "accelerate",
    "av",
    "bitsandbytes",
    "flash-attn",
    "h11",
    "numpy",
    "pillow",
    "rfc8785",
    "safetensors",
    "sglang",
    "tensorrt",
    "timm",
    "tokenizers",
    "torch",
    "torchvision",
    "transformers",
    "triton",
    "vllm",
)
_WAIT_S = 10.0
_NO_GIT = "its folder is in no repository of its own, or git is not installed"


def find_package(name: str = "vlmcore") -> tuple[Package, dict[str, str]]:
    """
    Find out which code of a package runs here.

    Returns:
        What was found, and why the rest was not, by its place in an identity.

    Example:
        >>> found, _ = find_package()
        >>> found.version == vlmcore.__version__
        True
    """
    try:
        found = distribution(name)
    except PackageNotFoundError:  # a bare checkout on the path
        return _of_folder(vlmcore.__version__, Path(vlmcore.__file__).parents[2])
    direct = _direct_url(found)
    match direct:
        case {"vcs_info": {"commit_id": str(commit)}}:
            source = PackageSource.REPOSITORY
            return (
                Package(version=found.version, source=source, commit=commit, has_changes=False),
                {},
            )
        case {"dir_info": dict(), "url": str(url)}:
            return _of_folder(found.version, Path(url2pathname(urlsplit(url).path)))
        case _:
            return Package(version=found.version, source=PackageSource.RELEASE), {}


def find_versions(names: Iterable[str] = RELEVANT) -> dict[str, str]:
    """
    Give the versions of those packages that are installed.

    Example:
        >>> sorted(find_versions(["numpy", "nobody-made-this"]))
        ['numpy']
    """
    found = {name: _version(name) for name in names}
    return {name: there for name, there in found.items() if there is not None}


def commit_of(
    folder: Path, *, run: Callable[[list[str]], str | None] | None = None
) -> tuple[str, bool] | None:
    """
    Find the commit of a working copy, and whether there is more in it than that.

    Args:
        folder: The top of the working copy.
        run: Runs git with arguments in the folder and gives what it wrote; ``None`` if it failed.

    Returns:
        The commit, and whether there are changes; ``None`` if *folder* is not the top of a working
        copy, or git is not there.
    """
    run = run or _git(folder)
    if run(["rev-parse", "--show-prefix"]) != "":  # inside of another repository
        return None
    commit, changes = run(["rev-parse", "HEAD"]), run(["status", "--porcelain"])
    return None if not commit or changes is None else (commit, bool(changes))


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _of_folder(said_version: str, folder: Path) -> tuple[Package, dict[str, str]]:
    found = commit_of(folder)
    commit, has_changes = found or (None, None)
    package = Package(
        version=said_version, source=PackageSource.FOLDER, commit=commit, has_changes=has_changes
    )
    reasons = {"package.commit": _NO_GIT, "package.has_changes": _NO_GIT}
    return package, {} if found else reasons


def _direct_url(found: Distribution) -> Any:
    """Read where pip took a package from, as PEP 610 writes it."""
    try:
        return json.loads(found.read_text("direct_url.json") or "null")
    except ValueError:
        return None


def _git(folder: Path) -> Callable[[list[str]], str | None]:
    def run(arguments: list[str]) -> str | None:
        command = ["git", "--no-optional-locks", "-C", str(folder), *arguments]
        try:
            ended = subprocess.run(  # noqa: S603 - no shell, and a fixed command
                command, capture_output=True, text=True, timeout=_WAIT_S, check=False
            )
        except (OSError, subprocess.SubprocessError, ValueError):
            return None
        return ended.stdout.strip() if ended.returncode == 0 else None

    return run
