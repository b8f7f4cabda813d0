"""The ways in which models write places in an image: who writes which, and how to tell."""

from __future__ import annotations

import enum
import re
from collections.abc import Mapping

import attrs

from vlmcore._arrays import require_member, require_name, require_positive
from vlmcore.errors import AmbiguousResponseError, ContractError
from vlmcore.limits import VisionLimits, require_at_most

__all__ = ["DIALECTS", "Dialect", "Order", "Syntax", "detect_dialect", "find_dialect"]

_LIMITS = VisionLimits()


class Syntax(enum.Enum):
    """How a text says where something is."""

    JSON = "json"  # objects with a label and numbers
    LOC_BOXES = "loc-boxes"  # label<loc_1><loc_2><loc_3><loc_4>
    LOC_POLYGONS = "loc-polygons"  # label<loc_1><loc_2>..., an x and a y for each corner
    LOC_BEFORE = "loc-before"  # <loc0001><loc0002><loc0003><loc0004> label ; ...
    POINT_TAGS = "point-tags"  # <point x="1" y="2" alt="label">label</point>
    PATCH_TAGS = "patch-tags"  # <phrase>label</phrase><object><patch_index_0001>...</object>
    MARKED_BOXES = "marked-boxes"  # label and numbers, each between marks


class Order(enum.Enum):
    """Which number comes first."""

    XY = "xy"  # x1, y1, x2, y2
    YX = "yx"  # y1, x1, y2, x2


@attrs.frozen(kw_only=True)
class Dialect:
    """
    One way to write places.

    Attributes:
        name: As ``"qwen3-vl"``.
        syntax: How the text is built.
        full_scale: The number that stands for the far side of what the model was shown, or how many
            cells a side has; ``None`` where numbers are pixels of that.
        order: Which number comes first.
        box_key: The key of a box in JSON.
        point_key: The key of a point in JSON.
        at_middle: Whether a number names a step of the scale, and stands for its middle.
        marks: What stands before and after a label, and before and after numbers.

    Raises:
        ContractError: If a field is not as described.

    Example:
        >>> Dialect(name="mine", syntax=Syntax.JSON, full_scale=1.0, box_key="bbox").order
        <Order.XY: 'xy'>
    """

    name: str
    syntax: Syntax
    full_scale: float | None
    order: Order = Order.XY
    box_key: str = "box"
    point_key: str = "point"
    at_middle: bool = False
    marks: tuple[str, str, str, str] | None = None

    def __attrs_post_init__(self) -> None:
        for field in ("name", "box_key", "point_key"):
            require_name(field, getattr(self, field), max_characters=_LIMITS.max_label_characters)
        require_member(Syntax, syntax=self.syntax)
        require_member(Order, order=self.order)
        if self.full_scale is not None:
            require_positive(full_scale=self.full_scale)
        if (self.marks is None) is (self.syntax is Syntax.MARKED_BOXES):
            problem = f"got {self.marks!r:.80}, expected four texts, for marked boxes only"
            raise ContractError("marks", problem)


def _qwen(name: str, full_scale: float | None) -> Dialect:
    return Dialect(
        name=name,
        syntax=Syntax.JSON,
        full_scale=full_scale,
        box_key="bbox_2d",
        point_key="point_2d",
    )


def _marked(name: str, full_scale: float, *marks: str) -> Dialect:
    return Dialect(
        name=name,
        syntax=Syntax.MARKED_BOXES,
        full_scale=full_scale,
        marks=(marks[0], marks[1], marks[2], marks[3]),
    )


_ALL = (
    # QwenLM/Qwen3-VL, issues 866 and 1486: Qwen2-VL 0 to 1000, Qwen2.5-VL pixels of what it is
    # shown, Qwen3-VL 0 to 1000 again.
    _marked("qwen-vl", 1000.0, "<ref>", "</ref>", "<box>", "</box>"),
    _marked(
        "qwen2-vl",
        1000.0,
        "<|object_ref_start|>",
        "<|object_ref_end|>",
        "<|box_start|>",
        "<|box_end|>",
    ),
    _qwen("qwen2.5-vl", None),
    _qwen("qwen3-vl", 1000.0),
    # The processor of Florence-2 in transformers: 1000 steps, each for its middle.
    Dialect(name="florence-2", syntax=Syntax.LOC_BOXES, full_scale=1000.0, at_middle=True),
    Dialect(
        name="florence-2-polygons", syntax=Syntax.LOC_POLYGONS, full_scale=1000.0, at_middle=True
    ),
    # google-research/big_vision, PaliGemma: 1024 steps, y first, the label behind.
    Dialect(name="paligemma", syntax=Syntax.LOC_BEFORE, full_scale=1024.0, order=Order.YX),
    # The model cards of Molmo (arXiv:2409.17146): percent.
    Dialect(name="molmo", syntax=Syntax.POINT_TAGS, full_scale=100.0),
    # docs.moondream.ai: objects with x_min to y_max, points with x and y, 0 to 1.
    Dialect(name="moondream", syntax=Syntax.JSON, full_scale=1.0),
    # ai.google.dev, image understanding: y first, 0 to 1000.
    Dialect(name="gemini", syntax=Syntax.JSON, full_scale=1000.0, order=Order.YX, box_key="box_2d"),
    # The processor of Kosmos-2 in transformers: cells of a grid of 32 x 32.
    Dialect(name="kosmos-2", syntax=Syntax.PATCH_TAGS, full_scale=32.0),
    # internvl.readthedocs.io, grounding: 0 to 1000.
    _marked("internvl", 1000.0, "<ref>", "</ref>", "<box>", "</box>"),
    # deepseek-ai/DeepSeek-VL2, its own drawing of boxes: 0 to 999.
    _marked("deepseek-vl2", 999.0, "<|ref|>", "<|/ref|>", "<|det|>", "<|/det|>"),
    # Plain JSON, for models that are told what to write: {"label": ..., "box": [...]}.
    Dialect(name="normalised", syntax=Syntax.JSON, full_scale=1.0),
    Dialect(name="thousandths", syntax=Syntax.JSON, full_scale=1000.0),
    Dialect(name="pixels", syntax=Syntax.JSON, full_scale=None),
)

#: Dialects by their names.
DIALECTS: Mapping[str, Dialect] = {dialect.name: dialect for dialect in _ALL}


def find_dialect(dialect: Dialect | str) -> Dialect:
    """
    Find a dialect by its name; a dialect itself is returned.

    Raises:
        ContractError: If there is none of that name.
    """
    if isinstance(dialect, Dialect):
        return dialect
    if isinstance(dialect, str) and dialect in DIALECTS:
        return DIALECTS[dialect]
    names = ", ".join(DIALECTS)
    raise ContractError("dialect", f"got {dialect!r:.80}, expected a Dialect or one of {names}")


# What only one of them writes, or the few that write alike.
_SIGNS: tuple[tuple[re.Pattern[str], tuple[str, ...]], ...] = (
    (re.compile(r"<patch_index_\d"), ("kosmos-2",)),
    (re.compile(r"<\|det\|>"), ("deepseek-vl2",)),
    (re.compile(r"<\|box_start\|>"), ("qwen2-vl",)),
    (re.compile(r"<box>\s*\[\["), ("internvl",)),
    (re.compile(r"<box>\s*\("), ("qwen-vl",)),
    (re.compile(r"<loc\d{4}>"), ("paligemma",)),
    (re.compile(r"<points?\s[^<>]*\bx1?\s*="), ("molmo",)),
    (re.compile(r'"box_2d"\s*:'), ("gemini",)),
    (re.compile(r'"x_min"\s*:'), ("moondream",)),
    (re.compile(r'"(?:bbox_2d|point_2d)"\s*:'), ("qwen2.5-vl", "qwen3-vl")),
)
_LOCS = re.compile(r"(?:<loc_\d{1,3}>)+")


def detect_dialect(text: str) -> Dialect:
    """
    Tell in which dialect an answer is written, where it can be told.

    Args:
        text: What a model wrote.

    Raises:
        AmbiguousResponseError: If more than one dialect is written so: ``bbox_2d`` means pixels to
            Qwen2.5-VL and thousandths to Qwen3-VL, and eight ``<loc_..>`` of Florence-2 may be two
            boxes or one quadrangle.
        ContractError: If none is.
        LimitExceededError: If *text* is longer than `vlmcore.limits.VisionLimits` allows.

    Example:
        >>> detect_dialect("<loc0010><loc0020><loc0300><loc0400> dog").name
        'paligemma'
    """
    require_at_most("max_text_characters", len(text), _LIMITS.max_text_characters)
    found = [names for sign, names in _SIGNS if sign.search(text)]
    if runs := _LOCS.findall(text):
        found.append(_florence(text, [run.count("<") for run in runs]))
    names = tuple(dict.fromkeys(name for each in found for name in each))
    if len(names) == 1:
        return DIALECTS[names[0]]
    if names:
        raise AmbiguousResponseError("text", names, "name the dialect")
    raise ContractError("text", "has no sign of a dialect, expected one that is known: name it")


def _florence(text: str, counts: list[int]) -> tuple[str, ...]:
    boxes, polygons = "florence-2", "florence-2-polygons"
    if "<poly>" in text or "<sep>" in text or any(count % 4 for count in counts):
        return (polygons,)
    return (boxes,) if any(count == 4 for count in counts) else (boxes, polygons)
