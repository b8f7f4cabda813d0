"""Models of the hub: what is fetched, in which order, and what its errors mean."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import huggingface_hub
from huggingface_hub import constants, errors

from vlmcore.errors import ModelAccessError, ModelError
from vlmcore.vlm.checkpoint import check_file_names, weight_files
from vlmcore.vlm.sources import ModelSource

__all__ = ["cached_folder", "fetch_description", "fetch_weights"]

_DESCRIPTION = (".json", ".jinja", ".txt", ".model")
_TIMEOUT_S = 10.0
# The packages that huggingface_hub speaks to the network with: their errors have no common class.
_TRANSPORTS = ("httpx", "httpx2", "httpcore", "httpcore2", "requests", "urllib3")


def cached_folder(source: ModelSource) -> Path | None:
    """Find the folder in the cache that holds a model; ``None`` if nothing of it is there."""
    try:
        return Path(
            huggingface_hub.snapshot_download(
                source.location,
                revision=source.revision,
                allow_patterns=["config.json"],
                local_files_only=True,
            )
        )
    except FileNotFoundError:
        return None


def fetch_description(source: ModelSource) -> Path:
    """
    Fetch everything but the weights: a few files, which tell whether the model can be run.

    Where the hub is out of reach, what is in the cache is taken.

    Returns:
        The folder in the cache; its name is the commit.

    Raises:
        ModelAccessError: If the model is not found, gated, or neither in the cache nor in reach.
        UnsupportedModelError: If the repository holds another kind of model.
    """
    try:
        info = huggingface_hub.HfApi().model_info(
            source.location, revision=source.revision, timeout=_TIMEOUT_S
        )
        paths = [sibling.rfilename for sibling in info.siblings or ()]
        names = [path for path in paths if "/" not in path]
    except Exception as error:  # noqa: BLE001  # of many packages; explained, or raised again
        folder = cached_folder(source) if _is_out_of_reach(error) else None
        if folder is not None:
            return folder
        failure = _explain(source, error)
    else:
        check_file_names(source.name, names)
        return _fetch(source, [name for name in names if name.endswith(_DESCRIPTION)])
    raise failure  # outside of the handler: what the hub's error holds has the token in it


def fetch_weights(source: ModelSource, folder: Path) -> None:
    """
    Fetch the weights of the commit whose other files are in *folder*; those there are kept.

    Raises:
        ModelAccessError: If they cannot be fetched.
    """
    missing = [n for n in weight_files(source.name, folder) if not (folder / n).exists()]
    if missing:
        _fetch(source, missing, commit=folder.name)


def _fetch(source: ModelSource, names: Iterable[str], commit: str | None = None) -> Path:
    try:
        return Path(
            huggingface_hub.snapshot_download(
                source.location,
                revision=commit or source.revision,
                allow_patterns=list(names),
                etag_timeout=_TIMEOUT_S,
            )
        )
    except Exception as error:  # noqa: BLE001  # of many packages; explained, or raised again
        failure = _explain(source, error)
    raise failure


def _explain(source: ModelSource, error: Exception) -> ModelError:
    """Say what an error of the hub means for the caller; one that is not the hub's is raised."""
    repository, at = source.location, constants.ENDPOINT
    match error:
        case errors.GatedRepoError():
            problem = (
                f"is gated: accept its licence at {at}/{repository}, and set HF_TOKEN to a token "
                "of the account that did"
            )
        case errors.RevisionNotFoundError():
            problem = f"{at} has no revision {source.revision!r} of {repository}"
        case errors.RepositoryNotFoundError():
            problem = (
                f"{at} has no {repository}; if it is private, set HF_TOKEN to a token that may "
                "read it"
            )
        case _ if _is_out_of_reach(error):
            why = (
                "HF_HUB_OFFLINE forbids asking the hub"
                if constants.HF_HUB_OFFLINE
                else f"the hub at {at} cannot be reached"
            )
            problem = f"is not in the cache ({constants.HF_HUB_CACHE}), and {why}"
        case errors.HfHubHTTPError():
            status = error.response.status_code
            refused = "; is the token in HF_TOKEN valid?" if status == 401 else ""
            problem = f"the hub at {at} answered with HTTP status {status}{refused}"
        case OSError():
            reason = error.strerror or type(error).__name__
            problem = f"it cannot be stored in {constants.HF_HUB_CACHE} ({reason})"
        case _:
            raise error
    return ModelAccessError(source.name, problem)


def _is_out_of_reach(error: Exception) -> bool:
    if isinstance(error, errors.LocalEntryNotFoundError | ConnectionError | TimeoutError):
        return True
    if isinstance(error, errors.HfHubHTTPError):
        return error.response is not None and error.response.status_code >= 500
    return type(error).__module__.partition(".")[0] in _TRANSPORTS
