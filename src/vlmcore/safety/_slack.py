"""How much a comparison forgives: what float32 cannot help, and no more."""

from __future__ import annotations

import numpy as np

from vlmcore._arrays import Float64Array
from vlmcore.contracts._fineness import SLACK_SHARE

__all__ = ["STEP_SLACK", "slack_of"]

# Bounds are compared exactly. Steps are compared with a slack, since policies compute in float32:
# 0.12, 0.24, 0.36 as float32 are steps of up to 0.12 + 2e-8, and were meant to be 0.12. Two values
# and a limit, each rounded to float32, are off by at most 2**-24 * (|a| + |b| + limit); the slack
# is 4 * 2**-23 times the largest of the three that the space allows. It scales with the
# dimension: a floor of 1 would swallow the limits of one in metres that moves by micrometres.
STEP_SLACK = 4 * 2.0**-23


def slack_of(scale: Float64Array, limit: Float64Array) -> Float64Array:
    """
    Say what a comparison with *limit* is forgiven.

    Where float32 is too coarse for the dimension, that is a share of the limit. It covers the
    roundings of float64 in any case: a space refuses limits that would be lost in them.

    Args:
        scale: The largest values that are compared, shape ``[D]``.
        limit: The limits, shape ``[D]``; infinite where there is none.
    """
    slack: Float64Array = np.minimum(STEP_SLACK * scale, SLACK_SHARE * limit)
    return slack
