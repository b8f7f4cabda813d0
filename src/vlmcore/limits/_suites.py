"""Suites of the speed lab."""

from __future__ import annotations

import attrs

from vlmcore.limits._base import MIB, Bounds
from vlmcore.limits._robots import DocumentLimits

__all__ = ["SuiteLimits"]


@attrs.frozen(kw_only=True)
class SuiteLimits(Bounds):
    """
    What a suite of the speed lab may hold, and what of an answer to it is scored.

    Attributes:
        max_file_bytes: Size of the file of a suite.
        max_nodes: Values in it, those in lists and objects counted.
        max_depth: Objects and lists inside each other in it.
        max_key_parts: Parts of a name with dots in TOML, which are read in quadratic time.
        max_cases: Cases.
        max_name_characters: Characters of the name of a suite or a case, and of a path.
        max_notes_characters: Characters of the notes.
        max_prompt_characters: Characters of a prompt, and of a system text.
        max_edge_px: The longest edge that images are made to fit.
        max_phrases: Keywords, concepts, names of one concept, or forbidden phrases of one case.
        max_phrase_characters: Characters of one of these.
        max_expected_characters: Characters of a text that is expected exactly.
        max_fields: Fields of an answer in JSON that are compared.
        max_boxes: Boxes that are expected in one image.
        max_words: Words that an answer may have to be scored by its words; a case may ask for less.
        max_window_words: Words before a phrase that are looked at for one that negates.
    """

    max_file_bytes: int = 4 * MIB
    max_nodes: int = 1 << 18
    max_depth: int = 32
    max_key_parts: int = 32
    max_cases: int = 10_000
    max_name_characters: int = 256
    max_notes_characters: int = 16_384
    max_prompt_characters: int = 65_536
    max_edge_px: int = 65_536
    max_phrases: int = 256
    max_phrase_characters: int = 256
    max_expected_characters: int = 65_536
    max_fields: int = 256
    max_boxes: int = 256
    max_words: int = 100_000
    max_window_words: int = 32

    @property
    def of_a_document(self) -> DocumentLimits:
        """The limits of a suite, as of a document."""
        return DocumentLimits(
            max_document_bytes=self.max_file_bytes,
            max_depth=self.max_depth,
            max_nodes=self.max_nodes,
        )
