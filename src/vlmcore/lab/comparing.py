"""Two targets of one run, held against each other: were they given the same, and who won."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import attrs

from vlmcore.errors import ContractError
from vlmcore.lab.artifacts import Artifact, ScoredSample
from vlmcore.lab.gates import Graded
from vlmcore.lab.matching import require_same_inputs
from vlmcore.lab.ratios import Comparison, Ratio
from vlmcore.lab.verdicts import Judgement, Rules, SpeedFinding, judge

__all__ = ["Compared", "compare_targets", "compared_document"]


@attrs.frozen(kw_only=True)
class Compared:
    """
    What a run says of two of its targets.

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
    not_told = require_same_inputs(
        artifact.start, artifact.start, targets=targets, allowing=allowing
    )
    margins = {case["name"]: case.get("margin", 0.0) for case in artifact.start.suite["cases"]}
    before, after = (
        [_graded(scored) for scored in artifact.samples if scored.sample.target == name]
        for name in targets
    )
    if not before or not after:
        raise ContractError("artifact", "has no measured request of one of the two targets")
    return Compared(
        targets=targets,
        judgement=judge(before, after, margins=margins, rules=rules),
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


def _graded(scored: ScoredSample) -> Graded:
    quality = None if scored.score is None else scored.score.value
    return Graded(sample=scored.sample, quality=quality)


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
