"""Tests of `vlmcore.rollout.episode_calls`, and of how an episode holds them."""

from __future__ import annotations

import json
import pickle
from contextlib import suppress
from pathlib import Path

import attrs
import jsonschema
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from episode_cases import HEADER, observation, step
from vlmcore.contracts.observation import Observation
from vlmcore.errors import ContractError, DocumentError, EpisodeError, LimitExceededError
from vlmcore.rollout.episode_calls import EpisodeFailure, PolicyCall, digest_of
from vlmcore.rollout.episode_documents import (
    episode_failure_from_document,
    episode_failure_to_document,
    episode_step_from_document,
    episode_step_to_document,
)
from vlmcore.rollout.episode_reader import EpisodeReader
from vlmcore.rollout.episode_schemas import EPISODE_FAILURE, EPISODE_STEP
from vlmcore.rollout.episode_writer import EpisodeWriter
from vlmcore.testing.contract_strategies import hostile_json

CALL = PolicyCall(digest="ab" * 32, took_s=0.25)
FAILURE = EpisodeFailure(
    at_s=3.5, observation=observation().summary(), error="PolicyError: too dark", call=CALL
)


def test_equal_observations_have_equal_digests_whenever_they_were_made() -> None:
    """
    A replay is at another time, and its cameras may come in another order.
    """
    seen = attrs.evolve(
        observation(),
        images={"front": np.zeros((4, 4, 3), np.uint8), "side": np.ones((2, 2, 3), np.uint8)},
    )
    turned = attrs.evolve(seen, images=dict(reversed(seen.images.items())), captured_at_s=99.0)

    assert digest_of(seen) == digest_of(turned)
    assert len(digest_of(seen)) == 64


@pytest.mark.parametrize(
    "other",
    [
        {"instruction": "wait."},
        {"state": [0.0, 0.0, 11.25]},
        {"frame_rate_hz": 11.0},
        {"images": {"side": observation().images["front"]}},
        {"images": {"front": observation().images["front"] + 1}},
        {"images": {"front": observation().images["front"].reshape(1, 8, 6, 3)}},
    ],
)
def test_what_differs_in_anything_that_was_shown_has_another_digest(other: dict) -> None:
    """
    Each pixel counts, and where it stands.
    """
    assert digest_of(observation()) != digest_of(attrs.evolve(observation(), **other))


def test_only_an_observation_has_a_digest() -> None:
    """
    Its summary has no pixels.
    """
    with pytest.raises(ContractError, match="got ObservationSummary, expected an Observation"):
        digest_of(observation().summary())  # type: ignore[arg-type]


@pytest.mark.parametrize("digest", ["", "AB" * 32, "ab" * 31, "zz" * 32, None, 7])
def test_a_digest_is_64_hexadecimal_digits(digest: object) -> None:
    """
    Anything else is refused where it is made.
    """
    with pytest.raises(ContractError, match="digest"):
        PolicyCall(digest=digest, took_s=0.0)  # type: ignore[arg-type]


@pytest.mark.parametrize("took_s", [-0.1, float("nan"), float("inf"), "1"])
def test_a_call_takes_a_time(took_s: object) -> None:
    """
    A clock that went back is told.
    """
    with pytest.raises(ContractError, match="took_s"):
        PolicyCall(digest="ab" * 32, took_s=took_s)  # type: ignore[arg-type]


def test_a_failure_says_what_went_wrong_in_at_most_1000_characters() -> None:
    """
    It is for people.
    """
    with pytest.raises(ContractError, match="error"):
        attrs.evolve(FAILURE, error=" ")
    with pytest.raises(LimitExceededError, match="max_error_characters"):
        attrs.evolve(FAILURE, error="x" * 1001)
    with pytest.raises(ContractError, match="call: got dict"):
        attrs.evolve(FAILURE, call={})
    assert pickle.loads(pickle.dumps(FAILURE)) == FAILURE


def test_a_failure_and_a_call_are_written_and_read_back() -> None:
    """
    As documents that the published schemas hold.
    """
    failed = episode_failure_to_document(FAILURE, 2)
    called = episode_step_to_document(step(call=CALL), 0)

    assert episode_failure_from_document(failed, 2) == FAILURE
    assert episode_step_from_document(called, 0).call == CALL
    jsonschema.validate(failed, EPISODE_FAILURE.json_schema())
    jsonschema.validate(called, EPISODE_STEP.json_schema())
    assert "call" not in episode_step_to_document(step(), 0)


def test_a_call_with_faults_is_refused_with_their_places() -> None:
    """
    In a step as in a failure.
    """
    failed = episode_failure_to_document(FAILURE, 0) | {"call": {"digest": "AB", "took_s": -1}}
    with pytest.raises(DocumentError, match=r"\$\.call\.digest"):
        episode_failure_from_document(failed, 0)
    with pytest.raises(DocumentError, match=r"\$\.step: got 0, expected 3"):
        episode_failure_from_document(episode_failure_to_document(FAILURE, 0), 3)


@given(hostile_json(), st.sampled_from(("observation", "error", "at_s", "call", "step", "more")))
def test_a_hostile_failure_is_a_failure_or_refused(value: object, key: str) -> None:
    """
    Whatever a line holds.
    """
    document = episode_failure_to_document(FAILURE, 0) | {key: value}
    with suppress(DocumentError):
        assert isinstance(episode_failure_from_document(document, 0), EpisodeFailure)


def test_failures_stand_between_the_steps_and_are_no_steps(tmp_path: Path) -> None:
    """
    What reads steps reads them as before; `events` gives both in their order.
    """
    first, second = step(call=CALL), step(at_s=8.0)
    with EpisodeWriter(tmp_path / "run.jsonl", HEADER) as writer:
        for event in (FAILURE, first, FAILURE, FAILURE, second):
            writer.append(event)
    assert writer.steps == 2
    reader = EpisodeReader(tmp_path / "run.jsonl")

    assert [first, second] == list(reader)
    assert [FAILURE, first, FAILURE, FAILURE, second] == list(reader.events())


def test_a_fault_after_a_failure_is_told_with_the_number_of_its_line(tmp_path: Path) -> None:
    """
    Failures are lines, too.
    """
    path = tmp_path / "run.jsonl"
    with EpisodeWriter(path, HEADER) as writer:
        writer.append(FAILURE)
        writer.append(step())
    lines = path.read_text().splitlines()
    broken = json.loads(lines[2]) | {"at_s": "noon"}
    path.write_text("\n".join([*lines[:2], json.dumps(broken), ""]))

    with pytest.raises(EpisodeError) as error:
        list(EpisodeReader(path))
    assert error.value.line == 3


def test_an_observation_of_any_layout_in_memory_has_a_digest() -> None:
    """
    Frames that were turned or cut out are summed up as they look.
    """
    frame = np.arange(4 * 6 * 3, dtype=np.uint8).reshape(4, 6, 3)[:, ::-1]
    seen = [
        Observation(
            instruction="wait",
            state=[0.0],
            images={"front": each},
            frame_rate_hz=1.0,
            captured_at_s=0.0,
        )
        for each in (frame, frame.copy())
    ]
    assert digest_of(seen[0]) == digest_of(seen[1])
