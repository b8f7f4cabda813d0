"""
How many requests are under way at a time: as many as there are clients, or as many as arrive.

A closed loop waits for an answer before it asks again, so that a slow server is asked less. An open
loop asks when the next request is due. A sweep is a run for each of several loads.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import attrs

from vlmcore._arrays import plain_float, require_count, require_member, require_positive
from vlmcore.contracts.faults import Faults
from vlmcore.contracts.shapes import Field, Number, Record, Text, Whole
from vlmcore.lab.schedules import Arrivals
from vlmcore.limits import SampleLimits, require_at_most

__all__ = ["ClosedLoop", "Load", "OpenLoop", "load_document", "load_from", "load_words"]

_MOST = SampleLimits().max_requests
_KIND = "kind"


@attrs.frozen(kw_only=True)
class ClosedLoop:
    """
    Clients that each wait for an answer before they ask again.

    Attributes:
        clients: How many.

    Raises:
        ContractError: If that is not a whole number of at least 1.
        LimitExceededError: If there are more than a run has requests.
    """

    clients: int = 1

    def __attrs_post_init__(self) -> None:
        require_count(clients=self.clients)
        require_at_most("max_requests", self.clients, _MOST)


@attrs.frozen(kw_only=True)
class OpenLoop:
    """
    Requests that are made when they are due, whether earlier ones were answered or not.

    Attributes:
        rate_per_s: How many a second, on average.
        arrivals: How they arrive; `vlmcore.lab.schedules.arrivals_ns` says when each is due.

    Raises:
        ContractError: If a field is not as described.
    """

    rate_per_s: float = attrs.field(converter=plain_float)
    arrivals: Arrivals = Arrivals.POISSON

    def __attrs_post_init__(self) -> None:
        require_positive(rate_per_s=self.rate_per_s)
        require_member(Arrivals, arrivals=self.arrivals)


Load: TypeAlias = ClosedLoop | OpenLoop

_FORMS = {
    "closed": Record(
        fields={
            _KIND: Field(Text(one_of=("closed",)), "A closed loop."),
            "clients": Field(Whole(smallest=1, largest=_MOST), "How many ask at a time."),
        }
    ),
    "open": Record(
        fields={
            _KIND: Field(Text(one_of=("open",)), "An open loop."),
            "rate_per_s": Field(Number(positive=True), "Requests a second."),
            "arrivals": Field(
                Text(one_of=tuple(each.value for each in Arrivals)), "How they arrive."
            ),
        }
    ),
}


def load_document(load: Load) -> dict[str, Any]:
    """
    Write a load as plain values of JSON.

    Example:
        >>> load_document(ClosedLoop(clients=8))
        {'kind': 'closed', 'clients': 8}
        >>> load_from(load_document(OpenLoop(rate_per_s=2.5))).rate_per_s
        2.5
    """
    match load:
        case ClosedLoop():
            return {_KIND: "closed", "clients": load.clients}
        case OpenLoop():
            rate, arrivals = load.rate_per_s, load.arrivals.value
            return {_KIND: "open", "rate_per_s": rate, "arrivals": arrivals}


def load_words(load: Load) -> str:
    """
    Say a load in a few words.

    Example:
        >>> load_words(ClosedLoop(clients=8)), load_words(OpenLoop(rate_per_s=2.5))
        ('8 clients', '2.5 requests a second, poisson')
    """
    match load:
        case ClosedLoop():
            return "one request at a time" if load.clients == 1 else f"{load.clients} clients"
        case OpenLoop():
            return f"{load.rate_per_s:g} requests a second, {load.arrivals.value}"


def load_from(value: Any) -> Load:
    """
    Read a load from plain values of JSON.

    Raises:
        DocumentError: If there are faults; all of them are listed.
    """
    faults = Faults("lab-load")
    kind = value.get(_KIND) if isinstance(value, dict) else None
    shape = _FORMS.get(kind) if isinstance(kind, str) else None
    if shape is None:
        kinds = Record(fields={_KIND: Field(Text(one_of=tuple(_FORMS)), "Which of the two.")})
        shown = {_KIND: kind} if isinstance(value, dict) and _KIND in value else value
        found = kinds.faults(shown, "$")
    else:
        found = shape.faults(value, "$")
    for path, problem in found:
        faults.add(path, problem)
    faults.raise_any()
    if kind == "closed":
        return ClosedLoop(clients=value["clients"])
    return OpenLoop(rate_per_s=value["rate_per_s"], arrivals=Arrivals(value["arrivals"]))
