"""What a run was to do: the load, the cache, the order, and how answers were generated."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Any

import attrs

from vlmcore._arguments import require_switch, shown
from vlmcore._arrays import plain_float, require_count, require_member, require_positive
from vlmcore._copying import through_constructor
from vlmcore._json_values import frozen_object
from vlmcore.errors import ContractError
from vlmcore.lab.canonical import EXACT
from vlmcore.lab.loads import ClosedLoop, Load, OpenLoop
from vlmcore.limits import SampleLimits

__all__ = ["CacheMode", "RunPlan"]

_MOST = SampleLimits().max_requests


class CacheMode(enum.Enum):
    """What a target may have kept of earlier requests. It is declared, and never assumed."""

    COLD = "cold"  # nothing: caches are emptied, or switched off, before each request
    WARM_PREFIX = "warm-prefix"  # the same image and prompt, asked before
    UNIQUE = "unique"  # something new stands before the image in each request


@attrs.frozen(kw_only=True)
class RunPlan:
    """
    What a run was to do.

    Attributes:
        load: How many requests are under way at a time.
        cache: What a target may have kept.
        runs_per_case: Measured requests of each case and target.
        warm_ups_per_case: Requests of each before them, in no figure.
        order_seed: The seed of the order of cases and targets, as exact as JSON is: to 2**53 - 1.
        generation: All that answers were generated with: max_new_tokens, temperature, seed, ...
        streamed: Whether answers were asked for while they were written.
        retries: How often a request that failed was to be asked again.
        deadline_s: When a request was given up, all of it together.
        max_failures: How many failed requests ended the run; ``None`` if it went on regardless.
        goals: What a request should keep to, by the names of formulas, as ``{"ttft/1": 200}``: see
            `vlmcore.lab.totals.objectives_of`.

    Raises:
        ContractError: If a field is not as described.

    Example:
        >>> RunPlan(
        ...     load=ClosedLoop(clients=8), cache=CacheMode.UNIQUE, runs_per_case=10,
        ...     generation={"max_new_tokens": 96, "temperature": 0.0, "seed": 0}, deadline_s=60,
        ... ).cache.value
        'unique'
    """

    load: Load
    cache: CacheMode
    runs_per_case: int
    warm_ups_per_case: int = 0
    order_seed: int = 0
    generation: Mapping[str, Any] = attrs.field(hash=False)
    streamed: bool = True
    retries: int = 0
    deadline_s: float = attrs.field(converter=plain_float)
    max_failures: int | None = None
    goals: Mapping[str, Any] = attrs.field(factory=dict, hash=False)

    def __attrs_post_init__(self) -> None:
        if not isinstance(self.load, (ClosedLoop, OpenLoop)):
            raise ContractError(
                "load", f"got {shown(self.load)}, expected a ClosedLoop or OpenLoop"
            )
        for field in ("generation", "goals"):
            object.__setattr__(self, field, frozen_object(getattr(self, field), field=field))
        require_member(CacheMode, cache=self.cache)
        require_count(runs_per_case=self.runs_per_case)
        for field in ("runs_per_case", "warm_ups_per_case", "retries"):
            _require_whole(field, getattr(self, field), _MOST)
        _require_whole("order_seed", self.order_seed, EXACT)
        if self.max_failures is not None:
            _require_whole("max_failures", self.max_failures, _MOST)
        require_switch(streamed=self.streamed)
        require_positive(deadline_s=self.deadline_s)

    __reduce__ = through_constructor


def _require_whole(field: str, value: Any, most: int) -> None:
    if type(value) is not int or not 0 <= value <= most:
        raise ContractError(field, f"got {shown(value)}, expected a whole number from 0 to {most}")
