"""Tests of `hostile_fields`, and of the contracts that it is hostile to."""

from __future__ import annotations

import importlib
import pkgutil
from typing import Any

import attrs
import pytest
from hypothesis import HealthCheck, Phase, find, given, settings
from hypothesis import strategies as st

import vlmcore.contracts
import vlmcore.policy
import vlmcore.rollout
import vlmcore.safety
from vlmcore.contracts.actions import ActionChunk, ActionStep, Stream
from vlmcore.contracts.embodiment import ActionDim, ActionSpace, CameraSpec, Embodiment
from vlmcore.contracts.observation import CameraSummary, Observation, ObservationSummary
from vlmcore.contracts.rotations import RotationGroup
from vlmcore.errors import VlmcoreError
from vlmcore.policy.interface import PolicyInfo
from vlmcore.rollout import (
    EnsembleBlend,
    EpisodeFailure,
    EpisodeHeader,
    EpisodeStep,
    LinearBlend,
    OpenLoopReport,
    ShadowReport,
)
from vlmcore.rollout.episode_calls import PolicyCall
from vlmcore.rollout.episode_frames import EncodedFrame
from vlmcore.rollout.freshness import MaxAges, TimedObservation
from vlmcore.rollout.open_loop_report import GateCounts, Latency
from vlmcore.rollout.replan import ReplanReport
from vlmcore.safety.report import SafetySummary
from vlmcore.testing import contract_strategies as contracts
from vlmcore.testing import rollout_strategies as rollouts
from vlmcore.testing._hostile_fields import HOSTILE_VALUES
from vlmcore.testing.contract_strategies import hostile_fields

QUICK = settings(
    phases=[Phase.generate], max_examples=2000, database=None, suppress_health_check=HealthCheck
)

STRATEGIES: dict[type, st.SearchStrategy[Any]] = {
    ActionDim: contracts.action_dims(),
    ActionSpace: contracts.action_spaces(max_dims=4),
    RotationGroup: contracts.rotation_groups(),
    CameraSpec: contracts.camera_specs(),
    Embodiment: contracts.embodiments(max_dims=3),
    Stream: contracts.action_chunks().filter(lambda c: c.streams).map(lambda c: c.streams[0]),
    ActionChunk: contracts.action_chunks(hostile=True),
    ActionStep: contracts.action_steps(),
    Observation: contracts.observations(hostile=True),
    ObservationSummary: contracts.observation_summaries(),
    CameraSummary: contracts.observation_summaries().map(lambda seen: min(seen.cameras.items())[1]),
    PolicyInfo: contracts.policy_infos(),
    SafetySummary: contracts.safety_summaries(),
    ReplanReport: rollouts.replan_reports(),
    MaxAges: rollouts.max_ages(),
    TimedObservation: rollouts.timed_observations(),
    EncodedFrame: rollouts.encoded_frames(),
    PolicyCall: rollouts.policy_calls(),
    EpisodeHeader: rollouts.episode_headers(),
    EpisodeStep: rollouts.episode_steps(frames=False),
    EpisodeFailure: rollouts.episode_failures(),
    LinearBlend: st.builds(LinearBlend, overlap=st.integers(1, 9)),
    OpenLoopReport: rollouts.open_loop_reports(),
    Latency: rollouts.open_loop_reports().filter(lambda r: r.latency).map(lambda r: r.latency),
    GateCounts: rollouts.open_loop_reports().filter(lambda r: r.gate).map(lambda r: r.gate),
    ShadowReport: rollouts.shadow_reports(),
    EnsembleBlend: st.builds(EnsembleBlend, m=st.floats(0, 1)),
}
# What vlmcore makes itself and no file, server or caller gives it: results, and how a document is.
RESULTS = {
    *("Violation", "Findings", "SafetyReport", "SafetyGate", "LevelSwitch", "FoundJson"),
    *("ReplayedStep", "LimitDifference", "ReportDifference", "RecordedMoment"),
    *("PrefetchCounts", "LoopCounts", "OpenLoopTrace"),
    *("DocumentKind", "Text", "Number", "Whole", "Flag", "ListOf", "MapOf", "JsonObject"),
    *("Field", "Record", "PolicySpec", "Nullable"),
}


def public_contracts() -> set[type]:
    """Find the classes of attrs that the public modules offer."""
    found = set()
    for package in (vlmcore.contracts, vlmcore.safety, vlmcore.rollout, vlmcore.policy):
        for module in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
            if not module.name.rpartition(".")[2].startswith("_"):
                loaded = importlib.import_module(module.name)
                offered = (getattr(loaded, name) for name in loaded.__all__)
                found |= {each for each in offered if isinstance(each, type) and attrs.has(each)}
    return found


def test_there_is_a_strategy_for_every_contract() -> None:
    """
    A new one comes with its own, or is a result of something else.
    """
    assert RESULTS == {each.__name__ for each in public_contracts() - STRATEGIES.keys()}
    assert STRATEGIES.keys() <= public_contracts()


def fed(contract: type, fields: dict[str, Any]) -> bool:
    """Make a contract, or say that it was refused, in one line."""
    try:
        made = contract(**fields)
    except VlmcoreError as error:
        said = str(error)
    else:
        repr(made)
        return True
    assert said.isprintable(), said
    return False


@pytest.mark.parametrize("contract", STRATEGIES, ids=lambda contract: contract.__name__)
def test_any_value_in_any_field_is_taken_or_refused_in_our_words(contract: type) -> None:
    """
    Never something else: an empty array for the unit of a dimension raised a ValueError of NumPy.
    """
    true = find(STRATEGIES[contract], lambda _: True, settings=QUICK)
    names = [field.name for field in attrs.fields(contract) if field.init]
    fields = {name: getattr(true, name) for name in names}
    taken = [fed(contract, fields | {name: wrong}) for name in names for wrong in HOSTILE_VALUES]
    assert len(taken) / 2 > sum(taken)


@pytest.mark.parametrize("contract", STRATEGIES, ids=lambda contract: contract.__name__)
def test_a_contract_is_made_anew_of_its_own_fields(contract: type) -> None:
    """
    What a strategy draws is true, and of the class that it says.
    """

    @settings(max_examples=10, deadline=None, suppress_health_check=HealthCheck)
    @given(STRATEGIES[contract])
    def made_anew(drawn: Any) -> None:
        assert contract is type(drawn)
        assert attrs.evolve(drawn) == drawn or "nan" in repr(drawn)

    made_anew()


@pytest.mark.parametrize("contract", [CameraSpec, ActionDim, Observation])
def test_fields_that_are_taken_and_fields_that_are_refused_are_drawn(contract: type) -> None:
    """
    Also what another field says.
    """
    hostile = hostile_fields(STRATEGIES[contract])
    for is_taken in (True, False):
        find(hostile, lambda each, wanted=is_taken: wanted is fed(contract, each), settings=QUICK)
