"""Tests of `vlmcore.jobs.clusters`."""

from __future__ import annotations

from typing import Any

import pytest

from vlmcore.errors import ContractError
from vlmcore.jobs.clusters import RayCluster


@pytest.mark.parametrize(
    ("address", "dialled"),
    [
        (None, None),
        ("auto", None),
        ("10.0.0.1:6379", ("10.0.0.1", 6379)),
        ("ray://head.example:10001", ("head.example", 10001)),
        ("[::1]:6379", ("::1", 6379)),
    ],
)
def test_an_address_says_what_is_dialled(
    address: str | None, dialled: tuple[str, int] | None
) -> None:
    """
    Ray itself tries for minutes, so that it is looked first whether anybody is there.
    """
    assert dialled == RayCluster(address=address).dialled


@pytest.mark.parametrize(
    ("field", "value"),
    [
        *(("address", text) for text in ("", "head", "http://head:1", "head:port", "a b:1")),
        *(("address", text) for text in ("head:0", "head:65536", "head:6379\n", b"head:1")),
        *(("models", number) for number in (0, -1, 1.5, True)),
        *(("cpus", number) for number in (-1.0, float("nan"), float("inf"))),
        *(("gpus", number) for number in (-0.5, float("nan"), float("inf"))),
    ],
)
def test_what_is_no_cluster_is_refused_by_its_field(field: str, value: Any) -> None:
    """
    Before anything is dialled.
    """
    with pytest.raises(ContractError) as error:
        RayCluster(**{field: value})
    assert field == error.value.field
