"""
The public test kit: a predictor without a model, and checks for predictors of your own.

`vlmcore.testing.strategies` needs hypothesis (``pip install "vlmcore[testing]"``); nothing here
does.
"""

from vlmcore.testing.predictor_checks import (
    PREDICTOR_CHECKS,
    PredictorCheck,
    PredictorCheckError,
    check_predictor,
)
from vlmcore.testing.predictors import EchoPredictor, echo

__all__ = [
    "PREDICTOR_CHECKS",
    "EchoPredictor",
    "PredictorCheck",
    "PredictorCheckError",
    "check_predictor",
    "echo",
]
