"""What a report shows of runs: figures, intervals, and what is not known, without a page."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import attrs

from vlmcore.errors import ContractError, InputMismatchError
from vlmcore.lab.artifacts import Artifact, ScoredSample
from vlmcore.lab.comparing import Compared, compare_targets
from vlmcore.lab.events import Sample
from vlmcore.lab.gates import are_same_answers
from vlmcore.lab.loads import load_words
from vlmcore.lab.ratios import Ratio
from vlmcore.lab.report_contents import (
    CaseFigures,
    Interval,
    RunFigures,
    Shown,
    TargetFigures,
)
from vlmcore.lab.run_plans import RunPlan
from vlmcore.lab.statistics import Quantile
from vlmcore.lab.totals import (
    CacheState,
    goodput,
    goodput_words,
    objectives_of,
    summaries,
    total,
)
from vlmcore.lab.verdicts import Verdict
from vlmcore.lab.verifying import Verification

__all__ = ["figures_of"]

_TIMES = (
    ("ttft/1", "first token"),
    ("tpot/1", "per token after it"),
    ("e2e/1", "last token"),
    ("prepare/1", "input work"),
    ("ttft_prepared/1", "runtime work until the first token"),
)
_EDGE = "longest edge px"  # as facts of targets are shown
_SPAN = math.log2(8)  # the chart of ratios reaches from an eighth to eight times


def figures_of(verified: Verification) -> RunFigures:
    """
    Make the figures of a run that was verified.

    Raises:
        ArtifactTamperedError: If it is not what was written.
    """
    artifact = verified.require_sound()
    start, host = artifact.start, artifact.start.identity.host
    targets = tuple(_target(artifact, target.name) for target in start.identity.targets)
    run = RunFigures(
        name=verified.name,
        sha256=verified.sha256,
        suite=str(start.suite["name"]),
        created_at=start.created_at,
        ended=artifact.ended.value + (f": {artifact.reason}" if artifact.reason else ""),
        badge="verified" if verified.is_verified else "as it was written",
        unknown=tuple(artifact.unknown.items()),
        host=", ".join(
            str(each) for each in (host.processor, f"{host.cores} cores", host.system) if each
        ),
        plan=_plan_words(start.plan),
        targets=targets,
    )
    return run if len(targets) != 2 else _compared(run, artifact)


def _plan_words(plan: RunPlan) -> str:
    generation = ", ".join(f"{key} {value}" for key, value in plan.generation.items())
    return (
        f"{plan.runs_per_case} runs of each case after {plan.warm_ups_per_case} to warm up; "
        f"{load_words(plan.load)}; cache {plan.cache.value}; {generation}"
    )


def _compared(run: RunFigures, artifact: Artifact) -> RunFigures:
    first, second = (target.name for target in run.targets)
    changed = tuple(_changes(run.targets[0], run.targets[1]))
    # Pictures that one target was shown smaller were declared so; other pixels are a mistake.
    meant = ["pixels"] if any(fact == _EDGE for fact, _, _ in changed) else []
    try:
        compared = compare_targets(artifact, targets=(first, second), allowing=meant)
    except (InputMismatchError, ContractError) as error:
        return attrs.evolve(
            run, verdict="not comparable", kind="open", reasons=(str(error),), changed=changed
        )
    judgement = compared.judgement
    kinds = {
        Verdict.WIN: "win",
        Verdict.REGRESSION: "regression",
        Verdict.INVALID_OUTPUT: "regression",
    }
    return attrs.evolve(
        run,
        verdict=f"{judgement.verdict.value}: {second} against {first}",
        kind=kinds.get(judgement.verdict, "open"),
        reasons=judgement.reasons,
        changed=changed,
        intervals=tuple(_intervals(compared)),
        fidelity=tuple(_fidelity(artifact, first, second)),
    )


def _changes(before: TargetFigures, after: TargetFigures) -> list[tuple[str, str, str]]:
    old, new = dict(before.facts), dict(after.facts)
    return [
        (title, old.get(title, "none"), new.get(title, "none"))
        for title in dict.fromkeys((*old, *new))
        if old.get(title) != new.get(title)
    ]


def _intervals(compared: Compared) -> list[Interval]:
    return [
        Interval(
            title=finding.metric,
            words=_ratio_words(finding.comparison.ratio),
            speed=finding.speed.value,
            middle=_place(finding.comparison.ratio.estimate),
            low=_place(finding.comparison.ratio.low),
            high=_place(finding.comparison.ratio.high),
            control=_place(finding.control.ratio.estimate),
        )
        for finding in compared.judgement.speeds
    ]


def _ratio_words(ratio: Ratio) -> str:
    if ratio.estimate is None:
        return ratio.reason
    if ratio.low is None or ratio.high is None:
        return f"x {ratio.estimate:.3f} ({ratio.reason})"
    return f"x {ratio.estimate:.3f} ({ratio.low:.3f} to {ratio.high:.3f})"


def _place(ratio: float | None) -> float | None:
    """Place a ratio on the axis of a chart, from 0 to 1."""
    if ratio is None:
        return None
    return min(1.0, max(0.0, 0.5 + math.log2(max(ratio, 1e-9)) / (2 * _SPAN)))


def _fidelity(artifact: Artifact, first: str, second: str) -> list[tuple[str, str]]:
    said = []
    for case in artifact.start.suite["cases"]:
        sides = [
            [
                each.sample
                for each in artifact.samples
                if (each.sample.target, each.sample.case) == (name, case["name"])
                and not each.sample.excluded
            ]
            for name in (first, second)
        ]
        if not all(sides):
            said.append((case["name"], "no answers of one target"))
        elif are_same_answers(*sides):
            said.append((case["name"], "the same, character by character"))
        else:
            said.append((case["name"], "different"))
    return said


def _target(artifact: Artifact, name: str) -> TargetFigures:
    target = next(each for each in artifact.start.identity.targets if each.name == name)
    scored = [each for each in artifact.samples if each.sample.target == name]
    whole = total([each.sample for each in scored])
    facts = {
        "model": target.checkpoint.model,
        "revision": target.checkpoint.revision,
        "precision": target.precision,
        "server": None if target.server is None else target.server.address,
        "server version": None if target.server is None else target.server.version,
        **dict(_flat(target.options)),
    }
    rate, goals = whole.token_rate, objectives_of(artifact.start.plan.goals)
    good = goodput([each.sample for each in scored], goals) if goals else None
    cases = [str(case["name"]) for case in artifact.start.suite["cases"]]
    return TargetFigures(
        name=name,
        facts=tuple((title, str(value)) for title, value in facts.items() if value is not None),
        tokens_per_s=rate.reason if rate.value is None else f"{rate.value:.1f}",
        cache=(
            "cache state unknown"
            if whole.cache is CacheState.UNKNOWN
            else f"kept prompts: {whole.cache.value}"
        ),
        goodput="" if good is None else goodput_words(good, goals),
        cases=tuple(
            _case(case, [each for each in scored if each.sample.case == case]) for case in cases
        ),
    )


def _flat(options: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for key, value in options.items():
        if isinstance(value, Mapping):
            yield from _flat(value)
        else:
            yield key.replace("_", " "), value


def _case(case: str, scored: Sequence[ScoredSample]) -> CaseFigures:
    samples = [each.sample for each in scored]
    counted = [each for each in samples if not each.excluded]
    scores = [
        0.0 if each.score is None else each.score.value
        for each in scored
        if each.score is not None or each.sample.failure is not None
    ]
    tokens = sorted({each.generated_tokens for each in counted if each.generated_tokens})
    memory = [each.peak_memory_bytes for each in counted if each.peak_memory_bytes is not None]
    return CaseFigures(
        case=case,
        requests=len(samples),
        failed=sum(each.failure is not None for each in samples),
        quality=sum(scores) / len(scores) if scores else None,
        tokens=_range(tokens) if tokens else "not told",
        memory=f"{math.ldexp(max(memory), -30):.2f} GiB" if memory else "not measured",
        times=tuple(_shown(case, title, samples, metric) for metric, title in _TIMES),
        answers=len({each.text_sha256 for each in counted}),
    )


def _range(values: Sequence[int]) -> str:
    return str(values[0]) if len(values) == 1 else f"{values[0]} to {values[-1]}"


def _shown(case: str, title: str, samples: Sequence[Sample], metric: str) -> Shown:
    found = summaries(samples, metric).get(case)
    if found is None or not found.count or found.smallest is None or found.largest is None:
        return Shown(title=title, middle="not known", high="not known")
    quantiles = {quantile.q: quantile for quantile in found.quantiles}
    spread = f"{found.smallest:.1f} to {found.largest:.1f} ms"
    return Shown(
        title=title,
        middle=_quantile(quantiles.get(0.5)) or f"{spread}, of {found.count}",
        high=_quantile(quantiles.get(0.95)) or f"not at n = {found.count}",
    )


def _quantile(found: Quantile | None) -> str:
    if found is None or found.value is None:
        return ""
    if found.low is None or found.high is None:
        return f"{found.value:.1f} ms"
    return f"{found.value:.1f} ms ({found.low:.1f} to {found.high:.1f})"
