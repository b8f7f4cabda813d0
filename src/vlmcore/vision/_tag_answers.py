"""Places that are written with tags and tokens of their own."""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Mapping

from vlmcore.vision._written import Kind, Notes, Written, in_xy_order, wrong_numbers
from vlmcore.vision.dialects import Dialect, Syntax

__all__ = ["TAG_READERS"]

_Reader = Callable[[str, Dialect, Notes], None]

_LOC = re.compile(r"<loc_(\d{1,4})>")
_BOX_RUN = re.compile(r"(?:<loc_\d{1,4}>)+")
_POLYGON_RUN = re.compile(r"(?:<loc_\d{1,4}>|<sep>|</?poly>)+")
_FRAMING = re.compile(r"</?s>|<pad>")
_LOC_BEFORE = re.compile(r"((?:<loc\d{4}>)+)((?:<seg\d{3}>)*)([^;<]*)")
_LOC_NUMBER = re.compile(r"<loc(\d{4})>")
_POINT_TAG = re.compile(r"<points?(\s[^<>]*)>([^<]*)")
_ATTRIBUTE = re.compile(r'\b([a-z]+)(\d*)\s*=\s*"([^"]*)"')
_ENTITY = re.compile(
    r"(?:<phrase>([^<]*)</phrase>\s*)?<object>"
    r"((?:<patch_index_\d{4}>|</?delimiter_of_multi_objects/?>)*)(</object>)?"
)
_PATCH_PAIR = re.compile(r"<patch_index_(\d{4})><patch_index_(\d{4})>")
_NUMBER = re.compile(r"[-+]?\d{1,9}(?:\.\d{0,9})?")
_BETWEEN = re.compile(r"[\s,()\[\]]*")


def _loc_boxes(text: str, dialect: Dialect, notes: Notes) -> None:
    end = 0
    for i, run in enumerate(_BOX_RUN.finditer(text)):
        label, end = _clean(text[end : run.start()]), run.end()
        numbers = [float(each) for each in _LOC.findall(run.group())]
        _boxes(numbers, label, f"$[{i}]", dialect, notes)
    _require_no_rest(text[end:], notes)


def _require_no_rest(text: str, notes: Notes) -> None:
    """Note a label at the end that has no numbers: the answer is cut there."""
    if rest := _clean(text):
        notes.fault("$", f"ends with {rest!r:.40}, which has no place: is it cut?")


def _loc_polygons(text: str, dialect: Dialect, notes: Notes) -> None:
    end = 0
    for i, run in enumerate(_POLYGON_RUN.finditer(text)):
        label, end = _clean(text[end : run.start()]), run.end()
        for part in re.split(r"<sep>|</?poly>", run.group()):
            numbers = [float(each) for each in _LOC.findall(part)]
            if numbers:
                _place(Kind.POLYGON, numbers, (f"$[{i}]", label), dialect, notes)
    _require_no_rest(text[end:], notes)


def _loc_before(text: str, dialect: Dialect, notes: Notes) -> None:
    for i, found in enumerate(_LOC_BEFORE.finditer(text)):
        numbers = [float(each) for each in _LOC_NUMBER.findall(found.group(1))]
        _boxes(numbers, _clean(found.group(3)), f"$[{i}]", dialect, notes)


def _point_tags(text: str, dialect: Dialect, notes: Notes) -> None:
    if text.rfind("<point") > text.rfind(">"):
        notes.fault("$", "is cut: a tag of points is not closed")
    for i, tag in enumerate(_POINT_TAG.finditer(text)):
        said = {(name, index): value for name, index, value in _ATTRIBUTE.findall(tag.group(1))}
        label = _clean(html.unescape(said.get(("alt", ""), "") or tag.group(2)))
        indices = [index for name, index in said if name == "x"]
        if not indices:
            notes.fault(f"$[{i}]", "is a tag of points without x and y")
        for index in indices:
            pair = [said[("x", index)], said.get(("y", index), "")]
            path = f"$[{i}].x{index}"
            if all(_NUMBER.fullmatch(value.strip()) for value in pair):
                _place(Kind.POINT, [float(value) for value in pair], (path, label), dialect, notes)
            else:
                notes.fault(path, f"got {pair[0]!r:.20} and {pair[1]!r:.20}, expected numbers")


def _patch_tags(text: str, dialect: Dialect, notes: Notes) -> None:
    cells = int(dialect.full_scale or 1)
    for i, entity in enumerate(_ENTITY.finditer(text)):
        label, objects, closing = entity.groups()
        pairs = _PATCH_PAIR.findall(objects)
        if not pairs or closing is None:
            notes.fault(f"$[{i}]", "is cut or broken: expected pairs of patches and </object>")
            continue
        for first, last in pairs:
            (top, left), (bottom, right) = (divmod(int(each), cells) for each in (first, last))
            # A box in one row or column reaches around its cells; others join their middles.
            before, behind = (0.0, 1.0) if left == right or top == bottom else (0.5, 0.5)
            numbers = [left + before, top + before, right + behind, bottom + behind]
            _place(Kind.BOX, numbers, (f"$[{i}]", _clean(label or "")), dialect, notes)


def _marked_boxes(text: str, dialect: Dialect, notes: Notes) -> None:
    opening, closing, before, behind = dialect.marks or ("", "", "", "")
    at, count = 0, 0
    while (start := text.find(before, at)) >= 0:
        path, end = f"$[{count}]", text.find(behind, start)
        if end < 0:
            notes.fault(path, f"is cut: no {behind} follows")
            return
        label = _between(text[at:start], opening, closing)
        inside, at, count = text[start + len(before) : end], end + len(behind), count + 1
        if _BETWEEN.fullmatch(_NUMBER.sub("", inside)):
            numbers = [float(each) for each in _NUMBER.findall(inside)]
            _boxes(numbers, label, path, dialect, notes)
        else:
            notes.fault(path, f"got {inside!r:.40}, expected numbers")


def _between(text: str, opening: str, closing: str) -> str:
    """Return what stands between the last *opening* and the *closing* behind it."""
    start = text.rfind(opening)
    end = text.find(closing, start)
    return _clean(text[start + len(opening) : end]) if 0 <= start < end else ""


def _boxes(numbers: list[float], label: str, path: str, dialect: Dialect, notes: Notes) -> None:
    """Take the numbers of one box or of several."""
    whole = len(numbers) - len(numbers) % 4
    for at in range(0, whole, 4):
        _place(Kind.BOX, numbers[at : at + 4], (path, label), dialect, notes)
    if whole < len(numbers) or not numbers:
        rest = len(numbers) - whole
        notes.fault(path, f"is cut: got {rest} numbers of a box, expected 4")


def _place(
    kind: Kind, numbers: list[float], at: tuple[str, str], dialect: Dialect, notes: Notes
) -> None:
    """Take the numbers of a place; *at* is where it stands in the answer, and its label."""
    path, label = at
    problem = wrong_numbers(numbers, kind)
    if problem:
        notes.fault(path, problem)
        return
    middle = 0.5 if dialect.at_middle else 0.0
    ordered = in_xy_order([number + middle for number in numbers], dialect)
    notes.add(Written(path, kind, ordered, label or None))


def _clean(text: str) -> str:
    return " ".join(_FRAMING.sub(" ", text).split())


#: Who reads each syntax.
TAG_READERS: Mapping[Syntax, _Reader] = {
    Syntax.LOC_BOXES: _loc_boxes,
    Syntax.LOC_POLYGONS: _loc_polygons,
    Syntax.LOC_BEFORE: _loc_before,
    Syntax.POINT_TAGS: _point_tags,
    Syntax.PATCH_TAGS: _patch_tags,
    Syntax.MARKED_BOXES: _marked_boxes,
}
