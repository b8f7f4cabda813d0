"""
Whether a faster target may replace today's: speed, quality and exact output together.

A faster target whose answers got worse is not faster at the task; it is shown as a regression.
"""

from __future__ import annotations

import enum
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import attrs

from vlmcore._arguments import require_kind
from vlmcore._arrays import as_tuple, require_finite_between, require_text
from vlmcore.errors import ContractError
from vlmcore.lab.events import Sample
from vlmcore.lab.gates import (
    Exactness,
    ExactnessFinding,
    Graded,
    Quality,
    QualityFinding,
    are_same_answers,
    judge_exactness,
    judge_quality,
)
from vlmcore.lab.metrics import find_metric, measure, require_measured
from vlmcore.lab.ratios import Comparison, Ratio, Resampling, compare_pairs, compare_with_itself
from vlmcore.lab.statistics import Summary
from vlmcore.lab.totals import summaries

__all__ = ["Judgement", "Rules", "Speed", "SpeedFinding", "Verdict", "judge", "speed_of"]

_WHOLE = frozenset(("e2e/1", "e2e_prepared/1"))  # metrics that longer answers make longer


class Verdict(enum.Enum):
    """What is to be done with a target that was compared with the baseline."""

    WIN = "win"
    REGRESSION = "regression"
    INVALID_OUTPUT = "invalid output"  # however fast: shown as a regression
    INCONCLUSIVE = "inconclusive"


class Speed(enum.Enum):
    """What one metric says."""

    FASTER = "faster"
    SLOWER = "slower"
    INCONCLUSIVE = "inconclusive"
    NOT_COMPARABLE = "not comparable"  # the answers differ, and so does the work


@attrs.frozen(kw_only=True)
class Rules:
    """
    How a verdict is reached, declared before anything is measured.

    Attributes:
        metrics: The names of the formulas that are compared.
        margin: How much faster or slower counts, as 0.02 for 2 %.
        exact: The names of the cases whose answers must be the same, character by character.
        resampling: How intervals are made.

    Raises:
        ContractError: If a field is not as described.
    """

    metrics: tuple[str, ...] = attrs.field(
        default=("ttft/1", "tpot/1", "e2e/1"), converter=as_tuple
    )
    margin: float = 0.02
    exact: tuple[str, ...] = attrs.field(default=(), converter=as_tuple)
    resampling: Resampling = attrs.field(factory=Resampling)

    def __attrs_post_init__(self) -> None:
        for field in ("metrics", "exact"):
            require_kind(field, getattr(self, field), tuple)
        for metric in self.metrics:
            find_metric(metric)
        for i, case in enumerate(self.exact):
            require_text(**{f"exact[{i}]": case})
        if not self.metrics or len(set(self.metrics)) < len(self.metrics):
            raise ContractError("metrics", f"got {self.metrics}, expected each once, and one")
        require_finite_between(0.0, 0.5, margin=self.margin)
        require_kind("resampling", self.resampling, Resampling)


@attrs.frozen(kw_only=True)
class SpeedFinding:
    """
    What one metric says of two targets.

    Attributes:
        metric: The name of its formula.
        speed: Faster, slower, or neither is known.
        comparison: The ratios of after over before, overall and by case. Where answers differ and
            the metric is of whole answers, only of the cases whose answers are the same.
        control: The baseline compared with itself, in the same blocks: what the machine does.
        before: The figures of the baseline in short, by case.
        after: The same of the other target.
        reason: Why, in one line.
    """

    metric: str
    speed: Speed
    comparison: Comparison
    control: Comparison
    before: Mapping[str, Summary] = attrs.field(hash=False)
    after: Mapping[str, Summary] = attrs.field(hash=False)
    reason: str


@attrs.frozen(kw_only=True)
class Judgement:
    """
    Whether a target may replace the baseline, and all that says so.

    Attributes:
        verdict: In one word.
        reasons: Why, one line each.
        speeds: What each metric says, in the order of the rules.
        quality: What became of the quality of each case.
        exactness: Whether the answers are the same, of each case that must be exact.
        rules: How the verdict was reached.
    """

    verdict: Verdict
    reasons: tuple[str, ...]
    speeds: tuple[SpeedFinding, ...]
    quality: tuple[QualityFinding, ...]
    exactness: tuple[ExactnessFinding, ...]
    rules: Rules

    @property
    def is_regression(self) -> bool:
        """Whether it is shown among the regressions, as slower or as worse at the task."""
        return self.verdict in {Verdict.REGRESSION, Verdict.INVALID_OUTPUT}


def judge(
    before: Iterable[Graded],
    after: Iterable[Graded],
    *,
    margins: Mapping[str, float],
    rules: Rules | None = None,
) -> Judgement:
    """
    Judge two targets that were measured in turn, in the blocks of one run.

    Output comes first: a case whose quality was lost, or whose answer differs where it must not,
    is invalid output, however fast. Then a metric that got slower is a regression. A win needs a
    metric that got faster, and every case known to be as good: judged by an evaluator, or the same.

    Args:
        before: The measured answers of the baseline.
        after: Those of the target that may replace it.
        margins: How much worse the quality of each case may be, by its name; every case of the
            suite is here.
        rules: What is compared, and how.

    Raises:
        ContractError: If there are warm-ups among the samples, or cold starts beside others, or an
            answer is of a case without a margin, or the rules name such a case.
    """
    rules = rules or Rules()
    before, after = tuple(before), tuple(after)
    require_kind("margins", margins, Mapping)
    for field, graded in (("before", before), ("after", after)):
        for i, each in enumerate(graded):
            require_kind(f"{field}[{i}]", each, Graded)
    strangers = sorted(set(rules.exact) - set(margins))
    if strangers:
        raise ContractError("rules.exact", f"got {strangers}, expected cases with a margin")
    samples = [each.sample for each in before], [each.sample for each in after]
    require_measured([*samples[0], *samples[1]])
    quality = judge_quality(before, after, margins)
    exactness = judge_exactness(before, after, rules.exact)
    speeds = tuple(_speed(*samples, metric, rules) for metric in rules.metrics)
    verdict, reasons = _verdict(speeds, quality, exactness)
    return Judgement(
        verdict=verdict,
        reasons=reasons,
        speeds=speeds,
        quality=quality,
        exactness=exactness,
        rules=rules,
    )


def speed_of(ratio: Ratio, *, margin: float = 0.02) -> Speed:
    """
    Say what a ratio of times says.

    Faster if even the upper end of the interval is below ``1 - margin``, slower if even the lower
    end is above ``1 + margin``.

    Example:
        >>> speed_of(Ratio(estimate=0.9, low=0.88, high=0.97, blocks=9)).value
        'faster'
        >>> speed_of(Ratio(estimate=0.7, blocks=3, reason="n: 3 blocks")).value
        'inconclusive'
    """
    if ratio.low is None or ratio.high is None:
        return Speed.INCONCLUSIVE
    if ratio.high < 1 - margin:
        return Speed.FASTER
    return Speed.SLOWER if ratio.low > 1 + margin else Speed.INCONCLUSIVE


def _verdict(
    speeds: Sequence[SpeedFinding],
    quality: Sequence[QualityFinding],
    exactness: Sequence[ExactnessFinding],
) -> tuple[Verdict, tuple[str, ...]]:
    same = {each.case for each in exactness if each.exactness is Exactness.EQUAL}
    lost = [each for each in quality if each.quality is Quality.LOST]
    changed = [each for each in exactness if each.exactness is Exactness.DIFFERENT]
    doubted: list[QualityFinding | ExactnessFinding] = [
        *(q for q in quality if q.quality is Quality.UNKNOWN and q.case not in same),
        *(e for e in exactness if e.case not in same),
    ]
    slower = [each for each in speeds if each.speed is Speed.SLOWER]
    faster = [each for each in speeds if each.speed is Speed.FASTER]
    said = tuple(f"{each.metric}: {each.reason}" for each in speeds)
    if lost or changed:
        reasons = *_by_case(lost), *_by_case(changed), *said
        return Verdict.INVALID_OUTPUT, reasons
    if slower:
        return Verdict.REGRESSION, (*said, *_by_case(doubted))
    if doubted:
        return Verdict.INCONCLUSIVE, (*_by_case(doubted), *said)
    return Verdict.WIN if faster else Verdict.INCONCLUSIVE, said


def _by_case(findings: Sequence[QualityFinding | ExactnessFinding]) -> tuple[str, ...]:
    return tuple(f"case {each.case!r}: {each.reason}" for each in findings)


def _speed(
    before: Sequence[Sample], after: Sequence[Sample], metric: str, rules: Rules
) -> SpeedFinding:
    differing = _differing(before, after) if metric in _WHOLE else {}
    comparison = compare_pairs(
        [sample for sample in before if sample.case not in differing],
        [sample for sample in after if sample.case not in differing],
        metric,
        resampling=rules.resampling,
    )
    if differing:
        case, reason = next(iter(differing.items()))
        more = f", and in {len(differing) - 1} more" if len(differing) > 1 else ""
        speed, why = Speed.NOT_COMPARABLE, f"answers differ in case {case!r}{reason}{more}"
    else:
        speed = speed_of(comparison.ratio, margin=rules.margin)
        why = _no_figure([*before, *after], metric) or _why(comparison.ratio, speed)
    return SpeedFinding(
        metric=metric,
        speed=speed,
        comparison=comparison,
        control=compare_with_itself(before, metric, resampling=rules.resampling),
        before=summaries(before, metric),
        after=summaries(after, metric),
        reason=why,
    )


def _why(ratio: Ratio, speed: Speed) -> str:
    if ratio.estimate is None:
        return f"inconclusive: {ratio.reason}"
    if ratio.low is None or ratio.high is None:
        return f"inconclusive ({ratio.reason}), time x {ratio.estimate:.3f}"
    between = f"{ratio.low:.3f} to {ratio.high:.3f}"
    return f"{speed.value}, time x {ratio.estimate:.3f} ({between})"


def _no_figure(samples: Sequence[Sample], metric: str) -> str:
    """Say why no sample has the figure; empty if some have."""
    reasons = Counter(measure(sample, metric).reason for sample in samples)
    if not reasons or "" in reasons:
        return ""
    return f"inconclusive: {reasons.most_common(1)[0][0]}"


def _differing(before: Sequence[Sample], after: Sequence[Sample]) -> dict[str, str]:
    """Find the cases whose answers differ, and tell how many tokens they have."""
    sides: tuple[dict[str, list[Sample]], dict[str, list[Sample]]] = ({}, {})
    for found, samples in zip(sides, (before, after), strict=True):
        for sample in samples:
            if not sample.excluded:
                found.setdefault(sample.case, []).append(sample)
    cases = sorted(sides[0].keys() & sides[1].keys())
    return {
        case: f": {_tokens(sides[0][case])} before, {_tokens(sides[1][case])} after"
        for case in cases
        if not are_same_answers(sides[0][case], sides[1][case])
    }


def _tokens(samples: Sequence[Sample]) -> str:
    counts = {sample.generated_tokens for sample in samples}
    known = sorted(count for count in counts if count is not None)
    if not known or None in counts:
        return "an unknown number of tokens"
    return f"{known[0]} tokens" if len(known) == 1 else f"{known[0]} to {known[-1]} tokens"
