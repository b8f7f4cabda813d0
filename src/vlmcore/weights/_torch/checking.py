"""Weights compared with their manifest while they go by, piece by piece, or once they are there."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from vlmcore.errors import WeightChecksumError
from vlmcore.weights._chunks import Chunk
from vlmcore.weights._torch.staging import Slot
from vlmcore.weights.checksums import Checksum, checksum_of, new_checksum
from vlmcore.weights.index import TensorEntry
from vlmcore.weights.manifest import Manifest
from vlmcore.weights.opening import WeightFiles
from vlmcore.weights.verifying import TensorChecks, Verification, find_manifest

__all__ = ["PieceChecks", "expected_checksums", "require_checksums"]


def expected_checksums(
    files: WeightFiles, verification: Verification, manifest: Manifest | None
) -> Mapping[str, str]:
    """
    Say which tensors are to be compared, and what their checksums have to be.

    Raises:
        WeightsError: If there is no manifest, or it is one of other files.
    """
    if verification is Verification.OFF:
        return {}
    known = find_manifest(files) if manifest is None else manifest
    checks = TensorChecks(files, known, how=verification)
    return {name: known.tensors[name] for name in checks.names}


def require_checksums(path: str, raws: Mapping[str, Any], expected: Mapping[str, str]) -> None:
    """
    Compare tensors that are there.

    Args:
        path: The files, for errors.
        raws: The bytes of tensors, by name.
        expected: The checksums of those that are compared.

    Raises:
        WeightChecksumError: If one is another; all are named.
    """
    compared = [name for name in raws if name in expected]
    other = tuple(name for name in compared if checksum_of(raws[name]) != expected[name])
    if other:
        raise WeightChecksumError(path, other)


class PieceChecks:
    """
    Makes the checksums of tensors whose pieces go by, in their order.

    Args:
        entries: The tensors that will go by.
        expected: The checksums of those that are compared.
    """

    def __init__(self, entries: Iterable[TensorEntry], expected: Mapping[str, str]) -> None:
        self._expected = expected
        self._compared = [entry for entry in entries if entry.name in expected]
        self._made: dict[str, Checksum] = {}

    @property
    def nbytes(self) -> int:
        """How many bytes are compared."""
        return sum(entry.nbytes for entry in self._compared)

    def note(self, chunk: Chunk, slot: Slot) -> None:
        """Take the pieces of a chunk that is in *slot*."""
        for piece in chunk.pieces:
            name = piece.entry.name
            if name in self._expected:
                made = self._made.setdefault(name, new_checksum())
                made.update(slot.bytes_of(piece).cpu().numpy())

    def finish(self, path: str) -> None:
        """
        Compare all, now that the last piece is there.

        Raises:
            WeightChecksumError: If one is another; all are named.
        """
        other = [
            entry.name
            for entry in self._compared
            if self._made.get(entry.name, new_checksum()).hexdigest() != self._expected[entry.name]
        ]
        if other:
            raise WeightChecksumError(path, tuple(other))
