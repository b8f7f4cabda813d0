"""
The public test kit: predictors and policies without a model, and checks for those of your own.

`vlmcore.testing.strategies`, `vlmcore.testing.contract_strategies`,
`vlmcore.testing.rollout_strategies` and `vlmcore.testing.policy_properties` need hypothesis
(``pip install "vlmcore[testing]"``); nothing here does.
"""

from vlmcore.testing.example_observations import example_observation
from vlmcore.testing.policies import AsyncScriptedPolicy, ScriptedPolicy, ScriptEnding
from vlmcore.testing.policy_checks import (
    POLICY_CHECKS,
    PolicyCheck,
    PolicyCheckError,
    PolicyCheckReport,
    check_policy,
    vet_proposal,
)
from vlmcore.testing.predictor_checks import (
    PREDICTOR_CHECKS,
    PredictorCheck,
    PredictorCheckError,
    check_predictor,
)
from vlmcore.testing.predictors import EchoPredictor, echo

__all__ = [
    "POLICY_CHECKS",
    "PREDICTOR_CHECKS",
    "AsyncScriptedPolicy",
    "EchoPredictor",
    "PolicyCheck",
    "PolicyCheckError",
    "PolicyCheckReport",
    "PredictorCheck",
    "PredictorCheckError",
    "ScriptEnding",
    "ScriptedPolicy",
    "check_policy",
    "check_predictor",
    "echo",
    "example_observation",
    "vet_proposal",
]
