"""What a run of the lab came to, in lines for people and values for programs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from vlmcore.lab.artifacts import Artifact, ScoredSample
from vlmcore.lab.comparing import Compared
from vlmcore.lab.events import Sample
from vlmcore.lab.statistics import Quantile, Summary
from vlmcore.lab.totals import (
    Goodput,
    Objective,
    goodput,
    goodput_words,
    objectives_of,
    summaries,
    total,
)

__all__ = [
    "artifact_figures",
    "comparison_lines",
    "figure_lines",
    "goodput_figures",
    "goodput_words",
    "mean_quality",
]

_SHOWN = ("ttft/1", "tpot/1", "e2e/1", "prepare/1")


def mean_quality(samples: Sequence[ScoredSample]) -> dict[str, float | None]:
    """Return the mean score of each case; a request that failed counts 0."""
    scores: dict[str, list[float]] = {}
    for each in samples:
        if each.score is not None or each.sample.failure is not None:
            value = 0.0 if each.score is None else each.score.value
            scores.setdefault(each.sample.case, []).append(value)
    cases = dict.fromkeys(each.sample.case for each in samples)
    return {
        case: sum(scores[case]) / len(scores[case]) if case in scores else None for case in cases
    }


def artifact_figures(artifact: Artifact) -> list[dict[str, Any]]:
    """Make figures of each target and case of a run, as plain values of JSON."""
    made, cases = [], [case["name"] for case in artifact.start.suite["cases"]]
    goals = objectives_of(artifact.start.plan.goals)
    for target in artifact.start.identity.targets:
        scored = [each for each in artifact.samples if each.sample.target == target.name]
        samples = [each.sample for each in scored]
        quality = mean_quality(scored)
        of_metrics = {metric: summaries(samples, metric) for metric in _SHOWN}
        whole = total(samples)
        made.append(
            {
                "target": target.name,
                "requests": whole.requests,
                "failures": {kind.value: count for kind, count in whole.failures.items()},
                "tokens_per_s": whole.token_rate.value,
                "requests_per_s": whole.request_rate.value,
                "prompt_cache": whole.cache.value,
                "goodput": goodput_figures(goodput(samples, goals) if goals else None, goals),
                "cases": {
                    case: {
                        "quality": quality[case],
                        **{
                            metric: _figures(found[case])
                            for metric, found in of_metrics.items()
                            if case in found
                        },
                    }
                    for case in cases
                    if case in quality
                },
            }
        )
    return made


def goodput_figures(good: Goodput | None, goals: Sequence[Objective]) -> dict[str, Any] | None:
    """Make figures of the requests that kept all goals; ``None`` where there are none."""
    if good is None:
        return None
    return {
        "goals": {each.metric: each.bound for each in goals},
        "good": good.good,
        "requests": good.requests,
        "requests_per_s": good.rate.value,
        "missed": {each.metric: count for each, count in zip(goals, good.missed, strict=True)},
    }


def _figures(summary: Summary) -> dict[str, Any]:
    return {
        "count": summary.count,
        "smallest": summary.smallest,
        "largest": summary.largest,
        **{f"p{100 * each.q:g}": _quantile(each) for each in summary.quantiles},
    }


def _quantile(found: Quantile) -> dict[str, Any]:
    return {"value": found.value, "low": found.low, "high": found.high, "reason": found.reason}


def figure_lines(artifact: Artifact) -> Iterator[str]:
    """Write the figures of a run: a line for each case, times in milliseconds."""
    for figures in artifact_figures(artifact):
        failed = sum(figures["failures"].values())
        yield f"{figures['target']}: {figures['requests']} requests, {failed} failed"
        for case, found in figures["cases"].items():
            quality = found["quality"]
            said = "not judged" if quality is None else f"quality {quality:.2f}"
            times = [
                f"{metric.partition('/')[0]} {_time(found[metric])}"
                for metric in _SHOWN
                if metric in found
            ]
            yield f"  {case}: {said}, {', '.join(times)}"
        rate = figures["tokens_per_s"]
        yield f"  tokens a second, pooled: {'unknown' if rate is None else f'{rate:.1f}'}"
        if figures["goodput"] is not None:
            goals = objectives_of(artifact.start.plan.goals)
            samples = [s.sample for s in artifact.samples if s.sample.target == figures["target"]]
            yield f"  {goodput_words(goodput(samples, goals), goals)}"
        if figures["prompt_cache"] == "unknown":
            yield "  cache state unknown: nobody told how many tokens of the prompts were kept"


def _time(figures: dict[str, Any]) -> str:
    if not figures["count"]:
        return "none"
    middle = figures["p50"]
    if middle["value"] is None:
        return f"{figures['smallest']:.1f} to {figures['largest']:.1f} ms"
    return f"{middle['value']:.1f} ms ({figures['smallest']:.1f} to {figures['largest']:.1f})"


def comparison_lines(compared: Compared, samples: Sequence[Sample]) -> Iterator[str]:
    """Write a verdict, and what says so."""
    judgement = compared.judgement
    yield f"{judgement.verdict.value}: {compared.targets[1]} against {compared.targets[0]}"
    for reason in judgement.reasons:
        yield f"  {reason}"
    for each in judgement.speeds:
        control = each.control.ratio
        if control.estimate is not None:
            yield f"  {each.metric}, baseline against itself: time x {control.estimate:.3f}"
    if compared.allowed:
        yield f"  changed on purpose: {', '.join(compared.allowed)}"
    if compared.not_told:
        yield f"  not known to be the same: {', '.join(compared.not_told)}"
    yield f"  {len(samples)} requests measured"
