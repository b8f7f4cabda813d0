"""
Documents with a digest of each part, in canonical JSON, so that any edit can be found and placed.

The digest of the whole file names it (`vlmcore.lab.artifact_files`); the digests inside say which
part of it an edit was made in.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

from vlmcore.errors import ContractError
from vlmcore.lab.canonical import canonical_bytes

__all__ = ["DIGESTS", "edits_in", "seal", "sealed_bytes"]

#: The key under which the digests stand.
DIGESTS = "digests"

# A part as it is written: whole, or of a list its items.
_Part: TypeAlias = "bytes | list[bytes]"


def seal(document: Mapping[str, Any]) -> bytes:
    """
    Write a document with the digest of each of its parts.

    Args:
        document: Plain values of JSON; what stands under ``digests`` is made anew.

    Returns:
        Canonical JSON, without a newline at the end.

    Raises:
        ContractError: If something in it has no canonical form.
        MissingDependencyError: If rfc8785 is not installed.

    Example:
        >>> seal({"b": [1, 2], "a": 1.0}).decode()[:40]
        '{"a":1,"b":[1,2],"digests":{"a":"6b86b27'
    """
    parts = _parts(document)
    digests = {key: _digest(part) for key, part in parts.items()}
    return _joined(parts | {DIGESTS: canonical_bytes(digests)})


def sealed_bytes(document: Mapping[str, Any]) -> bytes:
    """
    Write a document that was read as it must have been written, its digests as they are.

    Raises:
        ContractError: If something in it has no canonical form.
    """
    said = {DIGESTS: canonical_bytes(document[DIGESTS])} if DIGESTS in document else {}
    return _joined(_parts(document) | said)


def edits_in(document: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """
    Find the parts of a document that are not what their digests say.

    Args:
        document: What was read.

    Yields:
        The place of each, as ``"$.samples[3]"``, and what is wrong there.

    Raises:
        ContractError: If something in it has no canonical form.
    """
    digests = document.get(DIGESTS)
    if not isinstance(digests, dict):
        yield f"$.{DIGESTS}", "is missing, expected the digest of each part"
        return
    parts = _parts(document)
    for key in sorted(digests.keys() - parts.keys()):
        yield f"$.{key}", "was taken out: there is a digest of it"
    for key, part in sorted(parts.items()):
        if key not in digests:
            yield f"$.{key}", "was added: there is no digest of it"
        elif isinstance(part, list) and isinstance(digests[key], list):
            yield from _edits_in_list(f"$.{key}", _digest(part), digests[key])
        elif _digest(part) != digests[key]:
            yield f"$.{key}", "was changed: it is not what its digest says"


def _edits_in_list(path: str, found: Any, sealed: list[Any]) -> Iterator[tuple[str, str]]:
    came = Counter(map(str, found))
    expected = Counter(map(str, sealed))
    if came == expected:
        if found != sealed:
            yield path, "were put into another order"
        return
    if len(found) == len(sealed):
        for i, (digest, said) in enumerate(zip(found, sealed, strict=True)):
            if digest != said:
                yield f"{path}[{i}]", "was changed: it is not what its digest says"
        return
    lost, new = (expected - came).total(), (came - expected).total()
    if lost:
        yield path, f"{lost} of {len(sealed)} were taken out or changed"
    if new:
        yield path, f"{new} of {len(found)} were added or changed"


def _parts(document: Mapping[str, Any]) -> dict[str, _Part]:
    return {
        key: [canonical_bytes(item) for item in value]
        if isinstance(value, (list, tuple))
        else canonical_bytes(value)
        for key, value in document.items()
        if key != DIGESTS
    }


def _digest(part: _Part) -> str | list[str]:
    if isinstance(part, bytes):
        return hashlib.sha256(part).hexdigest()
    return [hashlib.sha256(item).hexdigest() for item in part]


def _joined(parts: Mapping[str, _Part]) -> bytes:
    """Put parts that are written together into one object, which is canonical as they are."""
    try:
        keys = sorted(parts, key=lambda key: key.encode("utf-16be"))
    except UnicodeEncodeError:
        raise ContractError("JSON", "got a key that cannot be encoded") from None
    written = []
    for key in keys:
        part = parts[key]
        whole = part if isinstance(part, bytes) else b"[" + b",".join(part) + b"]"
        written.append(canonical_bytes(key) + b":" + whole)
    return b"{" + b",".join(written) + b"}"
