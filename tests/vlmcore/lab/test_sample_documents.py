"""Tests of `vlmcore.lab.sample_documents`."""

from __future__ import annotations

import contextlib
import json
from typing import Any

import attrs
import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sample_cases import MS, sample, samples
from vlmcore.contracts.faults import Faults
from vlmcore.contracts.json_text import read_json, write_json
from vlmcore.errors import ContractError, DocumentError
from vlmcore.lab.events import Failure, FailureKind, Sample
from vlmcore.lab.sample_documents import SAMPLE, read_sample, sample_document, sample_from
from vlmcore.testing.contract_strategies import hostile_json, json_objects

VALIDATOR = jsonschema.Draft202012Validator(SAMPLE.schema())


@given(one=samples())
def test_what_is_written_is_read_back_exactly_and_fits_the_schema(one: Sample) -> None:
    """
    Through the text of JSON too.
    """
    document = sample_document(one)

    assert [] == list(VALIDATOR.iter_errors(document))
    assert one == sample_from(read_json(write_json(document)))


def test_every_field_is_written_and_what_is_not_known_is_null() -> None:
    """
    A key that is missing could mean anything.
    """
    document = sample_document(Sample(case="dog", target="mine", request_ns=1, closed_ns=2))

    assert {field.name for field in attrs.fields(Sample)} <= set(document)
    unknown = {"prepared_ns", "sent_ns", "headers_ns", "usage", "finish_reason"}
    assert dict.fromkeys(unknown) == {key: document[key] for key in unknown}


@given(one=samples())
def test_numbers_are_exact_in_every_reader_of_json(one: Sample) -> None:
    """
    Many read all numbers as float64.
    """
    document = json.loads(json.dumps(sample_document(one)), parse_int=float)

    assert one.closed_ns == document["closed_ns"]
    assert one.start_ns in (document["request_ns"], document["scheduled_ns"])


def test_what_is_made_of_the_chunks_must_agree_with_them() -> None:
    """
    A first token that somebody moved is found, and so is another digest.
    """
    document = sample_document(sample(5, 9))
    document |= {"first_token_ns": 1 * MS, "text_sha256": "0" * 64}

    with pytest.raises(DocumentError) as error:
        sample_from(document)

    assert ["$.first_token_ns", "$.text_sha256"] == [path for path, _ in error.value.faults]
    assert "got 1000000, expected 5000000, as measured" == error.value.faults[0][1]


@pytest.mark.parametrize(
    ("changes", "faults"),
    [
        ({"case": ""}, ["$.case"]),
        ({"closed_ns": -1, "request_ns": "0"}, ["$.request_ns", "$.closed_ns"]),
        ({"closed_ns": 0}, ["$.closed_ns"]),
        ({"phase": "hot"}, ["$.phase"]),
        ({"tokens_per_second": 393.9}, ["$.tokens_per_second"]),
        ({"usage": {}}, [f"$.usage.{key}" for key in ("source", "prompt_tokens", "cached_tokens")]),
        ({"failure": {"kind": "bad luck", "message": ""}}, ["$.failure.kind"]),
        ({"finish_reason": 1}, ["$.finish_reason"]),
        ({"text": "\ud83d"}, ["$.text"]),
        ({"peak_memory_bytes": 1.5}, ["$.peak_memory_bytes"]),
        ({"attempts": 0}, ["$.attempts"]),
        ({"chunks": []}, ["$.chunks"]),
    ],
)
def test_faults_are_told_by_their_place(changes: dict[str, Any], faults: list[str]) -> None:
    """
    All at once.
    """
    with pytest.raises(DocumentError) as error:
        sample_from(sample_document(sample(5, 9)) | changes)

    assert set(faults) <= {path for path, _ in error.value.faults}


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"at_ns": [5 * MS]}, ("$.chunks", "got 1 at_ns, 2 channel, 2 characters, 2 tokens, exp")),
        ({"channel": ["none", "text"]}, ("$.chunks.channel", "got Channel.NONE, expected that of")),
        ({"at_ns": [9 * MS, 5 * MS]}, ("$.chunks[1].at_ns", "got 5000000, expected at least")),
    ],
)
def test_faults_of_chunks_are_told_by_their_place(
    changes: dict[str, Any], fault: tuple[str, str]
) -> None:
    """
    Columns of one length, each chunk as it may be.
    """
    document = sample_document(sample(5, 9))
    document["chunks"] |= changes

    with pytest.raises(DocumentError) as error:
        sample_from(document)

    ((path, problem),) = error.value.faults
    assert fault[0] == path
    assert problem.startswith(fault[1])


def test_a_sample_in_another_document_has_the_paths_of_that_document() -> None:
    """
    And the other samples of it are read.
    """
    faults = Faults("artifact")
    sound = sample_document(sample(5, failure=Failure(kind=FailureKind.TIMEOUT)))
    found = [read_sample(each, f"$.samples[{i}]", faults) for i, each in enumerate([{}, sound])]

    assert found[0] is None
    assert found[1] == sample_from(sound)
    with pytest.raises(DocumentError, match=r"\$\.samples\[0\]\.case: is missing"):
        faults.raise_any()


@given(text=hostile_json())
def test_any_text_gives_a_sample_or_our_error(text: str) -> None:
    """
    Journals are read after a crash.
    """
    with contextlib.suppress(ContractError):
        sample_from(read_json(text))


@given(one=samples(), changes=json_objects(), data=st.data())
def test_any_change_gives_a_sample_or_our_error(one: Sample, changes: Any, data: Any) -> None:
    """
    Whatever stands under whichever key.
    """
    document = sample_document(one)
    for value in changes.values():
        document[data.draw(st.sampled_from(sorted(document)))] = value
    with contextlib.suppress(DocumentError):
        assert isinstance(sample_from(document), Sample)
