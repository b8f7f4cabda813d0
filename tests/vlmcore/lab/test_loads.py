"""Tests of `vlmcore.lab.loads`."""

from __future__ import annotations

import contextlib
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vlmcore.contracts.json_text import read_json, write_json
from vlmcore.errors import ContractError, DocumentError, LimitExceededError
from vlmcore.lab.loads import ClosedLoop, Load, OpenLoop, load_document, load_from
from vlmcore.lab.schedules import Arrivals
from vlmcore.testing.contract_strategies import hostile_json

LOADS = st.builds(ClosedLoop, clients=st.integers(1, 1000)) | st.builds(
    OpenLoop, rate_per_s=st.floats(1e-3, 1e6), arrivals=st.sampled_from(Arrivals)
)


@given(load=LOADS)
def test_what_is_written_is_read_back_exactly(load: Load) -> None:
    """
    Through the text of JSON too.
    """
    assert load == load_from(read_json(write_json(load_document(load))))


@pytest.mark.parametrize(
    ("document", "message"),
    [
        (None, r"\$: got null, expected an object"),
        ([], r"\$: got a list, expected an object"),
        ({}, r"\$.kind: is missing"),
        ({"kind": "sweep"}, r"\$.kind: got 'sweep', expected one of 'closed', 'open'"),
        ({"kind": ["closed"]}, r"\$.kind: got a list, expected a text"),
        ({"kind": "closed"}, r"\$.clients: is missing"),
        ({"kind": "closed", "clients": 0}, r"\$.clients: got 0, expected 1 to"),
        ({"kind": "closed", "clients": True}, r"\$.clients: got true"),
        ({"kind": "closed", "clients": 1, "rate_per_s": 2}, r"\$.rate_per_s: is not a key"),
        ({"kind": "open", "rate_per_s": 0, "arrivals": "burst"}, "2 faults"),
        ({"kind": "open", "rate_per_s": math.nan, "arrivals": "poisson"}, r"\$.rate_per_s: got na"),
    ],
)
def test_faults_are_told_by_their_place(document: Any, message: str) -> None:
    """
    All at once.
    """
    with pytest.raises(DocumentError, match=message):
        load_from(document)


@given(text=hostile_json())
def test_any_text_gives_a_load_or_our_error(text: str) -> None:
    """
    Plans are written by hand.
    """
    with contextlib.suppress(ContractError):
        load_from(read_json(text))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ClosedLoop(clients=0), "clients: got 0"),
        (lambda: ClosedLoop(clients="8"), "clients: got '8'"),
        (lambda: OpenLoop(rate_per_s=0), "rate_per_s: got 0"),
        (lambda: OpenLoop(rate_per_s=math.inf), "rate_per_s: got inf"),
        (lambda: OpenLoop(rate_per_s=1, arrivals="poisson"), "arrivals: got 'poisson'"),
    ],
)
def test_a_load_that_cannot_be_is_refused(make: Any, message: str) -> None:
    """
    With the name of its field.
    """
    with pytest.raises(ContractError, match=f"^{message}"):
        make()


def test_clients_are_bounded() -> None:
    """
    Each is a thread or a connection.
    """
    with pytest.raises(LimitExceededError, match="max_requests"):
        ClosedLoop(clients=1 << 40)
