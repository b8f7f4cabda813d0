"""The model of a job, named before it is loaded: a rerun with nothing to ask loads none."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import attrs

from vlmcore.vlm.loading import load_predictor
from vlmcore.vlm.predictor import Predictor
from vlmcore.vlm.remote.providers import names_a_server
from vlmcore.vlm.sources import resolve_model

__all__ = ["JobModel", "LoadedModel", "NamedModel", "job_model"]

_AT_A_SERVER = "a server"  # the device of predictors whose model is behind one


@runtime_checkable
class JobModel(Protocol):
    """What a job asks."""

    @property
    def identity(self) -> str:
        """What answers are kept under; another model has another one."""
        ...

    @property
    def is_served(self) -> bool:
        """Whether it is behind a server, which takes many calls at once."""
        ...

    def open(self) -> Predictor:
        """
        Load it.

        Raises:
            ModelError: If it cannot be.
        """
        ...

    def close(self, predictor: Predictor) -> None:
        """Give back what `open` gave."""
        ...


@attrs.frozen
class LoadedModel:
    """
    A predictor that the caller has, and keeps.

    Attributes:
        predictor: The predictor.
    """

    predictor: Predictor

    @property
    def identity(self) -> str:
        """The name of its model."""
        return self.predictor.info.model

    @property
    def is_served(self) -> bool:
        """Whether its model is behind a server."""
        return self.predictor.info.device == _AT_A_SERVER

    def open(self) -> Predictor:
        """Give the predictor."""
        return self.predictor

    def close(self, predictor: Predictor) -> None:
        """Leave it open."""


@attrs.frozen
class NamedModel:
    """
    A model that is loaded when the first image has to be asked about.

    Attributes:
        name: The model, as `vlmcore.load_predictor` takes it.
        load: Loads it.
    """

    name: str
    load: Callable[..., Predictor]

    @property
    def identity(self) -> str:
        """
        What the name means, as the hub id and revision, the folder, or the model behind a server.

        Where the server is makes no difference: it may move.

        Raises:
            ModelAccessError: If it names nothing that there is.
        """
        if names_a_server(self.name):
            return self.name.rpartition("#")[2] or self.name
        source = resolve_model(self.name)
        place = str(Path(source.location).resolve()) if source.is_local else source.location
        if source.name == self.name == "embedded":
            place = self.name
        return place if source.revision is None else f"{place}@{source.revision}"

    @property
    def is_served(self) -> bool:
        """Whether it is behind a server."""
        return names_a_server(self.name)

    def open(self) -> Predictor:
        """Load it, as `JobModel.open` says."""
        return self.load(self.name)

    def close(self, predictor: Predictor) -> None:
        """Close the predictor."""
        predictor.close()


def job_model(model: str | os.PathLike[str] | Predictor, **placement: Any) -> JobModel:
    """
    Take the model of a job.

    Args:
        model: A predictor, or what `vlmcore.load_predictor` takes.
        placement: More arguments for `vlmcore.load_predictor`.
    """
    if isinstance(model, (str, os.PathLike)):
        return NamedModel(os.fspath(model), functools.partial(load_predictor, **placement))
    return LoadedModel(model)
