"""Tests of `vlmcore.contracts.nullable`."""

from __future__ import annotations

from typing import Any

import jsonschema
import pytest

from vlmcore.contracts.nullable import Nullable
from vlmcore.contracts.shapes import Field, Number, Record

READING = Record(fields={"watts": Field(Nullable(Number(positive=True)), "Null if unknown.")})


@pytest.mark.parametrize(
    ("watts", "faults"),
    [
        (None, []),
        (3.5, []),
        (0, [("$.watts", "got 0, expected a number above 0")]),
        ("", [("$.watts", "got the text '', expected a number")]),
        (False, [("$.watts", "got false, expected a number")]),
    ],
)
def test_null_says_that_a_value_is_not_known_and_nothing_else_does(
    watts: Any, faults: list[tuple[str, str]]
) -> None:
    """
    The schema says the same, and a key that is missing is not null.
    """
    said = {"watts": watts}

    assert faults == list(READING.faults(said, "$"))
    assert (not faults) == jsonschema.Draft202012Validator(READING.schema()).is_valid(said)
    assert [("$.watts", "is missing")] == list(READING.faults({}, "$"))
