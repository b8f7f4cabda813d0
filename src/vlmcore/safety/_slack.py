"""How much a comparison forgives: what float32 cannot help, and no more."""

from __future__ import annotations

import numpy as np

from vlmcore._arrays import Float64Array

__all__ = ["FLOAT64_SLACK", "STEP_SLACK", "STEP_SLACK_SHARE", "slack_of"]

# Bounds are compared exactly. Steps are compared with a slack, since policies compute in float32:
# 0.12, 0.24, 0.36 as float32 are steps of up to 0.12 + 2e-8, and were meant to be 0.12. Two values
# and a limit, each rounded to float32, are off by at most 2**-24 * (|a| + |b| + limit); the slack
# is 4 * 2**-23 times the largest of the three that the space allows. It scales with the
# dimension (a floor of 1 would swallow the limits of one in metres that moves by micrometres), ...
STEP_SLACK = 4 * 2.0**-23
# ... it is never more than this share of the limit, where float32 is too coarse for the dimension,
STEP_SLACK_SHARE = 0.01
# ... and never less than the rounding of the few float64 operations that a remedy is made of.
FLOAT64_SLACK = 16 * 2.0**-52


def slack_of(scale: Float64Array, limit: Float64Array) -> Float64Array:
    """
    Say what a comparison with *limit* is forgiven.

    Args:
        scale: The largest values that are compared, shape ``[D]``.
        limit: The limits, shape ``[D]``; infinite where there is none.
    """
    slack = np.minimum(STEP_SLACK * scale, STEP_SLACK_SHARE * limit)
    return np.maximum(slack, FLOAT64_SLACK * scale)
