"""
In which order requests are made, and when: decided before the first one, from a seed.

Nothing here reads a clock or sends anything. The same seed gives the same order on every machine
and in every version of Python.
"""

from __future__ import annotations

import enum
import hashlib
import math
import random
from collections.abc import Sequence
from itertools import accumulate

import attrs

from vlmcore._arrays import as_tuple, require_count, require_member, require_names, require_positive
from vlmcore.errors import ContractError
from vlmcore.lab._seeds import require_seed
from vlmcore.lab.events import Phase
from vlmcore.limits import SampleLimits, require_at_most

__all__ = ["Arrivals", "Leg", "arrivals_ns", "measured_legs", "nonce", "warm_up_legs"]

_LIMITS = SampleLimits()
_NS_IN_S = 1_000_000_000.0


@attrs.frozen(kw_only=True)
class Leg:
    """
    One target asked every case once; the next leg begins when all its requests have closed.

    Attributes:
        phase: What its samples are for.
        block: The number of its block, from 0.
        leg: Its number in the block, from 0.
        target: What is asked.
        cases: The cases in the order of asking.
    """

    phase: Phase
    block: int
    leg: int
    target: str
    cases: tuple[str, ...]


class Arrivals(enum.Enum):
    """How requests of an open loop arrive, whether earlier ones were answered or not."""

    CONSTANT = "constant"  # one after the other at equal times
    POISSON = "poisson"  # as independent people ask


def measured_legs(
    targets: Sequence[str],
    cases: Sequence[str],
    *,
    blocks: int,
    seed: int,
    phase: Phase = Phase.STEADY,
) -> tuple[Leg, ...]:
    """
    Put the measured requests of a run in order.

    Every block holds every case, in an order of its own. Of one target it has one leg. Of several
    it has two legs each, forwards and backwards, as ABBA; the next block begins with another one,
    as BAAB. Whatever changes steadily meanwhile, a machine that gets warm, then touches all targets
    alike, in every block and for every case.

    Args:
        targets: The names of what is asked.
        cases: The names of the cases.
        blocks: How many blocks. Each case is asked once in a block, and twice of several targets.
        seed: Of the order of the cases, from 0 to 2**63 - 1.
        phase: What the samples are for.

    Raises:
        ContractError: If an argument is not as described, or a name is there twice.
        LimitExceededError: If there are too many requests.

    Example:
        >>> legs = measured_legs(["A", "B"], ["dog", "cat"], blocks=2, seed=0)
        >>> "".join(leg.target for leg in legs)
        'ABBABAAB'
        >>> [sorted(leg.cases) for leg in legs[:2]], legs[0].cases == legs[3].cases
        ([['cat', 'dog'], ['cat', 'dog']], True)
    """
    targets, cases = _checked(targets, cases, blocks=blocks, seed=seed)
    made = []
    for block in range(blocks):
        turn = block % len(targets)
        order = targets[turn:] + targets[:turn]
        row = order + order[::-1] if len(targets) > 1 else order
        shuffled = _shuffled(cases, f"order {seed} {block}")
        made += [
            Leg(phase=phase, block=block, leg=leg, target=target, cases=shuffled)
            for leg, target in enumerate(row)
        ]
    return tuple(made)


def warm_up_legs(
    targets: Sequence[str], cases: Sequence[str], *, per_case: int, seed: int
) -> tuple[Leg, ...]:
    """
    Put the requests before the measured ones in order: every case of every target.

    What a case warms is often only its own: a picture of another size makes another shape.

    Args:
        targets: The names of what is asked.
        cases: The names of the cases.
        per_case: How often each case is asked; 0 for no warm-up.
        seed: Of the order of the cases.

    Raises:
        ContractError: If an argument is not as described, or a name is there twice.
        LimitExceededError: If there are too many requests.
    """
    if per_case == 0 and type(per_case) is int:
        return ()
    targets, cases = _checked(targets, cases, per_case=per_case, seed=seed)
    return tuple(
        Leg(
            phase=Phase.WARM_UP,
            block=block,
            leg=leg,
            target=target,
            cases=_shuffled(cases, f"warm-up {seed} {block}"),
        )
        for block in range(per_case)
        for leg, target in enumerate(targets)
    )


def arrivals_ns(
    count: int, *, rate_per_s: float, arrivals: Arrivals = Arrivals.POISSON, seed: int = 0
) -> tuple[int, ...]:
    """
    Say when the requests of an open loop are due, in nanoseconds after its beginning.

    A request that cannot be made in time is measured from when it was due: a server that is too
    slow must not slow down who asks it, and look faster by that.

    Args:
        count: How many requests.
        rate_per_s: Requests a second, on average.
        arrivals: How they arrive.
        seed: Of the times between them.

    Raises:
        ContractError: If an argument is not as described, or the last would be due too late for
            `vlmcore.limits.SampleLimits`.
        LimitExceededError: If there are too many requests.

    Example:
        >>> arrivals_ns(3, rate_per_s=10, arrivals=Arrivals.CONSTANT)
        (0, 100000000, 200000000)
    """
    require_count(count=count)
    require_at_most("max_requests", count, _LIMITS.max_requests)
    require_positive(rate_per_s=rate_per_s)
    require_member(Arrivals, arrivals=arrivals)
    require_seed("seed", seed)
    if arrivals is Arrivals.CONSTANT:
        due_s = [i / rate_per_s for i in range(count)]
    else:
        drawn = random.Random(f"arrivals {seed}")  # noqa: S311 - not a secret
        gaps = (-math.log(1 - drawn.random()) / rate_per_s for _ in range(count - 1))
        due_s = list(accumulate(gaps, initial=0.0))
    if not due_s[-1] * _NS_IN_S <= _LIMITS.max_ns:
        raise ContractError(
            "rate_per_s", f"got {rate_per_s}, expected one at which the last is due within 104 days"
        )
    return tuple(round(each * _NS_IN_S) for each in due_s)


def nonce(seed: int, request: int) -> str:
    """
    Make a text that no other request of the run has, to stand before the image.

    A server that keeps the beginnings of prompts then finds none that it knows. All are of one
    length.

    Args:
        seed: Of the run.
        request: The number of the request in it, from 0; warm-ups count.

    Raises:
        ContractError: If a number is not a whole number of at least 0.

    Example:
        >>> nonce(0, 0), nonce(0, 1)
        ('de6a52c38ff52ea0', '732d3288b4bb3c09')
    """
    require_seed("seed", seed)
    require_seed("request", request)
    return hashlib.sha256(f"nonce {seed} {request}".encode()).hexdigest()[:16]


def _checked(
    targets: Sequence[str], cases: Sequence[str], *, seed: int, **counts: int
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    names = {"targets": as_tuple(targets), "cases": as_tuple(cases)}
    for field, given in names.items():
        require_names(
            field,
            given,
            max_count=_LIMITS.max_requests,
            max_characters=_LIMITS.max_name_characters,
        )
    require_count(**counts)
    requests = 2 * math.prod([*counts.values(), *map(len, names.values())])
    require_at_most("max_requests", requests, _LIMITS.max_requests)
    require_seed("seed", seed)
    return names["targets"], names["cases"]


def _shuffled(names: tuple[str, ...], seed: str) -> tuple[str, ...]:
    # Python promises that random() draws the same in later versions, and not that shuffle() does.
    drawn = random.Random(seed)  # noqa: S311 - not a secret
    keys = {name: drawn.random() for name in names}
    return tuple(sorted(names, key=lambda name: keys[name]))
