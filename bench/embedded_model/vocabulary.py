"""The words of the scenes: what can be drawn, in which colour, where, and its name."""

SHAPES: tuple[str, ...] = ("circle", "square", "triangle", "star", "diamond", "cross")
"""Shapes, all convex or star-shaped, none of which looks like one of the glyphs."""

GLYPHS: tuple[str, ...] = tuple("ABEFHKMNRSTW23457")
"""Letters and digits that cannot be taken for a shape (no O, 0, I, X) nor for one another."""

COLOURS: tuple[str, ...] = ("red", "orange", "yellow", "green", "blue", "purple", "black", "white")
"""Colours of objects."""

BACKGROUNDS: tuple[str, ...] = ("white", "grey", "black")
"""Colours of the background behind objects; an empty picture can have every colour."""

POSITIONS: tuple[str, ...] = (
    "top left",
    "top",
    "top right",
    "left",
    "centre",
    "right",
    "bottom left",
    "bottom",
    "bottom right",
)
"""Names of the nine cells of a picture in reading order."""

NUMBERS: tuple[str, ...] = ("zero", "one", "two", "three")

COLOUR_RANGES: dict[str, tuple[tuple[float, float], tuple[float, float], tuple[float, float]]] = {
    "red": ((350.0, 366.0), (0.80, 1.0), (0.70, 1.0)),
    "orange": ((24.0, 39.5), (0.85, 1.0), (0.88, 1.0)),
    "yellow": ((52.0, 62.0), (0.75, 1.0), (0.88, 1.0)),
    "green": ((95.0, 150.0), (0.60, 1.0), (0.42, 1.0)),
    "blue": ((212.0, 244.0), (0.65, 1.0), (0.55, 1.0)),
    "purple": ((274.0, 302.0), (0.55, 1.0), (0.42, 0.95)),
    "black": ((0.0, 360.0), (0.0, 0.10), (0.0, 0.12)),
    "white": ((0.0, 360.0), (0.0, 0.05), (0.93, 1.0)),
    "grey": ((0.0, 360.0), (0.0, 0.08), (0.42, 0.62)),
}
"""Hue in degrees, saturation and value between which a colour is drawn."""

PLAIN_RGB: dict[str, tuple[tuple[int, int, int], ...]] = {
    "red": ((255, 0, 0), (220, 20, 60), (200, 0, 0)),
    "orange": ((255, 165, 0), (255, 140, 0)),
    "yellow": ((255, 255, 0), (255, 220, 0)),
    "green": ((0, 128, 0), (0, 255, 0), (0, 200, 0)),
    "blue": ((0, 0, 255), (30, 80, 220), (0, 0, 200)),
    "purple": ((128, 0, 128), (160, 32, 240), (148, 0, 211)),
    "black": ((0, 0, 0),),
    "white": ((255, 255, 255),),
    "grey": ((128, 128, 128), (110, 110, 110)),
}
"""The values that people write when they draw a plain picture."""


def glyph_kind(glyph: str) -> str:
    """Return whether *glyph* is a ``"letter"`` or a ``"digit"``."""
    return "digit" if glyph.isdigit() else "letter"
