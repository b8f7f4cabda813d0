"""Tests of `vlmcore.safety._rules`: what a step is forgiven."""

from __future__ import annotations

import numpy as np
import pytest

from safety_cases import space
from vlmcore.contracts.embodiment import ActionDim
from vlmcore.safety._rules import Rules


@pytest.mark.parametrize(
    ("low", "high", "max_step", "slack"),
    [
        (-1.0, 1.0, 0.1, 4 * 2**-23),
        (-1e-6, 1e-6, 1e-7, 4e-6 * 2**-23),  # it scales with the dimension
        (-1.0, 0.5, 8.0, 32 * 2**-23),
        (0.0, 1e6, 0.01, 1e-4),  # float32 is too coarse here: a hundredth of the bound
        (0.0, 1e6, 4e-7, 4e-9),  # and float64 nearly so
    ],
)
def test_a_step_is_forgiven_what_float32_cannot_help(low, high, max_step, slack) -> None:
    """
    And no more than a hundredth of itself.
    """
    rules = Rules.of(space(ActionDim(name="x", low=low, high=high, max_step=max_step)))
    assert slack == pytest.approx(rules.slack[0], rel=1e-12, abs=0)
    assert max_step + rules.slack[0] == rules.allowed_step[0]


@pytest.mark.parametrize(
    ("levels", "slack"),
    [
        ((-1.0, 1.0), 4 * 2**-23),
        ((-8.0, 0.0, 1.0), 32 * 2**-23),  # of the largest, on whichever side it is
        ((1e6, 1e6 + 1e-3, 2e6), 1e-5),  # float32 is too coarse here: a hundredth of the least gap
        ((0.0, 1e6, 1e6 + 1e-3), 1e-5),
        ((-1.5e308, 1.5e308), 1.5e308 * 2**-21),
    ],
)
def test_a_level_is_forgiven_what_float32_cannot_help(levels, slack) -> None:
    """
    And no more than a hundredth of the way to the next.
    """
    dim = ActionDim(name="x", low=min(*levels, 0), high=max(levels), levels=levels)
    (found,) = Rules.of(space(dim)).levels
    assert slack == pytest.approx(found.slack, rel=1e-6, abs=0)


def test_the_level_zero_has_no_sign() -> None:
    """
    However it is declared.
    """
    dim = ActionDim(name="x", low=-1, high=1, levels=(-1.0, -0.0, 1.0))
    (levels,) = Rules.of(space(dim)).levels
    assert [True, False, False] == np.signbit(levels.values).tolist()


def test_the_bound_zero_has_no_sign() -> None:
    """
    However it is declared: a clamped command would carry it to the robot.
    """
    bounds = ((-0.0, 1.0), (-1.0, -0.0))
    dims = [
        ActionDim(name=f"x{i}", low=low, high=high, max_step=1)
        for i, (low, high) in enumerate(bounds)
    ]
    rules = Rules.of(space(*dims))
    assert [False, True] == np.signbit(rules.low).tolist()
    assert [False, False] == np.signbit(rules.high).tolist()


def test_what_is_forgiven_is_forgiven_to_the_last_bit() -> None:
    """
    No more and no less, on both sides of a level.
    """
    slack = 2.0**-20
    dim = ActionDim(name="x", low=0, high=2, levels=(0.0, 1.0, 2.0))
    (levels,) = Rules.of(space(dim)).levels
    near = np.array([1 - slack, 1 + slack])
    assert [True, True] == levels.includes(near).tolist()
    assert [False, False] == levels.includes(np.nextafter(near, [0, 2])).tolist()
