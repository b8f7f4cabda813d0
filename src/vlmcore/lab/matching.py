"""
Whether two targets were given the same, without which their speeds say nothing about each other.

A smaller picture, a shorter answer or another checkpoint makes a model faster at another task. What
is changed on purpose is named, one thing at a time; what nobody told is neither the same nor
different.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

import attrs

from vlmcore._arguments import require_kind, shown
from vlmcore._arrays import as_tuple
from vlmcore._copying import thawed
from vlmcore.errors import ContractError, InputMismatchError
from vlmcore.lab.artifacts import RunStart
from vlmcore.lab.inputs import Input
from vlmcore.lab.loads import load_document
from vlmcore.lab.targets import Checkpoint, Target

__all__ = ["WHAT", "Difference", "Matching", "match_inputs", "require_same_inputs"]

#: What must be the same, in the order in which it is told.
WHAT = (
    "cases",
    "pixels",
    "prompts",
    "suite",
    "checkpoint",
    "precision",
    "generation",
    "cache",
    "streamed",
    "load",
)
_DIGITS = 12  # of a digest that are shown
_SAME = "", ""


@attrs.frozen(kw_only=True)
class Difference:
    """
    Something that one target was given, and another was not.

    Attributes:
        what: One of `WHAT`.
        got: What the target had that is compared.
        expected: What the baseline had.
    """

    what: str
    got: str
    expected: str


@attrs.frozen(kw_only=True)
class Matching:
    """
    What two targets were given.

    Attributes:
        differences: What is not the same, in the order of `WHAT`.
        unknown: What nobody told of one of them, or of both.
    """

    differences: tuple[Difference, ...]
    unknown: tuple[str, ...]


def match_inputs(before: RunStart, after: RunStart, *, targets: tuple[str, str]) -> Matching:
    """
    Hold what a target was given against what the baseline was.

    Args:
        before: The run of the baseline.
        after: The run of the other target; it may be the same one.
        targets: The names of the baseline and of the other.

    Raises:
        ContractError: If a run has no target of that name.
    """
    require_kind("before", before, RunStart)
    require_kind("after", after, RunStart)
    first, second = _target(before, targets[0]), _target(after, targets[1])
    pairs = {
        **_inputs(_given(before, first), _given(after, second)),
        "suite": (_digest(before.suite_sha256), _digest(after.suite_sha256)),
        "checkpoint": _checkpoints(first.checkpoint, second.checkpoint),
        "precision": (first.precision, second.precision),
        "generation": _differing(thawed(before.plan.generation), thawed(after.plan.generation)),
        "cache": (before.plan.cache.value, after.plan.cache.value),
        "streamed": (str(before.plan.streamed), str(after.plan.streamed)),
        "load": (str(load_document(before.plan.load)), str(load_document(after.plan.load))),
    }
    known = {
        what: (expected, got)
        for what, (expected, got) in pairs.items()
        if expected is not None and got is not None
    }
    return Matching(
        differences=tuple(
            Difference(what=what, got=known[what][1], expected=known[what][0])
            for what in WHAT
            if what in known and known[what][0] != known[what][1]
        ),
        unknown=tuple(what for what in WHAT if what not in known),
    )


def require_same_inputs(
    before: RunStart,
    after: RunStart,
    *,
    targets: tuple[str, str],
    allowing: Collection[str] = (),
) -> tuple[str, ...]:
    """
    Require two targets to have been given the same.

    Args:
        before: The run of the baseline.
        after: The run of the other target; it may be the same one.
        targets: The names of the baseline and of the other.
        allowing: What was changed on purpose, of `WHAT`. What comes of it is then a factor of that,
            and not of the runtime.

    Returns:
        What nobody told, of one of them or of both, of `WHAT`.

    Raises:
        InputMismatchError: If anything else differs; it says what, and the others do not count.
        ContractError: If a run has no target of that name, or *allowing* names something else.
    """
    allowed = as_tuple(allowing)
    require_kind("allowing", allowed, tuple)
    for what in allowed:
        if what not in WHAT:
            raise ContractError(
                "allowing", f"got {shown(what)}, expected some of {', '.join(WHAT)}"
            )
    matching = match_inputs(before, after, targets=targets)
    for each in matching.differences:
        if each.what not in allowed:
            raise InputMismatchError(each.what, each.got, each.expected)
    return matching.unknown


def _target(start: RunStart, name: str) -> Target:
    named = {target.name: target for target in start.identity.targets}
    if name not in named:
        raise ContractError("targets", f"got {shown(name)}, expected one of {', '.join(named)}")
    return named[name]


def _given(start: RunStart, target: Target) -> dict[str, Input]:
    return {given.case: given for given in start.inputs if given.target == target.name}


def _inputs(before: dict[str, Input], after: dict[str, Input]) -> dict[str, tuple[str, str]]:
    """Compare what was given case by case."""
    common = sorted(before.keys() & after.keys())
    return {
        "cases": _differing(dict.fromkeys(before, "given"), dict.fromkeys(after, "given")),
        "pixels": _first((_pixels(before[case]), _pixels(after[case])) for case in common),
        "prompts": _first((_prompt(before[case]), _prompt(after[case])) for case in common),
    }


def _first(pairs: Iterator[tuple[str, str]]) -> tuple[str, str]:
    return next(((expected, got) for expected, got in pairs if expected != got), _SAME)


def _differing(before: Mapping[str, Any], after: Mapping[str, Any]) -> tuple[str, str]:
    """Tell the first key whose values differ, and on both sides what stands there."""
    for key in sorted(before.keys() | after.keys()):
        if key not in before or key not in after or before[key] != after[key]:
            expected, got = _said(key, before), _said(key, after)
            return (expected, got) if expected != got else (expected, f"{got}, but other beyond")
    return _SAME


def _said(key: str, values: Mapping[str, Any]) -> str:
    return f"{key}: {shown(values[key])}" if key in values else f"no {key}"


def _pixels(given: Input) -> str:
    pictures = (
        f"{each.width_px}x{each.height_px}{f'x{each.frames}' if each.frames > 1 else ''} "
        f"({_digest(each.pixels_sha256)})"
        for each in given.media
    )
    return f"{' + '.join(pictures) or 'none'} in case {given.case!r}"


def _prompt(given: Input) -> str:
    return f"{_digest(given.prompt_sha256)} in case {given.case!r}"


def _digest(sha256: str) -> str:
    return sha256[:_DIGITS]


def _checkpoints(before: Checkpoint, after: Checkpoint) -> tuple[str | None, str | None]:
    """Compare files if both have them, or else revisions; names alone say nothing."""
    if before.files is not None and after.files is not None:
        files = ({each.name: each.sha256 for each in side} for side in (before.files, after.files))
        return _differing(*files)
    if before.revision is not None and after.revision is not None:
        return f"{before.model} {before.revision}", f"{after.model} {after.revision}"
    return None, None
