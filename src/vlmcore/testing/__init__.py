"""
The public test kit: predictors without a model, and checks for predictors of your own.

`vlmcore.testing.strategies` needs hypothesis (``pip install "vlmcore[testing]"``); nothing here
does.
"""

from vlmcore.testing.predictors import EchoPredictor, echo

__all__ = ["EchoPredictor", "echo"]
