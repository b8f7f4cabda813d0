"""Two targets held against each other: were they given the same, and who won."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import attrs

from vlmcore.errors import ContractError
from vlmcore.lab.artifacts import Artifact, ScoredSample
from vlmcore.lab.gates import Graded
from vlmcore.lab.matching import require_same_inputs
from vlmcore.lab.ratios import Comparison, Ratio
from vlmcore.lab.verdicts import Judgement, Rules, SpeedFinding, judge

__all__ = ["Compared", "compare_runs", "compare_targets", "compared_document"]


@attrs.frozen(kw_only=True)
class Compared:
    """
    What one run says of two of its targets, or two runs of a target each.

    Attributes:
        targets: The names of the baseline and of the other.
        judgement: The verdict, and all that says so.
        not_told: What nobody told of one of them, of `vlmcore.lab.matching.WHAT`.
        allowed: What was changed on purpose, of the same.
    """

    targets: tuple[str, str]
    judgement: Judgement
    not_told: tuple[str, ...]
    allowed: tuple[str, ...]


def compare_targets(
    artifact: Artifact,
    *,
    targets: tuple[str, str],
    rules: Rules | None = None,
    allowing: Collection[str] = (),
) -> Compared:
    """
    Judge two targets that were asked in turn in one run.

    Args:
        artifact: The evidence, verified.
        targets: The names of the baseline and of the one that may replace it.
        rules: How the verdict is reached.
        allowing: What was changed on purpose, of `vlmcore.lab.matching.WHAT`.

    Raises:
        InputMismatchError: If they were given different things that are not in *allowing*.
        ContractError: If the run has no such target, or an argument is not as described.
    """
    return _compared(artifact, artifact, targets=targets, rules=rules, allowing=allowing)


def compare_runs(
    before: Artifact,
    after: Artifact,
    *,
    targets: tuple[str, str],
    rules: Rules | None = None,
    allowing: Collection[str] = (),
) -> Compared:
    """
    Judge the answers of a target that was measured in a run of its own.

    What was measured in two runs was not measured in turn, and none of it is paired: no metric is
    faster or slower by it. Answers that got worse, or changed where they must not, are found.

    Args:
        before: The evidence of the baseline, verified.
        after: That of the one that may replace it.
        targets: Their names, each in its run.
        rules: How the verdict is reached.
        allowing: What was changed on purpose, of `vlmcore.lab.matching.WHAT`.

    Raises:
        InputMismatchError: If they were given different things that are not in *allowing*.
        ContractError: If a run has no such target, or an argument is not as described.
    """
    beyond = 1 + max((each.sample.block for each in before.samples), default=0)
    moved = [
        attrs.evolve(each, sample=attrs.evolve(each.sample, block=each.sample.block + beyond))
        for each in after.samples
    ]
    apart = attrs.evolve(after, samples=moved)
    return _compared(before, apart, targets=targets, rules=rules, allowing=allowing)


def _compared(
    before: Artifact,
    after: Artifact,
    *,
    targets: tuple[str, str],
    rules: Rules | None,
    allowing: Collection[str],
) -> Compared:
    not_told = require_same_inputs(before.start, after.start, targets=targets, allowing=allowing)
    margins = {case["name"]: case.get("margin", 0.0) for case in before.start.suite["cases"]}
    graded = _graded(before.samples, targets[0]), _graded(after.samples, targets[1])
    if not all(graded):
        raise ContractError("artifact", "has no measured request of one of the two targets")
    return Compared(
        targets=targets,
        judgement=judge(*graded, margins=margins, rules=rules),
        not_told=not_told,
        allowed=tuple(allowing),
    )


def compared_document(compared: Compared) -> dict[str, Any]:
    """Write what a run says of two targets as plain values of JSON, for programs."""
    judgement = compared.judgement
    return {
        "baseline": compared.targets[0],
        "candidate": compared.targets[1],
        "verdict": judgement.verdict.value,
        "is_regression": judgement.is_regression,
        "reasons": list(judgement.reasons),
        "not_told": list(compared.not_told),
        "allowed": list(compared.allowed),
        "margin": judgement.rules.margin,
        "resampling": attrs.asdict(judgement.rules.resampling),
        "speeds": [_speed(each) for each in judgement.speeds],
        "quality": [
            {"case": each.case, "quality": each.quality.value, "reason": each.reason}
            for each in judgement.quality
        ],
        "exactness": [
            {"case": each.case, "exactness": each.exactness.value, "reason": each.reason}
            for each in judgement.exactness
        ],
    }


def _graded(scored: Sequence[ScoredSample], target: str) -> list[Graded]:
    return [
        Graded(sample=each.sample, quality=None if each.score is None else each.score.value)
        for each in scored
        if each.sample.target == target
    ]


def _speed(finding: SpeedFinding) -> dict[str, Any]:
    return {
        "metric": finding.metric,
        "speed": finding.speed.value,
        "reason": finding.reason,
        "ratio": _ratio(finding.comparison.ratio),
        "by_case": _by_case(finding.comparison),
        "control": _ratio(finding.control.ratio),
    }


def _by_case(comparison: Comparison) -> dict[str, Any]:
    return {case: _ratio(ratio) for case, ratio in comparison.cases.items()}


def _ratio(ratio: Ratio) -> dict[str, Any]:
    return attrs.asdict(ratio)
