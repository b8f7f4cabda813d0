"""
What a model's name means: the embedded one, one of the catalog, a folder, or a hub's.

In this order, so that a name means the same wherever the program is started: ``"embedded"`` and the
names of the catalog come before folders of the same name; write ``./name`` for such a folder.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

import attrs

from vlmcore._arrays import require_text
from vlmcore.embedded import model_directory
from vlmcore.errors import ContractError, ModelAccessError, UnsupportedModelError
from vlmcore.vlm.catalog import ModelSpec, hint_for, match_model
from vlmcore.vlm.checkpoint import check_config, check_file_names, read_config
from vlmcore.vlm.detector_catalog import match_detector

__all__ = ["EMBEDDED", "ModelSource", "resolve_detector", "resolve_model"]

EMBEDDED = "embedded"
"""The name of the small model that is part of the package."""

_HUB_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,95}/[A-Za-z0-9][A-Za-z0-9._-]{0,95}")
_DRIVE = re.compile(r"[A-Za-z]:[\\/]")


@attrs.frozen(kw_only=True)
class ModelSource:
    """
    Where a model comes from.

    Attributes:
        name: The model as it was asked for.
        location: The path of a folder, or the id of a repository on the hub.
        is_local: Whether *location* is a folder.
        revision: A branch, tag or commit of the repository; ``None`` is its main branch.
        spec: What the catalog says about the model, where it is in there.
    """

    name: str
    location: str
    is_local: bool
    revision: str | None = None
    spec: ModelSpec | None = None


def resolve_model(
    model: str | os.PathLike[str] = EMBEDDED, revision: str | None = None
) -> ModelSource:
    """
    Find out what *model* names.

    A folder is checked as far as that goes without a framework; the hub is not asked.

    Args:
        model: ``"embedded"``; a key or label of the catalog; a folder; a hub id, as ``org/name``.
        revision: A branch, tag or commit, for models of the hub.

    Raises:
        ModelAccessError: If there is no such model, or the folder is none of a model.
        UnsupportedModelError: If the folder holds another kind of model.
        ContractError: If *revision* is given for a model that is no hub's, or is not one.

    Example:
        >>> resolve_model("qwen3-vl-4b").location
        'Qwen/Qwen3-VL-4B-Instruct'
    """
    name = _name_of(model)
    folder = _folder_of(model, name)
    if folder is None:
        return _on_hub(name, revision)
    if revision is not None:
        problem = f"got {revision!r} for {name!r}, which is a folder; only hub models have one"
        raise ContractError("revision", problem)
    _check_folder(name, folder)
    return ModelSource(name=name, location=str(folder), is_local=True)


def resolve_detector(model: str | os.PathLike[str], revision: str | None = None) -> ModelSource:
    """
    Find out which detector *model* names, as `resolve_model` does with its own catalog.

    Args:
        model: A key or label of `vlmcore.vlm.detector_catalog`; a folder; a hub id.
        revision: A branch, tag or commit, for models of the hub.

    Raises:
        ModelAccessError: If there is no such model, or the folder is none of a model.
        UnsupportedModelError: If the folder holds another kind of model.
        ContractError: If *revision* is given for a model that is no hub's, or is not one.

    Example:
        >>> resolve_detector("grounding-dino-tiny").location
        'IDEA-Research/grounding-dino-tiny'
    """
    spec = match_detector(model) if isinstance(model, str) else None
    if spec is None or spec.repo_id is None:
        return resolve_model(model, revision)
    if revision is not None:
        require_text(revision=revision)
    return ModelSource(
        name=str(model), location=spec.repo_id, is_local=False, revision=revision, spec=spec
    )


def _name_of(model: object) -> str:
    name = os.fspath(model) if isinstance(model, os.PathLike) else model
    if not isinstance(name, str):
        kind = type(name).__name__
        raise ContractError("model", f"got {kind}, expected a name, a hub id or a folder")
    if not name.strip() or "\0" in name:
        raise ContractError("model", f"got {name!r}, expected a name, a hub id or a folder")
    return name


def _folder_of(model: object, name: str) -> Path | None:
    """Give the folder that is meant; ``None`` if a model of the hub is."""
    if not isinstance(model, os.PathLike):
        if name == EMBEDDED:
            return model_directory()
        if match_model(name) is not None:
            return None
    try:
        path = Path(name).expanduser()
        there = path.exists()
    except (OSError, RuntimeError):  # too long for a path, or the home of an unknown user
        path, there = Path(name), False
    if isinstance(model, os.PathLike) or there or _looks_like_path(name):
        return path.absolute()
    return None


def _looks_like_path(name: str) -> bool:
    """Whether *name* can only mean a path, so that asking a hub for it would be no help."""
    if name.startswith((".", "~", "/", "\\")) or name.endswith(("/", "\\")):
        return True
    return name.count("/") > 1 or "\\" in name or _DRIVE.match(name) is not None


def _check_folder(name: str, folder: Path) -> None:
    try:
        names = [entry.name for entry in folder.iterdir()]
    except FileNotFoundError as error:
        problem = f"there is no such folder ({folder}){hint_for(name)}"
        raise ModelAccessError(name, problem) from error
    except NotADirectoryError as error:
        problem = "is a file; expected the folder that holds config.json and the weights"
        raise UnsupportedModelError(name, problem) from error
    except OSError as error:
        raise ModelAccessError(name, f"the folder cannot be read ({error})") from error
    check_file_names(name, names)
    check_config(name, read_config(name, folder / "config.json"))


def _on_hub(name: str, revision: str | None) -> ModelSource:
    if revision is not None:
        require_text(revision=revision)
    spec = match_model(name)
    if spec is not None and spec.repo_id is None:
        problem = "stands for any other model: give that model's hub id (org/name) or folder"
        raise ModelAccessError(name, problem)
    location = name if spec is None or spec.repo_id is None else spec.repo_id
    if spec is None and not _is_hub_id(name):
        raise ModelAccessError(
            name,
            "there is no such model: it is neither 'embedded', nor a key or label of the catalog, "
            "nor a folder here, nor a hub id of the form org/name, nor behind a server, as "
            f"http://host:8000#name or openai:name{hint_for(name)}",
        )
    return ModelSource(name=name, location=location, is_local=False, revision=revision, spec=spec)


def _is_hub_id(name: str) -> bool:
    if not _HUB_ID.fullmatch(name) or "--" in name or ".." in name:
        return False
    return not any(part.endswith(("-", ".")) for part in name.split("/"))
