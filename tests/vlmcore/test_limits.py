"""Tests of `vlmcore.limits`."""

from __future__ import annotations

import attrs
import pytest

from vlmcore import limits
from vlmcore.errors import ContractError, LimitExceededError
from vlmcore.limits import ImageLimits, require_at_most

GROUPS = [value for value in vars(limits).values() if attrs.has(value)]


def test_a_size_at_the_limit_passes_and_one_more_is_refused() -> None:
    """
    The error carries the numbers, to be read and not parsed.
    """
    require_at_most("max_frames", 256, 256)
    with pytest.raises(LimitExceededError) as caught:
        require_at_most("max_frames", 257, 256)
    assert ("max_frames", 257, 256) == (
        caught.value.limit,
        caught.value.actual,
        caught.value.allowed,
    )


def test_pictures_of_16_mi_pixels_are_let_in_by_default() -> None:
    """
    The bound against decompression bombs.
    """
    assert 4096 * 4096 == ImageLimits().max_pixels


@pytest.mark.parametrize("group", GROUPS, ids=lambda group: group.__name__)
@pytest.mark.parametrize("wrong", [0, -1, True, 1.5, "12", None])
def test_a_limit_is_a_whole_number_of_at_least_one(group: type, wrong: object) -> None:
    """
    No value switches a limit off: who needs more passes a larger number.
    """
    for field in attrs.fields(group):
        with pytest.raises(ContractError, match=f"^{field.name}: got "):
            group(**{field.name: wrong})


@pytest.mark.parametrize("group", GROUPS, ids=lambda group: group.__name__)
def test_every_limit_is_explained(group: type) -> None:
    """
    The reference page is made from these words.
    """
    for field in attrs.fields(group):
        assert f"    {field.name}: " in (group.__doc__ or "")
