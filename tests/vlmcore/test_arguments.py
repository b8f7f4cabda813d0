"""Switches and objects: only what a caller can have meant is taken."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from vlmcore._arguments import require_kind, require_path, require_switch
from vlmcore.errors import ContractError


@pytest.mark.parametrize("value", ["no", "False", "", 0, 1, None, float("nan"), [], np.True_])
def test_a_switch_is_true_or_false_and_nothing_like_it(value) -> None:
    """
    A setting that was read from a file or the environment is a text, and every text is true.
    """
    with pytest.raises(ContractError, match=r"^allow_remote: got .*, expected True or False$"):
        require_switch(allow_remote=value)


def test_both_ways_of_a_switch_are_taken() -> None:
    """
    True and False are no errors.
    """
    require_switch(overwrite=True, sync=False)


def test_an_argument_of_another_class_is_named_by_its_class_only() -> None:
    """
    A token that is passed as plain text is not in the error.
    """
    with pytest.raises(ContractError) as error:
        require_kind("token", "hunter2", bytes)
    assert "token: got str, expected bytes" == str(error.value)


def test_a_path_is_text_or_an_object_that_stands_for_text() -> None:
    """
    Bytes are none: what they would be shown as depends on the machine.
    """
    assert ["a/b", "."] == [require_path("path", each) for each in ("a/b", Path())]
    with pytest.raises(ContractError) as error:
        require_path("path", b"a/b")
    assert "path: got bytes, expected a path" == str(error.value)
