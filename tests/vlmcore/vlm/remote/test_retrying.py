"""When a server is asked again."""

from __future__ import annotations

from datetime import datetime, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vlmcore.errors import ContractError
from vlmcore.vlm.remote.retrying import Retries, retry_after_s

NOW = datetime(2026, 11, 30, 12, 0, 0, tzinfo=timezone.utc)


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": " 1.5 "}, 1.5),
        ({"retry-after": "0"}, 0.0),
        ({"retry-after": "300"}, 300.0),
        ({"retry-after": "Mon, 30 Nov 2026 12:00:09 GMT"}, 9.0),
        ({"retry-after": "Mon, 30 Nov 2026 12:05:00 GMT"}, 300.0),
        ({"retry-after": "Mon, 30 Nov 2026 11:00:00 GMT"}, 0.0),
        (
            {
                "retry-after": "Mon, 30 Nov 2020 12:00:05 GMT",
                "date": "Mon, 30 Nov 2020 12:00:00 GMT",
            },
            5.0,
        ),
        ({"retry-after-ms": "250", "retry-after": "9"}, 0.25),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "-1"}, None),
        ({"retry-after": "1e9"}, None),
        ({"retry-after": "999999999999"}, 86_400.0),
        ({"retry-after": ""}, None),
        ({}, None),
    ],
)
def test_what_a_server_says_is_read_as_seconds_or_as_a_date(
    headers: dict[str, str], expected: float | None
) -> None:
    """
    A date counts from the server's own clock, where it tells.
    """
    assert expected == retry_after_s(headers, NOW)


@given(text=st.text(max_size=60))
def test_any_text_is_a_wait_or_none(text: str) -> None:
    """
    Headers come from anybody.
    """
    found = retry_after_s({"retry-after": text, "date": text, "retry-after-ms": text}, NOW)
    assert found is None or 0.0 <= found <= 86_400.0


def test_waits_grow_and_are_spread() -> None:
    """
    Half of each is fixed, and the other half is chance.
    """
    least = [Retries(jitter=lambda: 0.0).wait_s(attempt) for attempt in range(1, 9)]
    most = [Retries(jitter=lambda: 1.0).wait_s(attempt) for attempt in range(1, 9)]
    assert [0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 15.0] == least
    assert [0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0] == most


def test_nobody_comes_back_before_the_server_said() -> None:
    """
    A little later, so that not all do at once.
    """
    assert 60.0 == Retries(jitter=lambda: 0.0).wait_s(1, 60.0)
    assert 60.5 == Retries(jitter=lambda: 1.0).wait_s(1, 60.0)


@pytest.mark.parametrize("fields", [{"times": -1}, {"times": 1.5}, {"first_s": -1.0}])
def test_retries_that_are_none_are_refused(fields: dict[str, float]) -> None:
    """
    When they are made.
    """
    with pytest.raises(ContractError):
        Retries(**fields)  # type: ignore[arg-type]
