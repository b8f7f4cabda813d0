"""The artifacts of the speed lab."""

from __future__ import annotations

import attrs

from vlmcore.limits._base import MIB, Bounds
from vlmcore.limits._robots import DocumentLimits

__all__ = ["ArtifactLimits"]


@attrs.frozen(kw_only=True)
class ArtifactLimits(Bounds):
    """
    How large the evidence of a run gets, and what is read of one.

    Attributes:
        max_file_bytes: Size of an artifact or a journal.
        max_line_bytes: Size of one line of a journal: one sample with all its events and texts.
        max_nodes: Values in an artifact, those in lists and objects counted.
        max_depth: Objects and lists inside each other.
        max_cases: Cases of a suite.
        max_files: Files of a checkpoint, packages, or models of a server that are listed.
        max_name_characters: Characters of a name, a version, a path.
        max_told_characters: Characters of what a server tells of itself that are kept.
    """

    max_file_bytes: int = 128 * MIB
    max_line_bytes: int = 64 * MIB
    max_nodes: int = 32 * MIB
    max_depth: int = 32
    max_cases: int = 10_000
    max_files: int = 10_000
    max_name_characters: int = 1024
    max_told_characters: int = MIB

    @property
    def of_a_document(self) -> DocumentLimits:
        """The limits of a whole artifact, as of a document."""
        return self._of(self.max_file_bytes)

    @property
    def of_a_line(self) -> DocumentLimits:
        """The limits of one line of a journal, as of a document."""
        return self._of(self.max_line_bytes)

    def _of(self, max_bytes: int) -> DocumentLimits:
        return DocumentLimits(
            max_document_bytes=max_bytes, max_depth=self.max_depth, max_nodes=self.max_nodes
        )
