"""The manifest of files of weights as a JSON document, key by key, and its JSON Schema."""

from __future__ import annotations

from collections.abc import Mapping

from vlmcore.contracts.schemas import DocumentKind
from vlmcore.contracts.shapes import Field, ListOf, MapOf, Record, Text, Whole
from vlmcore.limits import WeightLimits

__all__ = ["DOCUMENTS", "MANIFEST"]

_LIMITS = WeightLimits()
_NAME = Text(longest=_LIMITS.max_name_characters)
_BYTES = Whole(smallest=0, largest=0x7FFF_FFFF_FFFF_FFFF)
_XXH3 = Text(longest=32)
_FILES = ListOf(
    item=Record(
        fields={
            "name": Field(_NAME, "Its name, without a path."),
            "size_bytes": Field(_BYTES, "Its size."),
            "sha256": Field(Text(longest=64), "Its SHA-256 in hexadecimals.", optional=True),
        }
    ),
    fewest=0,
    most=_LIMITS.max_files,
)

MANIFEST = DocumentKind(
    name="weights-manifest",
    title="What files of weights were when they were written.",
    keys={
        "files": Field(_FILES, "The files."),
        "payload_bytes": Field(_BYTES, "Bytes of all tensors together."),
        "payload_xxh3_128": Field(
            _XXH3, "XXH3 of 128 bits of the checksums of all tensors, one after the other."
        ),
        "index_xxh3_128": Field(
            _XXH3, "The same of what the files say: names, types, shapes and places of tensors."
        ),
        "tensors_xxh3_128": Field(
            MapOf(item=_XXH3, most=_LIMITS.max_manifest_bytes),  # the reader's limits say how many
            "The same of the bytes of each tensor, by its name, in the order of the files.",
        ),
        "source": Field(
            Record(
                fields={
                    "checkpoint": Field(_NAME, "The checkpoint that they come from."),
                    "revision": Field(_NAME, "Its version, as a commit.", optional=True),
                    "files": Field(_FILES, "The files that they were read from."),
                }
            ),
            "Where the tensors come from.",
            optional=True,
        ),
        "made_by": Field(
            MapOf(item=_NAME, most=16), "The versions of what made it, by name.", optional=True
        ),
    },
)

#: The documents of weights by their names.
DOCUMENTS: Mapping[str, DocumentKind] = {MANIFEST.name: MANIFEST}
