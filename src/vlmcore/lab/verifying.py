"""Whether an artifact is what was written, byte for byte; if not, where it was edited, and how."""

from __future__ import annotations

import enum
import hashlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs

from vlmcore.contracts.json_text import read_json
from vlmcore.errors import ArtifactTamperedError, ContractError, DocumentError
from vlmcore.lab._field_checks import require_sha256
from vlmcore.lab.artifact_documents import artifact_from_document
from vlmcore.lab.artifact_files import digest_in_name, read_bytes, shown_path
from vlmcore.lab.artifact_schema import ARTIFACT
from vlmcore.lab.artifacts import Artifact
from vlmcore.lab.sealing import edits_in, sealed_bytes
from vlmcore.limits import ArtifactLimits

__all__ = ["Edit", "EditKind", "Verification", "read_artifact", "verify_artifact", "verify_bytes"]


class EditKind(enum.Enum):
    """What is wrong with an artifact."""

    NOT_JSON = "not JSON"  # it cannot be read at all
    NOT_SEALED = "not sealed"  # nothing in it says what was written: an old one, or no artifact
    CHANGED = "changed"  # a part is not what its digest says
    RESPELLED = "respelled"  # the values are the same, and the bytes are not
    RENAMED = "renamed"  # the name, or the digest that was kept of it, is of other bytes
    CONTRADICTION = "contradiction"  # sealed as it is, and it cannot have been measured so


@attrs.frozen(kw_only=True)
class Edit:
    """
    One thing that is wrong with an artifact.

    Attributes:
        kind: What kind of edit it is.
        place: Where, as ``"$.samples[3]"``.
        problem: What is wrong there.
    """

    kind: EditKind
    place: str
    problem: str

    def __str__(self) -> str:
        return f"{self.place}: {self.problem}"


@attrs.frozen(kw_only=True)
class Verification:
    """
    What was found of an artifact.

    Attributes:
        name: What was looked at.
        sha256: The digest of its bytes, as ``sha256sum`` says it.
        edits: What is wrong with it; empty if it is what was written.
        artifact: The evidence; ``None`` if anything is wrong with it.
    """

    name: str
    sha256: str
    edits: tuple[Edit, ...]
    artifact: Artifact | None = attrs.field(repr=False)

    @property
    def is_sound(self) -> bool:
        """Whether it is what was written."""
        return self.artifact is not None

    @property
    def is_verified(self) -> bool:
        """Whether it may carry the badge, being what was written with nothing in it unknown."""
        return self.artifact is not None and not self.artifact.unknown

    def require_sound(self) -> Artifact:
        """
        Take the evidence.

        Raises:
            ArtifactTamperedError: If it is not what was written; all that is wrong is listed.
        """
        if self.artifact is None:
            edits = tuple((edit.place, edit.problem) for edit in self.edits)
            raise ArtifactTamperedError(self.name, edits)
        return self.artifact


def read_artifact(
    path: str | os.PathLike[str],
    *,
    sha256: str | None = None,
    limits: ArtifactLimits | None = None,
) -> Artifact:
    """
    Read an artifact that is what was written.

    Args:
        path: The file.
        sha256: Its digest, where one was kept elsewhere: it says more than the name does.
        limits: How much is read.

    Raises:
        ArtifactTamperedError: If it is not what was written; all that is wrong is listed.
        ArtifactError: If there is no such file, or it is too large.
        MissingDependencyError: If rfc8785 is not installed.
    """
    return verify_artifact(path, sha256=sha256, limits=limits).require_sound()


def verify_artifact(
    path: str | os.PathLike[str],
    *,
    sha256: str | None = None,
    limits: ArtifactLimits | None = None,
) -> Verification:
    """
    Find out whether a file is the artifact that was written.

    Every edit of its bytes is found: each part is held against its digest, all bytes against the
    one way to write these values, and the file against its name. Whoever makes all digests anew
    gets another name; that a file with that name is not the one that was meant, only a digest that
    was kept elsewhere can tell.

    Args:
        path: The file.
        sha256: Its digest, where one was kept elsewhere: it says more than the name does.
        limits: How much is read.

    Raises:
        ArtifactError: If there is no such file, or it is too large.
        MissingDependencyError: If rfc8785 is not installed.
    """
    data = read_bytes(path, limits=limits)
    return verify_bytes(data, name=Path(path).name, sha256=sha256, limits=limits)


def verify_bytes(
    data: bytes,
    *,
    name: str,
    sha256: str | None = None,
    limits: ArtifactLimits | None = None,
) -> Verification:
    """
    Find out whether bytes are the artifact that was written; see `verify_artifact`.

    Args:
        data: All bytes of the file.
        name: The name of the file, without its folder.
        sha256: Its digest, where one was kept elsewhere.
        limits: How much is read.

    Raises:
        ContractError: If *sha256* is no digest.
        MissingDependencyError: If rfc8785 is not installed.
    """
    if sha256 is not None:
        require_sha256(sha256=sha256)
    digest = hashlib.sha256(data).hexdigest()
    edits = [*_name_edits(name, digest, sha256)]
    artifact = None
    try:
        document = read_json(data, limits=(limits or ArtifactLimits()).of_a_document)
    except ContractError as error:
        edits.append(Edit(kind=EditKind.NOT_JSON, place="$", problem=error.problem))
    else:
        edits += _edits(document, data)
        artifact = _read(document, edits)
    return Verification(
        name=shown_path(name),
        sha256=digest,
        edits=tuple(edits),
        artifact=None if edits else artifact,
    )


def _name_edits(name: str, digest: str, kept: str | None) -> Iterator[Edit]:
    said = digest_in_name(name) if kept is None else kept
    if said is None:
        problem = f"carries no digest, expected one that ends in -{digest[:12]}.json"
        yield Edit(kind=EditKind.RENAMED, place="name", problem=problem)
    elif not digest.startswith(said):
        problem = f"says {said}, and the bytes have the digest {digest[: len(said)]}"
        yield Edit(kind=EditKind.RENAMED, place="name", problem=problem)


def _edits(document: Any, data: bytes) -> Iterator[Edit]:
    schema = document.get("schema") if isinstance(document, dict) else None
    version = document.get("version") if isinstance(document, dict) else None
    if schema != ARTIFACT.schema_id or type(version) is not int or version < ARTIFACT.version:
        problem = f"is no {ARTIFACT.schema_id} of version {ARTIFACT.version}: it has no digests"
        yield Edit(kind=EditKind.NOT_SEALED, place="$", problem=problem)
        return
    try:
        changed = list(edits_in(document))
        written = sealed_bytes(document)
    except ContractError as error:
        yield Edit(kind=EditKind.RESPELLED, place="$", problem=error.problem)
        return
    for place, problem in changed:
        yield Edit(kind=EditKind.CHANGED, place=place, problem=problem)
    if written != data:
        both = enumerate(zip(written, data, strict=False))
        at = next((i for i, (ours, came) in both if ours != came), min(len(written), len(data)))
        problem = f"is spelled otherwise than it was written, from byte {at} on"
        yield Edit(kind=EditKind.RESPELLED, place="$", problem=problem)


def _read(document: Any, edits: list[Edit]) -> Artifact | None:
    """Read the evidence; what contradicts itself says more of where an edit was made."""
    if any(edit.kind is EditKind.NOT_SEALED for edit in edits):
        return None
    try:
        return artifact_from_document(document)
    except DocumentError as error:
        edits += [
            Edit(kind=EditKind.CONTRADICTION, place=place, problem=problem)
            for place, problem in error.faults
        ]
    except ContractError as error:
        edits.append(Edit(kind=EditKind.CONTRADICTION, place="$", problem=str(error)))
    return None
