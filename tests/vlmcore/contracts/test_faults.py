"""Tests of `vlmcore.contracts.faults`."""

from __future__ import annotations

import pytest

from vlmcore.contracts.faults import Faults
from vlmcore.errors import ContractError, DocumentError


def broken(field: str) -> int:
    raise ContractError(field, "got 0")


@pytest.mark.parametrize(
    ("field", "path"),
    [
        ("rate_hz", "$.control_hz"),
        ("rate_hz[3]", "$.control_hz[3]"),
        ("rate_hz.a", "$.control_hz.a"),
        ("other", "$.here"),
        ("", "$.here"),
    ],
)
def test_a_field_is_told_by_its_place_in_the_document(field: str, path: str) -> None:
    """
    What stands after the name of the field stands after its place.
    """
    faults = Faults("robot")
    with faults.at("$.here", rate_hz="$.control_hz"):
        broken(field)

    with pytest.raises(DocumentError) as caught:
        faults.raise_any()
    assert ((path, "got 0"),) == caught.value.faults
    with pytest.raises(DocumentError) as caught:
        Faults("robot").finish(lambda: broken(field), "$.here", rate_hz="$.control_hz")
    assert ((path, "got 0"),) == caught.value.faults


def test_nothing_is_made_where_something_was_found() -> None:
    """
    It would stand on what is broken.
    """
    faults = Faults("robot")
    assert not faults
    assert 3 == faults.finish(lambda: 3)
    faults.raise_any()
    faults.add("$", "is missing")
    assert faults
    with pytest.raises(DocumentError, match=r"^robot: \$: is missing$"):
        faults.finish(lambda: broken("x"))
