"""What stands on the page of a report, in words and in places on its charts."""

from __future__ import annotations

import attrs

__all__ = ["CaseFigures", "Interval", "RunFigures", "Shown", "Swept", "TargetFigures"]


@attrs.frozen(kw_only=True)
class Shown:
    """
    One figure of one case, in words.

    Attributes:
        title: What it is.
        middle: The median with its interval, or the range where there are too few.
        high: The 95th percentile, or why there is none.
    """

    title: str
    middle: str
    high: str


@attrs.frozen(kw_only=True)
class CaseFigures:
    """
    One case of one target.

    Attributes:
        case: Its name.
        requests: How many were measured.
        failed: How many of them failed.
        quality: The mean score, 0 to 1; ``None`` if nobody judged.
        tokens: How many tokens answers had, in words.
        memory: The most memory, in words.
        times: Its times.
        answers: How many different answers there were.
    """

    case: str
    requests: int
    failed: int
    quality: float | None
    tokens: str
    memory: str
    times: tuple[Shown, ...]
    answers: int


@attrs.frozen(kw_only=True)
class TargetFigures:
    """
    One target of a run.

    Attributes:
        name: Its name.
        facts: What it is: a title and a value for each fact.
        tokens_per_s: The pooled rate, in words.
        cache: What is known of prompts that were kept, in words.
        goodput: How many requests kept the goals of the plan, in words; empty without goals.
        cases: Its cases, in the order of the suite.
    """

    name: str
    facts: tuple[tuple[str, str], ...]
    tokens_per_s: str
    cache: str
    goodput: str
    cases: tuple[CaseFigures, ...]


@attrs.frozen(kw_only=True)
class Interval:
    """
    A ratio of times for a chart whose width is 1, with 1.0 in its middle, on a logarithmic axis.

    Attributes:
        title: What is compared.
        words: The ratio in words.
        speed: What it says: faster, slower, inconclusive, not comparable.
        middle: Where the estimate is, 0 to 1; ``None`` if there is none.
        low: Where the interval begins.
        high: Where it ends.
        control: Where the baseline against itself is.
    """

    title: str
    words: str
    speed: str
    middle: float | None
    low: float | None
    high: float | None
    control: float | None


@attrs.frozen(kw_only=True)
class RunFigures:
    """
    One run.

    Attributes:
        name: The name of its file.
        sha256: Its digest.
        suite: The name of its suite.
        created_at: When it began.
        ended: How it ended.
        badge: ``"verified"``, or ``"as it was written"`` where something is unknown.
        unknown: What is not known, and why.
        host: The machine, in words.
        plan: What was to be done, in words.
        targets: Its targets.
        verdict: What became of the comparison; empty for a run of one target.
        kind: ``"win"``, ``"regression"``, ``"open"`` or ``"single"``.
        reasons: Why.
        changed: What differs between the two targets: a title, and both values.
        intervals: The ratios of times.
        fidelity: Of each case: its name, and whether the answers are the same.
    """

    name: str
    sha256: str
    suite: str
    created_at: str
    ended: str
    badge: str
    unknown: tuple[tuple[str, str], ...]
    host: str
    plan: str
    targets: tuple[TargetFigures, ...]
    verdict: str = ""
    kind: str = "single"
    reasons: tuple[str, ...] = ()
    changed: tuple[tuple[str, str, str], ...] = ()
    intervals: tuple[Interval, ...] = ()
    fidelity: tuple[tuple[str, str], ...] = ()


@attrs.frozen(kw_only=True)
class Swept:
    """
    Runs of one target that differ in nothing but their loads.

    Attributes:
        title: The suite and the target.
        metrics: The formulas whose times are compared.
        rows: Of each load: the words of each column.
    """

    title: str
    metrics: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
