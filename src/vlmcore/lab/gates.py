"""
Whether answers stayed good, and whether they stayed the same: two findings, never one.

Both are made case by case. An average over cases hides the one that broke.
"""

from __future__ import annotations

import enum
import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence

import attrs

from vlmcore._arguments import require_kind, shown
from vlmcore._arrays import as_tuple, plain_float, require_finite_between
from vlmcore.errors import ContractError
from vlmcore.lab.events import Sample

__all__ = [
    "Exactness",
    "ExactnessFinding",
    "Graded",
    "Quality",
    "QualityFinding",
    "are_same_answers",
    "judge_exactness",
    "judge_quality",
]

_SLACK = 1e-9  # 0.8 - 0.1 is a little more than 0.7


@attrs.frozen(kw_only=True)
class Graded:
    """
    A sample, and how good its answer was.

    Attributes:
        sample: What was measured.
        quality: From 0 to 1; ``None`` if nobody judged it. Of a request that failed it is taken
            for 0, whatever came of it.

    Raises:
        ContractError: If a field is not as described.
    """

    sample: Sample
    quality: float | None = attrs.field(default=None, converter=plain_float)

    def __attrs_post_init__(self) -> None:
        require_kind("sample", self.sample, Sample)
        if self.quality is not None:
            require_finite_between(0.0, 1.0, quality=self.quality)


class Quality(enum.Enum):
    """What became of the quality of a case."""

    KEPT = "kept"  # as good as before, but for the margin
    LOST = "lost"
    UNKNOWN = "unknown"  # nobody judged the answers of one side


class Exactness(enum.Enum):
    """Whether the answers to a case are the same, character by character."""

    EQUAL = "equal"
    DIFFERENT = "different"
    NONDETERMINISTIC = "nondeterministic"  # a target does not even agree with itself
    UNKNOWN = "unknown"  # too few answers to know whether a target agrees with itself


@attrs.frozen(kw_only=True)
class QualityFinding:
    """
    The quality of one case before and after.

    Attributes:
        case: Its name.
        quality: What became of it.
        before: The mean of the baseline; ``None`` if unknown.
        after: The mean of the other target.
        margin: How much worse it may be.
        reason: Why, in one line.
    """

    case: str
    quality: Quality
    before: float | None
    after: float | None
    margin: float
    reason: str


@attrs.frozen(kw_only=True)
class ExactnessFinding:
    """
    Whether the answers to one case are the same.

    Attributes:
        case: Its name.
        exactness: What was found.
        before: The SHA-256 of each different answer of the baseline, most frequent first.
        after: The same of the other target.
        reason: Why, in one line.
    """

    case: str
    exactness: Exactness
    before: tuple[str, ...]
    after: tuple[str, ...]
    reason: str


def judge_quality(
    before: Iterable[Graded], after: Iterable[Graded], margins: Mapping[str, float]
) -> tuple[QualityFinding, ...]:
    """
    Hold the quality of each case against that of the baseline, less its margin.

    Args:
        before: The answers of the baseline.
        after: Those of the other target.
        margins: How much worse the mean of each case may be, from 0 to 1, by its name: every case
            of the suite is here.

    Returns:
        One finding for each case, in the order of *margins*.

    Raises:
        ContractError: If a margin is not a number from 0 to 1, or an answer is of another case.

    Example:
        >>> sample = Sample(case="dog", target="mine", request_ns=0, closed_ns=1)
        >>> good, bad = Graded(sample=sample, quality=1.0), Graded(sample=sample, quality=0.0)
        >>> judge_quality([good], [bad], {"dog": 0.1})[0].reason
        'quality 0 after 1, expected at least 0.9'
    """
    for case, margin in margins.items():
        require_finite_between(0.0, 1.0, **{f"margins[{case!r}]": margin})
    first, second = _by_case(before, margins), _by_case(after, margins)
    return tuple(
        _quality(case, first[case], second[case], margin) for case, margin in margins.items()
    )


def _quality(
    case: str, before: Sequence[Graded], after: Sequence[Graded], margin: float
) -> QualityFinding:
    means = _mean(before), _mean(after)
    if means[0] is None or means[1] is None:
        side = "before" if means[0] is None else "after"
        count = len(before if means[0] is None else after)
        said = "answers that nobody judged" if count else "no answers"
        quality, reason = Quality.UNKNOWN, f"{said} {side}"
    elif means[1] >= means[0] - margin - _SLACK:
        quality, reason = Quality.KEPT, f"quality {means[1]:g} after {means[0]:g}"
    else:
        least = means[0] - margin
        quality = Quality.LOST
        reason = f"quality {means[1]:g} after {means[0]:g}, expected at least {least:g}"
    return QualityFinding(
        case=case,
        quality=quality,
        before=means[0],
        after=means[1],
        margin=margin,
        reason=reason,
    )


def _mean(graded: Sequence[Graded]) -> float | None:
    values = [0.0 if each.sample.failure is not None else each.quality for each in graded]
    known = [value for value in values if value is not None]
    return math.fsum(known) / len(known) if known and len(known) == len(values) else None


def judge_exactness(
    before: Iterable[Graded], after: Iterable[Graded], cases: Collection[str]
) -> tuple[ExactnessFinding, ...]:
    """
    Compare the answers to some cases, character by character.

    A target that does not always answer the same gives no reference: that is found first, and needs
    two answers or more of each side. Requests that failed have no answer.

    Args:
        before: The answers of the baseline, to these cases or more.
        after: Those of the other target.
        cases: The names of the cases.

    Returns:
        One finding for each of the cases, in their order.

    Raises:
        ContractError: If *cases* is a single text.
    """
    wanted = as_tuple(cases)
    require_kind("cases", wanted, tuple)
    first, second = _digests(before, wanted), _digests(after, wanted)
    return tuple(_exactness(case, first[case], second[case]) for case in wanted)


def _digests(graded: Iterable[Graded], cases: tuple[str, ...]) -> Mapping[str, Counter[str]]:
    """Count the answers to each case by their digests."""
    found: dict[str, Counter[str]] = {case: Counter() for case in cases}
    for sample in (each.sample for each in graded):
        if sample.case in found and sample.failure is None:
            found[sample.case][sample.text_sha256] += 1
    return found


def _exactness(case: str, before: Counter[str], after: Counter[str]) -> ExactnessFinding:
    answers = [("before", before), ("after", after)]
    varying = [(side, counts) for side, counts in answers if len(counts) > 1]
    if varying:
        side, counts = varying[0]
        found = Exactness.NONDETERMINISTIC
        reason = f"{len(counts)} different answers in {counts.total()} {side}"
    elif min(before.total(), after.total()) < 2:
        found = Exactness.UNKNOWN
        reason = (
            f"answers: {before.total()} before and {after.total()} after, and two of each are "
            "needed to know whether a target agrees with itself"
        )
    elif before.keys() == after.keys():
        found, reason = Exactness.EQUAL, "one answer, the same before and after"
    else:
        found, reason = Exactness.DIFFERENT, "one answer before, and another one after"
    return ExactnessFinding(
        case=case,
        exactness=found,
        before=_by_frequency(before),
        after=_by_frequency(after),
        reason=reason,
    )


def _by_frequency(counts: Counter[str]) -> tuple[str, ...]:
    return tuple(sorted(counts, key=lambda digest: (-counts[digest], digest)))


def are_same_answers(before: Iterable[Sample], after: Iterable[Sample]) -> bool:
    """Say whether all samples have one answer, the reasoning too: only so is the work the same."""
    return len({(sample.text, sample.reasoning) for sample in (*before, *after)}) <= 1


def _by_case(graded: Iterable[Graded], cases: Collection[str]) -> Mapping[str, list[Graded]]:
    found: dict[str, list[Graded]] = {case: [] for case in cases}
    for each in graded:
        if each.sample.case not in found:
            raise ContractError(
                "margins", f"got none for {shown(each.sample.case)}, expected one of every case"
            )
        found[each.sample.case].append(each)
    return found
