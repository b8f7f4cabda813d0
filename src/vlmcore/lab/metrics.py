"""
Figures of one request, each by a formula that has a name and a version.

The same words mean different things elsewhere, so a figure always carries the name of its formula,
and a formula never changes under its name: ``ttft/1`` will be what it is now. What cannot be known
is ``None``, with the reason; nothing is estimated.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from types import MappingProxyType

import attrs

from vlmcore._arguments import require_kind, shown
from vlmcore.errors import ContractError
from vlmcore.lab.events import Phase, Sample

__all__ = [
    "METRICS",
    "Metric",
    "Reading",
    "find_metric",
    "measure",
    "require_measured",
    "token_gaps_ms",
]

_NS_IN_MS = 1e6
_NS_IN_S = 1e9


@attrs.frozen
class Reading:
    """
    A figure, or why there is none.

    Attributes:
        value: The figure; ``None`` if there is none.
        reason: Why there is none; empty if there is one.
    """

    value: float | None
    reason: str = ""


@attrs.frozen(kw_only=True)
class Metric:
    """
    A formula for a figure of one request.

    Attributes:
        name: Its name and version, as ``"ttft/1"``.
        title: What the figure is, in a few words.
        unit: ``"ms"`` or ``"tok/s"``.
        is_time: Whether less is better.
        formula: Makes the figure of a sample that counts; ask `measure`, which knows which do.
    """

    name: str
    title: str
    unit: str = "ms"
    is_time: bool = True
    formula: Callable[[Sample], Reading] = attrs.field(repr=False)


def measure(sample: Sample, metric: str) -> Reading:
    """
    Make one figure of one sample.

    Args:
        sample: What was measured.
        metric: The name and version of a formula of `METRICS`.

    Returns:
        The figure. There is none of a sample that failed, was asked more than once, or has no
        token: see `vlmcore.lab.events.Sample.excluded`.

    Raises:
        ContractError: If there is no such formula.

    Example:
        >>> from vlmcore.lab.events import Chunk, TokenSource, Usage
        >>> sample = Sample(
        ...     case="dog", target="mine", request_ns=0, closed_ns=200_000_000,
        ...     chunks=[
        ...         Chunk(at_ns=37_500_000, characters=4), Chunk(at_ns=190_500_000, characters=9)
        ...     ],
        ...     usage=Usage(source=TokenSource.SERVER, generated_tokens=31),
        ... )
        >>> measure(sample, "ttft/1").value, measure(sample, "tpot/1").value
        (37.5, 5.1)
        >>> measure(sample, "prepare/1").reason
        'not known when it was prepared'
    """
    require_kind("sample", sample, Sample)
    formula = find_metric(metric).formula
    return Reading(None, sample.excluded) if sample.excluded else formula(sample)


def find_metric(name: str) -> Metric:
    """
    Find a formula by its name and version.

    Raises:
        ContractError: If there is none of that name.
    """
    if isinstance(name, str) and name in METRICS:
        return METRICS[name]
    near = difflib.get_close_matches(name, METRICS, n=1) if isinstance(name, str) else []
    hint = f"; did you mean {near[0]!r}?" if near else ""
    raise ContractError("metric", f"got {shown(name)}, expected one of {', '.join(METRICS)}{hint}")


def require_measured(samples: Sequence[Sample]) -> None:
    """
    Require samples of which figures may be made together.

    Raises:
        ContractError: If there are warm-ups among them, or samples of a cold start beside others.
    """
    for i, sample in enumerate(samples):
        require_kind(f"samples[{i}]", sample, Sample)
        if sample.phase is Phase.WARM_UP:
            raise ContractError(f"samples[{i}]", "got a warm-up, expected none: no figure has them")
        if sample.phase is not samples[0].phase:
            raise ContractError(
                f"samples[{i}]",
                f"got {sample.phase}, expected {samples[0].phase} as the others: a cold start is "
                "never mixed with what is warm",
            )


def token_gaps_ms(sample: Sample) -> tuple[float, ...]:
    """
    List the times between pieces that hold tokens, in milliseconds.

    A piece that holds several tokens makes one gap: what a reader waits for.
    """
    times = [chunk.at_ns for chunk in sample.chunks if chunk.has_tokens]
    return tuple((after - before) / _NS_IN_MS for before, after in pairwise(times))


def _between(earlier_ns: int | None, later_ns: int | None) -> Reading:
    """Take the time between two marks; the second is there, or its own formula says why not."""
    if earlier_ns is None:
        return Reading(None, "not known when it was prepared")
    if later_ns is None:
        return Reading(None, "no text came")
    return Reading((later_ns - earlier_ns) / _NS_IN_MS)


def _first(mark: str, start: str) -> Callable[[Sample], Reading]:
    """Make the formula of a first piece, which only a stream has."""

    def formula(sample: Sample) -> Reading:
        if not sample.streamed:
            return Reading(None, "not streamed: the first token came with the last")
        return _between(getattr(sample, start), getattr(sample, mark))

    return formula


def _last(start: str) -> Callable[[Sample], Reading]:
    return lambda sample: _between(getattr(sample, start), sample.last_token_ns)


def _prepare(sample: Sample) -> Reading:
    if sample.prepared_ns is None:
        return Reading(None, "not known when it was prepared")
    return _between(sample.request_ns, sample.prepared_ns)


def _late(sample: Sample) -> Reading:
    if sample.scheduled_ns is None:
        return Reading(None, "not scheduled: a closed loop")
    return _between(sample.scheduled_ns, sample.request_ns)


def _tail(sample: Sample) -> Reading:
    return _between(sample.last_token_ns, sample.closed_ns)


def _gap(take: Callable[[Sequence[float]], float]) -> Callable[[Sample], Reading]:
    def formula(sample: Sample) -> Reading:
        gaps = token_gaps_ms(sample)
        return Reading(take(gaps)) if gaps else Reading(None, "all tokens came in one piece")

    return formula


def _mean(gaps: Sequence[float]) -> float:
    return sum(gaps) / len(gaps)


def _decoding(sample: Sample) -> tuple[int, int] | str:
    """Return the tokens after the first, and the time they took, or why that is not known."""
    first, last, tokens = sample.first_token_ns, sample.last_token_ns, sample.generated_tokens
    if tokens is None:
        return "nobody told how many tokens were generated"
    if tokens < 2:
        return f"{tokens} token{'s' * (tokens != 1)}: there is no time between tokens"
    if first is None or last is None or first == last:
        return "all tokens came in one piece"
    return tokens - 1, last - first


def _tpot(sample: Sample) -> Reading:
    match _decoding(sample):
        case str() as reason:
            return Reading(None, reason)
        case tokens, took_ns:
            return Reading(took_ns / _NS_IN_MS / tokens)


def _rate(sample: Sample) -> Reading:
    match _decoding(sample):
        case str() as reason:
            return Reading(None, reason)
        case tokens, took_ns:
            return Reading(tokens / (took_ns / _NS_IN_S))


_ALL = (
    Metric(
        name="ttft/1",
        title="from the request until the first token of any channel",
        formula=_first("first_token_ns", "start_ns"),
    ),
    Metric(
        name="ttfo/1",
        title="from the request until the first text of the answer itself",
        formula=_first("first_text_ns", "start_ns"),
    ),
    Metric(
        name="e2e/1",
        title="from the request until the last token",
        formula=_last("start_ns"),
    ),
    Metric(
        name="tpot/1",
        title="time per token after the first: (last - first) / (n - 1)",
        formula=_tpot,
    ),
    Metric(
        name="itl/1",
        title="mean time between pieces that hold tokens",
        formula=_gap(_mean),
    ),
    Metric(
        name="itl_longest/1",
        title="longest time between pieces that hold tokens",
        formula=_gap(max),
    ),
    Metric(
        name="rate/1",
        title="tokens a second after the first: (n - 1) / (last - first)",
        unit="tok/s",
        is_time=False,
        formula=_rate,
    ),
    Metric(
        name="prepare/1",
        title="input work: from the request until it is complete, images encoded",
        formula=_prepare,
    ),
    Metric(
        name="ttft_prepared/1",
        title="runtime work: from the complete request until the first token",
        formula=_first("first_token_ns", "prepared_ns"),
    ),
    Metric(
        name="ttfc_prepared/1",
        title="from the complete request until the first piece, even if it is empty",
        formula=_first("first_chunk_ns", "prepared_ns"),
    ),
    Metric(
        name="e2e_prepared/1",
        title="runtime work: from the complete request until the last token",
        formula=_last("prepared_ns"),
    ),
    Metric(
        name="late/1",
        title="how late a request was made, after it was due",
        formula=_late,
    ),
    Metric(
        name="tail/1",
        title="from the last token until nothing more could come",
        formula=_tail,
    ),
)

#: The formulas by their names.
METRICS: Mapping[str, Metric] = MappingProxyType({metric.name: metric for metric in _ALL})
