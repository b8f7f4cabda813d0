"""Colours and dashes that people tell apart, also those who see fewer colours."""

from __future__ import annotations

import attrs

__all__ = ["COLOURS", "DASHES", "STYLES", "Style", "faded"]

# Five of Okabe and Ito 2008 ("Color Universal Design"), and three that are dark, in an order in
# which neighbours differ most. The tests hold that each pair stays apart for the three kinds of
# dichromacy, as Machado et al. 2009 (doi:10.1109/TVCG.2009.113) compute what is seen.
COLOURS = (
    "#0072b2",  # blue
    "#e69f00",  # orange
    "#009e73",  # green
    "#882255",  # wine
    "#56b4e9",  # sky
    "#1f1f1f",  # black
    "#cc79a7",  # pink
    "#664400",  # brown
)
# Lengths drawn and left out in turn, in pixels: solid, dashed, dotted, dash-dotted.
DASHES: tuple[tuple[float, ...], ...] = ((), (7.0, 3.0), (2.0, 2.5), (8.0, 2.5, 2.0, 2.5))


@attrs.frozen
class Style:
    """How one line looks."""

    colour: str
    dash: tuple[float, ...]


STYLES = tuple(Style(colour, dash) for dash in DASHES for colour in COLOURS)  # 32 of them


def faded(colour: str) -> str:
    """Mix a colour with white, for what stands behind."""
    parts = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return "#" + "".join(f"{(part + 2 * 255) // 3:02x}" for part in parts)
