"""What detections look like in notebooks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vlmcore.contracts._markup import card, number, paragraph, table, text

if TYPE_CHECKING:
    from vlmcore.vision.detections import Detections

__all__ = ["detections_html"]

_ROWS = 48


def detections_html(found: Detections) -> str:
    """Show what was found: label, score, and where."""
    rows = [
        (
            text(item.label, 60),
            type(item.place).__name__.lower(),
            "" if item.score is None else number(item.score),
            *map(number, item.place.bounds),
        )
        for item in found.items[:_ROWS]
    ]
    left_out = len(found) - _ROWS
    more = paragraph(f"… and {left_out:,} more", quiet=True) if left_out > 0 else ""
    head = ("label", "place", "score", "left", "top", "right", "bottom")
    size = f"in {found.width_px} x {found.height_px} pixels (width x height)"
    return card(
        f"{len(found)} found", paragraph(size, quiet=True), table(head, rows, texts=2), more
    )
