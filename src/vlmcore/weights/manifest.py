"""What lies beside files of weights: their checksums, where they come from, what made them."""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import attrs

from vlmcore._arrays import as_tuple, require_name
from vlmcore._whole_files import what_failed, write_whole
from vlmcore.contracts.json_text import read_json, write_json
from vlmcore.errors import (
    ContractError,
    CorruptWeightsError,
    LimitExceededError,
    WeightsError,
    WeightsLimitError,
)
from vlmcore.limits import DocumentLimits, WeightLimits, require_at_most
from vlmcore.weights.checksums import checksum_of, whole_checksum
from vlmcore.weights.index import WeightIndex
from vlmcore.weights.manifest_schema import MANIFEST

__all__ = [
    "FileNote",
    "Manifest",
    "Provenance",
    "coming_manifest_path",
    "index_checksum",
    "manifest_path",
    "read_manifest",
    "write_manifest",
]

_LIMITS = WeightLimits()
_XXH3 = re.compile(r"[0-9a-f]{32}")
_SHA256 = re.compile(r"[0-9a-f]{64}")


@attrs.frozen(kw_only=True)
class FileNote:
    """
    One file, as it was.

    Attributes:
        name: Its name, without a path.
        size_bytes: Its size.
        sha256: Its SHA-256; ``None`` where nobody made it.
    """

    name: str
    size_bytes: int
    sha256: str | None = None

    def __attrs_post_init__(self) -> None:
        require_name("name", self.name, max_characters=_LIMITS.max_name_characters)
        if type(self.size_bytes) is not int or self.size_bytes < 0:
            raise ContractError("size_bytes", f"got {self.size_bytes!r:.40}, expected 0 or more")
        if self.sha256 is not None:
            _require_hex(_SHA256, sha256=self.sha256)


@attrs.frozen(kw_only=True)
class Provenance:
    """
    Where tensors come from.

    Attributes:
        checkpoint: The checkpoint, as ``"Qwen/Qwen3-VL-2B-Instruct"`` or the name of a folder.
        revision: The commit of the hub, or any other name of the version; ``None`` if unknown.
        files: The files that they were read from.
    """

    checkpoint: str
    revision: str | None = None
    files: tuple[FileNote, ...] = attrs.field(default=(), converter=as_tuple)

    def __attrs_post_init__(self) -> None:
        require_name("checkpoint", self.checkpoint, max_characters=_LIMITS.max_name_characters)
        if self.revision is not None:
            require_name("revision", self.revision, max_characters=_LIMITS.max_name_characters)


@attrs.frozen(kw_only=True)
class Manifest:
    """
    What files of weights were when they were written, so that what they are can be compared.

    A checksum finds what happened by mistake. Who gives away a file can give away a manifest that
    fits it: against a stranger the SHA-256 of each file is there, to be compared with one that
    comes from somebody else.

    Attributes:
        files: The files.
        tensors: The checksum of each tensor (XXH3 of 128 bits), by name, in the order of the files.
        payload_bytes: Bytes of all tensors together.
        payload: The checksum of the tensors' checksums, one after the other.
        index: The checksum of what the files say: names, types, shapes and places.
        provenance: Where the tensors come from, if that is known.
        made_by: The versions of what made it, by name.
    """

    files: tuple[FileNote, ...] = attrs.field(converter=as_tuple)
    tensors: Mapping[str, str]
    payload_bytes: int
    payload: str
    index: str
    provenance: Provenance | None = None
    made_by: Mapping[str, str] = attrs.field(factory=dict)

    def __attrs_post_init__(self) -> None:
        for name, checksum in self.tensors.items():
            _require_hex(_XXH3, **{f"tensors[{name[:80]!a}]": checksum})
        _require_hex(_XXH3, payload=self.payload, index=self.index)
        if whole_checksum(self.tensors.values()) != self.payload:
            raise ContractError("payload", "got another checksum than that of the tensors'")

    @classmethod
    def of(
        cls,
        index: WeightIndex,
        checksums: Mapping[str, str],
        *,
        sha256: tuple[str, ...] = (),
        provenance: Provenance | None = None,
    ) -> Manifest:
        """
        Make the manifest of files from the checksums of their tensors.

        Args:
            index: What the files say.
            checksums: The checksum of each tensor, by name.
            sha256: The SHA-256 of each file; none if nobody made them.
            provenance: Where the tensors come from.

        Raises:
            ContractError: If a checksum is missing, or is none.
        """
        try:
            tensors = {entry.name: checksums[entry.name] for entry in index.entries}
        except KeyError as error:
            raise ContractError("checksums", f"got none of {error.args[0]!a:.90}") from None
        digests = sha256 or (None,) * len(index.files)
        return cls(
            files=tuple(
                FileNote(name=file.name, size_bytes=file.size_bytes, sha256=digest)
                for file, digest in zip(index.files, digests, strict=True)
            ),
            tensors=tensors,
            payload_bytes=index.payload_bytes,
            payload=whole_checksum(tensors.values()),
            index=index_checksum(index),
            provenance=provenance,
            made_by=_versions(),
        )


def index_checksum(index: WeightIndex) -> str:
    """
    Return the checksum of what files say: each name, type, shape, file and place, in their order.

    Raises:
        MissingDependencyError: If ``xxhash`` is not installed.
    """
    lines = [
        f"{each.name}\0{each.dtype.value}\0{each.shape}\0{each.file}\0{each.start}\0{each.stop}\n"
        for each in index.entries
    ]
    return checksum_of("".join(lines).encode())


def manifest_path(path: str | os.PathLike[str]) -> Path:
    """
    Say where the manifest of a file is: beside it, with ``.manifest.json`` behind its name.

    Example:
        >>> manifest_path("models/m.flashpack").name
        'm.flashpack.manifest.json'
    """
    path = Path(path)
    return path.with_name(f"{path.name}.manifest.json")


def coming_manifest_path(path: str | os.PathLike[str]) -> Path:
    """
    Say where the next manifest of a file waits while the file is replaced.

    One that is there shows that a writer was ended in between: file and manifest may be of two.

    Example:
        >>> coming_manifest_path("models/m.flashpack").name
        'm.flashpack.manifest.json.new'
    """
    return Path(f"{os.path.realpath(manifest_path(path))}.new")


def write_manifest(manifest: Manifest, path: str | os.PathLike[str]) -> None:
    """
    Write a manifest, whole or not at all.

    Raises:
        WeightsError: If it cannot be written.
    """
    most = max(len(manifest.tensors), _LIMITS.max_tensors)
    limits = _json_limits(WeightLimits.for_tensors(most))
    text = write_json(_document(manifest), limits=limits)
    try:
        write_whole(os.fspath(path), f"{text}\n".encode())
    except ContractError as error:
        raise WeightsError(os.fspath(path), error.problem) from None


def read_manifest(path: str | os.PathLike[str], *, limits: WeightLimits | None = None) -> Manifest:
    """
    Read a manifest.

    Raises:
        WeightsError: If it cannot be read.
        CorruptWeightsError: If it is none, or contradicts itself.
        WeightsLimitError: If it is larger than *limits* allow.
    """
    limits, shown = limits or _LIMITS, os.fspath(path)
    try:
        text = _read(Path(shown), limits.max_manifest_bytes)
        said = MANIFEST.check(read_json(text, limits=_json_limits(limits)))
        require_at_most("max_tensors", len(said["tensors_xxh3_128"]), limits.max_tensors)
        return _manifest(said)
    except LimitExceededError as error:
        raise WeightsLimitError(shown, error.limit, error.actual, error.allowed) from None
    except ContractError as error:
        raise CorruptWeightsError(shown, str(error).replace("\n", " ")) from None
    except OSError as error:
        raise WeightsError(shown, what_failed(error)) from None


def _read(path: Path, most: int) -> bytes:
    if not path.is_file():
        path.stat()
        raise ContractError("manifest", "is no regular file")
    with path.open("rb") as file:
        text = file.read(most + 1)
    require_at_most("max_manifest_bytes", len(text), most)
    return text


def _json_limits(limits: WeightLimits) -> DocumentLimits:
    # A tensor is a name and a checksum, a file a handful of values: what is larger is none.
    most = 2 * limits.max_tensors + 16 * limits.max_files
    return DocumentLimits(max_document_bytes=limits.max_manifest_bytes, max_depth=8, max_nodes=most)


def _document(manifest: Manifest) -> dict[str, Any]:
    said: dict[str, Any] = {
        **MANIFEST.header(),
        "files": [_note(each) for each in manifest.files],
        "payload_bytes": manifest.payload_bytes,
        "payload_xxh3_128": manifest.payload,
        "index_xxh3_128": manifest.index,
        "tensors_xxh3_128": dict(manifest.tensors),
        "made_by": dict(manifest.made_by),
    }
    if manifest.provenance is not None:
        source = manifest.provenance
        said["source"] = {
            "checkpoint": source.checkpoint,
            **({} if source.revision is None else {"revision": source.revision}),
            "files": [_note(each) for each in source.files],
        }
    return said


def _note(note: FileNote) -> dict[str, Any]:
    return {key: value for key, value in attrs.asdict(note).items() if value is not None}


def _manifest(data: dict[str, Any]) -> Manifest:
    source = data.get("source")
    return Manifest(
        files=[FileNote(**each) for each in data["files"]],
        tensors=data["tensors_xxh3_128"],
        payload_bytes=data["payload_bytes"],
        payload=data["payload_xxh3_128"],
        index=data["index_xxh3_128"],
        made_by=data.get("made_by", {}),
        provenance=None
        if source is None
        else Provenance(
            checkpoint=source["checkpoint"],
            revision=source.get("revision"),
            files=[FileNote(**each) for each in source["files"]],
        ),
    )


def _require_hex(pattern: re.Pattern[str], **values: Any) -> None:
    for field, value in values.items():
        if not isinstance(value, str) or pattern.fullmatch(value) is None:
            raise ContractError(field, f"got {value!r:.80}, expected a checksum in hexadecimals")


def _versions() -> dict[str, str]:
    try:
        installed = version("vlmcore")
    except PackageNotFoundError:  # run from its sources
        installed = "unknown"
    return {"vlmcore": installed, "python": platform.python_version()}
