"""Identities and inputs as JSON, both ways: parts of an artifact, and of its journal."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Any, TypeVar

import attrs

from vlmcore._copying import thawed
from vlmcore.contracts.faults import Faults
from vlmcore.contracts.nullable import Nullable
from vlmcore.contracts.shapes import Field, Flag, JsonObject, ListOf, MapOf, Record, Text, Whole
from vlmcore.lab.canonical import EXACT
from vlmcore.lab.identity import Accelerator, Host, Identity, Package, PackageSource
from vlmcore.lab.inputs import Input, Media
from vlmcore.lab.targets import Checkpoint, CheckpointFile, Server, Target, TargetKind
from vlmcore.limits import ArtifactLimits

__all__ = [
    "IDENTITY",
    "INPUT",
    "identity_document",
    "input_document",
    "read_identity",
    "read_input",
]

_Made = TypeVar("_Made")
_LIMITS = ArtifactLimits()
_LINE = Text(longest=_LIMITS.max_name_characters)
_SHA256 = Text(longest=64)
_COUNT = Whole(smallest=1, largest=EXACT)
_LINES = MapOf(item=_LINE, most=_LIMITS.max_files)


def _some(item: Any) -> ListOf:
    return ListOf(item=item, fewest=0, most=_LIMITS.max_files)


def _members(kind: type[enum.Enum]) -> Text:
    return Text(one_of=tuple(member.value for member in kind))


_PACKAGE = Record(
    fields={
        "version": Field(_LINE, "Its version."),
        "source": Field(_members(PackageSource), "Where its code came from."),
        "commit": Field(Nullable(_LINE), "The commit of its repository."),
        "has_changes": Field(Nullable(Flag()), "Whether there is more than the commit."),
    }
)
_HOST = Record(
    fields={
        "system": Field(_LINE, "Kernel and its version."),
        "machine": Field(_LINE, "The architecture."),
        "python": Field(_LINE, "Implementation and version."),
        "processor": Field(Nullable(_LINE), "As its maker calls it."),
        "cores": Field(Nullable(_COUNT), "How many the process might use."),
        "memory_bytes": Field(Nullable(_COUNT), "Its memory."),
        "accelerators": Field(
            Nullable(
                _some(
                    Record(
                        fields={
                            "name": Field(_LINE, "As its maker calls it."),
                            "memory_bytes": Field(Nullable(_COUNT), "Its memory."),
                        }
                    )
                )
            ),
            "Its devices for models; empty if there were none.",
        ),
    }
)
_CHECKPOINT = Record(
    fields={
        "model": Field(_LINE, "What was asked for."),
        "revision": Field(Nullable(_LINE), "The commit of the hub."),
        "files": Field(
            Nullable(
                _some(
                    Record(
                        fields={
                            "name": Field(_LINE, "Its path in the folder."),
                            "size_bytes": Field(Whole(smallest=0, largest=EXACT), "Its size."),
                            "sha256": Field(_SHA256, "As sha256sum says it."),
                        }
                    )
                )
            ),
            "Its files.",
        ),
    }
)
_SERVER = Record(
    fields={
        "address": Field(_LINE, "Scheme, host, port and path."),
        "version": Field(Nullable(_LINE), "What it answered at /version."),
        "models": Field(Nullable(_some(_LINE)), "The ids that it listed at /v1/models."),
        "metrics": Field(
            Nullable(Text(longest=_LIMITS.max_told_characters, blank=True)),
            "What it offered at /metrics; null if it offers none.",
        ),
    }
)
_TARGET = Record(
    fields={
        "name": Field(_LINE, "As samples name it."),
        "kind": Field(_members(TargetKind), "How it was asked."),
        "precision": Field(Nullable(_LINE), "The number format that it computed in."),
        "options": Field(JsonObject(), "The flags and options that it was given."),
        "checkpoint": Field(_CHECKPOINT, "Its weights."),
        "server": Field(Nullable(_SERVER), "What served it; null for a predictor."),
    }
)
_MEDIA = Record(
    fields={
        "stored_height_px": Field(_COUNT, "Height as it is seen, turned as its EXIF says."),
        "stored_width_px": Field(_COUNT, "Width, the same."),
        "height_px": Field(_COUNT, "Height that was given to the target."),
        "width_px": Field(_COUNT, "Width, the same."),
        "frames": Field(_COUNT, "How many frames; 1 for an image."),
        "pixels_sha256": Field(_SHA256, "Of the shape and the decoded pixels."),
        "encoder": Field(
            Text(longest=_LIMITS.max_name_characters, blank=True),
            "What encoded them for sending; empty if nothing did.",
        ),
        "sent_sha256": Field(Nullable(_SHA256), "Of the file that was sent."),
    }
)

#: What an identity is in JSON.
IDENTITY = Record(
    fields={
        "package": Field(_PACKAGE, "The code that measured."),
        "packages": Field(_LINES, "The versions of packages, by name."),
        "host": Field(_HOST, "The machine that measured."),
        "targets": Field(_some(_TARGET), "What was asked."),
        "unknown": Field(_LINES, "Each place that is null because nobody could tell, and why."),
    }
)

#: What the input of one case is in JSON.
INPUT = Record(
    fields={
        "target": Field(_LINE, "The name of the target."),
        "case": Field(_LINE, "The name of the case."),
        "prompt_sha256": Field(_SHA256, "Of the prompt as UTF-8."),
        "media": Field(_some(_MEDIA), "Its images and videos."),
    }
)

_INSIDE: Mapping[type, Mapping[str, type]] = {
    Identity: {"package": Package, "host": Host, "targets": Target},
    Host: {"accelerators": Accelerator},
    Target: {"checkpoint": Checkpoint, "server": Server, "kind": TargetKind},
    Checkpoint: {"files": CheckpointFile},
    Package: {"source": PackageSource},
    Input: {"media": Media},
}


def identity_document(identity: Identity) -> dict[str, Any]:
    """Write an identity as plain values of JSON."""
    said: dict[str, Any] = _written(identity)
    return said


def input_document(given: Input) -> dict[str, Any]:
    """Write what a target was given for a case as plain values of JSON."""
    said: dict[str, Any] = _written(given)
    return said


def read_identity(value: Any, path: str, faults: Faults) -> Identity | None:
    """
    Read an identity that stands in another document.

    Args:
        value: The identity, in plain values of JSON.
        path: Where it stands.
        faults: Is given what is wrong.

    Returns:
        The identity; ``None`` if anything is wrong with it.
    """
    if not _fits(IDENTITY, value, path, faults):
        return None
    identity = _made(Identity, value, path, faults)
    if identity is not None and identity.unknown != value["unknown"]:
        missing = sorted({*identity.unknown} - {*value["unknown"]})
        faults.add(f"{path}.unknown", f"got no reason for {missing[:3]}, expected one")
        return None
    return identity


def read_input(value: Any, path: str, faults: Faults) -> Input | None:
    """
    Read what a target was given for a case, where it stands in another document.

    Args:
        value: The input, in plain values of JSON.
        path: Where it stands.
        faults: Is given what is wrong.

    Returns:
        The input; ``None`` if anything is wrong with it.
    """
    return _made(Input, value, path, faults) if _fits(INPUT, value, path, faults) else None


def _written(value: Any) -> Any:
    if attrs.has(type(value)):
        names = [field.name for field in attrs.fields(type(value))]
        return {name: _written(getattr(value, name)) for name in names}
    if isinstance(value, tuple):
        return [_written(each) for each in value]
    if isinstance(value, enum.Enum):
        return value.value
    return thawed(value)


def _fits(shape: Record, value: Any, path: str, faults: Faults) -> bool:
    found = list(shape.faults(value, path))
    for where, problem in found:
        faults.add(where, problem)
    return not found


def _made(kind: type[_Made], value: Mapping[str, Any], path: str, faults: Faults) -> _Made | None:
    """Make a contract of values of the right shape; ``None`` if it is broken, or a part of it."""
    fields: dict[str, Any] = {}
    is_whole = True
    for name, each in value.items():
        inner = _INSIDE.get(kind, {}).get(name)
        if inner is None or each is None:
            fields[name] = each
        elif issubclass(inner, enum.Enum):
            fields[name] = inner(each)
        elif isinstance(each, list):
            fields[name] = [
                _made(inner, item, f"{path}.{name}[{i}]", faults) for i, item in enumerate(each)
            ]
            is_whole = is_whole and None not in fields[name]
        else:
            fields[name] = _made(inner, each, f"{path}.{name}", faults)
            is_whole = is_whole and fields[name] is not None
    if is_whole:
        with faults.at(path, **{name: f"{path}.{name}" for name in fields}):
            return kind(**fields)
    return None
