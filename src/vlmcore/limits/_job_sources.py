"""What names the images of a job: lists, tables, archives."""

from __future__ import annotations

import attrs

from vlmcore.limits._base import MIB, Bounds
from vlmcore.limits._models import ImageLimits
from vlmcore.limits._robots import DocumentLimits

__all__ = ["JobSourceLimits"]


@attrs.frozen(kw_only=True)
class JobSourceLimits(Bounds):
    """
    What is read of the lists, tables and archives that name or hold the images of a job.

    None of them is held whole, so that there is no bound on how many images they name.

    Attributes:
        max_path_bytes: Size of one line of a list of paths, or of one path in a table.
        max_record_bytes: Size of one line of JSON. A picture of 48 MiB fits, in base64.
        max_depth: Objects and lists inside each other in one line of JSON.
        max_nodes: Values in one line of JSON, those in lists and objects counted.
        max_files: Files that one pattern stands for.
        max_rows: Rows of one table of Parquet, which may be empty, and take no byte then.
        max_footer_bytes: Size of one text or list in the footer of a table of Parquet.
        max_page_bytes: What a page of such a table may unpack to beyond its size in the file.
        max_batch_bytes: What the rows of a table may hold that are read at once, where a page of
            the file does not hold more by itself.
        max_header_bytes: Size of one header in a tar, as that of a long name.
        max_encoded_bytes: Size of one encoded picture, as in `ImageLimits`.
    """

    max_path_bytes: int = 1 << 15
    max_record_bytes: int = 64 * MIB
    max_depth: int = 32
    max_nodes: int = MIB
    max_files: int = 1 << 16
    max_rows: int = 1 << 28
    max_footer_bytes: int = 64 * MIB
    max_page_bytes: int = 64 * MIB
    max_batch_bytes: int = 16 * MIB
    max_header_bytes: int = 1 << 16
    max_encoded_bytes: int = ImageLimits().max_encoded_bytes

    @property
    def of_a_record(self) -> DocumentLimits:
        """The limits of one line of JSON, as of a document."""
        return DocumentLimits(
            max_document_bytes=self.max_record_bytes,
            max_depth=self.max_depth,
            max_nodes=self.max_nodes,
        )

    @property
    def of_an_image(self) -> ImageLimits:
        """The limits of one picture."""
        return ImageLimits(max_encoded_bytes=self.max_encoded_bytes)
