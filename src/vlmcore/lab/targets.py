"""What was asked: a model in this process or behind a server, its weights and its options."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Any

import attrs

from vlmcore._arguments import require_kind, shown
from vlmcore._arrays import as_tuple, require_member
from vlmcore._copying import thawed, through_constructor
from vlmcore._json_values import frozen_object
from vlmcore.errors import ContractError
from vlmcore.lab._field_checks import (
    require_all,
    require_lines,
    require_lines_or_none,
    require_sha256,
)
from vlmcore.lab.redacting import address_without_secrets, options_without_secrets

__all__ = ["Checkpoint", "CheckpointFile", "Server", "Target", "TargetKind"]


class TargetKind(enum.Enum):
    """How a target is asked."""

    PREDICTOR = "predictor"  # in this process
    SERVER = "server"  # over HTTP


@attrs.frozen(kw_only=True)
class CheckpointFile:
    """
    One file of a checkpoint.

    Attributes:
        name: Its path in the folder, with slashes.
        size_bytes: Its size.
        sha256: Its SHA-256, as ``sha256sum`` says it.

    Raises:
        ContractError: If a field is not as described.
    """

    name: str
    size_bytes: int
    sha256: str

    def __attrs_post_init__(self) -> None:
        require_lines(name=self.name)
        if type(self.size_bytes) is not int or self.size_bytes < 0:
            raise ContractError("size_bytes", f"got {shown(self.size_bytes)}, expected a size")
        require_sha256(sha256=self.sha256)


@attrs.frozen(kw_only=True)
class Checkpoint:
    """
    The weights that answered.

    Attributes:
        model: What was asked for: an id of a hub, a catalog key, the name of a folder.
        revision: The commit of the hub.
        files: Its files.

    Raises:
        ContractError: If a field is not as described.
    """

    model: str
    revision: str | None = None
    files: tuple[CheckpointFile, ...] | None = attrs.field(default=None, converter=as_tuple)

    def __attrs_post_init__(self) -> None:
        require_lines(model=self.model)
        require_lines_or_none(revision=self.revision)
        if self.files is not None:
            require_all("files", self.files, CheckpointFile)


@attrs.frozen(kw_only=True)
class Server:
    """
    What a server told of itself.

    Attributes:
        address: Scheme, host, port and path, as `vlmcore.lab.redacting.address_without_secrets`
            leaves them.
        version: What it answered at ``/version``.
        models: The ids that it listed at ``/v1/models``.
        metrics: What it offered at ``/metrics``, as text; ``None`` if it offers none.

    Raises:
        ContractError: If a field is not as described.
    """

    address: str
    version: str | None = None
    models: tuple[str, ...] | None = attrs.field(default=None, converter=as_tuple)
    metrics: str | None = attrs.field(default=None, repr=False)

    def __attrs_post_init__(self) -> None:
        require_lines(address=self.address)
        if self.address != address_without_secrets(self.address):  # it is not shown
            raise ContractError("address", "got more than scheme, host, port and path")
        require_lines_or_none(version=self.version)
        if self.models is not None:
            require_all("models", self.models, str)
            for i, model in enumerate(self.models):
                require_lines(**{f"models[{i}]": model})
        if self.metrics is not None:
            require_kind("metrics", self.metrics, str)


@attrs.frozen(kw_only=True)
class Target:
    """
    What was asked: a model with its options.

    Attributes:
        name: As samples name it.
        kind: How it is asked.
        precision: The number format it computes in, as ``"bfloat16"``.
        options: The flags and options it was given, plain values, as
            `vlmcore.lab.redacting.options_without_secrets` leaves them.
        checkpoint: Its weights.
        server: What serves it; ``None`` for a predictor.

    Raises:
        ContractError: If a field is not as described, or *server* does not fit *kind*.
    """

    name: str
    kind: TargetKind = TargetKind.PREDICTOR
    precision: str | None = None
    options: Mapping[str, Any] = attrs.field(factory=dict, hash=False)
    checkpoint: Checkpoint
    server: Server | None = None

    def __attrs_post_init__(self) -> None:
        require_lines(name=self.name)
        require_member(TargetKind, kind=self.kind)
        require_lines_or_none(precision=self.precision)
        object.__setattr__(self, "options", frozen_object(self.options, field="options"))
        if thawed(self.options) != options_without_secrets(thawed(self.options)):
            raise ContractError("options", "got what looks like a secret, expected none")
        require_kind("checkpoint", self.checkpoint, Checkpoint)
        if self.server is not None:
            require_kind("server", self.server, Server)
        if (self.server is None) is not (self.kind is TargetKind.PREDICTOR):
            raise ContractError("server", f"got {shown(self.server)} for {self.kind}")

    __reduce__ = through_constructor
